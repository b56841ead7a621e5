//! Graphs as nodes and edges, in the form that clients draw.

use serde_json::{Value as Json, json};
use superstep::graph::{Drawing, DrawnEdge};
use superstep::{END, START};

/// Returns a drawing as clients read it, with subgraphs opened this many levels deep: their nodes are named `child:node`.
pub(super) fn show(drawing: &Drawing, depth: u32) -> Json {
    let flat = flatten(drawing, depth);
    let nodes = flat.nodes.iter().map(|id| match id.as_str() {
        END => json!({ "id": id }),
        id => json!({ "id": id, "type": "runnable", "data": { "name": id } }),
    });
    let edges = flat.edges.iter().map(|edge| {
        let mut shown = json!({ "source": edge.source, "target": edge.target });
        if edge.conditional {
            shown["conditional"] = true.into();
        }
        shown
    });
    json!({ "nodes": nodes.collect::<Vec<_>>(), "edges": edges.collect::<Vec<_>>() })
}

struct Flat {
    nodes: Vec<String>,
    edges: Vec<DrawnEdge>,
}

fn flatten(drawing: &Drawing, depth: u32) -> Flat {
    let mut edges = drawing.edges.clone();
    edges.sort_by(|a, b| order_of(a).cmp(&order_of(b)));
    let mut flat = Flat {
        nodes: nodes_in_order(drawing, &edges),
        edges,
    };
    // The nodes of subgraphs come after those of the graph itself.
    for node in &drawing.nodes {
        if let Some(child) = node.subgraph.as_ref().filter(|_| depth > 0) {
            flat.open(&node.id, flatten(child, depth - 1));
        }
    }
    flat
}

/// Returns what edges are sorted by: those from the start first, and those that always lead to the end last.
fn order_of(edge: &DrawnEdge) -> (bool, bool, &str, &str) {
    let always_ends = edge.target == END && !edge.conditional;
    (
        always_ends,
        edge.source != START,
        &edge.source,
        &edge.target,
    )
}

/// Returns the nodes in the order in which a run can reach them, the end last.
fn nodes_in_order(drawing: &Drawing, edges: &[DrawnEdge]) -> Vec<String> {
    let mut nodes = vec![START.to_owned()];
    let mut looked_at = 0;
    while let Some(source) = nodes.get(looked_at).cloned() {
        looked_at += 1;
        for edge in edges.iter().filter(|edge| edge.source == source) {
            if edge.target != END && !nodes.contains(&edge.target) {
                nodes.push(edge.target.clone());
            }
        }
    }
    // Nodes that no edge leads to: only a command of a subgraph does.
    let rest = drawing.nodes.iter().map(|node| &node.id);
    for id in rest {
        if id != END && !nodes.contains(id) {
            nodes.push(id.clone());
        }
    }
    nodes.push(END.to_owned());
    nodes
}

impl Flat {
    /// Replaces a node by the graph inside of it.
    fn open(&mut self, node: &str, child: Flat) {
        let inner = |id: &str| format!("{node}:{id}");
        let is_inner = |id: &str| id != START && id != END;
        self.nodes.retain(|id| id != node);
        let own = child.nodes.iter().filter(|id| is_inner(id));
        self.nodes.extend(own.map(|id| inner(id)));
        let mut edges = Vec::new();
        for edge in self.edges.drain(..) {
            // What leads to the node leads to the child's first nodes, and what leaves it leaves the child's last ones.
            let targets = match edge.target == node {
                true => ends(&child, |found| {
                    (found.source == START).then_some(&found.target)
                }),
                false => vec![(edge.target.clone(), false)],
            };
            let sources = match edge.source == node {
                true => ends(&child, |found| {
                    (found.target == END).then_some(&found.source)
                }),
                false => vec![(edge.source.clone(), false)],
            };
            for (source, is_chosen) in &sources {
                for (target, is_target_chosen) in &targets {
                    let is_inside = |id: &String, is_of_node: bool| match is_of_node {
                        true => inner(id),
                        false => id.clone(),
                    };
                    edges.push(DrawnEdge {
                        source: is_inside(source, edge.source == node),
                        target: is_inside(target, edge.target == node),
                        conditional: edge.conditional || *is_chosen || *is_target_chosen,
                    });
                }
            }
        }
        let own = child.edges.into_iter();
        let own = own.filter(|edge| is_inner(&edge.source) && is_inner(&edge.target));
        edges.extend(own.map(|edge| DrawnEdge {
            source: inner(&edge.source),
            target: inner(&edge.target),
            conditional: edge.conditional,
        }));
        self.edges = edges;
    }
}

/// Returns the nodes at one end of a graph, each with whether a route chooses it.
fn ends<'a>(
    graph: &'a Flat,
    end_of: impl Fn(&'a DrawnEdge) -> Option<&'a String>,
) -> Vec<(String, bool)> {
    let edges = graph.edges.iter();
    edges
        .filter_map(|edge| Some((end_of(edge)?.clone(), edge.conditional)))
        .collect()
}

#[cfg(test)]
mod tests {
    use superstep::graph::DrawnNode;

    use super::*;

    fn drawing(name: &str, nodes: &[(&str, Option<Drawing>)], edges: &[(&str, &str)]) -> Drawing {
        Drawing {
            name: name.to_owned(),
            nodes: nodes
                .iter()
                .map(|(id, subgraph)| DrawnNode {
                    id: (*id).to_owned(),
                    subgraph: subgraph.clone(),
                })
                .collect(),
            edges: edges
                .iter()
                .map(|(source, target)| DrawnEdge {
                    source: (*source).to_owned(),
                    target: (*target).to_owned(),
                    conditional: false,
                })
                .collect(),
        }
    }

    #[test]
    fn a_subgraph_is_opened_in_place() {
        let child = drawing(
            "c",
            &[(START, None), ("x", None), (END, None)],
            &[(START, "x"), ("x", END)],
        );
        let whole = drawing(
            "g",
            &[(START, None), ("child", Some(child)), (END, None)],
            &[(START, "child"), ("child", END)],
        );
        let closed = show(&whole, 0);
        assert_eq!(closed["nodes"][1]["id"], "child");
        let open = show(&whole, 1);
        assert_eq!(
            open["nodes"],
            json!([
                { "id": START, "type": "runnable", "data": { "name": START } },
                { "id": END },
                { "id": "child:x", "type": "runnable", "data": { "name": "child:x" } },
            ])
        );
        assert_eq!(
            open["edges"],
            json!([
                { "source": START, "target": "child:x" },
                { "source": "child:x", "target": END },
            ])
        );
    }

    #[test]
    fn nodes_and_edges_are_in_the_order_of_a_run() {
        let whole = drawing(
            "g",
            &[
                (START, None),
                ("a", None),
                ("b", None),
                ("z", None),
                (END, None),
            ],
            &[(START, "z"), ("a", END), ("b", "a"), ("z", "b")],
        );
        let shown = show(&whole, 0);
        let ids = shown["nodes"].as_array().into_iter().flatten();
        let ids: Vec<&str> = ids.filter_map(|node| node["id"].as_str()).collect();
        assert_eq!(ids, [START, "z", "b", "a", END]);
        assert_eq!(
            shown["edges"],
            json!([
                { "source": START, "target": "z" },
                { "source": "b", "target": "a" },
                { "source": "z", "target": "b" },
                { "source": "a", "target": END },
            ])
        );
    }
}
