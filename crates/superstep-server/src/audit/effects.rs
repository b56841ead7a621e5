//! What the tools of a run did outside, recorded before the run counts as ended.
//!
//! The thread's log has a record of each call. If the process dies between the entries of the audit log and the end of the run, the
//! next process comes here again for the same run, so calls that are in the audit log are left out.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use superstep::__private::chain;
use superstep::checkpoint::format::{Change, Entry};
use superstep::checkpoint::{BoxFuture, CheckpointResult};
use superstep::registry::{NewDelivery, RunEnd, RunRow};
use superstep::trace::CallSpan;
use superstep::{RunEndHook, RunEndHookError, Runtime, Seq, ThreadId, Timestamp};

use super::AuditLog;
use super::writer::AuditRecord;
use crate::inspect::calls;
use crate::wire;

/// Records the calls of tools at the end of each run.
pub(crate) struct EffectRecorder {
    pub(crate) runtime: Runtime,
    pub(crate) log: Arc<AuditLog>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ToolCall {
    /// Its place in the log of its thread, which is the same however often the log is read.
    place: String,
    at: Timestamp,
    tool: String,
    class: Option<String>,
    call: Option<String>,
    is_failed: bool,
}

impl RunEndHook for EffectRecorder {
    fn before_end<'a>(
        &'a self,
        run: &'a RunRow,
        _: &'a RunEnd,
    ) -> BoxFuture<'a, Result<Vec<NewDelivery>, RunEndHookError>> {
        Box::pin(async move {
            let recorded = self.record(run).await;
            recorded.map_err(|error| RunEndHookError(chain(&error)))?;
            Ok(Vec::new())
        })
    }
}

impl EffectRecorder {
    async fn record(&self, run: &RunRow) -> CheckpointResult<()> {
        // Clocks of workers differ a little. A call too many is found among those that are recorded.
        let since = Timestamp(run.created.0.saturating_sub(CLOCKS_DIFFER_MS));
        let mut calls = self.calls(&run.thread, since).await?;
        if calls.is_empty() {
            return Ok(());
        }
        let known = self.recorded(&run.thread, since).await?;
        calls.retain(|call| !known.contains(&call.place));
        if calls.is_empty() {
            return Ok(());
        }
        let record = |call: &ToolCall| AuditRecord {
            at: self.runtime.now(),
            principal: run.principal.clone(),
            action: TOOL_CALL.to_owned(),
            resource: resource_of(&run.thread),
            detail: json!({
                "run": wire::uuid(run.id.to_bytes()),
                "tool": call.tool,
                "class": call.class,
                "call": call.call,
                "outcome": if call.is_failed { "failed" } else { "ok" },
                "at": call.at.0,
                "place": call.place,
            })
            .to_string(),
        };
        let records = calls.iter().map(record).collect();
        self.log.append(run.thread.tenant(), records).await
    }

    /// Returns the calls of tools in the thread's log since a time, oldest first.
    async fn calls(&self, thread: &ThreadId, since: Timestamp) -> CheckpointResult<Vec<ToolCall>> {
        let store = self.runtime.checkpointer();
        let Some(loaded) = store.load(thread).await? else {
            return Ok(Vec::new());
        };
        let mut calls = Vec::new();
        let mut end = loaded.head.seq;
        // Back from the end, page by page, until the entries are older.
        loop {
            let after = Seq(end.0.saturating_sub(u64::from(PAGE)));
            let page = store.entries(thread, after, PAGE).await?;
            let mut is_older = after.0 == 0;
            for stored in page.iter().filter(|stored| stored.seq <= end) {
                let entry = Entry::read(stored, thread)?;
                match entry.at < since {
                    true => is_older = true,
                    false => collect_calls(&mut calls, stored.seq, &entry),
                }
            }
            if is_older {
                calls.sort_by(|a, b| (a.at, &a.place).cmp(&(b.at, &b.place)));
                return Ok(calls);
            }
            end = after;
        }
    }

    /// Returns the places of the thread's calls that were recorded since a time.
    async fn recorded(
        &self,
        thread: &ThreadId,
        since: Timestamp,
    ) -> CheckpointResult<BTreeSet<String>> {
        let (registry, tenant) = (self.log.registry(), thread.tenant());
        let resource = resource_of(thread);
        let mut places = BTreeSet::new();
        let mut end = registry.audit_head(tenant).await?.seq;
        while end > 0 {
            let after = end.saturating_sub(u64::from(PAGE));
            let page = registry.audit(tenant, after, PAGE).await?;
            // What is before the first entry was pruned.
            let first = page.first().map(|first| first.seq);
            let mut is_older = first != Some(after + 1);
            for entry in page.iter().filter(|entry| entry.seq <= end) {
                is_older |= entry.at.0 < since.0.saturating_sub(CLOCKS_DIFFER_MS);
                if entry.action == TOOL_CALL && entry.resource == resource {
                    let detail = serde_json::from_str::<Json>(&entry.detail).unwrap_or_default();
                    places.extend(detail["place"].as_str().map(str::to_owned));
                }
            }
            if is_older {
                break;
            }
            end = after;
        }
        Ok(places)
    }
}

