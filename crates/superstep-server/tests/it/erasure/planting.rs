//! Data of a tenant in every place where a server has data, with a marker in each piece, and the search for the markers.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use http::Request;
use serde_json::{Value as Json, json};
use superstep::checkpoint::Checkpointer;
use superstep::driver::{NodeCache, RequestQueue};
use superstep::label::{Labeled, Labels};
use superstep::prelude::*;
use superstep::registry::{ApiKey, Registry};
use superstep::store::{Namespace, Store};
use superstep::{ApiKeyId, RunId, ThreadId, Timestamp};
use superstep_agent::memory::{Memories, Source};
use superstep_llm::ScriptedEmbedder;
use superstep_server::{FolderFiles, Server};

use crate::kit::Client;
use crate::receiver::Receiver;

#[derive(Clone, Debug, Default, State)]
pub(super) struct Diary {
    #[state(append)]
    pages: Vec<String>,
    found: Option<String>,
}

/// Its result is cached.
async fn look_up(diary: View<Diary>, _: NodeCx) -> Result<DiaryUpdate, NodeError> {
    let page = diary.pages.last().cloned().unwrap_or_default();
    Ok(DiaryUpdate::default().found(Some(format!("something about {page}"))))
}

/// Records a step, and asks about some pages.
async fn write(diary: View<Diary>, cx: NodeCx) -> Result<DiaryUpdate, NodeError> {
    let page = diary.pages.last().cloned().unwrap_or_default();
    let noted: String = cx
        .step("note", || async { Ok(format!("noted {page}")) })
        .await?;
    if page.starts_with("May I keep") {
        let _: bool = cx.interrupt(Interrupt::new("keep", page)).await?;
    }
    Ok(DiaryUpdate::default().pages(noted))
}

fn diary() -> Graph<Diary> {
    Graph::builder("diary")
        .node("look_up", look_up)
        .cache("look_up", None, |diary: &Diary| {
            diary.pages.last().cloned().unwrap_or_default()
        })
        .node("write", write)
        .edge(START, "look_up")
        .edge("look_up", "write")
        .edge("write", END)
        .inputs(["pages"])
        .build()
        .unwrap()
}

/// A server of two tenants, `acme` and `globex`, over one store.
pub(super) struct PlantedServer<S> {
    pub(super) store: S,
    pub(super) files: FolderFiles,
    clients: [Client; 2],
    receiver: Receiver,
}

impl<S> PlantedServer<S>
where
    S: Checkpointer + Store + Registry + NodeCache + Clone,
{
    pub(super) async fn new(store: S, folder: &Path) -> Self {
        let files = FolderFiles::new(folder.join("files"));
        let receiver = Receiver::start([]).await;
        let host = format!("127.0.0.1:{}", receiver.port());
        let runtime = Runtime::builder(store.clone()).cache(store.clone()).build();
        let builder = Server::builder(runtime, Arc::new(store.clone()))
            .graph(diary().definition())
            .store(Arc::new(store.clone()))
            .files(Arc::new(files.clone()))
            .allow_webhook_host(host.parse().unwrap());
        Self {
            store,
            files,
            clients: Client::of_tenants(builder, ["acme", "globex"]).await,
            receiver,
        }
    }

    pub(super) fn client(&self, tenant: &str) -> &Client {
        &self.clients[usize::from(tenant != "acme")]
    }

    pub(super) async fn drain(&self) {
        self.clients[0].drain().await;
    }

    /// Stores data of a tenant with so many markers, of every kind in turn.
    pub(super) async fn plant(&self, tenant: &str, count: u32, queue: Option<&dyn RequestQueue>) {
        let thread = self.client(tenant).thread().await;
        for n in 0..count {
            let marker = marker(tenant, n);
            match n % KINDS {
                0 => self.row(tenant, &marker).await,
                1 => self.run(tenant, &marker, json!({})).await,
                2 => {
                    let question = format!("May I keep {marker}?");
                    self.run(tenant, &question, json!({})).await;
                }
                3 => self.assistant(tenant, &marker).await,
                4 => self.cron(tenant, &marker).await,
                5 => self.item(tenant, &marker).await,
                6 => self.file(tenant, &thread, &marker).await,
                7 => {
                    let hook = json!({ "webhook": self.receiver.url() });
                    self.run(tenant, &marker, hook).await;
                }
                8 => self.memory(tenant, &marker).await,
                9 => self.api_key(tenant, n, &marker).await,
                10 => self.request_key(tenant, &marker).await,
                _ => match queue {
                    Some(queue) => request(queue, tenant, n, &marker).await,
                    None => self.item(tenant, &marker).await,
                },
            }
        }
    }

    async fn row(&self, tenant: &str, marker: &str) {
        let new = json!({ "metadata": { "note": marker } });
        self.client(tenant).post("/threads", new).await.ok();
    }

    /// Runs a thread: its log, its row, its run, a cached result, and for some an interrupt or a delivery.
    async fn run(&self, tenant: &str, page: &str, more: Json) {
        let client = self.client(tenant);
        let mut run = json!({ "assistant_id": "diary", "input": { "pages": [page] } });
        let fields = run.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        client.wait(&client.thread().await, run).await;
    }

    async fn assistant(&self, tenant: &str, marker: &str) {
        let body = json!({
            "graph_id": "diary",
            "name": marker,
            "config": { "configurable": { "note": marker } },
        });
        self.client(tenant).post("/assistants", body).await.ok();
    }

    async fn cron(&self, tenant: &str, marker: &str) {
        let body = json!({
            "assistant_id": "diary",
            "schedule": "0 0 1 1 *",
            "input": { "pages": [marker] },
        });
        self.client(tenant).post("/runs/crons", body).await.ok();
    }

    async fn item(&self, tenant: &str, marker: &str) {
        let item = json!({
            "namespace": ["notes", marker],
            "key": marker,
            "value": { "text": marker },
        });
        let client = self.client(tenant);
        client.call("PUT", "/store/items", Some(item)).await.ok();
    }

    async fn file(&self, tenant: &str, thread: &str, marker: &str) {
        let put = Request::builder()
            .method("PUT")
            .uri(format!("/superstep{thread}/files/{marker}/{marker}.txt"))
            .body(Body::from(format!("This is {marker}.")))
            .unwrap();
        self.client(tenant).send(put).await.ok();
    }

    async fn memory(&self, tenant: &str, marker: &str) {
        let namespace = Namespace::of_tenant(tenant, ["memories"]).unwrap();
        let embedder = ScriptedEmbedder::new(["mark", "notes"]);
        let memories = Memories::new(Arc::new(self.store.clone()), namespace)
            .with_embedder(Arc::new(embedder));
        let fact = Labeled::new(json!({ "likes": marker }), Labels::NONE);
        let source = Source::person("it is a test");
        memories.patch(marker, fact, source).await.unwrap();
        let found = memories.search("mark", 1).await.unwrap();
        assert!(found[0].score > 0.9, "{found:?}");
    }

    async fn api_key(&self, tenant: &str, n: u32, marker: &str) {
        let key = ApiKey {
            id: ApiKeyId::from_bytes(id_of(tenant, n)),
            tenant: tenant.to_owned(),
            principal: marker.to_owned(),
            name: marker.to_owned(),
            hash: [1; 32],
            permissions: 1,
            is_restricted: false,
            created: Timestamp(1_000),
            expires: None,
        };
        assert!(self.store.create_api_key(&key).await.unwrap());
    }

    async fn request_key(&self, tenant: &str, marker: &str) {
        let create = Request::builder()
            .method("POST")
            .uri("/threads")
            .header("content-type", "application/json")
            .header("idempotency-key", marker)
            .body(Body::from("{}"))
            .unwrap();
        self.client(tenant).send(create).await.ok();
    }
}

