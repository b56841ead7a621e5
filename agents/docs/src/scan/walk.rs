//! The walk: lists the files of a folder, then reads and parses them on all cores.
//!
//! One thread lists the folder by handles, without following links ([`UserFolder`]); then several threads read and parse the
//! listed files. The `ignore` crate matches the rules of `.gitignore` files, but this module reads the files: the crate's own
//! walker opens them by path, and would block on a pipe or follow a link of that name.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use archie_agent::user_folder::{
    Allowance, Entry, EntryKind, FileName, Listing, RelativePath, UserFolder,
};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::{Override, OverrideBuilder};

use super::{LIMITS, Language, Progress, ScanError, ScanOptions, SourceFile, parse, word_hash};

/// Files, hashes of the words in code and configuration, and paths that could not be read.
type WalkResult = (Vec<SourceFile>, HashSet<u64>, Vec<String>);

pub(super) fn files(
    folder: &UserFolder,
    options: &ScanOptions,
    progress: &Progress,
) -> Result<WalkResult, ScanError> {
    let listed = List::of(folder, options, progress)?;
    let all: Mutex<WalkResult> = Mutex::default();
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut own = ThreadFindings {
                    folder,
                    parser: tree_sitter::Parser::new(),
                    found: WalkResult::default(),
                    all: &all,
                };
                while let Some(listed) = listed.files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if progress.is_abandoned.load(Ordering::Relaxed) {
                        return;
                    }
                    own.file(listed);
                }
            });
        }
    });
    if progress.is_abandoned.load(Ordering::Relaxed) {
        return Err(ScanError::Abandoned);
    }
    let (mut files, words, mut unread) = all.into_inner().unwrap_or_default();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    unread.extend(listed.unread);
    unread.sort();
    if let Some(more @ 1..) = unread.len().checked_sub(UNREAD_MAX) {
        unread.truncate(UNREAD_MAX);
        unread.push(format!("{more} more"));
    }
    Ok((files, words, unread))
}

fn overrides(root: &Path, options: &ScanOptions) -> Result<Override, ScanError> {
    let mut builder = OverrideBuilder::new(root);
    let bad = |pattern: &str, error: ignore::Error| ScanError::BadPattern {
        pattern: pattern.to_owned(),
        why: error.to_string(),
    };
    for pattern in &options.include {
        builder.add(pattern).map_err(|error| bad(pattern, error))?;
    }
    for pattern in &options.exclude {
        let not = format!("!{pattern}");
        builder.add(&not).map_err(|error| bad(pattern, error))?;
    }
    builder.build().map_err(|error| bad("", error))
}

/// A file or symbolic link of the tree.
struct ListedFile {
    path: RelativePath,
    shown: String,
    content: Content,
}

/// How to treat a listed file.
enum Content {
    /// Symbolic link: hash its target, do not follow it.
    Link,
    /// Regular file within the limits: read it.
    Read,
    /// Not read, because it is over a limit or its size is unknown. Holds the size in bytes.
    Bytes(u64),
}

/// Lists the files of a folder that git does not ignore.
struct List<'a> {
    root: PathBuf,
    output: Option<PathBuf>,
    overrides: Override,
    /// The user's global ignore rules.
    global: Gitignore,
    /// Rules of the enclosing folders, the innermost last.
    rules: Vec<Rules>,
    rule_bytes: u64,
    allowance: Allowance,
    progress: &'a Progress,
    files: Vec<ListedFile>,
    unread: Vec<String>,
}

/// Ignore rules of one folder.
struct Rules {
    ignored: Gitignore,
    excluded: Gitignore,
    /// Whether a repository begins here. Rules of folders outside of it do not apply.
    is_repository: bool,
}

impl<'a> List<'a> {
    fn of(
        folder: &UserFolder,
        options: &ScanOptions,
        progress: &'a Progress,
    ) -> Result<Self, ScanError> {
        let root = folder.path().to_owned();
        let mut list = Self {
            output: options.output.as_ref().map(|output| root.join(output)),
            overrides: overrides(&root, options)?,
            global: GitignoreBuilder::new(&root).build_global().0,
            rules: Vec::new(),
            rule_bytes: RULE_BYTES_MAX,
            allowance: Allowance::new(LIMITS),
            progress,
            files: Vec::new(),
            unread: Vec::new(),
            root,
        };
        list.rules_above(folder);
        list.folder(folder, &RelativePath::root());
        Ok(list)
    }

