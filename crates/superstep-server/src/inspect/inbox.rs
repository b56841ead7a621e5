//! The inbox: the open interrupts of a tenant's threads, the nearest deadline first.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use superstep::checkpoint::format::OnDeadline;
use superstep::checkpoint::{Page, ThreadQuery, ThreadRow};
use superstep::run::OpenInterrupt;
use superstep::trace::{Trace, fields};
use superstep::{RunId, ThreadId, Timestamp};

use super::calls::CallTotals;
use crate::Shared;
use crate::caller::Caller;
use crate::error::ApiResult;
use crate::{thread, wire};

/// Selects items of the inbox.
#[derive(Debug, Default)]
pub(crate) struct InboxQuery {
    /// Only interrupts of threads of this graph.
    pub(crate) graph: Option<String>,
    /// Only interrupts of threads whose last run was of the assistant with this id.
    pub(crate) assistant: Option<String>,
    pub(crate) page: Page,
}

/// Returns a page of the inbox, and how many items there are on all pages.
pub(crate) async fn inbox(
    app: &Shared,
    caller: &Caller,
    query: &InboxQuery,
) -> ApiResult<(Vec<Json>, u64)> {
    let tenant = &caller.tenant;
    let open = wire::open_interrupts_of(app, tenant, Vec::new()).await?;
    let rows = rows_of(app, tenant, open.keys()).await?;
    let mut items: Vec<(&ThreadRow, &OpenInterrupt)> = Vec::new();
    for (id, open) in &open {
        // A thread that was deleted in between has no row.
        if let Some(row) = rows
            .get(id)
            .filter(|row| query.matches(row) && caller.owns_thread(row))
        {
            items.extend(open.iter().map(|open| (row, open)));
        }
    }
    items.sort_by_key(|(_, open)| urgency(open));
    let total = items.len() as u64;
    let shown = items.into_iter().skip(query.page.offset as usize);
    let mut traces: BTreeMap<&ThreadId, Trace> = BTreeMap::new();
    let mut page = Vec::new();
    for (row, open) in shown.take(query.page.limit as usize) {
        let trace = match traces.remove(&row.thread) {
            Some(read) => read,
            None => app.runtime.trace_of(&row.thread).await?,
        };
        page.push(item(row, open, &trace, app.runtime.now()));
        traces.insert(&row.thread, trace);
    }
    Ok((page, total))
}

impl InboxQuery {
    fn matches(&self, row: &ThreadRow) -> bool {
        let assistant = row.metadata.get("assistant_id").and_then(Json::as_str);
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        is(&self.graph, Some(thread::graph_name(row))) && is(&self.assistant, assistant)
    }
}

/// Interrupts without a deadline come last, and of those that are equally urgent, the oldest comes first.
fn urgency(open: &OpenInterrupt) -> (bool, Option<Timestamp>, Timestamp, superstep::InterruptId) {
    let deadline = open.interrupt.deadline;
    let (asked, id) = (open.row.asked_at, open.interrupt.id);
    (deadline.is_none(), deadline, asked, id)
}

async fn rows_of(
    app: &Shared,
    tenant: &str,
    threads: impl Iterator<Item = &ThreadId>,
) -> ApiResult<BTreeMap<ThreadId, ThreadRow>> {
    let threads: Vec<ThreadId> = threads.cloned().collect();
    let mut rows = BTreeMap::new();
    for ids in threads.chunks(ROWS_AT_ONCE as usize) {
        let query = ThreadQuery {
            tenant: tenant.to_owned(),
            ids: Some(ids.to_vec()),
            page: Page {
                limit: ROWS_AT_ONCE,
                offset: 0,
            },
            ..ThreadQuery::default()
        };
        let found = app.runtime.threads(&query).await?.into_iter();
        rows.extend(found.map(|row| (row.thread.clone(), row)));
    }
    Ok(rows)
}

fn item(row: &ThreadRow, open: &OpenInterrupt, trace: &Trace, now: Timestamp) -> Json {
    let record = &open.interrupt;
    let shown = wire::interrupt(record);
    let part = |name: &str| shown["value"].get(name).cloned().unwrap_or_default();
    let run = trace.runs.last();
    let run_id = run.and_then(|run| run.fields.get(fields::RUN)?.as_str()?.parse::<RunId>().ok());
    json!({
        "thread_id": row.thread.name(),
        "graph_id": thread::graph_name(row),
        "assistant_id": row.metadata.get("assistant_id"),
        "run_id": run_id.map(|id| wire::uuid(id.to_bytes())),
        "node": record.node.as_str(),
        "checkpoint_ns": wire::namespace(&record.frame),
        "kind": record.kind,
        "description": part("description"),
        "evidence": part("evidence"),
        "asked_at": wire::time(open.row.asked_at),
        "age_ms": now.0.saturating_sub(open.row.asked_at.0).max(0),
        "deadline": record.deadline.map(wire::time),
        "on_deadline": match record.on_deadline {
            OnDeadline::Wait => "wait",
            OnDeadline::Answer(_) => "answer",
            OnDeadline::Fail => "fail",
        },
        "is_overdue": record.deadline.is_some_and(|deadline| deadline <= now),
        "cost": super::totals(run.map(CallTotals::of).unwrap_or_default()),
        "interrupt": shown,
    })
}

/// Number of threads whose rows are read at once.
const ROWS_AT_ONCE: u32 = 500;
