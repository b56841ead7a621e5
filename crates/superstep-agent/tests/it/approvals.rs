//! A person's word for calls: what is executed is what was approved, once.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep::{
    Clock, DriveError, Memory, NodeError, Outcome, RunResult, Runtime, Thread, Timestamp,
};
use superstep_agent::{
    Agent, AgentState, Approval, ChatMessage, Go, HookCx, Hooks, Tool, digest, tool,
};
use superstep_llm::{BoxFuture, ToolCall};

use crate::kit::{Note, questions, request, script};

/// What was done, in order.
#[derive(Clone, Default)]
struct Done(Arc<Mutex<Vec<String>>>);

impl Done {
    fn all(&self) -> Vec<String> {
        let mut all = self.0.lock().unwrap().clone();
        all.sort();
        all
    }

    fn tool(&self, name: &'static str) -> Tool {
        let done = self.clone();
        tool(name, "Does it.", move |note: Note, _| {
            let done = done.clone();
            async move {
                done.0.lock().unwrap().push(format!("{name} {}", note.note));
                Ok(format!("{name} done"))
            }
        })
    }
}

fn asks(calls: Json) -> Json {
    json!([
        { "at": "model", "tool_calls": calls },
        { "at": "model", "text": "That was all." }
    ])
}

fn two_mails_and_a_look() -> Json {
    asks(json!([
        { "id": "one", "name": "mail", "args": { "note": "to Ada" } },
        { "id": "two", "name": "mail", "args": { "note": "to Bob" } },
        { "id": "see", "name": "look", "args": { "note": "around" } }
    ]))
}

fn thread(runtime: &Runtime, calls: Json, tools: Vec<Tool>) -> Thread<AgentState> {
    let graph = Agent::builder(script(calls)).tools(tools).build().unwrap();
    runtime.thread(&graph, "t").unwrap()
}

fn mail_and_look(done: &Done, approval: Approval) -> Vec<Tool> {
    vec![
        done.tool("mail").approved_by_a_person(approval),
        done.tool("look").read(),
    ]
}

async fn answer(
    thread: &Thread<AgentState>,
    stopped: &RunResult<AgentState>,
    call: &str,
    answer: Json,
) -> RunResult<AgentState> {
    let open = questions(stopped);
    let question = open
        .iter()
        .find(|question| request(question)["tool_call_id"] == call);
    let answered = thread.answer(question.unwrap().id, answer).await;
    answered.unwrap().unwrap()
}

fn results(state: &AgentState) -> Vec<String> {
    state.messages[2..5].iter().map(ChatMessage::text).collect()
}

#[tokio::test]
async fn both_are_shown_at_once_in_the_form_that_inboxes_read() {
    let done = Done::default();
    let runtime = Runtime::new(Memory::default());
    let approval = Approval::always().described(|args| format!("Mail {}?", args["note"]));
    let thread = thread(
        &runtime,
        two_mails_and_a_look(),
        mail_and_look(&done, approval),
    );
    let paused = thread.start(AgentState::ask("go")).await.unwrap();
    let open = questions(&paused);
    assert_eq!(open.len(), 2);
    assert_eq!(open[0].kind, "approval");
    let mut asked: Vec<_> = open.iter().map(request).collect();
    asked.sort_by_key(|asked| asked["tool_call_id"].to_string());
    assert_eq!(
        asked[0],
        json!({
            "action_request": { "action": "mail", "args": { "note": "to Ada" } },
            "config": { "allow_ignore": true, "allow_respond": true, "allow_edit": true, "allow_accept": true },
            "description": "Mail \"to Ada\"?",
            "tool_call_id": "one",
            "labels": [],
            "digest": digest("mail", &json!({ "note": "to Ada" })),
        })
    );
    assert_eq!(
        done.all(),
        ["look around"],
        "what needs nobody is done before the pause"
    );
}

