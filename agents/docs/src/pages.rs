//! The folder of pages: one page for each agent, an index, a viewer, and the manifest, which is written last.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use archie_agent::markdown;
use archie_agent::user_folder::{Access, FileName, RelativePath, UserFolder, resolve_named};
use pulldown_cmark::{Event, Parser};

use super::manifest::{self, Manifest, NewPage};
use super::scan::Tree;
use super::state::{AgentResult, DocsState};
use super::{viewer, writers};

/// File name of the index.
pub const INDEX: &str = "index.md";
/// File name of the viewer.
pub const VIEWER: &str = "index.html";

/// One file to write into the folder of pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Name of the file.
    pub to: FileName,
    /// New content of the file.
    pub text: String,
}

impl Change {
    /// Writes the file atomically. Replaces a link of that name and never writes through it.
    pub fn make(&self, folder: &UserFolder) -> anyhow::Result<()> {
        let path = RelativePath::from(self.to.clone());
        folder
            .write(&path, self.text.as_bytes(), Access::Shared)
            .with_context(|| {
                format!(
                    "{} cannot be written",
                    folder.path().join(self.to.as_os_str()).display()
                )
            })
    }
}

/// Opens the folder of pages. If it does not exist, creates it if `is_created`, and otherwise returns `None`.
///
/// Below the described folder, follows no link, because an untrusted repository may have put one there. A folder elsewhere was
/// named by the person.
pub fn open(root: &Path, output: &Path, is_created: bool) -> anyhow::Result<Option<UserFolder>> {
    let below = output.strip_prefix(root).ok();
    let opened = match below.filter(|below| !below.as_os_str().is_empty()) {
        Some(below) => {
            let root = UserFolder::open(root)?;
            let below = RelativePath::parse(below)?;
            match is_created {
                true => root.create_folder(&below, Access::Shared),
                false => root.folder(&below),
            }
        }
        None if is_created => UserFolder::create(output, Access::Shared),
        None => UserFolder::open(output),
    };
    match opened {
        Ok(folder) => Ok(Some(folder)),
        Err(error) if error.is_missing() && !is_created => Ok(None),
        Err(error) => Err(error).context("the pages cannot be read or written"),
    }
}

/// Returns all files to write for the results of the agents. Deterministic: the same state and folder produce the same files.
pub fn changes(state: &DocsState, tree: &Tree, folder: &UserFolder) -> anyhow::Result<Vec<Change>> {
    let writers = writers::all();
    let known = writers.iter().map(|agent| agent.get_agent_name());
    let known = known.chain(state.results.iter().map(|result| &*result.agent_name));
    let mut kept = Manifest::read(Some(folder))?;
    kept.retain(known);
    kept.version = 1;
    kept.project.clone_from(&state.scan.project);
    kept.file_count = state.scan.file_count;
    kept.directory_count = state.scan.directory_count;
    let mut pages: Vec<(String, String)> = Vec::new();
    for result in &state.results {
        let page = manifest::page_name(&result.agent_name);
        let text = page_text(result, tree, folder.path());
        let settings = manifest::settings(&state.config, &state.model_name);
        let new = NewPage {
            name: &page,
            text: &text,
            settings,
            model: &state.model_name,
        };
        let times = state.times.get(&result.agent_name);
        kept.note(result, new, times.copied().unwrap_or(0));
        pages.push((page, text));
    }
    let mut all: Vec<(String, String)> = Vec::new();
    for (name, made) in &kept.agents {
        let new = pages.iter().find(|(page, _)| *page == made.page);
        let text = match new {
            Some((_, text)) => text.clone(),
            // A page that is neither new nor on disk is left out of the viewer; `--check` reports it.
            None => match manifest::page(folder, name) {
                Some(text) => text,
                None => continue,
            },
        };
        all.push((name.clone(), text));
    }
    let titles: BTreeMap<&str, String> = all
        .iter()
        .filter_map(|(name, text)| Some((name.as_str(), viewer::page_title(text)?)))
        .collect();
    let index = index(&kept, &titles);
    let view = viewer::html(&kept.project, &index, &all);
    let mut written: Vec<(String, String)> = pages;
    written.push((INDEX.to_owned(), index));
    written.push((VIEWER.to_owned(), view));
    let mut json = serde_json::to_string_pretty(&kept)?;
    json.push('\n');
    written.push((manifest::FILE.to_owned(), json));
    let change = |(name, text): (String, String)| {
        Ok(Change {
            to: FileName::new(name)?,
            text,
        })
    };
    written.into_iter().map(change).collect()
}

