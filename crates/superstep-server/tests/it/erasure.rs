//! An erased tenant leaves no byte in the stores, also if servers go on meanwhile, and others lose nothing.

mod planting;

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use services::Cluster;
use superstep::Timestamp;
use superstep::prelude::*;
use superstep::registry::{MemoryRegistry, Registry as _};
use superstep::store::{MemoryStore, Namespace, PutItem, Search, Store as _};
use superstep_postgres::Postgres;
use superstep_server::{
    AuditKey, AuditVerifier, Authentication, ErasedTenant, ErasureError, Permission, TenantData,
    erase_tenant, verify_audit_log,
};
use superstep_sqlite::Sqlite;
use tokio::task::JoinSet;
use tokio_postgres::{Client as Plain, NoTls};

use self::planting::{Diary, DiaryUpdate, KINDS, PlantedServer, all, markers, markers_in};
use crate::authorisation::{now, request};
use crate::kit::Client;
use crate::schema::Schema;

/// Number of markers of the tenant that is erased.
const MARKERS: u32 = 1_000;

/// Who erases, and when.
fn by() -> (&'static str, Timestamp) {
    ("operator", now())
}

#[tokio::test]
async fn no_marker_of_an_erased_tenant_is_left_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path().join("threads.db")).unwrap();
    let server = PlantedServer::new(store, folder.path()).await;
    server.plant("acme", MARKERS, None).await;
    server.plant("globex", KINDS, None).await;
    // Whatever is found afterwards is found before: the search sees every kind.
    assert_eq!(markers_in(folder.path(), "acme"), all(MARKERS));
    assert_eq!(markers_in(folder.path(), "globex"), all(KINDS));

    let data = TenantData {
        checkpointer: &server.store,
        registry: &server.store,
        store: Some(&server.store),
        files: Some(&server.files),
        queue: None,
        cache: Some(&server.store),
    };
    let erased = erase_tenant(&data, "acme", None, by()).await.unwrap();
    assert_every_kind(&erased);
    server.store.compact().await.unwrap();
    assert_eq!(markers_in(folder.path(), "acme"), all(0));
    assert_eq!(markers_in(folder.path(), "globex"), all(KINDS));
    assert_others_go_on(&server).await;
    let again = erase_tenant(&data, "acme", None, by()).await.unwrap();
    assert!(again.is_complete && again.threads + again.items + again.files == 0);
    server.drain().await;
}

#[tokio::test]
async fn no_marker_of_an_erased_tenant_is_left_in_the_tables_of_postgres() {
    let folder = tempfile::tempdir().unwrap();
    let schema = Schema::new();
    let server = PlantedServer::new(schema.connect().await, folder.path()).await;
    server.plant("acme", MARKERS, Some(&server.store)).await;
    server.plant("globex", KINDS, Some(&server.store)).await;
    assert_planted(&schema, folder.path(), MARKERS).await;

    let data = everything(&server);
    let erased = erase_tenant(&data, "acme", None, by()).await.unwrap();
    assert_every_kind(&erased);
    assert!(erased.requests > 0, "{erased:?}");
    assert_planted(&schema, folder.path(), 0).await;
    assert_others_go_on(&server).await;
    server.drain().await;
    schema.drop_tables().await;
}

/// Asserts that the tables and the files have so many markers of `acme`, and all of `globex`.
async fn assert_planted(schema: &Schema, folder: &std::path::Path, count: u32) {
    let rows = schema.all_rows().await;
    for (tenant, count) in [("acme", count), ("globex", KINDS)] {
        let mut found = markers_in(folder, tenant);
        found.extend(markers(rows.as_bytes(), tenant));
        assert_eq!(found, all(count), "{tenant}");
    }
}

/// What PostgreSQL deletes stays in its files until they are rewritten, and in its write-ahead log until that is recycled.
#[tokio::test]
async fn no_marker_of_an_erased_tenant_is_left_in_the_files_of_postgres() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::private("erasure").unwrap();
    let url = cluster.url().unwrap();
    let server = PlantedServer::new(Postgres::connect(&url).await.unwrap(), folder.path()).await;
    for tenant in ["acme", "globex"] {
        server.plant(tenant, 60, Some(&server.store)).await;
    }
    let mut connections = JoinSet::new();
    let plain = connect(&url, &mut connections).await;
    let in_files = |tenant| {
        let mut found = markers_in(folder.path(), tenant);
        for part in ["base", "global"] {
            found.extend(markers_in(&cluster.data().join(part), tenant));
        }
        found
    };
    // So that the statistics have samples of the rows.
    for sql in ["ANALYZE", "CHECKPOINT"] {
        plain.batch_execute(sql).await.unwrap();
    }
    assert_eq!(in_files("acme"), all(60));

    let erased = erase_tenant(&everything(&server), "acme", None, by()).await;
    assert!(erased.unwrap().is_complete);
    server.drain().await;
    // `ANALYZE` alone keeps the samples of a table that is empty now.
    for sql in statements_of_the_page() {
        plain.batch_execute(sql).await.unwrap();
    }
    assert_eq!(in_files("acme"), all(0));
    assert_eq!(in_files("globex"), all(60));
}

