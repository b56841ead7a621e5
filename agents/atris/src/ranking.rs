//! Ranks calls for a question, without a model: BM25 over the words of each call, agreement of the verb with the method, and
//! how well the values of the question fit the call's parameters.

use std::collections::{BTreeMap, BTreeSet};

use super::catalogue::{Api, Place};
use super::params::{self, Affinity};
use super::question::{MentionKind, Question};
use super::stemming::{is_stop, root, stem, stems, tokens};

/// A call, and how well it matches a question.
#[derive(Debug, Clone)]
pub(super) struct Ranked<'a> {
    pub(super) api: &'a Api,
    pub(super) score: f64,
}

/// Calls with their words, ready to be ranked.
#[derive(Debug)]
pub(super) struct CallIndex<'a> {
    calls: Vec<(&'a Api, CallText)>,
    /// Number of calls with each stem, and with each root.
    stems: BTreeMap<String, usize>,
    roots: BTreeMap<String, usize>,
    /// Average number of words of a call, by field.
    lengths: [f64; FIELDS],
}

impl<'a> CallIndex<'a> {
    /// Reads the words of the calls.
    pub(super) fn new(apis: impl IntoIterator<Item = &'a Api>) -> Self {
        let calls: Vec<(&Api, CallText)> = apis
            .into_iter()
            .map(|api| (api, CallText::of(api)))
            .collect();
        let mut stems = BTreeMap::new();
        let mut roots = BTreeMap::new();
        let mut lengths = [0.0; FIELDS];
        for (_, text) in &calls {
            // The description is too chatty to say how rare a word is.
            let fields = &text.fields[..DESCRIPTION];
            let names: BTreeSet<&String> = fields.iter().flat_map(|field| &field.stems).collect();
            for name in names {
                *stems.entry(name.clone()).or_insert(0) += 1;
            }
            let names: BTreeSet<&String> = fields.iter().flat_map(|field| &field.roots).collect();
            for name in names {
                *roots.entry(name.clone()).or_insert(0) += 1;
            }
            for (length, field) in lengths.iter_mut().zip(&text.fields) {
                *length += field.stems.len() as f64;
            }
        }
        let count = calls.len().max(1) as f64;
        let lengths = lengths.map(|length| (length / count).max(1.0));
        Self {
            calls,
            stems,
            roots,
            lengths,
        }
    }

    /// Ranks the calls, the best first. Leaves out calls that have nothing to do with the question.
    pub(super) fn rank(&self, question: &Question) -> Vec<Ranked<'a>> {
        let mut ranked: Vec<Ranked<'a>> = Vec::new();
        for (api, text) in &self.calls {
            let score = self.words(question, text);
            if score > 0.0 {
                let mut score = score * agreement(question, api, text);
                if is_title(question, api) {
                    score *= VERBATIM;
                }
                ranked.push(Ranked { api, score });
            }
        }
        sort(&mut ranked);
        // Parameters are looked for only in calls that may still win.
        ranked.truncate(CANDIDATES_MAX);
        for ranked in &mut ranked {
            ranked.score *= fit(question, ranked.api);
        }
        sort(&mut ranked);
        ranked
    }

    /// Scores the words that a call shares with the question.
    fn words(&self, question: &Question, text: &CallText) -> f64 {
        if question.terms.is_empty() {
            // `show 5` says nothing but a verb and a value; the parameters decide.
            let is_order = question.method.is_some() && !question.mentions.is_empty();
            return if is_order { BARE } else { 0.0 };
        }
        let mut score = 0.0;
        for term in &question.terms {
            let by_stem = self.weight(text, |field| &field.stems, &term.stem);
            if by_stem > 0.0 {
                score += self.rarity(&self.stems, &term.stem) * by_stem;
            } else {
                let by_root = self.weight(text, |field| &field.roots, &term.root);
                score += RELATED * self.rarity(&self.roots, &term.root) * by_root;
            }
        }
        // Of two calls that match, prefer the one with fewer words that the question does not have.
        let is_said = |(stem, root): &(&String, &String)| {
            let mut terms = question.terms.iter();
            terms.any(|term| term.stem == **stem || term.root == **root)
        };
        let names: BTreeSet<(&String, &String)> = [TITLE, PATH]
            .iter()
            .map(|field| &text.fields[*field])
            .flat_map(|field| field.stems.iter().zip(&field.roots))
            .collect();
        let unsaid = names
            .iter()
            .filter(|name| !is_stop(name.0) && !is_said(name))
            .count();
        score / (1.0 + UNSAID * unsaid as f64)
    }

    /// Returns the weight of a word in a call by BM25: more for important fields and short texts, less for each repetition.
    fn weight(&self, text: &CallText, of: impl Fn(&FieldText) -> &Vec<String>, word: &str) -> f64 {
        let mut sum = 0.0;
        for (at, field) in text.fields.iter().enumerate() {
            let words = of(field);
            let count = words.iter().filter(|other| *other == word).count();
            if count > 0 {
                let length = 1.0 - B + B * words.len() as f64 / self.lengths[at];
                sum += WEIGHTS[at] * count as f64 / length;
            }
        }
        sum / (K1 + sum)
    }

    fn rarity(&self, counts: &BTreeMap<String, usize>, word: &str) -> f64 {
        let seen = counts.get(word).copied().unwrap_or(0) as f64;
        let of = self.calls.len() as f64;
        (1.0 + (of - seen + 0.5).max(0.0) / (seen + 0.5))
            .ln()
            .clamp(0.1, RARE)
    }
}

