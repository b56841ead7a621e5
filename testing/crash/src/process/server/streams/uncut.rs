//! Streams that nobody cuts, while what carries tokens between processes breaks: what is in the log comes in its place, and every
//! message comes whole in the end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::Value as Json;

use super::compare::difference;
use super::trial::{StreamTrial, run_body};
use crate::process::server::api::{Api, Fault, Weather};
use crate::process::server::load::{PATIENCE, random_uuid};
use crate::process::server::sse::StreamedEvent;
use crate::process::server::watcher::StreamKind;
use harness::prng::Prng;

/// What all clients saw.
#[derive(Debug, Default)]
pub(in crate::process::server) struct StreamCounts {
    pub(in crate::process::server) streams: AtomicU64,
    pub(in crate::process::server) events: AtomicU64,
    /// Events of messages.
    pub(in crate::process::server) tokens: AtomicU64,
    /// Messages that came as a whole after some of their tokens, because others were lost.
    pub(in crate::process::server) completed: AtomicU64,
}

/// The messages of a stream, as a client puts them together.
#[derive(Debug, Default)]
struct SeenMessages<'a> {
    texts: BTreeMap<&'a str, String>,
    /// How many came as a whole after a part.
    completed: u64,
}

/// Watches the runs of a new thread over one connection, compares that with what is stored in the end, and returns what is wrong.
pub(in crate::process::server) fn watch_uncut(
    ports: &[u16],
    seed: u64,
    number: u64,
    counts: &StreamCounts,
) -> Vec<Fault> {
    let mut prng = Prng::of_trial(seed, number);
    let kind = match prng.below(2) {
        0 => StreamKind::Run,
        _ => *prng.pick(&StreamKind::ALL),
    };
    let thread = random_uuid(&mut prng);
    let trial = StreamTrial {
        port: *prng.pick(ports),
        kind,
        cuts: Vec::new(),
        body: run_body(&mut prng),
        thread: thread.clone(),
        // Only events of the log are compared.
        is_killed: true,
        mutant: None,
    };
    let watched = match trial.perform(&AtomicU64::new(0), &AtomicBool::new(true)) {
        Ok(watched) => watched,
        Err(error) => return vec![("stream_incomplete", format!("{kind:?}: {error:#}"))],
    };
    let events = &watched.pieced;
    let is_of_message = |event: &&StreamedEvent| event.name.starts_with("messages");
    let tokens = events.iter().filter(is_of_message).count() as u64;
    counts.streams.fetch_add(1, Ordering::Relaxed);
    counts
        .events
        .fetch_add(events.len() as u64, Ordering::Relaxed);
    counts.tokens.fetch_add(tokens, Ordering::Relaxed);
    let mut faults = Vec::new();
    if watched.lost > 0 {
        faults.push(("connection_lost", format!("{kind:?} of {thread}")));
    }
    if let Some(difference) = difference(events, &watched.whole, true) {
        faults.push(("stream_differs", format!("{kind:?}: {difference}")));
    }
    if kind == StreamKind::Run {
        let mut api = Api::new(ports, Weather::Outages, PATIENCE);
        let state = api.state(&thread).unwrap_or_default();
        let seen = SeenMessages::of(events);
        counts
            .completed
            .fetch_add(seen.completed, Ordering::Relaxed);
        let incomplete = seen.incomplete(&state["messages"]);
        faults.extend(incomplete.map(|what| ("message_incomplete", what)));
        faults.extend(api.faults);
    }
    faults
}

impl<'a> SeenMessages<'a> {
    /// Adds chunks, and replaces what was there by a message that comes as a whole.
    fn of(events: &'a [StreamedEvent]) -> Self {
        let mut seen = Self::default();
        let events = events.iter();
        for event in events.filter(|event| event.name.starts_with("messages")) {
            let message = &event.data[0];
            let (Some(id), Some(text)) = (message["id"].as_str(), message["content"].as_str())
            else {
                continue;
            };
            let known = seen.texts.entry(id).or_default();
            if message["type"] != "AIMessageChunk" {
                let is_part = event.name == "messages/partial";
                seen.completed += u64::from(!is_part && !known.is_empty());
                known.clear();
            }
            known.push_str(text);
        }
        seen
    }

    /// Returns a message of the state that the client does not have as it is there.
    fn incomplete(&self, messages: &Json) -> Option<String> {
        let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
        if messages.is_empty() {
            return Some("the state has no messages".to_owned());
        }
        messages.iter().find_map(|message| {
            let (id, text) = (message["id"].as_str()?, message["content"].as_str()?);
            match self.texts.get(id) {
                Some(seen) if seen == text => None,
                Some(seen) => Some(format!("{id} is `{seen}`, and `{text}` in the state")),
                None => Some(format!("{id} did not come")),
            }
        })
    }
}

#[test]
fn a_message_is_complete_by_its_chunks_or_as_a_whole() {
    let event = |kind: &str, text: &str| StreamedEvent {
        name: "messages".to_owned(),
        data: serde_json::json!([{ "id": "m", "type": kind, "content": text }, {}]),
        id: "1-1".to_owned(),
    };
    let state = serde_json::json!([{ "id": "m", "content": "Hello you" }]);
    let chunks = ["Hello ", "you"].map(|text| event("AIMessageChunk", text));
    assert_eq!(SeenMessages::of(&chunks).incomplete(&state), None);
    assert!(SeenMessages::of(&chunks[..1]).incomplete(&state).is_some());
    assert!(SeenMessages::of(&[]).incomplete(&state).is_some());
    let whole = [&chunks[..1], &[event("ai", "Hello you")][..]].concat();
    let seen = SeenMessages::of(&whole);
    assert_eq!(seen.incomplete(&state), None);
    assert_eq!(seen.completed, 1);
}
