//! Assistants.

use serde_json::{Map, Value as Json, json};
use superstep::registry::Assistant;

use crate::wire::{self, time};

/// Returns an assistant as clients read it.
pub(crate) fn assistant(assistant: &Assistant) -> Json {
    let description = match assistant.description.is_empty() {
        true => Json::Null,
        false => Json::String(assistant.description.clone()),
    };
    json!({
        "assistant_id": wire::uuid(assistant.id.to_bytes()),
        "graph_id": assistant.graph,
        "name": assistant.name,
        "description": description,
        "config": assistant.config,
        "context": assistant.context,
        "metadata": assistant.metadata,
        "version": assistant.version,
        "created_at": time(assistant.created),
        "updated_at": time(assistant.updated),
    })
}

/// Returns a version of an assistant as clients read it. A version does not change.
pub(crate) fn assistant_version(version: &Assistant) -> Json {
    let mut shown = assistant(version);
    if let Some(shown) = shown.as_object_mut() {
        shown.remove("updated_at");
    }
    shown
}

/// Makes `config.configurable` and `context` of an assistant equal: clients write one and read the other. A field that both have is
/// taken from the context, which is the newer form.
pub(crate) fn mirror(config: &mut Json, context: &mut Json) {
    if !config.is_object() {
        *config = json!({});
    }
    if !context.is_object() {
        *context = json!({});
    }
    let mut merged = Map::new();
    let written = [config.get("configurable"), Some(&*context)];
    for fields in written.into_iter().flatten().filter_map(Json::as_object) {
        merged.extend(fields.clone());
    }
    if merged.is_empty() {
        return;
    }
    *context = Json::Object(merged.clone());
    config["configurable"] = Json::Object(merged);
}

#[test]
fn what_is_written_as_configurable_is_read_as_context() {
    let (mut config, mut context) = (
        json!({ "configurable": { "a": 1, "b": 1 } }),
        json!({ "b": 2 }),
    );
    mirror(&mut config, &mut context);
    assert_eq!(context, json!({ "a": 1, "b": 2 }));
    assert_eq!(config, json!({ "configurable": { "a": 1, "b": 2 } }));
}
