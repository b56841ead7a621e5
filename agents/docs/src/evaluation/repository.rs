//! The repositories of the set, and what a good documentation of each one names.

use std::path::Path;

use anyhow::Context;
use archie_agent::user_folder::{Access, RelativePath, UserFolder};
use serde::Deserialize;

use super::blocks::mentions;

/// A small repository, and what its documentation must and must not name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleRepository {
    /// Name of the project.
    pub name: String,
    /// Language of its code, or `mixed`.
    pub language: String,
    /// Types and functions that matter.
    pub symbols: Vec<ExpectedSymbol>,
    /// Which part uses which.
    pub relations: Vec<ExpectedRelation>,
    /// Where the programs begin.
    pub entry_points: Vec<ExpectedEntry>,
    /// Plausible names that the repository does not have.
    pub traps: Vec<String>,
    /// All files.
    #[serde(skip)]
    pub files: Vec<SampleFile>,
}

/// A type or function that a documentation names.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedSymbol {
    /// Its name.
    pub name: String,
    /// File that defines it.
    pub file: String,
}

/// Two parts of which one uses the other. Each end has several names: a type, a function, a file or a folder.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedRelation {
    /// Names of the part that uses the other.
    pub from: Vec<String>,
    /// Names of the part that is used.
    pub to: Vec<String>,
}

/// A function where a program, a command or a request begins.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedEntry {
    /// Its name.
    pub name: String,
    /// File that defines it.
    pub file: String,
    /// What a documentation may call it. `main` alone is also an ordinary word.
    pub known_as: Vec<String>,
}

/// One file of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleFile {
    /// Path below the root.
    pub path: String,
    /// Content.
    pub text: String,
}

impl SampleRepository {
    /// Returns whether a name is in a path or in a file of the repository.
    pub fn has(&self, name: &str) -> bool {
        let mut files = self.files.iter();
        files.any(|file| mentions(&file.path, name) || mentions(&file.text, name))
    }

    /// Writes the files into a folder, which need not exist.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let folder = UserFolder::create(folder, Access::Private)?;
        for file in &self.files {
            let path = RelativePath::parse(&file.path)?;
            if let Some((above, _)) = path.split_last() {
                folder.create_folder(&above, Access::Private)?;
            }
            folder.write(&path, file.text.as_bytes(), Access::Private)?;
        }
        Ok(())
    }
}

/// Returns the repositories of the set.
pub fn repositories() -> anyhow::Result<Vec<SampleRepository>> {
    let mut all: Vec<SampleRepository> =
        serde_json::from_str(include_str!("../../evaluation/expected.json"))?;
    for repository in &mut all {
        let text = TEXTS.iter().find(|(name, _)| *name == repository.name);
        let (_, text) = text.with_context(|| format!("`{}` has no files", repository.name))?;
        repository.files = files_of(text);
    }
    Ok(all)
}

/// Reads the files of a repository: each begins after a line with `=== ` and its path.
fn files_of(text: &str) -> Vec<SampleFile> {
    let mut files: Vec<SampleFile> = Vec::new();
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("=== ") {
            files.push(SampleFile {
                path: path.to_owned(),
                text: String::new(),
            });
        } else if let Some(file) = files.last_mut() {
            file.text.push_str(line);
            file.text.push('\n');
        }
    }
    files
}

const TEXTS: [(&str, &str); 5] = [
    ("tidewatch", include_str!("../../evaluation/tidewatch.txt")),
    ("seedshelf", include_str!("../../evaluation/seedshelf.txt")),
    ("queuebell", include_str!("../../evaluation/queuebell.txt")),
    ("linkfold", include_str!("../../evaluation/linkfold.txt")),
    ("birdcount", include_str!("../../evaluation/birdcount.txt")),
];
