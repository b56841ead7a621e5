//! What a client sees of a model's answer while it is streamed.

use std::sync::Arc;

use futures_util::stream;
use serde_json::{Value as Json, json};
use superstep::label::Label;
use superstep::{Event, Memory, Runtime, State};
use superstep_agent::{Agent, AgentEvent, AgentState, ChatMessage, Conversation, Tool, Turn, tool};
use superstep_llm::{
    Answer, BoxFuture, Chunk, Cost, Finish, Message, Model, ModelError, ModelName, Reply,
    ReplyStream, Request, ToolCall, Usage,
};

use crate::kit::{Note, script};

/// Fails once in the middle of its answer, then streams a text and the arguments of its calls in fragments, as servers do. Then
/// says that it is done.
#[derive(Debug)]
struct Fragments(ModelName);

impl Fragments {
    fn arc() -> Arc<Self> {
        Arc::new(Self("openai:fragments".parse().unwrap()))
    }

    fn end(&self, answer: Answer, finish: Finish) -> Chunk {
        Chunk::End(Box::new(Reply {
            answer,
            usage: Some(Usage {
                input_tokens: 12,
                output_tokens: 7,
                cached_tokens: 0,
            }),
            finish,
            model: self.0.clone(),
            cost: Cost::Unknown,
        }))
    }

    fn requests_calls(&self) -> Vec<Chunk> {
        let call = |index: u32, args: Json| ToolCall {
            id: format!("call_{index}"),
            name: "look".to_owned(),
            args,
        };
        let fragment = |index: u32, args: &str| Chunk::ToolCall {
            index,
            id: format!("call_{index}"),
            name: "look".to_owned(),
            args: args.to_owned(),
        };
        let answer = Answer {
            content: "I look.".into(),
            tool_calls: vec![
                call(0, json!({ "note": "around" })),
                call(1, json!({ "note": "up" })),
            ],
            reasoning: Some("where?".to_owned()),
        };
        vec![
            Chunk::Text("I l".to_owned()),
            fragment(0, "{\"no"),
            Chunk::Again {
                why: "cut".to_owned(),
                attempt: 2,
                attempts_max: 4,
            },
            Chunk::Reasoning("where?".to_owned()),
            Chunk::Text("I ".to_owned()),
            Chunk::Text("look.".to_owned()),
            fragment(0, ""),
            fragment(0, "{\"note\":"),
            fragment(1, "{\"note\":\"up\"}"),
            fragment(0, "\"around\"}"),
            self.end(answer, Finish::ToolCalls),
        ]
    }
}

impl Model for Fragments {
    fn name(&self) -> &ModelName {
        &self.0
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        let has_result = request.messages.len() > 1;
        let chunks = match has_result {
            true => vec![
                Chunk::Text("Done.".to_owned()),
                self.end(
                    Answer {
                        content: "Done.".into(),
                        ..Answer::default()
                    },
                    Finish::Stop,
                ),
            ],
            false => self.requests_calls(),
        };
        let chunks: Vec<_> = chunks.into_iter().map(Ok).collect();
        Box::pin(async move { Ok(Box::pin(stream::iter(chunks)) as ReplyStream) })
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        Box::pin(async { Ok(None) })
    }
}

fn look() -> Tool {
    tool("look", "Looks.", |_: Note, _| async { Ok("seen") }).read()
}

/// Runs an agent, and returns what it showed, in order, and its messages at the end.
async fn watched(
    model: Arc<dyn Model>,
    tool: Tool,
) -> (Vec<AgentEvent<'static>>, Vec<ChatMessage>) {
    let graph = Agent::builder(model).tools([tool]).build().unwrap();
    let runtime = Runtime::new(Memory::default());
    let thread = runtime.thread(&graph, "t").unwrap();
    let mut run = thread.stream(AgentState::ask("look"));
    let mut shown = Vec::new();
    while let Some(event) = run.next().await {
        if let Event::Live(live) = event.unwrap() {
            shown.extend(AgentEvent::of(&live));
        }
    }
    (shown, run.finish().await.unwrap().state.messages)
}

#[tokio::test]
async fn a_call_is_announced_once_with_its_arguments() {
    let (shown, _) = watched(Fragments::arc(), look()).await;
    let calls: Vec<_> = shown
        .iter()
        .filter_map(|event| match event {
            AgentEvent::ToolCall { id, name, args, .. } => Some(json!([id, name, args])),
            _ => None,
        })
        .collect();
    let expected = [
        json!(["call_0", "look", { "note": "around" }]),
        json!(["call_1", "look", { "note": "up" }]),
    ];
    assert_eq!(calls, expected);
}

