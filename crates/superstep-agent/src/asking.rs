//! Model calls from a node: streams the text live, records the call in the thread's trace, and interrupts for a person when a
//! limit is reached.
//!
//! For your own nodes; [`ModelNode`](crate::ModelNode) uses the same functions.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use superstep_core::{NodeCx, NodeError};
use superstep_llm::structured::{Form, Structured};
use superstep_llm::{Chunk, Model, ModelError, Reply, Request};

use crate::agent::AgentEvent;
use crate::agent::spending::{Over, Spending, Stop};
use crate::call::Asking;
use crate::pace::Pace;
use crate::spans::{CallTimes, live_model_call, model_call};

/// Calls models from a node, within the limits of a [`Spending`].
///
/// Without a limit, replies are not recorded: the node's own commit is the record, or a [`NodeCx::step`] around the call.
/// With a limit they are recorded, because the node may pause for a person in between.
pub struct Asker<'a> {
    asking: &'a Asking<'a>,
    spending: Option<&'a Spending>,
    is_recorded: bool,
    /// First part of each call's key.
    name: &'static str,
    /// Number of model calls so far. Part of each call's key, so every call is reserved and settled separately.
    calls: AtomicUsize,
    /// Number of streamed replies so far, of all askers that were [named](Asker::named) from the same one.
    streamed: Arc<AtomicU32>,
}

/// Recorded outcome of an attempt to call a model.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ModelCallRecord {
    Answered(Box<Answered>),
    /// Not called: the estimate does not fit into a budget.
    Over(Over),
}

/// A reply, and the time of the call.
#[derive(Debug, Serialize, Deserialize)]
struct Answered {
    reply: Reply,
    took: CallTimes,
}

/// Whether the chunks of a reply are emitted live.
#[derive(Debug, Clone, Copy)]
enum Pieces<'a> {
    /// Emitted, as pieces of the message with this id.
    Shown {
        message: &'a str,
    },
    Kept,
}

/// Name of the asker that calls a node's own model.
pub(crate) const MODEL_ASKER: &str = "model";

impl<'a> Asker<'a> {
    pub(crate) fn new(asking: &'a Asking<'a>, spending: Option<&'a Spending>) -> Self {
        Self {
            asking,
            spending,
            is_recorded: spending.is_some(),
            name: MODEL_ASKER,
            calls: AtomicUsize::new(0),
            streamed: Arc::default(),
        }
    }

    /// Records every reply, for a node that does more work after the call.
    pub(crate) fn recorded(mut self, is_recorded: bool) -> Self {
        self.is_recorded |= is_recorded;
        self
    }

    /// Returns an asker that reserves and settles its calls under this name.
    ///
    /// Use it in a node that calls [`within`] more than once: each asker counts its calls from zero, so two askers with the same
    /// name would share their keys, and only one of the two calls would be paid for.
    #[must_use]
    pub fn named(&self, name: &'static str) -> Self {
        Self {
            asking: self.asking,
            spending: self.spending,
            is_recorded: self.is_recorded,
            name,
            calls: AtomicUsize::new(0),
            streamed: self.streamed.clone(),
        }
    }

    /// Calls the model as [`Asker::ask`] does, but does not stream the reply: it is not for the person.
    pub async fn ask_quietly(
        &self,
        model: &dyn Model,
        request: &Request,
    ) -> Result<Option<Reply>, NodeError> {
        self.ask_once(model, request, Pieces::Kept).await
    }

    /// Calls the model. If the call would exceed a limit, interrupts for a person; returns `None` if they choose to stop.
    ///
    /// Streams the reply as the next message of the node: the live events of the first call carry the id
    /// [`cx.message_id(0)`](NodeCx::message_id), those of the second call `cx.message_id(1)`, and so on. The runtime gives these
    /// ids to the messages that the node writes without an id, in their order.
    pub async fn ask(
        &self,
        model: &dyn Model,
        request: &Request,
    ) -> Result<Option<Reply>, NodeError> {
        let earlier = self.streamed.fetch_add(1, Ordering::Relaxed);
        let message = self.asking.cx.message_id(earlier);
        let pieces = Pieces::Shown { message: &message };
        self.ask_once(model, request, pieces).await
    }

