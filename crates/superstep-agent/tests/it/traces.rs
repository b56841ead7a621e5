//! Calls of models and tools in the thread's trace, and as live spans.

use std::sync::Arc;

use insta::assert_snapshot;
use serde_json::{Value as Json, json};
use superstep::checkpoint::Checkpointer;
use superstep::checkpoint::format::Change;
use superstep::prelude::*;
use superstep::trace::{CallSpan, Span, SpanId, SpanKind, Trace};
use superstep::{Seq, Timestamp};
use superstep_agent::trace::{AgentTrace, MODEL, TOOL, fields};
use superstep_agent::{Agent, AgentState, RecordedReply, tool};
use superstep_core::store::MemoryStore;
use superstep_llm::Script;

use crate::kit::Note;
use crate::mortal::{Fate, Mortal};
use crate::shop::{graph, model};

/// The tree without the times, which are those of the clock on the wall.
fn shape(trace: &AgentTrace) -> String {
    fn line(span: &Span, depth: usize, drawn: &mut String) {
        let known: Vec<_> = (span.fields.iter())
            .filter(|(name, _)| name.starts_with("gen_ai.") || name.starts_with("superstep.tool"))
            .filter(|(name, _)| *name != fields::CONVERSATION)
            .map(|(name, value)| format!(" {name}={value}"))
            .collect();
        let indent = "  ".repeat(depth);
        drawn.push_str(&format!("{indent}{}{}\n", span.name, known.concat()));
        for inner in &span.inner {
            line(inner, depth + 1, drawn);
        }
    }
    let mut drawn = String::new();
    let runs = &trace.as_trace().runs;
    runs.iter().for_each(|run| line(run, 0, &mut drawn));
    drawn
}

fn calls(spans: &[Span]) -> Vec<&Span> {
    let mut found = Vec::new();
    for span in spans {
        if matches!(span.kind, SpanKind::Call(_)) {
            found.push(span);
        }
        found.extend(calls(&span.inner));
    }
    found
}

