//! What tests of models on servers share: a real server, and a server that says what it is told to.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use superstep_conformance::services;
use superstep_llm::{Address, ModelName, Remote, Secret};

/// The small real model, over this provider's wire.
pub(crate) fn real(provider: &str) -> Remote {
    remote(provider, SMALL, &services::url("model"))
}

pub(crate) fn remote(provider: &str, model: &str, url: &str) -> Remote {
    let name: ModelName = format!("{provider}:{model}").parse().unwrap();
    let address = Address {
        url: url.to_owned(),
        key: Some(Secret::new(KEY)),
    };
    Remote::at(&name, address).unwrap()
}

/// A server that answers each connection with the next of these, and keeps what it was sent.
pub(crate) struct Canned {
    pub(crate) url: String,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

pub(crate) fn canned(answers: Vec<String>) -> Canned {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            seen.lock().unwrap().push(read_request(&mut stream));
            // The client may have gone away, which is what some tests are about.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    Canned { url, asked }
}

fn read_request(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).unwrap_or(0);
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let length = text.lines().find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length: ")
                .map(|n| n.trim().parse::<usize>().unwrap())
        });
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.len());
        if read == 0 || body.is_some_and(|body| body >= length.unwrap_or(0)) {
            return text.into_owned();
        }
    }
}

pub(crate) fn refusal(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// A stream of events as OpenAI's chat sends them.
pub(crate) fn events(lines: &[&str]) -> String {
    let body: String = lines
        .iter()
        .map(|line| format!("data: {line}\n\n"))
        .collect();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}")
}

pub(crate) const SMALL: &str = "smollm2-135m";
pub(crate) const KEY: &str = "sk-planted-0123456789abcdef";