    /// Calls the model for structured output of type `T`, as [`ask_model_for`] does. Returns `None` if a person chooses to
    /// stop at a limit.
    pub async fn ask_for<T: JsonSchema + DeserializeOwned>(
        &self,
        model: &dyn Model,
        request: Request,
        otherwise: impl FnOnce() -> T,
    ) -> Result<Option<Structured<T>>, NodeError> {
        let mut form = Form::new(model.name(), request, otherwise).map_err(failure)?;
        loop {
            let Some(reply) = self.ask_once(model, form.request(), Pieces::Kept).await? else {
                return Ok(None);
            };
            if let Some(answer) = form.answered(reply) {
                return Ok(Some(answer));
            }
        }
    }

    async fn ask_once(
        &self,
        model: &dyn Model,
        request: &Request,
        pieces: Pieces<'_>,
    ) -> Result<Option<Reply>, NodeError> {
        let cx = self.asking.cx;
        let call = match self.calls.fetch_add(1, Ordering::Relaxed) {
            0 => self.name.to_owned(),
            earlier => format!("{}:{earlier}", self.name),
        };
        loop {
            let asked = self.attempt(model, request, pieces, &call).await?;
            match (asked, self.spending) {
                (ModelCallRecord::Answered(answered), spending) => {
                    let Answered { reply, took } = *answered;
                    cx.emit(model_call(model.name(), request, &reply, took))?;
                    if let Some(spending) = spending {
                        spending.settle(cx, &call, (model, request), &reply).await?;
                    }
                    return Ok(Some(reply));
                }
                (ModelCallRecord::Over(over), Some(spending)) => {
                    if let Stop::Yes = spending.ask_for_more(&over, self.name, self.asking).await? {
                        return Ok(None);
                    }
                }
                (ModelCallRecord::Over(over), None) => {
                    return Err(NodeError::fatal(format!(
                        "a budget was reached and there is none now: {}",
                        over.why
                    )));
                }
            }
        }
    }

    async fn attempt(
        &self,
        model: &dyn Model,
        request: &Request,
        pieces: Pieces<'_>,
        call: &str,
    ) -> Result<ModelCallRecord, NodeError> {
        let cx = self.asking.cx;
        let work = || async {
            if let Some(spending) = self.spending
                && let Some(over) = spending.reserve(cx, call, (model, request)).await?
            {
                return Ok(ModelCallRecord::Over(over));
            }
            let (reply, took) = timed(model, watched(model, request, cx, pieces)).await?;
            Ok(ModelCallRecord::Answered(Box::new(Answered {
                reply,
                took,
            })))
        };
        match self.is_recorded {
            true => cx.step("reply", work).await,
            false => work().await,
        }
    }
}

impl fmt::Debug for Asker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker")
            .field("spending", &self.spending)
            .finish_non_exhaustive()
    }
}

/// Calls a model, streams its reply as live events and emits the call into the thread's trace.
///
/// The reply is not recorded here: the node's own commit is the record, or a [`NodeCx::step`] around this call.
///
/// The live events carry the id of the first message that the node writes without an id,
/// [`cx.message_id(0)`](NodeCx::message_id). A node that streams several replies calls [`within`]: an [`Asker`] counts them.
pub async fn ask_model(
    model: &dyn Model,
    request: &Request,
    cx: &NodeCx,
) -> Result<Reply, NodeError> {
    let message = cx.message_id(0);
    let pieces = Pieces::Shown { message: &message };
    let (reply, took) = timed(model, watched(model, request, cx, pieces)).await?;
    cx.emit(model_call(model.name(), request, &reply, took))?;
    Ok(reply)
}

/// Calls a model for structured output of type `T`, as [`ask`](superstep_llm::structured::ask) does. Does not stream:
/// fragments of JSON are of no use to a reader.
pub async fn ask_model_for<T: JsonSchema + DeserializeOwned>(
    model: &dyn Model,
    request: Request,
    cx: &NodeCx,
    otherwise: impl FnOnce() -> T,
) -> Result<Structured<T>, NodeError> {
    let mut form = Form::new(model.name(), request, otherwise).map_err(failure)?;
    loop {
        let call = watched(model, form.request(), cx, Pieces::Kept);
        let (reply, took) = timed(model, call).await?;
        cx.emit(model_call(model.name(), form.request(), &reply, took))?;
        if let Some(answer) = form.answered(reply) {
            return Ok(answer);
        }
    }
}

