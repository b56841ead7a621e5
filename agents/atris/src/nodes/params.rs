//! The node that finds the parameters of a call, and asks a person for missing ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::{Interrupt, Node, NodeCx, View};

use super::{Atris, Next, OPTIONS_MAX, failed, noted};
use crate::catalogue::{Api, Parameter, Place};
use crate::model_chooser::{MODEL_CALL, ModelInquiry};
use crate::question::Question;
use crate::state::{AtrisState, AtrisStateUpdate};
use crate::stemming::tokens;
use crate::{EXTRACT_PARAMS, Extraction, answer, params};

/// Finds the parameters of the call. When it runs again, it only asks for one missing value.
pub(crate) struct ExtractParams(pub(crate) Arc<Atris>);

impl Node<AtrisState> for ExtractParams {
    async fn run(&self, state: View<AtrisState>, cx: NodeCx) -> Next {
        let Some(api) = &state.best_api else {
            return failed(EXTRACT_PARAMS, &state, "no call was chosen");
        };
        let Some(known) = &state.parameters else {
            return self.find(&state, api, &cx).await;
        };
        let missing = state.missing();
        match missing.first().and_then(|name| api.parameter(name)) {
            Some(parameter) => ask(parameter, known, &state, &cx).await,
            None => Ok(AtrisStateUpdate::default().into()),
        }
    }
}

impl ExtractParams {
    async fn find(&self, state: &AtrisState, api: &Api, cx: &NodeCx) -> Next {
        let query = state.asked().text;
        let mut found = params::find(&Question::new(query), api, state.entity_name.as_deref());
        let is_missing =
            |parameter: &&Parameter| found.get(&parameter.name).is_none_or(Json::is_null);
        let wanted: Vec<&Parameter> = match self.0.extraction(state) {
            // A header is sent only if the question names it, which is the rules' part.
            Extraction::Model => api
                .parameters()
                .filter(|parameter| parameter.place != Place::Header)
                .take(OPTIONS_MAX)
                .collect(),
            Extraction::Rules | Extraction::Auto => api
                .required_parameters
                .iter()
                .filter(is_missing)
                .take(OPTIONS_MAX)
                .collect(),
        };
        let mut notes = Vec::new();
        // A question that only names a call has no values to copy.
        let is_worth = tokens(query).len() > wanted.len().min(3) + 2;
        if !wanted.is_empty() && is_worth {
            let llm = self.0.llm(state, cx)?;
            let inquiry = ModelInquiry {
                llm: &llm,
                node: EXTRACT_PARAMS,
                call: MODEL_CALL,
                question: query,
            };
            let thought = self.0.chooser.copy(inquiry, &wanted, cx).await?;
            notes.extend(thought.degraded);
            let values = thought.value.unwrap_or_default();
            let checked = checked(&wanted, &values, api, query);
            found.extend(checked.values);
            notes.extend(checked.refused);
        }
        let mut update = AtrisStateUpdate::default().parameters(Some(found));
        if !notes.is_empty() {
            update = noted(update, state, Some(notes.join("; ")));
        }
        Ok(update.into())
    }
}

/// Values of a model that passed the check, and a note for each that did not.
#[derive(Debug, Default)]
struct CheckedValues {
    values: BTreeMap<String, Json>,
    refused: Vec<String>,
}

/// Checks the values of a model: each must be in the question, one of the allowed values, or the default. A text of the question
/// is taken for one parameter only.
fn checked(
    wanted: &[&Parameter],
    values: &serde_json::Map<String, Json>,
    api: &Api,
    query: &str,
) -> CheckedValues {
    let own: BTreeSet<String> = tokens(&format!("{} {} {}", api.tool_name, api.id, api.api_url))
        .into_iter()
        .collect();
    let mut used = BTreeSet::new();
    let mut checked = CheckedValues::default();
    for parameter in wanted {
        let text = match values.get(&parameter.name) {
            Some(Json::String(text)) => text.trim().to_owned(),
            Some(value @ (Json::Number(_) | Json::Bool(_))) => value.to_string(),
            _ => continue,
        };
        if text.is_empty() {
            continue;
        }
        let Some(value) = params::value_of(parameter, &text)
            .filter(|value| params::check(parameter, value).is_ok())
        else {
            continue;
        };
        let is_allowed = parameter.choices.contains(&value) || value == parameter.default;
        let is_own = tokens(&text).iter().all(|word| own.contains(word));
        let is_said = params::stands_in(query, &text) && !is_own;
        if is_allowed || (is_said && used.insert(text.clone())) {
            checked.values.insert(parameter.name.clone(), value);
        } else if !is_said {
            checked.refused.push(format!(
                "the model's value `{}` for `{}` is not in the question and was not used",
                answer::shown(&text),
                answer::shown(&parameter.name)
            ));
        }
    }
    checked
}

/// Interrupts to ask the person for the value of one parameter.
async fn ask(
    parameter: &Parameter,
    known: &BTreeMap<String, Json>,
    state: &AtrisState,
    cx: &NodeCx,
) -> Next {
    let name = &parameter.name;
    let mut words = format!("{}?", answer::shown(name));
    if !parameter.description.is_empty() {
        words = format!("{words} ({})", answer::shown(&parameter.description));
    }
    if !parameter.choices.is_empty() {
        words = format!("{words}\nOne of: {}", choices(parameter));
    }
    if let Some(problem) = state
        .messages
        .iter()
        .flatten()
        .rev()
        .find(|said| said.role == "system" && said.content.starts_with(&format!("`{name}`")))
    {
        words = format!(
            "{words}\nThe last answer was not taken: {}",
            problem.content
        );
    }
    let request = json!({
        "question": words,
        "parameter": name,
        "description": parameter.description,
        "type": parameter.kind,
        "choices": parameter.choices,
    });
    let mut schema = json!({ "type": match parameter.kind.as_str() {
        kind @ ("integer" | "number" | "boolean" | "array" | "object") => kind,
        _ => "string",
    } });
    if !parameter.choices.is_empty() && parameter.kind != "array" {
        schema["enum"] = json!(parameter.choices);
    }
    let question = Interrupt::new(format!("parameter:{name}"), request)
        .kind("missing_value")
        .schema(schema);
    let given: Json = cx.interrupt(question).await?;
    let update = AtrisStateUpdate::default();
    if let Err(why) = params::check(parameter, &given) {
        return Ok(noted(update, state, Some(why)).into());
    }
    let mut parameters = known.clone();
    parameters.insert(name.clone(), given);
    Ok(update.parameters(Some(parameters)).into())
}

/// Returns the allowed values in a line, at most twenty.
fn choices(parameter: &Parameter) -> String {
    let shown = parameter.choices.iter().take(CHOICES_SHOWN);
    let mut shown: Vec<String> = shown
        .map(|choice| match choice {
            Json::String(text) => answer::shown(text),
            other => other.to_string(),
        })
        .collect();
    if parameter.choices.len() > CHOICES_SHOWN {
        shown.push(format!("… ({} in all)", parameter.choices.len()));
    }
    shown.join(", ")
}

const CHOICES_SHOWN: usize = 20;