#[tokio::test]
async fn calls_are_in_the_trace_with_tokens_costs_and_classes() {
    let graph = graph(model());
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    thread.start(AgentState::ask("go")).await.unwrap();
    thread
        .answer_only(json!({ "type": "accept" }))
        .await
        .unwrap();
    let trace = AgentTrace::from(thread.trace().await.unwrap());
    assert_snapshot!(shape(&trace), @r#"
    shop gen_ai.operation.name="invoke_agent"
      superstep 1
        model
          chat shop gen_ai.operation.name="chat" gen_ai.provider.name="script" gen_ai.request.model="shop" gen_ai.response.finish_reasons=["tool_calls"] gen_ai.response.model="shop" gen_ai.usage.input_tokens=100 gen_ai.usage.output_tokens=20
      superstep 2
        tools
          execute_tool look gen_ai.operation.name="execute_tool" gen_ai.tool.call.id="c1" gen_ai.tool.name="look" superstep.tool.class="read"
          execute_tool pay gen_ai.operation.name="execute_tool" gen_ai.tool.call.id="c2" gen_ai.tool.name="pay" superstep.tool.class="keyed"
          execute_tool shout gen_ai.operation.name="execute_tool" gen_ai.tool.call.id="c3" gen_ai.tool.name="shout" superstep.tool.class="idempotent"
        waits for a person
      superstep 3
        model
          chat shop gen_ai.operation.name="chat" gen_ai.provider.name="script" gen_ai.request.model="shop" gen_ai.response.finish_reasons=["stop"] gen_ai.response.model="shop" gen_ai.usage.input_tokens=200 gen_ai.usage.output_tokens=5
    "#);
    let calls = calls(&trace.as_trace().runs);
    let costs: Vec<_> = calls
        .iter()
        .filter_map(|call| call.fields.get(fields::COST))
        .collect();
    assert_eq!(costs, [&json!(27_000), &json!(33_000)]);
    let errors: Vec<_> = calls
        .iter()
        .filter_map(|call| call.error.as_deref())
        .collect();
    assert_eq!(errors, ["the line is busy"]);
}

#[tokio::test]
async fn the_log_keeps_the_reply_of_a_call_and_the_trace_does_not_show_it() {
    let graph = graph(model());
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    thread.start(AgentState::ask("go")).await.unwrap();
    let entries = thread.history(Seq(0), 100).await.unwrap();
    let changes = entries.iter().flat_map(|past| &past.entry.changes);
    let writes = changes.filter_map(|change| match change {
        Change::FrameAdvanced(advanced) => Some(&advanced.writes),
        _ => None,
    });
    let events = writes.flatten().flat_map(|write| &write.events);
    let calls = events.filter_map(|event| event.decode::<CallSpan>().ok());
    let results = calls.filter(|call| call.span == MODEL);
    let replies: Vec<RecordedReply> = results
        .map(|call| serde_json::from_value(call.result.unwrap()).unwrap())
        .collect();
    let [recorded] = &replies[..] else {
        panic!("one call was made: {replies:?}");
    };
    assert_eq!(recorded.label, "model");
    assert_eq!(recorded.model.to_string(), "script:shop");
    assert_eq!(recorded.reply.usage.unwrap().output_tokens, 20);
    assert_eq!(recorded.reply.answer.tool_calls.len(), 3);
    let trace = serde_json::to_string(&thread.trace().await.unwrap()).unwrap();
    assert!(
        trace.contains("chat shop") && !trace.contains("rain"),
        "{trace}"
    );
}

/// Calls that earlier versions stored are read, and written in the same bytes.
#[test]
fn the_stored_form_of_a_call_does_not_change() {
    for (kind, word) in [(MODEL, "model"), (TOOL, "tool")] {
        let stored = format!(
            r#"{{"span":"{word}","name":"chat gpt","start":5,"end":1205,"fields":{{"gen_ai.usage.input_tokens":100}}}}"#
        );
        let call: CallSpan = serde_json::from_str(&stored).unwrap();
        assert_eq!(call.span, kind);
        assert_eq!(serde_json::to_string(&call).unwrap(), stored);
    }
    // An event of a node that is not a call.
    let run = r#"{"span":"run","name":"x","start":5,"end":1205,"fields":{}}"#;
    assert!(serde_json::from_str::<CallSpan>(run).is_err());
}

fn span(id: u64, kind: SpanKind, fields: Json, inner: Vec<Span>) -> Span {
    Span {
        id: SpanId(id),
        name: kind.as_str().to_owned(),
        kind,
        start: Timestamp(0),
        end: Some(Timestamp(1_200)),
        error: None,
        fields: fields.as_object().unwrap().clone(),
        inner,
    }
}

/// A run with these calls of a model, each with what is known of it, and one of a tool.
fn run_with(calls: &[Json]) -> AgentTrace {
    let mut inner: Vec<Span> = (10..)
        .zip(calls)
        .map(|(id, known)| span(id, SpanKind::Call(MODEL), known.clone(), Vec::new()))
        .collect();
    inner.push(span(9, SpanKind::Call(TOOL), json!({}), Vec::new()));
    let known =
        json!({ "superstep.run": "7", "superstep.graph": "shop", "superstep.outcome": "finished" });
    let run = span(1, SpanKind::Run, known, inner);
    AgentTrace::from(Trace {
        thread: "t".to_owned(),
        runs: vec![run],
    })
}

#[test]
fn the_tree_adds_up_tokens_and_costs_and_says_what_is_unknown() {
    let known =
        json!({ fields::INPUT_TOKENS: 100, fields::OUTPUT_TOKENS: 20, fields::COST: 52_000 });
    let free = json!({ fields::INPUT_TOKENS: 5 });
    assert_snapshot!(run_with(std::slice::from_ref(&known)), @r"
    t
    └─ run  1.2 s  100 in, 20 out  $0.000052  finished
       ├─ model  1.2 s  100 in, 20 out  $0.000052
       └─ tool  1.2 s
    ");
    assert_snapshot!(run_with(&[known, free]), @r"
    t
    └─ run  1.2 s  105 in, 20 out  at least $0.000052  finished
       ├─ model  1.2 s  100 in, 20 out  $0.000052
       ├─ model  1.2 s  5 in, 0 out  cost unknown
       └─ tool  1.2 s
    ");
    assert_snapshot!(run_with(&[]), @r"
    t
    └─ run  1.2 s  finished
       └─ tool  1.2 s
    ");
}

#[test]
fn as_json_a_run_has_its_operation_and_conversation() {
    let json = serde_json::to_value(run_with(&[])).unwrap();
    assert_eq!(
        json,
        json!({
            "thread": "t",
            "runs": [{
                "id": "0000000000000001",
                "name": "run",
                "kind": "run",
                "start": 0,
                "end": 1_200,
                "fields": {
                    "gen_ai.operation.name": "invoke_agent",
                    "superstep.run": "7",
                    "superstep.graph": "shop",
                    "gen_ai.conversation.id": "t",
                    "superstep.outcome": "finished",
                },
                "inner": [
                    { "id": "0000000000000009", "name": "tool", "kind": "tool", "start": 0, "end": 1_200 },
                ],
            }],
        })
    );
}

/// Killed at every point and resumed, it is one run with each call in it once, at the time at which it was made.
#[tokio::test]
async fn killed_at_every_point_the_trace_is_one_run_with_every_call() {
    let mut deaths = 0;
    for point in 1.. {
        let store: Arc<dyn Checkpointer> = Arc::new(Memory::default());
        let spending = superstep_agent::Spending::new(Arc::new(MemoryStore::default()));
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("script.json");
        std::fs::write(&file, SCRIPT).unwrap();
        let process = |fate: &Arc<Fate>| {
            let model = Script::open(&file).unwrap();
            let model = model.with_ledger(dir.path().join("ledger")).unwrap();
            let look = tool("look", "Looks.", |_: Note, _| async { Ok("seen") }).read();
            // With a budget the answer is recorded, and told again from the record.
            let graph = Agent::builder(Arc::new(model))
                .tools([look])
                .spending(spending.clone())
                .build()
                .unwrap();
            let store = Mortal {
                inner: store.clone(),
                fate: fate.clone(),
                forgets: None,
            };
            Runtime::new(store).thread(&graph, "t").unwrap()
        };
        let fate = Fate::at(point);
        let thread = process(&fate);
        let lived = fate.lives(thread.start(AgentState::ask("go"))).await;
        let thread = process(&Fate::never());
        match lived {
            Some(_) => break,
            None => deaths += 1,
        }
        match thread.state().await.unwrap() {
            None => thread.start(AgentState::ask("go")).await.unwrap(),
            Some(_) => match thread.recover().await {
                Ok(done) => done,
                // It died after the last commit.
                Err(_) => continue,
            },
        };
        let trace = AgentTrace::from(thread.trace().await.unwrap());
        assert_eq!(trace.as_trace().runs.len(), 1, "{point}: {trace}");
        assert_eq!(
            shape(&trace).matches("execute_tool look").count(),
            1,
            "{point}: {trace}"
        );
        assert_eq!(
            shape(&trace).matches("chat ").count(),
            2,
            "{point}: {trace}"
        );
        for call in calls(&trace.as_trace().runs) {
            assert!(call.end.unwrap() >= call.start);
        }
    }
    assert!(deaths > 10, "{deaths}");
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_millis() as i64
}

const SCRIPT: &str = r#"{"replies": [
    {"at": "model", "tool_calls": [{"id": "c1", "name": "look", "args": {"note": "rain"}}]},
    {"at": "model", "text": "Done."}
]}"#;

/// What was called before a pause has the time from before it.
#[tokio::test]
async fn a_call_before_a_pause_keeps_its_time() {
    let graph = graph(model());
    let store = Memory::default();
    let thread = Runtime::new(store.clone()).thread(&graph, "t").unwrap();
    thread.start(AgentState::ask("go")).await.unwrap();
    let paused = now();
    while now() == paused {
        std::hint::spin_loop();
    }
    thread
        .answer_only(json!({ "type": "accept" }))
        .await
        .unwrap();
    let trace = AgentTrace::from(thread.trace().await.unwrap());
    let ended = |name: &str| {
        let calls = calls(&trace.as_trace().runs);
        let call = calls.iter().find(|call| call.name.ends_with(name)).unwrap();
        call.end.unwrap().0
    };
    assert!(ended("look") <= paused, "{trace}");
    assert!(ended("pay") > paused, "{trace}");
}
