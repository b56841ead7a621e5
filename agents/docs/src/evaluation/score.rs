//! Scores what a documentation says about a repository.

use serde::Serialize;

use super::blocks::{TextBlock, blocks, mentions};
use super::names::judged_names;
use super::repository::{ExpectedEntry, ExpectedRelation, SampleRepository};

/// A page, or the reply to a plain prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageText {
    /// Markdown of the page.
    pub text: String,
    /// Whether the page is whole: neither cut off nor degraded.
    pub is_complete: bool,
}

/// How many of some things were found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FoundCount {
    /// Number of those that were found.
    pub found: usize,
    /// Number of all.
    pub of: usize,
}

impl FoundCount {
    /// Returns whether all were found.
    pub fn is_full(self) -> bool {
        self.found == self.of
    }
}

/// Score of the documentation of one repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RepositoryScore {
    /// Name of the repository.
    pub name: String,
    /// Expected symbols that the pages name.
    pub symbols: FoundCount,
    /// Expected relations whose two ends a page names together.
    pub relations: FoundCount,
    /// Expected entry points that the pages name as such.
    pub entry_points: FoundCount,
    /// Different names in the code spans of the pages, and how many of them the repository has.
    pub names: FoundCount,
    /// Pages that are whole.
    pub pages: FoundCount,
    /// What the pages leave out.
    pub missing: Vec<String>,
    /// Names that the repository does not have.
    pub invented: Vec<String>,
    /// Why there are no pages. Absent if there are.
    pub failed: Option<String>,
}

impl RepositoryScore {
    /// Returns whether nothing is missing, invented or cut off.
    pub fn is_full(&self) -> bool {
        self.missing.is_empty()
            && self.invented.is_empty()
            && self.pages.is_full()
            && self.failed.is_none()
    }
}

/// Scores the pages about a repository. Pages that are expected and not there are not whole.
pub fn score(
    repository: &SampleRepository,
    pages: &[PageText],
    pages_expected: usize,
) -> RepositoryScore {
    let texts: Vec<&str> = pages.iter().map(|page| page.text.as_str()).collect();
    // Some models escape underscores where they need not.
    let text = texts.join("\n\n").replace("\\_", "_");
    let blocks = blocks(&text);
    let mut missing = Vec::new();
    let mut found = |is_found: bool, what: String| {
        if !is_found {
            missing.push(what);
        }
        is_found
    };
    let symbols = count(&repository.symbols, |symbol| {
        found(mentions(&text, &symbol.name), symbol.name.clone())
    });
    let relations = count(&repository.relations, |relation| {
        let what = format!("{} -> {}", relation.from[0], relation.to[0]);
        found(blocks.iter().any(|block| relates(block, relation)), what)
    });
    let entry_points = count(&repository.entry_points, |entry| {
        let what = format!("entry {} in {}", entry.name, entry.file);
        found(blocks.iter().any(|block| enters(block, entry)), what)
    });
    let names = judged_names(&text, repository);
    RepositoryScore {
        name: repository.name.clone(),
        symbols,
        relations,
        entry_points,
        names: FoundCount {
            found: names.values().filter(|exists| **exists).count(),
            of: names.len(),
        },
        pages: FoundCount {
            found: pages.iter().filter(|page| page.is_complete).count(),
            of: pages_expected,
        },
        missing,
        invented: names
            .into_iter()
            .filter(|(_, exists)| !exists)
            .map(|(name, _)| name)
            .collect(),
        failed: None,
    }
}

fn count<T>(expected: &[T], mut is_found: impl FnMut(&T) -> bool) -> FoundCount {
    FoundCount {
        found: expected.iter().filter(|one| is_found(one)).count(),
        of: expected.len(),
    }
}

fn relates(block: &TextBlock, relation: &ExpectedRelation) -> bool {
    let names_one = |names: &[String]| names.iter().any(|name| mentions(&block.text, name));
    names_one(&relation.from) && names_one(&relation.to)
}

/// Returns whether a block names an entry point, and it or a heading above it says that something begins there.
fn enters(block: &TextBlock, entry: &ExpectedEntry) -> bool {
    let mut names = entry.known_as.iter();
    if !names.any(|name| mentions(&block.text, name)) {
        return false;
    }
    // `startServer` alone does not say that something starts.
    let mut said = format!("{} {}", block.headings, block.text);
    for name in &entry.known_as {
        said = said.replace(name.as_str(), "");
    }
    let said = said.to_lowercase();
    ENTRY_WORDS.iter().any(|word| said.contains(word))
}

/// Beginnings of words that tell of an entry point, in lower case.
const ENTRY_WORDS: [&str; 9] = [
    "entry", "start", "begin", "launch", "program", "command", "handl", "invok", " serve",
];
