//! What a client sends: the whole conversation and the whole state, of which the thread knows the most part.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use superstep::graph::Definition;
use superstep::registry::Assistant;
use superstep::{ChannelKind, ThreadId};

use crate::ag_ui::messages::read_message;
use crate::error::{ApiError, ApiResult};
use crate::follow::{message_channel, request_of};
use crate::permission::Permission;
use crate::start::{CommandBody, IfNotExists, OnDisconnect, RunBody};
use crate::{Shared, thread, wire};

/// The body of a request. Frontend tools, context and forwarded properties are not used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentInput {
    pub(super) thread_id: String,
    pub(super) run_id: String,
    #[serde(default)]
    messages: Vec<Json>,
    #[serde(default)]
    state: Option<Json>,
    #[serde(default)]
    resume: Option<Vec<ResumeEntry>>,
}

/// The answer to an interrupt.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResumeEntry {
    interrupt_id: String,
    status: ResumeStatus,
    #[serde(default)]
    payload: Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ResumeStatus {
    Resolved,
    Cancelled,
}

impl AgentInput {
    fn resume(&self) -> &[ResumeEntry] {
        self.resume.as_deref().unwrap_or_default()
    }

    /// Returns what the caller must be allowed to do.
    pub(super) fn permission(&self) -> Permission {
        match self.resume().is_empty() {
            true => Permission::Run,
            false => Permission::Answer,
        }
    }

    /// Returns the body of the run.
    pub(super) async fn run_body(
        &self,
        app: &Shared,
        assistant: &Assistant,
        graph: &Arc<Definition>,
        thread: &ThreadId,
    ) -> ApiResult<RunBody> {
        let known = known_values(app, graph, thread).await?;
        let input = self.input(graph, &known)?;
        let mut body = RunBody {
            assistant_id: wire::uuid(assistant.id.to_bytes()),
            if_not_exists: Some(IfNotExists::Create),
            on_disconnect: Some(OnDisconnect::Cancel),
            ..RunBody::default()
        };
        if self.resume().is_empty() {
            body.input = Some(Json::Object(input));
        } else {
            body.command = Some(CommandBody {
                resume: Some(Json::Object(self.answers(app, thread).await?)),
                update: (!input.is_empty()).then(|| Json::Object(input)),
                goto: None,
            });
        }
        Ok(body)
    }

    /// Returns what the thread does not know yet, as an input of the graph.
    fn input(&self, graph: &Definition, known: &Json) -> ApiResult<Map<String, Json>> {
        let mut input = Map::new();
        if let Some(channel) = message_channel(graph) {
            let messages = self.new_messages(&known[channel])?;
            if !messages.is_empty() {
                input.insert(channel.to_owned(), Json::Array(messages));
            }
        }
        let state = self.state.as_ref().and_then(Json::as_object);
        for channel in graph.channels() {
            let is_input = graph.inputs().contains(channel.name);
            let given = state.and_then(|state| state.get(channel.name));
            let Some(given) = given.filter(|given| !given.is_null()) else {
                continue;
            };
            // A client sends back what it was shown, and may not write most of it.
            if !is_input
                || channel.kind == ChannelKind::Messages
                || known.get(channel.name) == Some(given)
            {
                continue;
            }
            let written = match channel.kind {
                // It is the state to start from, not something to add.
                ChannelKind::Append | ChannelKind::Topic | ChannelKind::Reduce => {
                    json!({ "__overwrite__": given })
                }
                _ => given.clone(),
            };
            input.insert(channel.name.to_owned(), written);
        }
        Ok(input)
    }

    /// Returns the messages that the thread does not have, by their ids.
    fn new_messages(&self, known: &Json) -> ApiResult<Vec<Json>> {
        let known = known.as_array().into_iter().flatten();
        let known: Vec<&str> = known.filter_map(|message| message["id"].as_str()).collect();
        let mut new = Vec::new();
        for message in &self.messages {
            let id = message["id"].as_str();
            if id.is_none_or(|id| !known.contains(&id)) {
                new.extend(read_message(message)?);
            }
        }
        Ok(new)
    }

    async fn answers(&self, app: &Shared, thread: &ThreadId) -> ApiResult<Map<String, Json>> {
        let open = wire::open_interrupts(app, thread, None).await?;
        let mut answers = Map::new();
        for entry in self.resume() {
            let id = &entry.interrupt_id;
            let found = open
                .iter()
                .find(|open| open.interrupt.id.to_string() == *id);
            let found = found.ok_or_else(|| {
                ApiError::bad_request(format!(
                    "Interrupt {} is not open",
                    superstep::__private::shorten(id)
                ))
            })?;
            let answer = match entry.status {
                ResumeStatus::Resolved => entry.payload.clone(),
                ResumeStatus::Cancelled => {
                    let shown = wire::interrupt(&found.interrupt);
                    declined(&shown).ok_or_else(|| {
                        ApiError::bad_request(format!(
                            "Interrupt {id} cannot be cancelled; answer it, or leave it open"
                        ))
                    })?
                }
            };
            answers.insert(id.clone(), answer);
        }
        Ok(answers)
    }
}

/// Returns the answer of a person who says no; `None` if the question does not allow it.
fn declined(interrupt: &Json) -> Option<Json> {
    let request = request_of(interrupt);
    request.get("action_request")?;
    let is_allowed = request.pointer("/config/allow_ignore")?.as_bool()?;
    let no = json!({ "type": "ignore", "args": null });
    is_allowed.then(|| match interrupt["value"].is_array() {
        true => json!([no]),
        false => no,
    })
}

/// Returns the state of a thread, as clients read it.
async fn known_values(app: &Shared, graph: &Arc<Definition>, thread: &ThreadId) -> ApiResult<Json> {
    let row = thread::find(app, thread).await?;
    // A thread of another graph is refused when the run is submitted.
    if row.is_none_or(|row| row.graph != graph.name()) {
        return Ok(json!({}));
    }
    let state = app.runtime.state_of(graph, thread, None).await?;
    Ok(state.map_or_else(|| json!({}), |state| wire::values(graph, &state.values)))
}
