//! Draws a graph.

use superstep::graph::Drawing;

use crate::cli::args::GraphArgs;
use crate::exit::Exit;
use crate::home::Home;
use crate::say::{Say, json_of};

pub(super) fn run(args: &GraphArgs, home: &Home, say: &dyn Say) -> anyhow::Result<Exit> {
    let drawing = home.agent(&args.agent)?.drawing();
    match (args.json, args.mermaid) {
        (true, _) => say.json(&json_of(&drawing)),
        (false, true) => say.line(drawing.to_mermaid().trim_end()),
        (false, false) => {
            for line in lines(&drawing, "") {
                say.line(&line);
            }
        }
    }
    Ok(Exit::Done)
}

/// Each node with what it leads to, and the graphs within.
fn lines(drawing: &Drawing, indent: &str) -> Vec<String> {
    let mut lines = vec![format!("{indent}{}", drawing.name)];
    for node in &drawing.nodes {
        let targets: Vec<_> = drawing
            .edges
            .iter()
            .filter(|edge| edge.source == node.id)
            .map(|edge| edge.target.as_str())
            .collect();
        let leads = match targets.is_empty() {
            true => String::new(),
            false => format!(" ─▶ {}", targets.join(" │ ")),
        };
        lines.push(format!("{indent}  [{}]{leads}", node.id));
        if let Some(subgraph) = &node.subgraph {
            lines.extend(self::lines(subgraph, &format!("{indent}    ")));
        }
    }
    lines
}
