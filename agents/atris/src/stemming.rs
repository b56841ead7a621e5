//! Words of a text, and their stems. A stem joins the forms of a word (`orders`, `order`) and a few synonyms; a root goes
//! further and joins related words (`cardiologists`, `cardiology`), so it counts for less.

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

/// Returns the stems of all words of a text.
pub(super) fn stems(text: &str) -> Vec<String> {
    tokens(text).iter().map(|word| stem(word)).collect()
}

/// Returns the stem of a word, with one stem for all synonyms.
pub(super) fn stem(word: &str) -> String {
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

/// Returns the root of a word: its stem without the endings that make one kind of word from another.
pub(super) fn root(word: &str) -> String {
    let stem = stem(word);
    let bare = ENDINGS
        .iter()
        .find_map(|ending| stem.strip_suffix(ending).filter(|rest| rest.len() > 3))
        .unwrap_or(&stem);
    // `prescribe` and `prescription`, `subscribe` and `subscription`.
    match bare.strip_suffix("scrib") {
        Some(rest) => format!("{rest}script"),
        None => bare.to_owned(),
    }
}

/// Returns whether a word says nothing about what a question is about.
pub(super) fn is_stop(stem: &str) -> bool {
    STOP.contains(&stem)
}

/// Endings that a root has lost, the longest first.
const ENDINGS: [&str; 13] = [
    "ation", "ment", "ator", "ician", "ian", "ion", "ist", "ity", "ic", "er", "or", "at", "y",
];

/// Synonyms in requests, by their common stem.
const SAME: [(&str, &[&str]); 12] = [
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
            "create", "add", "new", "make", "creates", "creating", "adds", "post", "register",
        ],
    ),
    (
        "updat",
        &[
            "update", "change", "edit", "modify", "set", "replace", "updates", "changes", "rename",
            "mark",
        ],
    ),
    (
        "book",
        &["book", "booking", "bookings", "reserve", "booked"],
    ),
    ("mov", &["move", "moves", "reschedule", "postpone", "shift"]),
    ("search", &["search", "find", "look", "searches"]),
    (
        "song",
        &["song", "songs", "track", "tracks", "tune", "tunes"],
    ),
    ("repo", &["repo", "repos", "repository", "repositories"]),
    ("pull", &["pull", "pulls", "pr", "prs"]),
    ("pay", &["pay", "pays", "paid", "payment", "payments"]),
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

const STOP: [&str; 60] = [
    "exist", "a", "an", "the", "of", "for", "to", "in", "on", "by", "with", "and", "or", "is",
    "are", "do", "doe", "does", "me", "my", "i", "it", "its", "this", "that", "what", "which",
    "who", "how", "please", "from", "at", "all", "v1", "v2", "v3", "api", "list", "be", "was",
    "can", "we", "have", "has", "ha", "had", "did", "been", "there", "you", "give", "as", "when",
    "where", "many", "named", "called", "titled", "id", "people",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_synonyms_have_one_stem_and_related_words_one_root() {
        assert_eq!(stem("orders"), stem("order"));
        assert_eq!(stem("repositories"), stem("repo"));
        assert_eq!(stem("closed"), stem("close"));
        for (one, other) in [
            ("cardiologists", "cardiology"),
            ("pediatricians", "pediatrics"),
            ("contributed", "contributors"),
            ("vaccinated", "vaccinations"),
            ("prescribed", "prescriptions"),
        ] {
            assert_eq!(root(one), root(other), "{one} {other}");
        }
        assert_ne!(root("order"), root("owner"));
    }
}
