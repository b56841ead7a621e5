//! The node that makes the call.

use std::collections::BTreeMap;
use std::sync::Arc;

use archie_agent::printable::printable;
use serde_json::{Value as Json, json};
use superstep::label::Labels;
use superstep::trace::CallSpan;
use superstep::{Node, NodeCx, NodeError, View};
use superstep_agent::trace::fields;
use superstep_agent::{AgentEvent, CallTimes, Decision, call_decided_tool, tool_span};
use superstep_llm::{ToolCall, ToolStatus};

use super::{Atris, Next, asked, failed, failed_at, noted, withheld};
use crate::answer::{self, WordedAnswer};
use crate::api_client::{self, ReadOutcome};
use crate::call::ExactCall;
use crate::catalogue::{Api, Catalogue, Dialect};
use crate::state::{AtrisState, AtrisStateUpdate, ChatLine};
use crate::write::{self, ApprovedCall, CALL_API, CallReceipt};
use crate::{EXECUTE_REQUEST, params};

/// Makes the call: at once if it only reads, otherwise after a person's approval.
pub(crate) struct ExecuteRequest(pub(crate) Arc<Atris>);

impl Node<AtrisState> for ExecuteRequest {
    async fn run(&self, state: View<AtrisState>, cx: NodeCx) -> Next {
        let (Some(api), Some(parameters)) = (&state.best_api, &state.parameters) else {
            return failed(
                EXECUTE_REQUEST,
                &state,
                "there is nothing to call, or nothing to call it with",
            );
        };
        let asked = state.asked();
        let name = asked.api();
        let Some(catalogue) = self.0.catalogue(name).await? else {
            return failed(EXECUTE_REQUEST, &state, format!("the API `{name}` is gone"));
        };
        if catalogue.dialect == Dialect::Mcp {
            return self
                .call_mcp_tool(&state, &catalogue, api, parameters, &cx)
                .await;
        }
        let exact = match ExactCall::new(api, parameters) {
            Ok(exact) => exact,
            Err(why) => return failed(EXECUTE_REQUEST, &state, why),
        };
        if let Some(note) = self.missing_key(&catalogue) {
            cx.emit_live(AgentEvent::progress(note))?;
        }
        match api.is_read() {
            true => self.read(&state, &catalogue, api, &exact, &cx).await,
            false => self.write(&state, &catalogue, api, &exact, &cx).await,
        }
    }
}

impl ExecuteRequest {
    /// Names the variable of the API's key if it is not set.
    fn missing_key(&self, catalogue: &Catalogue) -> Option<String> {
        match self.0.api_client.offline {
            true => None,
            false => api_client::missing_key(catalogue),
        }
    }

    async fn read(
        &self,
        state: &AtrisState,
        catalogue: &Catalogue,
        api: &Api,
        exact: &ExactCall,
        cx: &NodeCx,
    ) -> Next {
        let selected = state.selected_host.as_deref();
        let (host, body) = match self.step("request", catalogue, exact, selected, cx).await? {
            Ok(answered) => answered,
            Err((host, why)) => return failed_at(EXECUTE_REQUEST, state, why, host),
        };
        let limit = state
            .parameters
            .as_ref()
            .and_then(|known| known.get(params::LIMIT)?.as_u64());
        let kept = answer::kept(catalogue, &body, limit);
        let update = AtrisStateUpdate::default()
            .selected_host(Some(host.clone()))
            .response(Some(kept.clone()));
        let update = noted(update, state, mismatch(catalogue, api, &body));
        if state.is_entity_query != Some(true) {
            let worded =
                answer::worded(state.query_type.as_deref().unwrap_or_default(), api, &kept);
            return Ok(answered(update, state, worded).into());
        }
        self.about_entity(update, state, catalogue, (&host, &kept), cx)
            .await
    }

