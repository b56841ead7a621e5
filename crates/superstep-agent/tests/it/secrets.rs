//! Secrets stay where connections are made.
//!
//! A process is given twenty of them, for models, tools and whatever else connects, over servers that tell every key that
//! they are sent. It listens to itself at every level and writes all that anybody could look at into one folder. Then every
//! byte in that folder is searched.

use std::collections::BTreeSet;
use std::fmt::{Debug, Display};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use superstep::Seq;
use superstep::prelude::*;
use superstep_agent::trace::AgentTrace;
use superstep_agent::{Agent, AgentState, Tool, ToolError, tool};
use superstep_llm::{
    Address, Embedder, Model, ModelName, Patience, Recorder, Remote, RemoteEmbedder, Request,
    Retrying, Script, Secret,
};
use superstep_sqlite::Sqlite;

use crate::kit::Note;
use crate::listen::Ear;

const COUNT: usize = 20;

/// Half of them look like keys of providers.
fn planted(number: usize) -> String {
    let start = if number.is_multiple_of(2) { "sk-" } else { "" };
    let mixed = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!("{start}planted{number:02}{mixed:016x}{:016x}", !mixed)
}

fn secret(number: usize) -> Secret {
    Secret::new(planted(number))
}

/// A server that tells whatever it is sent.
struct Echo {
    url: String,
    /// The heads of requests, where keys belong.
    heads: Arc<Mutex<String>>,
}

impl Echo {
    /// Writes the bodies of requests, which are the prompts as servers see them, into a file.
    fn start(bodies: PathBuf) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heads: Arc<Mutex<String>> = Arc::default();
        let seen = heads.clone();
        std::thread::spawn(move || {
            let mut bodies = std::fs::File::create(bodies).unwrap();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some((head, body)) = read_request(&mut stream) else {
                    continue;
                };
                bodies.write_all(body.as_bytes()).unwrap();
                seen.lock().unwrap().push_str(&head);
                // Some do not wait for the whole answer.
                let _ = stream.write_all(answer(&head, &body).as_bytes());
            }
        });
        Self { url, heads }
    }

    fn address(&self, mode: &str, number: usize) -> Address {
        Address {
            url: format!("{}/{mode}/v1", self.url),
            key: Some(secret(number)),
        }
    }

    fn remote(&self, wire: &str, mode: &str, number: usize) -> Arc<Remote> {
        let name: ModelName = format!("{wire}:x").parse().unwrap();
        Arc::new(Remote::at(&name, self.address(mode, number)).unwrap())
    }
}

fn read_request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            let line = line.to_lowercase();
            line.strip_prefix("content-length: ")?.trim().parse().ok()
        });
        if body.len() >= length.unwrap_or(0_usize) {
            return Some((head.to_owned(), body.to_owned()));
        }
    }
}

/// By the first part of the path.
fn answer(head: &str, body: &str) -> String {
    let mode = head.split('/').nth(1).unwrap_or_default();
    let told = head.replace("\r\n", " ");
    let refusal = |status: &str, why: &str| {
        let body = json!({ "error": { "message": why } }).to_string();
        let length = body.len();
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
    };
    let events = |lines: &[String]| {
        let lines: String = lines
            .iter()
            .map(|line| format!("data: {line}\n\n"))
            .collect();
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{lines}"
        )
    };
    let delta = |delta: serde_json::Value, end: Option<&str>| {
        json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": end }] }).to_string()
    };
    match mode {
        "refuses" => refusal("400 Bad Request", &told),
        "is-down" => refusal("503 Service Unavailable", &told),
        "forbids" => refusal("401 Unauthorized", &told),
        // So that the key is where a long message is cut.
        "rambles" => {
            let key = (0..COUNT)
                .map(planted)
                .find(|key| head.contains(key))
                .unwrap_or_default();
            refusal("400 Bad Request", &format!("{}{key}", "x".repeat(470)))
        }
        "breaks" => events(&[delta(json!({ "content": "I" }), None), format!("{{ {told}")]),
        _ if body.contains(r#""role":"tool""#) => events(&[
            delta(json!({ "content": "Done." }), Some("stop")),
            "[DONE]".to_owned(),
        ]),
        _ => {
            let calls = ["fetch", "push", "check", "post"].iter().enumerate().map(|(at, name)| {
                let function = json!({ "name": name, "arguments": r#"{"note": "x"}"# });
                json!({ "index": at, "id": format!("c{at}"), "type": "function", "function": function })
            });
            let calls: Vec<_> = calls.collect();
            let calls = delta(json!({ "tool_calls": calls }), Some("tool_calls"));
            events(&[calls, "[DONE]".to_owned()])
        }
    }
}

