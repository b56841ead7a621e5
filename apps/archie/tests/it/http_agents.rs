//! The five agents over HTTP alone, with the real server and a script: files are uploaded, people are asked, results are fetched.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use archie_atris::catalogue_store::{CatalogueStore, audius};
use archie_sheet::book::{Content, read};
use serde_json::{Value as Json, json};
use superstep_sqlite::Sqlite;

use crate::atris::Server as Api;
use crate::atris::server::audius as answer_as_audius;
use crate::docs;
use crate::kit::Workdir;
use crate::mail::{sends, triage_of, wants};
use crate::serve::ServeProcess;
use crate::sheet::kit::{place, sales};
use crate::sheet::{counting, with_sales};

/// A caller of the real server, with a thread of its own.
pub(crate) struct Caller {
    url: String,
    pub(crate) thread: String,
    agent: &'static str,
    client: reqwest::Client,
}

impl Caller {
    pub(crate) async fn new(server: &ServeProcess, agent: &'static str) -> Self {
        let client = reqwest::Client::new();
        let url = format!("http://{}", server.address);
        let created = client.post(format!("{url}/threads")).json(&json!({}));
        let created: Json = created.send().await.unwrap().json().await.unwrap();
        let thread = created["thread_id"].as_str().unwrap().to_owned();
        Self {
            url,
            thread,
            agent,
            client,
        }
    }

    /// The same thread, at a server that was started again.
    fn at(&self, server: &ServeProcess) -> Self {
        Self {
            url: format!("http://{}", server.address),
            thread: self.thread.clone(),
            agent: self.agent,
            client: reqwest::Client::new(),
        }
    }

    fn file(&self, path: &str) -> String {
        format!("{}/superstep/threads/{}/files{path}", self.url, self.thread)
    }

    pub(crate) async fn upload(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        let sent = self.client.put(self.file(&format!("/{path}")));
        let sent = sent.body(bytes.into()).send().await.unwrap();
        assert_eq!(sent.status(), 200, "{path}");
    }

    async fn fetch(&self, path: &str) -> Vec<u8> {
        let got = self.client.get(self.file(&format!("/{path}"))).send().await;
        let got = got.unwrap();
        assert_eq!(got.status(), 200, "{path}");
        got.bytes().await.unwrap().to_vec()
    }

    pub(crate) async fn text(&self, path: &str) -> String {
        String::from_utf8(self.fetch(path).await).unwrap()
    }

    /// The paths of the thread's files.
    async fn paths(&self) -> Vec<String> {
        let got = self.client.get(self.file("")).send().await.unwrap();
        let listed: Vec<Json> = got.json().await.unwrap();
        let paths = listed.iter().map(|file| file["path"].as_str().unwrap());
        paths.map(str::to_owned).collect()
    }

    pub(crate) async fn wait(&self, mut body: Json) -> Json {
        body["assistant_id"] = json!(self.agent);
        let url = format!("{}/threads/{}/runs/wait", self.url, self.thread);
        let sent = self.client.post(url).json(&body).timeout(PATIENCE).send();
        let sent = sent.await.unwrap();
        assert!(sent.status().is_success(), "{}", sent.text().await.unwrap());
        sent.json().await.unwrap()
    }

    /// Starts a run, and returns what a person is asked.
    pub(crate) async fn begin(&self, input: Json) -> Json {
        asked(&self.wait(json!({ "input": input })).await)
    }

    pub(crate) async fn answer(&self, answer: Json) -> Json {
        self.wait(json!({ "command": { "resume": answer } })).await
    }

    /// Sends a run and returns the status and the body of the reply.
    pub(crate) async fn try_wait(&self, mut body: Json) -> (u16, Json) {
        body["assistant_id"] = json!(self.agent);
        let url = format!("{}/threads/{}/runs/wait", self.url, self.thread);
        let sent = self.client.post(url).json(&body).timeout(PATIENCE).send();
        let sent = sent.await.unwrap();
        (sent.status().as_u16(), sent.json().await.unwrap())
    }

