//! Measured accuracy: every path, symbol, dependency version and count that a text names is looked up in the tree.
//!
//! A claim is a name or a call in backticks, a bare word that looks like a path, a version after the name of a dependency, or a number
//! before a word for something that the scan counts. A sentence with an unsupported claim is left out of the page, and the
//! page's warnings say how many were.

mod reading;
mod resolve;
mod spans;
mod standard;

use std::collections::BTreeSet;
use std::fmt;

use super::scan::{Dependency, DependencyKind, Package, SymbolKind, Tree};
use reading::{claims_in, sentences};
use resolve::resolve;

pub use resolve::Verdict;

/// A statement of a text that can be checked against the tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// The tree has this file or folder.
    Path(String),
    /// The code has this name or path.
    Symbol(String),
    /// The code has this function, and it takes this many arguments.
    Call {
        /// Name or path of the function.
        name: String,
        /// Number of arguments that the text gives it.
        args: u32,
    },
    /// A package depends on `name` in this version.
    Version {
        /// Name of the dependency.
        name: String,
        /// Version as written in the text. It holds if it is a prefix of the required version, or the other way round.
        version: String,
    },
    /// The tree has this many things of a kind.
    Count {
        /// The count as written in the text.
        number: u64,
        /// What is counted.
        of: CountKind,
        /// Folders and languages that the sentence names. The count may hold in any of them, or in the whole tree.
        within: Vec<String>,
    },
}

/// What can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CountKind {
    /// Files of any kind.
    Files,
    /// Folders that hold files.
    Directories,
    /// Dependencies of the packages.
    Dependencies,
    /// Packages with a manifest.
    Packages,
    /// Functions, with or without methods.
    Functions,
    /// Structs, classes and records.
    Types,
    /// Traits and interfaces.
    Interfaces,
    /// Enum types.
    Enums,
    /// Languages of the files.
    Languages,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "path {path}"),
            Self::Symbol(name) => write!(f, "symbol {name}"),
            Self::Call { name, args } => write!(f, "call {name} {args}"),
            Self::Version { name, version } => write!(f, "version {name} {version}"),
            Self::Count { number, of, within } if within.is_empty() => {
                write!(f, "count {number} {}", of.word())
            }
            Self::Count { number, of, within } => {
                write!(f, "count {number} {} {}", of.word(), within.join(" "))
            }
        }
    }
}

impl Claim {
    /// Parses a claim from its `Display` form, as stored in the manifest. `None` if the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(' ')?;
        let mut words = rest.split(' ');
        Some(match kind {
            "path" => Self::Path(rest.to_owned()),
            "symbol" => Self::Symbol(rest.to_owned()),
            "call" => Self::Call {
                name: words.next()?.to_owned(),
                args: words.next()?.parse().ok()?,
            },
            "version" => Self::Version {
                name: words.next()?.to_owned(),
                version: words.next()?.to_owned(),
            },
            "count" => Self::Count {
                number: words.next()?.parse().ok()?,
                of: CountKind::of(words.next()?)?,
                within: words.map(str::to_owned).collect(),
            },
            _ => return None,
        })
    }

    /// Returns the question to ask about this claim if it is unsupported.
    pub fn question(&self) -> String {
        match self {
            Self::Path(path) => {
                format!("The tree has no `{path}`: which file or folder was meant, if any?")
            }
            Self::Symbol(name) => {
                format!(
                    "Nothing in the code is called `{name}`: what was meant, and where is it defined?"
                )
            }
            Self::Call { name, args } => {
                format!(
                    "Nothing in the code is called `{name}` and takes {args} arguments: what was meant, and how is it called?"
                )
            }
            Self::Version { name, version } => {
                format!(
                    "`{name}` is not required as {version}: which version do the manifests say?"
                )
            }
            Self::Count { number, of, .. } => {
                format!(
                    "There are not {number} {}: what is the count, by the facts?",
                    of.word()
                )
            }
        }
    }

    /// Returns whether the tree supports the claim.
    pub fn holds(&self, tree: &Tree) -> bool {
        self.verdict(tree) == Verdict::Held
    }

    /// Returns what the tree says about the claim.
    pub fn verdict(&self, tree: &Tree) -> Verdict {
        let holds = match self {
            Self::Path(path) => has_path(tree, path),
            Self::Symbol(name) => return resolve(tree, name, None),
            Self::Call { name, args } => return resolve(tree, name, Some(*args)),
            Self::Version { name, version } => {
                let users = tree.dependencies();
                let users = users
                    .get(name.as_str())
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                users.iter().any(|(_, dependency)| {
                    let said = dependency
                        .requirement
                        .trim_start_matches(|c: char| !c.is_ascii_digit());
                    said.starts_with(version.as_str())
                        || version.starts_with(said) && !said.is_empty()
                })
            }
            Self::Count { number, of, within } => {
                let mut places = within.iter().map(String::as_str).chain([""]);
                places.any(|place| count(tree, *of, place).contains(number))
            }
        };
        match holds {
            true => Verdict::Held,
            false => Verdict::Missed,
        }
    }
}

