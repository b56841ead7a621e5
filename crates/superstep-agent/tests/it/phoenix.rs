//! A run that pauses, and whose process is killed, is one trace in a real Phoenix. Belongs to the long profile.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use superstep::prelude::*;
use superstep_agent::otlp::Otlp;
use superstep_agent::{Agent, AgentState, Approval, tool};
use superstep_conformance::services;
use superstep_llm::Script;
use superstep_sqlite::Sqlite;

use crate::kit::Note;

/// It looks and pays; then its process dies while the model is asked what to say.
const SCRIPT: &str = r#"{"price": {"input": 150, "output": 600}, "replies": [
    {"at": "model", "usage": {"input_tokens": 100, "output_tokens": 20}, "tool_calls": [
        {"id": "c1", "name": "look", "args": {"note": "rain"}},
        {"id": "c2", "name": "pay", "args": {"note": "7"}}]},
    {"at": "model", "kill": true},
    {"at": "model", "text": "Done.", "usage": {"input_tokens": 200, "output_tokens": 5}}
]}"#;

fn thread(dir: &Path) -> Thread<AgentState> {
    let model = Script::open(dir.join("script.json")).unwrap();
    let model = model.with_ledger(dir.join("ledger")).unwrap();
    let look = tool("look", "Looks.", |_: Note, _| async { Ok("seen") }).read();
    let pay = tool("pay", "Pays.", |_: Note, _| async { Ok("paid") })
        .keyed()
        .approved_by_a_person(Approval::always());
    let graph = Agent::builder(Arc::new(model))
        .name("shop")
        .tools([look, pay])
        .build()
        .unwrap();
    let runtime = Runtime::new(Sqlite::open(dir.join("shop.db")).unwrap());
    runtime.thread(&graph, "customer-7").unwrap()
}

/// What the other process does: this test, started by the one below.
#[tokio::test]
async fn a_process_that_is_killed() {
    let Some(dir) = std::env::var_os("SUPERSTEP_KILLED_IN") else {
        return;
    };
    let thread = thread(Path::new(&dir));
    match thread.state().await.unwrap() {
        None => drop(thread.start(AgentState::ask("go")).await.unwrap()),
        Some(_) => {
            let yes = json!({ "type": "accept" });
            thread.answer_only(yes).await.unwrap();
            panic!("it was not killed");
        }
    }
}

fn another_process(dir: &Path) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "phoenix::a_process_that_is_killed"]);
    let ran = command.env("SUPERSTEP_KILLED_IN", dir).output().unwrap();
    assert!(
        !String::from_utf8_lossy(&ran.stdout).contains("it was not killed"),
        "{ran:?}"
    );
    ran.status.success()
}

#[tokio::test]
async fn a_run_with_a_pause_and_a_kill_is_one_trace_in_phoenix() {
    if std::env::var_os("SUPERSTEP_LONG").is_none() {
        return;
    }
    let phoenix = services::url("phoenix");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("script.json"), SCRIPT).unwrap();
    let project = format!("test-{}", std::process::id());
    let otlp = Otlp::to(format!("{phoenix}/v1/traces")).project(&project);
    let otlp = otlp.build().unwrap();

    assert!(another_process(dir.path()), "the first one pauses and ends");
    let paused = thread(dir.path()).trace().await.unwrap();
    otlp.send(&paused).await.unwrap();
    assert!(!another_process(dir.path()), "the second one is killed");
    let thread = thread(dir.path());
    let done = thread.recover().await.unwrap();
    assert_eq!(done.state.answer(), "Done.");
    let trace = thread.trace().await.unwrap();
    let sent = otlp.send(&trace).await.unwrap();

    let spans = spans_of(&phoenix, &project, sent).await;
    assert_eq!(
        spans.len(),
        sent,
        "a span that was sent twice is there once"
    );
    let run = done.run.to_string();
    assert!(
        spans
            .iter()
            .all(|span| span["context"]["trace_id"] == run.as_str())
    );
    let tree = tree(&spans, None, 0).replace(&dir.path().display().to_string(), "DIR");
    insta::assert_snapshot!(tree, @r#"
    shop AGENT, customer-7
      superstep 1 CHAIN, customer-7
        model CHAIN, customer-7
          chat DIR/script.json LLM, customer-7 100+20 tokens, "DIR/script.json"
      superstep 2 CHAIN, customer-7
        tools CHAIN, customer-7
          execute_tool look TOOL, customer-7 "c1"
          execute_tool pay TOOL, customer-7 "c2"
        waits for a person CHAIN, customer-7
      superstep 3 CHAIN, customer-7
        model CHAIN, customer-7
          chat DIR/script.json LLM, customer-7 200+5 tokens, "DIR/script.json"
    "#);
}

/// Spans are shown a while after they were taken.
async fn spans_of(phoenix: &str, project: &str, count: usize) -> Vec<Json> {
    let url = format!("{phoenix}/v1/projects/{project}/spans?limit=100");
    let asked = Instant::now();
    loop {
        let told: Json = match reqwest::get(&url).await.unwrap().error_for_status() {
            Ok(told) => told.json().await.unwrap(),
            Err(_) => Json::Null,
        };
        let spans = told["data"].as_array().cloned().unwrap_or_default();
        if spans.len() >= count {
            return spans;
        }
        assert!(asked.elapsed() < Duration::from_secs(60), "{spans:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn tree(spans: &[Json], parent: Option<&str>, depth: usize) -> String {
    let mut inside: Vec<_> = (spans.iter())
        .filter(|span| span["parent_id"].as_str() == parent)
        .collect();
    inside.sort_by_key(|span| (span["start_time"].to_string(), span["name"].to_string()));
    let lines = inside.into_iter().map(|span| {
        let known = &span["attributes"];
        let tokens = ["prompt", "completion"]
            .map(|kind| &known[format!("llm.token_count.{kind}")])
            .map(|count| count.to_string());
        let told = match span["span_kind"].as_str() {
            Some("LLM") => format!(
                " {} tokens, {}",
                tokens.join("+"),
                known["gen_ai.request.model"]
            ),
            Some("TOOL") => format!(" {}", known["gen_ai.tool.call.id"]),
            _ => String::new(),
        };
        let thread = known["session.id"].as_str().unwrap_or("no thread");
        format!(
            "{:indent$}{} {}, {thread}{told}\n{}",
            "",
            span["name"].as_str().unwrap(),
            span["span_kind"].as_str().unwrap(),
            tree(spans, span["context"]["span_id"].as_str(), depth + 1),
            indent = depth * 2,
        )
    });
    lines.collect()
}
