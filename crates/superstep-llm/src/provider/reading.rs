//! An answer, as it comes in.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use genai::chat::{self as wire, ChatStreamEvent};

use super::failure::failure;
use super::wire::{call, usage};
use crate::error::ModelError;
use crate::message::Answer;
use crate::name::ModelName;
use crate::price::Prices;
use crate::quiet::quietly;
use crate::reply::{Chunk, Finish, Reply};
use crate::secret::Secret;

/// One answer, as it comes in.
pub(super) struct Reading {
    pub(super) stream: wire::ChatStream,
    pub(super) name: ModelName,
    pub(super) key: Option<Secret>,
    pub(super) prices: Arc<Prices>,
    pub(super) tokens_max: Option<u32>,
    pub(super) text: String,
    /// Read already.
    pub(super) held: Option<Result<Chunk, ModelError>>,
    pub(super) is_over: bool,
}

impl Reading {
    fn chunk(&mut self, event: ChatStreamEvent) -> Option<Chunk> {
        match event {
            ChatStreamEvent::Chunk(chunk) if chunk.content.is_empty() => None,
            ChatStreamEvent::Chunk(chunk) => {
                self.text.push_str(&chunk.content);
                Some(Chunk::Text(chunk.content))
            }
            ChatStreamEvent::ReasoningChunk(chunk) => Some(Chunk::Reasoning(chunk.content)),
            ChatStreamEvent::ToolCallChunk(chunk) => Some(Chunk::ToolCall {
                id: chunk.tool_call.call_id,
                name: chunk.tool_call.fn_name,
            }),
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
            // Not every server says so when it calls, and not every one says so when it ran into the limit.
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
                Some(Ok(event)) => this.chunk(event).map(Ok),
                Some(Err(error)) => {
                    this.is_over = true;
                    Some(Err(failure(&this.name, &error, this.key.as_ref())))
                }
                None => {
                    this.is_over = true;
                    Some(Err(ModelError::Cut))
                }
            };
            if item.is_some() {
                return Poll::Ready(item);
            }
        }
    }
}
