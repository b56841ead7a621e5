//! How well a value of a question fits a parameter: by its kind, by the noun before it, and by the words around it.

use serde_json::{Value as Json, json};

use super::value_of;
use crate::catalogue::{Api, Parameter, Place};
use crate::question::{Mention, MentionKind, Question};
use crate::stemming::{stem, tokens};

/// How well a value fits a parameter. A higher one is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Affinity(u8);

impl Affinity {
    /// The question names the parameter.
    pub(crate) const NAMED: Self = Self(11);
    /// The noun before the value is the parameter's noun: `order 7` and `orderId`.
    pub(crate) const NOUN: Self = Self(10);
    /// The words around the value point to the parameter.
    pub(crate) const HINT: Self = Self(7);
    /// The kind of the value points to the parameter.
    pub(crate) const KIND: Self = Self(5);
    /// The only id that is left for the only open part of the path.
    pub(crate) const REST: Self = Self(3);
    /// As [`Affinity::REST`], but with a noun before it that the call does not know.
    pub(crate) const FOREIGN: Self = Self(1);
}

/// Returns how well a mention fits a parameter. `None` if it does not.
pub(super) fn of(
    question: &Question,
    api: &Api,
    parameter: &Parameter,
    mention: &Mention,
) -> Option<Affinity> {
    // Allowed values are looked for in all words, and a header only by its name.
    if !parameter.choices.is_empty() || parameter.place == Place::Header {
        return None;
    }
    value(parameter, mention)?;
    let nouns = nouns(api, parameter);
    let name: Vec<String> = tokens(&parameter.name)
        .iter()
        .map(|word| stem(word))
        .collect();
    let (before, after) = (question.before(mention), question.after(mention));
    let has_noun = mention
        .noun
        .as_ref()
        .is_some_and(|noun| nouns.contains(noun));
    match mention.kind {
        MentionKind::Date => return date(question, api, parameter, mention),
        MentionKind::Email => return Some(Affinity::KIND),
        MentionKind::Owner | MentionKind::Owned => return None,
        MentionKind::Number if is_quantity(&parameter.name) => {
            return ["of", "x", "times", "pieces"]
                .contains(&after)
                .then_some(Affinity::HINT);
        }
        _ => {}
    }
    if has_noun && question.count(mention).is_none() {
        return Some(Affinity::NOUN);
    }
    // `for 5 days` and `days`.
    if mention.kind == MentionKind::Number && !after.is_empty() && name.contains(&stem(after)) {
        return Some(Affinity::NOUN);
    }
    let is_free = mention
        .noun
        .as_ref()
        .is_none_or(|noun| PAID.contains(&noun.as_str()));
    if mention.kind == MentionKind::Number && is_amount(&parameter.name) && is_free {
        return Some(Affinity::KIND);
    }
    if !matches!(
        mention.kind,
        MentionKind::Quoted | MentionKind::Name | MentionKind::Id | MentionKind::Number
    ) {
        return None;
    }
    // `change the phone of patient 3 to 555-0199`, `rename pet 44 to Bella`.
    let is_set = ["to", "as", "is"].contains(&before);
    let is_named = question
        .words
        .iter()
        .any(|word| !word.is_quoted && name.len() == 1 && stem(&word.lower) == name[0]);
    let is_renamed =
        is_name(&parameter.name) && question.words.iter().any(|word| word.lower == "rename");
    if is_set && (is_named || is_renamed) && parameter.place != Place::Path {
        return Some(Affinity::HINT);
    }
    let is_text = TEXTS.contains(&parameter.name.to_ascii_lowercase().as_str());
    let is_needed = api.required_parameters.contains(parameter);
    match mention.kind {
        MentionKind::Quoted if is_text && is_needed => Some(Affinity::HINT),
        MentionKind::Quoted if is_text => Some(Affinity::KIND),
        MentionKind::Name if is_name(&parameter.name) && MARKERS.contains(&before) => {
            Some(Affinity::HINT)
        }
        _ => None,
    }
}

/// Returns the value of a mention as the parameter takes it. `None` if the kind does not fit.
pub(super) fn value(parameter: &Parameter, mention: &Mention) -> Option<Json> {
    let is_date = is_date(parameter);
    let is_mail = parameter.name.to_ascii_lowercase().contains("mail");
    let fits = match (parameter.kind.as_str(), mention.kind) {
        ("integer" | "number", kind) => kind == MentionKind::Number,
        ("boolean" | "object", _) => false,
        (_, MentionKind::Date) => is_date,
        (_, MentionKind::Email) => is_mail,
        // A login may be an address too, but only if the question says so, which is read elsewhere.
        (_, _) => !is_date && !is_mail,
    };
    let value = fits.then(|| value_of(parameter, &mention.value))??;
    Some(match parameter.kind.as_str() {
        "array" if !value.is_array() => json!([value]),
        _ => value,
    })
}

