//! Takes what a model reads from the map, in the order of its rank, until the budget is used up.

use std::collections::{BTreeMap, BTreeSet};

use archie_agent::markdown;

use super::super::manifest::hash;
use super::super::scan::{OutlineItem, Package, SymbolKind, Tree};
use super::{MappedFile, SourceFocus, SourceMap, SourceRecord, SourceText};

/// What was chosen of one source file.
#[derive(Debug, Default)]
struct ChosenFile {
    has_comment: bool,
    signatures: BTreeSet<usize>,
    bodies: BTreeSet<usize>,
}

/// The budget, and what was chosen so far.
struct Selection<'a> {
    map: &'a SourceMap,
    left: usize,
    /// Text before the source files, and what it shows of which file.
    front: String,
    record: BTreeMap<String, String>,
    files: BTreeMap<usize, ChosenFile>,
}

pub(super) fn select(map: &SourceMap, tree: &Tree, focus: SourceFocus, bytes: usize) -> SourceText {
    let mut selection = Selection {
        map,
        left: bytes,
        front: String::new(),
        record: BTreeMap::new(),
        files: BTreeMap::new(),
    };
    if let Some((path, text)) = readme(tree) {
        selection.show(&path, "", &cut(&text, bytes / 5));
    }
    match focus {
        SourceFocus::Manifests => selection.manifests(tree, bytes * 2 / 5),
        _ => selection.packages(tree, bytes / 10),
    }
    selection.comments(bytes / 3);
    let candidates = candidates(map, focus);
    let has_bodies = candidates.iter().any(|candidate| candidate.body > 0.0);
    let for_signatures = match has_bodies {
        true => selection.left * 3 / 5,
        false => selection.left,
    };
    selection.signatures(&candidates, for_signatures);
    selection.bodies(&candidates);
    let rest = selection.left;
    selection.signatures(&candidates, rest);
    selection.finish(bytes, &candidates)
}

/// A definition that may be shown, with what showing its signature or its body is worth.
struct Candidate {
    file: usize,
    item: usize,
    signature: f64,
    body: f64,
}

fn candidates(map: &SourceMap, focus: SourceFocus) -> Vec<Candidate> {
    let called = match focus {
        SourceFocus::Flow => entry_names(map),
        _ => BTreeSet::new(),
    };
    let mut found = Vec::new();
    for at in map.order() {
        let file = &map.files[at];
        for (item, definition) in file.outline.items.iter().enumerate() {
            let rank = map.ranks.items[at][item];
            let public = if definition.is_public { 4.0 } else { 1.0 };
            let kind = match (focus, definition.kind) {
                (SourceFocus::Data, kind) if is_type(kind) => 4.0,
                (_, SymbolKind::Value | SymbolKind::Alias) => 0.5,
                _ => 1.0,
            };
            found.push(Candidate {
                file: at,
                item,
                signature: rank * public * kind,
                body: match definition.body {
                    Some(_) => rank * interest(file, definition, focus, &called),
                    None => 0.0,
                },
            });
        }
    }
    found
}

/// Returns the names that the entry points use.
fn entry_names(map: &SourceMap) -> BTreeSet<&str> {
    let entries = map
        .files
        .iter()
        .filter(|file| file.is_entry && !file.is_test);
    entries
        .flat_map(|entry| entry.outline.names.keys().map(String::as_str))
        .collect()
}

/// Returns how much an agent with this focus wants the body of a definition. `called` has the names that entry points use.
fn interest(
    file: &MappedFile,
    item: &OutlineItem,
    focus: SourceFocus,
    called: &BTreeSet<&str>,
) -> f64 {
    match focus {
        SourceFocus::Layout | SourceFocus::Manifests | SourceFocus::Data => 0.0,
        SourceFocus::Core => 1.0,
        SourceFocus::Marks => {
            let is_marked = file.marks.iter().any(|line| item.lines.contains(line));
            if is_marked { 1.0 } else { 0.0 }
        }
        SourceFocus::Flow => match (file.is_entry, item.name == "main") {
            (true, true) => 1_000.0,
            (true, false) => 50.0,
            (false, _) if called.contains(item.name.as_str()) => 10.0,
            _ => 1.0,
        },
    }
}

