//! The scan: files that git does not ignore, what they define and import, and what the packages depend on. No model is
//! involved, and the same tree always produces the same result.

mod arity;
mod imports;
mod language;
pub mod manifest;
mod outline;
mod parse;
mod walk;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use archie_agent::user_folder::{
    FolderError, FolderLimits, RelativePath, UserFolder, resolve_named,
};
use serde::{Deserialize, Serialize};

use super::source_map::SourceMap;

pub use arity::Arity;
pub(crate) use imports::import_target;
pub use imports::{Parts, parts};
pub use language::Language;
pub use manifest::{Dependency, DependencyKind, Package};
pub(crate) use outline::{Outline, OutlineItem, outline};

/// Which files of a folder a scan includes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct ScanOptions {
    /// Globs of files to include. Empty includes all.
    pub include: Vec<String>,
    /// Globs of files to exclude.
    pub exclude: Vec<String>,
    /// Folder of the pages, relative to the root. It is left out, so that the pages do not describe themselves.
    pub output: Option<String>,
}

/// A scanned folder: its files, symbols and packages.
#[derive(Debug, Default)]
pub struct Tree {
    /// Path of the scanned folder.
    pub root: PathBuf,
    /// Name of the project: from the manifest in the root, else the name of the folder.
    pub project: String,
    /// All files, sorted by path.
    pub files: Vec<SourceFile>,
    /// Folders that hold the files, without the root.
    pub directories: BTreeSet<String>,
    /// Packages whose manifests are in the tree, sorted by the path of the manifest.
    pub packages: Vec<Package>,
    /// Paths that could not be read, each with the reason. At most 1,000, then how many more.
    pub unread: Vec<String>,
    /// Checksum of all paths and contents, as hexadecimal.
    pub hash: String,
    /// Handle of the scanned folder. Kept open, so that later reads come from the folder that was scanned even if its path now
    /// leads elsewhere.
    folder: Option<UserFolder>,
    by_path: BTreeMap<String, usize>,
    symbols: BTreeMap<String, Vec<(usize, usize)>>,
    words: HashSet<u64>,
    /// Read when an agent first needs it: most commands do not.
    source_map: OnceLock<SourceMap>,
}

/// One file of the tree.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceFile {
    /// Path relative to the root, with `/` as separator.
    pub path: String,
    /// Size in bytes. Zero for a symbolic link.
    pub bytes: u64,
    /// Number of lines. Absent if the file is not text or was not read.
    pub lines: Option<u32>,
    /// Checksum of the content; of the target for a symbolic link, of the size for a file over the limits.
    pub hash: u128,
    /// Language by the extension of the file's name. Absent if the extension is unknown or the file was not read.
    pub language: Option<Language>,
    /// Definitions in the order of the source.
    pub symbols: Vec<Symbol>,
    /// Imports as written in the source, for example `std::fmt` or `./cart`.
    pub imports: Vec<String>,
    /// Places that a security review should look at.
    pub marks: Vec<CodeMark>,
    /// Whether the file is the entry point of a program.
    pub is_entry: bool,
    /// Whether parts are missing from the findings, because the file is too large, too deeply nested or not well formed.
    pub is_partial: bool,
}

/// One definition in a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Name without its owner.
    pub name: String,
    /// What kind of definition it is.
    pub kind: SymbolKind,
    /// Type that the definition belongs to. Absent for definitions outside of types.
    pub owner: Option<String>,
    /// Line of the definition, from 1.
    pub line: u32,
    /// How many arguments it takes. Absent if it is not a function, or its parameters are not visible.
    pub arity: Option<Arity>,
}

/// Kind of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SymbolKind {
    /// A function outside of a type.
    Function,
    /// A function of a type.
    Method,
    /// A struct, class, record or union.
    Type,
    /// A trait, interface or protocol.
    Interface,
    /// An enum type.
    Enum,
    /// A variant of an enum.
    Variant,
    /// A field or property of a type.
    Field,
    /// A constant, static or variable at the level of a module.
    Value,
    /// A module, namespace or package.
    Module,
    /// A macro definition.
    Macro,
    /// Another name for a type.
    Alias,
}