    /// Reads something of the thread, such as `/state`; of our own endpoints with `/superstep` before it.
    pub(crate) async fn get(&self, before: &str, after: &str) -> Json {
        let url = format!("{}{before}/threads/{}{after}", self.url, self.thread);
        let got = self.client.get(url).send().await.unwrap();
        assert!(got.status().is_success(), "{}", got.text().await.unwrap());
        got.json().await.unwrap()
    }

    /// Returns the newest checkpoint after which this node runs.
    pub(crate) async fn checkpoint_before(&self, node: &str) -> String {
        let url = format!("{}/threads/{}/history", self.url, self.thread);
        let got = self.client.post(url).json(&json!({ "limit": 100 }));
        let history: Vec<Json> = got.send().await.unwrap().json().await.unwrap();
        let found = history.iter().find(|state| state["next"] == json!([node]));
        let found = found.unwrap_or_else(|| panic!("nothing runs `{node}`: {history:?}"));
        let checkpoint = found["checkpoint"]["checkpoint_id"].as_str();
        checkpoint.unwrap().to_owned()
    }

    async fn delete(&self) {
        let url = format!("{}/threads/{}", self.url, self.thread);
        let gone = self.client.delete(url).send().await.unwrap();
        assert!(gone.status().is_success());
    }
}

fn asked(values: &Json) -> Json {
    let asked = &values["__interrupt__"][0]["value"];
    assert!(!asked.is_null(), "{values}");
    asked.clone()
}

/// Callers must not learn where the server has its files.
fn check_private(values: &Json, workdir: &Workdir) {
    let folder = workdir.path("").display().to_string();
    assert!(
        !values.to_string().contains(folder.trim_end_matches('/')),
        "{values}"
    );
}

/// The folders of threads that a server has files in.
fn folders(workdir: &Workdir, below: &str) -> usize {
    fs::read_dir(workdir.path(below)).map_or(0, Iterator::count)
}

fn interview(last: &[Json]) -> Json {
    let mut replies = vec![
        json!({ "at": "initial", "expect": "Ten thousand orders", "text": "Is ordering required?" }),
        json!({ "at": "followup", "expect": "Per customer.", "text": "Who pays for it?" }),
    ];
    replies.extend_from_slice(last);
    replies.push(json!({ "at": "final", "json": {
        "assumptions": [{ "claim": "The load stays." }],
        "components": [{ "claim": "One machine is enough.", "file": "notes/b.txt", "line": 1, "quote": "We have one machine" }],
        "alternatives": [{ "claim": "A second machine." }],
        "decisions": [{ "claim": "Use a queue." }],
        "open_questions": [],
    } }));
    replies.into()
}

async fn upload_notes(caller: &Caller) {
    caller
        .upload("notes/a.md", "Ten thousand orders a day.\n")
        .await;
    caller.upload("notes/b.txt", "We have one machine.\n").await;
    caller.upload("other.md", "not named").await;
}

const QUESTION: &str = "analyze: Choose a queue";

