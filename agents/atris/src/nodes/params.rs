//! The node that finds the parameters of a call, and asks a person for missing ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::{Interrupt, Node, NodeCx, View};

use super::{Atris, Next, OPTIONS_MAX, failed, noted};
use crate::catalogue::{Api, Parameter};
use crate::state::{AtrisState, AtrisStateUpdate};
use crate::{EXTRACT_PARAMS, answer, params, ranking};

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
        let (_, query) = state.asked();
        let mut found = params::find(query, api, state.entity_name.as_deref());
        let is_missing =
            |parameter: &&Parameter| found.get(&parameter.name).is_none_or(Json::is_null);
        let missing: Vec<&Parameter> = api
            .required_parameters
            .iter()
            .filter(is_missing)
            .take(OPTIONS_MAX)
            .collect();
        let mut degraded = None;
        // A question that only names a call has no values to copy.
        if !missing.is_empty() && ranking::tokens(query).len() > missing.len() + 2 {
            let llm = state.llm.as_deref().unwrap_or_default();
            let thought = self
                .0
                .chooser
                .copy(llm, EXTRACT_PARAMS, query, &missing, cx)
                .await?;
            degraded = thought.degraded;
            for (parameter, text) in copied(&missing, thought.value.unwrap_or_default(), api, query)
            {
                if let Some(value) = params::value_of(parameter, &text)
                    .filter(|value| params::check(parameter, value).is_ok())
                {
                    found.insert(parameter.name.clone(), value);
                }
            }
        }
        Ok(noted(
            AtrisStateUpdate::default().parameters(Some(found)),
            state,
            degraded,
        )
        .into())
    }
}

/// Returns the copied values that really occur in the question, each text for one parameter only.
fn copied<'a>(
    missing: &[&'a Parameter],
    values: serde_json::Map<String, Json>,
    api: &Api,
    query: &str,
) -> Vec<(&'a Parameter, String)> {
    let own: BTreeSet<String> =
        ranking::tokens(&format!("{} {} {}", api.tool_name, api.id, api.api_url))
            .into_iter()
            .collect();
    let mut used = BTreeSet::new();
    let mut taken = Vec::new();
    for parameter in missing {
        let Some(text) = values
            .get(&parameter.name)
            .and_then(Json::as_str)
            .map(str::trim)
        else {
            continue;
        };
        let is_own = ranking::tokens(text).iter().all(|word| own.contains(word));
        if params::stands_in(query, text) && !is_own && used.insert(text.to_owned()) {
            taken.push((*parameter, text.to_owned()));
        }
    }
    taken
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
