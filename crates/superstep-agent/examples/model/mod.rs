//! The model of an example: its script, or the one that `--model` names.

use std::path::Path;
use std::sync::Arc;

use superstep_llm::{Model, ModelName, open};

/// Reads `[--model PROVIDER:NAME] [QUESTION]`.
pub(crate) fn from_args(
    script: &str,
    question: &str,
) -> Result<(Arc<dyn Model>, String), Box<dyn std::error::Error>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples/scripts")
        .join(script);
    let mut name = format!("script:{}", script.display());
    let mut question = question.to_owned();
    let mut args = lexopt::Parser::from_env();
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("model") => name = args.value()?.to_string_lossy().into_owned(),
            lexopt::Arg::Value(asked) => question = asked.to_string_lossy().into_owned(),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok((open(&name.parse::<ModelName>()?)?, question))
}