/// Returns whether the question is the name of the call, word for word.
fn is_title(question: &Question, api: &Api) -> bool {
    let said = question.words.iter().map(|word| word.lower.as_str());
    said.eq(tokens(&api.tool_name).iter().map(String::as_str))
}

/// Returns whether the first call is so far ahead that no model has to choose.
pub(super) fn is_clear(ranked: &[Ranked<'_>]) -> bool {
    match ranked {
        [] => false,
        [_] => true,
        [first, second, ..] => first.score >= second.score * CLEAR,
    }
}

/// Returns the calls that are so close to the first that only a person can tell which is meant. Fewer than two if the first
/// is ahead.
pub(super) fn close<'a, 'b>(ranked: &'b [Ranked<'a>]) -> &'b [Ranked<'a>] {
    let Some(first) = ranked.first() else {
        return &[];
    };
    let end = ranked
        .iter()
        .take_while(|other| other.score * CLOSE >= first.score)
        .count();
    &ranked[..end]
}

fn sort(ranked: &mut [Ranked<'_>]) {
    // The sort is stable: among equals, the first in the document wins.
    ranked.sort_by(|one, other| other.score.total_cmp(&one.score));
}

/// Returns how well the verb of the question agrees with the method of a call.
fn agreement(question: &Question, api: &Api, text: &CallText) -> f64 {
    // `star octo/hello` and `Star a repository`: the call is named for the verb.
    let is_named = text.verbs.contains(&question.first) && !is_stop(&question.first);
    let method = match (question.method, api.method.as_str()) {
        (_, method) if is_named && method != "GET" => 1.3,
        (Some(wanted), method) if wanted == method => 1.3,
        (Some("PUT"), "PATCH") => 1.25,
        (Some("PUT"), "POST") | (Some("POST"), "PUT" | "PATCH") => 0.9,
        (Some("GET") | None, "GET") => 1.1,
        // A question that does not ask for a change should not cause one.
        (Some("GET") | None, _) => 0.3,
        _ => 0.35,
    };
    let number = match (question.is_plural, text.ends_with_parameter) {
        (true, false) => 1.1,
        (false, true) if api.is_read() => 1.1,
        _ => 1.0,
    };
    method * number
}

/// Returns how well the values of the question fit the parameters of a call.
fn fit(question: &Question, api: &Api) -> f64 {
    let stated = params::stated(question, api);
    let mut fit = 1.0;
    for (mention, taken) in question.mentions.iter().zip(&stated.taken) {
        let is_count = question.count(mention).is_some();
        fit *= match (taken, mention.kind) {
            (Some(taken), _) if *taken >= Affinity::NOUN => 1.25,
            (Some(taken), _) if *taken == Affinity::FOREIGN => 0.6,
            (Some(_), _) => 1.1,
            (None, MentionKind::Name) => 1.0,
            (None, _) if is_count && api.is_read() => 1.0,
            // The call would ignore what the question says.
            (None, _) => 0.55,
        };
    }
    fit *= 1.12_f64.powi(stated.worded.min(4) as i32);
    for parameter in &api.required_parameters {
        if !stated.values.contains_key(&parameter.name) && parameter.default.is_null() {
            // The call would have to ask.
            fit *= match parameter.place {
                Place::Path => 0.85,
                _ => 0.95,
            };
        }
    }
    fit
}

#[derive(Debug, Default)]
struct CallText {
    fields: [FieldText; FIELDS],
    /// Stems of the words at the beginning of the call's name and id.
    verbs: BTreeSet<String>,
    ends_with_parameter: bool,
}

#[derive(Debug, Default)]
struct FieldText {
    stems: Vec<String>,
    roots: Vec<String>,
}

impl FieldText {
    fn of(text: &str) -> Self {
        let words = tokens(text);
        Self {
            stems: words.iter().map(|word| stem(word)).collect(),
            roots: words.iter().map(|word| root(word)).collect(),
        }
    }
}

impl CallText {
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
        let names: Vec<&str> = api
            .parameters()
            .take(PARAMETERS_MAX)
            .map(|parameter| parameter.name.as_str())
            .collect();
        let choices: Vec<&str> = api
            .parameters()
            .take(PARAMETERS_MAX)
            .flat_map(|parameter| parameter.choices.iter().take(CHOICES_MAX))
            .filter_map(|choice| choice.as_str())
            .collect();
        let mut verbs: BTreeSet<String> = stems(&api.tool_name).into_iter().take(1).collect();
        verbs.extend(stems(&api.id).into_iter().take(2));
        Self {
            fields: [
                FieldText::of(&api.tool_name),
                FieldText::of(&api.id),
                FieldText::of(&fixed.join(" ")),
                FieldText::of(&api.category_name),
                FieldText::of(&names.join(" ")),
                FieldText::of(&choices.join(" ")),
                FieldText::of(&api.api_description),
            ],
            verbs,
            ends_with_parameter: segments.last().is_some_and(|last| last.starts_with('{')),
        }
    }
}

