//! `pattern-analyzer`: patterns and conventions of the code.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::super::prompts;
use super::super::scan::{SymbolKind, Tree};
use super::super::state::AgentContext;
use super::super::workflow::BaseAgentWorkflow;
use super::table::{Cell, table};
use super::{SUBJECTS_MAX, list, number, page, with_prose};

/// Agent that describes the patterns and conventions of the code.
#[derive(Debug, Clone, Copy)]
pub struct PatternAnalyzerWorkflow;

impl BaseAgentWorkflow for PatternAnalyzerWorkflow {
    fn get_agent_name(&self) -> &'static str {
        "pattern-analyzer"
    }

    fn build_system_prompt(&self, context: &AgentContext) -> String {
        prompts::system(
            context,
            "the patterns and conventions of the code: names, abstractions, tests",
        )
    }

    fn build_human_prompt(&self, _context: &AgentContext, tree: &Tree) -> String {
        let data = facts(tree);
        let kinds: Vec<String> = list(&data, "kinds")
            .iter()
            .map(|row| {
                format!(
                    "{}: {}",
                    row["kind"].as_str().unwrap_or_default(),
                    row["count"]
                )
            })
            .collect();
        let roles: Vec<String> = list(&data, "roles")
            .iter()
            .map(|row| {
                format!(
                    "{}: {} such as {}",
                    row["role"].as_str().unwrap_or_default(),
                    row["count"],
                    row["names"]
                )
            })
            .collect();
        let text = include_str!("../prompts/pattern-analyzer.md");
        let text = text.replace("{{kinds}}", &kinds.join("\n"));
        let text = text.replace("{{roles}}", &roles.join("\n"));
        text.replace("{{tests}}", &number(&data, "testFiles").to_string())
    }

    fn parse_analysis(&self, analysis: &str, tree: &Tree) -> Map<String, Json> {
        with_prose(Json::Object(facts(tree)), analysis)
    }

    fn format_markdown(&self, data: &Map<String, Json>) -> String {
        let kinds = table(
            list(data, "kinds"),
            &[
                ("Defined", "kind", Cell::Plain),
                ("How many", "count", Cell::Plain),
            ],
            0,
        );
        let roles = table(
            list(data, "roles"),
            &[
                ("Name ends with", "role", Cell::Plain),
                ("How many", "count", Cell::Plain),
                ("Such as", "names", Cell::Code),
            ],
            0,
        );
        let names = table(
            list(data, "naming"),
            &[
                ("Names are", "style", Cell::Plain),
                ("Functions", "functions", Cell::Plain),
            ],
            0,
        );
        let roles = match roles.is_empty() {
            true => String::new(),
            false => format!("## Roles by name\n\n{roles}\n"),
        };
        let facts = format!(
            "## What is defined\n\n{kinds}\n{roles}## Names\n\n{names}\n## Tests\n\n{} hold tests, of {} with code.\n",
            super::many(number(data, "testFiles"), "file", "files"),
            number(data, "sourceFiles"),
        );
        page("Patterns", data, &facts)
    }

    fn generate_summary(&self, data: &Map<String, Json>) -> String {
        format!("Analyzed {} definitions", number(data, "symbolCount"))
    }

    fn subjects(&self, tree: &Tree) -> Vec<String> {
        let names = tree.source_map().ranked_names().into_iter();
        names.take(SUBJECTS_MAX / 2).map(str::to_owned).collect()
    }
}

fn facts(tree: &Tree) -> Map<String, Json> {
    let mut kinds: BTreeMap<SymbolKind, u64> = BTreeMap::new();
    let mut roles: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut naming: BTreeMap<&str, u64> = BTreeMap::new();
    let mut count = 0_u64;
    for (_, symbol) in tree.symbols() {
        count += 1;
        *kinds.entry(symbol.kind).or_default() += 1;
        let is_type = matches!(
            symbol.kind,
            SymbolKind::Type | SymbolKind::Interface | SymbolKind::Enum
        );
        if is_type
            && let Some(role) = ROLES
                .iter()
                .find(|role| symbol.name.ends_with(**role) && symbol.name != **role)
        {
            roles.entry(role).or_default().push(&symbol.name);
        }
        if matches!(symbol.kind, SymbolKind::Function | SymbolKind::Method) {
            *naming.entry(style(&symbol.name)).or_default() += 1;
        }
    }
    let kinds: Vec<Json> = kinds
        .into_iter()
        .map(|(kind, count)| json!({ "kind": plural(kind), "count": count }))
        .collect();
    let roles: Vec<Json> = roles
        .into_iter()
        .map(|(role, mut names)| {
            names.sort_unstable();
            names.dedup();
            json!({ "role": role, "count": names.len(), "names": names.iter().take(4).collect::<Vec<_>>() })
        })
        .collect();
    let naming: Vec<Json> = naming
        .into_iter()
        .map(|(style, functions)| json!({ "style": style, "functions": functions }))
        .collect();
    let is_source = |file: &&super::super::scan::SourceFile| !file.symbols.is_empty();
    let mut data = Map::new();
    data.insert("symbolCount".to_owned(), count.into());
    data.insert("kinds".to_owned(), kinds.into());
    data.insert("roles".to_owned(), roles.into());
    data.insert("naming".to_owned(), naming.into());
    data.insert(
        "sourceFiles".to_owned(),
        tree.files.iter().filter(is_source).count().into(),
    );
    data.insert(
        "testFiles".to_owned(),
        tree.files
            .iter()
            .filter(is_source)
            .filter(|file| file.is_test())
            .count()
            .into(),
    );
    data
}

fn plural(kind: SymbolKind) -> &'static str {
    match kind {
        SymbolKind::Function => "functions",
        SymbolKind::Method => "methods",
        SymbolKind::Type => "types",
        SymbolKind::Interface => "interfaces and traits",
        SymbolKind::Enum => "enums",
        SymbolKind::Variant => "values of enums",
        SymbolKind::Field => "fields",
        SymbolKind::Value => "constants and variables of modules",
        SymbolKind::Module => "modules",
        SymbolKind::Macro => "macros",
        SymbolKind::Alias => "other names for types",
    }
}

fn style(name: &str) -> &'static str {
    let has_upper = name.chars().any(char::is_uppercase);
    let begins_upper = name.chars().next().is_some_and(char::is_uppercase);
    match (
        name.trim_matches('_').contains('_'),
        has_upper,
        begins_upper,
    ) {
        (_, false, _) => "snake_case",
        (true, true, _) => "mixed",
        (false, true, true) => "PascalCase",
        (false, true, false) => "camelCase",
    }
}

/// Suffixes of type names that state a role.
const ROLES: [&str; 18] = [
    "Adapter",
    "Builder",
    "Client",
    "Command",
    "Config",
    "Controller",
    "Error",
    "Event",
    "Factory",
    "Handler",
    "Manager",
    "Middleware",
    "Options",
    "Parser",
    "Repository",
    "Service",
    "State",
    "Visitor",
];
