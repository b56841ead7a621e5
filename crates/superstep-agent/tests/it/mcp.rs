//! Against the protocol's own reference server, which others have written: as a program of ours, over pipes, and over HTTP.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value as Json, json};
use superstep::{Event, Memory, Outcome, RunResult, Runtime, Thread};
use superstep_agent::mcp::{
    Accepted, FINGERPRINT, IDEMPOTENCY_KEY, McpError, Server, ServerLimits,
};
use superstep_agent::{Agent, AgentEvent, AgentState, Class, Tool};
use superstep_conformance::services;
use superstep_core::Label;

use crate::kit::{questions, request, script};

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

/// A thread of an agent with these tools, whose model wants these calls.
fn thread(tools: Vec<Tool>, calls: Json) -> Thread<AgentState> {
    let model = script(json!([
        { "at": "model", "tool_calls": calls },
        { "at": "model", "text": "Done." }
    ]));
    let graph = Agent::builder(model).tools(tools).build().unwrap();
    Runtime::new(Memory::default()).thread(&graph, "t").unwrap()
}

/// What an agent makes of these tools when its model wants these calls.
async fn agent(tools: Vec<Tool>, calls: Json) -> RunResult<AgentState> {
    let thread = thread(tools, calls);
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

/// Kills the process whose id is in the file.
fn kill(file: &Path) -> String {
    let id = std::fs::read_to_string(file).unwrap();
    let killed = Command::new("kill").args(["-9", id.trim()]).status();
    assert!(killed.unwrap().success());
    id
}

/// The server as a child that writes its process id to the file.
async fn mortal(file: &Path) -> Server {
    let line = format!("echo $$ > '{}'; exec node \"$0\" stdio", file.display());
    let program = services::program("mcp");
    let args = ["-c", &line, &program];
    Server::stdio("everything", "sh", args, []).await.unwrap()
}

#[tokio::test]
async fn a_killed_child_is_started_again_by_the_next_call() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("id");
    let server = mortal(&file).await;
    assert_eq!(results(&agent(tools(&server), echo_and_sum()).await), GIVEN);
    let first = kill(&file);
    // The pipe needs a moment to close. A call before that would be unknown.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(results(&agent(tools(&server), echo_and_sum()).await), GIVEN);
    assert_ne!(std::fs::read_to_string(&file).unwrap(), first);
}

fn long_operation() -> Json {
    let args = json!({ "duration": 2, "steps": 4 });
    json!([{ "name": "everything__trigger-long-running-operation", "args": args }])
}

#[tokio::test]
async fn a_call_under_way_when_the_child_is_killed_is_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("id");
    let server = mortal(&file).await;
    let killed = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        kill(&file)
    };
    let (stopped, first) = tokio::join!(agent(tools(&server), long_operation()), killed);
    assert_eq!(questions(&stopped)[0].kind, "outcome_unknown");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), first);
}

#[tokio::test]
async fn the_progress_of_a_call_is_shown() {
    let server = child().await;
    let thread = thread(tools(&server), long_operation());
    let mut run = thread.stream(AgentState::ask("go"));
    let mut seen = Vec::new();
    while let Some(event) = run.next().await {
        if let Event::Live(live) = event.unwrap()
            && let Some(AgentEvent::ToolProgress {
                progress, total, ..
            }) = AgentEvent::of(&live)
        {
            seen.push((progress, total));
        }
    }
    // The last one may come with the result.
    assert!(
        seen.starts_with(&[(1.0, Some(4.0)), (2.0, Some(4.0)), (3.0, Some(4.0))]),
        "{seen:?}"
    );
}

/// A server of our own over HTTP, killed when dropped.
struct HttpServer(Child);

