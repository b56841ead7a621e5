//! A reply while it is streaming.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use genai::chat::{self as wire, ChatStreamEvent};

use super::failure::failure;
use super::gate::Gate;
use super::streamed_calls::StreamedCalls;
use super::wire::{call, usage};
use crate::error::ModelError;
use crate::message::Answer;
use crate::name::ModelName;
use crate::price::Prices;
use crate::quiet::quietly;
use crate::reply::{Chunk, Finish, Reply};
use crate::secret::Secret;

/// A reply while it is streaming.
pub(super) struct Reading {
    pub(super) stream: wire::ChatStream,
    pub(super) name: ModelName,
    pub(super) key: Option<Secret>,
    pub(super) prices: Arc<Prices>,
    pub(super) tokens_max: Option<u32>,
    pub(super) text: String,
    pub(super) gate: Gate,
    pub(super) content_bytes_max: usize,
    /// Size of the reasoning, and below of the arguments of each call. `genai` keeps the content; we only count.
    pub(super) reasoning_bytes: usize,
    pub(super) call_bytes: HashMap<String, usize>,
    pub(super) calls: StreamedCalls,
    /// First chunk, read before the stream was returned.
    pub(super) held: Option<Result<Chunk, ModelError>>,
    pub(super) is_over: bool,
}

impl Reading {
    /// Adds an event to the size of the reply. Fails if the reply is too large.
    fn count(&mut self, event: &ChatStreamEvent) -> Result<(), ModelError> {
        match event {
            ChatStreamEvent::ReasoningChunk(chunk)
            | ChatStreamEvent::ThoughtSignatureChunk(chunk) => {
                self.reasoning_bytes += chunk.content.len();
            }
            // Each chunk contains all arguments so far.
            ChatStreamEvent::ToolCallChunk(chunk) => {
                let call = &chunk.tool_call;
                let args = call.fn_arguments.as_str().map_or(0, str::len);
                let bytes = call.call_id.len() + call.fn_name.len() + args;
                self.call_bytes.insert(call.call_id.clone(), bytes);
            }
            _ => {}
        }
        let calls: usize = self.call_bytes.values().sum();
        if self.text.len() + self.reasoning_bytes + calls <= self.content_bytes_max {
            return Ok(());
        }
        Err(ModelError::ReplyTooLarge {
            model: self.name.clone(),
            limit: format!(
                "{} bytes of text, reasoning and arguments",
                self.content_bytes_max
            ),
        })
    }

    /// Returns the gate's verdict if it caused the broken connection, otherwise the error itself.
    fn failure(&self, error: &genai::Error) -> ModelError {
        let verdict = self.gate.verdict();
        verdict.unwrap_or_else(|| failure(&self.name, error, self.key.as_ref()))
    }

    fn chunk(&mut self, event: ChatStreamEvent) -> Option<Chunk> {
        match event {
            ChatStreamEvent::Chunk(chunk) if chunk.content.is_empty() => None,
            ChatStreamEvent::Chunk(chunk) => {
                self.text.push_str(&chunk.content);
                Some(Chunk::Text(chunk.content))
            }
            ChatStreamEvent::ReasoningChunk(chunk) => Some(Chunk::Reasoning(chunk.content)),
            ChatStreamEvent::ToolCallChunk(chunk) => Some(self.calls.fragment(chunk.tool_call)),
            ChatStreamEvent::End(end) => Some(Chunk::End(Box::new(self.reply(end)))),
            ChatStreamEvent::Start
            | ChatStreamEvent::ThoughtSignatureChunk(_)
            | ChatStreamEvent::Heartbeat => None,
        }
    }

    fn reply(&mut self, end: wire::StreamEnd) -> Reply {
        self.is_over = true;
        let usage = end.captured_usage.as_ref().and_then(usage);
        let calls = end
            .captured_content
            .map(wire::MessageContent::into_tool_calls);
        let tool_calls: Vec<_> = calls.unwrap_or_default().into_iter().map(call).collect();
        let is_full = usage.zip(self.tokens_max);
        let is_full = is_full.is_some_and(|(usage, max)| usage.output_tokens >= u64::from(max));
        let finish = match end.captured_stop_reason {
            // Not every server reports the right reason when it calls tools or reaches the limit.
            _ if !tool_calls.is_empty() => Finish::ToolCalls,
            Some(wire::StopReason::Completed(_)) | None if is_full => Finish::Length,
            Some(wire::StopReason::MaxTokens(_)) => Finish::Length,
            Some(wire::StopReason::ContentFilter(_)) => Finish::Filtered,
            Some(wire::StopReason::Other(word)) => Finish::Other(word),
            _ => Finish::Stop,
        };
        Reply {
            answer: Answer {
                content: std::mem::take(&mut self.text).into(),
                tool_calls,
                reasoning: end.captured_reasoning_content,
            },
            usage,
            finish,
            cost: self.prices.cost(&self.name, usage.as_ref()),
            model: self.name.clone(),
        }
    }
}

impl Stream for Reading {
    type Item = Result<Chunk, ModelError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let Some(held) = this.held.take() {
            return Poll::Ready(Some(held));
        }
        if this.is_over {
            return Poll::Ready(None);
        }
        loop {
            let item = match ready!(quietly(|| Pin::new(&mut this.stream).poll_next(cx))) {
                Some(Ok(event)) => match this.count(&event) {
                    Ok(()) => this.chunk(event).map(Ok),
                    Err(error) => {
                        this.is_over = true;
                        Some(Err(error))
                    }
                },
                Some(Err(error)) => {
                    this.is_over = true;
                    Some(Err(this.failure(&error)))
                }
                None => {
                    this.is_over = true;
                    Some(Err(this.gate.verdict().unwrap_or(ModelError::Cut)))
                }
            };
            if item.is_some() {
                return Poll::Ready(item);
            }
        }
    }
}
