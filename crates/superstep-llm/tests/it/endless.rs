//! Servers that do not stop: every call ends with an error, soon, and takes little memory.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use superstep_llm::{Model, ModelError, ReplyLimits};

use crate::kit::ask;
use crate::server_kit::remote;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const MIB: usize = 1024 * 1024;

/// A server that sends `first`, and then `again` until the client goes away.
fn endless(first: String, again: String) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_request(&mut stream);
        let _ = stream.write_all(first.as_bytes());
        while stream.write_all(again.as_bytes()).is_ok() {}
    });
    url
}

fn read_request(stream: &mut TcpStream) {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) > 0 {
        seen.push(byte[0]);
    }
}

/// The most memory that this process has had, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<usize>().unwrap() * 1024
}

/// How a call to such a server ends: within 20 seconds and 64 MiB.
async fn end_of(provider: &str, first: String, again: String) -> ModelError {
    let url = endless(first, again);
    let model = remote(provider, "x", &url);
    let (before, begun) = (peak(), Instant::now());
    let request = ask("a", "hi");
    let reply = tokio::time::timeout(Duration::from_secs(20), model.reply(&request));
    let error = reply.await.expect("it ends").unwrap_err();
    // The kernel counts it per processor, so that it may also seem less.
    let grown = peak().saturating_sub(before);
    assert!(
        grown < 64 * MIB,
        "{} MiB more, after {:?}: {error}",
        grown / MIB,
        begun.elapsed()
    );
    error
}

fn assert_too_large(error: &ModelError, limit: &str) {
    assert_eq!(error.code(), "model-reply-too-large", "{error}");
    assert!(error.to_string().contains(limit), "{error}");
    assert!(!error.is_retryable());
}

fn text(bytes: usize) -> String {
    let text = "x".repeat(bytes);
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_without_end_is_cut_off() {
    let error = end_of("openai", OK.to_owned(), text(4_096)).await;
    assert_too_large(&error, "8388608 bytes of text");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_without_end_is_cut_off() {
    let first = format!("{OK}data: {{\"choices\":[{{\"delta\":{{\"content\":\"");
    let error = end_of("openai", first, "x".repeat(65_536)).await;
    assert_too_large(&error, "4194304 bytes in one event");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_without_end_of_ollamas_is_cut_off() {
    let first = OK.replace("text/event-stream", "application/x-ndjson");
    let error = end_of("ollama", first + "{\"a\":\"", "x".repeat(65_536)).await;
    assert_too_large(&error, "4194304 bytes in one event");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_lines_without_end_is_cut_off() {
    let error = end_of("anthropic", OK.to_owned(), "data: {}\n".repeat(4_096)).await;
    assert_too_large(&error, "4194304 bytes in one event");
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_without_end_are_cut_off() {
    let call = |id: &str, args: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,{id}\"function\":{{{args}}}}}]}}}}]}}\n\n"
        )
    };
    let first = format!("{OK}{}", call("\"id\":\"c1\",", "\"name\":\"add\""));
    let args = format!("\"arguments\":\"{}\"", "x".repeat(65_536));
    let error = end_of("openai", first, call("", &args)).await;
    assert_too_large(&error, "8388608 bytes of text");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_the_highest_index_makes_no_room_for_all_before_it() {
    let call = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":50000000,\"id\":\"c\",\"function\":{\"name\":\"add\",\"arguments\":\"{}\"}}]}}]}\n\n";
    let error = end_of("openai", format!("{OK}{call}"), text(1)).await;
    assert_too_large(&error, "1024 tool calls");
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_without_end_are_an_error() {
    let error = end_of(
        "openai",
        "HTTP/1.1 200 OK\r\n".to_owned(),
        "x-more: xxxxxxxxxxxxxxxxxxxxxxxx\r\n".repeat(64),
    )
    .await;
    assert_eq!(error.code(), "model-unreachable", "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_words_of_an_error_without_end_are_read_no_further_than_they_are_shown() {
    let first = OK.replace("200 OK", "503 Service Unavailable");
    let error = end_of("openai", first, "busy ".repeat(10_000)).await;
    assert_eq!(error.code(), "model-unavailable", "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_takes_too_long_is_cut_off_however_little_it_is() {
    // Comments are no events: nothing ever comes of them.
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_request(&mut stream);
        let _ = stream.write_all(OK.as_bytes());
        while stream.write_all(b": still here\n\n").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let limits = ReplyLimits {
        time_max: Duration::from_millis(500),
        ..ReplyLimits::default()
    };
    let model = remote("openai", "x", &url).limits(limits);
    let begun = Instant::now();
    let error = model.reply(&ask("a", "hi")).await.unwrap_err();
    assert_too_large(&error, "0.5 s");
    assert!(begun.elapsed() < Duration::from_secs(5));
}
