//! `archie graph`: draws an agent's graph.

use archie_agent::{Exit, Terminal, json_of};
use superstep::graph::Drawing;

use crate::app::App;
use crate::cli::args::GraphArgs;

pub(super) fn run(args: &GraphArgs, app: &App, terminal: &dyn Terminal) -> anyhow::Result<Exit> {
    let drawing = app.agent(&args.agent)?.drawing();
    match (args.json, args.mermaid) {
        (true, _) => terminal.json(&json_of(&drawing)),
        (false, true) => terminal.line(drawing.to_mermaid().trim_end()),
        (false, false) => {
            for line in lines(&drawing, "") {
                terminal.line(&line);
            }
        }
    }
    Ok(Exit::Done)
}

/// Returns one line per node with its targets, and the indented lines of subgraphs.
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