#[tokio::test(flavor = "multi_thread")]
async fn analyze_reads_uploaded_notes_and_leaves_its_result() {
    let workdir = Workdir::scripted(&interview(&[]));
    let server = ServeProcess::start(&workdir);
    let caller = Caller::new(&server, "analyze").await;
    upload_notes(&caller).await;
    let input = json!({ "userInput": QUESTION, "noteFiles": ["notes"] });
    let first = caller.begin(input).await;
    assert_eq!(first["query"], "Is ordering required?");
    let second = asked(&caller.answer(json!("Per customer.")).await);
    assert_eq!(second["query"], "Who pays for it?");
    let values = caller.answer(json!("DONE")).await;
    let page = caller.text("results/analysis_result.md").await;
    assert_eq!(values["analysisOutput"], json!(page));
    assert!(page.contains("One machine is enough."), "{page}");
    let notes: Vec<_> = values["fileContents"].as_object().unwrap().keys().collect();
    assert_eq!(notes, ["notes/a.md", "notes/b.txt"]);
    assert_eq!(
        caller.paths().await,
        [
            "notes/a.md",
            "notes/b.txt",
            "other.md",
            "results/analysis_result.md"
        ]
    );
    check_private(&values, &workdir);
    // The command line ends the thread in the same way, and writes nothing else.
    let ran = workdir.run(&["show", &caller.thread], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    caller.delete().await;
    assert_eq!(folders(&workdir, "home/files/tenant-"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn sheet_changes_an_uploaded_workbook_after_an_approval() {
    let workdir = with_sales(&counting());
    let server = ServeProcess::start(&workdir);
    let caller = Caller::new(&server, "sheet").await;
    caller.upload("sales.xlsx", sales()).await;
    let task = json!({
        "workbook": "sales.xlsx", "instruction": "Count each Product in a new sheet", "with_informer": true,
    });
    let changes = caller.begin(json!({ "task": task })).await;
    assert_eq!(changes["cells"], 10, "{changes}");
    assert_eq!(
        caller.paths().await,
        ["sales.xlsx"],
        "nothing is saved before the answer"
    );
    let values = caller.answer(json!({ "type": "accept" })).await;
    assert_eq!(values["answer"], "There are four products.");
    check_private(&values, &workdir);
    assert_eq!(
        caller.paths().await,
        [
            "results/changes.txt",
            "results/code.py",
            "results/report.md",
            "results/workbook_new.xlsx",
            "sales.xlsx"
        ]
    );
    let saved = read(&caller.fetch("results/workbook_new.xlsx").await).unwrap();
    let counts = saved.sheet("Counts").unwrap();
    assert_eq!(counts.content(place("B4")), Some(Content::Number(2.0)));
    assert_eq!(caller.fetch("sales.xlsx").await, sales());
    // A thread has one workbook.
    let again = caller.wait(json!({ "input": { "task": task } })).await;
    let why = again["__error__"]["message"].as_str().unwrap();
    assert!(why.contains("has its workbook already"), "{why}");
    caller.delete().await;
    assert_eq!(folders(&workdir, "home/files/tenant-"), 0);
    assert_eq!(
        folders(&workdir, "home/sheets"),
        0,
        "snapshots go with the thread"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn docs_describes_an_uploaded_folder_and_asks_at_its_gate() {
    let replies = docs::replies("file-structure", &[62, 85], &[3]);
    let workdir = Workdir::scripted(&replies.into());
    let server = ServeProcess::start(&workdir);
    let caller = Caller::new(&server, "docs").await;
    for (path, text) in docs::kit::FILES {
        if !path.starts_with('.') && !path.starts_with("target") {
            caller.upload(&format!("shop/{path}"), text).await;
        }
    }
    let task = json!({ "folder": "shop", "agents": ["file-structure"], "gate": true });
    let gate = caller.begin(json!({ "task": task })).await;
    assert!(gate.to_string().contains("Round 1, question 1?"), "{gate}");
    let values = caller.answer(json!({ "type": "accept" })).await;
    assert_eq!(values["report"]["agents"], 1, "{values}");
    check_private(&values, &workdir);
    let page = caller.text("results/file-structure.md").await;
    assert!(page.contains("Text 1 about"), "{page}");
    assert!(caller.text("results/index.md").await.contains("# shop"));
    let results = caller.paths().await;
    assert!(
        results.contains(&"results/index.html".to_owned()),
        "{results:?}"
    );
    // The thread describes what is there now, if it is asked again.
    let missing = json!({ "task": { "folder": "elsewhere" } });
    let refused = caller.wait(json!({ "input": missing })).await;
    let why = refused["__error__"]["message"].as_str().unwrap();
    assert!(why.contains("no folder `elsewhere`"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn atris_asks_which_track_and_answers() {
    let workdir = Workdir::scripted(&json!([]));
    let api = Api::start(answer_as_audius);
    fs::create_dir(workdir.path("home")).unwrap();
    let store = Sqlite::open(workdir.path("home/threads.db")).unwrap();
    let mut catalogue = audius();
    catalogue.hosts = vec![api.url()];
    let catalogues = CatalogueStore::new(Arc::new(store));
    catalogues.put(&catalogue).await.unwrap();
    let server = ServeProcess::start(&workdir);
    let caller = Caller::new(&server, "atris").await;
    caller.begin(json!({ "query": "Show track" })).await;
    let values = caller.answer(json!("D7KyD")).await;
    assert!(values["__interrupt__"].is_null(), "{values}");
    let history = values["messageHistory"].as_array().unwrap();
    assert!(
        !history.last().unwrap()["content"]
            .as_str()
            .unwrap()
            .is_empty()
    );
    assert!(
        api.lines().iter().any(|line| line.contains("D7KyD")),
        "{:?}",
        api.lines()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_is_answered_once_after_its_approval() {
    let workdir = Workdir::scripted(&json!([
        triage_of("bob@example.com", "respond"),
        wants(json!([sends("Friday.")])),
        wants(json!([{ "name": "Done", "args": { "done": true } }])),
    ]));
    let server = ServeProcess::start(&workdir);
    let caller = Caller::new(&server, "email_assistant").await;
    let mail = json!({
        "id": "q4", "message_id": "q4@x", "from": "Bob <bob@example.com>", "to": "alice@example.com",
        "account": "alice@example.com", "subject": "Q4 report?", "page_content": "When is the report ready?",
    });
    let call = caller.begin(json!({ "email_input": mail })).await;
    assert_eq!(call["action_request"]["action"], "send_email_tool");
    let values = caller
        .answer(json!([{ "type": "accept", "args": null }]))
        .await;
    assert_eq!(values["ended"], "done", "{values}");
    assert_eq!(values["done"].as_array().unwrap().len(), 1);
    let outbox = fs::read_dir(workdir.path("home/mail/outbox")).unwrap();
    let sent = outbox.filter(|entry| {
        let path = entry.as_ref().unwrap().path();
        path.extension().is_some_and(|kind| kind == "eml")
    });
    assert_eq!(sent.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_in_its_last_run_leaves_one_result() {
    let deadly = json!({ "at": "final", "kill": true });
    let workdir = Workdir::scripted(&interview(&[deadly]));
    let server = ServeProcess::start(&workdir);
    let caller = Caller::new(&server, "analyze").await;
    upload_notes(&caller).await;
    let input = json!({ "userInput": QUESTION, "noteFiles": ["notes/a.md", "notes/b.txt"] });
    caller.begin(input).await;
    caller.answer(json!("Per customer.")).await;
    // The process is gone before it can reply.
    let url = format!("{}/threads/{}/runs/wait", caller.url, caller.thread);
    let body = json!({ "assistant_id": "analyze", "command": { "resume": "DONE" } });
    let cut = caller.client.post(url).json(&body).timeout(PATIENCE).send();
    assert!(cut.await.is_err());
    drop(server);
    let server = ServeProcess::start(&workdir);
    let caller = caller.at(&server);
    let expected = [
        "notes/a.md",
        "notes/b.txt",
        "other.md",
        "results/analysis_result.md",
    ];
    for _ in 0..1_200 {
        if caller.paths().await.len() >= expected.len() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let page = caller.text("results/analysis_result.md").await;
    assert!(page.contains("Use a queue."), "{page}");
    // The end comes again, from the command line.
    let ran = workdir.run(&["resume", &caller.thread], "");
    assert!(ran.out().contains("Use a queue."), "{ran:?}");
    assert_eq!(caller.paths().await, expected);
}

const PATIENCE: Duration = Duration::from_secs(120);