impl fmt::Debug for EffectRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EffectRecorder").finish_non_exhaustive()
    }
}

/// Adds the calls of tools that an entry of a thread's log has records of.
fn collect_calls(calls: &mut Vec<ToolCall>, seq: Seq, entry: &Entry) {
    let mut number = 0_u32;
    for change in &entry.changes {
        let Change::FrameAdvanced(advanced) = change else {
            continue;
        };
        // A result from the cache is one of an earlier call.
        let writes = advanced.writes.iter().filter(|write| !write.cached);
        for event in writes.flat_map(|write| &write.events) {
            let Ok(span) = event.decode::<CallSpan>() else {
                continue;
            };
            if span.span.as_str() != "tool" {
                continue;
            }
            number += 1;
            calls.push(ToolCall {
                place: format!("{seq}.{number}"),
                at: span.end,
                tool: text_of(&span.fields, calls::TOOL_NAME).unwrap_or(span.name),
                class: text_of(&span.fields, calls::TOOL_CLASS),
                call: text_of(&span.fields, calls::TOOL_CALL),
                is_failed: span.error.is_some(),
            });
        }
    }
}

/// Returns a field, not longer than an entry should be: models choose the ids of calls.
fn text_of(fields: &Map<String, Json>, name: &str) -> Option<String> {
    let text = fields.get(name)?.as_str()?;
    Some(text.chars().take(FIELD_CHARS_MAX).collect())
}

fn resource_of(thread: &ThreadId) -> String {
    format!("/threads/{}", thread.name())
}

const TOOL_CALL: &str = "tool.call";
const PAGE: u32 = 200;
const FIELD_CHARS_MAX: usize = 256;
/// By how much the clocks of the processes of a server may differ.
const CLOCKS_DIFFER_MS: i64 = 60_000;

#[cfg(test)]
mod tests {
    use superstep::prelude::*;
    use superstep::registry::{MemoryRegistry, NewRun, Registry, RunStatus, WhenBusy};
    use superstep::trace::CallKind;
    use superstep::{AssistantId, RunId};

    use super::*;

    #[derive(Clone, Debug, Default, State)]
    struct Paid {
        receipt: Option<String>,
    }

    async fn pay(_: View<Paid>, cx: NodeCx) -> Result<PaidUpdate, NodeError> {
        cx.emit(CallSpan {
            span: CallKind::from_static("tool"),
            name: "refund".to_owned(),
            start: Timestamp(0),
            end: Timestamp(0),
            error: Some("the receiver said something secret".to_owned()),
            fields: Map::new(),
            result: None,
        })?;
        Ok(PaidUpdate::default().receipt(Some("paid".to_owned())))
    }

    /// A process that dies before the end of a run is stored leaves it to the next one, which comes here again.
    #[tokio::test]
    async fn a_call_is_recorded_once_however_often_its_run_ends() {
        let graph = Graph::builder("pay")
            .node("pay", pay)
            .edge(START, "pay")
            .edge("pay", END)
            .build()
            .unwrap();
        let runtime = Runtime::new(Memory::default());
        let thread = runtime.thread(&graph, "t").unwrap();
        thread.start(PaidUpdate::default()).await.unwrap();
        let registry = MemoryRegistry::new();
        let recorder = EffectRecorder {
            log: Arc::new(AuditLog::start(Arc::new(registry.clone()), None)),
            runtime: runtime.clone(),
        };
        let run = NewRun {
            id: RunId::from_bytes([1; 16]),
            thread: "t".parse().unwrap(),
            assistant: AssistantId::from_bytes([1; 16]),
            principal: "ann".to_owned(),
            request: Vec::new(),
            arguments: json!({}),
            metadata: json!({}),
            when_busy: WhenBusy::Enqueue,
            at: runtime.now(),
            due: runtime.now(),
        };
        let end = RunEnd {
            status: RunStatus::Success,
            error: Json::Null,
            at: runtime.now(),
            deliveries: Vec::new(),
        };
        for _ in 0..3 {
            recorder.before_end(&run.pending_row(), &end).await.unwrap();
        }
        let entries = registry.audit("", 0, 10).await.unwrap();
        assert_eq!(entries.len(), 1, "{entries:?}");
        assert_eq!(entries[0].resource, "/threads/t");
        assert!(entries[0].detail.contains("\"outcome\":\"failed\""));
        assert!(!entries[0].detail.contains("secret"));
    }
}
