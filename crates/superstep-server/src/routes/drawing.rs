//! Graphs as nodes and edges, in the form that clients draw.

use serde_json::{Value as Json, json};
use superstep::graph::{Drawing, DrawnEdge};
use superstep::{END, START};

/// Returns a drawing as clients read it, with subgraphs opened this many levels deep: their nodes are named `child:node`.
pub(super) fn show(drawing: &Drawing, depth: u32) -> Json {
    let flat = flatten(drawing, depth);
    let nodes = flat.nodes.iter().map(|id| {
        json!({ "id": id, "type": "runnable", "data": { "id": ["superstep", "node"], "name": id } })
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
    let mut flat = Flat {
        nodes: Vec::new(),
        edges: drawing.edges.clone(),
    };
    for node in &drawing.nodes {
        match node.subgraph.as_ref().filter(|_| depth > 0) {
            Some(child) => flat.open(&node.id, flatten(child, depth - 1)),
            None => flat.nodes.push(node.id.clone()),
        }
    }
    flat
}

impl Flat {
    /// Replaces a node by the graph inside of it.
    fn open(&mut self, node: &str, child: Flat) {
        let inner = |id: &str| format!("{node}:{id}");
        let is_inner = |id: &str| id != START && id != END;
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
        assert_eq!(open["nodes"][1]["id"], "child:x");
        assert_eq!(
            open["edges"],
            json!([
                { "source": START, "target": "child:x" },
                { "source": "child:x", "target": END },
            ])
        );
    }
}
