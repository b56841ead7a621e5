//! The configuration of a run: the assistant's, with the request's on top.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};
use superstep::graph::Definition;
use superstep::registry::Assistant;
use superstep::run::{Durability, RunOptions};
use superstep::{NodeName, Value, schema};

use crate::caller::Caller;
use crate::error::{ApiError, ApiResult};
use crate::permission::Permission;
use crate::start::body::{NodeList, RunBody, RunDurability};

/// The configuration of a run.
#[derive(Debug)]
pub(crate) struct RunConfig {
    /// What clients read as the run's `config`.
    pub(crate) config: Map<String, Json>,
    /// What nodes can read besides the state: a JSON object.
    pub(crate) context: Json,
    /// Whether the request itself says something about the context. A resume without keeps the one of its run.
    pub(crate) has_own_context: bool,
}

impl RunConfig {
    pub(crate) fn of(assistant: &Assistant, body: &RunBody) -> Self {
        let own = body.config.clone().unwrap_or_default();
        let mut config = assistant.config.as_object().cloned().unwrap_or_default();
        let configurable = [config.get("configurable"), own.get("configurable")];
        let [base, added] = configurable.map(|found| found.and_then(Json::as_object).cloned());
        let (base, added) = (base.unwrap_or_default(), added.unwrap_or_default());
        let own_context = body.context.as_ref().and_then(Json::as_object);
        let own_context = own_context.cloned().unwrap_or_default();
        let added_context: Map<String, Json> = added
            .clone()
            .into_iter()
            .filter(|(name, _)| is_users(name))
            .collect();
        let has_own_context = !added_context.is_empty() || !own_context.is_empty();

        // The assistant's first: what the request says replaces it, in whichever of the two places it says it.
        let mut context = base.clone();
        let of_assistant = assistant.context.as_object().cloned();
        context.extend(of_assistant.unwrap_or_default());
        context.extend(added_context);
        context.extend(own_context);
        // Only the server says who the caller is.
        context.remove(USER);

        let mut configurable = base;
        configurable.extend(added);
        config.extend(own);
        config.insert("configurable".to_owned(), Json::Object(configurable));
        Self {
            config,
            context: Json::Object(context),
            has_own_context,
        }
    }

    /// Lets nodes read who the caller is, as nodes of LangGraph do, unless the graph's context has no room for it.
    pub(crate) fn name_user(&mut self, graph: &Definition, caller: &Caller) {
        let schema = graph.context_schema();
        let is_closed =
            schema.is_some_and(|schema| schema.get("additionalProperties") == Some(&false.into()));
        if caller.principal.is_empty() || is_closed {
            return;
        }
        if let Some(context) = self.context.as_object_mut() {
            let permissions: Vec<&str> = caller.permissions.iter().map(Permission::name).collect();
            let user = json!({
                "identity": caller.principal,
                "display_name": caller.principal,
                "is_authenticated": true,
                "permissions": permissions,
            });
            context.insert(USER.to_owned(), user);
        }
    }

    /// Refuses a context that does not fit the schema of the graph, if the run may read it. A resume that says nothing about the
    /// context keeps the one that its run was started with.
    pub(crate) fn check_context(&self, graph: &Definition, body: &RunBody) -> ApiResult<()> {
        let Some(declared) = graph.context_schema() else {
            return Ok(());
        };
        if !self.has_own_context && body.input.is_none() {
            return Ok(());
        }
        schema::check(declared, &self.context, "the context").map_err(|why| {
            let graph = graph.name();
            ApiError::invalid(format!("The context does not fit graph `{graph}`: {why}"))
        })
    }

    /// Returns the context in the form in which a run takes it; `None` if it is empty.
    pub(crate) fn context_value(&self) -> ApiResult<Option<Value>> {
        let is_empty = self.context.as_object().is_none_or(Map::is_empty);
        match is_empty {
            true => Ok(None),
            false => Ok(Some(Value::plain(&self.context)?)),
        }
    }

    /// Returns the options of the run.
    pub(crate) fn options(&self, graph: &Definition, body: &RunBody) -> ApiResult<RunOptions> {
        // Nothing may be left to run when the turn of a run without an input comes.
        let mut options = RunOptions::default()
            .finish_if_idle()
            .recoveries_max(RECOVERIES_MAX);
        if let Some(limit) = self.config.get("recursion_limit") {
            let limit = limit.as_u64().filter(|limit| *limit > 0);
            let limit = limit.ok_or_else(|| {
                ApiError::invalid("`recursion_limit` is not a whole number above zero")
            })?;
            // The limit is added to; no run makes so many supersteps.
            options = options.step_limit(limit.min(u64::from(u32::MAX)));
        }
        let durability = match (body.durability, body.checkpoint_during) {
            (Some(RunDurability::Async), _) => Durability::Async,
            (Some(RunDurability::Exit), _) | (None, Some(false)) => Durability::Exit,
            (Some(RunDurability::Sync), _) | (None, _) => Durability::Sync,
        };
        options = options.durability(durability);
        options.pause_before = nodes_of(graph, body.interrupt_before.as_ref())?;
        options.pause_after = nodes_of(graph, body.interrupt_after.as_ref())?;
        Ok(options)
    }
}

/// How often a run is recovered without progress: one that took its process down three times is not executed a fourth time.
const RECOVERIES_MAX: u32 = 2;

/// Whether a field of `configurable` is the caller's, not one of those by which clients address threads and checkpoints, or that
/// names the cron of a run.
fn is_users(name: &str) -> bool {
    let is_address = matches!(
        name,
        "thread_id" | "run_id" | "checkpoint_id" | "checkpoint_ns" | "checkpoint_map" | "cron_id"
    );
    !is_address && !name.starts_with("__") && name != USER
}

/// Field in which nodes find who the caller is.
pub(crate) const USER: &str = "langgraph_auth_user";

fn nodes_of(graph: &Definition, list: Option<&NodeList>) -> ApiResult<BTreeSet<NodeName>> {
    let names = match list {
        None => return Ok(BTreeSet::new()),
        Some(NodeList::One(all)) if all == "*" => return Ok(graph.nodes().cloned().collect()),
        Some(NodeList::One(one)) => std::slice::from_ref(one),
        Some(NodeList::Many(many)) if many.iter().any(|name| name == "*") => {
            return Ok(graph.nodes().cloned().collect());
        }
        Some(NodeList::Many(many)) => many.as_slice(),
    };
    let read = names.iter().map(|name| NodeName::new(name));
    Ok(read.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use superstep::Timestamp;

    use super::*;
    use crate::assistant::default_of;

    #[test]
    fn the_request_goes_over_the_assistant_in_both_places() {
        let mut new = default_of("g", "", Timestamp(0));
        new.config =
            json!({ "recursion_limit": 5, "configurable": { "model": "a", "tone": "dry" } });
        new.context = json!({ "model": "a", "tone": "dry" });
        let body = RunBody {
            config: json!({ "tags": ["t"], "configurable": { "model": "b", "thread_id": "x" } })
                .as_object()
                .cloned(),
            context: Some(json!({ "depth": 2, "langgraph_auth_user": { "identity": "root" } })),
            ..RunBody::default()
        };
        let config = RunConfig::of(&new.first_version(), &body);
        assert_eq!(
            config.context,
            json!({ "model": "b", "tone": "dry", "depth": 2 })
        );
        assert_eq!(config.config["recursion_limit"], 5);
        assert!(config.has_own_context);
        let silent = RunConfig::of(&new.first_version(), &RunBody::default());
        assert!(!silent.has_own_context);
        assert_eq!(silent.context, json!({ "model": "a", "tone": "dry" }));
    }
}
