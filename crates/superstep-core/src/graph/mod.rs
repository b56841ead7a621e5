//! Graphs: the plan that a run follows. Built once, checked as a whole, immutable.

mod builder;
mod draw;
mod erased;
mod node_table;
mod policy;
mod validate;

pub use builder::GraphBuilder;
pub use draw::{Drawing, DrawnEdge, DrawnNode};
pub use erased::Failed;
pub use policy::{CacheKey, RetryPolicy, Siblings, SubgraphLife, Timeout};

pub(crate) use erased::{
    AnyUpdate, Input, Live, NodeFn, Prepared, RawOutput, ReadError, RefusedUpdate, StateOps,
    guarded, panic_text,
};
pub(crate) use policy::CacheScope;

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::channel::Channel;
use crate::checkpoint::format::GotoRecord;
use crate::error::{FailureKind, NodeError, OpenError};
use crate::ids::{FramePath, NodeName};
use crate::state::State;
use crate::value::Value;
use erased::{CacheFn, DownFn, RouteFn, UpFn};
use node_table::NodeTable;

/// A graph over the state `S`, made by [`Graph::builder`]. Cheap to clone.
///
/// ```
/// # use superstep_core::{Command, END, Failed, Goto, Graph, Interrupt, NodeCx, NodeError, START, SendTo, State, View};
/// # #[derive(Clone, Debug, Default, State)]
/// # #[state(crate = superstep_core)]
/// # struct Essay { topic: String, #[state(append)] parts: Vec<String>, score: u8 }
/// # async fn step(_: View<Essay>, _: NodeCx) -> Result<EssayUpdate, NodeError> { Ok(EssayUpdate::default()) }
/// let graph = Graph::builder("essay")
///     .node("write", step)
///     .edge(START, "write")
///     .edge("write", END)
///     .build()?;
/// assert!(graph.drawing().to_mermaid().contains("write"));
/// # Ok::<(), superstep_core::error::BuildError>(())
/// ```
pub struct Graph<S> {
    definition: Arc<Definition>,
    over: PhantomData<fn(S)>,
}

impl<S> Graph<S> {
    /// Starts building a graph. The name is stored with the graph's threads.
    // The bound is here and not on the impl, so that the compiler tells a struct without the derive what it lacks.
    pub fn builder(name: impl Into<String>) -> GraphBuilder<S>
    where
        S: State,
    {
        GraphBuilder::new(name.into())
    }

    /// Returns the graph's name.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Returns the graph without its state type, as the state machine and the drivers take it.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }
}

impl<S> Clone for Graph<S> {
    fn clone(&self) -> Self {
        Self {
            definition: self.definition.clone(),
            over: PhantomData,
        }
    }
}

impl<S> fmt::Debug for Graph<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.definition, f)
    }
}

/// A graph without its state type: what the state machine runs.
pub struct Definition {
    pub(crate) name: String,
    pub(crate) ops: Arc<dyn StateOps>,
    pub(crate) nodes: NodeTable,
    pub(crate) start: Routing,
    pub(crate) joins: Vec<Join>,
    pub(crate) at_limit: Option<NodeName>,
    pub(crate) pause_before: BTreeSet<NodeName>,
    pub(crate) pause_after: BTreeSet<NodeName>,
    pub(crate) siblings: Siblings,
    pub(crate) inputs: BTreeSet<&'static str>,
    pub(crate) context_schema: Option<Json>,
}