#[tokio::test]
async fn what_is_streamed_has_the_id_of_the_stored_message() {
    let (shown, messages) = watched(Fragments::arc(), look()).await;
    let answers: Vec<_> = messages
        .iter()
        .filter(|kept| matches!(kept.message, Message::Assistant(_)))
        .collect();
    assert_eq!(answers.len(), 2);
    let mut texts = [String::new(), String::new()];
    for event in &shown {
        let at = |message: &str| {
            let has_id = |kept: &&ChatMessage| kept.id.as_deref() == Some(message);
            answers.iter().position(has_id).expect("a stored message")
        };
        match event {
            AgentEvent::Token { message, text } => texts[at(message)].push_str(text),
            AgentEvent::Again { .. } => texts[0].clear(),
            AgentEvent::Reasoning { message, .. }
            | AgentEvent::ToolCallDelta { message, .. }
            | AgentEvent::ToolCall { message, .. } => assert_eq!(at(message), 0),
            _ => {}
        }
    }
    assert_eq!(texts, [answers[0].text(), answers[1].text()]);
    let mut ids: Vec<_> = messages.iter().map(|kept| kept.id.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), messages.len(), "{messages:?}");
}

#[tokio::test]
async fn fragments_of_arguments_add_up_to_the_arguments() {
    let (shown, messages) = watched(Fragments::arc(), look()).await;
    let mut written = vec![String::new(); 2];
    for event in &shown {
        match event {
            AgentEvent::ToolCallDelta {
                index,
                id,
                name,
                args,
                ..
            } => {
                assert_eq!((&**id, &**name), (&*format!("call_{index}"), "look"));
                written[*index as usize].push_str(args);
            }
            AgentEvent::Again { .. } => written.iter_mut().for_each(String::clear),
            _ => {}
        }
    }
    let written: Vec<Json> = written
        .iter()
        .map(|args| serde_json::from_str(args).unwrap())
        .collect();
    let calls = messages[1].message.tool_calls().iter();
    let stored: Vec<Json> = calls.map(|call| call.args.clone()).collect();
    assert_eq!(written, stored);
}

#[tokio::test]
async fn the_end_of_an_answer_has_its_usage() {
    let (shown, messages) = watched(Fragments::arc(), look()).await;
    let ended: Vec<_> = shown
        .into_iter()
        .filter(|event| matches!(event, AgentEvent::ModelEnded { .. }))
        .collect();
    let expected = [&messages[1], &messages[4]].map(|answer| AgentEvent::ModelEnded {
        message: answer.id.clone().unwrap().into(),
        input_tokens: Some(12),
        output_tokens: Some(7),
    });
    assert_eq!(ended, expected);
}

/// Returns the input and the output of each call that was shown.
fn inputs_and_outputs(shown: &[AgentEvent<'_>]) -> Vec<Json> {
    shown
        .iter()
        .filter_map(|event| match event {
            AgentEvent::ToolStarted { input, .. } => Some(json!({ "input": input })),
            AgentEvent::ToolEnded { output, .. } => Some(json!({ "output": output })),
            _ => None,
        })
        .collect()
}

fn one_call() -> Arc<dyn Model> {
    script(json!([
        { "at": "model", "tool_calls": [{ "name": "look", "args": { "note": "up" } }] },
        { "at": "model", "text": "Done." }
    ]))
}

#[tokio::test]
async fn a_tool_shows_its_input_and_the_start_of_its_output() {
    let long = tool("look", "Looks.", |_: Note, _| async {
        Ok("ö".repeat(10_001))
    });
    let (shown, messages) = watched(one_call(), long.read()).await;
    let expected = [
        json!({ "input": { "note": "up" } }),
        json!({ "output": "ö".repeat(10_000) }),
    ];
    assert_eq!(inputs_and_outputs(&shown), expected);
    assert_eq!(messages[2].text().chars().count(), 10_001);
}

#[tokio::test]
async fn a_secret_output_is_not_shown() {
    // The run fails after the tool: no model may see the result.
    let secret = look().gives(Label::SECRET);
    let (shown, _) = watched(one_call(), secret).await;
    let expected = [
        json!({ "input": { "note": "up" } }),
        json!({ "output": "" }),
    ];
    assert_eq!(inputs_and_outputs(&shown), expected);
}

/// A state that adds a message to each turn.
#[derive(Clone, Debug, Default, State)]
struct Signed {
    #[state(messages)]
    messages: Vec<ChatMessage>,
}

impl Conversation for Signed {
    fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    fn said(turn: Turn) -> SignedUpdate {
        SignedUpdate::default()
            .messages_all(turn.messages)
            .messages(ChatMessage::user("(signed)"))
    }
}

#[tokio::test]
async fn a_message_that_a_state_adds_does_not_replace_the_answer() {
    let model = script(json!([{ "at": "model", "text": "Done." }]));
    let graph = Agent::builder(model).build_over::<Signed>().unwrap();
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    let input = SignedUpdate::default().messages(ChatMessage::user("go"));
    let state = thread.start(input).await.unwrap().state;
    let texts: Vec<_> = state.messages.iter().map(ChatMessage::text).collect();
    assert_eq!(texts, ["go", "Done.", "(signed)"]);
}
