//! A question, read once: its words, the values that it states, and what it asks for.

mod dates;
mod verbs;

use super::stemming::{is_stop, root, stem, tokens};

/// A question.
#[derive(Debug, Clone)]
pub(super) struct Question {
    /// The text as a person wrote it.
    pub(super) text: String,
    pub(super) words: Vec<Word>,
    pub(super) mentions: Vec<Mention>,
    /// What the question is about: stems and roots of its words without names, values and stop words.
    pub(super) terms: Vec<Term>,
    /// HTTP method that the verb of the question implies.
    pub(super) method: Option<&'static str>,
    /// Stem of the first word that is not polite.
    pub(super) first: String,
    /// Whether the question asks for several things.
    pub(super) is_plural: bool,
}

/// A word, or a quoted text, which counts as one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// The word without the punctuation around it.
    pub(super) text: String,
    pub(super) lower: String,
    pub(super) is_quoted: bool,
    /// Whether a comma, a semicolon or a full stop follows.
    pub(super) ends_clause: bool,
}

/// A value that the question states.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mention {
    /// The value as it would be sent.
    pub(super) value: String,
    pub(super) kind: MentionKind,
    /// Index of its first word.
    pub(super) at: usize,
    /// Index after its last word.
    pub(super) end: usize,
    /// Stem of the noun right before it: `order` in `order 7`.
    pub(super) noun: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MentionKind {
    Quoted,
    Number,
    /// A word with digits, underscores or mixed case.
    Id,
    /// First or second half of a pair such as `owner/repository`.
    Owner,
    Owned,
    Date,
    Email,
    /// Capitalised words inside the question.
    Name,
}

/// A word that is searched for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Term {
    pub(super) stem: String,
    pub(super) root: String,
}

impl Term {
    pub(super) fn of(word: &str) -> Self {
        Self {
            stem: stem(word),
            root: root(word),
        }
    }
}

impl Question {
    /// Reads a question.
    pub(super) fn new(text: &str) -> Self {
        let words = words(text);
        let mentions = mentions(&words);
        let is_value = |at: usize| {
            mentions
                .iter()
                .any(|mention| (mention.at..mention.end).contains(&at))
        };
        let begin = verbs::polite_words(&words);
        let mut terms = Vec::new();
        for (_, word) in words.iter().enumerate().filter(|(at, _)| !is_value(*at)) {
            for token in tokens(&word.text) {
                let term = Term::of(&token);
                if !is_stop(&term.stem) && !is_stop(&token) && !terms.contains(&term) {
                    terms.push(term);
                }
            }
        }
        let is_plural = words.iter().any(|word| {
            ["all", "list", "every"].contains(&word.lower.as_str())
                || (word.lower.len() > 3
                    && word.lower.ends_with('s')
                    && !word.lower.ends_with("ss")
                    && !word.lower.ends_with("us"))
        });
        Self {
            text: text.to_owned(),
            method: verbs::method(&words[begin..]),
            first: words
                .get(begin)
                .map_or_else(String::new, |word| stem(&word.lower)),
            words,
            mentions,
            terms,
            is_plural,
        }
    }

    /// Returns whether the question asks to change something.
    pub(super) fn wants_change(&self) -> bool {
        self.method.is_some_and(|method| method != "GET")
    }

    /// Returns the word before a mention, in lower case.
    pub(super) fn before(&self, mention: &Mention) -> &str {
        mention
            .at
            .checked_sub(1)
            .and_then(|at| self.words.get(at))
            .map_or("", |word| word.lower.as_str())
    }

    /// Returns the word after a mention, in lower case.
    pub(super) fn after(&self, mention: &Mention) -> &str {
        self.words
            .get(mention.end)
            .map_or("", |word| word.lower.as_str())
    }

    /// Returns the number of items that the question asks for: `top 5`, `first 20`, `5 tracks`.
    pub(super) fn how_many(&self) -> Option<u64> {
        self.mentions.iter().find_map(|mention| self.count(mention))
    }

    /// Returns the number if a mention is a number of items.
    pub(super) fn count(&self, mention: &Mention) -> Option<u64> {
        if mention.kind != MentionKind::Number {
            return None;
        }
        let number = mention.value.parse::<u64>().ok()?;
        let before = self.before(mention);
        let behind = self.after(mention);
        let is_count = ["top", "first", "last", "limit", "newest", "latest"].contains(&before)
            || (behind.len() > 3
                && behind.ends_with('s')
                && !before.ends_with("id")
                && !verbs::UNITS.contains(&behind));
        (is_count && (1..=1_000).contains(&number)).then_some(number)
    }
}

