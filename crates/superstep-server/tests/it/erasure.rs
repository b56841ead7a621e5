//! An erased tenant leaves no byte in the database, and others lose nothing.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use superstep::checkpoint::ThreadQuery;
use superstep::prelude::*;
use superstep::registry::{ApiKey, Registry as _};
use superstep::store::{Namespace, PutItem, Store as _};
use superstep::{ApiKeyId, Timestamp};
use superstep_server::{ErasedTenant, FolderFiles, Server, TenantData, erase_tenant};
use superstep_sqlite::Sqlite;

#[derive(Clone, Debug, Default, State)]
struct Diary {
    #[state(append)]
    pages: Vec<String>,
}

async fn write(diary: View<Diary>, cx: NodeCx) -> Result<DiaryUpdate, NodeError> {
    let text = diary.pages.last().cloned().unwrap_or_default();
    let _: bool = cx
        .interrupt(Interrupt::new("keep", format!("Keep {text}?")))
        .await?;
    Ok(DiaryUpdate::default())
}

#[tokio::test]
async fn no_byte_of_an_erased_tenant_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("threads.db");
    let store = Sqlite::open(&database).unwrap();
    let files = FolderFiles::new(folder.path().join("files"));
    let graph = Graph::builder("diary")
        .node("write", write)
        .edge(START, "write")
        .edge("write", END)
        .build()
        .unwrap();
    let runtime = Runtime::new(store.clone());
    let registry = Arc::new(store.clone());
    let server = Server::builder(runtime.clone(), registry)
        .graph(graph.definition())
        .store(Arc::new(store.clone()))
        .start()
        .await
        .unwrap();
    let now = Timestamp(1_000);
    for (n, tenant) in [(1, "acme"), (2, "globex")] {
        let marker = format!("marker-of-{tenant}");
        let id = format!("{tenant}/t-{marker}");
        let thread = runtime.thread(&graph, &id).unwrap();
        let page = DiaryUpdate::default().pages(marker.clone());
        thread.start(page).await.unwrap();
        let put = PutItem {
            namespace: Namespace::of_tenant(tenant, ["notes"]).unwrap(),
            key: marker.clone(),
            value: json!({ "text": marker }),
            ttl: None,
        };
        store.put(&put, now).await.unwrap();
        let key = ApiKey {
            id: ApiKeyId::from_bytes([n; 16]),
            tenant: tenant.to_owned(),
            principal: marker.clone(),
            name: marker,
            hash: [n; 32],
            permissions: 1,
            is_restricted: false,
            created: now,
            expires: None,
        };
        store.create_api_key(&key).await.unwrap();
    }
    store.checkpoint_wal().await.unwrap();
    assert!(count(folder.path(), "marker-of-acme") > 4);
    let kept = count(folder.path(), "marker-of-globex");

    let data = TenantData {
        checkpointer: &store,
        registry: &store,
        store: Some(&store),
        files: Some(&files),
        queue: None,
        cache: Some(&store),
    };
    let erased = erase_tenant(&data, "acme", now).await.unwrap();
    assert_eq!(
        (erased.threads, erased.items, erased.rows.api_keys),
        (1, 1, 1)
    );
    store.compact().await.unwrap();
    // The name of a thread stays, so that a process that still runs it cannot make it again.
    assert_eq!(count(folder.path(), "marker-of-acme"), 1);
    assert_eq!(count(folder.path(), "marker-of-globex"), kept);
    let again = erase_tenant(&data, "acme", now).await.unwrap();
    assert_eq!(again, ErasedTenant::default());

    let mut query = ThreadQuery::default();
    query.tenant = "globex".to_owned();
    assert_eq!(runtime.count_threads(&query).await.unwrap(), 1);
    let other = runtime.thread(&graph, "globex/t-marker-of-globex").unwrap();
    other.answer_only(true).await.unwrap().unwrap();
    server.drain().await;
}

/// Returns how often a text is in the files of a folder and of those in it.
fn count(folder: &Path, text: &str) -> usize {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let in_file = |file: std::path::PathBuf| match file.is_dir() {
        true => count(&file, text),
        false => {
            let bytes = fs::read(file).unwrap();
            let windows = bytes.windows(text.len());
            windows.filter(|part| *part == text.as_bytes()).count()
        }
    };
    files.map(in_file).sum()
}