fn is_type(kind: SymbolKind) -> bool {
    matches!(
        kind,
        SymbolKind::Type | SymbolKind::Enum | SymbolKind::Interface
    )
}

impl Selection<'_> {
    /// Puts a text before the source files, if it fits.
    fn show(&mut self, path: &str, language: &str, text: &str) {
        let shown = format!(
            "{}\n\n{}\n",
            markdown::code(path),
            markdown::fenced(language, text)
        );
        if text.is_empty() || shown.len() > self.left {
            return;
        }
        self.left -= shown.len();
        self.front.push_str(&shown);
        self.record.insert(path.to_owned(), hash(shown.as_bytes()));
    }

    fn manifests(&mut self, tree: &Tree, bytes: usize) {
        let mut left = bytes.min(self.left);
        for package in &tree.packages {
            let Some(text) = tree.read(&package.manifest) else {
                continue;
            };
            let text = cut(&text, left);
            left = left.saturating_sub(text.len());
            self.show(&package.manifest, "", &text);
        }
    }

    /// Says in one line what each package is.
    fn packages(&mut self, tree: &Tree, bytes: usize) {
        let named = tree
            .packages
            .iter()
            .filter(|package| !package.name.is_empty());
        let lines: Vec<String> = named.map(|package| package_line(tree, package)).collect();
        let text = cut(&lines.join("\n"), bytes);
        if text.is_empty() {
            return;
        }
        let shown = format!("Packages\n\n{}\n", markdown::fenced("", &text));
        if shown.len() <= self.left {
            self.left -= shown.len();
            self.front.push_str(&shown);
            self.record
                .insert(PACKAGES.to_owned(), hash(shown.as_bytes()));
        }
    }

    fn comments(&mut self, bytes: usize) {
        let mut left = bytes.min(self.left);
        for at in self.map.order() {
            let comment = self.comment(at);
            let cost = comment.len() + self.heading(at);
            if comment.is_empty() || cost > left {
                continue;
            }
            left -= cost;
            self.left -= cost;
            self.files.entry(at).or_default().has_comment = true;
        }
    }

    fn comment(&self, at: usize) -> String {
        cut(&self.map.files[at].outline.comment, COMMENT_BYTES_MAX)
    }

    /// Returns the bytes that the first piece of a file needs for the file's name and its fence.
    fn heading(&self, at: usize) -> usize {
        match self.files.contains_key(&at) {
            true => 0,
            false => self.map.files[at].path.len() + HEADING_BYTES,
        }
    }

    fn signatures(&mut self, candidates: &[Candidate], bytes: usize) {
        let mut left = bytes.min(self.left);
        for candidate in by(candidates, |candidate| candidate.signature) {
            let chosen = self.files.get(&candidate.file);
            let is_shown = chosen.is_some_and(|chosen| {
                chosen.signatures.contains(&candidate.item)
                    || chosen.bodies.contains(&candidate.item)
            });
            let item = &self.map.files[candidate.file].outline.items[candidate.item];
            let cost = item.signature.len() + ITEM_BYTES + self.heading(candidate.file);
            if is_shown || cost > left {
                continue;
            }
            left -= cost;
            self.left -= cost;
            let chosen = self.files.entry(candidate.file).or_default();
            chosen.signatures.insert(candidate.item);
        }
    }

    fn bodies(&mut self, candidates: &[Candidate]) {
        for candidate in by(candidates, |candidate| candidate.body) {
            let item = &self.map.files[candidate.file].outline.items[candidate.item];
            let Some(body) = item.body.as_ref().filter(|_| candidate.body > 0.0) else {
                continue;
            };
            let chosen = self.files.get(&candidate.file);
            let has_signature =
                chosen.is_some_and(|chosen| chosen.signatures.contains(&candidate.item));
            let cost = match has_signature {
                // The body begins with the signature.
                true => body.len().saturating_sub(item.signature.len()),
                false => body.len() + ITEM_BYTES + self.heading(candidate.file),
            };
            if cost > self.left {
                continue;
            }
            self.left -= cost;
            let chosen = self.files.entry(candidate.file).or_default();
            chosen.signatures.remove(&candidate.item);
            chosen.bodies.insert(candidate.item);
        }
    }

    fn finish(mut self, bytes: usize, candidates: &[Candidate]) -> SourceText {
        let mut text = std::mem::take(&mut self.front);
        let mut left_out = Vec::new();
        for at in self.map.order() {
            let file = &self.map.files[at];
            let Some(chosen) = self.files.get(&at) else {
                let is_empty = file.outline.items.is_empty() && file.outline.comment.is_empty();
                if !is_empty {
                    left_out.push(file.path.clone());
                }
                continue;
            };
            let shown = self.file_text(at, chosen);
            self.record
                .insert(file.path.clone(), hash(shown.as_bytes()));
            text.push_str(&shown);
        }
        left_out.extend(self.map.beyond.iter().cloned());
        let is_shown = |candidate: &&Candidate| {
            self.files.get(&candidate.file).is_none_or(|chosen| {
                chosen.signatures.contains(&candidate.item)
                    || chosen.bodies.contains(&candidate.item)
            })
        };
        SourceText {
            text,
            items_left_out: candidates.len() - candidates.iter().filter(is_shown).count(),
            left_out,
            record: SourceRecord {
                bytes: bytes as u64,
                files: self.record,
            },
        }
    }

    fn file_text(&self, at: usize, chosen: &ChosenFile) -> String {
        let file = &self.map.files[at];
        let mut pieces: Vec<String> = Vec::new();
        if chosen.has_comment {
            pieces.push(self.comment(at));
        }
        for (item, definition) in file.outline.items.iter().enumerate() {
            if chosen.bodies.contains(&item) {
                pieces.extend(definition.body.clone());
            } else if chosen.signatures.contains(&item) {
                pieces.push(definition.signature.clone());
            }
        }
        let language = file.language.word().to_lowercase();
        format!(
            "{}\n\n{}\n",
            markdown::code(&file.path),
            markdown::fenced(&language, &pieces.join("\n\n"))
        )
    }
}

