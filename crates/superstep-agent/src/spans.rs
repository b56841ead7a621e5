//! Spans of model and tool calls.
//!
//! Each call is reported twice: in the log, with the times recorded when it was made, for the thread's
//! [trace](superstep_core::trace); and live, for `tracing` subscribers at level debug, without any text of a person, a model
//! or a tool.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use superstep_core::Timestamp;
use superstep_core::trace::CallSpan;
use superstep_core::trace::fields::OUTCOME;
use superstep_llm::{Cost, Finish, ModelName, Provider, Reply, Request};
use tracing::field::Empty;
use tracing::{Instrument, Level, Span};

use crate::tool::{Class, Tool};
use crate::trace::{MODEL, TOOL, fields, spans};

/// Start and end time of a call. Recorded with its result, so a node that runs again reports the original times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTimes {
    start: Timestamp,
    end: Timestamp,
}

impl CallTimes {
    /// Awaits the work, and returns its output with the time it took.
    pub async fn by<T>(work: impl Future<Output = T>) -> (T, Self) {
        let start = now();
        let came = work.await;
        (came, Self::since(start))
    }

    pub(crate) fn since(start: Timestamp) -> Self {
        Self {
            start,
            end: now().max(start),
        }
    }
}

/// What a model call returned, as the log keeps it next to the call ([`CallSpan::result`]): with it, the call can be played again
/// without the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedReply {
    /// Label of the request.
    pub label: String,
    /// Model that was asked.
    pub model: ModelName,
    /// The whole reply.
    pub reply: Reply,
}

/// Creates the log span of a model call.
pub(crate) fn model_call(
    asked: &ModelName,
    request: &Request,
    reply: &Reply,
    took: CallTimes,
) -> CallSpan {
    let mut known = Map::new();
    let mut add = |name: &str, value: Json| drop(known.insert(name.to_owned(), value));
    add(fields::OPERATION, spans::MODEL.into());
    add(fields::PROVIDER, provider(&reply.model).into());
    add(fields::REQUEST_MODEL, asked.name().into());
    add(fields::RESPONSE_MODEL, reply.model.name().into());
    // The convention allows several answers to one request.
    add(fields::FINISH, vec![finish(&reply.finish)].into());
    if let Some(usage) = reply.usage {
        add(fields::INPUT_TOKENS, usage.input_tokens.into());
        add(fields::OUTPUT_TOKENS, usage.output_tokens.into());
    }
    if let Cost::NanoDollars(nano) = reply.cost {
        add(fields::COST, nano.into());
    }
    let result = RecordedReply {
        label: request.label.clone(),
        model: asked.clone(),
        reply: reply.clone(),
    };
    CallSpan {
        span: MODEL,
        name: format!("{} {}", spans::MODEL, asked.name()),
        start: took.start,
        end: took.end,
        error: None,
        fields: known,
        // A reply is stored with its step or its state too, so it always encodes.
        result: serde_json::to_value(result).ok(),
    }
}

/// Creates the log span of a tool call, with the tool's class.
pub(crate) fn tool_call(tool: &Tool, id: &str, took: CallTimes, error: Option<String>) -> CallSpan {
    let mut span = tool_span(tool.name(), id, took, error);
    let class = class(tool.class());
    span.fields
        .insert(fields::TOOL_CLASS.to_owned(), class.into());
    span
}

/// Creates the log span of something that a model knows as a tool and a node runs itself. Pass it to
/// [`NodeCx::emit`](superstep_core::NodeCx::emit).
pub fn tool_span(name: &str, id: &str, took: CallTimes, error: Option<String>) -> CallSpan {
    let known = [
        (fields::OPERATION, spans::TOOL),
        (fields::TOOL_NAME, name),
        (fields::TOOL_CALL, id),
    ];
    let known = known.map(|(name, value)| (name.to_owned(), value.into()));
    CallSpan {
        span: TOOL,
        name: format!("{} {name}", spans::TOOL),
        start: took.start,
        end: took.end,
        error,
        fields: known.into_iter().collect(),
        result: None,
    }
}

/// Awaits a model call inside a live span, if a subscriber is enabled.
pub(crate) async fn live_model_call<E>(
    asked: &ModelName,
    call: impl Future<Output = Result<Reply, E>>,
) -> Result<Reply, E> {
    if !tracing::enabled!(Level::DEBUG) {
        return call.await;
    }
    let span = tracing::debug_span!(
        spans::MODEL,
        { fields::OPERATION } = spans::MODEL,
        { fields::PROVIDER } = provider(asked),
        { fields::REQUEST_MODEL } = asked.name(),
        { fields::RESPONSE_MODEL } = Empty,
        { fields::INPUT_TOKENS } = Empty,
        { fields::OUTPUT_TOKENS } = Empty,
        { fields::FINISH } = Empty,
        { fields::COST } = Empty,
        { OUTCOME } = Empty,
    );
    let reply = Box::pin(call).instrument(span.clone()).await;
    match &reply {
        Ok(reply) => tell(&span, reply),
        Err(_) => drop(span.record(OUTCOME, "failed")),
    }
    reply
}

fn tell(span: &Span, reply: &Reply) {
    span.record(fields::RESPONSE_MODEL, reply.model.name());
    span.record(fields::FINISH, finish(&reply.finish));
    if let Some(usage) = reply.usage {
        span.record(fields::INPUT_TOKENS, usage.input_tokens);
        span.record(fields::OUTPUT_TOKENS, usage.output_tokens);
    }
    if let Cost::NanoDollars(nano) = reply.cost {
        span.record(fields::COST, nano);
    }
}

/// Awaits a tool call inside a live span, if a subscriber is enabled.
pub(crate) async fn live_tool_call<T>(tool: &Tool, id: &str, call: impl Future<Output = T>) -> T {
    if !tracing::enabled!(Level::DEBUG) {
        return call.await;
    }
    let span = tracing::debug_span!(
        spans::TOOL,
        { fields::OPERATION } = spans::TOOL,
        { fields::TOOL_NAME } = tool.name(),
        { fields::TOOL_CALL } = id,
        { fields::TOOL_CLASS } = class(tool.class()),
    );
    Box::pin(call).instrument(span).await
}

/// Returns the provider's name in the OpenTelemetry conventions.
fn provider(model: &ModelName) -> &'static str {
    match model.provider() {
        Provider::OpenAiResponses => Provider::OpenAi.word(),
        Provider::Gemini => "gcp.gemini",
        other => other.word(),
    }
}

fn finish(finish: &Finish) -> &str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::Filtered => "content_filter",
        Finish::Other(word) => word,
    }
}

fn class(class: Class) -> &'static str {
    match class {
        Class::Read => "read",
        Class::Idempotent => "idempotent",
        Class::Keyed => "keyed",
        Class::Reconcilable => "reconcilable",
        Class::Unsafe => "unsafe",
    }
}

pub(crate) fn now() -> Timestamp {
    // A clock before 1970 reads as 1970, as everywhere.
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = since.unwrap_or_default().as_millis();
    Timestamp(i64::try_from(ms).unwrap_or(i64::MAX))
}
