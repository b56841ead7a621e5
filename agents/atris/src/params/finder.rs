//! Finds values of parameters in a question.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::affinity::{self, Affinity, nouns};
use super::{is_choice, value_of};
use crate::catalogue::{Api, Parameter, Place};
use crate::question::{Mention, MentionKind, Question, is_id};
use crate::rules;
use crate::stemming::{root, stem, stems, tokens};

/// A question, searched for the parameters of one call.
pub(super) struct Finder<'a> {
    question: &'a Question,
    api: &'a Api,
    entity_name: Option<&'a str>,
    /// Stems of the call's name, id and path.
    own: Vec<String>,
}

/// What a question says about the parameters of one call.
#[derive(Debug, Default)]
pub(crate) struct StatedValues {
    pub(crate) values: BTreeMap<String, Json>,
    /// For each mention of the question, how well it fits the parameter that took it.
    pub(crate) taken: Vec<Option<Affinity>>,
    /// Number of values that are words of the question and not mentions, such as allowed values.
    pub(crate) worded: usize,
}

impl<'a> Finder<'a> {
    pub(super) fn new(question: &'a Question, api: &'a Api, entity_name: Option<&'a str>) -> Self {
        let text = format!("{} {} {}", api.tool_name, api.id, api.api_url);
        Self {
            question,
            api,
            entity_name,
            own: stems(&text),
        }
    }

    /// Returns every value that the question states.
    pub(super) fn read(&self) -> StatedValues {
        let mut stated = StatedValues {
            taken: vec![None; self.question.mentions.len()],
            ..StatedValues::default()
        };
        for parameter in self.api.parameters() {
            if let Some(value) = self.explicit(parameter) {
                self.mark(&value, &mut stated);
                stated.insert(parameter, value);
            }
        }
        self.assign_marked_name(&mut stated);
        self.assign_mentions(&mut stated);
        for parameter in self.api.parameters() {
            if stated.values.contains_key(&parameter.name) {
                continue;
            }
            if let Some(value) = self.in_words(parameter, &stated) {
                self.mark(&value, &mut stated);
                stated.worded += 1;
                stated.insert(parameter, value);
            }
        }
        stated
    }

    /// Marks the mentions that a value is made of.
    fn mark(&self, value: &Json, stated: &mut StatedValues) {
        let text = match value {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        };
        let mentions = self.question.mentions.iter().zip(&mut stated.taken);
        for (mention, taken) in mentions {
            if mention.value == text || (text.contains(' ') && text.contains(&mention.value)) {
                taken.get_or_insert(Affinity::NAMED);
            }
        }
    }

    /// Finds a value next to the name of its parameter: `time=month`, `time: month`, `track id D7KyD`, `title "Blue Sky"`.
    fn explicit(&self, parameter: &Parameter) -> Option<Json> {
        let words = &self.question.words;
        for (at, word) in words.iter().enumerate().filter(|(_, word)| !word.is_quoted) {
            let Some((before, after)) = word.text.split_once(['=', ':']) else {
                continue;
            };
            if !before.eq_ignore_ascii_case(&parameter.name) {
                continue;
            }
            let next = words.get(at + 1).filter(|next| next.is_quoted);
            match (after, next) {
                ("", Some(next)) => return value_of(parameter, &next.text),
                ("", None) => {}
                (after, _) => return value_of(parameter, after.trim_matches(['"', ','])),
            }
        }
        self.behind(&tokens(&parameter.name), parameter)
    }

    /// Returns the value that follows these words.
    fn behind(&self, name: &[String], parameter: &Parameter) -> Option<Json> {
        // A name such as `_` has no words, and would match everywhere.
        if name.is_empty() {
            return None;
        }
        let words = &self.question.words;
        for at in 0..words.len().saturating_sub(name.len()) {
            let is_here = name
                .iter()
                .enumerate()
                .all(|(offset, part)| words[at + offset].lower.trim_end_matches(':') == *part);
            if !is_here {
                continue;
            }
            let mut next = at + name.len();
            while words
                .get(next)
                .is_some_and(|word| LINKS.contains(&word.lower.as_str()))
            {
                next += 1;
            }
            let Some(word) = words.get(next) else {
                continue;
            };
            if let Some(mention) = self.mention_at(next) {
                if let Some(value) = affinity::value(parameter, mention) {
                    return Some(value);
                }
                continue;
            }
            let is_linked = next > at + name.len()
                && words[next - 1].lower != "of"
                && words[next - 1].lower != "the";
            let is_choice = parameter
                .choices
                .iter()
                .any(|choice| is_choice(choice, &word.text));
            if (is_linked || is_choice) && !self.is_of_the_call(&word.lower) {
                return value_of(parameter, &word.text);
            }
        }
        None
    }

