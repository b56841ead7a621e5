//! Ranks calls by the words that they share with a question. No model is involved.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::catalogue::Api;

/// A call, and how well it matches a question.
#[derive(Debug, Clone)]
pub(super) struct Ranked<'a> {
    pub(super) api: &'a Api,
    pub(super) score: f64,
}

/// Ranks the calls, the best first. Leaves out calls that share no word with the question.
pub(super) fn rank<'a>(query: &str, apis: &[&'a Api]) -> Vec<Ranked<'a>> {
    let asked = QueryWords::new(query);
    let texts: Vec<Text> = apis.iter().map(|api| Text::of(api)).collect();
    let rarity = Rarity::of(&texts);
    let mut ranked: Vec<Ranked<'_>> = apis
        .iter()
        .zip(&texts)
        .map(|(api, text)| Ranked {
            api,
            score: asked.score(api, text, &rarity),
        })
        .filter(|ranked| ranked.score > 0.0)
        .collect();
    // The sort is stable: among equals, the first in the document wins.
    ranked.sort_by(|one, other| other.score.total_cmp(&one.score));
    ranked
}

/// Returns whether the first call is so far ahead that no model has to choose.
pub(super) fn is_clear(ranked: &[Ranked<'_>]) -> bool {
    match ranked {
        [] => false,
        [_] => true,
        [first, second, ..] => first.score >= second.score * CLEAR,
    }
}

/// Returns whether a question asks to change something.
pub(super) fn wants_change(query: &str) -> bool {
    QueryWords::new(query)
        .method
        .is_some_and(|method| method != "GET")
}

struct QueryWords {
    words: BTreeSet<String>,
    /// HTTP method that the verb of the question implies.
    method: Option<&'static str>,
    /// Number of ids in the question.
    ids: usize,
    is_plural: bool,
}

impl QueryWords {
    fn new(query: &str) -> Self {
        let said = tokens(query);
        let method = said
            .iter()
            .take(VERB_WITHIN)
            .find_map(|word| method_of(word));
        let is_plural = said
            .iter()
            .any(|word| word == "all" || word == "list" || word == "every")
            || said
                .iter()
                .any(|word| word.len() > 3 && word.ends_with('s') && !word.ends_with("ss"));
        // `owner/repository` counts as two ids.
        let is_pair = |word: &&str| {
            word.split_once('/')
                .is_some_and(|(one, two)| !one.is_empty() && !two.is_empty())
        };
        let pairs: Vec<&str> = query.split_whitespace().filter(is_pair).collect();
        let ids = ids(query);
        // The name of a thing says nothing about what to do with it.
        let mut unnamed = query.to_owned();
        for name in ids.iter().map(String::as_str).chain(pairs.iter().copied()) {
            unnamed = unnamed.replace(name, " ");
        }
        let words = tokens(&unnamed)
            .iter()
            .map(|word| stem(word))
            .filter(|word| !STOP.contains(&word.as_str()))
            .collect();
        Self {
            words,
            method,
            ids: ids.len() + 2 * pairs.len(),
            is_plural,
        }
    }

    fn score(&self, api: &Api, text: &Text, rarity: &Rarity) -> f64 {
        let found = |part: &BTreeSet<String>, weight: f64| -> f64 {
            self.words
                .intersection(part)
                .map(|word| weight * rarity.weight(word))
                .sum()
        };
        let in_title = found(&text.title, 3.0);
        let mut score = in_title
            + found(&text.path, 2.0)
            + found(&text.category, 1.5)
            + found(&text.description, 0.5);
        if score == 0.0 {
            return 0.0;
        }
        // Of two calls that match, prefer the one with fewer words that the question does not have.
        let unsaid = |part: &BTreeSet<String>| {
            let other = part.difference(&self.words);
            other.filter(|word| !STOP.contains(&word.as_str())).count()
        };
        score /= 1.0 + UNSAID * (unsaid(&text.title) + unsaid(&text.path)) as f64;
        score *= match (self.method, api.method.as_str()) {
            (Some(wanted), method) if wanted == method => 1.3,
            (Some("PUT"), "PATCH" | "POST") | (Some("POST"), "PUT") => 0.9,
            (Some("GET") | None, "GET") => 1.1,
            // A question that does not ask for a change should not cause one.
            (Some("GET") | None, _) => 0.3,
            _ => 0.35,
        };
        // A call with more path parameters would have to ask for values; one with fewer would ignore some.
        score *= match text.path_parameters.cmp(&self.ids) {
            Ordering::Greater => 0.8,
            Ordering::Less => 0.7,
            Ordering::Equal if self.ids > 0 => 1.25,
            Ordering::Equal => 1.0,
        };
        if self.is_plural && !text.ends_with_parameter {
            score *= 1.1;
        }
        score.max(0.0)
    }
}

struct Text {
    title: BTreeSet<String>,
    path: BTreeSet<String>,
    category: BTreeSet<String>,
    description: BTreeSet<String>,
    path_parameters: usize,
    ends_with_parameter: bool,
}

impl Text {
    fn of(api: &Api) -> Self {
        let segments: Vec<&str> = api
            .api_url
            .split('/')
            .filter(|segment| !segment.is_empty())
            .collect();
        let fixed: Vec<&str> = segments
            .iter()
            .copied()
            .filter(|segment| !segment.starts_with('{'))
            .collect();
        Self {
            title: stems(&format!("{} {}", api.tool_name, api.id)),
            path: stems(&fixed.join(" ")),
            category: stems(&api.category_name),
            description: stems(&api.api_description),
            path_parameters: segments.len() - fixed.len(),
            ends_with_parameter: segments.last().is_some_and(|last| last.starts_with('{')),
        }
    }
}

/// How rare a word is among the calls. A word that all calls share tells nothing.
struct Rarity {
    counts: BTreeMap<String, usize>,
    of: f64,
}

impl Rarity {
    fn of(texts: &[Text]) -> Self {
        let mut counts = BTreeMap::new();
        for text in texts {
            let words: BTreeSet<&String> = text
                .title
                .iter()
                .chain(&text.path)
                .chain(&text.category)
                .collect();
            for word in words {
                *counts.entry(word.clone()).or_insert(0) += 1;
            }
        }
        Self {
            counts,
            of: texts.len() as f64,
        }
    }

    fn weight(&self, word: &str) -> f64 {
        let seen = self.counts.get(word).copied().unwrap_or(0) as f64;
        ((self.of + 1.0) / (seen + 0.5)).ln().clamp(0.1, RARE)
    }
}

/// Splits a text into lower-case words. Also splits `camelCase`.
pub(super) fn tokens(text: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(text.len() + 8);
    let mut was_small = false;
    for c in text.chars() {
        if c.is_uppercase() && was_small {
            spaced.push(' ');
        }
        was_small = c.is_lowercase();
        spaced.push(if c.is_alphanumeric() || c == '\'' {
            c
        } else {
            ' '
        });
    }
    let words = spaced.split_whitespace();
    words
        .map(|word| {
            word.trim_matches('\'')
                .trim_end_matches("'s")
                .to_lowercase()
        })
        .filter(|word| !word.is_empty())
        .collect()
}

fn stems(text: &str) -> BTreeSet<String> {
    tokens(text).iter().map(|word| stem(word)).collect()
}

/// Returns the stem of a word, with one stem for all synonyms.
fn stem(word: &str) -> String {
    let same = SAME
        .iter()
        .find(|(_, others)| others.contains(&word))
        .map(|(one, _)| *one);
    if let Some(same) = same {
        return same.to_owned();
    }
    let without = |ending: &str| {
        word.strip_suffix(ending)
            .filter(|rest| rest.len() > 2)
            .map(str::to_owned)
    };
    let ends = |ending: &str, put: &str| without(ending).map(|rest| rest + put);
    let plain = ends("ies", "y")
        .or_else(|| ends("sses", "ss"))
        .or_else(|| ends("xes", "x"))
        .or_else(|| ends("ches", "ch"))
        .or_else(|| ends("ings", ""))
        .or_else(|| ends("ing", ""))
        .or_else(|| {
            if word.ends_with("ss") || word.ends_with("us") {
                None
            } else {
                without("s")
            }
        })
        .or_else(|| ends("ied", "y"))
        .or_else(|| without("ed"))
        .unwrap_or_else(|| word.to_owned());
    plain
        .strip_suffix('e')
        .filter(|rest| rest.len() > 3)
        .map_or(plain.clone(), str::to_owned)
}

/// Returns the HTTP method that a verb implies.
fn method_of(word: &str) -> Option<&'static str> {
    let verbs: [(&str, &[&str]); 4] = [
        (
            "GET",
            &[
                "list", "show", "get", "find", "search", "fetch", "read", "retrieve", "what",
                "which", "how", "who", "when", "where", "view", "look", "display", "count",
            ],
        ),
        (
            "DELETE",
            &[
                "delete",
                "remove",
                "drop",
                "erase",
                "destroy",
                "unfollow",
                "unstar",
                "unlink",
                "unfavorite",
                "cancel",
                "detach",
                "unlock",
            ],
        ),
        (
            "PUT",
            &[
                "update", "change", "edit", "modify", "rename", "replace", "set", "star", "follow",
                "mark", "lock", "reorder",
            ],
        ),
        (
            "POST",
            &[
                "create", "add", "new", "make", "post", "send", "start", "submit", "register",
                "upload", "open", "invite", "refund", "capture", "confirm", "approve", "merge",
                "fork", "close", "pay",
            ],
        ),
    ];
    verbs
        .iter()
        .find(|(_, words)| words.contains(&word))
        .map(|(method, _)| *method)
}

