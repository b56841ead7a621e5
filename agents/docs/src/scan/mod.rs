//! The tree as it is: files that git does not ignore, what is defined and imported in them, what they depend on. Nothing here
//! asks a model, and the same tree gives the same every time.

mod imports;
mod language;
pub mod manifest;
mod parse;
mod walk;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use archie_agent::user_folder::{
    FolderError, FolderLimits, RelativePath, UserFolder, resolve_named,
};
use serde::{Deserialize, Serialize};

pub use imports::{Parts, parts};
pub use language::Language;
pub use manifest::{Dependency, DependencyKind, Package};

/// What of a folder is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct ScanOptions {
    /// Only files that match one of these globs; all if there are none.
    pub include: Vec<String>,
    /// No files that match one of these.
    pub exclude: Vec<String>,
    /// The folder of the pages, below the root, which does not describe itself.
    pub output: Option<String>,
}

/// A tree that was scanned.
#[derive(Debug, Default)]
pub struct Tree {
    /// Its folder.
    pub root: PathBuf,
    /// What it is called: the name in its manifest, or of its folder.
    pub project: String,
    /// Its files, by path.
    pub files: Vec<SourceFile>,
    /// The folders that hold them, the root apart.
    pub directories: BTreeSet<String>,
    /// The packages whose manifests are in it.
    pub packages: Vec<Package>,
    /// What could not be read.
    pub unread: Vec<String>,
    /// A checksum of all paths and contents.
    pub hash: String,
    /// Held open, so that what is read later is of the folder that was scanned.
    folder: Option<UserFolder>,
    by_path: BTreeMap<String, usize>,
    symbols: BTreeMap<String, Vec<(usize, usize)>>,
    words: HashSet<u64>,
}

/// A file of the tree.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceFile {
    /// Below the root, with `/`.
    pub path: String,
    /// How large.
    pub bytes: u64,
    /// How many lines; none if it is not text.
    pub lines: Option<u32>,
    /// Its checksum.
    pub hash: u128,
    /// In which language, if it is one of ours.
    pub language: Option<Language>,
    /// What it defines, in order.
    pub symbols: Vec<Symbol>,
    /// What it imports, as it says it.
    pub imports: Vec<String>,
    /// Places that somebody who looks after security looks at.
    pub marks: Vec<CodeMark>,
    /// Whether it begins a program.
    pub is_entry: bool,
    /// Whether it was too large, or not well formed, to be understood whole.
    pub is_partial: bool,
}

/// Something that is defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: SymbolKind,
    /// The type around it, if there is one.
    pub owner: Option<String>,
    /// Its line, from 1.
    pub line: u32,
}

/// What is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SymbolKind {
    /// A function.
    Function,
    /// A function of a type.
    Method,
    /// A struct, class, record or union.
    Type,
    /// A trait, interface or protocol.
    Interface,
    /// An enum.
    Enum,
    /// A value of an enum.
    Variant,
    /// A field or property.
    Field,
    /// A constant, static or variable of a module.
    Value,
    /// A module, namespace or package.
    Module,
    /// A macro.
    Macro,
    /// Another name for a type.
    Alias,
}

/// A place to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeMark {
    /// What is there.
    pub what: &'static str,
    /// In which line, from 1.
    pub line: u32,
}

/// How far a scan is.
#[derive(Debug, Default)]
pub struct Progress {
    /// Files so far.
    pub files: AtomicU64,
    /// Set if nobody waits any more.
    pub is_abandoned: std::sync::atomic::AtomicBool,
}

/// Why a folder cannot be scanned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// It is not there, or no folder.
    #[error("there is no folder `{0}`")]
    NoFolder(String),
    /// A pattern is none.
    #[error("`{pattern}` is not a pattern: {why}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// Why.
        why: String,
    },
    /// It cannot be one of a person.
    #[error(transparent)]
    Refused(FolderError),
    /// Nobody waits any more.
    #[error("the scan was abandoned")]
    Abandoned,
}

/// How much of a folder is scanned: 8 MiB a file, 1 GiB in all, 500,000 entries, 64 folders deep.
pub const LIMITS: FolderLimits = FolderLimits {
    file_bytes_max: 8 << 20,
    total_bytes_max: 1 << 30,
    entries_max: 500_000,
    depth_max: 64,
};

