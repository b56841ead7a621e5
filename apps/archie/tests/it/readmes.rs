//! The README of each agent draws the graph that the program runs, and names every node and every field of its state.

use std::path::Path;

use crate::kit::Workdir;

const AGENTS: [(&str, &str); 5] = [
    ("analyze", "analyze"),
    ("sheet", "sheet"),
    ("docs", "docs"),
    ("atris", "atris"),
    ("email_assistant", "email-assistant"),
];

#[test]
fn every_readme_draws_its_graph() {
    let workdir = Workdir::scripted(&serde_json::json!([]));
    for (agent, folder) in AGENTS {
        let readme = readme(folder);
        let drawn = workdir.run(&["graph", agent, "--mermaid"], "");
        assert!(
            readme.contains(drawn.out().trim()),
            "agents/{folder}/README.md draws another graph"
        );
        let graph = workdir.run(&["graph", agent, "--json"], "");
        let graph: serde_json::Value = serde_json::from_str(&graph.out()).unwrap();
        for node in graph["nodes"].as_array().unwrap() {
            let id = node["id"].as_str().unwrap();
            let is_named = id.starts_with("__") || readme.contains(&format!("`{id}`"));
            assert!(is_named, "agents/{folder}/README.md does not name `{id}`");
        }
    }
}

fn readme(folder: &str) -> String {
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents");
    std::fs::read_to_string(agents.join(folder).join("README.md")).unwrap()
}
