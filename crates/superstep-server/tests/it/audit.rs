//! The audit log: what requests, answers and tools leave in it, and what its verifier finds.

use std::sync::Arc;

use http::StatusCode;
use rusqlite::Connection;
use serde_json::{Map, Value as Json, json};
use superstep::Timestamp;
use superstep::prelude::*;
use superstep::registry::{MemoryRegistry, Registry};
use superstep::trace::{CallKind, CallSpan};
use superstep_server::{AuditKey, AuditProblem, AuditVerifier, Server, verify_audit_log};
use superstep_sqlite::Sqlite;

use crate::kit::Client;

pub(crate) fn key() -> AuditKey {
    AuditKey::new(b"a secret of the operator").unwrap()
}

async fn audited(registry: &MemoryRegistry) -> Client {
    let runtime = Runtime::new(Memory::default());
    Client::of(Client::builder(runtime, registry).audit(Some(key()))).await
}

async fn entries(client: &Client) -> Vec<Json> {
    let listed = client.get("/superstep/audit?limit=1000").await.ok();
    listed["entries"].as_array().unwrap().clone()
}

fn actions(entries: &[Json]) -> Vec<&str> {
    let actions = entries
        .iter()
        .map(|entry| entry["action"].as_str().unwrap());
    actions.collect()
}

#[tokio::test]
async fn a_change_is_recorded_with_its_outcome_and_a_read_is_not() {
    let registry = MemoryRegistry::new();
    let client = audited(&registry).await;
    let thread = client.thread().await;
    client.get(&thread).await.ok();
    client.post("/threads/search", json!({})).await.ok();
    let unknown = "/threads/0190a6b2-0000-7000-8000-00000000000a";
    let missing = client.call("DELETE", unknown, None).await;
    client.drain().await;
    let entries = entries(&client).await;
    assert_eq!(
        actions(&entries),
        [
            "POST /threads",
            "outcome",
            "DELETE /threads/{thread_id}",
            "outcome"
        ]
    );
    assert_eq!(entries[2]["resource"], unknown);
    assert_eq!(entries[3]["detail"]["status"], missing.status.as_u16());
    let request = missing.header("x-request-id").unwrap();
    assert_eq!(entries[2]["detail"]["request"], request);
    let verifier = AuditVerifier::new("", Some(&key()));
    let head = verify_audit_log(&registry, "", verifier).await.unwrap();
    assert_eq!(head.seq, 4);
}

#[tokio::test]
async fn an_answer_is_recorded_by_its_hash() {
    let client = audited(&MemoryRegistry::new()).await;
    let thread = client.thread().await;
    let asked = json!({ "assistant_id": "ask", "input": {} });
    client.wait(&thread, asked).await;
    let answer = json!({ "assistant_id": "ask", "command": { "resume": { "type": "response", "args": "hunter2" } } });
    client.wait(&thread, answer).await;
    client.drain().await;
    let entries = entries(&client).await;
    let answered = entries
        .iter()
        .find(|entry| entry["action"] == "interrupt.answer")
        .unwrap();
    assert_eq!(answered["resource"], thread.as_str());
    assert_eq!(
        answered["detail"]["answer_hash"].as_str().unwrap().len(),
        64
    );
    assert!(answered["detail"]["interrupt"].is_string());
    assert!(!format!("{entries:?}").contains("hunter2"));
}

#[tokio::test]
async fn many_changes_at_once_are_one_chain() {
    let registry = MemoryRegistry::new();
    let client = audited(&registry).await;
    let created = futures_util::future::join_all((0..50).map(|_| client.thread()));
    created.await;
    client.drain().await;
    let verifier = AuditVerifier::new("", Some(&key()));
    let head = verify_audit_log(&registry, "", verifier).await.unwrap();
    assert_eq!(head.seq, 100);
}

#[derive(Clone, Debug, Default, State)]
struct Paid {
    receipt: Option<String>,
}

async fn pay(_: View<Paid>, cx: NodeCx) -> Result<PaidUpdate, NodeError> {
    let fields = [
        ("gen_ai.tool.name", "refund"),
        ("superstep.tool.class", "keyed"),
        ("gen_ai.tool.call.id", "call-1"),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), Json::from(value)));
    let now = jiff::Timestamp::now().as_millisecond();
    cx.emit(CallSpan {
        span: CallKind::from_static("tool"),
        name: "execute_tool refund".to_owned(),
        start: Timestamp(now),
        end: Timestamp(now),
        error: None,
        fields: Map::from_iter(fields),
        result: None,
    })?;
    Ok(PaidUpdate::default().receipt(Some("paid".to_owned())))
}

#[tokio::test]
async fn what_a_tool_did_is_recorded_once() {
    let graph = Graph::builder("pay")
        .node("pay", pay)
        .edge(START, "pay")
        .edge("pay", END)
        .inputs(["receipt"])
        .build()
        .unwrap();
    let runtime = Runtime::new(Memory::default());
    let builder = Server::builder(runtime, Arc::new(MemoryRegistry::new()));
    let client = Client::of(builder.graph(graph.definition()).audit(None)).await;
    let thread = client.thread().await;
    let run = json!({ "assistant_id": "pay", "input": { "receipt": "none" } });
    for _ in 0..2 {
        client.wait(&thread, run.clone()).await;
    }
    let entries = entries(&client).await;
    let calls: Vec<_> = entries
        .iter()
        .filter(|entry| entry["action"] == "tool.call")
        .collect();
    assert_eq!(calls.len(), 2, "one for each run: {calls:?}");
    for call in calls {
        let detail = &call["detail"];
        assert_eq!(
            (&detail["tool"], &detail["class"], &detail["outcome"]),
            (&json!("refund"), &json!("keyed"), &json!("ok"))
        );
    }
}

#[tokio::test]
async fn a_server_without_an_audit_log_says_so() {
    let client = Client::new().await;
    client.thread().await;
    let reply = client.get("/superstep/audit").await;
    assert_eq!(reply.status, StatusCode::NOT_FOUND);
}

/// Returns the name of the table with the entries.
fn audit_table(db: &Connection) -> String {
    let query = "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c \
                 WHERE m.type = 'table' AND c.name = 'resource'";
    db.query_row(query, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn an_entry_that_is_changed_in_the_file_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.db");
    let store = Sqlite::open(&file).unwrap();
    let runtime = Runtime::new(store.clone());
    let builder = Server::builder(runtime, Arc::new(store.clone())).audit(Some(key()));
    let client = Client::of(builder).await;
    for _ in 0..5 {
        client.thread().await;
    }
    client.drain().await;
    let verify = async || {
        let verifier = AuditVerifier::new("", Some(&key()));
        verify_audit_log(&store as &dyn Registry, "", verifier).await
    };
    assert_eq!(verify().await.unwrap().seq, 10);
    let db = Connection::open(&file).unwrap();
    let table = audit_table(&db);
    let changed = format!("UPDATE {table} SET resource = '/threads/other' WHERE seq = 3");
    assert_eq!(db.execute(&changed, []).unwrap(), 1);
    let problem = verify().await.unwrap_err();
    assert!(
        matches!(problem, AuditProblem::Changed { seq: 3 }),
        "{problem}"
    );
    let cut = format!("DELETE FROM {table} WHERE seq >= 3");
    // Without the entries the stored end stands alone.
    assert_eq!(db.execute(&cut, []).unwrap(), 8);
    let problem = verify().await.unwrap_err();
    let is_end = matches!(
        problem,
        AuditProblem::End {
            found: 2,
            stored: 10
        }
    );
    assert!(is_end, "{problem}");
}
