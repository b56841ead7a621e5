//! Finds statements in a text by words and figures.
//!
//! Words cannot tell everything: a text may state a fact with words that no set has. The same reading is used for every
//! model, with and without the agent, so scores can be compared.

/// Returns whether a line of the text has all words of one of the sets.
pub(super) fn states(text: &str, sets: &[Vec<String>]) -> bool {
    text.lines().any(|line| has_set(&words(line), sets))
}

/// Returns whether the text recommends what one of the sets describes: a clause has all its words and is not negated, and the
/// sentence or its heading says that something is decided or recommended.
pub(super) fn recommends(text: &str, sets: &[Vec<String>]) -> bool {
    let mut is_below_outcome = false;
    for line in text.lines() {
        if is_heading(line) {
            let heading = words(line);
            is_below_outcome =
                has_any(&heading, &OUTCOME_HEADINGS) && !has_any(&heading, &OTHER_HEADINGS);
        }
        for sentence in split(line, &['.', '!', '?']) {
            let is_outcome = is_below_outcome || is_outcome(&words(sentence));
            let mut clauses = clauses(sentence).into_iter();
            let is_meant =
                |clause: Vec<String>| has_set(&clause, sets) && !has_any(&clause, &NEGATIONS);
            if is_outcome && clauses.any(is_meant) {
                return true;
            }
        }
    }
    false
}

/// Returns the words in lower case. A figure is one word without its thousands separators: `1,850` becomes `1850`, and `7:50`
/// and `6.9` stay.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let is_in_figure =
            before.is_ascii_digit() && chars.peek().is_some_and(char::is_ascii_digit);
        match c {
            _ if c.is_alphanumeric() => word.extend(c.to_lowercase()),
            '\'' | '’' => {}
            ',' if is_in_figure => {}
            '.' | ':' if is_in_figure => word.push(c),
            _ if word.is_empty() => {}
            _ => words.push(std::mem::take(&mut word)),
        }
        before = c;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Splits at marks that end something, which a mark within a word or a figure does not.
fn split<'a>(text: &'a str, marks: &[char]) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, mark) in text.match_indices(marks) {
        let end = at + mark.len();
        if !text[end..].starts_with(char::is_alphanumeric) {
            parts.push(&text[start..at]);
            start = end;
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Returns the words of each clause. A word that begins a clause is in it, so `instead of Kafka` is a clause of its own that
/// rejects Kafka.
fn clauses(sentence: &str) -> Vec<Vec<String>> {
    let mut clauses = Vec::new();
    for part in split(sentence, &[',', ';', '(', ')', '–', '—']) {
        let mut clause = Vec::new();
        for word in words(part) {
            if CLAUSE_BEGINS.contains(&word.as_str()) && !clause.is_empty() {
                clauses.push(std::mem::take(&mut clause));
            }
            clause.push(word);
        }
        clauses.push(clause);
    }
    clauses
}

fn is_heading(line: &str) -> bool {
    let line = line.trim();
    let is_bold = line.starts_with("**") && line.trim_end_matches(':').ends_with("**");
    let is_lead = line.ends_with(':') && line.split_whitespace().count() <= LEAD_WORDS_MAX;
    line.starts_with('#') || is_bold || is_lead
}

fn is_outcome(sentence: &[String]) -> bool {
    let mut pairs = sentence.windows(2);
    has_any(sentence, &OUTCOMES) || pairs.any(|pair| pair == ["we", "will"])
}

fn has_set(words: &[String], sets: &[Vec<String>]) -> bool {
    let has = |wanted: &String| words.iter().any(|word| is_word(word, wanted));
    sets.iter().any(|set| set.iter().all(has))
}

fn has_any(words: &[String], stems: &[&str]) -> bool {
    let mut words = words.iter();
    words.any(|word| stems.iter().any(|stem| is_word(word, stem)))
}

/// Returns whether a word is the wanted one. A wanted word of four letters or more is a stem; a figure must be equal.
fn is_word(word: &str, wanted: &str) -> bool {
    let is_stem = wanted.len() >= STEM_BYTES_MIN && wanted.starts_with(char::is_alphabetic);
    word == wanted || (is_stem && word.starts_with(wanted))
}

const STEM_BYTES_MIN: usize = 4;
/// Maximum number of words of a line that ends in a colon and is taken for a heading.
const LEAD_WORDS_MAX: usize = 8;

/// Words of a sentence that decides or recommends.
const OUTCOMES: [&str; 11] = [
    "recommend",
    "decid",
    "decision",
    "propos",
    "choose",
    "chose",
    "choice",
    "select",
    "conclu",
    "should",
    "must",
];

/// Words of a heading below which things are decided or recommended.
const OUTCOME_HEADINGS: [&str; 9] = [
    "recommend",
    "decision",
    "decid",
    "conclu",
    "propos",
    "plan",
    "action",
    "step",
    "final",
];

/// Words of a heading that is about something else, such as `Decision memo` or `Decision criteria`.
const OTHER_HEADINGS: [&str; 9] = [
    "memo",
    "criteria",
    "context",
    "background",
    "option",
    "alternative",
    "consider",
    "factor",
    "question",
];

/// Words with which a clause says no, or says nothing about what is done.
const NEGATIONS: [&str; 43] = [
    "not", "no", "nor", "never", "neither", "nobody", "nothing", "without", "avoid", "against",
    "reject", "exclud", "ruled", "rule", "instead", "rather", "than", "over", "cannot", "cant",
    "dont", "wont", "doesnt", "isnt", "shouldnt", "mustnt", "drop", "declin", "refus", "postpon",
    "if", "would", "could", "whether", "unless", "because", "since", "while", "although",
    "whereas", "stop", "previous", "risk",
];

/// Words that begin a clause.
const CLAUSE_BEGINS: [&str; 17] = [
    "and", "but", "so", "then", "or", "instead", "rather", "than", "over", "because", "since",
    "while", "although", "whereas", "if", "whether", "unless",
];