/// A place that a security review should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeMark {
    /// What is there, for example `unsafe block`.
    pub what: &'static str,
    /// Line of the place, from 1.
    pub line: u32,
}

/// Progress of a scan, shared between the scan and its caller.
#[derive(Debug, Default)]
pub struct Progress {
    /// Number of files listed so far.
    pub files: AtomicU64,
    /// Set when the caller no longer waits. The scan then stops.
    pub is_abandoned: std::sync::atomic::AtomicBool,
}

/// Why a folder cannot be scanned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The path does not exist, is not a folder, or cannot be opened.
    #[error("there is no folder `{0}`")]
    NoFolder(String),
    /// A pattern of the options is not a valid glob.
    #[error("`{pattern}` is not a pattern: {why}")]
    BadPattern {
        /// The pattern as given.
        pattern: String,
        /// The parser's message.
        why: String,
    },
    /// The folder is made by the kernel, such as `/proc`, and does not belong to a person.
    #[error(transparent)]
    Refused(FolderError),
    /// The caller stopped waiting, or the scan panicked.
    #[error("the scan was abandoned")]
    Abandoned,
}

/// Limits of a scan: 8 MiB per file, 1 GiB in total, 500,000 entries, 64 levels of folders.
pub const LIMITS: FolderLimits = FolderLimits {
    file_bytes_max: 8 << 20,
    total_bytes_max: 1 << 30,
    entries_max: 500_000,
    depth_max: 64,
};

/// Scans a folder. Blocks; see [`Scans::tree`] for the asynchronous version.
pub fn scan(root: &Path, options: &ScanOptions, progress: &Progress) -> Result<Tree, ScanError> {
    let folder = UserFolder::open(root).map_err(|error| match error {
        FolderError::Kernel { .. } => ScanError::Refused(error),
        _ => ScanError::NoFolder(root.display().to_string()),
    })?;
    let (files, words, unread) = walk::files(&folder, options, progress)?;
    Ok(Tree::of(folder, files, words, unread))
}

/// Reads a text file below a folder. `None` if it is not UTF-8, is over the size limit, or is not a regular file.
pub(super) fn read_text(folder: &UserFolder, path: &str) -> Option<String> {
    let path = RelativePath::parse(path).ok()?;
    let bytes = folder.read(&path, LIMITS.file_bytes_max).ok()?;
    String::from_utf8(bytes).ok()
}

/// Puts a name on one line: runs of whitespace and control characters become one space, and the name is cut to 100 characters.
pub(super) fn clean_name(name: &str) -> String {
    let is_blank = |c: char| c.is_whitespace() || c.is_control();
    let words: Vec<&str> = name
        .split(is_blank)
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ").chars().take(NAME_CHARS_MAX).collect()
}

impl Tree {
    /// Returns the named package whose folder is the nearest one above a path.
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

    /// Returns the file at this path.
    pub fn file(&self, path: &str) -> Option<&SourceFile> {
        self.by_path.get(path).map(|at| &self.files[*at])
    }

    /// Returns whether the tree has this file or folder. The path may begin with `./` or end with `/`.
    pub fn has_path(&self, path: &str) -> bool {
        let path = path.trim_start_matches("./").trim_end_matches('/');
        path == "." || self.by_path.contains_key(path) || self.directories.contains(path)
    }

    /// Returns every definition of this name, with its file.
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

    /// Returns whether a name occurs anywhere in the code, in configuration files or in a path, defined here or not.
    pub fn mentions(&self, name: &str) -> bool {
        self.symbols.contains_key(name) || self.words.contains(&word_hash(name))
    }

    /// Returns whether the code has `owner::name` or `owner.name`, in these words.
    pub fn uses(&self, owner: &str, name: &str) -> bool {
        self.words.contains(&pair_hash(owner, name))
    }

    /// Returns whether a package depends on something of this name.
    pub fn has_dependency(&self, name: &str) -> bool {
        let mut all = self
            .packages
            .iter()
            .flat_map(|package| &package.dependencies);
        all.any(|dependency| dependency.name == name)
    }

