//! What atris knows, under the names that its brief gave.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use superstep::State;
use superstep::error::InvalidUpdate;

use super::catalogue::Api;

/// The state of a thread of questions.
#[derive(Clone, Debug, Default, PartialEq, State)]
#[state(rename_all = "camelCase", check = check)]
pub struct AtrisState {
    /// The model's name.
    pub llm: Option<String>,
    /// What the person asks; `@NAME` before it says of which API.
    pub query: Option<String>,
    /// What kind of question it is.
    pub query_type: Option<String>,
    /// The categories, or the names of calls, that it is about.
    pub categories: Option<Vec<String>>,
    /// The calls of those.
    pub apis: Option<Vec<Api>>,
    /// The one that answers.
    pub best_api: Option<Api>,
    /// What it is called with; null where nothing is known.
    pub parameters: Option<BTreeMap<String, Json>>,
    /// What it said.
    pub response: Option<Json>,
    /// `simple`, or `compound` where one call is not enough.
    pub complexity: Option<String>,
    /// Whether it is about something with a name, which must be found first.
    pub is_entity_query: Option<bool>,
    /// That name.
    pub entity_name: Option<String>,
    /// What kind of thing it is about.
    pub entity_type: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// Everything that ever went wrong on this thread.
    #[state(append)]
    pub error_history: Vec<ErrorEntry>,
    /// What was said on the way: what a model could not do, what a person filled in.
    pub messages: Option<Vec<ChatLine>>,
    /// Every question with its answer.
    #[state(append)]
    pub message_history: Vec<ChatLine>,
    /// The host that answered last.
    pub selected_host: Option<String>,
    /// What was found under the name.
    pub entity: Option<Json>,
    /// The call that tells more about it.
    pub secondary_api: Option<Api>,
    /// What that said.
    pub secondary_response: Option<Json>,
    /// Kept for those who read the fields of the brief; null.
    pub initial_state: Option<Json>,
    /// The answer in words.
    pub formatted_response: Option<String>,
}

/// One thing that went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorEntry {
    /// Where.
    pub node: String,
    /// What.
    pub error: String,
}

/// One thing that was said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatLine {
    /// `user`, `assistant` or `system`.
    pub role: String,
    /// What.
    pub content: String,
    /// What the answer lists, one short name each, to be compared with the next time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<String>,
}

impl ChatLine {
    /// By whom, and what.
    pub fn new(role: &str, content: impl Into<String>) -> Self {
        Self {
            role: role.to_owned(),
            content: content.into(),
            items: Vec::new(),
        }
    }
}

impl AtrisState {
    /// The input of a question.
    pub fn ask(llm: &str, query: &str) -> AtrisStateUpdate {
        AtrisStateUpdate::default()
            .llm(Some(llm.to_owned()))
            .query(Some(query.to_owned()))
    }

    /// The update after which nothing of this question is left. What is kept is the model, the host and the two histories.
    pub fn reset() -> AtrisStateUpdate {
        AtrisStateUpdate::default()
            .query(None)
            .query_type(None)
            .categories(None)
            .apis(None)
            .best_api(None)
            .parameters(None)
            .response(None)
            .complexity(None)
            .is_entity_query(None)
            .entity_name(None)
            .entity_type(None)
            .error(None)
            .messages(None)
            .entity(None)
            .secondary_api(None)
            .secondary_response(None)
            .initial_state(None)
            .formatted_response(None)
    }

    /// The name of the API that is asked, and the question without it.
    pub fn asked(&self) -> (&str, &str) {
        let query = self.query.as_deref().unwrap_or_default().trim();
        match query.strip_prefix('@') {
            Some(rest) => {
                let (name, query) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                (name, query.trim())
            }
            None => (super::AUDIUS, query),
        }
    }

    /// What the call needs and nobody knows yet.
    pub fn missing(&self) -> Vec<String> {
        let (Some(api), Some(known)) = (&self.best_api, &self.parameters) else {
            return Vec::new();
        };
        let is_missing = |name: &&String| known.get(*name).is_none_or(Json::is_null);
        let names = api
            .required_parameters
            .iter()
            .map(|parameter| &parameter.name);
        names.filter(is_missing).cloned().collect()
    }

    /// How often each error came, most often first.
    pub fn error_frequency(&self) -> Vec<(&ErrorEntry, usize)> {
        let mut counted: Vec<(&ErrorEntry, usize)> = Vec::new();
        for entry in &self.error_history {
            match counted.iter_mut().find(|(other, _)| *other == entry) {
                Some((_, count)) => *count += 1,
                None => counted.push((entry, 1)),
            }
        }
        counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counted
    }
}

/// An error that came more often than this on a thread is worth a warning.
pub const OFTEN: usize = 5;

/// What holds for every update, whichever node writes it.
fn check(state: &AtrisState, update: &AtrisStateUpdate) -> Result<(), InvalidUpdate> {
    if let Some(Some(best)) = update.written_best_api() {
        let is_offered = state.apis.iter().flatten().any(|api| api == best);
        if !is_offered {
            return Err(InvalidUpdate::rule("`bestApi` is one of `apis`"));
        }
    }
    if let Some(Some(parameters)) = update.written_parameters()
        && let Some(api) = &state.best_api
    {
        let is_known =
            |name: &String| api.parameter(name).is_some() || super::params::is_local(name);
        if let Some(unknown) = parameters.keys().find(|name| !is_known(name)) {
            return Err(InvalidUpdate::rule(format!(
                "`{}` takes no parameter `{unknown}`",
                api.id
            )));
        }
    }
    if let Some(Some(categories)) = update.written_categories()
        && categories.is_empty()
    {
        return Err(InvalidUpdate::rule("`categories` names at least one"));
    }
    Ok(())
}
