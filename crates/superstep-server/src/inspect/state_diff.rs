//! The difference of two states, of one thread or of two, with the states of the subgraphs that they are inside of.

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use superstep::ThreadId;
use superstep::diff::{ComparedGraph, StateFields, ValueChange, compared_graphs, value_changes};
use superstep::graph::Definition;

use crate::Shared;
use crate::error::ApiResult;
use crate::history::Checkpoint;
use crate::wire;

/// A state to compare.
#[derive(Debug)]
pub(crate) struct DiffSide {
    pub(crate) graph: Arc<Definition>,
    pub(crate) thread: ThreadId,
    /// `None` for the state before anything happened.
    pub(crate) checkpoint: Option<Checkpoint>,
}

impl DiffSide {
    /// Returns the checkpoint of a thread that a caller names by its id, or the newest.
    pub(crate) async fn named(
        app: &Shared,
        graph: &Arc<Definition>,
        thread: &ThreadId,
        name: Option<&str>,
    ) -> ApiResult<Self> {
        let checkpoint = super::checkpoint_named(app, graph, thread, name).await?;
        Ok(Self {
            graph: graph.clone(),
            thread: thread.clone(),
            checkpoint,
        })
    }

    /// Returns the checkpoint before this one.
    pub(crate) async fn parent(&self, app: &Shared) -> ApiResult<Self> {
        let (graph, thread) = (&self.graph, &self.thread);
        let parent = self.checkpoint.as_ref().and_then(|found| found.parent);
        match parent {
            Some(parent) => {
                let name = parent.to_uuid(thread);
                Self::named(app, graph, thread, Some(&name)).await
            }
            None => Ok(Self {
                graph: graph.clone(),
                thread: thread.clone(),
                checkpoint: None,
            }),
        }
    }

    fn shown(&self) -> Json {
        let id = self.checkpoint.as_ref().map(|found| found.id);
        json!({
            "thread_id": self.thread.name(),
            "checkpoint_id": id.map(|id| id.to_uuid(&self.thread)),
        })
    }

    /// Reads the values as clients see them.
    async fn fields(&self, app: &Shared) -> ApiResult<StateFields> {
        let Some(checkpoint) = &self.checkpoint else {
            return Ok(StateFields::default());
        };
        let values = wire::values(&self.graph, &checkpoint.state.values);
        let mut fields = StateFields::new(object(values));
        if checkpoint.id.is_before_input() {
            // Nothing is planned before an input, so no subgraph is open.
            return Ok(fields);
        }
        let (graph, seq) = (&self.graph, checkpoint.id.seq);
        let inner = app.runtime.subgraphs_of(graph, &self.thread, Some(seq));
        for found in inner.await? {
            let Some(inner) = graph.at(&found.frame) else {
                continue;
            };
            let values = wire::values(&inner, &found.values);
            fields = fields.with_subgraph(&found.frame, object(values));
        }
        Ok(fields)
    }
}

fn object(values: Json) -> Map<String, Json> {
    match values {
        Json::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Returns where two states differ, with the values of both.
pub(crate) async fn state_diff(app: &Shared, from: &DiffSide, to: &DiffSide) -> ApiResult<Json> {
    let (one, other) = (from.fields(app).await?, to.fields(app).await?);
    let graphs = compared_graphs(one, other);
    let changes: Vec<Json> = graphs.into_iter().flat_map(changes_of).collect();
    Ok(json!({ "from": from.shown(), "to": to.shown(), "changes": changes }))
}

fn changes_of(graph: ComparedGraph) -> Vec<Json> {
    let (one, other) = (graph.one.map(Json::Object), graph.other.map(Json::Object));
    let changes = value_changes(one.as_ref(), other.as_ref());
    let shown = changes.iter().map(|change| shown(&graph.subgraph, change));
    shown.collect()
}

/// Returns a difference. A value that is absent has no field, so that it differs from `null`.
fn shown(subgraph: &str, change: &ValueChange) -> Json {
    let mut shown = json!({ "path": change.pointer() });
    let known = [
        ("before", change.before.clone()),
        ("after", change.after.clone()),
        ("id", change.id.clone().map(Json::from)),
        ("subgraph", (!subgraph.is_empty()).then(|| subgraph.into())),
    ];
    for (name, value) in known {
        if let Some(value) = value {
            shown[name] = value;
        }
    }
    shown
}
