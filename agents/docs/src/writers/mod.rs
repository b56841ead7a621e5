//! The documentation agents: what each one measures, asks the model and writes. They share the workflow of [`super::workflow`].

mod architecture;
mod dependencies;
mod file_structure;
mod flow;
mod pattern;
mod schema;
mod security;
mod table;

use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::workflow::BaseAgentWorkflow;

pub use architecture::ArchitectureAnalyzerWorkflow;
pub use dependencies::DependencyAnalyzerWorkflow;
pub use file_structure::{FileStructureAgentWorkflow, build_file_tree};
pub use flow::FlowAnalyzerWorkflow;
pub use pattern::PatternAnalyzerWorkflow;
pub use schema::SchemaAnalyzerWorkflow;
pub use security::SecurityAnalyzerWorkflow;

/// Returns all built-in agents, in the order of the index.
pub fn all() -> Vec<Arc<dyn BaseAgentWorkflow>> {
    vec![
        Arc::new(FileStructureAgentWorkflow),
        Arc::new(DependencyAnalyzerWorkflow),
        Arc::new(ArchitectureAnalyzerWorkflow),
        Arc::new(FlowAnalyzerWorkflow),
        Arc::new(SchemaAnalyzerWorkflow),
        Arc::new(PatternAnalyzerWorkflow),
        Arc::new(SecurityAnalyzerWorkflow),
    ]
}

/// Combines measured facts and the model's prose.
fn with_prose(facts: Json, analysis: &str) -> Map<String, Json> {
    let mut data = match facts {
        Json::Object(facts) => facts,
        _ => Map::new(),
    };
    data.insert("prose".to_owned(), analysis.into());
    data
}

/// Renders a page: its title, the model's prose, the measured facts.
fn page(title: &str, data: &Map<String, Json>, facts: &str) -> String {
    let prose = data.get("prose").and_then(Json::as_str).unwrap_or_default();
    let prose = match prose.is_empty() {
        true => String::new(),
        false => format!("{prose}\n\n"),
    };
    format!("# {title}\n\n{prose}{}\n", facts.trim_end())
}

/// Returns a number of the data, or zero.
fn number(data: &Map<String, Json>, name: &str) -> u64 {
    data.get(name).and_then(Json::as_u64).unwrap_or(0)
}

/// Returns a list of the data, or an empty one.
fn list<'a>(data: &'a Map<String, Json>, name: &str) -> &'a [Json] {
    data.get(name)
        .and_then(Json::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Returns the first values of a column: what a page must name.
fn named(rows: &[Json], column: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in rows.iter().filter_map(|row| row[column].as_str()) {
        // A Python entry is `name = module:function`.
        let name = name.split(" = ").next().unwrap_or(name);
        if name != "." && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names.truncate(SUBJECTS_MAX);
    names
}

/// Returns a count with its noun: `1 file`, `2 files`.
pub(super) fn many(count: u64, one: &str, several: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {several}"),
    }
}

/// Maximum number of rows in a table. The table states how many are left out.
const ROWS_MAX: usize = 60;

/// Maximum number of names that a page must have.
const SUBJECTS_MAX: usize = 6;