    fn mention_at(&self, at: usize) -> Option<&Mention> {
        self.question
            .mentions
            .iter()
            .find(|mention| mention.at == at)
    }

    /// Gives the name after `named`, `called` or `titled` to the parameter for a name: to `name` or `title` before `tag_name`.
    fn assign_marked_name(&self, stated: &mut StatedValues) {
        let Some(name) = self.marked_name() else {
            return;
        };
        let is_open = |parameter: &&Parameter| {
            affinity::is_name(&parameter.name)
                && parameter.kind == "string"
                && parameter.choices.is_empty()
                && parameter.place != Place::Header
                && !stated.values.contains_key(&parameter.name)
        };
        let open = self.api.parameters().filter(is_open);
        if let Some(parameter) = open.min_by_key(|parameter| tokens(&parameter.name).len()) {
            let value = json!(name);
            self.mark(&value, stated);
            stated.insert(parameter, value);
        }
    }

    /// Gives each mention to the parameter that it fits best.
    fn assign_mentions(&self, stated: &mut StatedValues) {
        self.assign_pair(stated);
        let mut fits = Vec::new();
        for (order, parameter) in self.api.parameters().enumerate() {
            if stated.values.contains_key(&parameter.name) {
                continue;
            }
            for (at, mention) in self.question.mentions.iter().enumerate() {
                if stated.taken[at].is_none()
                    && let Some(affinity) =
                        affinity::of(self.question, self.api, parameter, mention)
                {
                    fits.push((affinity, order, at, parameter));
                }
            }
        }
        fits.sort_by(|one, other| {
            let rank = |fit: &(Affinity, usize, usize, &Parameter)| {
                (std::cmp::Reverse(fit.0), fit.1, fit.2)
            };
            rank(one).cmp(&rank(other))
        });
        for (affinity, _, at, parameter) in fits {
            let is_free =
                stated.taken[at].is_none() && !stated.values.contains_key(&parameter.name);
            if is_free && let Some(value) = affinity::value(parameter, &self.question.mentions[at])
            {
                stated.taken[at] = Some(affinity);
                stated.insert(parameter, value);
            }
        }
        self.assign_rest(stated);
    }

    /// Gives a pair, such as `owner/repository`, to two adjacent parameters of the path.
    fn assign_pair(&self, stated: &mut StatedValues) {
        let mentions = &self.question.mentions;
        let Some(first) = mentions
            .iter()
            .position(|mention| mention.kind == MentionKind::Owner)
        else {
            return;
        };
        let segments: Vec<&str> = self.api.api_url.split('/').collect();
        let name = |segment: &'a str| segment.strip_prefix('{')?.strip_suffix('}');
        let both = segments
            .windows(2)
            .find_map(|pair| Some((name(pair[0])?, name(pair[1])?)));
        let Some((one, two)) = both else { return };
        for (offset, name) in [one, two].into_iter().enumerate() {
            if let Some(parameter) = self.api.parameter(name)
                && let Some(value) = value_of(parameter, &mentions[first + offset].value)
            {
                stated.taken[first + offset] = Some(Affinity::NOUN);
                stated.insert(parameter, value);
            }
        }
    }

    /// Gives the remaining ids to the open path parameters, if it is clear which belongs to which.
    fn assign_rest(&self, stated: &mut StatedValues) {
        let is_open = |parameter: &&Parameter| {
            parameter.place == Place::Path && !stated.values.contains_key(&parameter.name)
        };
        let open: Vec<&Parameter> = self.api.parameters().filter(is_open).collect();
        let free: Vec<usize> = (0..self.question.mentions.len())
            .filter(|at| {
                let mention = &self.question.mentions[*at];
                let is_id = matches!(
                    mention.kind,
                    MentionKind::Id | MentionKind::Number | MentionKind::Quoted
                );
                stated.taken[*at].is_none() && is_id && self.question.count(mention).is_none()
            })
            .collect();
        let is_clear = free.len() >= open.len() && (open.len() == 1 || free.len() == open.len());
        if open.is_empty() || !is_clear {
            return;
        }
        for (parameter, at) in open.into_iter().zip(free) {
            let mention = &self.question.mentions[at];
            if let Some(value) = value_of(parameter, &mention.value) {
                // A noun that the call does not know, such as `issue` before an id that a call for gists would take.
                let is_foreign = mention
                    .noun
                    .as_ref()
                    .is_some_and(|noun| !self.own.contains(noun));
                stated.taken[at] = Some(match is_foreign {
                    true => Affinity::FOREIGN,
                    false => Affinity::REST,
                });
                stated.insert(parameter, value);
            }
        }
    }