/// Orders candidates by their worth, the highest first. Stable, so equal ones stay in the order of files and lines.
fn by(candidates: &[Candidate], worth: fn(&Candidate) -> f64) -> Vec<&Candidate> {
    let mut ordered: Vec<&Candidate> = candidates.iter().collect();
    ordered.sort_by(|one, other| worth(other).total_cmp(&worth(one)));
    ordered
}

/// Returns the README in the root, with its path.
pub(super) fn readme(tree: &Tree) -> Option<(String, String)> {
    let is_readme = |name: &str| {
        let stem = name.split('.').next().unwrap_or(name);
        stem.eq_ignore_ascii_case("readme")
    };
    let mut files = tree.files.iter();
    let file = files.find(|file| file.folder().is_empty() && is_readme(file.name()))?;
    Some((file.path.clone(), tree.read(&file.path)?))
}

fn package_line(tree: &Tree, package: &Package) -> String {
    let manifest = tree.read(&package.manifest).unwrap_or_default();
    let described = manifest.lines().find_map(description);
    let described = described
        .map(|text| format!(": {text}"))
        .unwrap_or_default();
    format!("{} ({}){described}", package.name, package.manifest)
}

/// Returns the description in a line of a manifest, such as `description = "…"` or `"description": "…"`.
fn description(line: &str) -> Option<&str> {
    let rest = line
        .trim()
        .trim_start_matches('"')
        .strip_prefix("description")?;
    let rest = rest.trim_start_matches('"').trim_start();
    let rest = rest.strip_prefix(['=', ':'])?.trim();
    let text = rest.trim_end_matches(',').trim_matches(['"', '\'']);
    (!text.is_empty()).then_some(text)
}

/// Cuts a text after a line, so that it has at most this many bytes.
fn cut(text: &str, bytes: usize) -> String {
    let text = text.trim();
    if text.len() <= bytes {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(bytes.saturating_sub(CUT_MARK.len()))];
    match head.rfind('\n') {
        Some(end) => format!("{}{CUT_MARK}", &head[..end]),
        None => String::new(),
    }
}

const CUT_MARK: &str = "\n…";

/// Key of the lines about packages in a record: not a path, because they come from several files.
pub(super) const PACKAGES: &str = "(packages)";

/// Maximum length of the comment of a module.
const COMMENT_BYTES_MAX: usize = 1_500;

/// Bytes of a file's fence, of the name of its language, and of the lines around them.
const HEADING_BYTES: usize = 40;

/// Bytes of the blank line between two definitions.
const ITEM_BYTES: usize = 2;
