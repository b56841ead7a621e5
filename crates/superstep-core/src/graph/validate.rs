//! The checks of a graph. All of them run, so that one build reports every problem.

use std::collections::BTreeSet;

use crate::channel::{Channel, ChannelSet};
use crate::error::BuildProblem;
use crate::graph::builder::{Declaration, GraphBuilder, Mention, place};
use crate::graph::{Join, NodeBody, Route, SubgraphLife};
use crate::ids::{NodeName, START};

/// Applies settings and edges, now that all nodes are known.
pub(super) fn connect<S>(builder: &mut GraphBuilder<S>) {
    let leaves_start = |mention: &Mention| {
        mention.from == START
            && matches!(
                mention.said,
                Declaration::Edge { .. } | Declaration::Route { .. }
            )
    };
    // Also if it leads to a node that does not exist, which is a problem of its own.
    if !builder.mentions.iter().any(leaves_start) {
        builder.problems.push(BuildProblem::NoStart);
    }
    for Mention { from, said } in std::mem::take(&mut builder.mentions) {
        match said {
            Declaration::Join { sources } => join(builder, &from, &sources),
            Declaration::AtLimit => {
                builder.at_limit =
                    known(builder, "at_step_limit", &from).or(builder.at_limit.take())
            }
            Declaration::PauseBefore => {
                let node = known(builder, "pause_before", &from);
                builder.pause_before.extend(node);
            }
            Declaration::PauseAfter => {
                let node = known(builder, "pause_after", &from);
                builder.pause_after.extend(node);
            }
            Declaration::Edge { to } => edge(builder, &from, &to),
            Declaration::Route { ref targets, .. } => {
                let found = targets_of(builder, "a route", &from, targets);
                attach(builder, "a route", &from, said, found);
            }
            Declaration::Commands { ref targets } => {
                let found = targets_of(builder, "a command", &from, targets);
                attach(builder, "a command", &from, said, found);
            }
            Declaration::OnError { ref targets, .. } => {
                let found = targets
                    .iter()
                    .filter_map(|to| target(builder, "an error handler", &from, to, true))
                    .collect();
                attach_setting(builder, "on_error", &from, said, found);
            }
            Declaration::Retry(_) => attach_setting(builder, "retry", &from, said, BTreeSet::new()),
            Declaration::Timeout(_) => {
                attach_setting(builder, "timeout", &from, said, BTreeSet::new())
            }
            Declaration::Defer => attach_setting(builder, "defer", &from, said, BTreeSet::new()),
            Declaration::Cache { .. } => {
                attach_setting(builder, "cache", &from, said, BTreeSet::new())
            }
            Declaration::Life(_) => attach_setting(builder, "life", &from, said, BTreeSet::new()),
        }
    }
}

fn edge<S>(builder: &mut GraphBuilder<S>, from: &str, to: &str) {
    let Some(to) = target(builder, "an edge", from, to, false) else {
        return;
    };
    let Some(routing) = routing(builder, "an edge", from) else {
        return;
    };
    if routing.edges.contains(&to) {
        let to = to.map_or_else(|| "END".to_owned(), |name| name.to_string());
        builder.problems.push(BuildProblem::DuplicateEdge {
            from: from.to_owned(),
            to,
        });
        return;
    }
    routing.edges.push(to);
}

fn join<S>(builder: &mut GraphBuilder<S>, to: &str, sources: &[String]) {
    let Some(Some(to)) = target(builder, "a join", "its sources", to, false) else {
        return;
    };
    let mut known_sources = BTreeSet::new();
    for source in sources {
        match NodeName::new(source) {
            Ok(name) if builder.nodes.contains_key(&name) => {
                known_sources.insert(name);
            }
            _ => builder.problems.push(BuildProblem::UnknownSource {
                what: "a join",
                from: source.clone(),
            }),
        }
    }
    let distinct: BTreeSet<_> = sources.iter().collect();
    if distinct.len() < 2 {
        builder.problems.push(BuildProblem::SmallJoin {
            target: to.to_string(),
        });
    }
    builder.joins.push(Join {
        sources: known_sources,
        target: to,
    });
}