    /// Fetches details of the thing that the search found.
    async fn about_entity(
        &self,
        update: AtrisStateUpdate,
        state: &AtrisState,
        catalogue: &Catalogue,
        found: (&str, &Json),
        cx: &NodeCx,
    ) -> Next {
        let (host, kept) = found;
        let wanted = state.entity_name.as_deref().unwrap_or_default();
        let is_it = |item: &&Json| {
            ["name", "title", "handle"].iter().any(|field| {
                item[*field]
                    .as_str()
                    .is_some_and(|name| name.eq_ignore_ascii_case(wanted))
            })
        };
        let list = answer::list(kept).unwrap_or_default();
        let Some(entity) = list.iter().find(is_it).or_else(|| list.first()) else {
            let worded = WordedAnswer {
                text: format!(
                    "Nothing was found under the name {}.",
                    answer::shown(wanted)
                ),
                items: Vec::new(),
            };
            return Ok(answered(update, state, worded).into());
        };
        let update = update.entity(Some(entity.clone()));
        let Some(api) = &state.secondary_api else {
            let worded = answer::worded(
                "",
                state.best_api.as_ref().unwrap_or(&Api::default()),
                entity,
            );
            return Ok(answered(update, state, worded).into());
        };
        let parameters = api
            .required_parameters
            .iter()
            .map(|parameter| (parameter.name.clone(), entity["id"].clone()))
            .collect();
        let exact = match ExactCall::new(api, &parameters) {
            Ok(exact) => exact,
            Err(why) => return failed(EXECUTE_REQUEST, state, why),
        };
        let (host, body) = match self
            .step("detail", catalogue, &exact, Some(host), cx)
            .await?
        {
            Ok(answered) => answered,
            Err((host, why)) => return failed_at(EXECUTE_REQUEST, state, why, host),
        };
        let detail = answer::kept(catalogue, &body, None);
        let worded = match answer::counted(state.asked().text, wanted, &detail) {
            Some(text) => WordedAnswer {
                text,
                items: Vec::new(),
            },
            None => answer::worded("", api, &detail),
        };
        let update = update
            .selected_host(Some(host))
            .secondary_response(Some(detail));
        Ok(answered(update, state, worded).into())
    }

    /// Reads once, as a recorded step. Returns the host and its answer, or why it failed with the host if one answered.
    async fn step(
        &self,
        name: &str,
        catalogue: &Catalogue,
        exact: &ExactCall,
        selected: Option<&str>,
        cx: &NodeCx,
    ) -> Result<Result<(String, Json), (Option<String>, String)>, NodeError> {
        let api_client = self.0.api_client.of_tenant(cx);
        let reading = || async {
            let (read, took) = CallTimes::by(api_client.read(catalogue, exact, selected)).await;
            Ok((read?, took))
        };
        let (read, took): (ReadOutcome, CallTimes) = cx.step(name, reading).await?;
        cx.emit(read_span(name, took, &read))?;
        Ok(match read {
            ReadOutcome::Failed { why } => {
                cx.emit(request_event(exact, "no answer"))?;
                Err((None, why))
            }
            ReadOutcome::Answered { status, host, body } => {
                let items = answer::list(&body)
                    .map(|list| format!("  {} items", list.len()))
                    .unwrap_or_default();
                cx.emit(request_event(exact, &format!("{status}{items}")))?;
                match status {
                    200..=299 => Ok((host, body)),
                    _ => Err((Some(host), api_client::complaint(catalogue, status, &body))),
                }
            }
        })
    }

    /// Calls a tool of an MCP server. The tool asks a person where the settings of the server require it.
    async fn call_mcp_tool(
        &self,
        state: &AtrisState,
        catalogue: &Catalogue,
        api: &Api,
        parameters: &BTreeMap<String, Json>,
        cx: &NodeCx,
    ) -> Next {
        let tools = self.0.mcp.tools().await.tools;
        let Some(tool) = tools.into_iter().find(|tool| tool.name() == api.id) else {
            // An earlier execution may have started the call, so this is not an answer to the question.
            return Err(NodeError::fatal(format!(
                "the MCP server `{}` has no tool `{}` any more",
                catalogue.name, api.id
            )));
        };
        let given = parameters.iter().filter(|(_, value)| !value.is_null());
        let args = given.map(|(name, value)| (name.clone(), value.clone()));
        let call = ToolCall {
            id: api.id.clone(),
            name: api.id.clone(),
            args: Json::Object(args.collect()),
        };
        let (decision, result) = call_decided_tool(&tool, &call, &Labels::NONE, cx).await?;
        let text = result.content.text();
        let is_withheld = matches!(decision, Decision::Ignored | Decision::Expired);
        let is_error = result.status == ToolStatus::Error;
        let how = match (is_withheld, is_error) {
            (true, _) => "not made",
            (false, true) => "failed",
            (false, false) => "ok",
        };
        cx.emit(json!({ "event": "request", "text": format!("{}  {how}", api.id) }))?;
        if is_withheld {
            return withheld(EXECUTE_REQUEST, state, decision);
        }
        if is_error {
            return failed(EXECUTE_REQUEST, state, answer::shown(&text));
        }
        let worded = WordedAnswer {
            text: printable(text.trim_end()),
            items: Vec::new(),
        };
        let update = AtrisStateUpdate::default().response(Some(json!({ "text": text })));
        Ok(answered(update, state, worded).into())
    }