impl CountKind {
    /// Returns the plural noun of the kind.
    pub fn word(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Directories => "directories",
            Self::Dependencies => "dependencies",
            Self::Packages => "packages",
            Self::Functions => "functions",
            Self::Types => "types",
            Self::Interfaces => "interfaces",
            Self::Enums => "enums",
            Self::Languages => "languages",
        }
    }

    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "file" | "files" => Self::Files,
            "directory" | "directories" | "folder" | "folders" => Self::Directories,
            "dependency" | "dependencies" => Self::Dependencies,
            "package" | "packages" | "crate" | "crates" => Self::Packages,
            "function" | "functions" => Self::Functions,
            "struct" | "structs" | "class" | "classes" | "types" => Self::Types,
            "trait" | "traits" | "interface" | "interfaces" => Self::Interfaces,
            "enum" | "enums" => Self::Enums,
            "language" | "languages" => Self::Languages,
            _ => return None,
        })
    }
}

/// Counts things of a kind in a folder or a language. Returns several numbers where the word is ambiguous; a claim may match
/// any.
fn count(tree: &Tree, of: CountKind, place: &str) -> BTreeSet<u64> {
    let place = place.trim_start_matches("./").trim_end_matches('/');
    let language = tree
        .languages()
        .into_keys()
        .find(|language| language.word() == place);
    let is_in = |path: &str| {
        place.is_empty()
            || path
                .strip_prefix(place)
                .is_some_and(|rest| rest.starts_with('/'))
    };
    let files = || {
        tree.files.iter().filter(move |file| match language {
            Some(language) => file.language == Some(language),
            None => is_in(&file.path),
        })
    };
    let defined = |wanted: &[SymbolKind]| {
        let symbols = files().flat_map(|file| &file.symbols);
        symbols
            .filter(|symbol| wanted.contains(&symbol.kind))
            .count() as u64
    };
    let mut counts = BTreeSet::new();
    match of {
        CountKind::Files => {
            counts.insert(files().count() as u64);
            // Files directly in the folder, not in its subfolders.
            counts.insert(files().filter(|file| file.folder() == place).count() as u64);
        }
        CountKind::Directories => {
            let below = tree.directories.iter().filter(|folder| is_in(folder));
            counts.insert(below.clone().count() as u64);
            let depth = if place.is_empty() {
                0
            } else {
                place.matches('/').count() + 1
            };
            let right_in = below.filter(|folder| folder.matches('/').count() == depth);
            counts.insert(right_in.count() as u64);
        }
        CountKind::Dependencies => {
            let all = tree.dependencies();
            let is_outside = |users: &Vec<(&Package, &Dependency)>| {
                users.iter().any(|(_, dependency)| !dependency.is_local)
            };
            counts.insert(all.len() as u64);
            counts.insert(all.values().filter(|users| is_outside(users)).count() as u64);
            for package in &tree.packages {
                let own: BTreeSet<_> = package.dependencies.iter().map(|d| &d.name).collect();
                counts.insert(own.len() as u64);
            }
            for kind in KINDS {
                let of_kind = all
                    .values()
                    .filter(|users| users.iter().any(|(_, d)| d.kind == kind));
                counts.insert(of_kind.count() as u64);
            }
        }
        CountKind::Packages => {
            counts.insert(tree.packages.len() as u64);
            let named = tree
                .packages
                .iter()
                .filter(|package| !package.name.is_empty());
            counts.insert(named.count() as u64);
        }
        CountKind::Functions => {
            counts.insert(defined(&[SymbolKind::Function]));
            counts.insert(defined(&[SymbolKind::Function, SymbolKind::Method]));
        }
        CountKind::Types => {
            counts.insert(defined(&[SymbolKind::Type]));
        }
        CountKind::Interfaces => {
            counts.insert(defined(&[SymbolKind::Interface]));
        }
        CountKind::Enums => {
            counts.insert(defined(&[SymbolKind::Enum]));
        }
        CountKind::Languages => {
            counts.insert(tree.languages().len() as u64);
        }
    }
    counts
}

