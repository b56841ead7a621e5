//! Labels in a state: which values have some, and which write brought them there.
//!
//! Labels are part of the stored form of their value, so they are found in the state itself. Where a value came from is found in the
//! log if it holds the value as it was written; what a reducer made of several writes has no single origin.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::format::{Change, Entry, EntryKind};
use superstep::label::{Declassified, Labels};
use superstep::{HistoryEntry, START, ThreadId, Value};

use super::log_branch::entries_before;
use crate::Shared;
use crate::error::ApiResult;
use crate::history::Checkpoint;
use crate::wire::{self, CheckpointId};

/// Returns the labels of a thread's state at a checkpoint, and the labels that nodes removed on the way to it.
pub(crate) async fn labels(
    app: &Shared,
    thread: &ThreadId,
    checkpoint: &Checkpoint,
) -> ApiResult<Json> {
    let log = app.runtime.log_of(thread).await?;
    let branch = entries_before(&log, checkpoint.id.seq);
    let branch = log.iter().filter(|past| branch.contains(&past.seq));
    let mut origins: BTreeMap<String, Json> = BTreeMap::new();
    let mut declassified = Vec::new();
    for past in branch {
        for write in writes_of(&past.entry) {
            let origin = write.origin(thread, past);
            let values = write.values.iter().filter_map(|value| value.decode().ok());
            for value in values.collect::<Vec<Json>>() {
                let mut found = Vec::new();
                find(&value, &mut String::new(), &mut found);
                // The newest write of a value is its origin.
                origins.extend(found.iter().map(|found| (found.key(), origin.clone())));
            }
            declassified.extend(write.declassified(&origin));
        }
    }
    let state: Json = checkpoint.state.values.decode()?;
    let mut found = Vec::new();
    find(&state, &mut String::new(), &mut found);
    let shown = found.iter().map(|found| {
        json!({
            "path": found.path,
            "id": found.id(),
            "labels": found.labels,
            "origin": origins.get(&found.key()),
        })
    });
    Ok(json!({
        "thread_id": thread.name(),
        "checkpoint_id": checkpoint.id.to_uuid(thread),
        "values": shown.collect::<Vec<_>>(),
        "declassified": declassified,
    }))
}

/// A value with labels.
struct LabeledValue<'a> {
    /// JSON Pointer to it.
    path: String,
    labels: Labels,
    fields: &'a Map<String, Json>,
}

impl LabeledValue<'_> {
    fn id(&self) -> Option<&str> {
        self.fields.get("id").and_then(Json::as_str)
    }

    /// Returns by what the value is known in writes: its id if it has one, as messages do, or all of it.
    fn key(&self) -> String {
        match self.id() {
            Some(id) => format!("id {id}"),
            None => format!("value {}", Json::Object(self.fields.clone())),
        }
    }
}

/// Finds the values that have at least one label.
fn find<'a>(value: &'a Json, path: &mut String, found: &mut Vec<LabeledValue<'a>>) {
    let length = path.len();
    match value {
        Json::Object(fields) => {
            if let Some(labels) = labels_of(fields).filter(|labels| !labels.is_empty()) {
                found.push(LabeledValue {
                    path: path.clone(),
                    labels,
                    fields,
                });
            }
            for (name, inner) in fields {
                path.push('/');
                path.push_str(&name.replace('~', "~0").replace('/', "~1"));
                find(inner, path, found);
                path.truncate(length);
            }
        }
        Json::Array(items) => {
            for (at, inner) in items.iter().enumerate() {
                path.push_str(&format!("/{at}"));
                find(inner, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Returns the labels of an object that is the stored form of a labeled value or of a message.
fn labels_of(fields: &Map<String, Json>) -> Option<Labels> {
    let is_value = fields.len() == 2 && fields.contains_key("value");
    let is_message = fields.contains_key("type") && fields.contains_key("content");
    let labels = fields.get("labels").filter(|_| is_value || is_message)?;
    serde_json::from_value(labels.clone()).ok()
}

/// Something that was written into the state of the root graph or a subgraph.
struct StateWrite<'a> {
    /// Who wrote it: `node`, `input` or `update`.
    by: &'static str,
    node: Option<&'a str>,
    values: Vec<&'a Value>,
    events: &'a [Value],
}

impl StateWrite<'_> {
    fn origin(&self, thread: &ThreadId, past: &HistoryEntry) -> Json {
        json!({
            "by": self.by,
            "node": self.node,
            "checkpoint_id": CheckpointId::after(past.seq).to_uuid(thread),
            "at": wire::time(past.entry.at),
        })
    }

    /// Returns which labels the node removed, and why.
    fn declassified(&self, origin: &Json) -> Vec<Json> {
        let events = self.events.iter();
        let events = events.filter_map(|event| event.decode::<Json>().ok());
        let removed = events.filter_map(|event| {
            let removed = event.get("declassified")?.clone();
            let Declassified { labels, reason } = serde_json::from_value(removed).ok()?;
            Some(json!({ "labels": labels, "reason": reason, "origin": origin }))
        });
        removed.collect()
    }
}

fn writes_of(entry: &Entry) -> Vec<StateWrite<'_>> {
    let mut writes = Vec::new();
    for change in &entry.changes {
        match change {
            Change::FrameOpened(opened) if opened.input.is_some() => writes.push(StateWrite {
                by: "input",
                node: Some(START),
                values: opened.input.iter().collect(),
                events: &[],
            }),
            Change::StateWritten(written) if written.update.is_some() => {
                writes.push(StateWrite {
                    by: "update",
                    node: None,
                    values: written.update.iter().collect(),
                    events: &[],
                });
            }
            Change::FrameAdvanced(advanced) => {
                let by = match entry.kind {
                    EntryKind::Update => "update",
                    _ => "node",
                };
                writes.extend(advanced.writes.iter().map(|write| StateWrite {
                    by,
                    node: Some(write.node.as_str()),
                    values: write.updates.iter().collect(),
                    events: &write.events,
                }));
            }
            _ => {}
        }
    }
    writes
}

#[test]
fn only_the_stored_forms_of_labels_count() {
    let state = json!({
        "mail": { "labels": ["untrusted"], "value": "pay me" },
        "plain": { "labels": [], "value": 1 },
        // A field of a program that happens to have the name.
        "ticket": { "labels": ["bug"], "title": "It fails" },
        "a/b": [{ "id": "m", "type": "human", "content": "Hi", "labels": ["private"] }],
    });
    let mut found = Vec::new();
    find(&state, &mut String::new(), &mut found);
    let mut shown: Vec<_> = found
        .iter()
        .map(|found| (found.path.as_str(), found.id(), found.labels.to_string()))
        .collect();
    shown.sort_unstable();
    assert_eq!(
        shown,
        [
            ("/a~1b/0", Some("m"), "`private`".to_owned()),
            ("/mail", None, "`untrusted`".to_owned()),
        ]
    );
}
