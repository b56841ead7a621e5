//! `dependency-analyzer`: what the packages depend on, and how they depend on each other.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use archie_agent::markdown;
use serde_json::{Map, Value as Json, json};

use super::super::mermaid;
use super::super::prompts;
use super::super::scan::Tree;
use super::super::source_map::SourceFocus;
use super::super::state::AgentContext;
use super::super::workflow::BaseAgentWorkflow;
use super::table::{Cell, table};
use super::{SUBJECTS_MAX, list, number, page, with_prose};

/// Agent that describes the dependencies of the packages.
#[derive(Debug, Clone, Copy)]
pub struct DependencyAnalyzerWorkflow;

impl BaseAgentWorkflow for DependencyAnalyzerWorkflow {
    fn get_agent_name(&self) -> &'static str {
        "dependency-analyzer"
    }

    fn build_system_prompt(&self, context: &AgentContext) -> String {
        prompts::system(
            context,
            "what the project depends on, what for, and what that means",
        )
    }

    fn build_human_prompt(&self, _context: &AgentContext, tree: &Tree) -> String {
        let data = facts(tree);
        let lines: Vec<String> = list(&data, "dependencies")
            .iter()
            .map(|row| {
                let word = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
                format!(
                    "{} {} ({}) used by {}",
                    word("name"),
                    word("requirement"),
                    word("kind"),
                    row["usedBy"]
                )
            })
            .collect();
        let packages: Vec<String> = list(&data, "packages")
            .iter()
            .map(|row| {
                format!(
                    "{} ({})",
                    row["name"].as_str().unwrap_or_default(),
                    row["manifest"].as_str().unwrap_or_default()
                )
            })
            .collect();
        let text = include_str!("../prompts/dependency-analyzer.md");
        let text = text.replace("{{packages}}", &packages.join("\n"));
        text.replace("{{dependencies}}", &lines.join("\n"))
    }

    fn parse_analysis(&self, analysis: &str, tree: &Tree) -> Map<String, Json> {
        with_prose(Json::Object(facts(tree)), analysis)
    }

    fn format_markdown(&self, data: &Map<String, Json>) -> String {
        let packages = table(
            list(data, "packages"),
            &[
                ("Package", "name", Cell::Code),
                ("Manifest", "manifest", Cell::Code),
                ("Manager", "manager", Cell::Plain),
                ("Version", "version", Cell::Plain),
                ("Dependencies", "dependencies", Cell::Plain),
            ],
            number(data, "packageCount"),
        );
        let dependencies = table(
            list(data, "dependencies"),
            &[
                ("Dependency", "name", Cell::Code),
                ("Required", "requirement", Cell::Plain),
                ("For", "kind", Cell::Plain),
                ("Used by packages", "usedBy", Cell::Plain),
            ],
            number(data, "dependencyCount"),
        );
        let drawn = match data.get("diagram").and_then(Json::as_str) {
            Some(diagram) if mermaid::parse(diagram).is_ok() => {
                format!(
                    "## Between packages\n\n{}\n",
                    markdown::fenced("mermaid", diagram)
                )
            }
            _ => String::new(),
        };
        let facts = format!(
            "## Packages\n\n{packages}\n{drawn}## Dependencies\n\n{} from outside, {} between packages of this project.\n\n{dependencies}",
            number(data, "externalCount"),
            number(data, "localCount"),
        );
        page("Dependencies", data, &facts)
    }

    fn generate_summary(&self, data: &Map<String, Json>) -> String {
        format!(
            "Analyzed {} dependencies of {} packages",
            number(data, "dependencyCount"),
            number(data, "packageCount")
        )
    }

    fn source_focus(&self) -> SourceFocus {
        SourceFocus::Manifests
    }

    fn subjects(&self, tree: &Tree) -> Vec<String> {
        let all = tree.dependencies();
        let mut outside: Vec<(&str, usize)> = all
            .iter()
            .filter(|(_, users)| users.iter().any(|(_, dependency)| !dependency.is_local))
            .map(|(name, users)| (*name, users.len()))
            .collect();
        outside.sort_by_key(|(_, users)| std::cmp::Reverse(*users));
        let names = outside.into_iter().map(|(name, _)| name.to_owned());
        names.take(SUBJECTS_MAX).collect()
    }
}

fn facts(tree: &Tree) -> Map<String, Json> {
    let packages: Vec<Json> = tree
        .packages
        .iter()
        .map(|package| {
            let own: BTreeSet<&str> = package
                .dependencies
                .iter()
                .map(|d| d.name.as_str())
                .collect();
            json!({
                "name": package.name,
                "manifest": package.manifest,
                "manager": package.manager,
                "version": package.version,
                "dependencies": own.len(),
            })
        })
        .collect();
    let all = tree.dependencies();
    let rows: Vec<Json> = all
        .iter()
        .map(|(name, users)| {
            let said: BTreeSet<&str> = users
                .iter()
                .map(|(_, d)| d.requirement.as_str())
                .filter(|said| !said.is_empty())
                .collect();
            let kinds: BTreeSet<&str> = users.iter().map(|(_, d)| d.kind.word()).collect();
            let by: BTreeSet<&str> = users
                .iter()
                .map(|(package, _)| package.manifest.as_str())
                .collect();
            json!({
                "name": name,
                "requirement": said.into_iter().collect::<Vec<_>>().join(", "),
                "kind": kinds.into_iter().collect::<Vec<_>>().join(", "),
                "usedBy": by.len(),
                "local": users.iter().all(|(_, d)| d.is_local),
            })
        })
        .collect();
    let local = rows.iter().filter(|row| row["local"] == true).count();
    let mut data = Map::new();
    data.insert("packageCount".to_owned(), packages.len().into());
    data.insert("packages".to_owned(), packages.into());
    data.insert("dependencyCount".to_owned(), rows.len().into());
    data.insert("externalCount".to_owned(), (rows.len() - local).into());
    data.insert("localCount".to_owned(), local.into());
    data.insert("dependencies".to_owned(), rows.into());
    if let Some(diagram) = diagram(tree) {
        data.insert("diagram".to_owned(), diagram.into());
    }
    data
}

/// Draws which package depends on which other package of the project. `None` if none does.
fn diagram(tree: &Tree) -> Option<String> {
    let named: Vec<_> = tree
        .packages
        .iter()
        .filter(|package| !package.name.is_empty())
        .collect();
    let id_of = |name: &str| named.iter().position(|package| package.name == name);
    let mut edges = BTreeSet::new();
    for (from, package) in named.iter().enumerate() {
        let local = package
            .dependencies
            .iter()
            .filter(|d| d.is_local && d.kind != super::super::scan::DependencyKind::Dev);
        edges.extend(
            local
                .filter_map(|d| Some((from, id_of(&d.name)?)))
                .filter(|(from, to)| from != to),
        );
    }
    if edges.is_empty() || edges.len() > EDGES_MAX {
        return None;
    }
    let mut drawn = "graph TD\n".to_owned();
    let used: BTreeSet<usize> = edges.iter().flat_map(|(from, to)| [*from, *to]).collect();
    for at in used {
        let _ = writeln!(drawn, "  p{at}[\"{}\"]", mermaid::label(&named[at].name));
    }
    for (from, to) in edges {
        let _ = writeln!(drawn, "  p{from} --> p{to}");
    }
    Some(drawn)
}

/// Maximum number of edges. A larger diagram is not readable.
const EDGES_MAX: usize = 60;
