//! What may be spent: at the limit a person is asked, and it goes on where it stopped.

use std::sync::Arc;

use serde_json::json;
use superstep::prelude::*;
use superstep_agent::budget::{Limits, Meter};
use superstep_agent::{Agent, AgentState, EndReason, Spending, tool};
use superstep_core::store::MemoryStore;
use superstep_llm::Script;

use crate::kit::{Note, questions, request, script};

fn model() -> Arc<Script> {
    script(json!([
        { "at": "model", "tool_calls": [{ "name": "look", "args": { "note": "x" } }],
          "usage": { "input_tokens": 50, "output_tokens": 10 } },
        { "at": "model", "text": "Done.", "usage": { "input_tokens": 50, "output_tokens": 10 } }
    ]))
}

fn thread(model: &Arc<Script>, limits: Limits) -> Thread<AgentState> {
    let look = tool("look", "Looks.", |_: Note, _| async { Ok("seen") }).read();
    let spending = Spending::new(Arc::new(MemoryStore::default())).per_run(limits);
    let graph = Agent::builder(model.clone())
        .tools([look])
        .spending(spending)
        .build()
        .unwrap();
    Runtime::new(Memory::default()).thread(&graph, "t").unwrap()
}

#[tokio::test]
async fn at_the_limit_a_person_is_asked_and_it_goes_on_where_it_stopped() {
    let model = model();
    let thread = thread(&model, Limits::of(Meter::Calls, 1));
    let paused = thread.start(AgentState::ask("go")).await.unwrap();
    let question = &questions(&paused)[0];
    assert_eq!(question.kind, "budget");
    let asked = request(question);
    assert_eq!(
        (&asked["limit"], &asked["short_by"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(model.prompts().len(), 1);
    let finished = thread
        .answer_only(json!({ "type": "raise", "by": 1 }))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(finished.outcome, Outcome::Finished);
    assert_eq!(finished.state.answer(), "Done.");
    assert_eq!(model.prompts().len(), 2);
}

#[tokio::test]
async fn a_person_may_stop_it() {
    let model = model();
    let thread = thread(&model, Limits::of(Meter::Calls, 1));
    thread.start(AgentState::ask("go")).await.unwrap();
    let finished = thread
        .answer_only(json!({ "type": "stop" }))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(finished.outcome, Outcome::Finished);
    assert_eq!(finished.state.ended, Some(EndReason::Budget));
    assert_eq!(model.prompts().len(), 1);
}

#[tokio::test]
async fn within_the_limit_nobody_is_asked() {
    let model = model();
    let thread = thread(
        &model,
        Limits::of(Meter::Calls, 2).and(Meter::Tokens, 100_000),
    );
    let finished = thread.start(AgentState::ask("go")).await.unwrap();
    assert_eq!(finished.outcome, Outcome::Finished);
    assert_eq!(finished.state.ended, None);
}

#[tokio::test]
async fn what_a_server_does_not_tell_counts_as_what_was_set_aside() {
    let model = script(json!([
        { "at": "model", "tool_calls": [{ "name": "look", "args": { "note": "x" } }] },
        { "at": "model", "text": "Done." }
    ]));
    // Room for one answer of unknown length, not for two.
    let thread = thread(&model, Limits::of(Meter::Tokens, 6_000));
    let paused = thread.start(AgentState::ask("go")).await.unwrap();
    assert_eq!(request(&questions(&paused)[0])["meter"], "tokens");
    assert_eq!(model.prompts().len(), 1);
}
