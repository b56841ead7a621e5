//! Builds a graph. Every method accepts its arguments as they are; [`GraphBuilder::build`] reports every problem at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;

use crate::command::{Gotos, Payload, SendTo, Target};
use crate::error::{BuildError, BuildProblem};
use crate::graph::erased::{self, Failed, Ops};
use crate::graph::node_table::NodeTable;
use crate::graph::{
    Cache, Definition, Graph, Handler, Join, Mapping, NodeBody, NodeDef, RetryPolicy, Route,
    Routing, Siblings, Subgraph, SubgraphLife, Timeout, validate,
};
use crate::ids::{END, NodeName, START};
use crate::node::Node;
use crate::state::State;

/// A graph under construction. Create one with [`Graph::builder`].
///
/// ```
/// use std::time::Duration;
/// use superstep_core::{RetryPolicy, Timeout};
/// # use superstep_core::{Command, END, Failed, Goto, Graph, Interrupt, NodeCx, NodeError, START, SendTo, State, View};
/// # #[derive(Clone, Debug, Default, State)]
/// # #[state(crate = superstep_core)]
/// # struct Essay { topic: String, #[state(append)] parts: Vec<String>, score: u8 }
/// # async fn step(_: View<Essay>, _: NodeCx) -> Result<EssayUpdate, NodeError> { Ok(EssayUpdate::default()) }
/// # let (plan, write, judge) = (step, step, step);
///
/// let graph = Graph::builder("essay")
///     .node("plan", plan)
///     .node("write", write)
///     .node("judge", judge)
///     .edge(START, "plan")
///     .edge("plan", "write")
///     .edge("write", "judge")
///     .route("judge", &["write", END], |essay: &Essay| {
///         if essay.score < 7 { "write" } else { END }
///     })
///     .retry("write", RetryPolicy::attempts(5))
///     .timeout("write", Timeout::run(Duration::from_secs(60)))
///     .on_error("write", &[END], |failed: Failed<Essay>, _: NodeCx| async move {
///         Ok::<_, NodeError>(EssayUpdate::default().parts(failed.failure.message.clone()))
///     })
///     .build()?;
/// # Ok::<(), superstep_core::error::BuildError>(())
/// ```
#[doc(alias = "StateGraph")]
pub struct GraphBuilder<S> {
    pub(super) name: String,
    pub(super) nodes: BTreeMap<NodeName, NodeDef>,
    pub(super) start: Routing,
    pub(super) joins: Vec<Join>,
    pub(super) at_limit: Option<NodeName>,
    pub(super) pause_before: BTreeSet<NodeName>,
    pub(super) pause_after: BTreeSet<NodeName>,
    pub(super) siblings: Siblings,
    /// Names of the channels that callers from outside may write.
    pub(super) inputs: BTreeSet<String>,
    pub(super) context_schema: Option<Json>,
    /// Settings and edges, which may name nodes that are added later.
    pub(super) mentions: Vec<Mention>,
    pub(super) problems: Vec<BuildProblem>,
    over: PhantomData<fn(S)>,
}

/// A setting or an edge, applied once all nodes are known.
pub(super) struct Mention {
    pub(super) from: String,
    pub(super) said: Declaration,
}

pub(super) enum Declaration {
    Edge {
        to: String,
    },
    Route {
        targets: Vec<String>,
        choose: erased::RouteFn,
    },
    Commands {
        targets: Vec<String>,
    },
    Join {
        sources: Vec<String>,
    },
    OnError {
        targets: Vec<String>,
        call: erased::NodeFn,
    },
    Retry(RetryPolicy),
    Timeout(Timeout),
    Defer,
    Cache {
        ttl_ms: Option<u64>,
        key: erased::CacheFn,
    },
    AtLimit,
    PauseBefore,
    PauseAfter,
    Life(SubgraphLife),
}

