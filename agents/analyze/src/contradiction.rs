//! Finds decisions that seem to contradict what the person said: something they ruled out, a number of theirs, or the option
//! that they did not choose. Compares words and numbers, so it can miss a contradiction and can report one that is none; the
//! page says "may", and quotes the person.

use std::collections::BTreeSet;

use super::interview_end::user_is_done;
use super::state::{Role, Turn};
use super::terms::{Quantity, is_empty_word, quantities, stem, terms, words};

/// What the person said, as far as a decision can contradict it. The latest word on something counts.
#[derive(Debug, Default)]
pub(super) struct Answers {
    exclusions: Vec<Exclusion>,
    amounts: Vec<Amount>,
}

/// Something that the person ruled out.
#[derive(Debug)]
struct Exclusion {
    /// A decision that has all of these and negates none is a contradiction.
    terms: BTreeSet<String>,
    /// Unless it has one of these: the option that the person chose.
    unless: BTreeSet<String>,
    said: String,
}

/// A number that the person gave.
#[derive(Debug)]
struct Amount {
    quantity: Quantity,
    bound: Bound,
    said: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Exactly,
    AtMost,
    AtLeast,
}

/// Returns what the person answered.
pub(super) fn answers_in(history: &[Turn]) -> impl Iterator<Item = &str> {
    let turns = history.iter().enumerate();
    let answers = turns.filter(|(at, turn)| turn.role == Role::User && is_answer(*at, turn));
    answers.map(|(_, turn)| turn.content.as_str())
}

fn is_answer(at: usize, turn: &Turn) -> bool {
    at > 0 && !user_is_done(&turn.content)
}

impl Answers {
    /// Reads the person's answers. The first turn is the query, and the word that ends the interview is not an answer.
    pub(super) fn of(history: &[Turn]) -> Self {
        let mut answers = Self::default();
        let mut question = "";
        for (at, turn) in history.iter().enumerate() {
            match turn.role {
                Role::Agent => question = &turn.content,
                Role::User if is_answer(at, turn) => answers.add(question, &turn.content),
                Role::User => {}
            }
        }
        answers
    }

    /// Returns what the person said that a decision seems to contradict.
    pub(super) fn contradicted_by(&self, decision: &str) -> Option<String> {
        let affirmed = affirmed(decision);
        let excluded = self.exclusions.iter().find(|exclusion| {
            exclusion.terms.is_subset(&affirmed) && exclusion.unless.is_disjoint(&affirmed)
        });
        if let Some(exclusion) = excluded {
            return Some(exclusion.said.clone());
        }
        let decided = quantities(decision);
        let contradicted = self.amounts.iter().find(|amount| {
            let mut same = decided
                .iter()
                .filter(|other| counts_the_same(&amount.quantity, other))
                .peekable();
            same.peek().is_some() && !same.any(|other| amount.allows(other))
        });
        contradicted.map(|amount| amount.said.clone())
    }

    fn add(&mut self, question: &str, answer: &str) {
        let said = answer.trim();
        let mentioned: BTreeSet<String> = terms(said).into_iter().collect();
        // Whatever they say now about the same thing replaces what they said before.
        self.exclusions
            .retain(|exclusion| !exclusion.terms.is_subset(&mentioned));
        for clause in clauses(said) {
            for terms in excluded(clause) {
                self.exclusions.push(Exclusion {
                    terms,
                    unless: BTreeSet::new(),
                    said: clause.to_owned(),
                });
            }
            for quantity in quantities(clause) {
                self.amounts
                    .retain(|amount| !counts_the_same(&amount.quantity, &quantity));
                self.amounts.push(Amount {
                    bound: bound_of(&quantity.before),
                    quantity,
                    said: clause.to_owned(),
                });
            }
        }
        self.add_options(question, said);
        let spoken = words(said);
        let is_bare_no = !spoken.is_empty()
            && spoken
                .iter()
                .all(|word| ["no", "never", "nein", "nie"].contains(&word.as_str()));
        if is_bare_no {
            let asked = clauses(question)
                .into_iter()
                .next_back()
                .unwrap_or_default();
            let terms: BTreeSet<String> = terms(asked).into_iter().collect();
            // One shared word would be too little to tell.
            if terms.len() >= 2 && !asked.contains(" or ") {
                self.exclusions.push(Exclusion {
                    terms,
                    unless: BTreeSet::new(),
                    said: format!("{said} ({asked}?)"),
                });
            }
        }
    }