    /// Finds a value that the question states in plain words.
    fn in_words(&self, parameter: &Parameter, stated: &StatedValues) -> Option<Json> {
        let name = parameter.name.to_ascii_lowercase();
        let is_needed = self.api.required_parameters.contains(parameter);
        if SEARCHED.contains(&name.as_str())
            && parameter.kind == "string"
            && parameter.place == Place::Query
        {
            let searched = self
                .entity_name
                .map(str::to_owned)
                .or_else(|| rules::searched(&self.question.text));
            return searched
                .filter(|_| is_needed || self.entity_name.is_some())
                .map(Json::from);
        }
        if COUNTS.contains(&name.as_str()) && parameter.kind == "integer" {
            return self.question.how_many().map(Json::from);
        }
        if !parameter.choices.is_empty() {
            return self.choice(parameter);
        }
        if parameter.kind == "boolean" {
            return self.flag(parameter);
        }
        if parameter.kind != "string" || parameter.place == Place::Header {
            return None;
        }
        let found = nouns(self.api, parameter)
            .iter()
            .find_map(|noun| self.after_noun(noun))
            .filter(|_| is_needed);
        let is_new = |text: &String| {
            let text = json!(text);
            !stated.values.values().any(|value| *value == text)
        };
        let found = found.filter(is_new);
        let object = || {
            self.object_of_verb(stated)
                .filter(|_| is_needed && parameter.place == Place::Body)
        };
        found.or_else(object).map(Json::from)
    }

    /// Returns an allowed value that occurs in the question, in the same or a related word.
    fn choice(&self, parameter: &Parameter) -> Option<Json> {
        let said = tokens(&self.question.text);
        let joined = format!(" {} ", said.join(" "));
        let text = |choice: &Json| choice.as_str().map(|text| tokens(text).join(" "));
        let is_said = |choice: &&Json| {
            text(choice).is_some_and(|text| {
                // A word of the call's own name is not a value of the parameter.
                text.len() > 1
                    && !self.is_of_the_call(&text)
                    && joined.contains(&format!(" {text} "))
            })
        };
        let is_related = |choice: &&Json| {
            text(choice).is_some_and(|text| {
                let related = |word: &String| word.len() > 2 && root(word) == root(&text);
                text.len() > 2
                    && !text.contains(' ')
                    && !self.is_of_the_call(&text)
                    && said.iter().any(related)
            })
        };
        let choices = || parameter.choices.iter();
        let choice = choices()
            .find(is_said)
            .or_else(|| choices().find(is_related))?;
        Some(match parameter.kind.as_str() {
            "array" => json!([choice]),
            _ => choice.clone(),
        })
    }

    /// Returns whether the question states a yes or a no: `private` for `private`, `not archived` for `archived`.
    fn flag(&self, parameter: &Parameter) -> Option<Json> {
        let wanted: Vec<String> = tokens(&parameter.name)
            .into_iter()
            .filter(|word| word != "is" && word != "only")
            .collect();
        let words = &self.question.words;
        let [wanted] = wanted.as_slice() else {
            return None;
        };
        let at = words
            .iter()
            .position(|word| !word.is_quoted && word.lower == *wanted)?;
        let before = at.checked_sub(1).map_or("", |at| words[at].lower.as_str());
        Some(json!(!["not", "non", "no", "without"].contains(&before)))
    }

    /// Returns the name after `named`, `called` or `titled`: up to the end, a comma, or a preposition with a value.
    fn marked_name(&self) -> Option<String> {
        let words = &self.question.words;
        let marker = words
            .iter()
            .position(|word| !word.is_quoted && MARKERS.contains(&word.lower.as_str()))?;
        let begin = marker + 1;
        let mut end = begin;
        while let Some(word) = words.get(end) {
            let is_link = PREPOSITIONS.contains(&word.lower.as_str());
            if end > begin && is_link && self.is_value_after(end) {
                break;
            }
            end += 1;
            if word.ends_clause || word.is_quoted {
                break;
            }
        }
        let name: Vec<&str> = words
            .get(begin..end)?
            .iter()
            .map(|word| word.text.as_str())
            .collect();
        (!name.is_empty()).then(|| name.join(" "))
    }

    /// Returns whether a value or a word of the call follows a preposition.
    fn is_value_after(&self, at: usize) -> bool {
        let words = &self.question.words;
        (at + 1..words.len().min(at + 4)).any(|next| {
            self.mention_at(next).is_some()
                || self.is_of_the_call(&words[next].lower)
                || self.is_parameter(&words[next].lower)
        })
    }