/// Returns what the page on erasing a tenant tells operators to run.
fn statements_of_the_page() -> Vec<&'static str> {
    let page = include_str!("../../../../docs/howto/erase-a-tenant.md");
    let (_, block) = page.split_once("\n```sql\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let statements: Vec<&str> = block.split_terminator(";\n").collect();
    assert_eq!(statements.len(), 4, "{block}");
    statements
}

async fn connect(url: &str, connections: &mut JoinSet<()>) -> Plain {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    connections.spawn(async move { connection.await.unwrap() });
    client
}

fn everything(server: &PlantedServer<Postgres>) -> TenantData<'_> {
    TenantData {
        checkpointer: &server.store,
        registry: &server.store,
        store: Some(&server.store),
        files: Some(&server.files),
        queue: Some(&server.store),
        cache: Some(&server.store),
    }
}

#[track_caller]
fn assert_every_kind(erased: &ErasedTenant) {
    let rows = &erased.rows;
    let counts = [
        erased.threads,
        erased.files,
        erased.items,
        erased.cached,
        rows.runs,
        rows.assistants,
        rows.crons,
        rows.deliveries,
        rows.api_keys,
        rows.request_keys,
    ];
    let each = u64::from(MARKERS / KINDS);
    assert!(counts.iter().all(|count| *count >= each), "{erased:?}");
    assert!(erased.is_complete);
}

/// Asserts that the other tenant finds what it has, and can answer what it was asked.
async fn assert_others_go_on<S>(server: &PlantedServer<S>)
where
    S: superstep::Checkpointer
        + superstep::store::Store
        + superstep::registry::Registry
        + superstep::driver::NodeCache
        + Clone,
{
    let client = server.client("globex");
    // Three of runs, one of a key, one with metadata, and the one with the files.
    let count = client.post("/threads/count", json!({})).await.ok();
    assert_eq!(count, 6);
    let waiting = json!({ "status": "interrupted" });
    let found = client.post("/threads/search", waiting).await.ok();
    let thread = found[0]["thread_id"].as_str().unwrap();
    let answer = json!({ "assistant_id": "diary", "command": { "resume": true } });
    let values = client.wait(&format!("/threads/{thread}"), answer).await;
    assert_eq!(values["pages"].as_array().unwrap().len(), 2, "{values}");
    let erased = server.client("acme");
    assert_eq!(erased.post("/threads/count", json!({})).await.ok(), 0);
}

/// Stores in memory, with nothing of any tenant.
#[derive(Clone, Default)]
struct Stores {
    threads: Memory,
    registry: MemoryRegistry,
    items: MemoryStore,
}

impl Stores {
    fn data(&self) -> TenantData<'_> {
        TenantData {
            checkpointer: &self.threads,
            registry: &self.registry,
            store: Some(&self.items),
            files: None,
            queue: None,
            cache: None,
        }
    }

    async fn put(&self, key: &str) {
        let put = PutItem {
            namespace: Namespace::of_tenant("acme", ["notes"]).unwrap(),
            key: key.to_owned(),
            value: json!({ "text": key }),
            ttl: None,
        };
        self.items.put(&put, now()).await.unwrap();
    }

    async fn count_items(&self) -> usize {
        let search = Search {
            tenant: "acme".to_owned(),
            ..Search::default()
        };
        self.items.search(&search, now()).await.unwrap().len()
    }
}

