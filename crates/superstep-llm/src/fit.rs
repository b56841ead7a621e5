//! Shortens a conversation to the context size, and reports what was cut.
//!
//! The token count is a conservative estimate (one token per three bytes), because every model counts differently. The result
//! is deterministic for the same messages. Priorities, in this order: system messages, the last message, then the newest
//! ones. A tool call and its results are kept or dropped together. If the messages that must stay are still too long, the
//! longest of them loses its middle.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::message::{Block, Content, Message};
use crate::request::Request;

/// A change that [`fit`] made to a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// A message was dropped.
    Dropped {
        /// Index of the message in the original conversation, counted from 0.
        message: usize,
        /// Length of its text, in bytes.
        bytes: usize,
    },
    /// The middle of a message was removed.
    Shortened {
        /// Index of the message in the original conversation, counted from 0.
        message: usize,
        /// Length of its text before, in bytes.
        from: usize,
        /// Length of its text now, in bytes.
        to: usize,
    },
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cut::Dropped { message, bytes } => {
                write!(f, "message {} left out ({bytes} bytes)", message + 1)
            }
            Cut::Shortened { message, from, to } => {
                write!(
                    f,
                    "message {} shortened from {from} to {to} bytes",
                    message + 1
                )
            }
        }
    }
}

/// Cuts the messages of a request so that they, the tools and an answer of `tokens_max` fit. Returns what was cut. An answer
/// without a limit counts as 1,024 tokens.
pub fn fit(request: &mut Request, context_size: u64) -> Vec<Cut> {
    let room = room(request, context_size);
    cut(&mut request.messages, room)
}

/// Returns how many tokens the messages of a request may have, so that they, the tools and an answer of `tokens_max` fit.
pub fn room(request: &Request, context_size: u64) -> u64 {
    let answer = u64::from(request.tokens_max.unwrap_or(ANSWER_TOKENS));
    context_size.saturating_sub(answer + tool_tokens(request))
}

/// Estimates the number of tokens of a request: its messages and tools.
pub fn request_tokens(request: &Request) -> u64 {
    let messages: u64 = request.messages.iter().map(tokens_of).sum();
    messages + tool_tokens(request)
}

fn tool_tokens(request: &Request) -> u64 {
    request
        .tools
        .iter()
        .map(|tool| {
            let written = tool.name.len() + tool.description.len() + tool.schema.to_string().len();
            tokens(written)
        })
        .sum()
}

/// Estimates the number of tokens of a message.
pub fn tokens_of(message: &Message) -> u64 {
    let calls: usize = message
        .tool_calls()
        .iter()
        .map(|call| call.name.len() + call.args.to_string().len())
        .sum();
    let blocks = &message.content().blocks;
    let content: usize = blocks
        .iter()
        .map(|block| match block {
            Block::Text { text } => text.len(),
            Block::File { .. } => FILE_BYTES,
        })
        .sum();
    tokens(content + calls) + MESSAGE_TOKENS
}

fn cut(messages: &mut Vec<Message>, room: u64) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let mut total: u64 = messages.iter().map(tokens_of).sum();
    if total <= room {
        return cuts;
    }
    let groups = groups(messages);
    let last = groups.len().saturating_sub(1);
    let mut gone = vec![false; messages.len()];
    for (at, group) in groups.iter().enumerate() {
        let must_stay = at == last
            || group
                .iter()
                .any(|at| matches!(messages[*at], Message::System { .. }));
        if total <= room || must_stay {
            continue;
        }
        for at in group {
            total -= tokens_of(&messages[*at]);
            gone[*at] = true;
            cuts.push(Cut::Dropped {
                message: *at,
                bytes: messages[*at].text().len(),
            });
        }
    }
    let mut kept: Vec<(usize, Message)> = std::mem::take(messages)
        .into_iter()
        .enumerate()
        .filter(|(at, _)| !gone[*at])
        .collect();
    while total > room {
        let Some(shortened) = shorten_longest(&mut kept, total - room) else {
            break;
        };
        cuts.push(shortened);
        total = kept.iter().map(|(_, message)| tokens_of(message)).sum();
    }
    messages.extend(kept.into_iter().map(|(_, message)| message));
    cuts
}

/// Groups messages that stay together, an answer with tool calls and its results, by their indices.
pub fn groups(messages: &[Message]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        match (message, groups.last_mut()) {
            (Message::Tool(_), Some(group)) => group.push(at),
            _ => groups.push(vec![at]),
        }
    }
    groups
}

fn shorten_longest(kept: &mut [(usize, Message)], excess: u64) -> Option<Cut> {
    let longest = kept
        .iter_mut()
        .max_by_key(|(at, message)| (message.text().len(), usize::MAX - *at));
    let (at, message) = longest?;
    let text = message.text();
    let from = text.len();
    let spare = usize::try_from(excess)
        .unwrap_or(usize::MAX)
        .saturating_mul(TOKEN_BYTES)
        + MARK_BYTES;
    if from <= SHORTEST_BYTES {
        return None;
    }
    let keep = from.saturating_sub(spare).max(SHORTEST_BYTES - MARK_BYTES);
    let head = floor(&text, keep * 2 / 3);
    let tail = ceil(&text, from - keep / 3);
    let cut = tail - head;
    let short = format!(
        "{}\n[… {cut} bytes were left out …]\n{}",
        &text[..head],
        &text[tail..]
    );
    if short.len() >= from {
        return None;
    }
    let to = short.len();
    let content = match message {
        Message::System { content } | Message::User { content } => content,
        Message::Assistant(answer) => &mut answer.content,
        Message::Tool(result) => &mut result.content,
    };
    *content = Content::from(short);
    Some(Cut::Shortened {
        message: *at,
        from,
        to,
    })
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(TOKEN_BYTES) as u64
}

/// Fewer bytes per token than any tokenizer we know needs on plain text, so the estimate is on the high side.
const TOKEN_BYTES: usize = 3;

/// Tokens for the envelope of a message.
const MESSAGE_TOKENS: u64 = 8;

/// Bytes that an image counts as, roughly.
const FILE_BYTES: usize = 4_500;

/// Tokens reserved for an answer without a limit.
const ANSWER_TOKENS: u32 = 1_024;

/// Length of the marker for removed text.
const MARK_BYTES: usize = 48;

/// Minimum length of a shortened message.
const SHORTEST_BYTES: usize = 200;
