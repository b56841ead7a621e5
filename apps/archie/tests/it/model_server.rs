//! A model server with the faults of real ones. It speaks OpenAI's chat, fills any form, and answers everything else with a
//! sentence.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value as Json, json};

/// What is wrong with the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Processes one request at a time, and says so.
    OneSlot,
    /// Pauses before each token.
    Slow(Duration),
    /// Breaks off each answer in the middle when it is asked for the first time.
    DiesInMidStream,
    /// Answers with prose where a form was asked for.
    IgnoresForms,
}

pub(crate) struct ModelServer {
    pub(crate) url: String,
    pub(crate) fault: Fault,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    now: usize,
    most: usize,
    /// How often each request came, by its body.
    requests: BTreeMap<String, usize>,
    /// How many answers were sent to the end.
    answers: usize,
}

impl ModelServer {
    pub(crate) fn start(fault: Fault) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Seen::default()));
        let shared = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let seen = shared.clone();
                // An error is a client that went away.
                std::thread::spawn(move || answer(stream, fault, &seen).ok());
            }
        });
        Self { url, fault, seen }
    }

    /// How many requests it had at once, at most.
    pub(crate) fn most_at_once(&self) -> usize {
        self.seen.lock().unwrap().most
    }

    /// How many answers it sent to the end.
    pub(crate) fn answers(&self) -> usize {
        self.seen.lock().unwrap().answers
    }
}

fn answer(mut stream: TcpStream, fault: Fault, seen: &Mutex<Seen>) -> std::io::Result<()> {
    let (path, body) = read_request(&stream)?;
    if !path.ends_with("/chat/completions") {
        let (status, told) = match (path.as_str(), fault) {
            ("/props", Fault::OneSlot) => ("200 OK", json!({ "total_slots": 1 })),
            ("/v1/models", _) => ("200 OK", json!({ "data": [{ "id": "m" }] })),
            _ => ("404 Not Found", json!({})),
        };
        let told = told.to_string();
        return write!(
            stream,
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{told}",
            told.len()
        );
    }
    let times = {
        let mut seen = seen.lock().unwrap();
        seen.now += 1;
        seen.most = seen.most.max(seen.now);
        let times = seen.requests.entry(body.clone()).or_default();
        *times += 1;
        *times
    };
    let sent = stream_answer(&mut stream, fault, &body, times);
    let mut seen = seen.lock().unwrap();
    seen.now -= 1;
    seen.answers += usize::from(matches!(sent, Ok(Sent::Whole)));
    sent.map(drop)
}

/// How much of an answer was sent.
#[derive(Debug, PartialEq, Eq)]
enum Sent {
    Whole,
    Half,
}

fn stream_answer(
    stream: &mut TcpStream,
    fault: Fault,
    body: &str,
    times: usize,
) -> std::io::Result<Sent> {
    let request: Json = serde_json::from_str(body).unwrap();
    let schema = &request["response_format"]["json_schema"]["schema"];
    let text = match schema {
        Json::Null => PROSE.to_owned(),
        _ if fault == Fault::IgnoresForms => PROSE.to_owned(),
        schema => filled(schema).to_string(),
    };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    )?;
    if fault == Fault::OneSlot {
        // Long enough for a second request to come meanwhile.
        std::thread::sleep(Duration::from_millis(50));
    }
    let (first, rest) = text.split_at(text.floor_char_boundary(text.len() / 2));
    for piece in [first, rest] {
        if let Fault::Slow(pause) = fault {
            std::thread::sleep(pause);
        }
        event(
            stream,
            &json!({ "index": 0, "delta": { "content": piece } }),
        )?;
        if fault == Fault::DiesInMidStream && times == 1 {
            return Ok(Sent::Half);
        }
    }
    event(
        stream,
        &json!({ "index": 0, "delta": {}, "finish_reason": "stop" }),
    )?;
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22 } });
    write!(stream, "data: {usage}\n\ndata: [DONE]\n\n")?;
    Ok(Sent::Whole)
}

fn event(stream: &mut TcpStream, choice: &Json) -> std::io::Result<()> {
    let event = json!({ "choices": [choice] });
    write!(stream, "data: {event}\n\n")?;
    stream.flush()
}

fn read_request(stream: &TcpStream) -> std::io::Result<(String, String)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let header = header.trim().to_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(told) = header.strip_prefix("content-length:") {
            length = told.trim().parse().unwrap_or_default();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((path, String::from_utf8_lossy(&body).into_owned()))
}

/// The shortest instance of a schema.
fn filled(schema: &Json) -> Json {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    let kind = match &schema["type"] {
        Json::Array(kinds) => kinds[0].as_str(),
        kind => kind.as_str(),
    };
    match kind {
        Some("object") => {
            let properties = schema["properties"].as_object();
            let fields = properties.into_iter().flatten();
            let filled = fields.map(|(name, inner)| (name.clone(), filled(inner)));
            Json::Object(filled.collect::<Map<_, _>>())
        }
        Some("array") => json!([filled(&schema["items"])]),
        Some("integer" | "number") => match &schema["minimum"] {
            Json::Null => json!(1),
            minimum => minimum.clone(),
        },
        Some("boolean") => json!(true),
        Some("null") => Json::Null,
        _ => json!("Orders arrive once a day."),
    }
}

const PROSE: &str = "There are ten thousand orders a day. Which of them matter most?";
