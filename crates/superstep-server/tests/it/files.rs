//! Files of threads, over HTTP.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Request, StatusCode};
use serde_json::{Value as Json, json};
use superstep::ThreadId;
use superstep_server::{FolderFiles, ThreadFilePath, ThreadFiles as _};

use crate::kit::{Client, Reply};

/// A client of a server with files, and the folder that they are in.
async fn client() -> (Client, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let files = FolderFiles::with_limits(folder.path(), 1_000, 3);
    (Client::with_files(Arc::new(files)).await, folder)
}

impl Client {
    async fn put(&self, thread: &str, path: &str, bytes: &[u8]) -> Reply {
        let request = Request::builder()
            .method("PUT")
            .uri(format!("/superstep{thread}/files/{path}"))
            .body(Body::from(bytes.to_vec()))
            .unwrap();
        self.send(request).await
    }

    async fn file(&self, method: &str, thread: &str, path: &str) -> Reply {
        let path = format!("/superstep{thread}/files/{path}");
        self.call(method, &path, None).await
    }

    /// Returns the paths of a thread's files.
    async fn paths(&self, thread: &str) -> Vec<String> {
        let listed = self.get(&format!("/superstep{thread}/files")).await.ok();
        let files = listed.as_array().unwrap().iter();
        files
            .map(|file| file["path"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// Number of entries below a folder, apart from the folders of tenants.
fn threads_in(folder: &std::path::Path) -> usize {
    let tenants = std::fs::read_dir(folder).unwrap();
    let threads = tenants.map(|tenant| std::fs::read_dir(tenant.unwrap().path()).unwrap().count());
    threads.sum()
}

#[tokio::test]
async fn a_file_is_stored_listed_fetched_and_deleted() {
    let (client, _folder) = client().await;
    let thread = client.thread().await;
    let stored = client
        .put(&thread, "notes/a%20b.md", b"\x00\xff")
        .await
        .ok();
    assert_eq!(stored["path"], "notes/a b.md");
    assert_eq!(stored["bytes"], 2);
    let listed = client.get(&format!("/superstep{thread}/files")).await.ok();
    assert_eq!(listed, json!([stored]));
    let fetched = client.file("GET", &thread, "notes/a%20b.md").await;
    assert_eq!(fetched.bytes, b"\x00\xff");
    // A page that was uploaded must not run in the server's origin.
    assert_eq!(
        fetched.header("content-type"),
        Some("application/octet-stream")
    );
    assert_eq!(fetched.header("content-disposition"), Some("attachment"));
    assert_eq!(fetched.header("x-content-type-options"), Some("nosniff"));

    let gone = client.file("DELETE", &thread, "notes/a%20b.md").await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    for method in ["GET", "DELETE"] {
        let missing = client.file(method, &thread, "notes/a%20b.md").await;
        assert_eq!(missing.status, StatusCode::NOT_FOUND, "{method}");
    }
}

#[tokio::test]
async fn a_path_cannot_leave_the_thread() {
    let (client, folder) = client().await;
    let (thread, other) = (client.thread().await, client.thread().await);
    client.put(&other, "secret", b"canary").await.ok();
    let id = other.rsplit('/').next().unwrap();
    let sibling = format!("..%2Fthread-{id}%2Fsecret");
    for path in [
        "../secret",
        "..%2fsecret",
        "%2e%2e/secret",
        "%2e%2e%2f%2e%2e%2fsecret",
        "%2fetc%2fpasswd",
        "/etc/passwd",
        "a/../../secret",
        "a//b",
        "a%2f",
        ".git/config",
        "a/.env",
        "a%5c..%5cb",
        "a%00b",
        "a%0ab",
        "%e2%80%aeb",
        "%ff",
        &sibling,
    ] {
        for method in ["GET", "PUT", "DELETE"] {
            let reply = client.file(method, &thread, path).await;
            assert!(
                reply.status.is_client_error(),
                "{method} {path}: {}",
                reply.status
            );
            assert!(!reply.json.to_string().contains("canary"));
        }
    }
    assert_eq!(client.paths(&thread).await, Vec::<String>::new());
    assert_eq!(client.paths(&other).await, ["secret"]);
    // The names of a thread's files are no names in another thread.
    assert_eq!(
        client.file("GET", &thread, "secret").await.status,
        StatusCode::NOT_FOUND
    );
    let nowhere = "/threads/0190a6b2-0000-7000-8000-000000000001";
    for method in ["GET", "PUT", "DELETE"] {
        let reply = client.file(method, nowhere, "a").await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{method}");
    }
    assert_eq!(threads_in(folder.path()), 1);
}

#[tokio::test]
async fn the_files_of_a_thread_are_limited() {
    let (client, _folder) = client().await;
    let thread = client.thread().await;
    client.put(&thread, "a", &[0; 900]).await.ok();
    let large = client.put(&thread, "b", &[0; 101]).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
    let detail = large.json["detail"].as_str().unwrap();
    assert!(detail.contains("1000 bytes"), "{detail}");
    let below = client.put(&thread, "a/b", b"").await;
    assert_eq!(below.status, StatusCode::CONFLICT);
    client.put(&thread, "b", b"").await.ok();
    client.put(&thread, "c", b"").await.ok();
    let many = client.put(&thread, "d", b"").await;
    assert_eq!(many.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(client.paths(&thread).await, ["a", "b", "c"]);
    // Another thread has its own quota.
    client
        .put(&client.thread().await, "a", &[0; 1_000])
        .await
        .ok();
    let body = vec![0; 33 * 1024 * 1024];
    let huge = client.put(&thread, "a", &body).await;
    assert_eq!(huge.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn files_are_copied_and_deleted_with_their_thread() {
    let (client, folder) = client().await;
    let thread = client.thread().await;
    client.put(&thread, "a", b"one").await.ok();
    let copied = client.post(&format!("{thread}/copy"), json!({})).await.ok();
    let copy = format!("/threads/{}", copied["thread_id"].as_str().unwrap());
    assert_eq!(client.file("GET", &copy, "a").await.bytes, b"one");
    assert_eq!(threads_in(folder.path()), 2);
    assert!(
        client
            .call("DELETE", &thread, None)
            .await
            .status
            .is_success()
    );
    assert_eq!(client.file("GET", &copy, "a").await.bytes, b"one");
    assert_eq!(threads_in(folder.path()), 1);
    let ids = json!({ "thread_ids": [copied["thread_id"]], "strategy": "delete" });
    client.post("/threads/prune", ids).await.ok();
    assert_eq!(threads_in(folder.path()), 0);
}

#[tokio::test]
async fn the_files_of_a_tenant_are_deleted_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let files = FolderFiles::new(folder.path().join("files"));
    let write = async |tenant: &str, path: &str| {
        let thread = ThreadId::of_tenant(tenant, "t").unwrap();
        let path = ThreadFilePath::parse(path).unwrap();
        files.write(&thread, &path, "x".into()).await.unwrap();
    };
    write("acme", "a").await;
    write("acme", "b/c").await;
    for other in ["", "acme-corp", "Acme", "acm"] {
        write(other, "a").await;
    }
    let outside = folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("kept"), "x").unwrap();
    for (tenant, deleted) in [
        ("acme", 2),
        ("acme", 0),
        ("/../../outside", 0),
        ("x/../../../outside", 0),
        ("..", 0),
    ] {
        assert_eq!(
            files.delete_tenant(tenant).await.unwrap(),
            deleted,
            "{tenant}"
        );
    }
    assert!(outside.join("kept").exists());
    assert_eq!(threads_in(&folder.path().join("files")), 4);
}

#[tokio::test(start_paused = true)]
async fn files_are_deleted_when_their_thread_expires() {
    let (client, folder) = client().await;
    // Of about 30 milliseconds.
    let new = json!({ "ttl": 0.0005 });
    let created = client.post("/threads", new).await.ok();
    let thread = format!("/threads/{}", created["thread_id"].as_str().unwrap());
    client.put(&thread, "a", b"one").await.ok();
    assert_eq!(threads_in(folder.path()), 1);
    // Lifetimes follow the clock of the runtime, which is not paused; the rounds of the upkeep follow that of the test.
    std::thread::sleep(Duration::from_millis(50));
    for _ in 0..100 {
        if threads_in(folder.path()) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    panic!("the files of an expired thread are still there");
}

#[tokio::test]
async fn a_server_without_files_says_so() {
    let client = Client::new().await;
    let thread = client.thread().await;
    let reply = client.put(&thread, "a", b"").await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    assert_eq!(reply.json["detail"], json!("This server stores no files"));
    let info: Json = client.get("/openapi.json").await.ok();
    assert!(info["paths"]["/superstep/threads/{thread_id}/files/{path}"]["put"].is_object());
}