/// Runs `work` with an [`Asker`] that keeps to the limits: the node stays alive until its calls are recorded, and pauses for
/// a person at a limit.
///
/// ```
/// # use superstep_agent::{Spending, within};
/// # use superstep_core::{NodeCx, NodeError};
/// # use superstep_llm::{Model, Request};
/// # async fn example(model: &dyn Model, request: &Request, spending: Option<&Spending>, cx: &NodeCx) -> Result<(), NodeError> {
/// let reply = within(spending, cx, async |asker| asker.ask(model, request).await).await?;
/// match reply {
///     Some(reply) => println!("{}", reply.text()),
///     None => println!("the person said to stop"),
/// }
/// # Ok(())
/// # }
/// ```
pub async fn within<T>(
    spending: Option<&Spending>,
    cx: &NodeCx,
    work: impl AsyncFnOnce(&Asker<'_>) -> Result<T, NodeError>,
) -> Result<T, NodeError> {
    let asking = Asking::holding(cx);
    let asker = Asker::new(&asking, spending);
    work(&asker).await
}

/// Like [`within`], but records every reply: for a node that calls a model more than once, so a crash before its commit
/// repeats at most one call.
pub async fn within_recorded<T>(
    spending: Option<&Spending>,
    cx: &NodeCx,
    work: impl AsyncFnOnce(&Asker<'_>) -> Result<T, NodeError>,
) -> Result<T, NodeError> {
    let asking = Asking::holding(cx);
    let asker = Asker::new(&asking, spending).recorded(true);
    work(&asker).await
}

/// Awaits a call inside a live span, and returns its start and end times.
async fn timed(
    model: &dyn Model,
    call: impl Future<Output = Result<Reply, NodeError>>,
) -> Result<(Reply, CallTimes), NodeError> {
    let (reply, took) = CallTimes::by(live_model_call(model.name(), call)).await;
    Ok((reply?, took))
}

/// Calls a model and emits live events: its chunks if they are shown, and in any case its pace and failed attempts.
async fn watched(
    model: &dyn Model,
    request: &Request,
    cx: &NodeCx,
    pieces: Pieces<'_>,
) -> Result<Reply, NodeError> {
    let mut pace = Pace::new(request.tokens_max);
    let mut chunks = model.stream(request).await.map_err(failure)?;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(failure)?;
        if let Some(progress) = pace.count(&chunk) {
            cx.emit_live(progress)?;
        }
        if let Pieces::Shown { message } = pieces {
            show(&chunk, message, cx)?;
        }
        match chunk {
            Chunk::Text(_) | Chunk::Reasoning(_) | Chunk::ToolCall { .. } => {}
            Chunk::Again {
                why,
                attempt,
                attempts_max,
            } => cx.emit_live(AgentEvent::Again {
                why: why.into(),
                attempt,
                attempts_max,
            })?,
            Chunk::End(reply) => return Ok(*reply),
        }
    }
    Err(failure(ModelError::Cut))
}

/// Emits a chunk of the message with this id.
fn show(chunk: &Chunk, message: &str, cx: &NodeCx) -> Result<(), NodeError> {
    match chunk {
        Chunk::Text(text) => cx.emit_live(AgentEvent::Token {
            message: message.into(),
            text: text.into(),
        }),
        Chunk::Reasoning(text) => cx.emit_live(AgentEvent::Reasoning {
            message: message.into(),
            text: text.into(),
        }),
        Chunk::ToolCall {
            index,
            id,
            name,
            args,
        } => cx.emit_live(AgentEvent::ToolCallDelta {
            message: message.into(),
            index: *index,
            id: id.into(),
            name: name.into(),
            args: args.into(),
        }),
        Chunk::Again { .. } => Ok(()),
        Chunk::End(reply) => show_end(reply, message, cx),
    }
}

/// Emits the complete tool calls of a reply, and that it has ended.
fn show_end(reply: &Reply, message: &str, cx: &NodeCx) -> Result<(), NodeError> {
    for call in &reply.answer.tool_calls {
        cx.emit_live(AgentEvent::ToolCall {
            message: message.into(),
            id: call.id.as_str().into(),
            name: call.name.as_str().into(),
            args: Cow::Borrowed(&call.args),
        })?;
    }
    cx.emit_live(AgentEvent::ModelEnded {
        message: message.into(),
        input_tokens: reply.usage.map(|usage| usage.input_tokens),
        output_tokens: reply.usage.map(|usage| usage.output_tokens),
    })
}

/// Converts a model error into a node error, retryable if [`ModelError::is_retryable`] says so.
pub fn failure(error: ModelError) -> NodeError {
    match error.is_retryable() {
        true => NodeError::retryable(error),
        false => NodeError::fatal(error),
    }
}