/// Scans a folder.
pub fn scan(root: &Path, options: &ScanOptions, progress: &Progress) -> Result<Tree, ScanError> {
    let folder = UserFolder::open(root).map_err(|error| match error {
        FolderError::Kernel { .. } => ScanError::Refused(error),
        _ => ScanError::NoFolder(root.display().to_string()),
    })?;
    let (files, words, unread) = walk::files(&folder, options, progress)?;
    Ok(Tree::of(folder, files, words, unread))
}

/// The text of a file below a root; none if it is not text, is over the limit, or is not a regular file.
pub(super) fn read_text(folder: &UserFolder, path: &str) -> Option<String> {
    let path = RelativePath::parse(path).ok()?;
    let bytes = folder.read(&path, LIMITS.file_bytes_max).ok()?;
    String::from_utf8(bytes).ok()
}

/// A name on one line: whitespace and control characters become one blank, and what is too long is cut.
pub(super) fn clean_name(name: &str) -> String {
    let is_blank = |c: char| c.is_whitespace() || c.is_control();
    let words: Vec<&str> = name
        .split(is_blank)
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ").chars().take(NAME_CHARS_MAX).collect()
}

impl Tree {
    /// The package whose folder is nearest above a path.
    pub fn package_of(&self, path: &str) -> Option<&Package> {
        let is_above = |folder: &str| {
            let rest = path.strip_prefix(folder);
            folder.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let named = self
            .packages
            .iter()
            .filter(|package| !package.name.is_empty());
        named
            .filter(|package| is_above(package.folder()))
            .max_by_key(|package| package.folder().len())
    }

    fn of(
        folder: UserFolder,
        files: Vec<SourceFile>,
        words: HashSet<u64>,
        unread: Vec<String>,
    ) -> Self {
        let mut tree = Self {
            root: folder.path().to_owned(),
            files,
            words,
            unread,
            ..Self::default()
        };
        let mut sum = xxhash_rust::xxh3::Xxh3::new();
        for (at, file) in tree.files.iter().enumerate() {
            sum.update(file.path.as_bytes());
            sum.update(&file.hash.to_le_bytes());
            tree.by_path.insert(file.path.clone(), at);
            for (folder, _) in file.path.match_indices('/') {
                tree.directories.insert(file.path[..folder].to_owned());
            }
            for (index, symbol) in file.symbols.iter().enumerate() {
                let places = tree.symbols.entry(symbol.name.clone()).or_default();
                places.push((at, index));
            }
        }
        tree.hash = format!("{:032x}", sum.digest128());
        tree.packages = manifest::packages(&folder, &tree.files);
        tree.folder = Some(folder);
        tree.project = tree.name();
        tree
    }

    fn name(&self) -> String {
        let own = self
            .packages
            .iter()
            .find(|package| package.folder().is_empty());
        let folder = || {
            let full = resolve_named(&self.root).unwrap_or_else(|_| self.root.clone());
            full.file_name()
                .map(|name| name.to_string_lossy().into_owned())
        };
        let named = own
            .map(|package| package.name.clone())
            .filter(|name| !name.is_empty());
        let named = named.or_else(folder).map(|name| clean_name(&name));
        named
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "project".to_owned())
    }

    /// The file at this path.
    pub fn file(&self, path: &str) -> Option<&SourceFile> {
        self.by_path.get(path).map(|at| &self.files[*at])
    }

    /// Whether there is such a file or folder. A path may begin with `./` or end with `/`.
    pub fn has_path(&self, path: &str) -> bool {
        let path = path.trim_start_matches("./").trim_end_matches('/');
        path == "." || self.by_path.contains_key(path) || self.directories.contains(path)
    }

    /// Where something is defined.
    pub fn defined(&self, name: &str) -> Vec<(&SourceFile, &Symbol)> {
        let places = self
            .symbols
            .get(name)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let place = |(file, symbol): &(usize, usize)| {
            let file = &self.files[*file];
            (file, &file.symbols[*symbol])
        };
        places.iter().map(place).collect()
    }

    /// Whether a name stands anywhere in the code or in its settings, defined here or not.
    pub fn mentions(&self, name: &str) -> bool {
        self.symbols.contains_key(name) || self.words.contains(&word_hash(name))
    }

    /// Everything that is defined, with its file.
    pub fn symbols(&self) -> impl Iterator<Item = (&SourceFile, &Symbol)> {
        let files = self.files.iter();
        files.flat_map(|file| file.symbols.iter().map(move |symbol| (file, symbol)))
    }

