//! Finds values of parameters in the words of a question.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::{is_choice, value_of};
use crate::catalogue::{Api, Parameter, Place};
use crate::ranking::{ids, quoted, tokens};
use crate::rules;

/// A question, searched for the parameters of one call.
pub(super) struct Finder<'a> {
    query: &'a str,
    api: &'a Api,
    entity_name: Option<&'a str>,
    /// Words of the question without the punctuation around them.
    words: Vec<&'a str>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(query: &'a str, api: &'a Api, entity_name: Option<&'a str>) -> Self {
        let around = |c: char| !c.is_alphanumeric() && !"_-@/+.".contains(c);
        let words = query
            .split_whitespace()
            .map(|word| word.trim_matches(around).trim_end_matches(['.', '?']));
        Self {
            query,
            api,
            entity_name,
            words: words.filter(|word| !word.is_empty()).collect(),
        }
    }

    /// Finds a value next to the name of its parameter: `time=month`, `time: month`, `track id D7KyD`, `title "Blue Sky"`,
    /// `named x`.
    pub(super) fn explicit(&self, parameter: &Parameter) -> Option<Json> {
        let name = parameter.name.to_ascii_lowercase();
        for sign in ['=', ':'] {
            for word in self.query.split_whitespace() {
                if let Some((before, after)) = word.split_once(sign)
                    && before.eq_ignore_ascii_case(&parameter.name)
                    && !after.is_empty()
                {
                    return value_of(parameter, after.trim_matches(['"', ',', '.', '?']));
                }
            }
        }
        let mut names = vec![tokens(&parameter.name)];
        if name == "name" || name.ends_with("_name") || name == "title" {
            names.extend([
                vec!["named".to_owned()],
                vec!["called".to_owned()],
                vec!["titled".to_owned()],
            ]);
        }
        names
            .into_iter()
            .find_map(|name| self.behind(&name, parameter))
    }

    /// Returns the value that follows these words.
    fn behind(&self, name: &[String], parameter: &Parameter) -> Option<Json> {
        let is_number = ["integer", "number"].contains(&parameter.kind.as_str());
        let said: Vec<String> = self
            .words
            .iter()
            .map(|word| word.to_ascii_lowercase())
            .collect();
        for at in 0..said.len().saturating_sub(name.len()) {
            let is_here = name
                .iter()
                .enumerate()
                .all(|(offset, part)| said[at + offset].trim_end_matches(':') == *part);
            if !is_here {
                continue;
            }
            let mut next = at + name.len();
            while said
                .get(next)
                .is_some_and(|word| LINKS.contains(&word.as_str()))
            {
                next += 1;
            }
            let Some(word) = self.words.get(next) else {
                continue;
            };
            let is_linked = next > at + name.len();
            let in_quotes = quoted(self.query).into_iter().find(|text| {
                text.split_whitespace()
                    .next()
                    .is_some_and(|first| first.trim_matches('"') == *word)
            });
            if let Some(text) = in_quotes {
                return value_of(parameter, &text);
            }
            let is_value = is_number
                || is_linked
                || looks_like_value(word)
                || parameter
                    .choices
                    .iter()
                    .any(|choice| is_choice(choice, word));
            if is_value && !self.is_of_the_call(word) {
                return value_of(parameter, word);
            }
        }
        None
    }

    /// Finds a value that the question states without naming the parameter.
    pub(super) fn implied(&self, parameter: &Parameter) -> Option<Json> {
        let name = parameter.name.to_ascii_lowercase();
        if SEARCHED.contains(&name.as_str())
            && parameter.kind == "string"
            && parameter.place == Place::Query
        {
            let searched = self
                .entity_name
                .map(str::to_owned)
                .or_else(|| rules::searched(self.query));
            let is_needed = self.api.required_parameters.contains(parameter);
            return searched
                .filter(|_| is_needed || self.entity_name.is_some())
                .map(Json::from);
        }
        if COUNTS.contains(&name.as_str()) && parameter.kind == "integer" {
            return self.how_many().map(Json::from);
        }
        if let Some(choice) = self.choice(parameter) {
            return Some(choice);
        }
        if name.contains("email") {
            let mail = self
                .words
                .iter()
                .find(|word| word.contains('@') && word.contains('.'));
            return mail.map(|mail| json!(mail));
        }
        None
    }

    /// Returns an allowed value that occurs in the question.
    fn choice(&self, parameter: &Parameter) -> Option<Json> {
        let said = format!(" {} ", tokens(self.query).join(" "));
        let stands = |choice: &&Json| {
            let Some(text) = choice.as_str() else {
                return false;
            };
            let text = tokens(text).join(" ");
            // A word of the call's own name is not a value of the parameter.
            !text.is_empty()
                && text.len() > 2
                && !self.is_of_the_call(&text)
                && said.contains(&format!(" {text} "))
        };
        parameter
            .choices
            .iter()
            .filter(|_| parameter.kind == "string")
            .find(stands)
            .cloned()
    }

    /// Returns the number of items that the question asks for: `top 5`, `first 20`, `5 tracks`.
    pub(super) fn how_many(&self) -> Option<u64> {
        let said = tokens(self.query);
        for (at, word) in said.iter().enumerate() {
            let Ok(number) = word.parse::<u64>() else {
                continue;
            };
            let before = at
                .checked_sub(1)
                .map(|at| said[at].as_str())
                .unwrap_or_default();
            let behind = said.get(at + 1).map(String::as_str).unwrap_or_default();
            let is_count = ["top", "first", "last", "limit", "newest", "latest"].contains(&before)
                || (behind.len() > 3 && behind.ends_with('s') && !before.ends_with("id"));
            if is_count && (1..=1_000).contains(&number) {
                return Some(number);
            }
        }
        None
    }

    /// Finds values for the path parameters, by name.
    pub(super) fn path_values(&self) -> BTreeMap<String, Json> {
        let mut found = BTreeMap::new();
        let segments: Vec<&str> = self.api.api_url.split('/').collect();
        let names: Vec<(usize, &str)> = segments
            .iter()
            .enumerate()
            .filter_map(|(at, segment)| Some((at, segment.strip_prefix('{')?.strip_suffix('}')?)))
            .collect();
        let mut left: Vec<String> = ids(self.query);
        // A pair, such as `owner/repository`, fills two adjacent parameters.
        for pair in names.windows(2) {
            let both = self.words.iter().find_map(|word| {
                word.split_once('/')
                    .filter(|(one, two)| !one.is_empty() && !two.is_empty() && !two.contains('/'))
            });
            if let (true, Some((one, two))) = (pair[1].0 == pair[0].0 + 1, both) {
                found.insert(pair[0].1.to_owned(), json!(one));
                found.insert(pair[1].1.to_owned(), json!(two));
                left.retain(|id| id != one && id != two && *id != format!("{one}/{two}"));
            }
        }
        // A noun before the value, such as `user octocat`.
        for (at, name) in &names {
            if found.contains_key(*name) {
                continue;
            }
            let before = at.checked_sub(1).map(|at| segments[at]).unwrap_or_default();
            let nouns = [noun_of_parameter(name), noun_of_segment(before)];
            if let Some(value) = nouns
                .iter()
                .filter(|noun| !noun.is_empty())
                .find_map(|noun| self.after_noun(noun))
            {
                left.retain(|id| *id != value);
                found.insert((*name).to_owned(), json!(value));
            }
        }
        let open: Vec<&str> = names
            .iter()
            .map(|(_, name)| *name)
            .filter(|name| !found.contains_key(*name))
            .collect();
        let free: Vec<String> = left.into_iter().filter(|id| !self.is_count(id)).collect();
        // Assigns the remaining ids only if it is clear which parameter each belongs to.
        if free.len() >= open.len()
            && !open.is_empty()
            && (open.len() == 1 || free.len() == open.len())
        {
            for (name, id) in open.iter().zip(free) {
                found.insert((*name).to_owned(), json!(id));
            }
        }
        let with_type = found.into_iter().filter_map(|(name, value)| {
            let parameter = self.api.parameter(&name)?;
            let value = value_of(parameter, value.as_str()?)?;
            Some((name, value))
        });
        with_type.collect()
    }

    /// Returns the word after a noun, if it can only be a name or an id.
    fn after_noun(&self, noun: &str) -> Option<String> {
        for (at, word) in self.words.iter().enumerate() {
            let plain = word.to_ascii_lowercase();
            if plain != noun && plain.strip_suffix('s') != Some(noun) {
                continue;
            }
            let mut next = at + 1;
            while self.words.get(next).is_some_and(|word| {
                ["id", "number", "no", "named", "called", "with", "#"]
                    .contains(&word.to_ascii_lowercase().as_str())
            }) {
                next += 1;
            }
            let Some(value) = self.words.get(next) else {
                continue;
            };
            let value = value.trim_start_matches(['#', '@']);
            let plain = value.to_ascii_lowercase();
            let is_word = NOT_NAMES.contains(&plain.as_str()) || self.is_of_the_call(value);
            if value.is_empty() || is_word || value.contains('/') {
                continue;
            }
            // A plain word is a name only if it ends the question or a function word follows.
            let behind = self
                .words
                .get(next + 1)
                .map(|word| word.to_ascii_lowercase());
            let stands_alone = behind.is_none_or(|word| NOT_NAMES.contains(&word.as_str()));
            let is_name = looks_like_value(value) || (stands_alone && value.len() > 1);
            if !is_name {
                continue;
            }
            return Some(value.to_owned());
        }
        None
    }

    fn is_count(&self, id: &str) -> bool {
        id.parse::<u64>()
            .is_ok_and(|number| self.how_many() == Some(number))
    }

    /// Returns whether a word is part of the call's name, id or path.
    fn is_of_the_call(&self, word: &str) -> bool {
        let text = format!(
            "{} {} {}",
            self.api.tool_name, self.api.id, self.api.api_url
        );
        let own = tokens(&text);
        let word = word.to_ascii_lowercase();
        own.iter().any(|own| {
            *own == word
                || word.strip_suffix('s') == Some(own)
                || own.strip_suffix('s') == Some(&word)
        })
    }
}

