//! `file-structure`: the folders and files of the project.

use std::collections::BTreeMap;

use archie_agent::markdown;
use archie_agent::printable::one_line;
use serde_json::{Map, Value as Json, json};

use super::super::prompts;
use super::super::scan::Tree;
use super::super::source_map::SourceFocus;
use super::super::state::AgentContext;
use super::super::workflow::BaseAgentWorkflow;
use super::table::{Cell, table};
use super::{SUBJECTS_MAX, list, number, page, with_prose};

/// Agent that describes the folders and files of the project.
#[derive(Debug, Clone, Copy)]
pub struct FileStructureAgentWorkflow;

impl BaseAgentWorkflow for FileStructureAgentWorkflow {
    fn get_agent_name(&self) -> &'static str {
        "file-structure"
    }

    fn build_system_prompt(&self, context: &AgentContext) -> String {
        prompts::system(context, "how files and folders are organised, and why")
    }

    fn build_human_prompt(&self, context: &AgentContext, tree: &Tree) -> String {
        let data = facts(tree);
        let folders: Vec<String> = list(&data, "folders")
            .iter()
            .map(|folder| {
                format!(
                    "{}: {} files",
                    folder["path"].as_str().unwrap_or_default(),
                    folder["files"]
                )
            })
            .collect();
        let text = include_str!("../prompts/file-structure.md");
        let text = text.replace("{{count}}", &summary(&data));
        let text = text.replace("{{folders}}", &folders.join("\n"));
        text.replace("{{tree}}", &build_file_tree(&context.files))
    }

    fn parse_analysis(&self, analysis: &str, tree: &Tree) -> Map<String, Json> {
        with_prose(Json::Object(facts(tree)), analysis)
    }

    fn format_markdown(&self, data: &Map<String, Json>) -> String {
        let languages = table(
            list(data, "languages"),
            &[
                ("Language", "language", Cell::Plain),
                ("Files", "files", Cell::Plain),
            ],
            0,
        );
        let folders = table(
            list(data, "folders"),
            &[
                ("Folder", "path", Cell::Code),
                ("Files", "files", Cell::Plain),
                ("Folders", "folders", Cell::Plain),
            ],
            number(data, "folderTotal"),
        );
        let drawn = data.get("tree").and_then(Json::as_str).unwrap_or_default();
        let facts = format!(
            "## Counts\n\n{}.\n\n{languages}\n## Folders\n\n{folders}\n## Tree\n\n{}",
            summary(data),
            markdown::fenced("text", drawn)
        );
        page("File Structure", data, &facts)
    }

    fn generate_summary(&self, data: &Map<String, Json>) -> String {
        format!(
            "Analyzed {} files in {} directories",
            number(data, "fileCount"),
            number(data, "directoryCount")
        )
    }

    fn source_focus(&self) -> SourceFocus {
        SourceFocus::Layout
    }

    fn subjects(&self, tree: &Tree) -> Vec<String> {
        let mut folders: Vec<String> = Vec::new();
        for file in tree.files.iter().filter(|file| !file.symbols.is_empty()) {
            if let Some((top, _)) = file.path.split_once('/')
                && !folders.iter().any(|folder| folder == top)
            {
                folders.push(top.to_owned());
            }
        }
        folders.truncate(SUBJECTS_MAX);
        folders
    }
}

fn summary(data: &Map<String, Json>) -> String {
    format!(
        "{} files in {} directories",
        number(data, "fileCount"),
        number(data, "directoryCount")
    )
}

fn facts(tree: &Tree) -> Map<String, Json> {
    let mut folders: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for file in &tree.files {
        let top = file.path.split_once('/').map_or("", |(top, _)| top);
        folders.entry(top).or_default().0 += 1;
    }
    for folder in &tree.directories {
        if let Some((top, _)) = folder.split_once('/') {
            folders.entry(top).or_default().1 += 1;
        }
    }
    let rows: Vec<Json> = folders
        .iter()
        .map(|(path, (files, inner))| {
            let shown = if path.is_empty() { "." } else { path };
            json!({ "path": shown, "files": files, "folders": inner })
        })
        .collect();
    let languages: Vec<Json> = tree
        .languages()
        .into_iter()
        .map(|(language, files)| json!({ "language": language.word(), "files": files }))
        .collect();
    let paths: Vec<String> = tree.files.iter().map(|file| file.path.clone()).collect();
    let mut data = Map::new();
    data.insert("fileCount".to_owned(), tree.files.len().into());
    data.insert("directoryCount".to_owned(), tree.directories.len().into());
    data.insert("languages".to_owned(), languages.into());
    data.insert("folderTotal".to_owned(), rows.len().into());
    data.insert(
        "folders".to_owned(),
        rows.into_iter()
            .take(super::ROWS_MAX)
            .collect::<Vec<_>>()
            .into(),
    );
    data.insert("tree".to_owned(), build_file_tree(&paths).into());
    data
}

/// Draws the files as an indented tree: folders with the number of their files, then files. Shows fewer levels if it would get
/// too long.
pub fn build_file_tree(files: &[impl AsRef<str>]) -> String {
    let mut top = Folder::default();
    for file in files {
        top.add(file.as_ref());
    }
    let mut depth = DEPTH_MAX;
    loop {
        let mut drawn = String::new();
        top.draw("", depth, &mut drawn);
        if depth == 1 || drawn.lines().count() <= LINES_MAX {
            return drawn;
        }
        depth -= 1;
    }
}

#[derive(Debug, Default)]
struct Folder {
    folders: BTreeMap<String, Folder>,
    files: Vec<String>,
}

impl Folder {
    fn add(&mut self, path: &str) {
        match path.split_once('/') {
            Some((folder, rest)) => self.folders.entry(folder.to_owned()).or_default().add(rest),
            None => self.files.push(path.to_owned()),
        }
    }

    fn count(&self) -> usize {
        self.files.len() + self.folders.values().map(Self::count).sum::<usize>()
    }

    fn draw(&self, indent: &str, depth: usize, out: &mut String) {
        for (name, folder) in &self.folders {
            let files = super::many(folder.count() as u64, "file", "files");
            out.push_str(&format!("{indent}{}/  ({files})\n", one_line(name)));
            if depth > 1 {
                folder.draw(&format!("{indent}  "), depth - 1, out);
            }
        }
        for name in self.files.iter().take(NAMES_MAX) {
            out.push_str(&format!("{indent}{}\n", one_line(name)));
        }
        if self.files.len() > NAMES_MAX {
            out.push_str(&format!(
                "{indent}and {} more\n",
                self.files.len() - NAMES_MAX
            ));
        }
    }
}

/// Maximum number of folder levels; fewer if the tree would exceed [`LINES_MAX`].
const DEPTH_MAX: usize = 5;
const LINES_MAX: usize = 160;
const NAMES_MAX: usize = 24;