#[tokio::test]
async fn answered_in_either_order_with_one_edited_each_is_done_once() {
    for order in [["one", "two"], ["two", "one"]] {
        let done = Done::default();
        let runtime = Runtime::new(Memory::default());
        let tools = mail_and_look(&done, Approval::always());
        let thread = thread(&runtime, two_mails_and_a_look(), tools);
        let mut stopped = thread.start(AgentState::ask("go")).await.unwrap();
        for call in order {
            let said = match call {
                "one" => json!({ "type": "accept" }),
                _ => {
                    json!({ "type": "edit", "args": { "action": "mail", "args": { "note": "to Bill" } } })
                }
            };
            stopped = answer(&thread, &stopped, call, said).await;
        }
        assert_eq!(stopped.outcome, Outcome::Finished);
        assert_eq!(done.all(), ["look around", "mail to Ada", "mail to Bill"]);
        assert_eq!(
            results(&stopped.state),
            ["mail done", "mail done", "look done"]
        );
    }
}

#[tokio::test]
async fn answered_together_each_is_done_once() {
    let done = Done::default();
    let runtime = Runtime::new(Memory::default());
    let thread = thread(
        &runtime,
        two_mails_and_a_look(),
        mail_and_look(&done, Approval::always()),
    );
    let paused = thread.start(AgentState::ask("go")).await.unwrap();
    let answers = questions(&paused)
        .into_iter()
        .map(|question| (question.id, json!({ "type": "accept" })));
    let stopped = thread
        .answer_as("Ada", answers.collect::<Vec<_>>())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stopped.outcome, Outcome::Finished);
    assert_eq!(done.all(), ["look around", "mail to Ada", "mail to Bob"]);
}

#[tokio::test]
async fn a_person_may_say_no_or_answer_in_its_place() {
    let done = Done::default();
    let runtime = Runtime::new(Memory::default());
    let thread = thread(
        &runtime,
        two_mails_and_a_look(),
        mail_and_look(&done, Approval::always()),
    );
    let stopped = thread.start(AgentState::ask("go")).await.unwrap();
    let stopped = answer(
        &thread,
        &stopped,
        "one",
        json!({ "type": "ignore", "args": null }),
    )
    .await;
    let said = json!({ "type": "response", "args": "I told him myself." });
    let stopped = answer(&thread, &stopped, "two", said).await;
    assert_eq!(done.all(), ["look around"]);
    let results = results(&stopped.state);
    assert!(results[0].contains("a person said no"), "{results:?}");
    assert_eq!(results[1], "I told him myself.");
}

#[tokio::test]
async fn an_edit_that_breaks_the_schema_or_changes_the_tool_is_not_taken() {
    let done = Done::default();
    let runtime = Runtime::new(Memory::default());
    let calls = asks(json!([{ "id": "one", "name": "mail", "args": { "note": "to Ada" } }]));
    let thread = thread(&runtime, calls, mail_and_look(&done, Approval::always()));
    let mut stopped = thread.start(AgentState::ask("go")).await.unwrap();
    for (edit, why) in [
        (json!({ "note": 7 }), "must be of type"),
        (json!({ "note": "x", "bcc": "eve" }), "is not asked for"),
        (json!({ "note": "" }), "minLength"),
        (
            json!({ "action": "look", "args": { "note": "x" } }),
            "cannot change which tool",
        ),
    ] {
        stopped = answer(
            &thread,
            &stopped,
            "one",
            json!({ "type": "edit", "args": edit }),
        )
        .await;
        let asked = request(&questions(&stopped)[0]);
        assert!(
            asked["description"].as_str().unwrap().contains(why),
            "{asked}"
        );
        assert_eq!(asked["action_request"]["args"]["note"], "to Ada");
        assert_eq!(done.all(), [""; 0]);
    }
    let stopped = answer(&thread, &stopped, "one", json!({ "type": "accept" })).await;
    assert_eq!(stopped.outcome, Outcome::Finished);
    assert_eq!(done.all(), ["mail to Ada"]);
}

/// Arguments of which one may be left out.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Letter {
    note: String,
    /// Who gets a copy.
    #[serde(default)]
    copies: Vec<String>,
}