    /// Makes a call that changes something, after a person's approval. Asks a person if the outcome is unknown.
    async fn write(
        &self,
        state: &AtrisState,
        catalogue: &Catalogue,
        api: &Api,
        exact: &ExactCall,
        cx: &NodeCx,
    ) -> Next {
        let Some(host) = catalogue.host(state.selected_host.as_deref()) else {
            return failed(EXECUTE_REQUEST, state, "this API has no host");
        };
        let tool = write::tool(catalogue, api, &self.0.api_client)?;
        let args = serde_json::to_value(ApprovedCall::new(exact, host))?;
        let call = ToolCall {
            id: api.id.clone(),
            name: CALL_API.to_owned(),
            args,
        };
        let (decision, result) = call_decided_tool(&tool, &call, &Labels::NONE, cx).await?;
        let text = result.content.text();
        if matches!(decision, Decision::Ignored | Decision::Expired) {
            cx.emit(request_event(exact, "not made"))?;
            return withheld(EXECUTE_REQUEST, state, decision);
        }
        if result.status == ToolStatus::Error {
            cx.emit(request_event(exact, "not made"))?;
            return failed(EXECUTE_REQUEST, state, answer::shown(&text));
        }
        let update = AtrisStateUpdate::default();
        // A person may have described the outcome in words.
        let Ok(done) = serde_json::from_str::<CallReceipt>(&text) else {
            cx.emit(request_event(exact, "as a person said"))?;
            let worded = WordedAnswer {
                text: answer::shown(&text),
                items: Vec::new(),
            };
            return Ok(answered(
                update.response(Some(json!({ "said": text }))),
                state,
                worded,
            )
            .into());
        };
        cx.emit(request_event(exact, &done.status.to_string()))?;
        let kept = answer::kept(catalogue, &done.body, None);
        let worded = answer::worded("", api, &kept);
        let update = update.selected_host(Some(done.host)).response(Some(kept));
        let update = noted(update, state, mismatch(catalogue, api, &done.body));
        Ok(answered(update, state, worded).into())
    }
}

/// Says how a response differs from the document, if it does.
fn mismatch(catalogue: &Catalogue, api: &Api, body: &Json) -> Option<String> {
    let differences = catalogue.responses.get(&api.id)?.differences(body);
    (!differences.is_empty()).then(|| {
        format!(
            "the response does not match the document: {}",
            differences.join("; ")
        )
    })
}

/// The read in the trace. It has no id of a model's tool call, so it has the name of its step.
fn read_span(step: &str, took: CallTimes, read: &ReadOutcome) -> CallSpan {
    let error = match read {
        ReadOutcome::Failed { why } => Some(why.clone()),
        ReadOutcome::Answered { .. } => None,
    };
    let mut span = tool_span(CALL_API, step, took, error);
    let class = (fields::TOOL_CLASS.to_owned(), "read".into());
    span.fields.extend([class]);
    span
}

fn request_event(exact: &ExactCall, how: &str) -> Json {
    json!({ "event": "request", "text": format!("{} {}  {how}", exact.method, answer::shown(&exact.path)) })
}

/// Adds the answer to the update. Also adds it to the history, because the state is cleared before anyone reads it.
fn answered(
    update: AtrisStateUpdate,
    state: &AtrisState,
    worded: WordedAnswer,
) -> AtrisStateUpdate {
    let said = ChatLine {
        role: "assistant".to_owned(),
        content: worded.text.clone(),
        items: worded.items,
    };
    update
        .formatted_response(Some(worded.text))
        .message_history(asked(state))
        .message_history(said)
}