/// Returns the quoted parts of a text.
pub(super) fn quoted(text: &str) -> Vec<String> {
    let words = words(text).into_iter();
    words
        .filter(|word| word.is_quoted)
        .map(|word| word.text)
        .collect()
}

/// Splits a text into words. A quoted text is one word.
fn words(text: &str) -> Vec<Word> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() && found.len() < WORDS_MAX {
        match next_quoted(rest) {
            Some((before, inner, after)) => {
                plain_words(before, &mut found);
                let inner = inner.split_whitespace().collect::<Vec<_>>().join(" ");
                found.push(Word {
                    lower: inner.to_lowercase(),
                    text: inner,
                    is_quoted: true,
                    ends_clause: after.starts_with([',', ';', '.']),
                });
                rest = after;
            }
            None => {
                plain_words(rest, &mut found);
                break;
            }
        }
    }
    found.truncate(WORDS_MAX);
    found
}

/// Returns the text before the first quotation, the quotation, and the text after it.
fn next_quoted(text: &str) -> Option<(&str, &str, &str)> {
    let mut was_space = true;
    for (at, c) in text.char_indices() {
        let close = QUOTES
            .iter()
            .find(|(open, _)| *open == c)
            .map(|(_, close)| *close);
        // An apostrophe inside a word opens nothing.
        if let Some(close) = close.filter(|_| was_space || c != '\'') {
            let after = &text[at + c.len_utf8()..];
            let end = after.char_indices().find(|(end, other)| {
                *other == close
                    && (close != '\''
                        || !after[end + 1..].starts_with(|next: char| next.is_alphanumeric()))
            });
            if let Some((end, _)) = end.filter(|(end, _)| !after[..*end].trim().is_empty()) {
                return Some((&text[..at], &after[..end], &after[end + close.len_utf8()..]));
            }
        }
        was_space = c.is_whitespace() || c == '=' || c == ':';
    }
    None
}

fn plain_words(text: &str, into: &mut Vec<Word>) {
    let around = |c: char| !c.is_alphanumeric() && !"_-@/+.#$€£".contains(c);
    for raw in text.split_whitespace() {
        let word = raw
            .trim_matches(around)
            .trim_end_matches(['.', '?', '!'])
            .trim_start_matches(['#', '$', '€', '£']);
        let word = word.strip_suffix("'s").unwrap_or(word);
        if word.is_empty() {
            if let Some(last) = into.last_mut() {
                last.ends_clause |= raw.starts_with([',', ';', '.']);
            }
            continue;
        }
        into.push(Word {
            text: word.to_owned(),
            lower: word.to_lowercase(),
            is_quoted: false,
            ends_clause: raw.ends_with([',', ';', '.']),
        });
    }
}

fn mentions(words: &[Word]) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let (end, values) = mention(words, at);
        let noun = noun_before(words, at);
        for (kind, value) in values {
            found.push(Mention {
                value,
                kind,
                at,
                end,
                noun: noun.clone(),
            });
        }
        at = end;
    }
    found
}

/// Returns the values that begin at a word, and the index of the word after them.
fn mention(words: &[Word], at: usize) -> (usize, Vec<(MentionKind, String)>) {
    let word = &words[at];
    let one = |kind, value: &str| (at + 1, vec![(kind, value.to_owned())]);
    if word.is_quoted {
        return one(MentionKind::Quoted, &word.text);
    }
    if let Some((end, date)) = dates::read(words, at) {
        return (end, vec![(MentionKind::Date, date)]);
    }
    let text = word.text.as_str();
    if let Some((_, host)) = text.split_once('@').filter(|(name, _)| !name.is_empty())
        && host.contains('.')
    {
        return one(MentionKind::Email, text);
    }
    if let Some((one, two)) = pair(text) {
        let both = vec![
            (MentionKind::Owner, one.to_owned()),
            (MentionKind::Owned, two.to_owned()),
        ];
        return (at + 1, both);
    }
    // `name=value` is read where the parameters are known.
    if text.contains(['=', ':', '/']) {
        return (at + 1, Vec::new());
    }
    let bare = text.trim_start_matches('@');
    if bare.parse::<f64>().is_ok_and(f64::is_finite)
        && bare.starts_with(|c: char| c.is_ascii_digit() || c == '-')
    {
        return one(MentionKind::Number, bare);
    }
    if is_id(bare) {
        return one(MentionKind::Id, bare);
    }
    match name_end(words, at) {
        Some(end) => {
            let name: Vec<&str> = words[at..end]
                .iter()
                .map(|word| word.text.as_str())
                .collect();
            (end, vec![(MentionKind::Name, name.join(" "))])
        }
        None => (at + 1, Vec::new()),
    }
}