/// Returns the words that look like ids: quoted text, and words with digits, underscores or mixed case.
pub(super) fn ids(query: &str) -> Vec<String> {
    let mut found = quoted(query);
    for word in query.split_whitespace() {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
        let is_id = word.chars().any(|c| c.is_ascii_digit())
            && word
                .chars()
                .all(|c| c.is_alphanumeric() || "_-.".contains(c));
        let is_mixed = word.len() > 4
            && word.chars().skip(1).any(char::is_uppercase)
            && word.chars().any(char::is_lowercase)
            && word.chars().all(char::is_alphanumeric);
        let is_dashed = word.contains('_') && word.chars().all(|c| c.is_alphanumeric() || c == '_');
        if (is_id || is_mixed || is_dashed) && !found.iter().any(|other| other == word) {
            found.push(word.to_owned());
        }
    }
    found
}

/// Returns the quoted parts of a question.
pub(super) fn quoted(query: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (open, close) in [('"', '"'), ('“', '”'), ('‘', '’'), ('`', '`')] {
        let mut rest = query;
        while let Some((_, after)) = rest.split_once(open) {
            let Some((inner, further)) = after.split_once(close) else {
                break;
            };
            if !inner.trim().is_empty() {
                found.push(inner.trim().to_owned());
            }
            rest = further;
        }
    }
    found
}

