//! Choices between APIs and between calls: by the rules if they are clear, by the model if there is one, else by the person.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use superstep::{Interrupt, NodeCx, NodeError};

use super::{Atris, OPTIONS_MAX};
use crate::catalogue::{Api, Catalogue};
use crate::model_chooser::{API_CALL, ModelInquiry};
use crate::question::Question;
use crate::ranking::{CallIndex, Ranked};
use crate::state::AtrisState;
use crate::stemming::tokens;
use crate::{AUDIUS, EXTRACT_CATEGORY, answer, params, rules};

/// Kind of the interrupt that asks which API is meant.
pub(crate) const WHICH_API: &str = "which_api";
/// Kind of the interrupt that asks which call is meant.
pub(crate) const WHICH_CALL: &str = "which_call";
/// Answer that chooses none of the offered.
pub(crate) const NONE: &str = "none";

/// The API for a question that names none.
pub(super) enum ChosenApi {
    /// There is only one.
    Only(Catalogue),
    /// One of several.
    Among(Catalogue),
    /// No API goes with the question. Says why.
    Nothing(String),
}

/// Chooses the API for a question over all known ones.
pub(super) async fn api(
    atris: &Atris,
    state: &AtrisState,
    query: &str,
    cx: &NodeCx,
) -> Result<ChosenApi, NodeError> {
    let mut all = atris.catalogues().await?;
    if all.len() < 2 {
        return Ok(match all.pop() {
            Some(only) => ChosenApi::Only(only),
            None => ChosenApi::Nothing("there is no API".to_owned()),
        });
    }
    let scored = score(&all, query);
    let chosen = match scored.as_slice() {
        [] => {
            let names: Vec<&str> = all.iter().map(|api| api.name.as_str()).collect();
            return Ok(ChosenApi::Nothing(format!(
                "none of the APIs ({}) has a call that goes with that question; choose one with `--api NAME`",
                names.join(", ")
            )));
        }
        [only] => only.name.clone(),
        [first, second, ..] if first.score >= second.score * API_LEAD => first.name.clone(),
        close => {
            let first = close[0].score;
            let close: Vec<&ScoredApi> = close
                .iter()
                .filter(|other| other.score * API_LEAD > first)
                .take(OPTIONS_MAX)
                .collect();
            let options: Vec<(String, String)> = close
                .iter()
                .map(|scored| (scored.name.clone(), scored.best.clone()))
                .collect();
            let llm = atris.llm(state, cx)?;
            let inquiry = ModelInquiry {
                llm: &llm,
                node: EXTRACT_CATEGORY,
                call: API_CALL,
                question: query,
            };
            let thought = atris.chooser.choose(inquiry, &options, cx).await?;
            match thought.value {
                Some(name) => name,
                None => {
                    let others = all.iter().map(|api| api.name.clone()).collect();
                    ask(WHICH_API, "Which API do you mean?", &options, others, cx).await?
                }
            }
        }
    };
    Ok(match all.into_iter().find(|api| api.name == chosen) {
        // The default keeps the question as it is.
        Some(api) if api.name == AUDIUS => ChosenApi::Only(api),
        Some(api) => ChosenApi::Among(api),
        None => ChosenApi::Nothing("no API was chosen".to_owned()),
    })
}

struct ScoredApi {
    name: String,
    score: f64,
    /// The best call of the API, in words.
    best: String,
}

