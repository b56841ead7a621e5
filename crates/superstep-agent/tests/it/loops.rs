//! The loop of model and tools, and what may come between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use superstep::{Event, Memory, NodeError, Outcome, Runtime, Seq, State};
use superstep_agent::{
    Agent, AgentError, AgentState, ChatMessage, Conversation, EndReason, Go, HookCx, Hooks, Tool,
    ToolError, ToolFault, Turn, tool,
};
use superstep_llm::{
    BoxFuture, Model, ModelError, ModelName, Reply, ReplyStream, Request, Script, ToolCall,
    ToolResult,
};
use superstep_sqlite::Sqlite;

use crate::kit::{Note, script};

#[derive(Debug, Deserialize, JsonSchema)]
struct Sum {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

fn add() -> Tool {
    tool("add", "Adds two numbers.", |sum: Sum, _| async move {
        Ok(sum.a + sum.b)
    })
    .read()
}

fn shout() -> Tool {
    tool("shout", "Says it louder.", |note: Note, _| async move {
        match note.note.as_str() {
            "quiet" => Err(ToolError::failed("that cannot be shouted")),
            note => Ok(note.to_uppercase()),
        }
    })
    .idempotent()
}

fn two_turns() -> Json {
    json!([
        { "at": "model", "expect": "1 and 2", "text": "I compute.",
          "usage": { "input_tokens": 10, "output_tokens": 5 },
          "tool_calls": [
            { "name": "add", "args": { "a": 1, "b": 2.0 } },
            { "name": "shout", "args": { "note": "hey" } }
          ] },
        { "at": "model", "expect": ["3", "HEY"], "text": "It is 3. HEY!",
          "usage": { "input_tokens": 20, "output_tokens": 5 } }
    ])
}

#[tokio::test]
async fn asks_calls_both_tools_and_answers() {
    let dir = tempfile::tempdir().unwrap();
    let sqlite = Sqlite::open(dir.path().join("a.db")).unwrap();
    for runtime in [Runtime::new(Memory::default()), Runtime::new(sqlite)] {
        let model = script(two_turns());
        let graph = Agent::builder(model.clone())
            .system("Be brief.")
            .tools([add(), shout()])
            .build()
            .unwrap();
        let thread = runtime.thread(&graph, "t").unwrap();
        let stopped = thread.start(AgentState::ask("1 and 2?")).await.unwrap();
        assert_eq!(stopped.outcome, Outcome::Finished);
        let state = stopped.state;
        assert_eq!(state.answer(), "It is 3. HEY!");
        let types: Vec<_> = state
            .messages
            .iter()
            .map(|kept| serde_json::to_value(kept).unwrap()["type"].clone())
            .collect();
        assert_eq!(types, ["human", "ai", "tool", "tool", "ai"]);
        assert_eq!(state.spent.model_calls, 2);
        assert_eq!(state.spent.tool_calls, 2);
        assert_eq!(state.spent.usage.total_tokens(), 40);
        assert_eq!(state.ended, None);
        assert_eq!(model.prompts()[0].tools.len(), 2);
        model.finish().unwrap();
    }
}

/// Lets others go on after each piece of its answer, as a model does that is far away.
#[derive(Debug)]
struct Unhurried(Arc<Script>);

impl Model for Unhurried {
    fn name(&self) -> &ModelName {
        self.0.name()
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        Box::pin(async move {
            let chunks = self.0.stream(request).await?;
            let unhurried = chunks.then(|chunk| async {
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                chunk
            });
            Ok(unhurried.boxed() as ReplyStream)
        })
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        self.0.context_size()
    }
}

#[tokio::test]
async fn whoever_watches_sees_tokens_and_tools() {
    let yields = tool("shout", "Says it louder.", |note: Note, _| async move {
        tokio::task::yield_now().await;
        Ok(note.note.to_uppercase())
    });
    let model = Arc::new(Unhurried(script(two_turns())));
    let graph = Agent::builder(model)
        .tools([add(), yields])
        .build()
        .unwrap();
    let runtime = Runtime::new(Memory::default());
    let thread = runtime.thread(&graph, "t").unwrap();
    let mut events = thread.events(Seq(0));
    let mut run = std::pin::pin!(thread.start(AgentState::ask("1 and 2?")));
    let mut seen = String::new();
    loop {
        tokio::select! {
            biased;
            event = events.next() => if let Event::Live(live) = event.unwrap() {
                let shown: Json = live.payload.decode().unwrap();
                seen.push_str(&shown.to_string());
            },
            stopped = &mut run => {
                assert_eq!(stopped.unwrap().outcome, Outcome::Finished);
                break;
            }
        }
    }
    for word in ["\"token\"", "\"tool_call\"", "\"tool_started\""] {
        assert!(seen.contains(word), "no {word} in {seen}");
    }
}

#[tokio::test]
async fn what_a_model_does_wrong_it_is_told() {
    let model = script(json!([
        { "at": "model", "tool_calls": [
            { "id": "same", "name": "add", "args": { "a": "one" } },
            { "id": "same", "name": "multiply", "args": {} },
            { "id": "", "name": "shout", "args": { "note": "quiet" } },
            { "id": "no json", "name": "shout", "args": "{\"note\": " }
        ] },
        { "at": "model", "text": "Sorry." }
    ]));
    let graph = Agent::builder(model)
        .tools([add(), shout()])
        .build()
        .unwrap();
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    let state = thread.start(AgentState::ask("go")).await.unwrap().state;
    let told: Vec<_> = state.messages[2..6].iter().map(ChatMessage::text).collect();
    assert!(
        told[0].contains("must be of type \"integer\"") || told[0].contains("lacks `b`"),
        "{told:?}"
    );
    assert_eq!(
        told[1],
        "there is no tool `multiply`; there are `add`, `shout`"
    );
    assert_eq!(told[2], "that cannot be shouted");
    assert!(told[3].contains("must be of type \"object\""), "{told:?}");
    let ids: std::collections::BTreeSet<_> = state.messages[1]
        .message
        .tool_calls()
        .iter()
        .map(|call| &call.id)
        .collect();
    assert_eq!(ids.len(), 4, "every call has an id of its own");
    assert_eq!(state.answer(), "Sorry.");
}

#[tokio::test]
async fn at_the_step_limit_it_answers_with_what_there_is() {
    let more =
        json!({ "at": "model", "tool_calls": [{ "name": "add", "args": { "a": 1, "b": 1 } }] });
    let model = script(json!([more, more, more]));
    let graph = Agent::builder(model.clone())
        .tools([add()])
        .step_limit(3)
        .build()
        .unwrap();
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    let stopped = thread.start(AgentState::ask("go")).await.unwrap();
    assert_eq!(stopped.outcome, Outcome::Finished);
    assert_eq!(stopped.state.ended, Some(EndReason::StepLimit));
    assert_eq!(stopped.state.spent.model_calls, 3);
    assert_eq!(stopped.state.spent.tool_calls, 2);
    assert!(stopped.state.answer().contains("limit of steps"));
    assert_eq!(
        model.prompts()[2].tool_choice,
        superstep_llm::ToolChoice::None
    );
}

#[test]
fn every_fault_of_the_tools_is_told_at_once() {
    let model = script(json!([]));
    let bad = tool("a b", "", |_: Note, _| async { Ok(()) });
    let built = Agent::builder(model).tools([add(), add(), bad]).build();
    let Err(AgentError::Tools { faults, .. }) = built else {
        panic!("it was built");
    };
    let name = || "a b".to_owned();
    assert_eq!(
        faults,
        [
            ToolFault::Duplicate {
                name: "add".to_owned()
            },
            ToolFault::BadName { name: name() },
            ToolFault::NoDescription { name: name() },
        ]
    );
}

/// Changes and refuses everything it can.
#[derive(Default)]
struct Meddles {
    replies: Arc<AtomicU32>,
}

impl Hooks for Meddles {
    fn before_model<'a>(
        &'a self,
        request: &'a mut Request,
        _: &'a HookCx<'a>,
    ) -> BoxFuture<'a, Result<Go, NodeError>> {
        request.temperature = Some(0.5);
        Box::pin(async { Ok(Go::On) })
    }

    fn after_model<'a>(
        &'a self,
        reply: &'a mut Reply,
        _: &'a HookCx<'a>,
    ) -> BoxFuture<'a, Result<Go, NodeError>> {
        self.replies.fetch_add(1, Ordering::SeqCst);
        let bad = reply.text().contains("HEY!");
        Box::pin(async move {
            Ok(match bad {
                true => Go::Refuse("I would rather not say.".to_owned()),
                false => Go::On,
            })
        })
    }

    fn before_tool<'a>(
        &'a self,
        call: &'a mut ToolCall,
        _: &'a HookCx<'a>,
    ) -> BoxFuture<'a, Result<Go, NodeError>> {
        Box::pin(async move {
            if call.name == "shout" {
                return Ok(Go::Refuse("3, and no HEY".to_owned()));
            }
            call.args["b"] = json!(40);
            Ok(Go::On)
        })
    }

    fn after_tool<'a>(
        &'a self,
        _: &'a ToolCall,
        result: &'a mut ToolResult,
        _: &'a HookCx<'a>,
    ) -> BoxFuture<'a, Result<(), NodeError>> {
        let text = format!("[{}]", result.content.text());
        result.content = text.into();
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn hooks_change_and_refuse() {
    let model = script(two_turns());
    let graph = Agent::builder(model.clone())
        .tools([add(), shout()])
        .hooks(Meddles::default())
        .build()
        .unwrap();
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    let state = thread
        .start(AgentState::ask("1 and 2?"))
        .await
        .unwrap()
        .state;
    let texts: Vec<_> = state.messages.iter().map(ChatMessage::text).collect();
    assert_eq!(
        texts[2..],
        ["[41]", "[3, and no HEY]", "I would rather not say."]
    );
    assert_eq!(state.ended, Some(EndReason::Refused));
    assert_eq!(model.prompts()[0].temperature, Some(0.5));
}

#[derive(Clone, Debug, Default, State)]
struct Support {
    customer: String,
    #[state(messages)]
    messages: Vec<ChatMessage>,
}

impl Conversation for Support {
    fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    fn said(turn: Turn) -> SupportUpdate {
        SupportUpdate::default().messages_all(turn.messages)
    }
}

#[tokio::test]
async fn a_state_of_ones_own_works_too() {
    let model = script(two_turns());
    let graph = Agent::builder(model)
        .tools([add(), shout()])
        .build_over::<Support>()
        .unwrap();
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    let input = SupportUpdate::default()
        .customer("Ada".to_owned())
        .messages(ChatMessage::user("1 and 2?"));
    let state = thread.start(input).await.unwrap().state;
    assert_eq!(state.customer, "Ada");
    assert_eq!(state.messages.last().unwrap().text(), "It is 3. HEY!");
}
