//! Ranks files and definitions by how much of the project refers to them: PageRank over the graph in which a file points to
//! the files that define what it names or imports.

use std::collections::BTreeMap;

use super::MappedFile;

/// Ranks of the files, and of the definitions in each. The ranks of the files add up to 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Ranks {
    pub(super) files: Vec<f64>,
    pub(super) items: Vec<Vec<f64>>,
}

/// One name that a file uses and another file defines.
struct Reference<'a> {
    to: usize,
    /// Definitions of that name in the other file.
    items: &'a [usize],
    weight: f64,
}

/// Ranks the files. `imports` has the pairs of files of which the first imports the second; `favored` says how likely a reader
/// is to begin with each file.
pub(super) fn rank(files: &[MappedFile], imports: &[(usize, usize)], favored: &[f64]) -> Ranks {
    let defined = definitions(files);
    let references = references(files, imports, &defined);
    let out: Vec<f64> = references
        .iter()
        .map(|of_file| of_file.iter().map(|reference| reference.weight).sum())
        .collect();
    let total: f64 = favored.iter().sum();
    let start: Vec<f64> = match total > 0.0 {
        true => favored.iter().map(|share| share / total).collect(),
        false => Vec::new(),
    };
    let mut ranks = start.clone();
    for _ in 0..ROUNDS {
        // A file that refers to nothing sends its reader back to a start.
        let idle: f64 = (0..ranks.len())
            .filter(|at| out[*at] <= 0.0)
            .map(|at| ranks[at])
            .sum();
        let mut next: Vec<f64> = start
            .iter()
            .map(|share| share * (1.0 - DAMPING + DAMPING * idle))
            .collect();
        for (from, of_file) in references.iter().enumerate() {
            for reference in of_file {
                next[reference.to] += DAMPING * ranks[from] * reference.weight / out[from];
            }
        }
        ranks = next;
    }
    let items = item_ranks(files, &references, &out, &ranks);
    Ranks {
        files: ranks,
        items,
    }
}

/// A definition gets what flows over its name, and a little of its file, so that those which no other file names are in order,
/// too.
fn item_ranks(
    files: &[MappedFile],
    references: &[Vec<Reference<'_>>],
    out: &[f64],
    ranks: &[f64],
) -> Vec<Vec<f64>> {
    let mut items: Vec<Vec<f64>> = files
        .iter()
        .zip(ranks)
        .map(|(file, rank)| {
            let count = file.outline.items.len().max(1) as f64;
            vec![rank * OWN_SHARE / count; file.outline.items.len()]
        })
        .collect();
    for (from, of_file) in references.iter().enumerate() {
        for reference in of_file
            .iter()
            .filter(|reference| !reference.items.is_empty())
        {
            let share = ranks[from] * reference.weight / out[from] / reference.items.len() as f64;
            for item in reference.items {
                items[reference.to][*item] += share;
            }
        }
    }
    items
}

/// Definitions outside of tests: by name, then by file.
type Definitions<'a> = BTreeMap<&'a str, BTreeMap<usize, Vec<usize>>>;

fn definitions(files: &[MappedFile]) -> Definitions<'_> {
    let mut defined = Definitions::new();
    for (at, file) in files.iter().enumerate().filter(|(_, file)| !file.is_test) {
        for (item, definition) in file.outline.items.iter().enumerate() {
            let places = defined.entry(definition.name.as_str()).or_default();
            places.entry(at).or_default().push(item);
        }
    }
    defined
}

fn references<'a>(
    files: &[MappedFile],
    imports: &[(usize, usize)],
    defined: &'a Definitions<'_>,
) -> Vec<Vec<Reference<'a>>> {
    let mut found: Vec<Vec<Reference<'a>>> = Vec::new();
    for (at, file) in files.iter().enumerate() {
        let mut of_file = Vec::new();
        for (name, count) in &file.outline.names {
            let Some(places) = defined.get(name.as_str()) else {
                continue;
            };
            // A name that is defined all over the project, such as `new`, says little about where it leads.
            if places.len() > PLACES_MAX || places.contains_key(&at) {
                continue;
            }
            let weight = f64::from(*count).sqrt() * telling(name) / places.len() as f64;
            let weight = if file.is_test {
                weight * TEST_SHARE
            } else {
                weight
            };
            of_file.extend(places.iter().map(|(to, items)| Reference {
                to: *to,
                items,
                weight,
            }));
        }
        found.push(of_file);
    }
    for (from, to) in imports.iter().filter(|(from, to)| from != to) {
        found[*from].push(Reference {
            to: *to,
            items: &[],
            weight: IMPORT_WEIGHT,
        });
    }
    found
}

/// Returns how telling a name is: long ones and those of several words are seldom used by accident.
fn telling(name: &str) -> f64 {
    let inner = name.trim_matches('_');
    let has_words = inner.contains('_') || inner.chars().skip(1).any(char::is_uppercase);
    match (name.starts_with('_'), has_words, inner.len()) {
        (true, _, _) => 0.2,
        (_, _, 0..=2) => 0.1,
        (_, true, 8..) => 4.0,
        (_, _, 6..) => 2.0,
        _ => 1.0,
    }
}

/// Chance that a reader goes on to a file that the current one refers to.
const DAMPING: f64 = 0.85;
const ROUNDS: usize = 40;
const PLACES_MAX: usize = 8;
const IMPORT_WEIGHT: f64 = 2.0;
const TEST_SHARE: f64 = 0.3;
/// Share of a file's rank that its definitions get whether or not another file names them.
const OWN_SHARE: f64 = 0.2;
