//! The source map: which parts of the source a model reads, within a budget.
//!
//! A model that only sees names invents what they do. So each writer reads what an engineer who is new would read: the README,
//! the manifests, the comments of modules, public signatures with their docs, and the bodies that matter. [`rank`] orders
//! files and definitions by how much of the project refers to them; [`select`] takes them in that order until the budget is
//! used up, and names what did not fit. The same tree and budget give the same text.

mod rank;
mod select;

use std::collections::{BTreeMap, BTreeSet};

use archie_agent::markdown;
use serde::{Deserialize, Serialize};

use super::scan::{Language, Outline, Tree, import_target, outline};
use rank::{Ranks, rank};

/// Which parts of the source an agent reads besides the README, the comments of modules and public signatures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SourceFocus {
    /// Bodies of the functions that most of the project refers to.
    #[default]
    Core,
    /// No bodies: what the files are for.
    Layout,
    /// Manifests as they are written. No bodies.
    Manifests,
    /// Bodies of entry points, and of what they call.
    Flow,
    /// No bodies: types are shown with their fields.
    Data,
    /// Bodies of functions with places that a security review looks at.
    Marks,
}

/// What a model read of the source. Stored with a page, to tell later whether that has changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceRecord {
    /// Budget for the text, in bytes.
    pub bytes: u64,
    /// Files of which something was shown, each with a checksum of what was shown.
    pub files: BTreeMap<String, String>,
}

/// Text of the source for a prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceText {
    /// The text, each file in a fence that its content cannot close. Empty if the tree has nothing to read.
    pub text: String,
    /// What the text shows.
    pub record: SourceRecord,
    /// Source files of which nothing is shown, the most important first.
    pub left_out: Vec<String>,
    /// Number of definitions that are not shown, of files that are.
    pub items_left_out: usize,
}

impl SourceText {
    /// Returns what did not fit, in one sentence. `None` if everything did.
    pub fn remark(&self) -> Option<String> {
        if self.left_out.is_empty() && self.items_left_out == 0 {
            return None;
        }
        let mut parts = Vec::new();
        if !self.left_out.is_empty() {
            // Outside of the fences, so a path must not look like an instruction.
            let paths = self.left_out.iter().take(NAMED_MAX);
            let shown: Vec<String> = paths.map(|path| markdown::code(path)).collect();
            let more = match self.left_out.len() - shown.len() {
                0 => String::new(),
                more => format!(" and {more} more files"),
            };
            parts.push(format!("{}{more}", shown.join(", ")));
        }
        if self.items_left_out > 0 {
            let many =
                super::writers::many(self.items_left_out as u64, "definition", "definitions");
            parts.push(format!("{many} of the files that are shown"));
        }
        Some(parts.join("; "))
    }
}

/// One source file of the map.
#[derive(Debug)]
struct MappedFile {
    path: String,
    language: Language,
    is_test: bool,
    /// Whether a program or a library begins here.
    is_entry: bool,
    /// Lines that a security review looks at.
    marks: Vec<u32>,
    outline: Outline,
}

/// The sources of a tree in outline, with their ranks.
#[derive(Debug, Default)]
pub(crate) struct SourceMap {
    files: Vec<MappedFile>,
    ranks: Ranks,
    /// Files beyond the limits of the map.
    beyond: Vec<String>,
}

impl SourceMap {
    /// Reads and ranks the sources of a tree.
    pub(crate) fn of(tree: &Tree) -> Self {
        let mut map = Self::default();
        let mut bytes = 0;
        for file in &tree.files {
            let Some(language) = file.language.filter(|language| language.is_parsed()) else {
                continue;
            };
            bytes += file.bytes;
            let is_small = file.bytes <= FILE_BYTES_MAX && bytes <= TOTAL_BYTES_MAX;
            let text = (is_small && map.files.len() < FILES_MAX)
                .then(|| tree.read(&file.path))
                .flatten();
            let read = text.and_then(|text| outline(language, file.name(), &text));
            let Some(outline) = read else {
                map.beyond.push(file.path.clone());
                continue;
            };
            map.files.push(MappedFile {
                path: file.path.clone(),
                language,
                is_test: file.is_test(),
                is_entry: file.is_entry || is_declared_entry(tree, &file.path),
                marks: file.marks.iter().map(|mark| mark.line).collect(),
                outline,
            });
        }
        map.ranks = rank(&map.files, &map.imports(tree), &map.favored(tree));
        map
    }

    fn imports(&self, tree: &Tree) -> Vec<(usize, usize)> {
        let at: BTreeMap<&str, usize> = self
            .files
            .iter()
            .enumerate()
            .map(|(at, file)| (file.path.as_str(), at))
            .collect();
        let mut found = BTreeSet::new();
        for (from, mapped) in self.files.iter().enumerate() {
            let Some(file) = tree.file(&mapped.path) else {
                continue;
            };
            let targets = file
                .imports
                .iter()
                .filter_map(|import| import_target(tree, file, import));
            found.extend(targets.filter_map(|to| Some((from, *at.get(to.path.as_str())?))));
        }
        found.into_iter().collect()
    }

    /// A reader begins with entry points and with what the README names.
    fn favored(&self, tree: &Tree) -> Vec<f64> {
        let readme = select::readme(tree)
            .map(|(_, text)| text)
            .unwrap_or_default();
        let readme = &readme[..readme.floor_char_boundary(README_BYTES_MAX)];
        let share = |file: &MappedFile| {
            let is_named = readme.contains(&file.path);
            match (file.is_test, file.is_entry || is_named) {
                (true, _) => 0.2,
                (_, true) => 4.0,
                _ => 1.0,
            }
        };
        self.files.iter().map(share).collect()
    }

    /// Returns the indices of the files outside of tests, the highest rank first.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.files.len())
            .filter(|at| !self.files[*at].is_test)
            .collect();
        // Stable, so files of the same rank stay sorted by path.
        order.sort_by(|one, other| self.ranks.files[*other].total_cmp(&self.ranks.files[*one]));
        order
    }

    /// Returns the names of the public definitions, the highest rank first.
    pub(crate) fn ranked_names(&self) -> Vec<&str> {
        let mut found: Vec<(f64, &str)> = Vec::new();
        for at in self.order() {
            let items = self.files[at].outline.items.iter();
            let public = items
                .zip(&self.ranks.items[at])
                .filter(|(item, _)| item.is_public);
            found.extend(public.map(|(item, rank)| (*rank, item.name.as_str())));
        }
        found.sort_by(|one, other| other.0.total_cmp(&one.0));
        found.into_iter().map(|(_, name)| name).collect()
    }

    /// Returns the text for a prompt: at most `bytes` bytes.
    pub(crate) fn text(&self, tree: &Tree, focus: SourceFocus, bytes: usize) -> SourceText {
        select::select(self, tree, focus, bytes)
    }
}

fn is_declared_entry(tree: &Tree, path: &str) -> bool {
    let mut packages = tree.packages.iter();
    packages.any(|package| package.entries.iter().any(|entry| entry == path))
}

/// Maximum number of files that a remark names.
const NAMED_MAX: usize = 8;

/// Part of the README that is searched for the names of files.
const README_BYTES_MAX: usize = 64 << 10;

/// Limits of the map. Larger trees are mapped in part; what is beyond counts as left out.
const FILES_MAX: usize = 5_000;
const FILE_BYTES_MAX: u64 = 400_000;
const TOTAL_BYTES_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests;