    /// If the folder is inside of a repository, loads the rules of the folders above it too.
    fn rules_above(&mut self, folder: &UserFolder) {
        let git = FileName::new(GIT).map(RelativePath::from);
        let has_git = |folder: &UserFolder| {
            let kind = git.as_ref().ok().map(|git| folder.kind(git));
            matches!(kind, Some(Ok(Some(_))))
        };
        if has_git(folder) {
            return;
        }
        let mut above = Vec::new();
        for path in self.root.ancestors().skip(1).take(LIMITS.depth_max) {
            let Ok(opened) = UserFolder::open(path) else {
                return;
            };
            let is_repository = has_git(&opened);
            above.push((opened, is_repository));
            if is_repository {
                for (folder, is_repository) in above.into_iter().rev() {
                    let rules = self.rules_of(&folder, is_repository);
                    self.rules.push(rules);
                }
                return;
            }
        }
    }

    fn folder(&mut self, folder: &UserFolder, at: &RelativePath) {
        let listing = match folder.entries(self.allowance.entries()) {
            Ok(listing) => listing,
            Err(error) => return self.unread.push(format!("{at}: {}", error.reason())),
        };
        self.allowance.take_entries(listing.entries.len());
        if listing.is_cut {
            let limit = LIMITS.entries_max;
            self.unread.push(format!(
                "{at}/: more than {limit} entries in all; the rest is left out"
            ));
        }
        let rules = self.rules_of(folder, has(&listing, GIT));
        self.rules.push(rules);
        for entry in &listing.entries {
            if self.progress.is_abandoned.load(Ordering::Relaxed) {
                break;
            }
            self.entry(folder, at.join(&entry.name), entry);
        }
        self.rules.pop();
    }

    fn entry(&mut self, folder: &UserFolder, path: RelativePath, entry: &Entry) {
        // Also skips the `.git` of nested repositories: it holds old versions of files, and remote URLs that may contain
        // passwords.
        if entry.name.as_os_str() == GIT {
            return;
        }
        let full = path
            .names()
            .iter()
            .fold(self.root.clone(), |full, name| full.join(name.as_os_str()));
        let is_folder = entry.kind == EntryKind::Folder;
        if self.output.as_ref() == Some(&full) || self.is_ignored(&full, is_folder) {
            return;
        }
        let Some(shown) = path.as_line() else {
            let why = "its name is not text, or holds control characters";
            return self.unread.push(format!("{path}: {why}"));
        };
        match entry.kind {
            EntryKind::Folder if path.names().len() > LIMITS.depth_max => {
                let limit = LIMITS.depth_max;
                self.unread
                    .push(format!("{shown}/: more than {limit} folders deep"));
            }
            EntryKind::Folder => match folder.folder(&entry.name.clone().into()) {
                Ok(below) => self.folder(&below, &path),
                Err(error) => self.unread.push(format!("{shown}: {}", error.reason())),
            },
            EntryKind::File | EntryKind::Link => {
                self.progress.files.fetch_add(1, Ordering::Relaxed);
                let content = match entry.kind {
                    EntryKind::Link => Content::Link,
                    _ => self.content(folder, &entry.name, &shown),
                };
                self.files.push(ListedFile {
                    path,
                    shown,
                    content,
                });
            }
            kind => self.unread.push(format!("{shown}: {kind}")),
        }
    }

    /// Decides whether a file is read. This happens while listing, in the order of names, so that the limits cut the same files
    /// every time.
    fn content(&mut self, folder: &UserFolder, name: &FileName, shown: &str) -> Content {
        let bytes = match folder.file_bytes(&name.clone().into()) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.unread.push(format!("{shown}: {}", error.reason()));
                return Content::Bytes(0);
            }
        };
        match self.allowance.take_file(bytes) {
            Ok(()) => Content::Read,
            Err(why) => {
                self.unread.push(format!("{shown}: {why}"));
                Content::Bytes(bytes)
            }
        }
    }

    /// Applies the rules in the order of git: the options of the caller first, then each `.gitignore` from the innermost folder
    /// outward, then `.git/info/exclude`, then the user's global rules.
    fn is_ignored(&self, path: &Path, is_folder: bool) -> bool {
        let said = self.overrides.matched(path, is_folder);
        if !said.is_none() {
            return said.is_ignore();
        }
        let mut excluded = ignore::Match::None;
        for rules in self.rules.iter().rev() {
            let matched = rules.ignored.matched(path, is_folder);
            if !matched.is_none() {
                return matched.is_ignore();
            }
            if excluded.is_none() {
                excluded = rules.excluded.matched(path, is_folder);
            }
            if rules.is_repository {
                break;
            }
        }
        if !excluded.is_none() {
            return excluded.is_ignore();
        }
        self.global.matched(path, is_folder).is_ignore()
    }

    fn rules_of(&mut self, folder: &UserFolder, is_repository: bool) -> Rules {
        let excluded = match is_repository {
            true => self.rule_file(folder, ".git/info/exclude"),
            false => Gitignore::empty(),
        };
        Rules {
            ignored: self.rule_file(folder, ".gitignore"),
            excluded,
            is_repository,
        }
    }

    fn rule_file(&mut self, folder: &UserFolder, name: &str) -> Gitignore {
        let Ok(path) = RelativePath::parse(name) else {
            return Gitignore::empty();
        };
        let text = match folder.read_if_present(&path, RULE_FILE_BYTES_MAX.min(self.rule_bytes)) {
            Ok(None) => return Gitignore::empty(),
            Ok(Some(bytes)) => bytes,
            Err(error) => {
                // `.git` may be a file that points to the repository, as in a worktree.
                if name == ".gitignore" {
                    let place = folder.path().join(name);
                    let shown = place.strip_prefix(&self.root).unwrap_or(&place);
                    self.unread.push(format!(
                        "{}: its rules do not count: {}",
                        shown.display(),
                        error.reason()
                    ));
                }
                return Gitignore::empty();
            }
        };
        self.rule_bytes -= text.len() as u64;
        let mut builder = GitignoreBuilder::new(folder.path());
        for line in String::from_utf8_lossy(&text).lines() {
            // An invalid pattern matches nothing, as in git.
            let _ = builder.add_line(None, line);
        }
        builder.build().unwrap_or_else(|_| Gitignore::empty())
    }
}