fn targets_of<S>(
    builder: &mut GraphBuilder<S>,
    what: &'static str,
    from: &str,
    targets: &[String],
) -> BTreeSet<Option<NodeName>> {
    if targets.is_empty() {
        builder.problems.push(BuildProblem::NoTargets {
            what,
            node: from.to_owned(),
        });
    }
    targets
        .iter()
        .filter_map(|to| target(builder, what, from, to, true))
        .collect()
}

/// Returns a target that exists, or records a problem. `sends`: whether what leads there can carry a payload.
fn target<S>(
    builder: &mut GraphBuilder<S>,
    what: &'static str,
    from: &str,
    to: &str,
    sends: bool,
) -> Option<Option<NodeName>> {
    if to == START {
        builder.problems.push(BuildProblem::IntoStart {
            what,
            from: from.to_owned(),
        });
        return None;
    }
    let found = place(to);
    if let Some(Some(name)) = &found {
        if let Some(node) = builder.nodes.get(name) {
            if node.takes_payload && !sends {
                builder.problems.push(BuildProblem::WorkerWithoutPayload {
                    what,
                    node: name.clone(),
                });
            }
            return found;
        }
    } else if found.is_some() {
        return found;
    }
    builder.problems.push(BuildProblem::UnknownTarget {
        what,
        from: from.to_owned(),
        to: to.to_owned(),
    });
    None
}

fn routing<'a, S>(
    builder: &'a mut GraphBuilder<S>,
    what: &'static str,
    from: &str,
) -> Option<&'a mut crate::graph::Routing> {
    if from == START {
        return Some(&mut builder.start);
    }
    if !builder.nodes.contains_key(from) {
        builder.problems.push(BuildProblem::UnknownSource {
            what,
            from: from.to_owned(),
        });
        return None;
    }
    builder.nodes.get_mut(from).map(|node| &mut node.routing)
}

fn attach<S>(
    builder: &mut GraphBuilder<S>,
    what: &'static str,
    from: &str,
    said: Declaration,
    targets: BTreeSet<Option<NodeName>>,
) {
    match said {
        Declaration::Route { choose, .. } if from == START => {
            builder.start.routes.push(Route { targets, choose })
        }
        said => match builder.nodes.get_mut(from) {
            Some(node) => GraphBuilder::<S>::attach(node, said, targets),
            None => builder.problems.push(BuildProblem::UnknownSource {
                what,
                from: from.to_owned(),
            }),
        },
    }
}

fn attach_setting<S>(
    builder: &mut GraphBuilder<S>,
    setting: &'static str,
    node: &str,
    said: Declaration,
    targets: BTreeSet<Option<NodeName>>,
) {
    let Some(name) = known(builder, setting, node) else {
        return;
    };
    let def = builder.nodes.get_mut(&name).expect("known");
    let is_subgraph = matches!(def.body, NodeBody::Subgraph(_));
    let fits = match &said {
        Declaration::Retry(_) | Declaration::Timeout(_) | Declaration::Cache { .. } => !is_subgraph,
        Declaration::Life(_) => is_subgraph,
        _ => true,
    };
    match (fits, is_subgraph) {
        (true, _) => GraphBuilder::<S>::attach(def, said, targets),
        (false, true) => builder.problems.push(BuildProblem::SubgraphSetting {
            node: name,
            setting,
        }),
        (false, false) => builder.problems.push(BuildProblem::UnknownNode {
            setting,
            node: format!("{name} (not a subgraph)"),
        }),
    }
}

fn known<S>(builder: &mut GraphBuilder<S>, setting: &'static str, node: &str) -> Option<NodeName> {
    let name = NodeName::new(node)
        .ok()
        .filter(|name| builder.nodes.contains_key(name));
    if name.is_none() {
        builder.problems.push(BuildProblem::UnknownNode {
            setting,
            node: node.to_owned(),
        });
    }
    name
}

