//! An evaluation: 120 questions over five APIs, each with the call and the parameters that it must become, or with what must
//! be asked. Scores the rules alone, or the rules and a model.
//!
//! Half of the questions may be used to tune the rules; the other half is held out, and tests print only its score. Nothing is
//! called: reads have no recorded response, and every write waits for an approval that does not come.

mod plain;
mod works;

use std::collections::{BTreeMap, BTreeSet};

use archie_agent::AgentDeps;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep::checkpoint::Metadata;
use superstep::{AnyThread, Memory, Runtime};

use crate::catalogue::{Api, Catalogue, Dialect};
use crate::catalogue_store::{CatalogueStore, audius};
use crate::nodes::choice::WHICH_CALL;
use crate::{Options, agent_with, openapi, params, run_log};

pub use plain::evaluate_plain;

/// A question and what it must become.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct EvaluationQuestion {
    /// Whether the rules were tuned with the question.
    pub half: Half,
    /// Name of the API.
    pub api: String,
    /// The question.
    pub question: String,
    /// Method and path of the call. Absent if the person must be asked which call is meant.
    pub call: Option<String>,
    /// Parameters of the call, without defaults.
    #[serde(default)]
    pub parameters: BTreeMap<String, Json>,
    /// Required parameters that the question does not state.
    #[serde(default)]
    pub missing: BTreeSet<String>,
    /// `call` if the person must be asked which call is meant.
    #[serde(default)]
    pub asks: Option<String>,
}

/// Half of the questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Half {
    /// The rules were tuned with these.
    Tuned,
    /// The rules were not tuned with these.
    HeldOut,
}

/// What a question became.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluationResult {
    /// Name of the API.
    pub api: String,
    /// The question.
    pub question: String,
    /// Half of the question.
    pub half: Half,
    /// Whether the call is right, or the person was asked which one where that was right.
    pub right_call: bool,
    /// Whether everything is right: the call, its parameters, and what is asked.
    pub right: bool,
    /// The call, its parameters and what was asked, in a line.
    pub became: String,
    /// What was expected, in a line.
    pub expected: String,
}

/// Score of an evaluation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Evaluation {
    /// One result per question, in their order.
    pub results: Vec<EvaluationResult>,
    /// Calls that changed something without an approval.
    pub writes_without_approval: usize,
}

impl Evaluation {
    /// Returns the number of right results and of all results of a half; of both without one.
    pub fn score(&self, half: Option<Half>) -> (usize, usize) {
        let of_half = |result: &&EvaluationResult| half.is_none_or(|half| result.half == half);
        let results: Vec<_> = self.results.iter().filter(of_half).collect();
        let right = results.iter().filter(|result| result.right).count();
        (right, results.len())
    }
}

/// Returns the questions.
pub fn questions() -> anyhow::Result<Vec<EvaluationQuestion>> {
    let lines = include_str!("../evaluation/questions.jsonl").lines();
    Ok(lines
        .map(serde_json::from_str)
        .collect::<Result<_, serde_json::Error>>()?)
}

/// Returns the five APIs. The last one has more than a thousand calls.
pub fn catalogues() -> anyhow::Result<Vec<Catalogue>> {
    let mut all = vec![audius()];
    let documents = [
        ("shelter", include_str!("../evaluation/shelter.yaml")),
        ("clinic", include_str!("../evaluation/clinic.yaml")),
        ("forge", include_str!("../evaluation/forge.yaml")),
    ];
    for (name, text) in documents {
        all.push(catalogue(name, text.as_bytes())?);
    }
    let works = works::document().to_string();
    all.push(catalogue("works", works.as_bytes())?);
    Ok(all)
}

fn catalogue(name: &str, document: &[u8]) -> anyhow::Result<Catalogue> {
    let document = openapi::read(document)?;
    Ok(Catalogue {
        name: name.to_owned(),
        title: document.title,
        hosts: document.servers,
        apis: document.apis,
        key: None,
        keyed: false,
        dialect: Dialect::Plain,
        responses: document.responses,
    })
}

/// Asks the questions and scores what they become. `llm` is the name of a model, or [`NO_MODEL`](crate::NO_MODEL) to score the
/// rules alone. Stores the five APIs in `deps.store`; use a store in memory.
/// Tells `progress` how many questions are done.
pub async fn evaluate(
    deps: &AgentDeps,
    llm: &str,
    options: &Options,
    questions: Vec<EvaluationQuestion>,
    mut progress: impl FnMut(usize),
) -> anyhow::Result<Evaluation> {
    let store = CatalogueStore::new(deps.store.clone());
    let catalogues = catalogues()?;
    for catalogue in &catalogues {
        store.put(catalogue).await?;
    }
    let options = Options {
        offline: true,
        ..options.clone()
    };
    let agent = agent_with(deps, &options)?;
    let runtime = Runtime::new(Memory::default());
    agent.register(&runtime);
    let mut evaluation = Evaluation::default();
    for (at, question) in questions.into_iter().enumerate() {
        let thread = agent.thread(&runtime, &format!("question-{at}"), Metadata::default())?;
        let query = format!("@{} {}", question.api, question.question);
        thread
            .start_or_recover(json!({ "llm": llm, "query": query }))
            .await?;
        let became = Became::of(&*thread).await?;
        evaluation.writes_without_approval += became.writes;
        evaluation.results.push(became.judge(question));
        progress(at + 1);
    }
    Ok(evaluation)
}

