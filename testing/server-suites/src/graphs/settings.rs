//! Settings of a run, as its nodes read them.

use serde_json::Value as Json;
use superstep::prelude::*;

/// Returns a field of the run's context, which the server fills from `context` and `config.configurable` of the request and the
/// assistant; `None` if it is absent or null.
pub(super) fn setting(cx: &NodeCx, name: &str) -> Result<Option<Json>, NodeError> {
    let context: Option<Json> = cx.context()?;
    let found = context.and_then(|mut context| context.get_mut(name).map(Json::take));
    Ok(found.filter(|value| !value.is_null()))
}

/// Returns a setting that is a text; `None` if it is something else.
pub(super) fn text_setting(cx: &NodeCx, name: &str) -> Result<Option<String>, NodeError> {
    let found = setting(cx, name)?;
    Ok(found.and_then(|value| value.as_str().map(str::to_owned)))
}