fn pair(text: &str) -> Option<(&str, &str)> {
    let (one, two) = text.split_once('/')?;
    (!one.is_empty() && !two.is_empty() && !two.contains('/')).then_some((one, two))
}

/// Returns whether a word can only be an id: it has digits, underscores or mixed case.
pub(super) fn is_id(word: &str) -> bool {
    let is_word = |extra: &str| {
        word.chars()
            .all(|c| c.is_alphanumeric() || extra.contains(c))
    };
    let has_digit = word.chars().any(|c| c.is_ascii_digit()) && is_word("_-.");
    let is_mixed = word.len() > 4
        && word.chars().skip(1).any(char::is_uppercase)
        && word.chars().any(char::is_lowercase)
        && is_word("");
    let is_dashed = word.contains('_') && is_word("_");
    has_digit || is_mixed || is_dashed
}

/// Returns the end of a run of capitalised words inside the question. The first word of a sentence is not a name.
fn name_end(words: &[Word], at: usize) -> Option<usize> {
    let is_name = |at: usize| {
        words.get(at).is_some_and(|word| {
            !word.is_quoted
                && word.text.starts_with(char::is_uppercase)
                && word
                    .text
                    .chars()
                    .skip(1)
                    .all(|c| c.is_lowercase() || c == '-' || c == '\'')
                && word.text.chars().count() > 1
        })
    };
    if at == 0 || !is_name(at) {
        return None;
    }
    let mut end = at + 1;
    while !words[end - 1].ends_clause && is_name(end) {
        end += 1;
    }
    Some(end)
}

/// Returns the stem of the noun right before a word: `order` in `order no 7`.
fn noun_before(words: &[Word], at: usize) -> Option<String> {
    let mut at = at.checked_sub(1)?;
    while [
        "id", "number", "no", "nr", "named", "called", "titled", "new",
    ]
    .contains(&words[at].lower.as_str())
        && at > 0
    {
        at -= 1;
    }
    let word = &words[at];
    let is_noun = !word.is_quoted
        && !word.ends_clause
        && word.lower.chars().all(|c| c.is_alphabetic() || c == '-')
        && !verbs::NOT_NOUNS.contains(&word.lower.as_str());
    is_noun.then(|| stem(&word.lower))
}

/// Words of a question that are read. Each value is compared with each parameter, so a very long text would take very long.
const WORDS_MAX: usize = 300;
const QUOTES: [(char, char); 6] = [
    ('"', '"'),
    ('“', '”'),
    ('‘', '’'),
    ('`', '`'),
    ('\'', '\''),
    ('«', '»'),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<(String, MentionKind, Option<String>)> {
        let mentions = Question::new(text).mentions.into_iter();
        mentions
            .map(|mention| (mention.value, mention.kind, mention.noun))
            .collect()
    }

    #[test]
    fn values_are_found_with_their_kinds_and_nouns() {
        use MentionKind::*;
        let one = |value: &str, kind, noun: Option<&str>| {
            (value.to_owned(), kind, noun.map(str::to_owned))
        };
        assert_eq!(
            said("book patient 5 with doctor no 1 on 2026-12-03"),
            [
                one("5", Number, Some("patient")),
                one("1", Number, Some("doctor")),
                one("2026-12-03", Date, None)
            ]
        );
        assert_eq!(
            said("create an issue \"Don't panic\" in octo/hello-world"),
            [
                one("Don't panic", Quoted, Some("issu")),
                one("octo", Owner, None),
                one("hello-world", Owned, None)
            ]
        );
        assert_eq!(
            said("register the patient Tom Baker, mail tom@example.org"),
            [
                one("Tom Baker", Name, Some("patient")),
                one("tom@example.org", Email, Some("mail"))
            ]
        );
        assert_eq!(said("show pet's owner"), []);
    }

    #[test]
    fn verbs_imply_methods_and_words_that_may_be_nouns_only_in_front() {
        for (text, method) in [
            ("what is the status of order 7?", Some("GET")),
            ("please cancel order 7", Some("DELETE")),
            ("could you add a dog", Some("POST")),
            ("book patient 5", Some("POST")),
            ("show book 5", Some("GET")),
            ("open pull requests of a/b", None),
            ("open an issue in a/b", Some("POST")),
            ("order 7", None),
            ("order 2 of pet 8", Some("POST")),
            ("move appointment 3 to 2027-01-11", Some("PUT")),
        ] {
            assert_eq!(Question::new(text).method, method, "{text}");
        }
    }
}
