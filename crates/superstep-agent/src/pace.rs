//! How fast a model answers.

use std::time::Duration;

use superstep_llm::Chunk;
use tokio::time::Instant;

use crate::agent::AgentEvent;

/// Counts the tokens of a reply while they arrive.
#[derive(Debug)]
pub(crate) struct Pace {
    tokens_max: Option<u32>,
    tokens: u64,
    /// When the first token arrived.
    began: Option<Instant>,
    /// When the pace was last told, or the call began.
    told: Instant,
}

impl Pace {
    pub(crate) fn new(tokens_max: Option<u32>) -> Self {
        Self {
            tokens_max,
            tokens: 0,
            began: None,
            told: Instant::now(),
        }
    }

    /// Counts a chunk. Returns an event if it is time for one.
    pub(crate) fn count(&mut self, chunk: &Chunk) -> Option<AgentEvent<'static>> {
        match chunk {
            Chunk::Text(_) | Chunk::Reasoning(_) | Chunk::ToolCall { .. } => self.tokens += 1,
            Chunk::Again { .. } => {
                *self = Self::new(self.tokens_max);
                return None;
            }
            Chunk::End(_) => return None,
        }
        let now = Instant::now();
        let began = *self.began.get_or_insert(now);
        if now - self.told < EVERY {
            return None;
        }
        self.told = now;
        Some(AgentEvent::ModelProgress {
            tokens: self.tokens,
            seconds: (now - began).as_secs_f64(),
            tokens_max: self.tokens_max,
        })
    }
}

const EVERY: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn the_pace_is_told_once_a_second_and_starts_again_with_the_answer() {
    let mut pace = Pace::new(Some(100));
    let mut told = Vec::new();
    let token = Chunk::Text("a".into());
    let again = Chunk::Again {
        why: "cut".into(),
        attempt: 2,
        attempts_max: 4,
    };
    for chunk in [&token, &token, &token, &token, &again, &token] {
        tokio::time::advance(Duration::from_millis(600)).await;
        if let Some(AgentEvent::ModelProgress {
            tokens, seconds, ..
        }) = pace.count(chunk)
        {
            told.push((tokens, seconds));
        }
    }
    assert_eq!(told, [(2, 0.6), (4, 1.8)]);
}