#[tokio::test]
async fn an_argument_that_the_call_lacks_is_named_and_can_be_added() {
    let written = Arc::new(Mutex::new(Vec::new()));
    let writes = |approval: Approval| {
        let written = written.clone();
        let mail = tool("mail", "Writes.", move |letter: Letter, _| {
            let written = written.clone();
            async move {
                written.lock().unwrap().push(letter.copies.join(", "));
                Ok("written")
            }
        });
        mail.approved_by_a_person(approval)
    };
    let calls = || asks(json!([{ "id": "one", "name": "mail", "args": { "note": "to Ada" } }]));
    let runtime = Runtime::new(Memory::default());
    let may_edit = thread(&runtime, calls(), vec![writes(Approval::always())]);
    let stopped = may_edit.start(AgentState::ask("go")).await.unwrap();
    let optional = request(&questions(&stopped)[0])["optional_args"].clone();
    let names: Vec<_> = optional.as_object().unwrap().keys().collect();
    assert_eq!(names, ["copies"]);
    assert_eq!(optional["copies"]["description"], "Who gets a copy.");
    let edit = json!({ "type": "edit", "args": { "note": "to Ada", "copies": ["Bob"] } });
    let stopped = answer(&may_edit, &stopped, "one", edit).await;
    assert_eq!(stopped.outcome, Outcome::Finished);
    assert_eq!(*written.lock().unwrap(), ["Bob"]);

    let runtime = Runtime::new(Memory::default());
    let fixed = Approval::always().without_edit();
    let fixed = thread(&runtime, calls(), vec![writes(fixed)]);
    let stopped = fixed.start(AgentState::ask("go")).await.unwrap();
    assert_eq!(
        request(&questions(&stopped)[0])["optional_args"],
        Json::Null
    );
}

#[tokio::test]
async fn what_is_not_offered_is_refused_and_an_answer_counts_once() {
    let done = Done::default();
    let runtime = Runtime::new(Memory::default());
    let calls = asks(json!([{ "id": "one", "name": "mail", "args": { "note": "to Ada" } }]));
    let approval = Approval::always().without_edit();
    let thread = thread(&runtime, calls, mail_and_look(&done, approval));
    let paused = thread.start(AgentState::ask("go")).await.unwrap();
    let id = questions(&paused)[0].id;
    let edit = json!({ "type": "edit", "args": { "note": "x" } });
    let refused = thread.answer(id, edit).await.unwrap_err();
    assert!(
        matches!(refused, DriveError::AnswerRefused { .. }),
        "{refused}"
    );
    thread
        .answer(id, json!({ "type": "accept" }))
        .await
        .unwrap();
    let late = thread
        .answer(id, json!({ "type": "accept" }))
        .await
        .unwrap_err();
    assert_eq!(late.code(), "checkpoint-not-open");
    assert_eq!(done.all(), ["mail to Ada"]);
}

#[tokio::test]
async fn what_nobody_approves_in_time_is_not_done() {
    let done = Done::default();
    let now = Arc::new(AtomicI64::new(1_000));
    let told = now.clone();
    let clock = Clock::new(move || Timestamp(told.load(Ordering::SeqCst)));
    let runtime = Runtime::builder(Memory::default()).clock(clock).build();
    let calls = asks(json!([{ "id": "one", "name": "mail", "args": { "note": "to Ada" } }]));
    let approval = Approval::always().within(Duration::from_secs(60));
    let thread = thread(&runtime, calls, mail_and_look(&done, approval));
    let paused = thread.start(AgentState::ask("go")).await.unwrap();
    assert_eq!(questions(&paused)[0].deadline, Some(Timestamp(61_000)));
    assert_eq!(runtime.expire_interrupts().await.unwrap(), 0);
    now.store(61_001, Ordering::SeqCst);
    assert_eq!(runtime.expire_interrupts().await.unwrap(), 1);
    let state: AgentState = thread
        .state()
        .await
        .unwrap()
        .unwrap()
        .values
        .decode()
        .unwrap();
    assert!(
        state.messages[2]
            .text()
            .contains("it was not approved before its deadline"),
        "{:?}",
        state.messages
    );
    assert_eq!(state.answer(), "That was all.");
    assert_eq!(done.all(), [""; 0]);
}

