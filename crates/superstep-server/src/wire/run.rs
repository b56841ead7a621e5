//! Runs, and why they failed.

use serde_json::{Map, Value as Json, json};
use superstep::registry::{RunRow, RunStatus};

use crate::assistant::default_id;
use crate::wire::{self, time};

/// Name of the field of a run's arguments that clients read next to the arguments, not among them.
const STRATEGY: &str = "multitask_strategy";

/// Returns a run as clients read it.
pub(crate) fn run(row: &RunRow) -> Json {
    let mut kwargs = row.arguments.clone();
    let fields = kwargs.as_object_mut();
    let strategy = fields.and_then(|fields| fields.remove(STRATEGY));
    complete(&mut kwargs, row);
    json!({
        "run_id": wire::uuid(row.id.to_bytes()),
        "thread_id": row.thread.name(),
        "assistant_id": wire::uuid(row.assistant.to_bytes()),
        "status": status(row.status),
        "metadata": metadata(row),
        "kwargs": kwargs,
        "multitask_strategy": strategy.unwrap_or_else(|| Json::from("enqueue")),
        "created_at": time(row.created),
        "updated_at": time(row.updated),
        "langsmith_session_name": null,
    })
}

/// Adds to a run's arguments what the server decided: the defaults, and which run of which assistant it is.
fn complete(kwargs: &mut Json, row: &RunRow) {
    let Some(kwargs) = kwargs.as_object_mut() else {
        return;
    };
    let durability = kwargs.get("durability").and_then(Json::as_str);
    let durability = durability.unwrap_or("sync").to_owned();
    kwargs.insert(
        "checkpoint_during".to_owned(),
        (durability != "exit").into(),
    );
    kwargs.insert("durability".to_owned(), durability.into());
    let Some(config) = object_at(kwargs, "config") else {
        return;
    };
    if let Some(configurable) = object_at(config, "configurable") {
        configurable.extend(ids(row));
    }
    if let Some(shown) = object_at(config, "metadata") {
        shown.extend(metadata(row));
        if row.attempts > 0 {
            shown.insert("run_attempt".to_owned(), row.attempts.into());
        }
    }
}

/// Returns the object in a field, which is created if it is missing; `None` if the field has something else.
fn object_at<'a>(
    fields: &'a mut Map<String, Json>,
    name: &str,
) -> Option<&'a mut Map<String, Json>> {
    let found = fields.entry(name).or_insert(Json::Null);
    if found.is_null() {
        *found = json!({});
    }
    found.as_object_mut()
}

/// Returns which run of which assistant it is.
fn ids(row: &RunRow) -> Map<String, Json> {
    let ids = [
        ("run_id", wire::uuid(row.id.to_bytes())),
        ("thread_id", row.thread.name().to_owned()),
        ("assistant_id", wire::uuid(row.assistant.to_bytes())),
        ("graph_id", graph_of(row).to_owned()),
    ];
    let ids = ids.into_iter();
    ids.map(|(name, id)| (name.to_owned(), id.into())).collect()
}

fn graph_of(row: &RunRow) -> &str {
    let graph = row.metadata.get("graph_id").and_then(Json::as_str);
    graph.unwrap_or_default()
}

/// Returns the metadata of a run, with that of a default assistant.
fn metadata(row: &RunRow) -> Map<String, Json> {
    let mut metadata = row.metadata.as_object().cloned().unwrap_or_default();
    if row.assistant == default_id(graph_of(row)) {
        let created = metadata.entry("created_by");
        created.or_insert_with(|| "system".into());
    }
    metadata
}

/// Returns what the events and the checkpoints of a run say about it.
pub(crate) fn run_metadata(row: &RunRow) -> Map<String, Json> {
    let mut shown = metadata(row);
    shown.insert("run_id".to_owned(), wire::uuid(row.id.to_bytes()).into());
    shown.insert("run_attempt".to_owned(), row.attempts.max(1).into());
    shown
}

/// Returns what the caller and the server configured of a run. Every reader of the thread sees it, so it has nothing that looks like a
/// secret by its name.
pub(crate) fn run_configurable(row: &RunRow) -> Map<String, Json> {
    let config = row.arguments.get("config");
    let given = [
        config.and_then(|config| config.get("configurable")),
        row.arguments.get("context"),
    ];
    let mut configurable = Map::new();
    for fields in given.into_iter().flatten().filter_map(Json::as_object) {
        let shown = fields.iter().filter(|(name, _)| !is_secret(name));
        configurable.extend(shown.map(|(name, value)| (name.clone(), value.clone())));
    }
    configurable.extend(ids(row));
    configurable
}

/// Whether a setting with this name may be a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let parts = ["key", "token", "secret", "password", "auth", "credential"];
    parts.iter().any(|part| name.contains(part))
}

#[test]
fn settings_that_may_be_secrets_are_not_shown() {
    for name in ["api_key", "openaiApiKey", "Authorization", "access_token"] {
        assert!(is_secret(name), "{name}");
    }
    for name in ["model", "user_id", "temperature"] {
        assert!(!is_secret(name), "{name}");
    }
}

/// Returns the name of a run's status.
fn status(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Pending => "pending",
        RunStatus::Running => "running",
        RunStatus::Success => "success",
        RunStatus::Error => "error",
        RunStatus::Timeout => "timeout",
        RunStatus::Interrupted => "interrupted",
    }
}

/// Returns the status of runs with this name.
pub(crate) fn read_status(name: &str) -> Option<RunStatus> {
    RunStatus::ALL
        .into_iter()
        .find(|found| status(*found) == name)
}

/// Returns why a run failed or was cancelled, as `{"error", "message"}`; `null` if it did not. Clients know some errors by the names
/// that LangGraph gives them.
pub(crate) fn error(row: &RunRow) -> Json {
    let code = row.error.get("error").and_then(Json::as_str);
    let Some(code) = code else {
        return Json::Null;
    };
    let message = row.error.get("message").cloned().unwrap_or_default();
    json!({ "error": error_name(code), "message": message })
}

/// Returns the name under which clients know an error.
pub(crate) fn error_name(code: &str) -> &str {
    match code {
        "cancelled" => "UserInterrupt",
        "step-limit" => "GraphRecursionError",
        _ => code,
    }
}