impl Definition {
    /// Returns the graph's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the names of the graph's nodes, in alphabetical order.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeName> {
        self.nodes.keys()
    }

    /// Returns the graph that a path leads to: this one, or a subgraph inside it. `None` if a node on the path is not a subgraph.
    pub fn at(self: &Arc<Self>, frame: &FramePath) -> Option<Arc<Self>> {
        self.descend(frame).ok()
    }

    /// Returns the channels of the graph's state.
    pub fn channels(&self) -> &'static [Channel] {
        self.ops.channels()
    }

    /// Returns the names of the channels that callers from outside may write; see [`GraphBuilder::inputs`].
    pub fn inputs(&self) -> &BTreeSet<&'static str> {
        &self.inputs
    }

    /// Checks that an encoded update can be read as an update of this graph's state. The rules of the state are checked when the
    /// update is written.
    pub fn check_update(&self, update: &Value) -> Result<(), OpenError> {
        let bad_input = |source| OpenError::BadInput {
            graph: self.name.clone(),
            source,
        };
        // The serde code of the state's types is user code, and may panic.
        let read = guarded("the reading of an update", || {
            self.ops.decode_update(update, self.ops.version())
        });
        match read {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(bad_input(error.into())),
            Err(panic) => Err(bad_input(panic.to_string().into())),
        }
    }

    /// Returns a JSON Schema of the graph's state.
    pub fn state_schema(&self) -> Json {
        self.ops.schema()
    }

    /// Returns a JSON Schema of what callers from outside may write: the schema of the state, with the channels of
    /// [`inputs`](Definition::inputs) only.
    pub fn input_schema(&self) -> Json {
        let mut schema = self.ops.schema();
        // A state that is written by hand may say `true`.
        if !schema.is_object() {
            schema = serde_json::json!({ "type": "object" });
        }
        let any = || Json::Object(Map::new());
        let property = |name: &&'static str| {
            let known = schema["properties"].get(*name).cloned();
            ((*name).to_owned(), known.unwrap_or_else(any))
        };
        let properties: Map<String, Json> = self.inputs.iter().map(property).collect();
        schema["properties"] = Json::Object(properties);
        schema
    }

    /// Returns the JSON Schema of a run's context, if the graph [declares](GraphBuilder::context_schema) one.
    pub fn context_schema(&self) -> Option<&Json> {
        self.context_schema.as_ref()
    }

    pub(crate) fn node(&self, name: &NodeName) -> &NodeDef {
        self.nodes.get(name).expect(
            "tasks are only planned for nodes of the graph, and checked when a thread is opened",
        )
    }

    /// Returns the graph that a frame runs, or the first node on the path that is not (or no longer) a subgraph.
    pub(crate) fn descend(self: &Arc<Self>, path: &FramePath) -> Result<Arc<Self>, NodeName> {
        let mut graph = self.clone();
        for segment in path.segments() {
            let child = graph
                .nodes
                .get(&segment.node)
                .and_then(NodeDef::subgraph)
                .map(|sub| sub.graph.clone());
            graph = child.ok_or_else(|| segment.node.clone())?;
        }
        Ok(graph)
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("name", &self.name)
            .field("nodes", &self.nodes.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// A node with all its settings.
pub(crate) struct NodeDef {
    pub(crate) body: NodeBody,
    /// Whether the node is reached by sending it a payload.
    pub(crate) takes_payload: bool,
    pub(crate) routing: Routing,
    pub(crate) retry: Option<RetryPolicy>,
    pub(crate) timeout: Timeout,
    pub(crate) handler: Option<Handler>,
    pub(crate) deferred: bool,
    pub(crate) cache: Option<Cache>,
}

impl NodeDef {
    pub(crate) fn subgraph(&self) -> Option<&Subgraph> {
        match &self.body {
            NodeBody::Call(_) => None,
            NodeBody::Subgraph(subgraph) => Some(subgraph),
        }
    }

    /// Whether a task of this node that returned these targets leaves by them: edges and routes are the default of a node that
    /// may choose and did not.
    pub(crate) fn leaves_by_command(&self, goto: &[GotoRecord]) -> bool {
        let routing = &self.routing;
        let has_default = !routing.edges.is_empty() || !routing.routes.is_empty();
        !goto.is_empty() || (routing.commands.is_some() && !has_default)
    }

    /// Refuses targets that were not declared, payloads to nodes that take none, and missing payloads.
    pub(crate) fn check_goto(
        &self,
        graph: &Definition,
        node: &NodeName,
        goto: &[GotoRecord],
        handled: bool,
    ) -> Result<(), NodeError> {
        let by_handler = self.handler.as_ref().filter(|_| handled);
        if !goto.is_empty() && self.routing.commands.is_none() && by_handler.is_none() {
            return Err(undeclared(
                node,
                "it routes by edges; declare `.commands(..)` to let it choose",
            ));
        }
        for place in goto {
            let declared = self
                .routing
                .commands
                .as_ref()
                .is_some_and(|targets| targets.contains(&place.node))
                || by_handler.is_some_and(|handler| handler.targets.contains(&place.node));
            check_place(graph, node, place, declared)?;
        }
        Ok(())
    }
}

pub(crate) fn check_place(
    graph: &Definition,
    node: &NodeName,
    place: &GotoRecord,
    declared: bool,
) -> Result<(), NodeError> {
    let Some(name) = &place.node else {
        return if declared {
            Ok(())
        } else {
            Err(undeclared(node, "it did not declare END"))
        };
    };
    if !declared {
        return Err(undeclared(node, &format!("it did not declare `{name}`")));
    }
    let takes_payload = graph.node(name).takes_payload;
    if takes_payload != place.payload.is_some() {
        let why = if takes_payload {
            "is reached by sending it a payload"
        } else {
            "takes no payload"
        };
        return Err(undeclared(node, &format!("`{name}` {why}")));
    }
    Ok(())
}

fn undeclared(node: &NodeName, why: &str) -> NodeError {
    NodeError::of_kind(
        FailureKind::UndeclaredTarget,
        format!("`{node}` cannot go there: {why}"),
    )
}

pub(crate) enum NodeBody {
    Call(NodeFn),
    Subgraph(Subgraph),
}

pub(crate) struct Subgraph {
    pub(crate) graph: Arc<Definition>,
    pub(crate) mapping: Mapping,
    pub(crate) life: SubgraphLife,
}

pub(crate) enum Mapping {
    /// The child works on the parent's state, and its updates are the parent's.
    Shared,
    /// The child has its own state.
    Mapped { down: DownFn, up: UpFn },
}

/// Where a node leads. `None` is the end.
#[derive(Default)]
pub(crate) struct Routing {
    pub(crate) edges: Vec<Option<NodeName>>,
    pub(crate) routes: Vec<Route>,
    pub(crate) commands: Option<BTreeSet<Option<NodeName>>>,
}

pub(crate) struct Route {
    pub(crate) targets: BTreeSet<Option<NodeName>>,
    pub(crate) choose: RouteFn,
}

/// A node that runs once all sources have run.
pub(crate) struct Join {
    pub(crate) sources: BTreeSet<NodeName>,
    pub(crate) target: NodeName,
}

/// What runs in place of a node that failed permanently.
pub(crate) struct Handler {
    pub(crate) call: NodeFn,
    pub(crate) targets: BTreeSet<Option<NodeName>>,
}

pub(crate) struct Cache {
    pub(crate) key: CacheFn,
    pub(crate) ttl_ms: Option<u64>,
}
