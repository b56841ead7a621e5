//! State of `atris`. Field names follow the brief.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep::State;
use superstep::error::InvalidUpdate;

use super::Extraction;
use super::catalogue::Api;

/// State of a thread of questions. Fields that belong to one question are cleared before the next.
#[derive(Clone, Debug, Default, PartialEq, State)]
#[state(rename_all = "camelCase", check = check)]
pub struct AtrisState {
    /// Name of the model; `none` asks no model.
    pub llm: Option<String>,
    /// The person's question. Begins with `@API` to choose an API, or with `@API/CALL` to choose a call. Without it,
    /// `extract_category_node` chooses the API and adds it.
    pub query: Option<String>,
    /// Kind of the question, from a rule, or `general`.
    pub query_type: Option<String>,
    /// Categories or names of calls that the question is about. Never empty.
    pub categories: Option<Vec<String>>,
    /// Calls to choose from.
    pub apis: Option<Vec<Api>>,
    /// Call that answers the question; one of `apis`.
    pub best_api: Option<Api>,
    /// Parameters of the call by name. Null where the value is not known yet.
    pub parameters: Option<BTreeMap<String, Json>>,
    /// Answer of the server, shortened to fit the state.
    pub response: Option<Json>,
    /// `simple`, or `compound` if one call is not enough.
    pub complexity: Option<String>,
    /// Whether the question is about something with a name, which must be searched for first.
    pub is_entity_query: Option<bool>,
    /// Name to search for.
    pub entity_name: Option<String>,
    /// Kind of thing that the question is about, such as `track`.
    pub entity_type: Option<String>,
    /// Why the question failed.
    pub error: Option<String>,
    /// All errors of this thread, in order.
    #[state(append)]
    pub error_history: Vec<ErrorEntry>,
    /// Notes on the way to the answer: why a model could not help, why an answer was not accepted.
    pub messages: Option<Vec<ChatLine>>,
    /// All questions of this thread, each followed by its answer.
    #[state(append)]
    pub message_history: Vec<ChatLine>,
    /// Host that answered last, with its port if that is not the default.
    pub selected_host: Option<String>,
    /// The thing that the search for `entityName` found.
    pub entity: Option<Json>,
    /// Call that returns details of the found thing.
    pub secondary_api: Option<Api>,
    /// Answer to that call, shortened to fit the state.
    pub secondary_response: Option<Json>,
    /// Choices that the question started with, for processes that resume it: `{"extraction": "model"}`, else null.
    pub initial_state: Option<Json>,
    /// The answer as text.
    pub formatted_response: Option<String>,
}

/// One error of the thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorEntry {
    /// Name of the node that failed.
    pub node: String,
    /// Message for a person, on one line.
    pub error: String,
}

/// One line of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatLine {
    /// `user`, `assistant` or `system`.
    pub role: String,
    /// Text of the line.
    pub content: String,
    /// Short names of the things that the answer lists, so that a watch can compare them with the next answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<String>,
}

/// A question in its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// Name of the API. Absent if it is not chosen yet.
    pub api: Option<&'a str>,
    /// Id of the call. Absent if the person did not choose one.
    pub call: Option<&'a str>,
    /// The question itself.
    pub text: &'a str,
}

impl Asked<'_> {
    /// Returns the name of the API. Default: Audius, also for questions from before APIs were chosen.
    pub fn api(&self) -> &str {
        self.api.unwrap_or(super::AUDIUS)
    }
}

impl ChatLine {
    /// Creates a line without items.
    pub fn new(role: &str, content: impl Into<String>) -> Self {
        Self {
            role: role.to_owned(),
            content: content.into(),
            items: Vec::new(),
        }
    }
}

impl AtrisState {
    /// Returns the input of a run that asks a question.
    pub fn ask(llm: &str, query: &str) -> AtrisStateUpdate {
        AtrisStateUpdate::default()
            .llm(Some(llm.to_owned()))
            .query(Some(query.to_owned()))
    }

    /// Returns the input of a run that asks a question and lets `extraction` read it, in every process that resumes the run.
    pub fn ask_with(llm: &str, query: &str, extraction: Extraction) -> AtrisStateUpdate {
        // Also clears the choice of an earlier question, in case its run did not end.
        Self::ask(llm, query).initial_state(Self::choices(extraction))
    }

    /// Returns the choices to store. `None` if they are the default, or if the rules decide alone: such a thread has no model.
    pub(super) fn choices(extraction: Extraction) -> Option<Json> {
        match extraction {
            Extraction::Model => Some(json!({ "extraction": EXTRACTION_MODEL })),
            Extraction::Rules | Extraction::Auto => None,
        }
    }

    /// Returns who reads the question, if the thread stores it.
    pub fn extraction(&self) -> Option<Extraction> {
        let choices = self.initial_state.as_ref()?;
        (choices["extraction"] == EXTRACTION_MODEL).then_some(Extraction::Model)
    }

    /// Returns the update that clears the question. It keeps the model, the host and the two histories.
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

    /// Returns the parts of the question: the chosen API and call, and the text without them.
    pub fn asked(&self) -> Asked<'_> {
        let query = self.query.as_deref().unwrap_or_default().trim();
        let Some(rest) = query.strip_prefix('@') else {
            return Asked {
                api: None,
                call: None,
                text: query,
            };
        };
        let (address, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let (api, call) = match address.split_once('/') {
            Some((api, call)) => (api, Some(call)),
            None => (address, None),
        };
        Asked {
            api: Some(api),
            call,
            text: text.trim(),
        }
    }

    /// Returns the names of the required parameters that have no value yet.
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

    /// Returns how often each error occurred, the most frequent first.
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

const EXTRACTION_MODEL: &str = "model";

/// An error that occurs more often than this on one thread is marked with a warning.
pub const OFTEN: usize = 5;

/// Checks the rules that every update must follow, whichever node writes it.
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