/// Returns the noun in a parameter's name: `track` for `track_id`.
fn noun_of_parameter(name: &str) -> String {
    let words = tokens(name);
    let noun: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| !["id", "name", "number", "slug", "key", "uuid"].contains(word))
        .collect();
    noun.last()
        .map(|noun| (*noun).to_owned())
        .unwrap_or_default()
}

/// Returns the noun of a path segment in the singular: `track` for `tracks`.
fn noun_of_segment(segment: &str) -> String {
    let last = tokens(segment).pop().unwrap_or_default();
    match last.strip_suffix("ies") {
        Some(rest) => format!("{rest}y"),
        None => last.strip_suffix('s').map_or(last.clone(), str::to_owned),
    }
}

fn looks_like_value(word: &str) -> bool {
    word.chars()
        .any(|c| c.is_ascii_digit() || c == '@' || c == '_')
        || word.chars().skip(1).any(char::is_uppercase)
}

const LINKS: [&str; 7] = ["is", "to", "as", "=", "of", "the", "with"];
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
const NOT_NAMES: [&str; 46] = [
    "a",
    "an",
    "the",
    "of",
    "for",
    "to",
    "in",
    "on",
    "by",
    "with",
    "and",
    "or",
    "is",
    "are",
    "from",
    "at",
    "as",
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
    "into",
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
];
