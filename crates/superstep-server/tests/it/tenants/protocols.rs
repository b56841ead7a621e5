//! Random calls of a tenant over MCP, A2A and AG-UI with the ids of another one, and how many of them did something.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::{Value as Json, json};

use super::requests::Requests;
use crate::kit::Reply;

/// A protocol besides the server's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protocol {
    Mcp,
    A2a,
    AgUi,
}

/// A session of MCP whose client cannot show forms. Both tenants use it: a session grants nothing.
pub(super) const SESSION: &str = "0190a6b2-0000-7000-8000-0000000005e5";

impl Protocol {
    /// Returns the protocol of a path; `None` if it is the server's own.
    pub(super) fn of_path(path: &str) -> Option<Self> {
        match path.split('/').nth(1)? {
            "mcp" => Some(Self::Mcp),
            "a2a" => Some(Self::A2a),
            "ag-ui" => Some(Self::AgUi),
            _ => None,
        }
    }

    /// Returns the headers of its requests.
    pub(super) fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Mcp => &[
                ("accept", "application/json, text/event-stream"),
                ("mcp-session-id", SESSION),
            ],
            Self::A2a | Self::AgUi => &[],
        }
    }

    /// Returns the body of a call that this protocol accepts.
    pub(super) fn body(self, requests: &mut Requests<'_>) -> Json {
        let bodies = match self {
            Self::Mcp => mcp_bodies(requests),
            Self::A2a => a2a_bodies(requests),
            Self::AgUi => ag_ui_bodies(requests),
        };
        requests.one_of(&bodies)
    }

    /// Whether a call was executed, and not refused.
    fn was_executed(self, reply: &Reply) -> bool {
        let text = String::from_utf8_lossy(&reply.bytes);
        let sign = match self {
            Self::Mcp | Self::A2a => "\"result\":",
            Self::AgUi => "RUN_STARTED",
        };
        reply.status == StatusCode::OK && text.contains(sign)
    }
}

/// Returns a request in the form that MCP and A2A have in common.
pub(super) fn rpc(method: &str, params: Json) -> Json {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// Returns a message of A2A that gives an agent a topic.
pub(super) fn message(topic: &str, context: Option<&str>, task: Option<&str>) -> Json {
    let parts = json!([{ "kind": "data", "data": { "topic": topic } }]);
    let message = json!({
        "kind": "message", "messageId": "m1", "role": "user", "parts": parts,
        "contextId": context, "taskId": task,
    });
    json!({ "message": message })
}

fn mcp_bodies(requests: &mut Requests<'_>) -> Vec<Json> {
    let canary = requests.caller.marks.canary;
    let (assistant, interrupt) = (requests.id("assistant_id"), requests.id("interrupt_id"));
    let call = |tool: &str, meta: Json| {
        let arguments = json!({ "topic": canary });
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        rpc("tools/call", params)
    };
    let answer = json!({ "action": "accept", "content": { "answer": canary } });
    vec![
        rpc("tools/list", json!({})),
        call("remember", json!({})),
        call("remember", json!({ "progressToken": canary })),
        call("cached", json!({})),
        call("fail", json!({})),
        call("ask", json!({})),
        call(&format!("x_{}", assistant.replace('-', "")), json!({})),
        json!({ "jsonrpc": "2.0", "id": interrupt, "result": answer }),
        json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 },
        }),
    ]
}

fn a2a_bodies(requests: &mut Requests<'_>) -> Vec<Json> {
    let canary = requests.caller.marks.canary;
    let (thread, run, task) = (
        requests.id("thread_id"),
        requests.id("run_id"),
        requests.id("task_id"),
    );
    let (waiting, _) = requests.waiting();
    let named = json!({ "id": task, "historyLength": 10 });
    vec![
        rpc("message/send", message(canary, None, None)),
        rpc("message/send", message(canary, Some(&thread), None)),
        rpc("message/send", message(canary, Some(&waiting), None)),
        rpc("message/send", message(canary, None, Some(&task))),
        rpc("message/stream", message(canary, Some(&thread), None)),
        rpc("SendMessage", message(canary, Some(&waiting), Some(&task))),
        rpc("SendStreamingMessage", message(canary, None, None)),
        rpc("tasks/get", named.clone()),
        rpc("GetTask", named.clone()),
        rpc("tasks/get", json!({ "id": format!("{thread}:{run}") })),
        rpc("tasks/cancel", named.clone()),
        rpc("CancelTask", json!({ "id": format!("{thread}:{run}") })),
        rpc("tasks/resubscribe", named),
        rpc("tasks/list", json!({})),
        rpc("tasks/list", json!({ "contextId": thread })),
        rpc(
            "ListTasks",
            json!({ "contextId": waiting, "includeArtifacts": true }),
        ),
        rpc(
            "ListTasks",
            json!({ "includeArtifacts": true, "historyLength": 10 }),
        ),
    ]
}

fn ag_ui_bodies(requests: &mut Requests<'_>) -> Vec<Json> {
    let canary = requests.caller.marks.canary;
    let (thread, run) = (requests.id("thread_id"), requests.id("run_id"));
    let (waiting, interrupt) = requests.waiting();
    // Both tenants have threads of these names.
    let name = format!("chat {}", requests.random.below(1_000));
    let start = |thread: &str| {
        json!({
            "threadId": thread, "runId": run, "messages": [], "state": { "topic": canary },
        })
    };
    let resume = |thread: &str, entry: Json| json!({ "threadId": thread, "runId": run, "messages": [], "resume": [entry] });
    let answer = json!({ "interruptId": interrupt, "status": "resolved", "payload": canary });
    let refusal = json!({ "interruptId": interrupt, "status": "cancelled" });
    vec![
        start(&thread),
        start(&waiting),
        start(&name),
        start(&format!("{name} again")),
        resume(&waiting, answer.clone()),
        resume(&waiting, refusal),
        resume(&thread, answer),
    ]
}

/// How many calls of each protocol were sent, and how many of them were executed.
#[derive(Default)]
pub(super) struct ProtocolCalls(BTreeMap<Protocol, CallCounts>);

#[derive(Debug, Default)]
struct CallCounts {
    sent: usize,
    executed: usize,
}

impl ProtocolCalls {
    pub(super) fn count(&mut self, protocol: Protocol, reply: &Reply) {
        let calls = self.0.entry(protocol).or_default();
        calls.sent += 1;
        calls.executed += usize::from(protocol.was_executed(reply));
    }

    /// Fails if most calls of a protocol were refused, so that there was nothing to see.
    #[track_caller]
    pub(super) fn assert_executed(&self) {
        assert_eq!(self.0.len(), 3, "{:?}", self.0);
        for (protocol, CallCounts { sent, executed }) in &self.0 {
            let is_enough = executed * 5 >= *sent;
            assert!(is_enough, "{protocol:?} executed {executed} of {sent}");
        }
    }
}