    /// Files by language.
    pub fn languages(&self) -> BTreeMap<Language, u64> {
        let mut counts = BTreeMap::new();
        for language in self.files.iter().filter_map(|file| file.language) {
            *counts.entry(language).or_default() += 1;
        }
        counts
    }

    /// Everything that packages depend on, by name.
    pub fn dependencies(&self) -> BTreeMap<&str, Vec<(&Package, &Dependency)>> {
        let mut found: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for package in &self.packages {
            for dependency in &package.dependencies {
                let users = found.entry(dependency.name.as_str()).or_default();
                users.push((package, dependency));
            }
        }
        found
    }

    /// The text of a file, if it is text and is still there.
    pub fn read(&self, path: &str) -> Option<String> {
        self.file(path)?;
        read_text(self.folder.as_ref()?, path)
    }
}

impl SourceFile {
    /// The folder it is in; empty for the root.
    pub fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Its name in that folder.
    pub fn name(&self) -> &str {
        self.path
            .rsplit_once('/')
            .map_or(&self.path, |(_, name)| name)
    }

    /// Its checksum as text.
    pub fn hash_text(&self) -> String {
        format!("{:032x}", self.hash)
    }

    /// Whether it holds tests, by where it is and what it is called.
    pub fn is_test(&self) -> bool {
        let in_folder = self.path.split('/').rev().skip(1);
        let in_tests = in_folder
            .into_iter()
            .any(|folder| matches!(folder, "test" | "tests" | "__tests__" | "spec" | "testdata"));
        let name = self.name();
        let stem = name.split('.').next().unwrap_or(name);
        in_tests
            || stem.starts_with("test_")
            || stem.ends_with("_test")
            || stem == "tests"
            || name.contains(".test.")
            || name.contains(".spec.")
            || (self.language == Some(Language::Java) && stem.ends_with("Test"))
    }
}

/// The hash that names are looked up by.
pub(super) fn word_hash(word: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(word.as_bytes())
}

/// Trees that were scanned in this process. After a crash the next one scans again.
#[derive(Debug, Default)]
pub struct Scans {
    trees: Mutex<BTreeMap<(String, ScanOptions), Arc<Tree>>>,
}

impl Scans {
    /// Those of this process: a command that looked at a tree has scanned it for the nodes, too.
    pub fn here() -> Arc<Self> {
        static HERE: LazyLock<Arc<Scans>> = LazyLock::new(Arc::default);
        HERE.clone()
    }

    /// The tree as it was scanned last, if it was.
    pub fn known(&self, root: &str, options: &ScanOptions) -> Option<Arc<Tree>> {
        self.trees()
            .get(&(root.to_owned(), options.clone()))
            .cloned()
    }

    /// Keeps a tree.
    pub fn keep(&self, root: &str, options: &ScanOptions, tree: Tree) -> Arc<Tree> {
        let tree = Arc::new(tree);
        self.trees()
            .insert((root.to_owned(), options.clone()), tree.clone());
        tree
    }

    /// Forgets a tree, so that the next who asks scans again.
    pub fn forget(&self, root: &str, options: &ScanOptions) {
        self.trees().remove(&(root.to_owned(), options.clone()));
    }

    fn trees(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, ScanOptions), Arc<Tree>>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tree, scanned now if it was not. What is under way is shown through `progress`.
    pub async fn tree(
        &self,
        root: &str,
        options: &ScanOptions,
        progress: &Arc<Progress>,
    ) -> Result<Arc<Tree>, ScanError> {
        if let Some(known) = self.known(root, options) {
            return Ok(known);
        }
        let (folder, wanted, watched) = (PathBuf::from(root), options.clone(), progress.clone());
        let abandon = Abandon(progress.clone());
        let scanned = tokio::task::spawn_blocking(move || scan(&folder, &wanted, &watched)).await;
        drop(abandon);
        // It is joined here and nowhere cancelled, so that only a panic in it is left.
        let tree = scanned.unwrap_or(Err(ScanError::Abandoned))?;
        Ok(self.keep(root, options, tree))
    }
}

/// Tells a scan that nobody waits for it any more.
struct Abandon(Arc<Progress>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0
            .is_abandoned
            .store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// How long the name of a project may be.
const NAME_CHARS_MAX: usize = 100;

#[cfg(test)]
mod tests;
