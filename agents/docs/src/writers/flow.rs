//! `flow-analyzer`: the entry points of the project, and what runs from there.

use serde_json::{Map, Value as Json, json};

use super::super::prompts;
use super::super::scan::{SymbolKind, Tree};
use super::super::source_map::SourceFocus;
use super::super::state::AgentContext;
use super::super::workflow::BaseAgentWorkflow;
use super::table::{Cell, table};
use super::{ROWS_MAX, list, named, number, page, with_prose};

/// Agent that describes the entry points and what runs from them.
#[derive(Debug, Clone, Copy)]
pub struct FlowAnalyzerWorkflow;

impl BaseAgentWorkflow for FlowAnalyzerWorkflow {
    fn get_agent_name(&self) -> &'static str {
        "flow-analyzer"
    }

    fn build_system_prompt(&self, context: &AgentContext) -> String {
        prompts::system(
            context,
            "where the program begins, and how work and data move through it",
        )
    }

    fn build_human_prompt(&self, _context: &AgentContext, tree: &Tree) -> String {
        let data = facts(tree);
        let entries: Vec<String> = list(&data, "entries")
            .iter()
            .map(|entry| {
                format!(
                    "{} ({}), uses {}",
                    entry["entry"].as_str().unwrap_or_default(),
                    entry["kind"].as_str().unwrap_or_default(),
                    entry["imports"]
                )
            })
            .collect();
        let text = include_str!("../prompts/flow-analyzer.md");
        text.replace("{{entries}}", &entries.join("\n"))
    }

    fn parse_analysis(&self, analysis: &str, tree: &Tree) -> Map<String, Json> {
        with_prose(Json::Object(facts(tree)), analysis)
    }

    fn format_markdown(&self, data: &Map<String, Json>) -> String {
        let entries = table(
            list(data, "entries"),
            &[
                ("Entry", "entry", Cell::Code),
                ("What", "kind", Cell::Plain),
                ("Functions", "functions", Cell::Plain),
                ("Imports", "imports", Cell::Code),
            ],
            number(data, "entryCount"),
        );
        let entries = match entries.is_empty() {
            true => "No entry point was found: this is a library, or begins in a way that is not known here.\n".to_owned(),
            false => entries,
        };
        page("Flow", data, &format!("## Entry points\n\n{entries}"))
    }

    fn generate_summary(&self, data: &Map<String, Json>) -> String {
        format!("Analyzed {} entry points", number(data, "entryCount"))
    }

    fn source_focus(&self) -> SourceFocus {
        SourceFocus::Flow
    }

    fn subjects(&self, tree: &Tree) -> Vec<String> {
        named(list(&facts(tree), "entries"), "entry")
    }
}

fn facts(tree: &Tree) -> Map<String, Json> {
    let mut rows = Vec::new();
    for package in &tree.packages {
        for entry in &package.entries {
            let kind = match entry.ends_with("lib.rs") {
                true => "library",
                false => "declared in the manifest",
            };
            rows.push((entry.clone(), kind));
        }
    }
    for file in tree
        .files
        .iter()
        .filter(|file| file.is_entry && !file.is_test())
    {
        if !rows.iter().any(|(entry, _)| *entry == file.path) {
            rows.push((file.path.clone(), "program"));
        }
    }
    rows.sort();
    let told: Vec<Json> = rows
        .iter()
        .take(ROWS_MAX)
        .map(|(entry, kind)| {
            let file = tree.file(entry);
            let functions = file.map(|file| {
                file.symbols
                    .iter()
                    .filter(|symbol| symbol.kind == SymbolKind::Function)
                    .count()
            });
            let imports: Vec<&str> = file
                .map(|file| {
                    file.imports
                        .iter()
                        .map(|import| {
                            import
                                .split('{')
                                .next()
                                .unwrap_or(import)
                                .trim_end_matches(':')
                        })
                        .take(6)
                        .collect()
                })
                .unwrap_or_default();
            json!({ "entry": entry, "kind": kind, "functions": functions, "imports": imports })
        })
        .collect();
    let mut data = Map::new();
    data.insert("entryCount".to_owned(), rows.len().into());
    data.insert("entries".to_owned(), told.into());
    data
}