/// Checks everything that depends on how the nodes are connected.
pub(super) fn check<S>(builder: &mut GraphBuilder<S>, channels: &[Channel]) {
    let mut problems = Vec::new();
    if NodeName::new(&builder.name).is_err() {
        problems.push(BuildProblem::BadGraphName {
            name: builder.name.clone(),
        });
    }
    check_channels(channels, &mut problems);
    check_inputs(&builder.inputs, channels, &mut problems);
    let leaves_start = !builder.start.edges.is_empty() || !builder.start.routes.is_empty();
    for (name, node) in &builder.nodes {
        let joins = builder.joins.iter().any(|join| join.sources.contains(name));
        let by_edges = joins || !node.routing.edges.is_empty() || !node.routing.routes.is_empty();
        let by_commands = node.routing.commands.is_some();
        if joins && by_commands {
            problems.push(BuildProblem::JoinAndCommands { node: name.clone() });
        }
        if !by_edges && !by_commands {
            problems.push(BuildProblem::DeadEnd { node: name.clone() });
        }
        if let NodeBody::Subgraph(subgraph) = &node.body {
            let pauses =
                !subgraph.graph.pause_before.is_empty() || !subgraph.graph.pause_after.is_empty();
            if subgraph.life == SubgraphLife::Stateless && pauses {
                problems.push(BuildProblem::StatelessPause { node: name.clone() });
            }
        }
    }
    // Without an edge from the start, every node would be reported as unreachable: one problem is enough.
    if leaves_start {
        let reached = reachable(builder);
        let unreachable = builder.nodes.keys().filter(|name| !reached.contains(*name));
        problems.extend(unreachable.map(|node| BuildProblem::Unreachable { node: node.clone() }));
    }
    builder.problems.extend(problems);
}

fn check_channels(channels: &[Channel], problems: &mut Vec<BuildProblem>) {
    if channels.len() > ChannelSet::CHANNELS_MAX {
        problems.push(BuildProblem::TooManyChannels {
            channels: channels.len(),
        });
    }
    let mut seen = BTreeSet::new();
    for channel in channels {
        if !seen.insert(channel.name) {
            problems.push(BuildProblem::DuplicateChannel {
                channel: channel.name.to_owned(),
            });
        }
    }
}

fn check_inputs(inputs: &BTreeSet<String>, channels: &[Channel], problems: &mut Vec<BuildProblem>) {
    let is_channel = |name: &&String| channels.iter().any(|channel| channel.name == **name);
    let unknown = inputs.iter().filter(|name| !is_channel(name));
    problems.extend(unknown.map(|name| BuildProblem::UnknownInput {
        channel: name.clone(),
    }));
}

fn reachable<S>(builder: &GraphBuilder<S>) -> BTreeSet<NodeName> {
    let mut open: Vec<NodeName> = leads_to(&builder.start)
        .chain(builder.at_limit.clone())
        .collect();
    let mut reached = BTreeSet::new();
    while let Some(name) = open.pop() {
        let Some(node) = builder.nodes.get(&name) else {
            continue;
        };
        if !reached.insert(name.clone()) {
            continue;
        }
        open.extend(leads_to(&node.routing));
        open.extend(
            node.handler
                .iter()
                .flat_map(|handler| handler.targets.iter().flatten().cloned()),
        );
        open.extend(
            builder
                .joins
                .iter()
                .filter(|join| join.sources.contains(&name))
                .map(|join| join.target.clone()),
        );
    }
    reached
}

fn leads_to(routing: &crate::graph::Routing) -> impl Iterator<Item = NodeName> {
    let edges = routing.edges.iter().flatten();
    let routes = routing
        .routes
        .iter()
        .flat_map(|route| route.targets.iter().flatten());
    let commands = routing.commands.iter().flatten().flatten();
    edges.chain(routes).chain(commands).cloned()
}
