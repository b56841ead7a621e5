//! `schema-analyzer`: data types and schema files.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::super::prompts;
use super::super::scan::{Language, SymbolKind, Tree};
use super::super::source_map::SourceFocus;
use super::super::state::AgentContext;
use super::super::workflow::BaseAgentWorkflow;
use super::table::{Cell, table};
use super::{ROWS_MAX, list, named, number, page, with_prose};

/// Agent that describes the data types and schemas of the project.
#[derive(Debug, Clone, Copy)]
pub struct SchemaAnalyzerWorkflow;

impl BaseAgentWorkflow for SchemaAnalyzerWorkflow {
    fn get_agent_name(&self) -> &'static str {
        "schema-analyzer"
    }

    fn build_system_prompt(&self, context: &AgentContext) -> String {
        prompts::system(
            context,
            "the data of the system: its types, tables and messages, and how they relate",
        )
    }

    fn build_human_prompt(&self, _context: &AgentContext, tree: &Tree) -> String {
        let data = facts(tree);
        let types: Vec<String> = list(&data, "types")
            .iter()
            .map(|row| {
                format!(
                    "{} in {}: {}",
                    row["name"].as_str().unwrap_or_default(),
                    row["file"].as_str().unwrap_or_default(),
                    row["fields"]
                )
            })
            .collect();
        let files: Vec<&str> = list(&data, "schemaFiles")
            .iter()
            .filter_map(|row| row["file"].as_str())
            .collect();
        let text = include_str!("../prompts/schema-analyzer.md");
        let text = text.replace("{{files}}", &files.join("\n"));
        text.replace("{{types}}", &types.join("\n"))
    }

    fn parse_analysis(&self, analysis: &str, tree: &Tree) -> Map<String, Json> {
        with_prose(Json::Object(facts(tree)), analysis)
    }

    fn format_markdown(&self, data: &Map<String, Json>) -> String {
        let types = table(
            list(data, "types"),
            &[
                ("Type", "name", Cell::Code),
                ("File", "file", Cell::Code),
                ("Fields", "fields", Cell::Code),
            ],
            number(data, "typeCount"),
        );
        let files = table(
            list(data, "schemaFiles"),
            &[
                ("File", "file", Cell::Code),
                ("Language", "language", Cell::Plain),
                ("Defines", "defines", Cell::Code),
            ],
            number(data, "schemaFileCount"),
        );
        let mut facts = String::new();
        if !files.is_empty() {
            facts.push_str(&format!("## Schema files\n\n{files}\n"));
        }
        let types = match types.is_empty() {
            true => "No type with fields was found.\n".to_owned(),
            false => types,
        };
        facts.push_str(&format!(
            "## Types with fields\n\nThe largest first, without tests.\n\n{types}"
        ));
        page("Schemas", data, &facts)
    }

    fn generate_summary(&self, data: &Map<String, Json>) -> String {
        format!(
            "Analyzed {} types with fields and {} schema files",
            number(data, "typeCount"),
            number(data, "schemaFileCount")
        )
    }

    fn source_focus(&self) -> SourceFocus {
        SourceFocus::Data
    }

    fn subjects(&self, tree: &Tree) -> Vec<String> {
        named(list(&facts(tree), "types"), "name")
    }
}

fn facts(tree: &Tree) -> Map<String, Json> {
    let mut types: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (file, symbol) in tree.symbols().filter(|(file, _)| !file.is_test()) {
        let is_part = matches!(symbol.kind, SymbolKind::Field | SymbolKind::Variant);
        if let (true, Some(owner)) = (is_part, &symbol.owner) {
            types
                .entry((owner, &file.path))
                .or_default()
                .push(&symbol.name);
        }
    }
    let mut rows: Vec<_> = types.into_iter().collect();
    rows.sort_by_key(|(_, fields)| std::cmp::Reverse(fields.len()));
    let count = rows.len();
    let rows: Vec<Json> = rows
        .into_iter()
        .take(ROWS_MAX)
        .map(|((name, file), fields)| json!({ "name": name, "file": file, "fields": fields.iter().take(FIELDS_MAX).collect::<Vec<_>>() }))
        .collect();
    let is_schema = |language| {
        matches!(
            language,
            Language::Sql | Language::Protobuf | Language::GraphQl
        )
    };
    let files: Vec<Json> = tree
        .files
        .iter()
        .filter_map(|file| Some((file, file.language.filter(|language| is_schema(*language))?)))
        .map(|(file, language)| {
            let text = tree.read(&file.path).unwrap_or_default();
            json!({ "file": file.path, "language": language.word(), "defines": defined(language, &text) })
        })
        .collect();
    let mut data = Map::new();
    data.insert("typeCount".to_owned(), count.into());
    data.insert("types".to_owned(), rows.into());
    data.insert("schemaFileCount".to_owned(), files.len().into());
    data.insert(
        "schemaFiles".to_owned(),
        files.into_iter().take(ROWS_MAX).collect::<Vec<_>>().into(),
    );
    data
}

/// Returns the names that a schema file defines: tables and views, messages, or types, found by the keywords that begin a line.
fn defined(language: Language, text: &str) -> Vec<String> {
    let begins: &[&str] = match language {
        Language::Sql => &[
            "create table if not exists ",
            "create table ",
            "create view ",
        ],
        Language::Protobuf => &["message ", "service ", "enum "],
        _ => &["type ", "input ", "enum ", "interface "],
    };
    let name_in = |line: &str| {
        let line = line.trim();
        let lower = line.to_lowercase();
        let begin = begins.iter().find(|begin| lower.starts_with(**begin))?;
        let name = line[begin.len()..]
            .split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.')))
            .next()?;
        (!name.is_empty()).then(|| name.to_owned())
    };
    text.lines().filter_map(name_in).take(FIELDS_MAX).collect()
}

const FIELDS_MAX: usize = 12;