#[tokio::test]
async fn a_rule_may_ask_for_some_arguments_only() {
    let done = Done::default();
    let runtime = Runtime::new(Memory::default());
    let approval = Approval::when(|args, _| args["note"] == "to Bob");
    let thread = thread(
        &runtime,
        two_mails_and_a_look(),
        mail_and_look(&done, approval),
    );
    let paused = thread.start(AgentState::ask("go")).await.unwrap();
    assert_eq!(questions(&paused).len(), 1);
    assert_eq!(done.all(), ["look around", "mail to Ada"]);
    let stopped = answer(&thread, &paused, "two", json!({ "type": "accept" })).await;
    assert_eq!(stopped.outcome, Outcome::Finished);
    assert_eq!(done.all(), ["look around", "mail to Ada", "mail to Bob"]);
}

/// Another version of the program: what is called with is something else than what was asked about.
struct Changes(Arc<Mutex<String>>);

impl Hooks for Changes {
    fn before_tool<'a>(
        &'a self,
        call: &'a mut ToolCall,
        _: &'a HookCx<'a>,
    ) -> BoxFuture<'a, Result<Go, NodeError>> {
        call.args["note"] = json!(self.0.lock().unwrap().clone());
        Box::pin(async { Ok(Go::On) })
    }
}

#[tokio::test]
async fn an_approval_counts_for_what_was_approved_and_for_nothing_else() {
    let done = Done::default();
    let to = Arc::new(Mutex::new("to Ada".to_owned()));
    let calls = asks(json!([{ "id": "one", "name": "mail", "args": { "note": "x" } }]));
    let graph = Agent::builder(script(calls))
        .tools(mail_and_look(&done, Approval::always()))
        .hooks(Changes(to.clone()))
        .build()
        .unwrap();
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    let paused = thread.start(AgentState::ask("go")).await.unwrap();
    "to Eve".clone_into(&mut to.lock().unwrap());
    let stopped = answer(&thread, &paused, "one", json!({ "type": "accept" })).await;
    let asked = request(&questions(&stopped)[0]);
    assert_eq!(
        asked["action_request"]["args"]["note"], "to Eve",
        "it is asked about anew"
    );
    assert_eq!(done.all(), [""; 0], "the approval was for another mail");
    let stopped = answer(&thread, &stopped, "one", json!({ "type": "ignore" })).await;
    assert_eq!(stopped.outcome, Outcome::Finished);
    assert_eq!(done.all(), [""; 0]);
}

/// Takes its time before it lets a tool look.
struct Slow;

impl Hooks for Slow {
    fn before_tool<'a>(
        &'a self,
        call: &'a mut ToolCall,
        _: &'a HookCx<'a>,
    ) -> BoxFuture<'a, Result<Go, NodeError>> {
        Box::pin(async {
            if call.name == "look" {
                tokio::task::yield_now().await;
            }
            Ok(Go::On)
        })
    }
}

#[tokio::test]
async fn what_needs_nobody_is_done_before_the_pause_also_if_it_takes_its_time() {
    let done = Done::default();
    let graph = Agent::builder(script(two_mails_and_a_look()))
        .tools(mail_and_look(&done, Approval::always()))
        .hooks(Slow)
        .build()
        .unwrap();
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    let paused = thread.start(AgentState::ask("go")).await.unwrap();
    assert_eq!(questions(&paused).len(), 2);
    assert_eq!(done.all(), ["look around"]);
}

#[tokio::test]
async fn a_new_message_at_an_open_approval_leaves_a_conversation_that_providers_accept() {
    let done = Done::default();
    let runtime = Runtime::new(Memory::default());
    let model = script(two_mails_and_a_look());
    let graph = Agent::builder(model.clone())
        .tools(mail_and_look(&done, Approval::always()))
        .build()
        .unwrap();
    let thread = runtime.thread(&graph, "t").unwrap();
    thread.start(AgentState::ask("go")).await.unwrap();
    let went_on = thread.start(AgentState::ask("never mind")).await.unwrap();
    assert_eq!(went_on.state.answer(), "That was all.");
    assert_eq!(done.all(), ["look around"], "nothing was approved");

    let asked = model.prompts().pop().unwrap().messages;
    let at = |index: usize| serde_json::to_value(&asked[index]).unwrap();
    let results = [2, 3, 4].map(|index| at(index)["tool_call_id"].clone());
    assert_eq!(results, [json!("one"), json!("two"), json!("see")]);
    assert!(at(2).to_string().contains("no result"), "{}", at(2));
    assert_eq!(
        asked.len(),
        6,
        "the question, the calls, three results, what was said then"
    );
}
