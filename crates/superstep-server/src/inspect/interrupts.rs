//! The interrupts of a thread with their answers: what was asked, and who answered what.

use serde_json::{Value as Json, json};
use superstep::ThreadId;
use superstep::checkpoint::{AnswerBody, Page};
use superstep::error::CheckpointError;
use superstep::run::{OpenInterrupt, open_interrupts};

use crate::Shared;
use crate::error::ApiResult;
use crate::wire;

/// Returns a page of the interrupts of a thread, newest first, and how many there are on all pages.
pub(crate) async fn interrupts(
    app: &Shared,
    thread: &ThreadId,
    page: Page,
) -> ApiResult<(Vec<Json>, u64)> {
    let rows = app.runtime.all_interrupts_of(thread).await?;
    let total = rows.len() as u64;
    let newest = rows.into_iter().rev().skip(page.offset as usize);
    let shown = newest.take(page.limit as usize).collect();
    let shown = open_interrupts(shown).map_err(CheckpointError::from)?;
    Ok((shown.iter().map(interrupt).collect(), total))
}

fn interrupt(found: &OpenInterrupt) -> Json {
    let (record, row) = (&found.interrupt, &found.row);
    let answer = row.answer.as_ref().and_then(|answer| match answer {
        AnswerBody::Value(value) => Some(value.decode().unwrap_or(Json::Null)),
        AnswerBody::Expired => None,
    });
    let status = match (&answer, row.is_open()) {
        (Some(_), _) => "answered",
        (None, true) => "open",
        // Its deadline passed, or the run went on without it.
        (None, false) => "closed",
    };
    json!({
        "id": record.id.to_string(),
        "node": record.node.as_str(),
        "kind": record.kind,
        "asked_at": wire::time(row.asked_at),
        "value": wire::interrupt(record)["value"],
        "status": status,
        "answer": answer,
        "answered_by": Some(&row.answered_by).filter(|by| !by.is_empty()),
        "answered_at": row.answered_at.map(wire::time),
    })
}
