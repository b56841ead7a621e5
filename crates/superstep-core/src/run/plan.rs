//! What runs next: edges, routes, commands, joins and deferred nodes.
//!
//! The order is fixed by names and by the order of sends, never by which task finished first.

use std::collections::BTreeSet;

use crate::checkpoint::format::{GotoRecord, JoinSeen, Next, PlannedTask};
use crate::error::NodeError;
use crate::graph::{Definition, Live, Routing, check_place};
use crate::ids::NodeName;

/// A task that ended, as far as routing is concerned.
#[derive(Clone, Copy)]
pub(crate) struct Ended<'a> {
    pub(crate) node: &'a NodeName,
    /// Targets of its command, if its node routes by commands.
    pub(crate) goto: Option<&'a [GotoRecord]>,
}

/// What is planned so far.
struct Plan<'a> {
    graph: &'a Definition,
    /// Nodes that read the state, by name, each once.
    pulled: Vec<PlannedTask>,
    sent: Vec<PlannedTask>,
    deferred: Names,
    reroute: Vec<NodeName>,
    faults: Vec<(NodeName, NodeError)>,
}

/// Nodes by name, each once. Most supersteps plan one, so this is a list and not a tree.
#[derive(Default)]
struct Names(Vec<NodeName>);

impl Names {
    /// Returns true if the node was not in the list.
    fn insert(&mut self, node: &NodeName) -> bool {
        let place = self.0.binary_search(node);
        if let Err(place) = place {
            self.0.insert(place, node.clone());
        }
        place.is_err()
    }
}

/// What runs next, and the routes that failed.
pub(crate) struct Planned {
    pub(crate) next: Next,
    pub(crate) faults: Vec<(NodeName, NodeError)>,
}

/// Plans what runs first in a graph that is entered.
pub(crate) fn first(graph: &Definition, state: &Live) -> Result<Next, NodeError> {
    let mut plan = Plan::new(graph);
    for target in &graph.start.edges {
        plan.go(target.as_ref());
    }
    for route in &graph.start.routes {
        for place in (route.choose)(state)? {
            let start = NodeName::new("start").expect("a node name");
            check_place(graph, &start, &place, route.targets.contains(&place.node))?;
            plan.place(place);
        }
    }
    Ok(plan.finish(Vec::new()).next)
}

/// Plans what runs after a superstep. `before` is the plan of that superstep: its joins and deferred nodes still count. `tasks`
/// is an empty list, which becomes that of the plan.
pub(crate) fn after<'a>(
    graph: &Definition,
    state: &Live,
    before: &Next,
    ended: impl ExactSizeIterator<Item = Ended<'a>> + Clone,
    tasks: Vec<PlannedTask>,
) -> Planned {
    let mut plan = Plan::new(graph);
    plan.pulled = tasks;
    plan.deferred.0.clone_from(&before.deferred);
    let alone = ended.len() == 1;
    let mut asked = Names::default();
    for task in ended.clone() {
        match task.goto {
            Some(places) => places.iter().for_each(|place| plan.place(place.clone())),
            // Every task of a node sees the same state, so its route is called once.
            None if alone || asked.insert(task.node) => {
                plan.follow(task.node, &graph.node(task.node).routing, state)
            }
            None => {}
        }
    }
    let joins = join(&mut plan, &before.joins, ended);
    plan.finish(joins)
}

/// Calls routes again that failed when their superstep ended.
pub(crate) fn again(graph: &Definition, state: &Live, before: &Next) -> Planned {
    let mut plan = Plan::new(graph);
    plan.deferred.0.clone_from(&before.deferred);
    for task in &before.tasks {
        match &task.payload {
            None => plan.pull(&task.node),
            Some(_) => plan.sent.push(task.clone()),
        }
    }
    for node in &before.reroute {
        if let Some(def) = graph.nodes.get(node) {
            plan.choose(node, &def.routing, state);
        }
    }
    plan.finish(before.joins.clone())
}

