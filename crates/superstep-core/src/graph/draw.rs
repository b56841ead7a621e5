//! Drawing: a graph as data, as Mermaid and as JSON. It shows what was declared, and nothing else can run.

use std::fmt::Write as _;

use serde::Serialize;

use crate::graph::{Definition, Graph, NodeBody, Routing};
use crate::ids::{END, NodeName, START};

/// A graph as nodes and edges, for drawing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drawing {
    /// Name of the graph.
    pub name: String,
    /// Nodes of the graph, the start first and the end last.
    pub nodes: Vec<DrawnNode>,
    /// Edges of the graph, those of routes and commands included.
    pub edges: Vec<DrawnEdge>,
}

/// A node of a [`Drawing`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DrawnNode {
    /// Name of the node, unique within its graph.
    pub id: String,
    /// The graph inside the node, if it is a subgraph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subgraph: Option<Drawing>,
}

/// An edge of a [`Drawing`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DrawnEdge {
    /// Name of the node where the edge begins.
    pub source: String,
    /// Name of the node where the edge leads.
    pub target: String,
    /// Whether a route or a command chooses the edge at run time.
    pub conditional: bool,
}

impl<S> Graph<S> {
    /// Returns the graph's nodes and edges, for drawing.
    pub fn drawing(&self) -> Drawing {
        self.definition.drawing()
    }
}

impl Definition {
    /// Returns the graph's nodes and edges, for drawing.
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
        for (name, node) in self.nodes.iter() {
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
    /// Renders the graph as a Mermaid flowchart.
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

/// Makes an id that is unique over all levels. A bare `end` is a keyword of Mermaid, so no id is bare.
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