    /// Iterates over all definitions, each with its file.
    pub fn symbols(&self) -> impl Iterator<Item = (&SourceFile, &Symbol)> {
        let files = self.files.iter();
        files.flat_map(|file| file.symbols.iter().map(move |symbol| (file, symbol)))
    }

    /// Returns the number of files by language.
    pub fn languages(&self) -> BTreeMap<Language, u64> {
        let mut counts = BTreeMap::new();
        for language in self.files.iter().filter_map(|file| file.language) {
            *counts.entry(language).or_default() += 1;
        }
        counts
    }

    /// Returns all dependencies by name, each with the packages that declare it.
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

    /// Returns the outlines of the sources and how they rank.
    pub(crate) fn source_map(&self) -> &SourceMap {
        self.source_map.get_or_init(|| SourceMap::of(self))
    }

    /// Reads the text of a file of the tree. `None` if the tree has no such file, or the file is not text or is gone.
    pub fn read(&self, path: &str) -> Option<String> {
        self.file(path)?;
        read_text(self.folder.as_ref()?, path)
    }
}

impl SourceFile {
    /// Returns the folder of the file; empty for the root.
    pub fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Returns the name of the file without its folder.
    pub fn name(&self) -> &str {
        self.path
            .rsplit_once('/')
            .map_or(&self.path, |(_, name)| name)
    }

    /// Returns the checksum as hexadecimal.
    pub fn hash_text(&self) -> String {
        format!("{:032x}", self.hash)
    }

    /// Returns whether the file holds tests, judged by its folders and its name.
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

/// Returns the hash that [`Tree::mentions`] looks names up by.
pub(super) fn word_hash(word: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(word.as_bytes())
}

/// Returns the hash that [`Tree::uses`] looks a path of two names up by.
pub(super) fn pair_hash(owner: &str, name: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(name.as_bytes(), word_hash(owner))
}

/// Cache of the trees that this process has scanned. Not stored: after a crash, the next process scans again.
#[derive(Debug, Default)]
pub struct Scans {
    trees: Mutex<BTreeMap<(String, ScanOptions), Arc<Tree>>>,
}

impl Scans {
    /// Returns the cache of this process. A command and the nodes that it runs share it, so the tree is scanned once.
    pub fn here() -> Arc<Self> {
        static HERE: LazyLock<Arc<Scans>> = LazyLock::new(Arc::default);
        HERE.clone()
    }

    /// Returns the cached tree of a folder, if there is one.
    pub fn known(&self, root: &str, options: &ScanOptions) -> Option<Arc<Tree>> {
        self.trees()
            .get(&(root.to_owned(), options.clone()))
            .cloned()
    }

    /// Caches a tree, replacing an older one of the same folder and options.
    pub fn keep(&self, root: &str, options: &ScanOptions, tree: Tree) -> Arc<Tree> {
        let tree = Arc::new(tree);
        let mut trees = self.trees();
        trees.insert((root.to_owned(), options.clone()), tree.clone());
        // In a server, threads that wait for a person must not hold their trees in memory. A tree that is left out is scanned again.
        while trees.len() > TREES_MAX {
            let other = trees.keys().find(|(kept, _)| kept != root).cloned();
            let Some(other) = other else { break };
            trees.remove(&other);
        }
        tree
    }

    /// Removes a tree from the cache, so that the next caller scans again.
    pub fn forget(&self, root: &str, options: &ScanOptions) {
        self.trees().remove(&(root.to_owned(), options.clone()));
    }

    fn trees(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, ScanOptions), Arc<Tree>>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the cached tree, or scans the folder on a blocking thread and reports how far it is through `progress`. Dropping
    /// the returned future stops the scan.
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
        // Nothing cancels the task, so a join error can only mean that the scan panicked.
        let tree = scanned.unwrap_or(Err(ScanError::Abandoned))?;
        Ok(self.keep(root, options, tree))
    }
}

/// Tells the scan to stop when dropped, which also happens if the caller drops the future.
struct Abandon(Arc<Progress>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0
            .is_abandoned
            .store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Maximum number of trees that a process caches.
const TREES_MAX: usize = 16;

/// Maximum length of a project's name, in characters.
const NAME_CHARS_MAX: usize = 100;

#[cfg(test)]
mod tests;
