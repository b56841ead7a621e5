//! Drawing: a graph as data, as Mermaid and as JSON. It shows what was declared, and only that can run.

use std::fmt::Write as _;

use serde::Serialize;

use crate::graph::{Definition, Graph, NodeBody, Routing};
use crate::ids::{END, NodeName, START};

/// A graph, ready to be drawn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drawing {
    /// Its name.
    pub name: String,
    /// Its nodes, the start first and the end last.
    pub nodes: Vec<DrawnNode>,
    /// Its edges.
    pub edges: Vec<DrawnEdge>,
}

/// A node, ready to be drawn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DrawnNode {
    /// Its name.
    pub id: String,
    /// The graph inside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subgraph: Option<Drawing>,
}

/// An edge, ready to be drawn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DrawnEdge {
    /// Where it begins.
    pub source: String,
    /// Where it leads.
    pub target: String,
    /// Whether it is chosen at run time.
    pub conditional: bool,
}

impl<S> Graph<S> {
    /// The graph, ready to be drawn.
    pub fn drawing(&self) -> Drawing {
        self.definition.drawing()
    }
}

impl Definition {
    /// The graph, ready to be drawn.
    pub fn drawing(&self) -> Drawing {
        let mut nodes = vec![DrawnNode {
            id: START.to_owned(),
            subgraph: None,
        }];
        nodes.extend(self.nodes.iter().map(|(name, node)| DrawnNode {
            id: name.to_string(),
            subgraph: match &node.body {
                NodeBody::Call(_) => None,
                NodeBody::Subgraph(subgraph) => Some(subgraph.graph.drawing()),
            },
        }));
        nodes.push(DrawnNode {
            id: END.to_owned(),
            subgraph: None,
        });
        let mut edges = Vec::new();
        leaving(START, &self.start, &mut edges);
        for (name, node) in &self.nodes {
            leaving(name.as_str(), &node.routing, &mut edges);
            let handled = node.handler.iter().flat_map(|handler| &handler.targets);
            edges.extend(handled.map(|target| edge(name.as_str(), target.as_ref(), true)));
        }
        for join in &self.joins {
            edges.extend(
                join.sources
                    .iter()
                    .map(|source| edge(source.as_str(), Some(&join.target), false)),
            );
        }
        Drawing {
            name: self.name.clone(),
            nodes,
            edges,
        }
    }
}

fn leaving(source: &str, routing: &Routing, edges: &mut Vec<DrawnEdge>) {
    edges.extend(
        routing
            .edges
            .iter()
            .map(|target| edge(source, target.as_ref(), false)),
    );
    let chosen = routing
        .routes
        .iter()
        .flat_map(|route| &route.targets)
        .chain(routing.commands.iter().flatten());
    edges.extend(chosen.map(|target| edge(source, target.as_ref(), true)));
}

fn edge(source: &str, target: Option<&NodeName>, conditional: bool) -> DrawnEdge {
    let target = target.map_or(END, NodeName::as_str).to_owned();
    DrawnEdge {
        source: source.to_owned(),
        target,
        conditional,
    }
}

impl Drawing {
    /// As a Mermaid flowchart.
    pub fn to_mermaid(&self) -> String {
        let mut text = "flowchart TD\n".to_owned();
        self.write_mermaid("", 1, &mut text);
        text
    }

    fn write_mermaid(&self, prefix: &str, depth: usize, text: &mut String) {
        let indent = "    ".repeat(depth);
        let mut line = |words: std::fmt::Arguments<'_>| {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "{indent}{words}");
        };
        for node in &self.nodes {
            let id = mermaid_id(prefix, &node.id);
            match (node.id.as_str(), &node.subgraph) {
                (START, _) => line(format_args!("{id}([start])")),
                (END, _) => line(format_args!("{id}([end])")),
                (name, None) => line(format_args!("{id}[{name}]")),
                (name, Some(child)) => {
                    line(format_args!("subgraph {id}[{name}]"));
                    let mut inner = String::new();
                    child.write_mermaid(&format!("{prefix}{name}."), 1, &mut inner);
                    for inner_line in inner.lines() {
                        line(format_args!("{inner_line}"));
                    }
                    line(format_args!("end"));
                }
            }
        }
        for edge in &self.edges {
            let arrow = if edge.conditional { "-.->" } else { "-->" };
            line(format_args!(
                "{} {arrow} {}",
                mermaid_id(prefix, &edge.source),
                mermaid_id(prefix, &edge.target)
            ));
        }
    }
}

/// Ids of their own for every level; `end` alone is a word of Mermaid's, so none is bare.
fn mermaid_id(prefix: &str, id: &str) -> String {
    let level = escaped(prefix);
    match id {
        START => format!("{level}start_"),
        END => format!("{level}end_"),
        node => format!("{level}{}_n", escaped(node)),
    }
}

fn escaped(name: &str) -> String {
    name.replace('_', "__")
        .replace('-', "_d")
        .replace('.', "_in_")
}