    /// Returns the word after a noun, if it can only be a name or an id.
    fn after_noun(&self, noun: &str) -> Option<String> {
        let words = &self.question.words;
        for (at, word) in words.iter().enumerate() {
            if word.is_quoted || word.ends_clause || stem(&word.lower) != noun {
                continue;
            }
            let mut next = at + 1;
            while words.get(next).is_some_and(|word| {
                ["id", "number", "no", "named", "called", "with"].contains(&word.lower.as_str())
            }) {
                next += 1;
            }
            let Some(value) = words.get(next) else {
                continue;
            };
            let text = value.text.trim_start_matches('@');
            let is_word = NOT_NAMES.contains(&value.lower.as_str())
                || PREPOSITIONS.contains(&value.lower.as_str())
                || self.is_of_the_call(&value.lower)
                || self.is_parameter(&value.lower);
            if text.is_empty() || is_word || text.contains(['/', '=', ':', '.']) {
                continue;
            }
            // A plain word is a name only if it ends the question or a function word follows.
            let behind = words.get(next + 1).map(|word| word.lower.as_str());
            let stands_alone = value.ends_clause
                || behind
                    .is_none_or(|word| NOT_NAMES.contains(&word) || PREPOSITIONS.contains(&word));
            if value.is_quoted || is_id(text) || (stands_alone && text.len() > 1) {
                return Some(text.to_owned());
            }
        }
        None
    }

    /// Returns the plain word between the verb and a preposition: `ibuprofen` in `prescribe ibuprofen to patient 12`. Only if the
    /// call is named for the verb, so that its object is what the call needs.
    fn object_of_verb(&self, stated: &StatedValues) -> Option<String> {
        let words = &self.question.words;
        let verb = words.first()?;
        let object = words.get(1)?;
        let behind = words.get(2).map_or("", |word| word.lower.as_str());
        let is_verb_of_call = self.own.contains(&stem(&verb.lower));
        let is_plain = !object.is_quoted
            && object.lower.chars().all(|c| c.is_alphabetic() || c == '-')
            && !NOT_NAMES.contains(&object.lower.as_str())
            && !self.is_of_the_call(&object.lower)
            && !self.is_parameter(&object.lower);
        let is_new = !stated
            .values
            .values()
            .any(|value| *value == json!(object.text));
        (is_verb_of_call && is_plain && is_new && PREPOSITIONS.contains(&behind))
            .then(|| object.text.clone())
    }

    /// Returns whether a word is part of the call's name, id or path.
    fn is_of_the_call(&self, word: &str) -> bool {
        self.own.contains(&stem(word))
    }

    fn is_parameter(&self, word: &str) -> bool {
        let wanted = stem(word);
        self.api
            .parameters()
            .any(|parameter| nouns(self.api, parameter).contains(&wanted) || parameter.name == word)
    }
}

impl StatedValues {
    /// Adds a value, unless it may not be sent.
    fn insert(&mut self, parameter: &Parameter, value: Json) {
        if super::check(parameter, &value).is_ok() {
            self.values.insert(parameter.name.clone(), value);
        }
    }
}

const LINKS: [&str; 7] = ["is", "to", "as", "=", "of", "the", "with"];
const MARKERS: [&str; 3] = ["named", "called", "titled"];
const PREPOSITIONS: [&str; 14] = [
    "in", "on", "for", "to", "with", "of", "from", "at", "by", "as", "into", "and", "under", "via",
];
const SEARCHED: [&str; 7] = [
    "q", "query", "search", "keyword", "keywords", "term", "text",
];
const COUNTS: [&str; 7] = [
    "limit",
    "per_page",
    "page_size",
    "pagesize",
    "count",
    "first",
    "max_results",
];
const NOT_NAMES: [&str; 52] = [
    "a",
    "an",
    "the",
    "or",
    "is",
    "are",
    "that",
    "this",
    "my",
    "me",
    "it",
    "all",
    "please",
    "have",
    "has",
    "who",
    "which",
    "named",
    "called",
    "details",
    "info",
    "information",
    "i",
    "you",
    "we",
    "they",
    "he",
    "she",
    "was",
    "were",
    "be",
    "do",
    "does",
    "its",
    "did",
    "been",
    "what",
    "new",
    "free",
    "open",
    "not",
    "there",
    "here",
    "now",
    "one",
    "some",
    "any",
    "say",
    "says",
    "exist",
    "get",
    "got",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_whose_name_has_no_words_takes_nothing() {
        let parameter = Parameter {
            name: "_".to_owned(),
            kind: "integer".to_owned(),
            ..Parameter::default()
        };
        let (question, api) = (Question::new("show pet 7"), Api::default());
        let finder = Finder::new(&question, &api, None);
        assert_eq!(finder.explicit(&parameter), None);
    }
}