/// A request to the workers of a cluster, with its reply.
async fn request(queue: &dyn RequestQueue, tenant: &str, n: u32, marker: &str) {
    let id = RunId::from_bytes(id_of(tenant, n));
    let thread = ThreadId::of_tenant(tenant, "queued").unwrap();
    let bytes = marker.as_bytes();
    let put = queue.put(id, &thread, bytes, Timestamp(1_000)).await;
    put.unwrap();
    queue.reply(id, bytes).await.unwrap();
}

/// Number of kinds of data.
pub(super) const KINDS: u32 = 12;

fn id_of(tenant: &str, n: u32) -> [u8; 16] {
    let mut id = [0; 16];
    let tenant = tenant.as_bytes();
    id[..4].copy_from_slice(&tenant[..4]);
    id[12..].copy_from_slice(&n.to_be_bytes());
    id
}

/// A text that is nowhere else.
fn marker(tenant: &str, n: u32) -> String {
    format!("{}{n:04}", prefix(tenant))
}

fn prefix(tenant: &str) -> String {
    format!("MARK-{tenant}-")
}

/// The numbers of the markers that [`PlantedServer::plant`] plants.
pub(super) fn all(count: u32) -> BTreeSet<u32> {
    (0..count).collect()
}

/// Returns the numbers of a tenant's markers in these bytes: as they are, and as hexadecimal digits.
pub(super) fn markers(bytes: &[u8], tenant: &str) -> BTreeSet<u32> {
    let plain = prefix(tenant).into_bytes();
    let digits: String = plain.iter().map(|byte| format!("{byte:02x}")).collect();
    let plain_number = |rest: &[u8]| number(rest.get(..4)?);
    let digits_number = |rest: &[u8]| {
        // Of `30` to `39`, the second digit.
        let digits: Vec<u8> = rest.get(..8)?.iter().skip(1).step_by(2).copied().collect();
        number(&digits)
    };
    let mut found = after_each(bytes, &plain, plain_number);
    found.extend(after_each(bytes, digits.as_bytes(), digits_number));
    found
}

fn number(digits: &[u8]) -> Option<u32> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn after_each(bytes: &[u8], wanted: &[u8], read: impl Fn(&[u8]) -> Option<u32>) -> BTreeSet<u32> {
    let (first, mut rest, mut found) = (wanted[0], bytes, BTreeSet::new());
    while let Some(at) = rest.iter().position(|byte| *byte == first) {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(&wanted[1..]) {
            found.extend(read(after));
        }
    }
    found
}

/// Returns the numbers of a tenant's markers in all files of a folder and in their names.
pub(super) fn markers_in(folder: &Path, tenant: &str) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        found.extend(markers(entry.file_name().as_encoded_bytes(), tenant));
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(markers_in(&path, tenant));
            continue;
        }
        match fs::read(&path) {
            Ok(bytes) => found.extend(markers(&bytes, tenant)),
            // A database deletes files while it runs.
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{}", path.display()),
        }
    }
    found
}

#[test]
fn a_marker_is_found_in_both_forms_and_another_tenants_is_not() {
    let text = format!("a {} b {}", marker("acme", 7), marker("globex", 8));
    assert_eq!(markers(text.as_bytes(), "acme"), [7].into());
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(markers(digits.as_bytes(), "acme"), [7].into());
    assert_eq!(markers(digits.as_bytes(), "globex"), [8].into());
    assert_eq!(markers(b"MARK-acme-00", "acme"), BTreeSet::new());
}