fn has(listing: &Listing, name: &str) -> bool {
    let mut entries = listing.entries.iter();
    entries.any(|entry| entry.name.as_os_str() == name)
}

/// Findings of one thread, merged into `all` on drop.
struct ThreadFindings<'a> {
    folder: &'a UserFolder,
    parser: tree_sitter::Parser,
    found: WalkResult,
    all: &'a Mutex<WalkResult>,
}

impl ThreadFindings<'_> {
    fn file(&mut self, listed: &ListedFile) {
        let mut file = SourceFile {
            path: listed.shown.clone(),
            ..SourceFile::default()
        };
        match listed.content {
            // A link may lead anywhere, so it is recorded but not followed.
            Content::Link => {
                let target = self.folder.link_target(&listed.path).unwrap_or_default();
                file.hash = xxhash_rust::xxh3::xxh3_128(&target);
            }
            Content::Bytes(bytes) => {
                file.bytes = bytes;
                file.hash = xxhash_rust::xxh3::xxh3_128(format!("{bytes} bytes").as_bytes());
            }
            Content::Read => match self.folder.read(&listed.path, LIMITS.file_bytes_max) {
                Ok(bytes) => self.content(&mut file, &bytes),
                Err(error) => self
                    .found
                    .2
                    .push(format!("{}: {}", file.path, error.reason())),
            },
        }
        self.found.0.push(file);
    }

    fn content(&mut self, file: &mut SourceFile, bytes: &[u8]) {
        file.bytes = bytes.len() as u64;
        file.hash = xxhash_rust::xxh3::xxh3_128(bytes);
        file.language = Language::of(file.name());
        let head = &bytes[..bytes.len().min(HEAD_BYTES)];
        if head.contains(&0) {
            return;
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            return;
        };
        file.lines = Some(u32::try_from(text.lines().count()).unwrap_or(u32::MAX));
        for part in file.path.split(['/', '.']) {
            self.found.1.insert(word_hash(part));
        }
        let Some(language) = file.language else {
            return;
        };
        if bytes.len() > PARSED_BYTES_MAX {
            file.is_partial = true;
            return;
        }
        if language.is_settings() {
            parse::settings(text, &mut self.found.1);
        }
        let name = file.name().to_owned();
        let words = &mut self.found.1;
        if let Some(found) = parse::source(&mut self.parser, language, &name, text, words) {
            file.symbols = found.symbols;
            file.imports = found.imports;
            file.marks = found.marks;
            file.is_entry = found.is_entry;
            file.is_partial = found.is_partial;
        }
    }
}

impl Drop for ThreadFindings<'_> {
    fn drop(&mut self) {
        let mut all = self
            .all
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        all.0.append(&mut self.found.0);
        all.1.extend(self.found.1.drain());
        all.2.append(&mut self.found.2);
    }
}

/// Maximum number of unread paths that are listed.
const UNREAD_MAX: usize = 1_000;

/// Folder or file that marks a repository.
const GIT: &str = ".git";

/// Number of bytes to search for NUL: like git, the scan treats a file with a NUL byte near its start as binary.
const HEAD_BYTES: usize = 8_000;

/// Maximum size of a parsed file. Larger files are most likely generated.
const PARSED_BYTES_MAX: usize = 2_000_000;

/// Maximum size of one `.gitignore`, and of all of them together. Every line becomes a pattern that is matched against every
/// path.
const RULE_FILE_BYTES_MAX: u64 = 64 << 10;
const RULE_BYTES_MAX: u64 = 4 << 20;
