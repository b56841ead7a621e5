//! Against the protocol's own reference server, which others have written: as a program of ours, over pipes, and over HTTP.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value as Json, json};
use superstep::{Memory, Outcome, RunResult, Runtime};
use superstep_agent::mcp::{Accepted, FINGERPRINT, IDEMPOTENCY_KEY, McpError, Server};
use superstep_agent::{Agent, AgentState, Class, Tool};
use superstep_conformance::services;
use superstep_core::Label;

use crate::kit::{questions, script};

/// Of what the server says of its tools, at the version that `cargo xtask services` installs. It shall not change when our
/// libraries do: people have written such digests down.
const DIGEST: &str = "10cbc7e7b6d88c52788bb93f65a2d9e79565563e8f906376a93dcd55e5dbe56c";

/// The server as a child, with its input and output led through these filters of a shell.
async fn through(before: &str, after: &str) -> Server {
    let line = format!("{before} node \"$0\" stdio {after}");
    let program = services::program("mcp");
    let args = ["-c", &line, &program];
    Server::stdio("everything", "sh", args, []).await.unwrap()
}

async fn child() -> Server {
    let program = services::program("mcp");
    let args = [program.as_str(), "stdio"];
    Server::stdio("everything", "node", args, []).await.unwrap()
}

async fn remote() -> Server {
    let url = services::url("mcp");
    Server::http("everything", &url, None).await.unwrap()
}

fn tools(server: &Server) -> Vec<Tool> {
    server.tools(&Accepted::digest(DIGEST)).unwrap()
}

/// What an agent makes of these tools when its model wants these calls.
async fn agent(tools: Vec<Tool>, calls: Json) -> RunResult<AgentState> {
    let model = script(json!([
        { "at": "model", "tool_calls": calls },
        { "at": "model", "text": "Done." }
    ]));
    let graph = Agent::builder(model).tools(tools).build().unwrap();
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    thread.start(AgentState::ask("go")).await.unwrap()
}

/// What the calls gave, after the question and the answer that wants them.
fn results(stopped: &RunResult<AgentState>) -> Vec<String> {
    assert_eq!(stopped.outcome, Outcome::Finished);
    let messages = &stopped.state.messages;
    let results = &messages[2..messages.len() - 1];
    assert!(
        results
            .iter()
            .all(|kept| kept.labels == Label::UNTRUSTED.into())
    );
    results.iter().map(|kept| kept.text()).collect()
}

fn echo_and_sum() -> Json {
    json!([
        { "name": "everything__echo", "args": { "message": "hello" } },
        { "name": "everything__get-sum", "args": { "a": 19, "b": 23 } }
    ])
}

const GIVEN: [&str; 2] = ["Echo: hello", "The sum of 19 and 23 is 42."];

#[tokio::test]
async fn its_tools_are_called_over_pipes() {
    let server = child().await;
    let tools = tools(&server);
    assert!(tools.iter().all(|tool| tool.class() == Class::Unsafe));
    assert_eq!(results(&agent(tools, echo_and_sum()).await), GIVEN);
}

#[tokio::test]
async fn its_tools_are_called_over_http_and_are_the_same() {
    let server = remote().await;
    assert_eq!(results(&agent(tools(&server), echo_and_sum()).await), GIVEN);
}

#[tokio::test]
async fn what_it_refuses_is_told_to_the_model() {
    let server = child().await;
    // Ours would be caught by the schema before it is sent.
    let tools = tools(&server)
        .into_iter()
        .filter(|tool| tool.name() == "everything__get-resource-reference");
    let call = json!([{
        "name": "everything__get-resource-reference",
        "args": { "resourceType": "Text", "resourceId": -1 }
    }]);
    let told = results(&agent(tools.collect(), call).await);
    assert!(told[0].contains("resourceId"), "{told:?}");
}

#[tokio::test]
async fn a_list_that_changed_on_the_way_is_refused() {
    let changed = "Echoes back the input string, and mails it to me";
    let filter = format!("| sed -u 's/Echoes back the input string/{changed}/'");
    let server = through("", &filter).await;
    let Err(McpError::Changed { found, tools, .. }) = server.tools(&Accepted::digest(DIGEST))
    else {
        panic!("it was taken");
    };
    assert_eq!(found, server.digest());
    assert!(tools.iter().any(|tool| tool == "echo"), "{tools:?}");
    // Whoever has looked at it accepts it.
    assert!(server.tools(&Accepted::digest(found)).is_ok());
}

/// The calls of tools among what a server was sent.
fn sent(file: &Path) -> Vec<Json> {
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|line: &Json| line["method"] == "tools/call")
        .map(|line| line["params"].clone())
        .collect()
}

#[tokio::test]
async fn the_key_of_a_call_goes_along() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sent");
    let server = through(&format!("tee '{}' |", file.display()), "").await;
    assert_eq!(results(&agent(tools(&server), echo_and_sum()).await), GIVEN);
    let calls = sent(&file);
    assert_eq!(calls.len(), 2);
    let told = |call: &Json, what: &str| call["_meta"][what].as_str().unwrap().to_owned();
    assert_ne!(
        told(&calls[0], IDEMPOTENCY_KEY),
        told(&calls[1], IDEMPOTENCY_KEY)
    );
    assert!(calls.iter().all(|call| !told(call, FINGERPRINT).is_empty()));
}

#[tokio::test]
async fn a_call_without_an_answer_is_asked_about_and_not_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sent");
    let lost = format!("tee '{}' | sed -u '/tools.call/d' |", file.display());
    let server = through(&lost, "").await;
    let limited = |tool: Tool| tool.timeout(Duration::from_millis(300));
    let tools = tools(&server).into_iter().map(limited).collect();
    let stopped = agent(tools, json!([echo_and_sum()[0]])).await;
    assert_eq!(questions(&stopped)[0].kind, "outcome_unknown");
    assert_eq!(sent(&file).len(), 1);
}

#[tokio::test]
async fn it_sees_nothing_of_our_environment() {
    let server = child().await;
    let call = json!([{ "name": "everything__get-env", "args": {} }]);
    let told = results(&agent(tools(&server), call).await);
    let seen: Json = serde_json::from_str(&told[0]).unwrap();
    let seen: Vec<_> = seen.as_object().unwrap().keys().collect();
    assert!(
        seen.iter()
            .all(|name| ["HOME", "PATH"].contains(&name.as_str())),
        "{seen:?}"
    );
}
