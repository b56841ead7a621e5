//! The JSON form of outcomes and events, for web services and front ends.
//!
//! One form for every consumer: an object with a `type` or an `outcome`, names in snake case, state and payloads as plain JSON.
//! `docs/streaming.md` documents it, and a test compares the two. It is not the stored form, which is in `checkpoint/format.rs`.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use crate::checkpoint::format::{
    AfterFailure, AttemptFailed, Breakpoint, BreakpointSide, EntryKind, InterruptRecord, Stop,
};
use crate::error::Failure;
use crate::run::{Outcome, StreamEvent, StreamEventBody};
use crate::value::Value;

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = match self {
            Outcome::Finished => json!({ "outcome": "finished" }),
            Outcome::Paused(interrupts) => {
                let interrupts: Vec<Json> = interrupts.iter().map(interrupt).collect();
                json!({ "outcome": "paused", "interrupts": interrupts })
            }
            Outcome::Breakpoint(at) => breakpoint(at),
            Outcome::StepLimit => json!({ "outcome": "step_limit" }),
            Outcome::Failed(failures) => failed(failures),
            Outcome::Cancelled => json!({ "outcome": "cancelled" }),
            Outcome::Drained => json!({ "outcome": "drained" }),
        };
        form.serialize(serializer)
    }
}

impl Serialize for StreamEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut form = Map::new();
        form.insert(
            "id".to_owned(),
            format!("{}-{}", self.seq.0, self.index).into(),
        );
        if !self.frame.is_root() {
            form.insert("graph".to_owned(), self.frame.to_string().into());
        }
        if let Json::Object(body) = body(&self.what) {
            form.extend(body);
        }
        if let StreamEventBody::RunBegan { .. } = self.what {
            form.insert("run".to_owned(), self.run.to_string().into());
        }
        form.serialize(serializer)
    }
}

fn body(body: &StreamEventBody) -> Json {
    match body {
        StreamEventBody::RunBegan { is_resumed } => {
            json!({ "type": "run_began", "resumed": is_resumed })
        }
        StreamEventBody::Values(values) => json!({ "type": "values", "values": plain(values) }),
        StreamEventBody::Update {
            node,
            updates,
            cached,
        } => {
            let updates: Vec<Json> = updates.iter().map(plain).collect();
            json!({ "type": "update", "node": node, "updates": updates, "cached": cached })
        }
        StreamEventBody::Custom { node, payload } => {
            json!({ "type": "custom", "node": node, "payload": plain(payload) })
        }
        StreamEventBody::TaskStarts {
            task,
            node,
            payload,
        } => {
            let payload = payload.as_ref().map(plain);
            json!({ "type": "task_started", "task": task.to_string(), "node": node, "payload": payload })
        }
        StreamEventBody::TaskEnded { task, node } => {
            json!({ "type": "task_ended", "task": task.to_string(), "node": node })
        }
        StreamEventBody::AttemptFailed(attempt) => attempt_failed(attempt),
        StreamEventBody::Checkpoint {
            kind,
            parent,
            values,
            next,
        } => json!({
            "type": "checkpoint",
            "kind": kind_name(*kind),
            "parent": parent.0,
            "values": plain(values),
            "next": next,
        }),
        StreamEventBody::Stopped(stop) => {
            let mut form = stopped(stop);
            form["type"] = "stopped".into();
            form
        }
    }
}

fn stopped(stop: &Stop) -> Json {
    match stop {
        Stop::Finished => json!({ "outcome": "finished" }),
        Stop::Paused { asked } => {
            let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
            json!({ "outcome": "paused", "interrupts": asked })
        }
        Stop::Breakpoint(at) => breakpoint(at),
        Stop::StepLimit => json!({ "outcome": "step_limit" }),
        Stop::Failed(failures) => failed(failures),
        Stop::Cancelled => json!({ "outcome": "cancelled" }),
        Stop::Drained => json!({ "outcome": "drained" }),
    }
}

fn attempt_failed(attempt: &AttemptFailed) -> Json {
    let then = match attempt.then {
        AfterFailure::Retry { at } => json!({ "retry_at": at.0 }),
        AfterFailure::Handle => json!("error_handler"),
    };
    json!({ "type": "attempt_failed", "failure": failure(&attempt.failure), "then": then })
}

fn breakpoint(at: &Breakpoint) -> Json {
    let side = match at.side {
        BreakpointSide::Before => "before",
        BreakpointSide::After => "after",
    };
    json!({ "outcome": "breakpoint", "side": side, "nodes": at.nodes })
}

fn failed(failures: &[Failure]) -> Json {
    let failures: Vec<Json> = failures.iter().map(failure).collect();
    json!({ "outcome": "failed", "failures": failures })
}

fn failure(failure: &Failure) -> Json {
    json!({
        "node": failure.node,
        "code": failure.code.as_deref().unwrap_or(failure.kind.code()),
        "kind": failure.kind.code(),
        "message": failure.message,
        "attempts": failure.attempts,
    })
}

fn interrupt(interrupt: &InterruptRecord) -> Json {
    json!({
        "id": interrupt.id.to_string(),
        "node": interrupt.node,
        "key": interrupt.key,
        "kind": interrupt.kind,
        "request": plain(&interrupt.request),
        "schema": interrupt.schema.as_ref().map(plain),
        "deadline": interrupt.deadline.map(|deadline| deadline.0),
    })
}

/// A value that is not JSON cannot be stored, so there is none.
fn plain(value: &Value) -> Json {
    value.decode().unwrap_or_default()
}

fn kind_name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Input => "input",
        EntryKind::Step => "step",
        EntryKind::Attempt => "attempt",
        EntryKind::Stop => "stop",
        EntryKind::Update => "update",
        EntryKind::Fork => "fork",
        EntryKind::Resume => "resume",
    }
}
