//! Live spans, in a program of their own: who listens to spans is settled for the whole process, and other tests would be in
//! the way.

#![expect(
    clippy::unwrap_used,
    reason = "clippy lets tests unwrap, but not what helps them"
)]

#[expect(dead_code, reason = "another test reads what it heard as text")]
#[path = "../it/listen.rs"]
mod listen;
#[path = "../it/shop.rs"]
mod shop;

use insta::assert_snapshot;
use listen::Ear;
use serde_json::json;
use shop::{graph, model};
use superstep::prelude::*;
use superstep_agent::AgentState;

#[tokio::test]
async fn whoever_listens_hears_runs_supersteps_nodes_and_calls() {
    let ear = Ear::default();
    let graph = graph(model());
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    let _listening = tracing::subscriber::set_default(ear.clone());
    let paused = thread.start(AgentState::ask("go")).await.unwrap();
    thread
        .answer_only(json!({ "type": "accept" }))
        .await
        .unwrap();
    let tree = ear.tree().replace(&paused.run.to_string(), "RUN");
    assert_snapshot!(tree, @r#"
    invoke_agent superstep.run=RUN gen_ai.conversation.id=t
      superstep superstep.step=0
        node superstep.node="model" superstep.step=0 superstep.attempt=1
          chat gen_ai.operation.name="chat" gen_ai.provider.name="script" gen_ai.request.model="shop" gen_ai.response.model="shop" gen_ai.response.finish_reasons="tool_calls" gen_ai.usage.input_tokens=100 gen_ai.usage.output_tokens=20 superstep.cost_nano_dollars=27000
      superstep superstep.step=1
        node superstep.node="tools" superstep.step=1 superstep.attempt=1
          execute_tool gen_ai.operation.name="execute_tool" gen_ai.tool.name="look" gen_ai.tool.call.id="c1" superstep.tool.class="read"
          execute_tool gen_ai.operation.name="execute_tool" gen_ai.tool.name="shout" gen_ai.tool.call.id="c3" superstep.tool.class="idempotent"
    invoke_agent superstep.run=RUN gen_ai.conversation.id=t
      superstep superstep.step=1
        node superstep.node="tools" superstep.step=1 superstep.attempt=1
          execute_tool gen_ai.operation.name="execute_tool" gen_ai.tool.name="pay" gen_ai.tool.call.id="c2" superstep.tool.class="keyed"
      superstep superstep.step=2
        node superstep.node="model" superstep.step=2 superstep.attempt=1
          chat gen_ai.operation.name="chat" gen_ai.provider.name="script" gen_ai.request.model="shop" gen_ai.response.model="shop" gen_ai.response.finish_reasons="stop" gen_ai.usage.input_tokens=200 gen_ai.usage.output_tokens=5 superstep.cost_nano_dollars=33000
    "#);
}
