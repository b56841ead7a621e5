//! What the runtime adds to a call of a model: the same answer of a local server, read with the bare `genai` client, with our
//! `Remote`, and by an agent that keeps everything in memory or in SQLite. The sides take turns; medians are told.
//!
//! `cargo run --release -p model-overhead [ROUNDS]`
//!
//! Prints a line of JSON for each comparison.

#![expect(clippy::print_stdout, reason = "a program that prints its figures")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::{ChatMessage as WireMessage, ChatOptions, ChatRequest};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};
use serde_json::json;
use superstep::prelude::*;
use superstep::run::StreamEventBody;
use superstep::{Event, Seq};
use superstep_agent::{Agent, AgentState};
use superstep_llm::{Address, Message, Model, ModelName, Remote, Request};
use superstep_sqlite::Sqlite;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let rounds = std::env::args()
        .nth(1)
        .map_or(Ok(300), |rounds| rounds.parse())?;
    let dir = tempfile::tempdir()?;
    for pieces in [1, PIECES] {
        let url = serve(pieces)?;
        let memory = Runtime::new(Memory::default());
        let sqlite = Runtime::new(Sqlite::open(dir.path().join(format!("{pieces}.db")))?);
        let graph = Agent::builder(remote(&url)?).build()?;
        let sides = [
            Side::Genai(client(&url)?),
            Side::Remote(remote(&url)?),
            Side::Runtime(memory, graph.clone()),
            Side::Runtime(sqlite, graph),
        ];
        let taken = take_turns(&sides, rounds).await?;
        tell(pieces, &taken);
    }
    Ok(())
}

enum Side {
    Genai((Client, ServiceTarget)),
    Remote(Arc<Remote>),
    /// With somebody who watches every token.
    Runtime(Runtime, Graph<AgentState>),
}

impl Side {
    async fn call(&self, round: usize) -> Result<usize, Failure> {
        match self {
            Self::Genai((client, target)) => ask_genai(client, target).await,
            Self::Remote(model) => {
                let request = Request::new("model", vec![Message::user(QUESTION)]);
                Ok(model.reply(&request).await?.text().len())
            }
            Self::Runtime(runtime, graph) => {
                let thread = runtime.thread(graph, format!("t{round}"))?;
                let mut events = thread.events(Seq(0));
                let watching = async {
                    loop {
                        if let Event::Logged(seen) = events.next().await?
                            && matches!(seen.what, StreamEventBody::Stopped(_))
                        {
                            return Ok::<_, Failure>(());
                        }
                    }
                };
                let run = async { Ok(thread.start(AgentState::ask(QUESTION)).await?) };
                let (stopped, ()) = tokio::try_join!(run, watching)?;
                Ok(stopped.state.answer().len())
            }
        }
    }
}

async fn ask_genai(client: &Client, target: &ServiceTarget) -> Result<usize, Failure> {
    let request = ChatRequest::new(vec![WireMessage::user(QUESTION)]);
    let options = ChatOptions::default()
        .with_capture_content(true)
        .with_capture_usage(true);
    let begun = client
        .exec_chat_stream(target.clone(), request, Some(&options))
        .await?;
    let mut stream = begun.stream;
    let mut bytes = 0;
    while let Some(event) = stream.next().await {
        if let genai::chat::ChatStreamEvent::Chunk(chunk) = event? {
            bytes += chunk.content.len();
        }
    }
    Ok(bytes)
}

/// How long each side took, in microseconds, round by round.
async fn take_turns(sides: &[Side], rounds: usize) -> Result<Vec<Vec<f64>>, Failure> {
    let mut taken = vec![Vec::new(); sides.len()];
    for round in 0..rounds + WARM_UP {
        for (side, taken) in sides.iter().zip(&mut taken) {
            let begun = Instant::now();
            let bytes = side.call(round).await?;
            let took = begun.elapsed().as_secs_f64() * 1e6;
            assert!(bytes >= 4, "no answer was read");
            if round >= WARM_UP {
                taken.push(took);
            }
        }
    }
    Ok(taken)
}

fn tell(pieces: usize, taken: &[Vec<f64>]) {
    let names = ["Remote", "agent, memory, watched", "agent, SQLite, watched"];
    for (at, name) in names.iter().enumerate() {
        for (against, theirs) in [("genai", &taken[0]), ("Remote", &taken[1])] {
            if *name == against {
                continue;
            }
            let ours = &taken[at + 1];
            // Of what was measured side by side, so that what slows both down is in neither.
            let added = median(
                ours.iter()
                    .zip(theirs)
                    .map(|(ours, theirs)| ours - theirs)
                    .collect(),
            );
            let (work, unit, added, limit) = match pieces {
                1 => ("a model call", "µs per call", added, 1_000.0),
                _ => (
                    "a streamed piece",
                    "µs per piece",
                    added / pieces as f64,
                    50.0,
                ),
            };
            let per = if pieces == 1 { 1.0 } else { pieces as f64 };
            let (ours, theirs) = (median(ours.clone()) / per, median(theirs.clone()) / per);
            let line = json!({
                "work": format!("{work}: {name}"),
                "unit": unit,
                "ours": rounded(ours),
                "against": against,
                "theirs": rounded(theirs),
                "ratio": rounded(ours / theirs),
                "added": rounded(added),
                "goal": format!("adds under {limit}"),
                "met": added < limit,
            });
            println!("{line}");
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn client(url: &str) -> Result<(Client, ServiceTarget), Failure> {
    let target = ServiceTarget {
        endpoint: Endpoint::from_owned(format!("{url}/")),
        auth: AuthData::from_single("none"),
        model: ModelIden::new(AdapterKind::OpenAI, "x"),
    };
    Ok((Client::new()?, target))
}

fn remote(url: &str) -> Result<Arc<Remote>, Failure> {
    let name: ModelName = "openai:x".parse()?;
    let address = Address {
        url: url.to_owned(),
        key: None,
    };
    Ok(Arc::new(Remote::at(&name, address)?))
}

/// A server that answers every request at once with so many pieces.
fn serve(pieces: usize) -> Result<String, Failure> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let url = format!("http://{}/v1", listener.local_addr()?);
    let piece = json!({ "choices": [{ "index": 0, "delta": { "content": "word" } }] });
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 10, "completion_tokens": pieces } });
    let body = format!("data: {piece}\n\n").repeat(pieces);
    let body = format!("{body}data: {end}\n\ndata: [DONE]\n\n");
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream";
    let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || answer_all(stream, &answer));
        }
    });
    Ok(url)
}

fn answer_all(mut stream: TcpStream, answer: &str) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&buffer[..read]);
        // The question is the end of the only message of every request.
        let asked = bytes
            .windows(QUESTION.len())
            .any(|at| at == QUESTION.as_bytes());
        if asked && bytes.ends_with(b"}") {
            bytes.clear();
            stream.write_all(answer.as_bytes())?;
        }
    }
}

const QUESTION: &str = "How are you, really?";
const PIECES: usize = 1_000;
const WARM_UP: usize = 20;
