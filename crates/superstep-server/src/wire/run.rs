//! Runs, and why they failed.

use serde_json::{Map, Value as Json, json};
use superstep::InterruptId;
use superstep::checkpoint::Answer;
use superstep::registry::{RunRow, RunStatus};

use crate::assistant::default_id;
use crate::wire::{self, time};

/// Name of the field of a run's arguments that clients read next to the arguments, not among them.
const STRATEGY: &str = "multitask_strategy";

/// Name of the field of a run's arguments with the ids of the interrupts that it answers, which clients do not read.
const ANSWERS: &str = "answers";

/// Fields of `configurable` by which clients name a checkpoint.
pub(crate) const CHECKPOINT_ID: &str = "checkpoint_id";
pub(crate) const CHECKPOINT_NS: &str = "checkpoint_ns";
const ADDRESS: [&str; 2] = [CHECKPOINT_ID, CHECKPOINT_NS];

/// Returns a run as clients read it.
pub(crate) fn run(row: &RunRow) -> Json {
    let mut kwargs = row.arguments.clone();
    let strategy = kwargs.as_object_mut().and_then(|fields| {
        fields.remove(ANSWERS);
        fields.remove(STRATEGY)
    });
    complete(&mut kwargs, row);
    json!({
        "run_id": wire::uuid(row.id.to_bytes()),
        "thread_id": row.thread.name(),
        "assistant_id": wire::uuid(row.assistant.to_bytes()),
        "status": status(row.status),
        "metadata": own_metadata(row),
        "kwargs": kwargs,
        "multitask_strategy": strategy.unwrap_or_else(|| Json::from("enqueue")),
        "created_at": time(row.created),
        "updated_at": time(row.updated),
        "langsmith_session_name": null,
    })
}

/// Adds to a run's arguments which interrupts it answers.
pub(crate) fn note_answers(arguments: &mut Json, answers: &[Answer]) {
    if !answers.is_empty() {
        let ids = answers.iter().map(|answer| answer.interrupt.to_string());
        arguments[ANSWERS] = ids.collect();
    }
}

/// Whether a run answers this interrupt.
pub(crate) fn answers_interrupt(row: &RunRow, id: InterruptId) -> bool {
    let ids = row.arguments.get(ANSWERS).and_then(Json::as_array);
    ids.is_some_and(|ids| ids.contains(&Json::from(id.to_string())))
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
        shown.extend(own_metadata(row));
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

/// Returns the metadata of a run as the run shows it. LangGraph takes the name of the graph from the thread, which a stateless run does
/// not have.
fn own_metadata(row: &RunRow) -> Map<String, Json> {
    let mut metadata = metadata(row);
    if is_stateless(row) {
        metadata.remove("graph_id");
    }
    metadata
}

/// Whether the thread of a run is deleted after it.
pub(crate) fn is_stateless(row: &RunRow) -> bool {
    row.arguments.get("temporary") == Some(&Json::Bool(true))
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
        let is_shown = |name: &str| !is_secret(name) && !ADDRESS.contains(&name);
        let shown = fields.iter().filter(|(name, _)| is_shown(name));
        configurable.extend(shown.map(|(name, value)| (name.clone(), value.clone())));
    }
    configurable.extend(ids(row));
    configurable
}

/// Returns the checkpoint that a run was started at, which its events and its checkpoints name. An empty namespace is named in the
/// mode `events` alone, as LangGraph does.
pub(crate) fn run_address(row: &RunRow) -> Map<String, Json> {
    let config = row.arguments.get("config");
    let configurable = config.and_then(|config| config.get("configurable"));
    let modes = row.arguments.get("stream_mode").and_then(Json::as_array);
    let with_empty = modes.is_some_and(|modes| modes.iter().any(|mode| mode == "events"));
    let field = |name: &str| {
        let text = configurable?.get(name)?.as_str()?;
        (with_empty || !text.is_empty()).then(|| (name.to_owned(), Json::from(text)))
    };
    ADDRESS.into_iter().filter_map(field).collect()
}

/// Returns what a thread shows of the configuration of its last run. Settings may be secret, so their names are not shown either.
pub(crate) fn thread_config(row: &RunRow) -> Json {
    let mut shown = json!({ "configurable": {} });
    let config = row.arguments.get("config");
    for name in ["tags", "recursion_limit"] {
        if let Some(value) = config.and_then(|config| config.get(name)) {
            shown[name] = value.clone();
        }
    }
    shown
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
pub(crate) fn status(status: RunStatus) -> &'static str {
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
        "node-conflicting-writes" | "node-invalid-update" => "InvalidUpdateError",
        _ => code,
    }
}
