//! What a client sees of a model's answer while it is streamed.

use std::sync::Arc;

use futures_util::stream;
use serde_json::json;
use superstep::{Event, Memory, Runtime};
use superstep_agent::{Agent, AgentEvent, AgentState, tool};
use superstep_llm::{
    Answer, BoxFuture, Chunk, Cost, Finish, Model, ModelError, ModelName, Reply, ReplyStream,
    Request, ToolCall,
};

use crate::kit::Note;

/// Streams the arguments of its call in three fragments, as servers do, and then says that it is done.
#[derive(Debug)]
struct Fragments(ModelName);

impl Model for Fragments {
    fn name(&self) -> &ModelName {
        &self.0
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        let has_result = request.messages.len() > 1;
        let call = ToolCall {
            id: "call_1".to_owned(),
            name: "look".to_owned(),
            args: json!({ "note": "around" }),
        };
        let fragment = Chunk::ToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
        };
        let (answer, finish) = match has_result {
            true => (Answer::default(), Finish::Stop),
            false => (
                Answer {
                    tool_calls: vec![call],
                    ..Answer::default()
                },
                Finish::ToolCalls,
            ),
        };
        let end = Chunk::End(Box::new(Reply {
            answer,
            usage: None,
            finish,
            model: self.0.clone(),
            cost: Cost::Unknown,
        }));
        let fragments = if has_result { 0 } else { 3 };
        let chunks = std::iter::repeat_n(fragment, fragments).chain([end]);
        let chunks: Vec<_> = chunks.map(Ok).collect();
        Box::pin(async move { Ok(Box::pin(stream::iter(chunks)) as ReplyStream) })
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        Box::pin(async { Ok(None) })
    }
}

#[tokio::test]
async fn a_call_is_announced_once_with_its_arguments() {
    let look = tool("look", "Looks.", |_: Note, _| async { Ok("seen") }).read();
    let model = Arc::new(Fragments("openai:fragments".parse().unwrap()));
    let graph = Agent::builder(model).tools([look]).build().unwrap();
    let runtime = Runtime::new(Memory::default());
    let thread = runtime.thread(&graph, "t").unwrap();
    let mut run = thread.stream(AgentState::ask("look"));
    let mut calls = Vec::new();
    while let Some(event) = run.next().await {
        if let Event::Live(live) = event.unwrap()
            && let Some(AgentEvent::ToolCall { id, name, args }) = AgentEvent::of(&live)
        {
            calls.push(json!([id, name, args]));
        }
    }
    assert_eq!(calls, [json!(["call_1", "look", { "note": "around" }])]);
}