const CLEAR: f64 = 1.35;
/// Maximum weight of a word. A very rare one may be a name that occurs in a call by chance.
const RARE: f64 = 3.2;
/// Penalty for each word of a call that the question does not have.
const UNSAID: f64 = 0.12;
/// Number of words at the beginning of a question in which to look for its verb.
const VERB_WITHIN: usize = 4;
/// Synonyms in requests, by their common stem.
const SAME: [(&str, &[&str]); 9] = [
    (
        "list",
        &[
            "list", "all", "every", "show", "get", "fetch", "retrieve", "read", "view", "display",
            "return", "returns",
        ],
    ),
    (
        "delet",
        &[
            "delete", "remove", "erase", "destroy", "drop", "removes", "deletes",
        ],
    ),
    (
        "creat",
        &[
            "create", "add", "new", "make", "creates", "creating", "adds", "post",
        ],
    ),
    (
        "updat",
        &[
            "update", "change", "edit", "modify", "set", "replace", "updates", "changes",
        ],
    ),
    ("search", &["search", "find", "look", "searches"]),
    (
        "song",
        &["song", "songs", "track", "tracks", "tune", "tunes"],
    ),
    ("repo", &["repo", "repos", "repository", "repositories"]),
    ("pull", &["pull", "pulls", "pr", "prs"]),
    (
        "organization",
        &[
            "organization",
            "organizations",
            "org",
            "orgs",
            "organisation",
            "organisations",
        ],
    ),
];
const STOP: [&str; 41] = [
    "exist", "a", "an", "the", "of", "for", "to", "in", "on", "by", "with", "and", "or", "is",
    "are", "do", "doe", "does", "me", "my", "i", "it", "its", "this", "that", "what", "which",
    "who", "how", "please", "from", "at", "all", "v1", "v2", "v3", "api", "list", "be", "was",
    "can",
];