#[tokio::test]
async fn what_a_caller_stores_with_a_deleted_key_is_erased() {
    let stores = Stores::default();
    let builder = Client::builder(Runtime::new(stores.threads.clone()), &stores.registry)
        .store(Arc::new(stores.items.clone()))
        .authentication(Authentication::with_api_keys());
    let client = Client::of(builder).await;
    let key = request("acme", "program", &Permission::ALL);
    let key = key.issue(now()).unwrap();
    assert!(stores.registry.create_api_key(&key.key).await.unwrap());

    let write = async |n: u64| {
        let item = json!({ "namespace": ["notes"], "key": format!("{n}"), "value": {} });
        let put = client.call_as(&key.text, "PUT", "/store/items", Some(item));
        put.await.status
    };
    assert_eq!(write(0).await, StatusCode::NO_CONTENT);
    let write_until_refused = async {
        for n in 1.. {
            if write(n).await == StatusCode::UNAUTHORIZED {
                return n;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        unreachable!("the key is refused at last")
    };
    let data = stores.data();
    let (written, erased) =
        tokio::join!(write_until_refused, erase_tenant(&data, "acme", None, by()));
    let erased = erased.unwrap();
    // The server uses the key for three seconds more.
    assert!(written > 50, "{written}");
    assert_eq!((erased.is_complete, erased.items), (true, written));
    assert_eq!(stores.count_items().await, 0);
}

/// Stores an item at its end.
async fn note_late(_: View<Diary>, cx: NodeCx) -> Result<DiaryUpdate, NodeError> {
    tokio::time::sleep(Duration::from_secs(3)).await;
    cx.store(["notes"])?.put("late", "note").await?;
    Ok(DiaryUpdate::default())
}

#[tokio::test(start_paused = true)]
async fn what_a_node_in_progress_stores_is_erased() {
    let stores = Stores::default();
    let graph = Graph::builder("late")
        .node("note", note_late)
        .edge(START, "note")
        .edge("note", END)
        .build()
        .unwrap();
    let runtime = Runtime::builder(stores.threads.clone())
        .store(stores.items.clone())
        .build();
    let thread = runtime.thread(&graph, "acme/late").unwrap();
    let mut running = JoinSet::new();
    running.spawn(async move { thread.start(DiaryUpdate::default()).await.map(drop) });
    // The thread exists, and its node waits.
    tokio::time::sleep(Duration::from_secs(1)).await;

    let erased = erase_tenant(&stores.data(), "acme", None, by())
        .await
        .unwrap();
    let found = (erased.is_complete, erased.threads, erased.items);
    assert_eq!(found, (true, 1, 1));
    assert_eq!(stores.count_items().await, 0);
    let lost = running.join_next().await.unwrap().unwrap();
    assert!(lost.is_err(), "{lost:?}");
}

#[tokio::test(start_paused = true)]
async fn a_tenant_that_something_keeps_writing_to_is_not_reported_as_erased() {
    let stores = Stores::default();
    let mut writing = JoinSet::new();
    let writer = stores.clone();
    writing.spawn(async move {
        for n in 0_u64.. {
            writer.put(&format!("{n}")).await;
            tokio::time::sleep(Duration::from_millis(900)).await;
        }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let erased = erase_tenant(&stores.data(), "acme", None, by())
        .await
        .unwrap();
    assert!(!erased.is_complete && erased.items > 10, "{erased:?}");

    writing.shutdown().await;
    let erased = erase_tenant(&stores.data(), "acme", None, by())
        .await
        .unwrap();
    assert!(erased.is_complete, "{erased:?}");
    assert_eq!(stores.count_items().await, 0);
}

/// Returns the actions in the audit log of `acme`, oldest first, after verifying it.
async fn audited(stores: &Stores, key: Option<&AuditKey>) -> Vec<String> {
    let verifier = AuditVerifier::new("acme", key);
    let verified = verify_audit_log(&stores.registry, "acme", verifier).await;
    let entries = stores.registry.audit("acme", 0, 100).await.unwrap();
    assert_eq!(verified.unwrap().seq, entries.len() as u64);
    entries.into_iter().map(|entry| entry.action).collect()
}

#[tokio::test(start_paused = true)]
async fn an_erasure_that_is_cut_off_is_in_the_audit_log() {
    let stores = Stores::default();
    stores.put("note").await;
    let data = stores.data();
    // After the first pass, and before the one that finds nothing.
    let second = Duration::from_secs(1);
    let cut_off = tokio::time::timeout(second, erase_tenant(&data, "acme", None, by())).await;
    assert!(cut_off.is_err());
    assert_eq!(stores.count_items().await, 0);
    assert_eq!(audited(&stores, None).await, ["tenant.erase"]);

    let erased = erase_tenant(&data, "acme", None, by()).await.unwrap();
    assert!(erased.is_complete);
    let whole = ["tenant.erase", "tenant.erase", "tenant.erased"];
    assert_eq!(audited(&stores, None).await, whole);
    let entries = stores.registry.audit("acme", 2, 1).await.unwrap();
    let detail: serde_json::Value = serde_json::from_str(&entries[0].detail).unwrap();
    let found = (&detail["began"], &detail["receipt"]["complete"]);
    assert_eq!(found, (&json!(2), &json!(true)));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_erased_under_a_key_that_the_audit_log_does_not_have() {
    let stores = Stores::default();
    let data = stores.data();
    let key = AuditKey::new(b"a secret of the operator").unwrap();
    erase_tenant(&data, "acme", Some(&key), by()).await.unwrap();
    stores.put("note").await;
    let refused = erase_tenant(&data, "acme", None, by()).await;
    assert!(
        matches!(refused, Err(ErasureError::AuditKey { .. })),
        "{refused:?}"
    );
    assert_eq!(stores.count_items().await, 1);
    let before = ["tenant.erase", "tenant.erased"];
    assert_eq!(audited(&stores, Some(&key)).await, before);
    erase_tenant(&data, "acme", Some(&key), by()).await.unwrap();
    assert_eq!(stores.count_items().await, 0);
    assert_eq!(audited(&stores, Some(&key)).await.len(), 4);
}
