//! `security-analyzer`: the places that a security review should look at first. It finds places, not vulnerabilities.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::super::prompts;
use super::super::scan::Tree;
use super::super::source_map::SourceFocus;
use super::super::state::AgentContext;
use super::super::workflow::BaseAgentWorkflow;
use super::table::{Cell, table};
use super::{ROWS_MAX, SUBJECTS_MAX, list, number, page, with_prose};

/// Agent that describes what matters for security.
#[derive(Debug, Clone, Copy)]
pub struct SecurityAnalyzerWorkflow;

impl BaseAgentWorkflow for SecurityAnalyzerWorkflow {
    fn get_agent_name(&self) -> &'static str {
        "security-analyzer"
    }

    fn build_system_prompt(&self, context: &AgentContext) -> String {
        prompts::system(
            context,
            "what matters for security: what is trusted, what comes from outside, where it is dangerous",
        )
    }

    fn build_human_prompt(&self, _context: &AgentContext, tree: &Tree) -> String {
        let data = facts(tree);
        let lines = |name: &str| -> String {
            let lines: Vec<String> = list(&data, name)
                .iter()
                .map(|row| {
                    format!(
                        "{} at {}",
                        row["what"].as_str().unwrap_or_default(),
                        row["place"].as_str().unwrap_or_default()
                    )
                })
                .collect();
            lines.join("\n")
        };
        let text = include_str!("../prompts/security-analyzer.md");
        let text = text.replace("{{marks}}", &lines("marks"));
        text.replace("{{files}}", &lines("files"))
    }

    fn parse_analysis(&self, analysis: &str, tree: &Tree) -> Map<String, Json> {
        with_prose(Json::Object(facts(tree)), analysis)
    }

    fn format_markdown(&self, data: &Map<String, Json>) -> String {
        let counts = table(
            list(data, "counts"),
            &[
                ("What", "what", Cell::Plain),
                ("Places", "count", Cell::Plain),
            ],
            0,
        );
        let marks = table(
            list(data, "marks"),
            &[
                ("What", "what", Cell::Plain),
                ("Where", "place", Cell::Code),
            ],
            number(data, "markCount"),
        );
        let files = table(
            list(data, "files"),
            &[("File", "place", Cell::Code), ("What", "what", Cell::Plain)],
            0,
        );
        let mut facts = "## Places to look at\n\nFound by reading the source, without tests. A place is not a fault.\n\n".to_owned();
        match marks.is_empty() {
            true => facts.push_str("None of the kinds that are looked for was found.\n"),
            false => facts.push_str(&format!("{counts}\n{marks}")),
        }
        if !files.is_empty() {
            facts.push_str(&format!("\n## Files\n\n{files}"));
        }
        page("Security", data, &facts)
    }

    fn generate_summary(&self, data: &Map<String, Json>) -> String {
        format!("Found {} places to look at", number(data, "markCount"))
    }

    fn source_focus(&self) -> SourceFocus {
        SourceFocus::Marks
    }

    fn subjects(&self, tree: &Tree) -> Vec<String> {
        let mut places: Vec<String> = Vec::new();
        for file in tree.files.iter().filter(|file| !file.is_test()) {
            if !file.marks.is_empty() {
                places.push(file.path.clone());
            }
        }
        places.truncate(SUBJECTS_MAX);
        places
    }
}

fn facts(tree: &Tree) -> Map<String, Json> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut marks = Vec::new();
    for file in tree.files.iter().filter(|file| !file.is_test()) {
        for mark in &file.marks {
            *counts.entry(mark.what).or_default() += 1;
            marks.push(
                json!({ "what": mark.what, "place": format!("{}:{}", file.path, mark.line) }),
            );
        }
    }
    let files: Vec<Json> = tree
        .files
        .iter()
        .filter_map(|file| {
            Some(json!({ "place": file.path, "what": special(file.name(), &file.path)? }))
        })
        .take(ROWS_MAX)
        .collect();
    let counts: Vec<Json> = counts
        .into_iter()
        .map(|(what, count)| json!({ "what": what, "count": count }))
        .collect();
    let mut data = Map::new();
    data.insert("markCount".to_owned(), marks.len().into());
    data.insert("counts".to_owned(), counts.into());
    data.insert(
        "marks".to_owned(),
        marks.into_iter().take(ROWS_MAX).collect::<Vec<_>>().into(),
    );
    data.insert("files".to_owned(), files.into());
    data
}

/// Returns why a file matters for security, judged by its name. `None` for other files.
fn special(name: &str, path: &str) -> Option<&'static str> {
    Some(match name {
        "SECURITY.md" => "how to report a weakness",
        "Dockerfile" => "how an image is built",
        "deny.toml" | "audit.toml" | ".snyk" | "dependabot.yml" | "renovate.json" => {
            "how dependencies are watched"
        }
        "Cargo.lock" | "package-lock.json" | "yarn.lock" | "pnpm-lock.yaml" | "poetry.lock"
        | "uv.lock" | "go.sum" => "exact versions of dependencies",
        _ if name == ".env" || name.starts_with(".env.") => "settings that may hold secrets",
        _ if name.ends_with(".pem") || name.ends_with(".key") || name.ends_with(".p12") => {
            "a key or certificate"
        }
        _ if path.starts_with(".github/workflows/") => "what runs for every change",
        _ => return None,
    })
}
