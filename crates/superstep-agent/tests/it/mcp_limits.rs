//! MCP servers over HTTP that do not stop: connecting and calling end with an error, soon, and take little memory.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use superstep::{Memory, Outcome, RunResult, Runtime};
use superstep_agent::mcp::{Accepted, McpError, Server, ServerLimits};
use superstep_agent::{Agent, AgentState};

use crate::kit::{questions, request, script};

const MIB: usize = 1024 * 1024;

/// What a server sends for a message.
enum Sent {
    Json(Json),
    /// This status, type and beginning, and then the last text until the client goes away.
    Endless(&'static str, &'static str, String, String),
    /// Says that this many bytes follow, and sends none.
    Announced(usize),
    /// An error of the protocol, with status 400. With the id of the request it is the answer to it.
    Refused(Refusal),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Refusal {
    WithId,
    WithoutId,
}

/// A server that answers each message as the function says. `listed` is how many pages of tools were asked for before.
fn server(answer: impl Fn(&str, usize) -> Sent + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut listed = 0;
        for stream in listener.incoming() {
            let Some((mut stream, message)) = read_message(stream.unwrap()) else {
                continue;
            };
            let method = message["method"].as_str().unwrap_or_default();
            let Some(id) = message.get("id") else {
                let _ = stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n");
                continue;
            };
            let sent = answer(method, listed);
            listed += usize::from(method == "tools/list");
            write_answer(stream, id, sent);
        }
    });
    url
}

/// Reads a message that was posted. Whoever wants to listen instead is refused.
fn read_message(stream: TcpStream) -> Option<(TcpStream, Json)> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(given) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = given.trim().parse().unwrap();
        }
        if first.is_empty() {
            first.clone_from(&line);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut stream = reader.into_inner();
    if !first.starts_with("POST") {
        let _ = stream.write_all(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n");
        return None;
    }
    Some((stream, serde_json::from_slice(&body).unwrap()))
}

fn write_answer(mut stream: TcpStream, id: &Json, sent: Sent) {
    let head = |status: &str, kind: &str, length: &str| {
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nmcp-session-id: s\r\n{length}connection: close\r\n\r\n"
        )
    };
    let mut whole = |status: &str, body: &Json| {
        let body = body.to_string();
        let length = format!("content-length: {}\r\n", body.len());
        let head = head(status, "application/json", &length);
        let _ = stream.write_all(format!("{head}{body}").as_bytes());
    };
    match sent {
        Sent::Json(result) => whole(
            "200 OK",
            &json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        ),
        Sent::Refused(refusal) => {
            let error = json!({ "code": -32_000, "message": "out of paper" });
            let id = match refusal {
                Refusal::WithId => id,
                Refusal::WithoutId => &Json::Null,
            };
            whole(
                "400 Bad Request",
                &json!({ "jsonrpc": "2.0", "id": id, "error": error }),
            );
        }
        Sent::Announced(bytes) => {
            let length = format!("content-length: {bytes}\r\n");
            let _ = stream.write_all(head("200 OK", "application/json", &length).as_bytes());
            // Until the client goes away.
            let _ = stream.read(&mut [0]);
        }
        Sent::Endless(status, kind, first, again) => {
            // Other messages are answered meanwhile.
            std::thread::spawn(move || {
                let _ = stream.write_all(format!("{}{first}", head(status, kind, "")).as_bytes());
                while stream.write_all(again.as_bytes()).is_ok() {}
            });
        }
    }
}

fn endless_json() -> Sent {
    let first = "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":\"".to_owned();
    Sent::Endless("200 OK", "application/json", first, "x".repeat(65_536))
}

fn greeting() -> Sent {
    Sent::Json(json!({
        "protocolVersion": "2025-06-18",
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "endless", "version": "1" },
    }))
}

fn tool(name: &str, description: &str) -> Json {
    json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
}

/// The most memory that this process has had, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<usize>().unwrap() * 1024
}

/// Does something within 20 seconds and 96 MiB.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    let (before, begun) = (peak(), Instant::now());
    let done = tokio::time::timeout(Duration::from_secs(20), work);
    let done = done.await.expect("it ends");
    // The kernel counts it per processor, so that it may also seem less.
    let grown = peak().saturating_sub(before);
    assert!(
        grown < 96 * MIB,
        "{} MiB more, after {:?}",
        grown / MIB,
        begun.elapsed()
    );
    done
}

async fn refused(url: &str) -> McpError {
    soon(Server::http("endless", url, None)).await.unwrap_err()
}