    /// Of several named options in the question, those that the answer does not name are ruled out.
    fn add_options(&mut self, question: &str, said: &str) {
        let options = options(question);
        let accepted = affirmed(said);
        let (chosen, others): (BTreeSet<String>, BTreeSet<String>) = options
            .into_iter()
            .partition(|option| accepted.contains(option));
        if chosen.is_empty() {
            return;
        }
        for other in others {
            self.exclusions.push(Exclusion {
                terms: BTreeSet::from([other]),
                unless: chosen.clone(),
                said: said.to_owned(),
            });
        }
    }
}

impl Amount {
    fn allows(&self, other: &Quantity) -> bool {
        let (said, decided) = (self.quantity.thousandths, other.thousandths);
        match self.bound {
            Bound::Exactly => said == decided,
            Bound::AtMost => decided <= said,
            Bound::AtLeast => decided >= said,
        }
    }
}

/// Returns whether two numbers count the same thing. A time unit behind the thing says nothing: so many orders a day are not
/// so many backups a day.
fn counts_the_same(one: &Quantity, other: &Quantity) -> bool {
    let is_time = |unit: &String| TIMES.contains(&unit.as_str());
    let shared = one
        .units
        .iter()
        .any(|unit| other.units.contains(unit) && !is_time(unit));
    let first = (one.units.first(), other.units.first());
    shared || matches!(first, (Some(one), Some(other)) if one == other)
}

fn bound_of(before: &[String]) -> Bound {
    let has = |list: &[&str]| before.iter().any(|word| list.contains(&word.as_str()));
    let is_negated = has(&["not", "no", "never", "nicht"]);
    match (has(UPPER), has(LOWER), is_negated) {
        (true, _, false) | (_, true, true) => Bound::AtMost,
        (_, true, false) | (true, _, true) => Bound::AtLeast,
        _ => Bound::Exactly,
    }
}

/// Splits a text into clauses, at punctuation that is followed by a space and at "but".
fn clauses(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for sentence in text.split(['\n', ';', '!', '?', '(', ')']) {
        // One pass, because a question of the model may be long. A mark in UTF-8 matches only at a character boundary.
        let (mut start, mut at) = (0, 0);
        while at < sentence.len() {
            let rest = &sentence.as_bytes()[at..];
            match BREAKS.iter().find(|mark| rest.starts_with(mark.as_bytes())) {
                Some(mark) => {
                    found.push(&sentence[start..at]);
                    at += mark.len();
                    start = at;
                }
                None => at += 1,
            }
        }
        found.push(&sentence[start..]);
    }
    found
        .into_iter()
        .map(|clause| clause.trim().trim_end_matches('.'))
        .filter(|clause| !clause.is_empty())
        .collect()
}

/// Returns what a clause of the person rules out: a name, or the next two content words behind a negation.
fn excluded(clause: &str) -> Vec<BTreeSet<String>> {
    let all: Vec<&str> = clause
        .split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '-')
        .filter(|word| !word.is_empty())
        .collect();
    let lower: Vec<String> = all.iter().map(|word| word.to_lowercase()).collect();
    let mut found = Vec::new();
    for (at, word) in lower.iter().enumerate() {
        let next = lower.get(at + 1).map_or("", String::as_str);
        if !NEGATIONS.contains(&word.as_str()) || COMPARISONS.contains(&next) {
            continue;
        }
        let content = |range: std::ops::Range<usize>| -> Vec<(String, bool)> {
            let words = range.filter(|at| {
                !is_empty_word(&lower[*at])
                    && !GENERAL.contains(&lower[*at].as_str())
                    && !NEGATIONS.contains(&lower[*at].as_str())
            });
            words
                .map(|at| (stem(&lower[at]), is_name(all[at])))
                .collect()
        };
        let mut scope = content(at + 1..lower.len());
        if scope.is_empty() {
            // "Kafka wollen wir nicht"
            scope = content(0..at);
        }
        scope.truncate(2);
        let name = scope.iter().find(|(_, is_name)| *is_name);
        match name {
            Some((name, _)) => found.push(BTreeSet::from([name.clone()])),
            None if scope.is_empty() => {}
            None => found.push(scope.into_iter().map(|(term, _)| term).collect()),
        }
    }
    found
}

