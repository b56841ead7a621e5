//! The calls of a message in two acts: nothing is done before everybody has been heard.

use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};
use superstep::RunResult;
use superstep::prelude::*;
use superstep_agent::{
    AgentState, AgentStateUpdate, Approval, Calls, ChatMessage, Decision, Tools, tool,
    unanswered_calls,
};
use superstep_core::label::{Label, Labels};
use superstep_llm::{Answer, Message, ToolCall};

use crate::kit::{Note, questions, request};

/// What was done and what was decided, in order.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn add(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn tools(&self) -> Tools {
        let tool = |name: &'static str| {
            let seen = self.clone();
            tool(name, "Does it.", move |note: Note, _| {
                let seen = seen.clone();
                async move {
                    seen.add(format!("{name} {}", note.note));
                    Ok(format!("{name} done"))
                }
            })
        };
        let mail = tool("mail").approved_by_a_person(Approval::always());
        Tools::new([mail, tool("look").read().gives(Label::UNTRUSTED)]).unwrap()
    }
}

/// Hears everybody, takes a mail to Eve back, and makes the calls one after the other.
async fn in_turn(
    state: View<AgentState>,
    cx: NodeCx,
    seen: Seen,
) -> Result<AgentStateUpdate, NodeError> {
    let tools = seen.tools();
    let calls = Calls::new(&tools, Labels::NONE, &cx).await?;
    let agreed = calls.agree(unanswered_calls(&state.messages)).await?;
    let mut update = AgentStateUpdate::default();
    for agreed in agreed {
        seen.add(format!("{:?}", agreed.decision()));
        let agreed = match agreed.call().args["note"] == "to Eve" {
            true => agreed.withdrawn("nobody writes to Eve"),
            false => agreed,
        };
        assert_eq!(
            agreed.is_made(),
            matches!(
                agreed.decision(),
                Decision::Unasked | Decision::Accepted | Decision::Edited
            )
        );
        update = update.messages(calls.make(agreed).await?);
    }
    Ok(update)
}

fn thread(seen: &Seen) -> Thread<AgentState> {
    let seen = seen.clone();
    let graph = Graph::builder("in_turn")
        .node("tools", move |state, cx| in_turn(state, cx, seen.clone()))
        .edge(START, "tools")
        .edge("tools", END)
        .build()
        .unwrap();
    Runtime::new(Memory::default()).thread(&graph, "t").unwrap()
}

fn wants(calls: &[(&str, &str)]) -> AgentStateUpdate {
    let call = |(at, (name, note)): (usize, &(&str, &str))| ToolCall {
        id: format!("c{at}"),
        name: (*name).to_owned(),
        args: json!({ "note": note }),
    };
    let wanted = Message::Assistant(Answer {
        tool_calls: calls.iter().enumerate().map(call).collect(),
        ..Answer::default()
    });
    AgentStateUpdate::default().messages(ChatMessage::new(wanted, Labels::NONE))
}

async fn answered(thread: &Thread<AgentState>, answer: Json) -> Vec<String> {
    let stopped = thread.answer_only(answer).await.unwrap().unwrap();
    results(&stopped)
}

fn results(stopped: &RunResult<AgentState>) -> Vec<String> {
    stopped.state.messages[1..]
        .iter()
        .map(ChatMessage::text)
        .collect()
}

#[tokio::test]
async fn nothing_is_done_before_the_last_question_is_answered() {
    let seen = Seen::default();
    let thread = thread(&seen);
    let wanted = wants(&[("look", "around"), ("mail", "to Ada"), ("mail", "to Bob")]);
    let paused = thread.start(wanted).await.unwrap();
    let open = questions(&paused);
    assert_eq!(open.len(), 2, "both are shown at once");
    let ada = open
        .iter()
        .find(|question| request(question)["tool_call_id"] == "c1");
    let accept = json!({ "type": "accept" });
    thread
        .answer(ada.unwrap().id, accept.clone())
        .await
        .unwrap();
    assert!(seen.all().is_empty(), "{:?}", seen.all());

    let came = answered(&thread, accept).await;
    assert_eq!(came, ["look done", "mail done", "mail done"]);
    assert_eq!(
        seen.all(),
        [
            "Unasked",
            "look around",
            "Accepted",
            "mail to Ada",
            "Accepted",
            "mail to Bob"
        ]
    );
}

#[tokio::test]
async fn what_a_person_changed_is_what_is_done() {
    let seen = Seen::default();
    let thread = thread(&seen);
    thread.start(wants(&[("mail", "to Ada")])).await.unwrap();
    let edit =
        json!({ "type": "edit", "args": { "action": "mail", "args": { "note": "to Bob" } } });
    assert_eq!(answered(&thread, edit).await, ["mail done"]);
    assert_eq!(seen.all(), ["Edited", "mail to Bob"]);
}

#[tokio::test]
async fn what_nobody_agreed_to_has_the_reason_as_its_result() {
    let seen = Seen::default();
    let no = thread(&seen);
    no.start(wants(&[("mail", "to Ada")])).await.unwrap();
    answered(&no, json!({ "type": "ignore" })).await;
    assert_eq!(seen.all(), ["Ignored"]);

    let seen = Seen::default();
    let taken_back = thread(&seen);
    let paused = taken_back
        .start(wants(&[("mail", "to Eve")]))
        .await
        .unwrap();
    assert_eq!(questions(&paused).len(), 1);
    let came = answered(&taken_back, json!({ "type": "accept" })).await;
    assert_eq!(came, ["nobody writes to Eve"]);
    assert_eq!(seen.all(), ["Accepted"]);
}

#[tokio::test]
async fn what_cannot_be_called_is_refused_without_a_question() {
    let seen = Seen::default();
    let thread = thread(&seen);
    let wanted = wants(&[("burn", "it"), ("mail", "")]);
    let came = results(&thread.start(wanted).await.unwrap());
    assert!(came[0].contains("there is no tool `burn`"), "{came:?}");
    assert!(came[1].contains("`mail` was not called"), "{came:?}");
    assert_eq!(seen.all(), ["Refused", "Refused"]);
}

#[tokio::test]
async fn a_result_has_the_labels_that_its_tool_gives() {
    let seen = Seen::default();
    let stopped = thread(&seen).start(wants(&[("look", "around")])).await;
    let stopped = stopped.unwrap();
    let labels = &stopped.state.messages[1].labels;
    assert_eq!(*labels, Labels::from(Label::UNTRUSTED));
}
