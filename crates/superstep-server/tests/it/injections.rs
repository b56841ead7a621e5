//! Filters with hostile texts: on every store they are only texts, which match nothing and break nothing.

use std::sync::Arc;

use axum::body::Body;
use futures_util::future::join_all;
use http::{Request, StatusCode};
use serde_json::{Value as Json, json};
use superstep::checkpoint::Checkpointer;
use superstep::prelude::*;
use superstep::registry::{MemoryRegistry, Registry};
use superstep::store::{MemoryStore, Store};
use superstep_server::{Server, ServerBuilder};
use superstep_sqlite::Sqlite;

use crate::kit::Client;
use crate::schema::Schema;

#[derive(Clone, Debug, Default, State)]
struct Note {
    topic: Option<String>,
}

async fn keep(_: View<Note>, _: NodeCx) -> Result<NoteUpdate, NodeError> {
    Ok(NoteUpdate::default())
}

fn server_over<T>(store: &T) -> ServerBuilder
where
    T: Checkpointer + Store + Registry + Clone,
{
    builder(
        Runtime::new(store.clone()),
        Arc::new(store.clone()),
        Arc::new(store.clone()),
    )
}

fn builder(runtime: Runtime, registry: Arc<dyn Registry>, store: Arc<dyn Store>) -> ServerBuilder {
    let graph = Graph::builder("note")
        .node("keep", keep)
        .edge(START, "keep")
        .edge("keep", END)
        .inputs(["topic"])
        .build()
        .unwrap();
    Server::builder(runtime, registry)
        .graph(graph.definition())
        .store(store)
}

#[tokio::test]
async fn hostile_filters_match_nothing_in_memory() {
    let registry = Arc::new(MemoryRegistry::new());
    let store = Arc::new(MemoryStore::default());
    check_all(builder(Runtime::new(Memory::default()), registry, store)).await;
}

#[tokio::test]
async fn hostile_filters_match_nothing_in_sqlite() {
    check_all(server_over(&Sqlite::in_memory().unwrap())).await;
}

#[tokio::test]
async fn hostile_filters_match_nothing_in_postgres() {
    let schema = Schema::new();
    check_all(server_over(&schema.connect().await)).await;
    schema.drop_tables().await;
}

/// Fills two tenants, searches one of them with every payload, and looks whether everything is still there.
async fn check_all(builder: ServerBuilder) {
    let [client, other] = Client::of_tenants(builder, ["acme", "other"]).await;
    fill(&client).await;
    fill(&other).await;
    let payloads = payloads();
    assert!(payloads.len() >= 500, "{} payloads", payloads.len());
    for some in payloads.chunks(8) {
        join_all(some.iter().map(|payload| check(&client, payload))).await;
    }
    for client in [&client, &other] {
        for (path, body, rows) in [
            (
                "/threads/search",
                json!({ "metadata": { "owner": "ada" } }),
                1,
            ),
            (
                "/threads/search",
                json!({ "values": { "topic": "tea" } }),
                1,
            ),
            ("/assistants/search", json!({ "name": "ADA" }), 1),
            ("/assistants/search", json!({ "graph_id": "note" }), 2),
            (
                "/runs/crons/search",
                json!({ "metadata": { "owner": "ada" } }),
                1,
            ),
            (
                "/store/items/search",
                json!({ "filter": { "owner": "ada" } }),
                1,
            ),
            ("/store/namespaces", json!({ "suffix": ["ada"] }), 1),
        ] {
            let found = client.post(path, body.clone()).await.ok();
            assert_eq!(rows_of(&found), rows, "{path} {body}: {found}");
        }
    }
}

async fn fill(client: &Client) {
    let owner = json!({ "owner": "ada" });
    let body = json!({ "metadata": owner });
    let thread = client.post("/threads", body).await.ok();
    let thread = format!("/threads/{}", thread["thread_id"].as_str().unwrap());
    let run = json!({ "assistant_id": "note", "input": { "topic": "tea" } });
    client.wait(&thread, run).await;
    let body = json!({ "graph_id": "note", "name": "Notes of Ada", "metadata": owner });
    client.post("/assistants", body).await.ok();
    let body = json!({
        "assistant_id": "note",
        "schedule": "0 0 1 1 *",
        "input": { "topic": "tea" },
        "metadata": owner,
    });
    client.post("/runs/crons", body).await.ok();
    let body = json!({ "namespace": ["users", "ada"], "key": "k", "value": owner });
    client.call("PUT", "/store/items", Some(body)).await.ok();
}