/// Fits a date to the parameter for its preposition; without one, to the only date of the call.
fn date(
    question: &Question,
    api: &Api,
    parameter: &Parameter,
    mention: &Mention,
) -> Option<Affinity> {
    let words = tokens(&parameter.name);
    let has = |any: &[&str]| words.iter().any(|word| any.contains(&word.as_str()));
    let before = question.before(mention);
    let begins = ["since", "after", "from", "starting", "between"].contains(&before);
    let ends = ["until", "before", "till", "to", "and", "ending"].contains(&before);
    let is_begin = has(&["since", "after", "from", "start", "begin", "min"]);
    let is_end = has(&["until", "before", "to", "end", "max"]);
    if (begins && is_begin) || (ends && is_end) {
        return Some(Affinity::NOUN);
    }
    // `born on 1990-02-17` and `birthDate`, `to ship on 2026-12-24` and `shipDate`.
    let near = mention.at.saturating_sub(3)..mention.at;
    let is_near = question.words[near].iter().any(|word| {
        let said = stem(&word.lower);
        words
            .iter()
            .any(|part| part.len() > 2 && stem(part) == said)
            || (word.lower == "born" && has(&["birth", "born", "birthday", "birthdate"]))
    });
    if is_near {
        return Some(Affinity::NOUN);
    }
    let is_date_of = |other: &&Parameter| is_date(other);
    let is_only = api.parameters().filter(is_date_of).count() == 1;
    let is_birth = has(&["birth", "born", "birthday", "birthdate"]);
    match (is_only, is_birth) {
        (true, false) => Some(Affinity::HINT),
        _ if words == ["date"] || words == ["day"] => Some(Affinity::KIND),
        _ => None,
    }
}

/// Returns the stems of the nouns that a parameter stands for: `order` for `orderId`, `user` for `{id}` after `/users/`.
pub(super) fn nouns(api: &Api, parameter: &Parameter) -> Vec<String> {
    let mut nouns: Vec<String> = Vec::new();
    let name = parameter.name.replace("username", "user_name");
    let own: Vec<String> = tokens(&name)
        .into_iter()
        .filter(|word| !GENERIC.contains(&word.as_str()))
        .collect();
    nouns.extend(own.last().map(|word| stem(word)));
    let segments: Vec<&str> = api.api_url.split('/').collect();
    let noun_of = |segment: &str| tokens(segment).pop().map(|word| stem(&word));
    if parameter.place == Place::Path {
        let wanted = format!("{{{}}}", parameter.name);
        let at = segments.iter().position(|segment| *segment == wanted);
        let before = at.and_then(|at| segments[..at].last());
        nouns.extend(
            before
                .filter(|segment| !segment.starts_with('{'))
                .and_then(|segment| noun_of(segment)),
        );
    } else if own.is_empty() {
        let last = segments
            .iter()
            .rev()
            .find(|segment| !segment.is_empty() && !segment.starts_with('{'));
        nouns.extend(last.and_then(|segment| noun_of(segment)));
    } else if is_name(&parameter.name) {
        let last = segments.last().filter(|last| !last.starts_with('{'));
        nouns.extend(last.and_then(|segment| noun_of(segment)));
    }
    nouns.dedup();
    nouns
}

/// Returns whether a parameter is the name of something.
pub(super) fn is_name(name: &str) -> bool {
    let words = tokens(name);
    words
        .last()
        .is_some_and(|last| ["name", "title", "label"].contains(&last.as_str()))
}

fn is_quantity(name: &str) -> bool {
    ["quantity", "qty", "copies", "pieces"].contains(&name.to_ascii_lowercase().as_str())
}

fn is_amount(name: &str) -> bool {
    tokens(name)
        .iter()
        .any(|word| ["amount", "price", "total", "sum"].contains(&word.as_str()))
}

fn is_date(parameter: &Parameter) -> bool {
    parameter.format.starts_with("date")
        || (parameter.kind == "string"
            && tokens(&parameter.name).iter().any(|word| {
                ["date", "day", "time", "since", "until", "birthday"].contains(&word.as_str())
            }))
}

/// Words of a parameter's name that say what kind of value it is, not of what.
const GENERIC: [&str; 11] = [
    "id", "ids", "name", "number", "slug", "key", "uuid", "gid", "no", "title", "label",
];
const MARKERS: [&str; 4] = ["named", "called", "titled", "to"];
/// Stems of words before an amount.
const PAID: [&str; 6] = ["pay", "amount", "pric", "cost", "total", "sum"];
const TEXTS: [&str; 12] = [
    "title",
    "name",
    "subject",
    "summary",
    "text",
    "body",
    "content",
    "message",
    "comment",
    "description",
    "note",
    "reason",
];