/// Tools that connect somewhere with a key, and are told it back.
fn tools(echo: &Echo) -> Vec<Tool> {
    let tool_at = |name: &str, mode: &str, number: usize| {
        let (url, key) = (format!("{}/{mode}", echo.url), secret(number));
        tool(name, "Connects.", move |_: Note, _| {
            let (url, key) = (url.clone(), key.clone());
            async move {
                let sent = reqwest::Client::new()
                    .get(&url)
                    .bearer_auth(key.expose())
                    .send();
                let response = sent.await?;
                let is_well = response.status().is_success();
                let said = key.scrub(&response.text().await?);
                match is_well {
                    true => Ok(said),
                    false => Err(ToolError::failed(said)),
                }
            }
        })
    };
    let looked = secret(17);
    let lookup = move |_: Note, _| {
        let looked = looked.clone();
        async move { Ok(Some(format!("there are {} bytes", looked.expose().len()))) }
    };
    vec![
        tool_at("fetch", "ok", 14).read(),
        tool_at("push", "refuses", 15).idempotent(),
        tool_at("check", "forbids", 16).keyed(),
        tool_at("post", "is-down", 17).reconcilable(lookup),
    ]
}

/// What the process does. All that it shows goes into the folder.
struct Process {
    dir: PathBuf,
    echo: Echo,
    errors: String,
    shown: String,
}

impl Process {
    fn note_error(&mut self, error: impl Display + Debug) {
        self.errors.push_str(&format!("{error} {error:?}\n"));
    }

    /// Models of every wire, over servers that do nothing but tell the key.
    async fn ask_hostile_models(&mut self) {
        let wires = [
            "openai",
            "openai_responses",
            "anthropic",
            "gemini",
            "openai",
        ];
        for (at, wire) in wires.iter().enumerate() {
            for (number, modes) in [
                (at, ["refuses", "rambles"]),
                (at + 5, ["is-down", "breaks"]),
            ] {
                for mode in modes {
                    let model = self.echo.remote(wire, mode, number);
                    self.shown.push_str(&format!("{model:?}\n"));
                    let asked = Request::new("model", vec![superstep_llm::Message::user("hi")]);
                    if let Err(error) = model.reply(&asked).await {
                        self.note_error(error);
                    }
                    let size = model.context_size().await;
                    self.shown.push_str(&format!("{size:?}\n"));
                }
            }
        }
        let name: ModelName = "openai:embed".parse().unwrap();
        let embedder = RemoteEmbedder::at(&name, self.echo.address("rambles", 10));
        let error = embedder.embed(&["hi".to_owned()]).await.unwrap_err();
        self.note_error(error);
        self.shown.push_str(&format!("{embedder:?}\n"));
    }

    /// A whole run: the first model is down, the second answers and is recorded, the tools connect.
    async fn run_agent(&mut self, prompt: &str) {
        let patience = Patience {
            tries: 2,
            first_wait: Duration::ZERO,
            ..Patience::default()
        };
        let model = Retrying::new(self.echo.remote("openai", "is-down", 11))
            .then(self.echo.remote("openai", "ok", 12))
            .patience(patience);
        let secrets = vec![secret(11), secret(12)];
        let recorder = Recorder::new(Arc::new(model), self.dir.join("cassette"), secrets).unwrap();
        self.run("asked", Arc::new(recorder), prompt).await;
        let script = json!({ "replies": [
            { "at": "model", "tool_calls": [{ "name": "fetch", "args": { "note": "x" } }] },
            { "at": "model", "text": "Done." }
        ] });
        let script = Script::parse("script", &script.to_string()).unwrap();
        let script = script.with_ledger(self.dir.join("ledger")).unwrap();
        self.run("scripted", Arc::new(script), prompt).await;
        self.record_a_model_that_tells().await;
        let broken = self.echo.remote("openai", "refuses", 18);
        self.run("broken", broken, prompt).await;
        let breaks = self.echo.remote("openai", "breaks", 19);
        self.run("breaks", breaks, prompt).await;
    }

    /// What a model says is a program's own to keep or not; a recording is for others to read.
    async fn record_a_model_that_tells(&self) {
        let text = format!("The key is {}.", planted(13));
        let script = json!({ "replies": [{ "at": "model", "text": text }] }).to_string();
        let script = Arc::new(Script::parse("tells", &script).unwrap());
        let file = self.dir.join("told-cassette");
        let recorder = Recorder::new(script, file, vec![secret(13)]).unwrap();
        let asked = Request::new("model", vec![superstep_llm::Message::user(planted(13))]);
        recorder.reply(&asked).await.unwrap();
    }