/// Returns whether a text negates something.
pub(super) fn is_negated(text: &str) -> bool {
    words(text)
        .iter()
        .any(|word| NEGATIONS.contains(&word.as_str()))
}

/// Returns the content words of a text that it does not negate or reject.
fn affirmed(text: &str) -> BTreeSet<String> {
    let mut affirmed = BTreeSet::new();
    for clause in clauses(text) {
        let words = words(clause);
        let is_rejected = words
            .iter()
            .any(|word| REJECTIONS.iter().any(|begin| word.starts_with(begin)));
        if is_rejected {
            continue;
        }
        let end = words.iter().position(|word| {
            NEGATIONS.contains(&word.as_str()) || CONTRASTS.contains(&word.as_str())
        });
        let kept = words[..end.unwrap_or(words.len())].join(" ");
        affirmed.extend(terms(&kept));
    }
    affirmed
}

/// Returns the names on both sides of each "or" in a question, with those in a list before it.
fn options(question: &str) -> BTreeSet<String> {
    let tokens: Vec<&str> = question.split_whitespace().collect();
    let bare = |token: &str| {
        token
            .trim_matches(|c: char| !c.is_alphanumeric())
            .to_owned()
    };
    let mut options = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        if !["or", "oder"].contains(token) {
            continue;
        }
        let mut before = at;
        while let Some(earlier) = before.checked_sub(1) {
            let is_listed = before == at || tokens[earlier].ends_with(',');
            if !is_listed || !is_name(&bare(tokens[earlier])) {
                break;
            }
            options.insert(stem(&bare(tokens[earlier]).to_lowercase()));
            before = earlier;
        }
        let after = tokens.get(at + 1).map(|token| bare(token));
        options.extend(
            after
                .filter(|after| is_name(after))
                .map(|after| stem(&after.to_lowercase())),
        );
    }
    options
}

/// Returns whether a word looks like a name: `Kafka`, `RabbitMQ`, `S3`.
fn is_name(word: &str) -> bool {
    let is_sentence_word = is_empty_word(&word.to_lowercase());
    word.chars().count() > 1 && word.chars().any(char::is_uppercase) && !is_sentence_word
}