impl<S: State> GraphBuilder<S> {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            nodes: BTreeMap::new(),
            start: Routing::default(),
            joins: Vec::new(),
            at_limit: None,
            pause_before: BTreeSet::new(),
            pause_after: BTreeSet::new(),
            siblings: Siblings::default(),
            inputs: BTreeSet::new(),
            context_schema: None,
            mentions: Vec::new(),
            problems: Vec::new(),
            over: PhantomData,
        }
    }

    /// Adds a node that reads the state.
    #[doc(alias = "add_node")]
    #[must_use]
    pub fn node(self, name: impl Target<S>, node: impl Node<S>) -> Self {
        let body = NodeBody::Call(erased::node(node));
        self.add(name.target_name().to_owned(), body, false)
    }

    /// Adds a node that runs once for each payload that is sent to it: the map step of a map-reduce.
    ///
    /// ```
    /// # use superstep_core::{Command, END, Failed, Goto, Graph, Interrupt, NodeCx, NodeError, START, SendTo, State, View};
    /// # #[derive(Clone, Debug, Default, State)]
    /// # #[state(crate = superstep_core)]
    /// # struct Essay { topic: String, #[state(append)] parts: Vec<String>, score: u8 }
    /// # async fn step(_: View<Essay>, _: NodeCx) -> Result<EssayUpdate, NodeError> { Ok(EssayUpdate::default()) }
    /// const WRITE: SendTo<String> = SendTo::new("write");
    ///
    /// async fn write(heading: String, _: NodeCx) -> Result<EssayUpdate, NodeError> {
    ///     Ok(EssayUpdate::default().parts(format!("About {heading}.")))
    /// }
    ///
    /// let graph = Graph::builder("essay")
    ///     .map_node(&WRITE, write)
    ///     .route(START, &["write"], |essay: &Essay| {
    ///         let headings = essay.topic.split(", ");
    ///         headings.map(|heading| Goto::send(&WRITE, heading.to_owned())).collect::<Vec<_>>()
    ///     })
    ///     .edge("write", END)
    ///     .build()?;
    /// # Ok::<(), superstep_core::error::BuildError>(())
    /// ```
    #[doc(alias = "Send")]
    #[must_use]
    pub fn map_node<P: Payload>(self, to: &SendTo<P>, node: impl Node<S, P>) -> Self {
        let body = NodeBody::Call(erased::worker::<S, P>(node));
        self.add(to.name().to_owned(), body, true)
    }

    /// Adds a graph as a node, with its own state: `down` makes its input from the parent's state, `up` makes the parent's
    /// update from the parent's state, as of the start of the superstep, and its final state. Both must be pure.
    ///
    /// ```
    /// # use superstep_core::{Command, END, Failed, Goto, Graph, Interrupt, NodeCx, NodeError, START, SendTo, State, View};
    /// # #[derive(Clone, Debug, Default, State)]
    /// # #[state(crate = superstep_core)]
    /// # struct Essay { topic: String, #[state(append)] parts: Vec<String>, score: u8 }
    /// # async fn step(_: View<Essay>, _: NodeCx) -> Result<EssayUpdate, NodeError> { Ok(EssayUpdate::default()) }
    /// #[derive(Clone, Debug, Default, State)]
    /// #[state(crate = superstep_core)]
    /// struct Search {
    ///     query: String,
    ///     hits: Vec<String>,
    /// }
    ///
    /// async fn search(search: View<Search>, _: NodeCx) -> Result<SearchUpdate, NodeError> {
    ///     Ok(SearchUpdate::default().hits(vec![search.query.clone()]))
    /// }
    ///
    /// let child = Graph::builder("search").node("search", search).edge(START, "search").edge("search", END).build()?;
    /// let graph = Graph::builder("essay")
    ///     .subgraph(
    ///         "search",
    ///         child,
    ///         |essay: &Essay| SearchUpdate::default().query(essay.topic.clone()),
    ///         |_: &Essay, search: &Search| EssayUpdate::default().parts_all(search.hits.clone()),
    ///     )
    ///     .edge(START, "search")
    ///     .edge("search", END)
    ///     .build()?;
    /// # Ok::<(), superstep_core::error::BuildError>(())
    /// ```
    #[must_use]
    pub fn subgraph<C: State>(
        self,
        name: impl Target<S>,
        child: Graph<C>,
        down: impl Fn(&S) -> C::Update + Send + Sync + 'static,
        up: impl Fn(&S, &C) -> S::Update + Send + Sync + 'static,
    ) -> Self {
        let mapping = Mapping::Mapped {
            down: erased::down::<S, C>(down),
            up: erased::up::<S, C>(up),
        };
        self.add(
            name.target_name().to_owned(),
            subgraph(child, mapping),
            false,
        )
    }

    /// Adds a graph as a node that is reached by sending it a payload. `down` makes the graph's input from the payload.
    #[must_use]
    pub fn subgraph_worker<P: Payload, C: State>(
        self,
        to: &SendTo<P>,
        child: Graph<C>,
        down: impl Fn(P) -> C::Update + Send + Sync + 'static,
        up: impl Fn(&S, &C) -> S::Update + Send + Sync + 'static,
    ) -> Self {
        let mapping = Mapping::Mapped {
            down: erased::down_payload::<P, C>(down),
            up: erased::up::<S, C>(up),
        };
        self.add(to.name().to_owned(), subgraph(child, mapping), true)
    }

    /// Adds a graph over the same state as a node. It works on the parent's state, and each of its updates is written to that
    /// state.
    #[must_use]
    pub fn shared_subgraph(self, name: impl Target<S>, child: Graph<S>) -> Self {
        self.add(
            name.target_name().to_owned(),
            subgraph(child, Mapping::Shared),
            false,
        )
    }

    /// Sets how long the state of a subgraph lives. Default: one invocation.
    #[must_use]
    pub fn life(self, subgraph: impl Target<S>, life: SubgraphLife) -> Self {
        self.say(subgraph, Declaration::Life(life))
    }

    /// Runs `to` after `from`. If several edges leave a node, all their targets run.
    #[doc(alias = "add_edge")]
    #[must_use]
    pub fn edge(self, from: impl Target<S>, to: impl Target<S>) -> Self {
        let to = to.target_name().to_owned();
        self.say(from, Declaration::Edge { to })
    }

    /// Runs what `choose` returns after `from`; it must be among `targets`. `choose` reads the state after the superstep, is
    /// called once per superstep, and must be pure.
    #[doc(alias = "add_conditional_edges")]
    #[must_use]
    pub fn route<G: Gotos<S>>(
        self,
        from: impl Target<S>,
        targets: &[impl Target<S>],
        choose: impl Fn(&S) -> G + Send + Sync + 'static,
    ) -> Self {
        let targets = names(targets);
        self.say(
            from,
            Declaration::Route {
                targets,
                choose: erased::route::<S, G>(choose),
            },
        )
    }

    /// Lets the node `from` choose among `targets` with the `Command` it returns. If it also has edges or routes, they apply when
    /// its command names no target: when a subgraph ends without [`Command::parent`](crate::Command::parent), for example.
    #[must_use]
    pub fn commands(self, from: impl Target<S>, targets: &[impl Target<S>]) -> Self {
        let targets = names(targets);
        self.say(from, Declaration::Commands { targets })
    }

    /// Runs the node `target` once after all of `sources` have run, in whichever supersteps that was.
    #[must_use]
    pub fn join(self, sources: &[impl Target<S>], target: impl Target<S>) -> Self {
        let sources = names(sources);
        self.say(target, Declaration::Join { sources })
    }

    /// Runs `handler` in place of `node` when that has failed permanently, in the same superstep. The handler goes where the
    /// node would have gone, or to one of `targets` if it returns a `Command` that says so.
    #[doc(alias = "error_handler")]
    #[must_use]
    pub fn on_error(
        self,
        node: impl Target<S>,
        targets: &[impl Target<S>],
        handler: impl Node<S, Failed<S>>,
    ) -> Self {
        let targets = names(targets);
        self.say(
            node,
            Declaration::OnError {
                targets,
                call: erased::handler(handler),
            },
        )
    }

    /// Sets when and how often `node` is retried. Default: one attempt.
    #[must_use]
    pub fn retry(self, node: impl Target<S>, policy: RetryPolicy) -> Self {
        self.say(node, Declaration::Retry(policy))
    }

    /// Sets how long one attempt of `node` may take. Default: no limit.
    #[must_use]
    pub fn timeout(self, node: impl Target<S>, timeout: Timeout) -> Self {
        self.say(node, Declaration::Timeout(timeout))
    }

    /// Defers a node until nothing else is left to run.
    #[must_use]
    pub fn defer(self, node: impl Target<S>) -> Self {
        self.say(node, Declaration::Defer)
    }

    /// Caches the result of `node` under the key that `key` returns, together with its payload if it takes one, and reuses it
    /// for `ttl`. Without a `ttl` the result does not expire.
    #[must_use]
    pub fn cache(
        self,
        node: impl Target<S>,
        ttl: Option<Duration>,
        key: impl Fn(&S) -> String + Send + Sync + 'static,
    ) -> Self {
        let ttl_ms = ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        self.say(
            node,
            Declaration::Cache {
                ttl_ms,
                key: erased::cache(key),
            },
        )
    }

    /// Runs this node last when the step limit is reached, instead of stopping the run there.
    #[must_use]
    pub fn at_step_limit(self, node: impl Target<S>) -> Self {
        self.say(node, Declaration::AtLimit)
    }

    /// Stops the run before this node; it continues when it is resumed.
    #[must_use]
    pub fn pause_before(self, node: impl Target<S>) -> Self {
        self.say(node, Declaration::PauseBefore)
    }

    /// Stops the run after the superstep of this node; it continues when it is resumed.
    #[must_use]
    pub fn pause_after(self, node: impl Target<S>) -> Self {
        self.say(node, Declaration::PauseAfter)
    }

    /// Sets what happens to the other tasks of a superstep when one has failed permanently. Default: they finish.
    #[must_use]
    pub fn siblings(mut self, siblings: Siblings) -> Self {
        self.siblings = siblings;
        self
    }

    /// Lets callers from outside, such as the clients of a server, write these channels, by their wire names: with the input of
    /// a run, and with a state update. It is no limit for the program itself. Default: none.
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
    ///     .inputs(["topic"])
    ///     .build()?;
    /// let schema = graph.definition().input_schema();
    /// assert!(schema["properties"].get("topic").is_some() && schema["properties"].get("score").is_none());
    /// # Ok::<(), superstep_core::error::BuildError>(())
    /// ```
    #[doc(alias = "input_schema")]
    #[must_use]
    pub fn inputs(mut self, channels: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.inputs.extend(channels.into_iter().map(Into::into));
        self
    }

    /// Describes the context of a run, which nodes read with [`NodeCx::context`](crate::NodeCx::context), as a JSON Schema. Clients
    /// of a server draw their forms from it, and the server refuses a run whose context does not fit. In a program, whether a
    /// context fits shows when a node decodes it.
    #[must_use]
    pub fn context_schema(mut self, schema: Json) -> Self {
        self.context_schema = Some(schema);
        self
    }

    /// Checks the graph and returns it, or every problem at once.
    #[doc(alias = "compile")]
    pub fn build(mut self) -> Result<Graph<S>, BuildError> {
        validate::connect(&mut self);
        validate::check(&mut self, S::CHANNELS);
        if !self.problems.is_empty() {
            return Err(BuildError {
                graph: self.name,
                problems: self.problems,
            });
        }
        let channels = S::CHANNELS.iter().map(|channel| channel.name);
        let inputs = channels
            .filter(|name| self.inputs.contains(*name))
            .collect();
        let nodes = NodeTable::new(self.nodes);
        let first = self.start.edges.iter_mut().flatten();
        let joined = self.joins.iter_mut().map(|join| &mut join.target);
        first.chain(joined).for_each(|name| nodes.own(name));
        let definition = Definition {
            inputs,
            context_schema: self.context_schema,
            name: self.name,
            ops: Ops::<S>::shared(),
            nodes,
            start: self.start,
            joins: self.joins,
            at_limit: self.at_limit,
            pause_before: self.pause_before,
            pause_after: self.pause_after,
            siblings: self.siblings,
        };
        Ok(Graph {
            definition: Arc::new(definition),
            over: PhantomData,
        })
    }

    fn add(mut self, name: String, body: NodeBody, takes_payload: bool) -> Self {
        match NodeName::new(&name) {
            Err(_) => self.problems.push(BuildProblem::BadName { name }),
            Ok(name) if self.nodes.contains_key(&name) => self
                .problems
                .push(BuildProblem::DuplicateNode { node: name }),
            Ok(name) => {
                let node = NodeDef {
                    body,
                    takes_payload,
                    routing: Routing::default(),
                    retry: None,
                    timeout: Timeout::default(),
                    handler: None,
                    deferred: false,
                    cache: None,
                };
                self.nodes.insert(name, node);
            }
        }
        self
    }

    fn say(mut self, from: impl Target<S>, said: Declaration) -> Self {
        self.mentions.push(Mention {
            from: from.target_name().to_owned(),
            said,
        });
        self
    }
}