impl HttpServer {
    async fn start(port: u16) -> Self {
        let child = Command::new("node")
            .args([services::program("mcp").as_str(), "streamableHttp"])
            .env("PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        for _ in 0..200 {
            if tokio::net::TcpStream::connect(("127.0.0.1", port))
                .await
                .is_ok()
            {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Self(child)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Starts a server and connects to it. Returns its port, too, on which another one can take its place.
async fn connected_over_http() -> (HttpServer, u16, Server) {
    let port = TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let remote = HttpServer::start(port).await;
    let url = format!("http://127.0.0.1:{port}/mcp");
    let server = Server::http("everything", &url, None).await.unwrap();
    (remote, port, server)
}

#[tokio::test]
async fn a_server_over_http_that_was_restarted_gets_the_call_in_a_new_session() {
    let (remote, port, server) = connected_over_http().await;
    assert_eq!(results(&agent(tools(&server), echo_and_sum()).await), GIVEN);
    drop(remote);
    // Nothing listens: the calls were not sent, and nothing needs to be asked.
    let refused = results(&agent(tools(&server), echo_and_sum()).await);
    assert!(refused[0].contains("was not reached"), "{refused:?}");
    let _again = HttpServer::start(port).await;
    assert_eq!(results(&agent(tools(&server), echo_and_sum()).await), GIVEN);
}

#[tokio::test]
async fn a_session_that_is_unknown_after_a_restart_is_replaced() {
    let (remote, port, server) = connected_over_http().await;
    drop(remote);
    let _again = HttpServer::start(port).await;
    assert_eq!(results(&agent(tools(&server), echo_and_sum()).await), GIVEN);
}

#[tokio::test]
async fn resources_are_read_again_after_a_restart_over_http() {
    let (remote, port, server) = connected_over_http().await;
    drop(remote);
    let again = HttpServer::start(port).await;
    // Only a request that fails shows that the session is gone.
    let lost = server.resources().await.unwrap_err();
    assert_eq!(lost.code(), "mcp-unreachable", "{lost}");
    assert!(!server.resources().await.unwrap().is_empty());
    // A tool that only reads repeats the request by itself.
    drop(again);
    let _last = HttpServer::start(port).await;
    let call = json!([{ "name": "everything__list_resources", "args": {} }]);
    let given = results(&agent(server.resource_tools(), call).await);
    assert!(given[0].contains("features.md"), "{given:?}");
}

#[tokio::test]
async fn its_questions_are_interrupts() {
    let program = services::program("mcp");
    let limits = ServerLimits {
        questions_max: 1,
        ..ServerLimits::default()
    };
    let args = [program.as_str(), "stdio"];
    let server = Server::stdio_within(&limits, "everything", "node", args, [])
        .await
        .unwrap();
    // It offers more tools to clients that can be asked.
    assert_ne!(server.digest(), DIGEST);
    let tools = server.tools(&Accepted::Anything).unwrap();
    let call = json!([{ "name": "everything__trigger-elicitation-request", "args": {} }]);
    let thread = thread(tools, call);
    let stopped = thread.start(AgentState::ask("go")).await.unwrap();
    let question = &questions(&stopped)[0];
    assert_eq!(question.kind, "elicitation");
    let asked = request(question);
    assert_eq!(asked["server"], "everything");
    // This server calls a cancelled question a result.
    assert!(
        asked["result"].as_str().unwrap().contains("cancelled"),
        "{asked}"
    );
    let answer = json!({ "type": "response", "args": { "name": "Ada", "integer": 7 } });
    let stopped = thread.answer(question.id, answer).await.unwrap().unwrap();
    let given = results(&stopped);
    assert!(given[0].contains("- Name: Ada"), "{given:?}");
    assert!(given[0].contains("- Favorite Integer: 7"), "{given:?}");
}

#[tokio::test]
async fn its_resources_and_prompts_are_read_and_untrusted() {
    let server = child().await;
    let resources = server.resources().await.unwrap();
    let found = resources
        .iter()
        .find(|resource| resource.name == "features.md");
    let found = found.unwrap_or_else(|| panic!("{resources:?}"));
    assert_eq!(found.mime_type.as_deref(), Some("text/markdown"));
    let read = server.read_resource(&found.uri).await.unwrap();
    let (content, labels) = read.parts();
    assert_eq!(*labels, Label::UNTRUSTED.into());
    assert!(content.text().contains("Features"), "{}", content.text());
    let missing = server.read_resource("demo://nothing").await.unwrap_err();
    assert_eq!(missing.code(), "mcp-refused", "{missing}");

    let prompts = server.prompts().await.unwrap();
    let prompt = prompts
        .iter()
        .find(|prompt| prompt.name == "args-prompt")
        .unwrap();
    assert!(prompt.arguments[0].is_required && !prompt.arguments[1].is_required);
    let messages = server
        .prompt("args-prompt", [("city", "Bergen")])
        .await
        .unwrap();
    assert_eq!(messages[0].text(), "What's weather in Bergen?");
    assert_eq!(messages[0].labels, Label::UNTRUSTED.into());
    assert_eq!(
        server.prompt("args-prompt", []).await.unwrap_err().code(),
        "mcp-refused"
    );

    // The same for an agent.
    let tools = server.resource_tools();
    assert!(tools.iter().all(|tool| tool.class() == Class::Read));
    let given = results(
        &agent(
            tools,
            json!([
                { "name": "everything__list_resources", "args": {} },
                { "name": "everything__read_resource", "args": { "uri": found.uri } }
            ]),
        )
        .await,
    );
    assert!(given[0].contains(&found.uri), "{given:?}");
    assert_eq!(given[1], content.text());
}