    async fn run(&mut self, name: &str, model: Arc<dyn Model>, prompt: &str) {
        let graph = Agent::builder(model)
            .tools(tools(&self.echo))
            .build()
            .unwrap();
        self.shown.push_str(&format!("{graph:?}\n"));
        let runtime = Runtime::new(Sqlite::open(self.dir.join("runs.db")).unwrap());
        let thread = runtime.thread(&graph, name).unwrap();
        match thread.start(AgentState::ask(prompt)).await {
            Ok(stopped) => self.shown.push_str(&format!("{stopped:?}\n")),
            Err(error) => self.note_error(error),
        }
        let trace = AgentTrace::from(thread.trace().await.unwrap());
        let json = serde_json::to_string(&trace).unwrap();
        self.shown.push_str(&format!("{trace}{json}\n"));
        let mut events = thread.events(Seq(0));
        while let Ok(Ok(event)) =
            tokio::time::timeout(Duration::from_millis(50), events.next()).await
        {
            self.shown.push_str(&format!("{event:?}\n"));
        }
        // Left open: the process ends with the newest pages in the log beside the file.
        std::mem::forget(runtime);
    }
}

struct LogLines(Mutex<std::fs::File>);

impl log::Log for LogLines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let mut file = self.0.lock().unwrap();
        writeln!(file, "{} {}", record.target(), record.args()).unwrap();
    }

    fn flush(&self) {}
}

/// The process, started by the tests below.
#[test]
fn a_process_with_secrets() {
    let Some(dir) = std::env::var_os("SUPERSTEP_SECRETS_IN") else {
        return;
    };
    let dir = PathBuf::from(dir);
    let ear = Ear::default();
    tracing::subscriber::set_global_default(ear.clone()).unwrap();
    let lines = std::fs::File::create(dir.join("log")).unwrap();
    log::set_boxed_logger(Box::new(LogLines(Mutex::new(lines)))).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let mut process = Process {
        echo: Echo::start(dir.join("bodies")),
        dir: dir.clone(),
        errors: String::new(),
        shown: String::new(),
    };
    let prompt = std::env::var("SUPERSTEP_PROMPT").unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        process.ask_hostile_models().await;
        process.run_agent(&prompt).await;
    });
    std::fs::write(dir.join("errors"), &process.errors).unwrap();
    std::fs::write(dir.join("shown"), &process.shown).unwrap();
    std::fs::write(dir.join("spans"), ear.text()).unwrap();
    let heads = process.echo.heads.lock().unwrap().clone();
    let unused: Vec<_> = (0..COUNT)
        .filter(|number| !heads.contains(&planted(*number)))
        .collect();
    // The one that a model tells is not sent to anybody.
    assert_eq!(unused, [13], "a secret that is not used is not tested");
    std::process::exit(0);
}

/// In which files which secrets are, or halves of them.
fn hits(dir: &Path, prompt: &str) -> BTreeSet<(String, usize)> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "secrets::a_process_with_secrets", "--nocapture"]);
    command
        .env("SUPERSTEP_SECRETS_IN", dir)
        .env("SUPERSTEP_PROMPT", prompt);
    let ran = command.output().unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    std::fs::write(dir.join("printed"), [ran.stdout, ran.stderr].concat()).unwrap();
    let mut hits = BTreeSet::new();
    for file in std::fs::read_dir(dir).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(path).unwrap();
        for number in 0..COUNT {
            let key = planted(number);
            let (start, end) = key.split_at(key.len() / 2);
            let is_in = |part: &str| bytes.windows(part.len()).any(|at| at == part.as_bytes());
            if is_in(start) || is_in(end) {
                hits.insert((name.clone(), number));
            }
        }
    }
    hits
}

const FILES: [&str; 9] = [
    "bodies",
    "cassette",
    "errors",
    "ledger",
    "runs.db",
    "runs.db-wal",
    "shown",
    "spans",
    "told-cassette",
];

#[test]
fn twenty_secrets_are_nowhere_but_in_their_connections() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(hits(dir.path(), "go"), BTreeSet::new());
    for file in FILES {
        let length = std::fs::metadata(dir.path().join(file)).unwrap().len();
        assert!(
            length > 100,
            "{file} has {length} bytes: nothing was looked at"
        );
    }
    let errors = std::fs::read_to_string(dir.path().join("errors")).unwrap();
    assert!(errors.matches("[secret]").count() >= 10, "{errors}");
}

#[test]
fn a_secret_in_a_prompt_is_found_everywhere_it_gets_to() {
    let dir = tempfile::tempdir().unwrap();
    let found = hits(dir.path(), &format!("my key is {}", planted(3)));
    let files: BTreeSet<_> = found.iter().map(|(file, _)| file.as_str()).collect();
    assert!(found.iter().all(|(_, number)| *number == 3), "{found:?}");
    for file in ["bodies", "ledger", "runs.db-wal", "shown"] {
        assert!(files.contains(file), "{files:?}");
    }
}
