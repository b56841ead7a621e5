//! What a fork at a checkpoint would do again: the calls that the log has after it, on the newest branch that continues from it.
//!
//! The log has the calls of nodes that ended. A node that is in progress, or waits for a person, may have made others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::checkpoint::format::{Change, EntryKind, TaskWrite};
use superstep::graph::Definition;
use superstep::trace::{CallSpan, is_trace_record};
use superstep::{HistoryEntry, Seq, ThreadId};

use super::calls::{self, CallTotals};
use super::log_branch::entries_after;
use crate::Shared;
use crate::error::ApiResult;
use crate::history;
use crate::wire::{self, CheckpointId};

/// Returns what a fork at a checkpoint would do again.
pub(crate) async fn fork_preview(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    checkpoint: CheckpointId,
) -> ApiResult<Json> {
    let log = app.runtime.log_of(thread).await?;
    let mut entries = entries_after(&log, checkpoint.seq);
    if checkpoint.is_before_input() {
        // The entry of a run that is stored only when it stops has its supersteps, too.
        let input = log.iter().find(|past| past.seq == checkpoint.seq);
        entries.splice(0..0, input);
    }
    let mut preview = ForkPreview::default();
    for past in &entries {
        preview.add_entry(past);
    }
    let repeated: BTreeSet<Seq> = entries.iter().map(|past| past.seq).collect();
    let interrupts = app.runtime.all_interrupts_of(thread).await?;
    let asked = interrupts.iter().filter(|row| repeated.contains(&row.seq));
    let until = match entries.last() {
        Some(last) => history::at(app, graph, thread, CheckpointId::after(last.seq)).await?,
        None => None,
    };
    Ok(json!({
        "thread_id": thread.name(),
        "checkpoint_id": checkpoint.to_uuid(thread),
        "until": until.map(|until| until.id.to_uuid(thread)),
        "tools": preview.by_class(),
        "calls": preview.calls,
        "models": super::totals(preview.models),
        "interrupts": asked.count(),
    }))
}

#[derive(Default)]
struct ForkPreview {
    calls: Vec<Json>,
    models: CallTotals,
    /// By class: how many calls, of which tools.
    classes: BTreeMap<String, (u64, BTreeSet<String>)>,
}

impl ForkPreview {
    fn add_entry(&mut self, past: &HistoryEntry) {
        if past.entry.kind == EntryKind::Update {
            // What a caller wrote; no node ran.
            return;
        }
        for change in &past.entry.changes {
            if let Change::FrameAdvanced(advanced) = change {
                advanced
                    .writes
                    .iter()
                    .for_each(|write| self.add_task(write));
            }
        }
    }

    fn add_task(&mut self, write: &TaskWrite) {
        // A task whose result came from the cache made no calls.
        let events = write.events.iter().filter(|_| !write.cached);
        for event in events.filter(|event| is_trace_record(event)) {
            if let Ok(call) = event.decode::<CallSpan>() {
                self.add_call(write.node.as_str(), &call);
            }
        }
    }

    fn add_call(&mut self, node: &str, call: &CallSpan) {
        match call.span.as_str() {
            calls::MODEL => {
                let number = |name: &str| call.fields.get(name).and_then(Json::as_u64);
                self.models.add_call(number);
            }
            calls::TOOL => {
                let text = |name: &str| call.fields.get(name).and_then(Json::as_str);
                let tool = text(calls::TOOL_NAME).unwrap_or(&call.name).to_owned();
                let class = text(calls::TOOL_CLASS).unwrap_or(UNKNOWN).to_owned();
                self.calls.push(json!({
                    "tool": tool,
                    "class": class,
                    "call_id": text(calls::TOOL_CALL),
                    "node": node,
                    "started_at": wire::time(call.start),
                    "error": call.error,
                }));
                let (count, tools) = self.classes.entry(class).or_default();
                *count += 1;
                tools.insert(tool);
            }
            _ => {}
        }
    }

    fn by_class(&self) -> Json {
        let classes = self.classes.iter().map(|(class, (count, tools))| {
            json!({ "class": class, "calls": count, "tools": tools, "effect": effect(class) })
        });
        classes.collect()
    }
}

/// Returns what a second call means outside: `none`, the `same` state as after the first, or that it happens `again`. A fork has
/// keys of its own, so receivers do not recognize its calls by their keys, and a lookup does not find those of the original.
fn effect(class: &str) -> &'static str {
    match class {
        "read" => "none",
        "idempotent" => "same",
        "keyed" | "reconcilable" | "unsafe" => "again",
        _ => "unknown",
    }
}

/// Class of a tool that a node ran itself, without saying what calling it twice means.
const UNKNOWN: &str = "unknown";
