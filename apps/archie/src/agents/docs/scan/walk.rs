//! Which files there are, and what is in them, on all cores.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder, WalkState};

use super::{Language, Progress, ScanError, ScanOptions, SourceFile, parse, word_hash};

/// The files, the words of code and settings, and what could not be read.
type Walked = (Vec<SourceFile>, HashSet<u64>, Vec<String>);

pub(super) fn files(
    root: &Path,
    options: &ScanOptions,
    progress: &Progress,
) -> Result<Walked, ScanError> {
    if !root.is_dir() {
        return Err(ScanError::NoFolder(root.display().to_string()));
    }
    let output = options.output.as_ref().map(|output| root.join(output));
    let walk = WalkBuilder::new(root)
        .hidden(false)
        .ignore(false)
        // An archive that was unpacked has no `.git`, but its authors said what does not belong to it.
        .require_git(false)
        .overrides(overrides(root, options)?)
        .filter_entry(move |entry| {
            let is_git = entry.depth() == 1 && entry.file_name() == ".git";
            let is_output = entry.depth() > 0
                && output
                    .as_deref()
                    .is_some_and(|output| entry.path() == output);
            !is_git && !is_output
        })
        .threads(std::thread::available_parallelism().map_or(2, usize::from))
        .build_parallel();
    let all: Mutex<Walked> = Mutex::default();
    walk.run(|| {
        let mut own = Own {
            root,
            progress,
            parser: tree_sitter::Parser::new(),
            found: Walked::default(),
            all: &all,
        };
        Box::new(move |entry| own.take(entry))
    });
    if progress.is_abandoned.load(Ordering::Relaxed) {
        return Err(ScanError::Abandoned);
    }
    let (mut files, words, mut unread) = all.into_inner().unwrap_or_default();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    unread.sort();
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

/// What one thread has found; handed in when it ends.
struct Own<'a> {
    root: &'a Path,
    progress: &'a Progress,
    parser: tree_sitter::Parser,
    found: Walked,
    all: &'a Mutex<Walked>,
}

impl Own<'_> {
    fn take(&mut self, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        if self.progress.is_abandoned.load(Ordering::Relaxed) {
            return WalkState::Quit;
        }
        match entry {
            Ok(entry) => {
                if entry.file_type().is_some_and(|kind| !kind.is_dir()) {
                    self.file(&entry);
                }
            }
            Err(error) => self.found.2.push(error.to_string()),
        }
        WalkState::Continue
    }

    fn file(&mut self, entry: &DirEntry) {
        let below = entry.path().strip_prefix(self.root).unwrap_or(entry.path());
        let Some(path) = below.to_str().map(|path| path.replace('\\', "/")) else {
            self.found
                .2
                .push(format!("{}: its name is not text", below.display()));
            return;
        };
        self.progress.files.fetch_add(1, Ordering::Relaxed);
        let mut file = SourceFile {
            path,
            ..SourceFile::default()
        };
        // A link is named and not followed: it may lead anywhere.
        if entry.path_is_symlink() {
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            file.hash = xxhash_rust::xxh3::xxh3_128(target.as_os_str().as_encoded_bytes());
            self.found.0.push(file);
            return;
        }
        match std::fs::read(entry.path()) {
            Ok(bytes) => self.content(&mut file, &bytes),
            Err(error) => self.found.2.push(format!("{}: {error}", file.path)),
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

impl Drop for Own<'_> {
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

/// Whether a file is text is told by its beginning, as git does.
const HEAD_BYTES: usize = 8_000;

/// What is larger was written by a machine.
const PARSED_BYTES_MAX: usize = 2_000_000;