/// Sends a payload in every place of a filter.
async fn check(client: &Client, payload: &str) {
    let filters = [
        json!({ "owner": payload }),
        json!({ payload: "ada" }),
        json!({ "owner": { payload: payload } }),
        json!({ "owner": [payload] }),
    ];
    for filter in &filters {
        let body = json!({ "metadata": filter });
        nothing(client, "/threads/search", body.clone()).await;
        nothing(client, "/threads/count", body.clone()).await;
        nothing(client, "/assistants/search", body.clone()).await;
        nothing(client, "/runs/crons/search", body).await;
        // In a search of the store, an object with these names has operators, which rightly find what is there.
        let is_operator = filter["owner"].is_object() && ["$ne", "$gt"].contains(&payload);
        if !is_operator {
            nothing(client, "/store/items/search", json!({ "filter": filter })).await;
        }
    }
    let in_values = json!({ "values": { "topic": payload } });
    nothing(client, "/threads/search", in_values).await;
    nothing(client, "/assistants/search", json!({ "name": payload })).await;
    nothing(client, "/assistants/search", json!({ "graph_id": payload })).await;
    let equal = json!({ "filter": { "owner": { "$eq": payload } } });
    nothing(client, "/store/items/search", equal).await;
    let below = json!({ "namespace_prefix": [payload] });
    nothing(client, "/store/items/search", below).await;
    let below = json!({ "namespace_prefix": ["users", payload] });
    nothing(client, "/store/items/search", below).await;
    if payload != "*" {
        nothing(client, "/store/namespaces", json!({ "prefix": [payload] })).await;
        nothing(client, "/store/namespaces", json!({ "suffix": [payload] })).await;
    }
    for (path, body) in [
        ("/threads/search", json!({ "sort_by": payload })),
        ("/threads/search", json!({ "status": payload })),
        ("/threads/search", json!({ "ids": [payload] })),
        ("/assistants/search", json!({ "sort_by": payload })),
        ("/runs/crons/search", json!({ "sort_by": payload })),
        ("/runs/crons/search", json!({ "assistant_id": payload })),
        ("/runs/crons/search", json!({ "thread_id": payload })),
    ] {
        let refused = client.post(path, body).await;
        let status = refused.status;
        assert_eq!(
            status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{path} {payload:?}"
        );
    }
    if payload.len() < 1_000 {
        let key = percent_encoded(payload);
        let path = format!("/store/items?namespace=users.ada&key={key}");
        let found = client.get(&path).await;
        assert!(found.status.as_u16() < 500, "{path}: {}", found.status);
        assert!(!found.status.is_success() || found.json.is_null(), "{path}");
    }
}

#[track_caller]
fn rows_of(found: &Json) -> u64 {
    let rows = |list: &Json| list.as_array().map(|rows| rows.len() as u64);
    let listed = rows(found)
        .or_else(|| rows(&found["items"]))
        .or_else(|| rows(&found["namespaces"]));
    listed.or_else(|| found.as_u64()).unwrap()
}

/// Sends a search, which may be refused, but not fail, and must not find anything.
async fn nothing(client: &Client, path: &str, body: Json) {
    let found = client.post(path, body.clone()).await;
    let shown: String = body.to_string().chars().take(200).collect();
    let status = found.status;
    assert!(
        status.as_u16() < 500,
        "{path} {shown}: {status} {}",
        found.json
    );
    if status.is_success() {
        assert_eq!(rows_of(&found.json), 0, "{path} {shown}: {}", found.json);
    }
}

fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Families of texts that a database, a pattern or a path could take for its own.
fn payloads() -> Vec<String> {
    let mut all = Vec::new();
    let quotes = ["", "'", "\"", "')", "'))", "\"}", "\\'", "$$", "\u{2019}"];
    let sql = [
        " OR 1=1--",
        " OR '1'='1",
        " OR TRUE #",
        "; DROP TABLE thread; --",
        "; DELETE FROM item WHERE 1=1; --",
        " UNION SELECT * FROM thread --",
        " UNION ALL SELECT NULL, NULL, NULL --",
        " AND 1=(SELECT count(*) FROM tenant) --",
        "; SELECT pg_sleep(5); --",
        " || (SELECT name FROM tenant LIMIT 1) || ",
        " COLLATE NOCASE --",
        "/**/OR/**/1/**/=/**/1",
        "; ATTACH DATABASE 'x' AS x; --",
        "; COPY thread TO STDOUT; --",
        " IN (SELECT tenant FROM run) --",
        "::jsonb @> '{}'",
    ];
    for quote in quotes {
        all.extend(sql.iter().map(|text| format!("ada{quote}{text}")));
        all.extend(sql.iter().map(|text| format!("{quote}{text}")));
    }
    let paths = [
        "$",
        "$.*",
        "$[*]",
        "$..*",
        "$.owner",
        "$[\"owner\"]",
        "$.owner ? (@ == \"ada\")",
        "{owner}",
        "{owner,0}",
        "owner.owner",
        "owner->>'x'",
        "#>>'{owner}'",
        "@>",
        "?|",
        "/owner",
        "/metadata/owner",
        "metadata.owner",
        "__proto__",
        "constructor",
        "$where",
        "$ne",
        "$gt",
        "$or",
        "$regex",
        "[0]",
        "-1",
        "owner\\",
        "\\u006fwner",
        "*.*",
        "**",
    ];
    all.extend(paths.map(str::to_owned));
    for wildcard in [
        "%", "_", "*", "?", ".", ".*", "^", "[a-z]", "(a|b)", "\\%", "\\",
    ] {
        all.push(wildcard.to_owned());
        all.push(format!("a{wildcard}a"));
        all.push(format!("ad{wildcard}"));
        all.push(format!("{wildcard}da"));
        all.push(wildcard.repeat(50));
    }
    for control in (0_u32..0x20).chain([0x7f, 0x85, 0x9f]) {
        let control = char::from_u32(control).unwrap();
        all.push(format!("ada{control}"));
        all.push(format!("{control}other"));
        all.push(format!("{control}other{control}"));
    }
    for letter in [
        '\u{a0}',
        '\u{ad}',
        '\u{130}',
        '\u{131}',
        '\u{17f}',
        '\u{200b}',
        '\u{200d}',
        '\u{202e}',
        '\u{2028}',
        '\u{212a}',
        '\u{feff}',
        '\u{fffd}',
        '\u{ffff}',
        '\u{1f600}',
        '\u{e0001}',
        '\u{10ffff}',
        '\u{301}',
        '\u{430}',
        '\u{ff07}',
        '\u{ff05}',
    ] {
        all.push(format!("ad{letter}a"));
        all.push(format!("{letter}ada"));
        all.push(letter.to_string());
    }
    for length in [129, 257, 4_097, 65_537, 200_000] {
        all.push("a".repeat(length));
        all.push("'".repeat(length));
        all.push("\u{1f600}".repeat(length / 4));
    }
    all
}

#[tokio::test]
async fn deep_json_is_refused_and_what_is_stored_can_be_read() {
    let client = Client::new().await;
    let nested = |depth: usize| {
        let mut value = json!(1);
        for _ in 0..depth {
            value = json!([value]);
        }
        value
    };
    // The body, `metadata` and its field are two levels.
    let fits = json!({ "metadata": { "deep": nested(98) } });
    let thread = client.post("/threads", fits).await.ok();
    let path = format!("/threads/{}", thread["thread_id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.ok()["metadata"]["deep"], nested(98));
    for depth in [99, 126, 127, 5_000] {
        let text = format!(
            r#"{{"metadata": {{"deep": {}{}}}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        );
        for path in [
            "/threads",
            "/threads/search",
            "/assistants/search",
            "/store/items/search",
        ] {
            let request = Request::post(path).body(Body::from(text.clone())).unwrap();
            let refused = client.send(request).await;
            let status = refused.status;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path} {depth}");
        }
    }
}

#[tokio::test]
async fn a_page_has_at_most_a_thousand_rows() {
    let client = Client::new().await;
    for path in [
        "/threads/search",
        "/assistants/search",
        "/runs/crons/search",
    ] {
        for (limit, is_taken) in [(1_000, true), (1_001, false), (0, false)] {
            let reply = client.post(path, json!({ "limit": limit })).await;
            assert_eq!(reply.status.is_success(), is_taken, "{path} {limit}");
        }
    }
    for n in 0..1_001 {
        let body = json!({ "namespace": ["many"], "key": n.to_string(), "value": { "n": n } });
        client.call("PUT", "/store/items", Some(body)).await.ok();
    }
    let all = client
        .post("/store/items/search", json!({ "limit": 4_000_000 }))
        .await;
    assert_eq!(rows_of(&all.ok()), 1_000);
}