/// Adds targets from outside to what is planned. Planned tasks keep their places, so they keep their ids and what they recorded.
pub(crate) fn go_to(
    graph: &Definition,
    before: &Next,
    goto: &[GotoRecord],
) -> Result<Next, NodeError> {
    let mut next = before.clone();
    let start = NodeName::new("start").expect("a node name");
    for place in goto {
        let Some(node) = &place.node else { continue };
        let is_node = graph.nodes.contains_key(node);
        check_place(graph, &start, place, is_node)?;
        let is_planned = |task: &PlannedTask| task.node == *node && task.payload.is_none();
        match &place.payload {
            Some(_) => next.tasks.push(PlannedTask {
                node: node.clone(),
                payload: place.payload.clone(),
            }),
            None if graph.node(node).deferred => {
                if let Err(place) = next.deferred.binary_search(node) {
                    next.deferred.insert(place, node.clone());
                }
            }
            None if next.tasks.iter().any(is_planned) => {}
            None => next.tasks.push(reads_state(node.clone())),
        }
    }
    if next.tasks.is_empty() && next.reroute.is_empty() {
        let deferred = std::mem::take(&mut next.deferred);
        next.tasks = deferred.into_iter().map(reads_state).collect();
    }
    Ok(next)
}

impl<'a> Plan<'a> {
    fn new(graph: &'a Definition) -> Self {
        Self {
            graph,
            pulled: Vec::new(),
            sent: Vec::new(),
            deferred: Names::default(),
            reroute: Vec::new(),
            faults: Vec::new(),
        }
    }

    fn follow(&mut self, node: &NodeName, routing: &Routing, state: &Live) {
        for target in &routing.edges {
            self.go(target.as_ref());
        }
        self.choose(node, routing, state);
    }

    fn choose(&mut self, node: &NodeName, routing: &Routing, state: &Live) {
        let mut chosen = Vec::new();
        for route in &routing.routes {
            let places = (route.choose)(state).and_then(|places| {
                places.iter().try_for_each(|place| {
                    check_place(self.graph, node, place, route.targets.contains(&place.node))
                })?;
                Ok(places)
            });
            match places {
                Ok(places) => chosen.extend(places),
                Err(error) => {
                    self.reroute.push(node.clone());
                    self.faults.push((node.clone(), error));
                    return;
                }
            }
        }
        chosen.into_iter().for_each(|place| self.place(place));
    }

    fn place(&mut self, mut place: GotoRecord) {
        // The name came from a node. That of the graph is found without comparing text, for each of many sends.
        if let Some(node) = &mut place.node {
            self.graph.nodes.own(node);
        }
        match (place.node, place.payload) {
            (Some(node), Some(payload)) => self.sent.push(PlannedTask {
                node,
                payload: Some(payload),
            }),
            (node, _) => self.go(node.as_ref()),
        }
    }

    fn go(&mut self, target: Option<&NodeName>) {
        let Some(node) = target else { return };
        if self.graph.node(node).deferred {
            self.deferred.insert(node);
        } else {
            self.pull(node);
        }
    }

    fn pull(&mut self, node: &NodeName) {
        if let Err(place) = self.pulled.binary_search_by(|task| task.node.cmp(node)) {
            self.pulled.insert(place, reads_state(node.clone()));
        }
    }

    fn finish(mut self, joins: Vec<JoinSeen>) -> Planned {
        if self.pulled.is_empty() && self.sent.is_empty() && self.reroute.is_empty() {
            let deferred = std::mem::take(&mut self.deferred.0);
            self.pulled = deferred.into_iter().map(reads_state).collect();
        }
        let mut tasks = self.pulled;
        tasks.append(&mut self.sent);
        let next = Next {
            tasks,
            joins,
            deferred: self.deferred.0,
            reroute: self.reroute,
            leave: None,
        };
        Planned {
            next,
            faults: self.faults,
        }
    }
}

/// Returns a task of a node without a payload.
fn reads_state(node: NodeName) -> PlannedTask {
    PlannedTask {
        node,
        payload: None,
    }
}

/// Marks the sources that ran, and starts the joins whose sources have all run.
fn join<'a>(
    plan: &mut Plan<'_>,
    before: &[JoinSeen],
    ended: impl Iterator<Item = Ended<'a>> + Clone,
) -> Vec<JoinSeen> {
    let mut waiting = Vec::new();
    let graph = plan.graph;
    for join in &graph.joins {
        let sources: Vec<_> = join.sources.iter().cloned().collect();
        let seen_before = before
            .iter()
            .find(|seen| seen.target == join.target && seen.sources == sources);
        let mut seen: BTreeSet<NodeName> = seen_before
            .iter()
            .flat_map(|seen| seen.seen.iter().cloned())
            .collect();
        seen.extend(
            ended
                .clone()
                .map(|task| task.node)
                .filter(|node| join.sources.contains(*node))
                .cloned(),
        );
        if seen == join.sources {
            plan.go(Some(&join.target));
        } else if !seen.is_empty() {
            waiting.push(JoinSeen {
                target: join.target.clone(),
                sources,
                seen: seen.into_iter().collect(),
            });
        }
    }
    waiting
}