const FIELDS: usize = 7;
/// Weights of the name, the id, the path, the category, the parameters, their allowed values, and the description.
const WEIGHTS: [f64; FIELDS] = [3.0, 1.5, 2.0, 1.0, 0.8, 1.2, 0.4];
const TITLE: usize = 0;
const PATH: usize = 2;
const DESCRIPTION: usize = 6;
/// The usual constants of BM25: how soon repetitions stop to count, and how much the length of a text matters.
const K1: f64 = 2.0;
const B: f64 = 0.5;
/// Maximum weight of a word. A very rare one may be a name that occurs in a call by chance.
const RARE: f64 = 3.2;
/// Weight of a related word, compared with the word itself.
const RELATED: f64 = 0.7;
/// Penalty for each word of a call that the question does not have.
const UNSAID: f64 = 0.1;
/// Score of every call for a question without words.
const BARE: f64 = 0.1;
/// Weight of a question that is the name of a call.
const VERBATIM: f64 = 1.5;
/// A lead of this much needs no model.
const CLEAR: f64 = 1.35;
/// With a lead of less than this, a person is asked.
const CLOSE: f64 = 1.06;
const CANDIDATES_MAX: usize = 60;
const PARAMETERS_MAX: usize = 40;
const CHOICES_MAX: usize = 40;