/// Scores the APIs by their best call, the best first. An API that the question names is alone.
fn score(all: &[Catalogue], query: &str) -> Vec<ScoredApi> {
    let said = tokens(query);
    let is_named = |api: &&Catalogue| {
        let name = tokens(&api.name);
        !name.is_empty() && said.windows(name.len()).any(|words| *words == *name)
    };
    let named: Vec<&Catalogue> = all.iter().filter(is_named).collect();
    if let [api] = named.as_slice() {
        return vec![ScoredApi {
            name: api.name.clone(),
            score: 1.0,
            best: String::new(),
        }];
    }
    let question = Question::new(query);
    // One index for all, so that their scores can be compared.
    let index = CallIndex::new(all.iter().flat_map(|api| &api.apis));
    let owners: BTreeMap<usize, &str> = all
        .iter()
        .flat_map(|catalogue| {
            let calls = catalogue.apis.iter();
            calls.map(|api| (std::ptr::from_ref(api).addr(), catalogue.name.as_str()))
        })
        .collect();
    let mut scored: Vec<ScoredApi> = Vec::new();
    for ranked in index.rank(&question) {
        let Some(name) = owners.get(&std::ptr::from_ref(ranked.api).addr()) else {
            continue;
        };
        if !scored.iter().any(|other| other.name == *name) {
            scored.push(ScoredApi {
                name: (*name).to_owned(),
                score: ranked.score,
                best: in_words(&question, ranked.api),
            });
        }
    }
    // A rule that knows the question is worth more than its words.
    if let Some(audius) = scored.iter_mut().find(|api| api.name == AUDIUS)
        && rules::known(query).is_some()
    {
        audius.score *= KNOWN;
    }
    scored.sort_by(|one, other| other.score.total_cmp(&one.score));
    scored
}

/// Asks the person which of these calls is meant. Any call of `apis` may be chosen.
pub(super) async fn ask_call(
    question: &Question,
    close: &[Ranked<'_>],
    apis: &[Api],
    cx: &NodeCx,
) -> Result<String, NodeError> {
    let options: Vec<(String, String)> = close
        .iter()
        .take(SHOWN_MAX)
        .map(|ranked| (ranked.api.id.clone(), in_words(question, ranked.api)))
        .collect();
    let others = apis.iter().map(|api| api.id.clone()).collect();
    ask(WHICH_CALL, "Which call do you mean?", &options, others, cx).await
}

async fn ask(
    kind: &str,
    words: &str,
    options: &[(String, String)],
    others: Vec<String>,
    cx: &NodeCx,
) -> Result<String, NodeError> {
    let mut lines = vec![words.to_owned()];
    for (at, (name, what)) in options.iter().enumerate() {
        lines.push(format!(
            "{}. {}: {}",
            at + 1,
            answer::shown(name),
            answer::shown(what)
        ));
    }
    let more: Vec<String> = others
        .iter()
        .filter(|other| !options.iter().any(|(name, _)| name == *other))
        .map(|other| answer::shown(other))
        .collect();
    if !more.is_empty() {
        lines.push(format!("Others: {}", more.join(", ")));
    }
    lines.push(format!("Answer with a number, a name or `{NONE}`."));
    let offered: Vec<&String> = options.iter().map(|(name, _)| name).collect();
    let mut allowed: Vec<Json> = offered.iter().map(|name| json!(name)).collect();
    allowed.extend(more_of(&others, &offered));
    allowed.push(json!(NONE));
    let request = json!({ "question": lines.join("\n"), "choices": offered });
    let question = Interrupt::new(kind, request)
        .kind(kind)
        .schema(json!({ "type": "string", "enum": allowed }));
    cx.interrupt(question).await
}

fn more_of(others: &[String], offered: &[&String]) -> Vec<Json> {
    let is_new = |other: &&String| !offered.contains(other);
    others
        .iter()
        .filter(is_new)
        .map(|other| json!(other))
        .collect()
}

/// Describes a call with the values that the question states: `GET /pets/7 (Find a pet by its id)`.
fn in_words(question: &Question, api: &Api) -> String {
    let mut path = api.api_url.clone();
    let mut rest = Vec::new();
    for (name, value) in params::stated(question, api).values {
        let value = match value {
            Json::String(text) => text,
            other => other.to_string(),
        };
        let place = format!("{{{name}}}");
        match path.contains(&place) {
            true => path = path.replace(&place, &value),
            false => rest.push(format!("{name}={value}")),
        }
    }
    let rest = match rest.is_empty() {
        true => String::new(),
        false => format!(" with {}", rest.join(", ")),
    };
    format!("{} {path}{rest} ({})", api.method, api.tool_name)
}

/// With a lead of less than this, it is not clear which API is meant.
const API_LEAD: f64 = 1.15;
const KNOWN: f64 = 1.3;
/// Maximum number of calls that a question shows in words.
const SHOWN_MAX: usize = 5;