fn assert_too_large(error: &McpError) {
    assert_eq!(error.code(), "mcp-answer-too-large", "{error}");
    let text = error.to_string();
    assert!(text.contains("more than 16777216 bytes"), "{text}");
    assert!(text.contains("ServerLimits::answer_bytes_max"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_json_answer_without_end_is_cut_off() {
    assert_too_large(&refused(&server(|_, _| endless_json())).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_announced_as_too_large_is_not_waited_for() {
    assert_too_large(&refused(&server(|_, _| Sent::Announced(16 * MIB + 1))).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_without_end_is_cut_off() {
    let url = server(|_, _| {
        let again = "data: x\n".repeat(8_192);
        Sent::Endless("200 OK", "text/event-stream", String::new(), again)
    });
    assert_too_large(&refused(&url).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_without_end_is_read_only_at_its_beginning() {
    for status in ["400 Bad Request", "401 Unauthorized", "500 Oops"] {
        for kind in ["application/json", "text/html"] {
            let url = server(move |_, _| {
                Sent::Endless(status, kind, "{\"".to_owned(), "x".repeat(65_536))
            });
            let error = refused(&url).await;
            assert_eq!(error.code(), "mcp-unreachable");
            let text = error.to_string();
            assert!(text.contains(&status[..3]) && text.len() < 1_000, "{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_tools_without_end_is_cut_off() {
    let url = server(|method, listed| match method {
        "tools/list" => {
            let page = tool(&format!("t{listed}"), &"x".repeat(MIB));
            Sent::Json(json!({ "tools": [page], "nextCursor": format!("{listed}") }))
        }
        _ => greeting(),
    });
    assert_too_large(&refused(&url).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_pages_without_end_take_no_longer_than_connecting_may() {
    let url = server(|method, listed| match method {
        "tools/list" => Sent::Json(json!({ "tools": [], "nextCursor": format!("{listed}") })),
        _ => greeting(),
    });
    let limits = ServerLimits {
        connect_time_max: Duration::from_secs(1),
        ..ServerLimits::default()
    };
    let connected = soon(Server::http_within(&limits, "endless", &url, None)).await;
    let text = connected.unwrap_err().to_string();
    assert!(text.contains("not ready after 1 s"), "{text}");
    assert!(text.contains("ServerLimits::connect_time_max"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_is_that_of_the_whole_answer() {
    let url = server(|method, _| match method {
        "tools/list" => Sent::Json(json!({ "tools": [tool("t", &"x".repeat(2_000))] })),
        _ => greeting(),
    });
    let within = async |answer_bytes_max| {
        let limits = ServerLimits {
            answer_bytes_max,
            ..ServerLimits::default()
        };
        Server::http_within(&limits, "small", &url, None).await
    };
    assert!(within(2_500).await.is_ok());
    let error = within(2_000).await.unwrap_err();
    assert_eq!(error.code(), "mcp-answer-too-large", "{error}");
}

/// What an agent makes of a server's tools when its model calls one of them.
async fn call(server: &Server, tool: &str) -> RunResult<AgentState> {
    let model = script(json!([
        { "at": "model", "tool_calls": [{ "name": tool, "args": {} }] },
        { "at": "model", "text": "Done." }
    ]));
    let tools = server.tools(&Accepted::Anything).unwrap();
    let graph = Agent::builder(model).tools(tools).build().unwrap();
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    thread.start(AgentState::ask("go")).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_an_answer_without_end_is_asked_about_and_the_server_stays_connected() {
    let url = server(|method, _| match method {
        "tools/list" => Sent::Json(json!({ "tools": [tool("t", "Does it.")] })),
        "tools/call" => endless_json(),
        _ => greeting(),
    });
    let server = Server::http("endless", &url, None).await.unwrap();
    for _ in 0..2 {
        let stopped = soon(call(&server, "endless__t")).await;
        let question = &questions(&stopped)[0];
        // The tool may have done its work.
        assert_eq!(question.kind, "outcome_unknown");
        let text = request(question).to_string();
        assert!(text.contains("ServerLimits::answer_bytes_max"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_a_method_is_not_taken_for_an_expired_session() {
    for refusal in [Refusal::WithId, Refusal::WithoutId] {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let url = server(move |method, _| match method {
            "tools/list" => Sent::Json(json!({ "tools": [tool("t", "Does it.")] })),
            "tools/call" if counted.fetch_add(1, Ordering::SeqCst) == 0 => Sent::Refused(refusal),
            "tools/call" => Sent::Json(json!({ "content": [] })),
            _ => greeting(),
        });
        let server = Server::http("paper", &url, None).await.unwrap();
        let stopped = soon(call(&server, "paper__t")).await;
        let made = calls.load(Ordering::SeqCst);
        match refusal {
            // The method may have acted before it failed.
            Refusal::WithId => {
                assert_eq!(questions(&stopped)[0].kind, "outcome_unknown");
                assert_eq!(made, 1, "the call was repeated");
            }
            // The server did not know the session, so no method acted.
            Refusal::WithoutId => {
                assert_eq!(stopped.outcome, Outcome::Finished);
                assert_eq!(made, 2);
            }
        }
    }
}