/// What a run did with a question.
struct Became {
    api: Option<Api>,
    parameters: BTreeMap<String, Json>,
    asks: BTreeSet<String>,
    asks_which: bool,
    writes: usize,
}

impl Became {
    async fn of(thread: &dyn AnyThread) -> anyhow::Result<Self> {
        let written = run_log::last_run(thread).await?;
        let wrote = |field: &str| {
            let mut values = written.iter().rev().map(|node| &node.update[field]);
            values.find(|value| !value.is_null()).cloned()
        };
        let open = thread.interrupts().await?;
        let api: Option<Api> = wrote("bestApi").map(serde_json::from_value).transpose()?;
        let parameters: Option<BTreeMap<String, Json>> = wrote("parameters")
            .map(serde_json::from_value)
            .transpose()?;
        let parameters = parameters.unwrap_or_default();
        let is_open = open
            .iter()
            .any(|open| open.interrupt.kind == "missing_value");
        let missing = |api: &Api| {
            let names = api.required_parameters.iter().map(|one| one.name.clone());
            let is_missing =
                |name: &String| parameters.get(name).is_none_or(Json::is_null) && is_open;
            names.filter(is_missing).collect()
        };
        Ok(Self {
            asks: api.as_ref().map(missing).unwrap_or_default(),
            asks_which: open.iter().any(|open| open.interrupt.kind == WHICH_CALL),
            writes: written
                .iter()
                .flat_map(|node| &node.requests)
                .filter(|request| !request.starts_with("GET ") && !request.ends_with("not made"))
                .count(),
            parameters: said(api.as_ref(), parameters.clone()),
            api,
        })
    }

    fn judge(self, question: EvaluationQuestion) -> EvaluationResult {
        let api = self.api.as_ref();
        let call = api.map(|api| format!("{} {}", api.method, api.api_url));
        let right_call = match &question.asks {
            Some(_) => self.asks_which,
            None => call == question.call && !self.asks_which,
        };
        let is_same =
            is_same_record(&question.parameters, &self.parameters) && question.missing == self.asks;
        let line =
            |call: Option<&str>, values: &BTreeMap<String, Json>, asks: &BTreeSet<String>| {
                format!(
                    "{} {} asks {asks:?}",
                    call.unwrap_or("which call?"),
                    json!(values)
                )
            };
        EvaluationResult {
            right: right_call && (question.asks.is_some() || is_same),
            right_call,
            became: line(call.as_deref(), &self.parameters, &self.asks),
            expected: line(
                question.call.as_deref(),
                &question.parameters,
                &question.missing,
            ),
            half: question.half,
            api: question.api,
            question: question.question,
        }
    }
}

/// Returns the parameters that the question stated: without nulls, defaults and the usual limit.
fn said(api: Option<&Api>, parameters: BTreeMap<String, Json>) -> BTreeMap<String, Json> {
    let is_said = |name: &String, value: &Json| {
        let default = api.and_then(|api| Some(&api.parameter(name)?.default));
        let is_usual = name == params::LIMIT && *value == json!(params::LIMIT_USUAL);
        !value.is_null() && default != Some(value) && !is_usual
    };
    parameters
        .into_iter()
        .filter(|(name, value)| is_said(name, value))
        .collect()
}

/// Returns whether two records of parameters have the same values.
fn is_same_record(one: &BTreeMap<String, Json>, other: &BTreeMap<String, Json>) -> bool {
    let mut fields = one.iter().zip(other);
    one.len() == other.len()
        && fields.all(|(one, other)| one.0 == other.0 && is_same(one.1, other.1))
}

/// Returns whether two values are the same. Numbers are compared as numbers: `80` is `80.0`, also in a list.
fn is_same(one: &Json, other: &Json) -> bool {
    match (one, other) {
        // Large integers have no exact float, so equal numbers are compared as they are first.
        (Json::Number(a), Json::Number(b)) => a == b || is_whole_and_float(one, other),
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        _ => one == other,
    }
}

/// Returns whether one number is an integer, the other a float, and both have the same value.
fn is_whole_and_float(one: &Json, other: &Json) -> bool {
    one.is_f64() != other.is_f64() && one.as_f64() == other.as_f64()
}

#[cfg(test)]
mod tests;
