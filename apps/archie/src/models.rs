//! The models that graphs ask for by name, opened once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, json};
use superstep::trace::{CallSpan, SpanKind, fields, spans};
use superstep::{NodeCx, NodeError, Timestamp};
use superstep_llm::structured::{self, Structured};
use superstep_llm::{Chunk, Cost, Model, ModelError, ModelName, Reply, Request};

/// State holds a model's name; this holds the model.
#[derive(Debug, Default)]
pub struct Models {
    open: Mutex<BTreeMap<String, Arc<dyn Model>>>,
}

impl Models {
    /// Answers under this name with this model.
    pub fn put(&self, name: &str, model: Arc<dyn Model>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(name.to_owned(), model);
    }

    /// The model of this name.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = open.get(name) {
            return Ok(model.clone());
        }
        let parsed: ModelName =
            name.parse()
                .map_err(|error: superstep_llm::NotAModel| ModelError::BadFile {
                    model: ModelName::new(superstep_llm::Provider::Script, name),
                    why: error.to_string(),
                })?;
        let model = superstep_llm::open(&parsed)?;
        open.insert(name.to_owned(), model.clone());
        Ok(model)
    }
}

/// Asks a model, shows its words as they come, and puts the call into the thread's trace.
pub async fn listen(model: &dyn Model, request: &Request, cx: &NodeCx) -> Result<Reply, NodeError> {
    let start = now();
    let mut stream = model.stream(request).await.map_err(failure)?;
    while let Some(chunk) = stream.next().await {
        match chunk.map_err(failure)? {
            Chunk::Text(text) => cx.emit_live(json!({ "token": text }))?,
            Chunk::Again { why } => cx.emit_live(json!({ "again": why }))?,
            Chunk::Reasoning(_) | Chunk::ToolCall { .. } => {}
            Chunk::End(reply) => {
                cx.emit(span(&reply, start))?;
                return Ok(*reply);
            }
        }
    }
    Err(failure(ModelError::Cut))
}

/// Asks a model for an answer with a form, and puts the calls into the thread's trace.
pub async fn ask<T: JsonSchema + DeserializeOwned>(
    model: &dyn Model,
    request: Request,
    cx: &NodeCx,
    otherwise: impl FnOnce() -> T,
) -> Result<Structured<T>, NodeError> {
    let start = now();
    let found = structured::ask(model, request, otherwise)
        .await
        .map_err(failure)?;
    for reply in &found.replies {
        cx.emit(span(reply, start))?;
    }
    Ok(found)
}

/// A call in the trace.
fn span(reply: &Reply, start: Timestamp) -> CallSpan {
    let mut known = Map::new();
    known.insert(fields::OPERATION.to_owned(), spans::MODEL.into());
    known.insert(
        fields::PROVIDER.to_owned(),
        reply.model.provider().word().into(),
    );
    known.insert(fields::RESPONSE_MODEL.to_owned(), reply.model.name().into());
    if let Some(usage) = reply.usage {
        known.insert(fields::INPUT_TOKENS.to_owned(), usage.input_tokens.into());
        known.insert(fields::OUTPUT_TOKENS.to_owned(), usage.output_tokens.into());
    }
    if let Cost::NanoDollars(nano) = reply.cost {
        known.insert(fields::COST.to_owned(), nano.into());
    }
    CallSpan {
        span: SpanKind::Model,
        name: format!("{} {}", spans::MODEL, reply.model),
        start,
        end: now(),
        error: None,
        fields: known,
    }
}

/// Whether to try again is for the error to say.
pub fn failure(error: ModelError) -> NodeError {
    match error.is_retryable() {
        true => NodeError::retryable(error),
        false => NodeError::fatal(error),
    }
}

/// The time, for people.
pub fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
