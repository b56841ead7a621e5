//! Assistants: how a request names one, and the default one of every graph.

use std::sync::Arc;

use serde_json::json;
use superstep::__private::lock;
use superstep::graph::Definition;
use superstep::registry::{Assistant, CreatedAssistant, NewAssistant};
use superstep::{AssistantId, Timestamp};
use uuid::{Uuid, uuid};

use crate::caller::{Caller, assistant_id};
use crate::error::{ApiError, ApiResult};
use crate::{Shared, wire};

/// The namespace from which clients compute the ids of default assistants.
const NAMESPACE: Uuid = uuid!("6ba7b821-9dad-11d1-80b4-00c04fd430c8");

/// Returns the id of a graph's default assistant: a UUID of version 5.
pub(crate) fn default_id(graph: &str) -> AssistantId {
    let id = wire::uuid_of_name(NAMESPACE.into_bytes(), graph.as_bytes());
    AssistantId::from_bytes(id.into_bytes())
}

/// Returns the default assistant of a graph.
pub(crate) fn default_of(graph: &str, tenant: &str, at: Timestamp) -> NewAssistant {
    NewAssistant {
        tenant: tenant.to_owned(),
        id: default_id(graph),
        graph: graph.to_owned(),
        name: graph.to_owned(),
        description: String::new(),
        config: json!({}),
        context: json!({}),
        metadata: json!({ "created_by": "system" }),
        at,
    }
}

/// Returns the assistant that a request names by its id or by the name of its graph; `None` if there is none with this id.
///
/// A name that is neither is an error, whose beginning Agent Inbox knows.
pub(crate) async fn find(
    app: &Shared,
    caller: &Caller,
    name: &str,
) -> ApiResult<Option<Assistant>> {
    if app.graphs.contains_key(name) {
        return default_assistant(app, caller, name).await.map(Some);
    }
    let id = assistant_id(name).ok_or_else(|| invalid(app, name))?;
    match default_with_id(app, caller, id).await? {
        Some(found) => Ok(Some(found)),
        None => {
            let found = app.registry().assistant(&caller.tenant, id).await?;
            Ok(found.filter(|found| caller.owns_assistant(found)))
        }
    }
}

/// Returns the default assistant with this id; `None` if it is not the id of one.
pub(crate) async fn default_with_id(
    app: &Shared,
    caller: &Caller,
    id: AssistantId,
) -> ApiResult<Option<Assistant>> {
    match app.graphs.keys().find(|graph| default_id(graph) == id) {
        Some(graph) => default_assistant(app, caller, graph).await.map(Some),
        None => Ok(None),
    }
}

/// Returns the assistant that a path names.
pub(crate) async fn get(app: &Shared, caller: &Caller, name: &str) -> ApiResult<Assistant> {
    let found = find(app, caller, name).await?;
    found.ok_or_else(|| no_assistant(name))
}

/// Returns the assistant that a path names, to change it. The default ones are there for everyone, and have no owner.
pub(crate) async fn get_own(app: &Shared, caller: &Caller, name: &str) -> ApiResult<Assistant> {
    let found = get(app, caller, name).await?;
    match caller.owns_assistant(&found) {
        true => Ok(found),
        false => Err(no_assistant(name)),
    }
}

/// The error for an assistant that does not exist.
pub(crate) fn no_assistant(name: &str) -> ApiError {
    ApiError::not_found(format!("Assistant with ID {name} not found"))
}

/// Returns the graph of an assistant, which a newer program may no longer serve.
pub(crate) fn graph_of(app: &Shared, assistant: &Assistant) -> ApiResult<Arc<Definition>> {
    let found = app.graphs.get(&assistant.graph);
    found.cloned().ok_or_else(|| invalid(app, &assistant.graph))
}

/// Returns the default assistant of a graph. A tenant gets its own when it first uses it.
async fn default_assistant(app: &Shared, caller: &Caller, graph: &str) -> ApiResult<Assistant> {
    // All runs of a graph come here, and only the first has to write.
    let id = default_id(graph);
    if let Some(found) = app.registry().assistant(&caller.tenant, id).await? {
        return Ok(found);
    }
    let new = default_of(graph, &caller.tenant, app.runtime.now());
    Ok(match app.registry().create_assistant(&new).await? {
        CreatedAssistant::Stored(found) | CreatedAssistant::Exists(found) => found,
    })
}

/// Creates the default assistants of every graph for the tenant of a caller who lists assistants. Once in the life of the server, as
/// it does for the unnamed tenant when it starts: a default assistant that the tenant deletes stays deleted until then.
pub(crate) async fn create_defaults(app: &Shared, caller: &Caller) -> ApiResult<()> {
    if caller.tenant.is_empty() || lock(&app.known_tenants).contains(&caller.tenant) {
        return Ok(());
    }
    for graph in app.graphs.keys() {
        default_assistant(app, caller, graph).await?;
    }
    lock(&app.known_tenants).insert(caller.tenant.clone());
    Ok(())
}

fn invalid(app: &Shared, name: &str) -> ApiError {
    let graphs: Vec<&str> = app.graphs.keys().map(String::as_str).collect();
    ApiError::invalid(format!(
        "Invalid assistant: '{name}'. No assistant found for it. Must be either:\n- A valid assistant UUID, or\n- One of the registered graphs: {}",
        graphs.join(", ")
    ))
}

#[test]
fn the_id_of_a_default_assistant_is_the_one_that_clients_compute() {
    // `uuid.uuid5(uuid.UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8"), "agent")` in Python.
    let id = Uuid::from_bytes(default_id("agent").to_bytes());
    assert_eq!(id.to_string(), "fe096781-5601-53d2-b2f6-0d3403f7e9ca");
}