const KINDS: [DependencyKind; 4] = [
    DependencyKind::Normal,
    DependencyKind::Build,
    DependencyKind::Dev,
    DependencyKind::Optional,
];

fn has_path(tree: &Tree, path: &str) -> bool {
    let bare = path.split_once(':').map_or(path, |(path, _)| path);
    if bare.contains('*') {
        let (before, after) = bare.split_once('*').unwrap_or((bare, ""));
        let after = after.rsplit('*').next().unwrap_or(after);
        return tree
            .files
            .iter()
            .any(|file| file.path.starts_with(before) && file.path.ends_with(after));
    }
    if tree.has_path(bare) {
        return true;
    }
    // People often leave out the leading folders of a path.
    let bare = bare.trim_start_matches("./").trim_end_matches('/');
    let end = format!("/{bare}");
    tree.files.iter().any(|file| file.path.ends_with(&end))
        || tree.directories.iter().any(|folder| folder.ends_with(&end))
}

/// Returns every claim of a text once, in order of appearance.
pub fn claims(text: &str, tree: &Tree) -> Vec<Claim> {
    let mut found = Vec::new();
    for sentence in sentences(text) {
        for claim in claims_in(sentence, tree) {
            if !found.contains(&claim) {
                found.push(claim);
            }
        }
    }
    found
}

/// Claims of a text, checked against the tree.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckedText {
    /// Claims that the tree supports.
    pub hits: Vec<Claim>,
    /// Claims that the tree neither supports nor contradicts. They count as checked, and not as supported.
    pub unknown: Vec<Claim>,
    /// Claims that the tree does not support.
    pub misses: Vec<Claim>,
}

impl CheckedText {
    /// Returns the number of claims.
    pub fn checked(&self) -> usize {
        self.hits.len() + self.unknown.len() + self.misses.len()
    }

    /// Returns the share of supported claims, from 0 to 100. A text without claims has 50: nothing speaks for it.
    pub fn percent(&self) -> u32 {
        match self.checked() {
            0 => 50,
            all => u32::try_from(self.hits.len() * 100 / all).unwrap_or(100),
        }
    }
}

/// Checks every claim of a text against the tree.
pub fn check(text: &str, tree: &Tree) -> CheckedText {
    let mut checked = CheckedText::default();
    for claim in claims(text, tree) {
        match claim.verdict(tree) {
            Verdict::Held => checked.hits.push(claim),
            Verdict::Unknown => checked.unknown.push(claim),
            Verdict::Missed => checked.misses.push(claim),
        }
    }
    checked
}

/// Returns the text without the sentences that make unsupported claims, and how many sentences were removed.
pub fn cleaned(text: &str, tree: &Tree) -> (String, u32) {
    let mut kept = String::new();
    let mut dropped = 0;
    for sentence in sentences(text) {
        match claims_in(sentence, tree)
            .iter()
            .all(|claim| claim.verdict(tree) != Verdict::Missed)
        {
            true => kept.push_str(sentence),
            false => {
                dropped += 1;
                // Keeps the end of the line, so that the next line does not join the one before.
                let ends = sentence.len() - sentence.trim_end_matches(['\n', '\r']).len();
                kept.push_str(&sentence[sentence.len() - ends..]);
            }
        }
    }
    (kept, dropped)
}

#[cfg(test)]
mod tests;
