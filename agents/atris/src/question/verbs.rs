//! The verb of a question, and the HTTP method that it implies.

use super::Word;

/// Returns the number of polite words in front: `please`, `can you`, `I want to`.
pub(super) fn polite_words(words: &[Word]) -> usize {
    let mut at = 0;
    while words.len() > at + 1
        && !words[at].is_quoted
        && POLITE.contains(&words[at].lower.as_str())
        // `like track 5` is an order; `I would like to` is polite.
        && (at > 0 || words[at].lower != "like")
    {
        at += 1;
    }
    at
}

/// Returns the HTTP method that the words imply.
pub(super) fn method(words: &[Word]) -> Option<&'static str> {
    let plain = |at: usize| {
        words
            .get(at)
            .filter(|word| !word.is_quoted)
            .map_or("", |word| word.lower.as_str())
    };
    if let Some((_, method)) = NOUN_OR_VERB.iter().find(|(verb, _)| *verb == plain(0))
        && is_verb(words)
    {
        return Some(method);
    }
    let verb = (0..VERB_WITHIN).find_map(|at| {
        let found = VERBS.iter().find(|(_, verbs)| verbs.contains(&plain(at)));
        found.map(|(method, _)| *method)
    });
    // A statement, such as `pet 12 got a rabies vaccination`, is to be recorded.
    let stated = || {
        words
            .iter()
            .any(|word| !word.is_quoted && STATED.contains(&word.lower.as_str()))
            .then_some("POST")
    };
    verb.or_else(stated)
}

/// Returns whether the first word, which may be a noun, is a verb here: `book patient 5`, `open an issue`, but not
/// `open issues` or `order 7`.
fn is_verb(words: &[Word]) -> bool {
    let Some(next) = words.get(1) else {
        return false;
    };
    if next.is_quoted || ARTICLES.contains(&next.lower.as_str()) {
        return true;
    }
    let is_value = next.lower.chars().any(|c| c.is_ascii_digit()) && !next.lower.contains('/');
    if is_value {
        // `order 2 of pet 8` orders; `order 7` is a thing.
        return words
            .get(2)
            .is_some_and(|word| ["of", "x", "times", "pieces"].contains(&word.lower.as_str()));
    }
    let is_plural =
        next.lower.len() > 3 && next.lower.ends_with('s') && !next.lower.ends_with("ss");
    let is_adjective = words
        .get(2)
        .is_some_and(|word| word.lower.len() > 3 && word.lower.ends_with('s'));
    !is_plural && !is_adjective
}

/// Number of words at the beginning of a question in which to look for its verb.
const VERB_WITHIN: usize = 4;

const POLITE: [&str; 20] = [
    "please", "can", "could", "would", "you", "i", "want", "need", "like", "to", "let", "us",
    "lets", "let's", "i'd", "we", "must", "should", "hi", "hello",
];

const ARTICLES: [&str; 10] = [
    "a", "an", "the", "this", "that", "my", "our", "on", "it", "for",
];

/// Words that are as often a noun or an adjective.
const NOUN_OR_VERB: [(&str, &str); 17] = [
    ("book", "POST"),
    ("order", "POST"),
    ("comment", "POST"),
    ("open", "POST"),
    ("post", "POST"),
    ("fork", "POST"),
    ("refund", "POST"),
    ("schedule", "POST"),
    ("invite", "POST"),
    ("archive", "POST"),
    ("star", "PUT"),
    ("close", "PUT"),
    ("lock", "PUT"),
    ("mark", "PUT"),
    ("follow", "PUT"),
    ("like", "PUT"),
    ("set", "PUT"),
];

const VERBS: [(&str, &[&str]); 4] = [
    (
        "GET",
        &[
            "list", "show", "get", "find", "search", "fetch", "read", "retrieve", "what", "which",
            "how", "who", "when", "where", "view", "look", "display", "count", "is", "are", "does",
            "do", "has", "have", "give", "tell",
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
            "update",
            "change",
            "edit",
            "modify",
            "rename",
            "replace",
            "reorder",
            "move",
            "reschedule",
            "postpone",
        ],
    ),
    (
        "POST",
        &[
            "create",
            "add",
            "new",
            "make",
            "send",
            "start",
            "submit",
            "register",
            "upload",
            "capture",
            "confirm",
            "approve",
            "merge",
            "pay",
            "place",
            "buy",
            "reserve",
            "record",
            "prescribe",
            "close",
            "accept",
            "duplicate",
        ],
    ),
];

const STATED: [&str; 7] = [
    "got", "received", "paid", "bought", "sold", "arrived", "took",
];

/// Nouns after a number that measure something. They do not count items.
pub(super) const UNITS: [&str; 12] = [
    "days", "hours", "minutes", "seconds", "weeks", "months", "years", "nights", "euros",
    "dollars", "times", "percents",
];

/// Words before a value that do not name it.
pub(super) const NOT_NOUNS: [&str; 44] = [
    "a", "an", "the", "of", "for", "to", "in", "on", "by", "with", "and", "or", "is", "are",
    "from", "at", "as", "that", "this", "my", "me", "it", "all", "please", "have", "has", "who",
    "which", "into", "show", "get", "list", "delete", "remove", "first", "last", "top", "newest",
    "latest", "since", "until", "after", "before", "between",
];
