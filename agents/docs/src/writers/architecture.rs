//! `architecture-analyzer`: the parts of the project, and which part uses which.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use archie_agent::markdown;
use serde_json::{Map, Value as Json, json};

use super::super::mermaid;
use super::super::prompts;
use super::super::scan::{Parts, Tree, parts};
use super::super::state::AgentContext;
use super::super::workflow::BaseAgentWorkflow;
use super::table::{Cell, table};
use super::{ROWS_MAX, list, named, number, page, with_prose};

/// Agent that describes the parts of the project and how they fit together.
#[derive(Debug, Clone, Copy)]
pub struct ArchitectureAnalyzerWorkflow;

impl BaseAgentWorkflow for ArchitectureAnalyzerWorkflow {
    fn get_agent_name(&self) -> &'static str {
        "architecture-analyzer"
    }

    fn build_system_prompt(&self, context: &AgentContext) -> String {
        prompts::system(
            context,
            "the parts of the system, what each is responsible for, and how they fit together",
        )
    }

    fn build_human_prompt(&self, _context: &AgentContext, tree: &Tree) -> String {
        let data = facts(tree);
        let lines = |name: &str, told: fn(&Json) -> String| -> String {
            let lines: Vec<String> = list(&data, name).iter().map(told).collect();
            lines.join("\n")
        };
        let text = include_str!("../prompts/architecture-analyzer.md");
        let text = text.replace("{{of}}", data["partsAre"].as_str().unwrap_or_default());
        let text = text.replace(
            "{{parts}}",
            &lines("parts", |part| {
                format!(
                    "{}: {} source files, {} public names such as {}",
                    part["name"].as_str().unwrap_or_default(),
                    part["files"],
                    part["types"],
                    part["main"]
                )
            }),
        );
        text.replace(
            "{{uses}}",
            &lines("uses", |edge| {
                format!(
                    "{} -> {} ({} files)",
                    edge["from"].as_str().unwrap_or_default(),
                    edge["to"].as_str().unwrap_or_default(),
                    edge["files"]
                )
            }),
        )
    }

    fn parse_analysis(&self, analysis: &str, tree: &Tree) -> Map<String, Json> {
        with_prose(Json::Object(facts(tree)), analysis)
    }

    fn format_markdown(&self, data: &Map<String, Json>) -> String {
        let of = data
            .get("partsAre")
            .and_then(Json::as_str)
            .unwrap_or("parts");
        let rows = table(
            list(data, "parts"),
            &[
                ("Part", "name", Cell::Code),
                ("Source files", "files", Cell::Plain),
                ("Types and interfaces", "types", Cell::Plain),
                ("Among them", "main", Cell::Code),
            ],
            number(data, "partCount"),
        );
        let uses = table(
            list(data, "uses"),
            &[
                ("From", "from", Cell::Code),
                ("To", "to", Cell::Code),
                ("Files", "files", Cell::Plain),
            ],
            number(data, "useCount"),
        );
        let drawn = match data.get("diagram").and_then(Json::as_str) {
            Some(diagram) if mermaid::parse(diagram).is_ok() => {
                format!("{}\n", markdown::fenced("mermaid", diagram))
            }
            _ => String::new(),
        };
        let uses = match uses.is_empty() {
            true => "Nothing of one part is imported by another.\n".to_owned(),
            false => uses,
        };
        let facts = format!(
            "## Parts\n\nThe parts are {of}, without tests.\n\n{rows}\n## Who uses whom\n\n{drawn}{uses}"
        );
        page("Architecture", data, &facts)
    }

    fn generate_summary(&self, data: &Map<String, Json>) -> String {
        format!(
            "Analyzed {} parts with {} uses of one another",
            number(data, "partCount"),
            number(data, "useCount")
        )
    }

    fn subjects(&self, tree: &Tree) -> Vec<String> {
        named(list(&facts(tree), "parts"), "name")
    }
}

fn facts(tree: &Tree) -> Map<String, Json> {
    let cut = parts(tree);
    let types = types_of(tree, &cut);
    let mut rows: Vec<(u64, Json)> = cut
        .files
        .iter()
        .map(|(name, files)| {
            let own = types.get(name).cloned().unwrap_or_default();
            let main: Vec<String> = own.iter().take(NAMES_MAX).cloned().collect();
            (
                *files,
                json!({ "name": name, "files": files, "types": own.len(), "main": main }),
            )
        })
        .collect();
    // Largest parts first; the sort is stable, so parts of the same size stay sorted by name.
    rows.sort_by_key(|(files, _)| std::cmp::Reverse(*files));
    let mut uses: Vec<(u64, Json)> = cut
        .uses
        .iter()
        .map(|((from, to), files)| (*files, json!({ "from": from, "to": to, "files": files })))
        .collect();
    uses.sort_by_key(|(files, _)| std::cmp::Reverse(*files));
    let mut data = Map::new();
    data.insert("partsAre".to_owned(), cut.of.into());
    data.insert("partCount".to_owned(), rows.len().into());
    data.insert("useCount".to_owned(), uses.len().into());
    data.insert("parts".to_owned(), first(rows));
    data.insert("uses".to_owned(), first(uses));
    if let Some(diagram) = diagram(&cut) {
        data.insert("diagram".to_owned(), diagram.into());
    }
    data
}

fn first(rows: Vec<(u64, Json)>) -> Json {
    rows.into_iter()
        .take(ROWS_MAX)
        .map(|(_, row)| row)
        .collect()
}

/// Returns the names of the types and interfaces in each part, sorted.
fn types_of(tree: &Tree, cut: &Parts) -> BTreeMap<String, Vec<String>> {
    use super::super::scan::SymbolKind as Kind;
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let place = |path: &str| -> Option<String> {
        match cut.of {
            "files" => Some(path.to_owned()),
            "folders" => Some(
                path.rsplit_once('/')
                    .map_or(".", |(folder, _)| folder)
                    .to_owned(),
            ),
            _ => tree.package_of(path).map(|package| package.name.clone()),
        }
    };
    for (file, symbol) in tree.symbols() {
        let is_type = matches!(symbol.kind, Kind::Type | Kind::Interface | Kind::Enum);
        if is_type
            && symbol.owner.is_none()
            && !file.is_test()
            && let Some(part) = place(&file.path)
        {
            found.entry(part).or_default().push(symbol.name.clone());
        }
    }
    for names in found.values_mut() {
        names.sort();
        names.dedup();
    }
    found
}

/// Draws the most frequent uses as a flowchart. `None` if there are none.
fn diagram(cut: &Parts) -> Option<String> {
    let mut edges: Vec<_> = cut.uses.iter().collect();
    edges.sort_by_key(|(_, files)| std::cmp::Reverse(**files));
    edges.truncate(EDGES_MAX);
    if edges.is_empty() {
        return None;
    }
    let mut ids: BTreeMap<&str, usize> = BTreeMap::new();
    for ((from, to), _) in &edges {
        for name in [from, to] {
            let next = ids.len();
            ids.entry(name).or_insert(next);
        }
    }
    let mut drawn = "graph TD\n".to_owned();
    for (name, id) in &ids {
        let _ = writeln!(drawn, "  c{id}[\"{}\"]", mermaid::label(name));
    }
    for ((from, to), _) in edges {
        let _ = writeln!(drawn, "  c{} --> c{}", ids[from.as_str()], ids[to.as_str()]);
    }
    Some(drawn)
}

const NAMES_MAX: usize = 4;

/// Maximum number of edges. A larger diagram is not readable.
const EDGES_MAX: usize = 30;