const BREAKS: [&str; 7] = [". ", ", ", " but ", " aber ", ": ", " – ", " — "];
const NEGATIONS: [&str; 22] = [
    "not",
    "no",
    "never",
    "without",
    "neither",
    "nor",
    "avoid",
    "don't",
    "doesn't",
    "won't",
    "can't",
    "cannot",
    "isn't",
    "aren't",
    "mustn't",
    "shouldn't",
    "nicht",
    "kein",
    "keine",
    "keinen",
    "nie",
    "ohne",
];
/// Words behind a negation that make it a comparison or a remark: "not more than five", "not yet".
const COMPARISONS: [&str; 11] = [
    "more", "less", "fewer", "only", "just", "yet", "sure", "mehr", "weniger", "nur", "sicher",
];
/// Words that reject what is in their clause: "Kafka is ruled out".
const REJECTIONS: [&str; 7] = [
    "reject",
    "exclud",
    "ruled",
    "discard",
    "declin",
    "verworfen",
    "abgelehnt",
];
/// Words behind which stands what was not chosen: "instead of Kafka".
const CONTRASTS: [&str; 7] = [
    "instead", "rather", "unlike", "over", "against", "statt", "anstatt",
];
/// Verbs that say nothing about what is ruled out: "we do not want to use Kafka".
const GENERAL: [&str; 27] = [
    "want",
    "wants",
    "use",
    "using",
    "need",
    "needs",
    "like",
    "take",
    "run",
    "choose",
    "go",
    "make",
    "get",
    "think",
    "know",
    "any",
    "introduce",
    "add",
    "buy",
    "wollen",
    "nehmen",
    "nutzen",
    "brauchen",
    "möchten",
    "let",
    "lose",
    "allow",
];
const UPPER: &[&str] = &[
    "most",
    "maximum",
    "max",
    "up",
    "under",
    "below",
    "less",
    "fewer",
    "within",
    "höchstens",
    "bis",
    "maximal",
];
const LOWER: &[&str] = &[
    "least",
    "minimum",
    "min",
    "over",
    "above",
    "more",
    "mindestens",
];
/// Stems of units of time.
const TIMES: [&str; 9] = [
    "day", "second", "minut", "hour", "week", "month", "year", "tag", "jahr",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn contradicted(turns: &[(&str, &str)], decision: &str) -> Option<String> {
        let turn = |role, content: &str| Turn {
            role,
            content: content.to_owned(),
        };
        let mut history = vec![turn(Role::User, "analyze: Kafka or not, 3 machines?")];
        for (question, answer) in turns {
            history.push(turn(Role::Agent, question));
            history.push(turn(Role::User, answer));
        }
        Answers::of(&history).contradicted_by(decision)
    }

    #[test]
    fn a_decision_for_what_the_person_ruled_out_is_flagged() {
        let turns = [(
            "What must not happen?",
            "We do not want to use Kafka, and no new vendors.",
        )];
        for wrong in [
            "Use Kafka for orders.",
            "Sign a contract with a new vendor.",
        ] {
            assert!(contradicted(&turns, wrong).is_some(), "{wrong}");
        }
        for right in [
            "Do not use Kafka.",
            "PostgreSQL instead of Kafka.",
            "Kafka is ruled out.",
            "Keep the vendor.",
            "Use a new table.",
        ] {
            assert_eq!(contradicted(&turns, right), None, "{right}");
        }
        let quoted = contradicted(&turns, "Use Kafka.").unwrap();
        assert_eq!(quoted, "We do not want to use Kafka");
        // The person may change their mind.
        let later = [turns[0], ("Really?", "Kafka is fine after all.")];
        assert_eq!(contradicted(&later, "Use Kafka."), None);
        let german = [("Was nicht?", "Kafka wollen wir nicht.")];
        assert!(contradicted(&german, "Wir nehmen Kafka.").is_some());
    }

    #[test]
    fn clauses_end_at_marks_and_long_texts_are_split_in_one_pass() {
        let text = "Größe – ja, aber klein. Not 2.5 but 3: x — y.";
        let expected = ["Größe", "ja", "aber klein", "Not 2.5", "3", "x", "y"];
        assert_eq!(clauses(text), expected);
        assert_eq!(clauses(&"a, ".repeat(1 << 18)).len(), 1 << 18);
    }

    #[test]
    fn a_bare_no_rules_out_what_was_asked() {
        let turns = [("May an order be delivered twice?", "No.")];
        assert!(contradicted(&turns, "An order may be delivered twice.").is_some());
        assert_eq!(contradicted(&turns, "No order is delivered twice."), None);
        assert_eq!(contradicted(&turns, "Orders are kept."), None);
    }

    #[test]
    fn a_decision_with_another_number_is_flagged() {
        let turns = [("How many?", "We have 3 machines and 10,000 orders a day.")];
        assert!(contradicted(&turns, "Run it on 5 machines.").is_some());
        assert!(contradicted(&turns, "Plan for 90,000 orders a day.").is_some());
        for right in [
            "Run it on three machines.",
            "Plan for ten thousand orders.",
            "Make 2 backups a day.",
            "Write 4 tests.",
        ] {
            assert_eq!(contradicted(&turns, right), None, "{right}");
        }
        let most = [("How many?", "at most 5 new machines")];
        assert_eq!(contradicted(&most, "Buy 4 machines."), None);
        assert!(contradicted(&most, "Buy 6 machines.").is_some());
        let not_more = [("How many?", "not more than 5 machines")];
        assert_eq!(contradicted(&not_more, "Buy 4 machines."), None);
        let least = [("How long?", "keep backups for at least 30 days")];
        assert!(contradicted(&least, "Delete backups after 7 days.").is_some());
        let later = [turns[0], ("Still?", "Make that 5 machines.")];
        assert_eq!(contradicted(&later, "Run it on 5 machines."), None);
    }

    #[test]
    fn the_option_that_was_not_chosen_is_flagged() {
        let turns = [("Do you prefer Kafka, SQS or RabbitMQ?", "RabbitMQ")];
        assert!(contradicted(&turns, "Orders go through Kafka.").is_some());
        assert!(contradicted(&turns, "Orders go through SQS.").is_some());
        assert_eq!(contradicted(&turns, "Orders go through RabbitMQ."), None);
        assert_eq!(contradicted(&turns, "RabbitMQ feeds the old Kafka."), None);
        let neither = [("Kafka or RabbitMQ?", "I do not care")];
        assert_eq!(contradicted(&neither, "Use Kafka."), None);
    }
}