impl<S> GraphBuilder<S> {
    pub(super) fn attach(
        node: &mut NodeDef,
        said: Declaration,
        targets: BTreeSet<Option<NodeName>>,
    ) {
        match said {
            Declaration::Route { choose, .. } => {
                node.routing.routes.push(Route { targets, choose })
            }
            Declaration::Commands { .. } => node
                .routing
                .commands
                .get_or_insert_default()
                .extend(targets),
            Declaration::OnError { call, .. } => node.handler = Some(Handler { call, targets }),
            Declaration::Retry(policy) => node.retry = Some(policy),
            Declaration::Timeout(timeout) => node.timeout = timeout,
            Declaration::Defer => node.deferred = true,
            Declaration::Cache { ttl_ms, key } => node.cache = Some(Cache { key, ttl_ms }),
            Declaration::Life(life) => {
                if let NodeBody::Subgraph(subgraph) = &mut node.body {
                    subgraph.life = life;
                }
            }
            Declaration::Edge { .. }
            | Declaration::Join { .. }
            | Declaration::AtLimit
            | Declaration::PauseBefore
            | Declaration::PauseAfter => {
                unreachable!("these are not kept with a node")
            }
        }
    }
}

impl<S> fmt::Debug for GraphBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphBuilder")
            .field("name", &self.name)
            .field("nodes", &self.nodes.keys())
            .finish_non_exhaustive()
    }
}

fn subgraph<C>(child: Graph<C>, mapping: Mapping) -> NodeBody {
    NodeBody::Subgraph(Subgraph {
        graph: child.definition,
        mapping,
        life: SubgraphLife::default(),
    })
}

fn names<S>(targets: &[impl Target<S>]) -> Vec<String> {
    targets
        .iter()
        .map(|target| target.target_name().to_owned())
        .collect()
}

/// Parses the name of a target: `Some(None)` for `END`, `None` for `START` and for an invalid name.
pub(super) fn place(name: &str) -> Option<Option<NodeName>> {
    if name == END {
        return Some(None);
    }
    if name == START {
        return None;
    }
    NodeName::new(name).ok().map(Some)
}