/// Writes the pages, the index, the viewer and the manifest. Returns the paths of the written files.
pub fn write(
    state: &DocsState,
    tree: &Tree,
    root: &Path,
    output: &Path,
) -> anyhow::Result<Vec<PathBuf>> {
    let folder = open(root, output, true)?;
    let folder = folder.context("the folder of the pages cannot be made")?;
    let changes = changes(state, tree, &folder)?;
    let mut written = Vec::new();
    for change in &changes {
        change.make(&folder)?;
        written.push(output.join(change.to.as_os_str()));
    }
    Ok(written)
}

/// Renders the page of an agent, with links to the index and to the files that it names.
fn page_text(result: &AgentResult, tree: &Tree, folder: &Path) -> String {
    let mut text = linked(&result.markdown, tree, &way_up(&tree.root, folder));
    let metadata = &result.metadata;
    text.push_str("\n---\n\n");
    let scores: Vec<String> = metadata.scores.iter().map(u32::to_string).collect();
    let scored = match scores.is_empty() {
        true => "not scored".to_owned(),
        false => format!(
            "score {} of 100 ({})",
            (result.confidence * 100.0).round(),
            scores.join(" → ")
        ),
    };
    text.push_str(&format!(
        "Tables are measured; the text was written by a model and its names were looked up: {} held{}. {}. [Index]({INDEX})\n",
        super::writers::many(metadata.claims.len() as u64, "claim", "claims"),
        match metadata.unknown.len() {
            0 => String::new(),
            unknown => format!(", {unknown} could not be checked"),
        },
        capitalised(&scored)
    ));
    text
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Returns the relative path from the folder of pages up to the root. `None` if the folder is not below the root.
fn way_up(root: &Path, folder: &Path) -> Option<String> {
    let (root, folder) = (resolve_named(root).ok()?, resolve_named(folder).ok()?);
    let below = folder.strip_prefix(&root).ok()?;
    Some("../".repeat(below.components().count()))
}

/// Links every inline code that is the path of a file.
fn linked(text: &str, tree: &Tree, up: &Option<String>) -> String {
    let Some(up) = up else {
        return text.to_owned();
    };
    let mut out = String::new();
    let mut done = 0;
    for (event, place) in Parser::new_ext(text, markdown::DIALECT).into_offset_iter() {
        if let Event::Code(name) = event
            && let Some(target) = target(&name, tree, up)
        {
            out.push_str(&text[done..place.start]);
            out.push_str(&format!("[{}]({target})", &text[place.clone()]));
            done = place.end;
        }
    }
    out.push_str(&text[done..]);
    out
}

/// Returns the link target for `path` or `path:line`, relative to a page. `None` if the tree has no such file.
fn target(name: &str, tree: &Tree, up: &str) -> Option<String> {
    let (path, line) = name.split_once(':').unwrap_or((name, ""));
    let is_place = tree.file(path).is_some() && line.chars().all(|c| c.is_ascii_digit());
    let anchor = match line {
        "" => String::new(),
        line => format!("#L{line}"),
    };
    is_place.then(|| format!("{up}{}{anchor}", markdown::target(path)))
}

/// Renders the index: one line for each page, under its title.
fn index(manifest: &Manifest, titles: &BTreeMap<&str, String>) -> String {
    let mut text = format!(
        "# {}: architecture documentation\n\n{} files in {} directories.\n\n| Page | Summary | Confidence |\n| --- | --- | --- |\n",
        markdown::text(&manifest.project),
        manifest.file_count,
        manifest.directory_count
    );
    for (name, made) in &manifest.agents {
        let confidence = match made.result.metadata.scores.is_empty() {
            true => "not scored".to_owned(),
            false => format!("{:.2}", made.result.confidence),
        };
        text.push_str(&format!(
            "| [{}]({}) | {} | {confidence} |\n",
            markdown::text(titles.get(name.as_str()).unwrap_or(name)),
            markdown::target(&made.page),
            markdown::text(&made.result.summary)
        ));
    }
    text.push_str("\nTo read offline, open `index.html` in a browser. Made by `archie docs`; `archie docs --check` says whether it still holds.\n");
    text
}
