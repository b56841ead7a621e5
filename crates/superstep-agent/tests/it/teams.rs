//! Several agents: handoffs in one conversation, a supervisor with its agents, and tools that command the graph.

use serde_json::{Value as Json, json};
use superstep::error::BuildProblem;
use superstep::prelude::*;
use superstep::{Memory, Outcome, RunResult, Runtime};
use superstep_agent::{
    Agent, AgentError, AgentState, Approval, ChatMessage, Conversation, MODEL, ModelNode,
    Supervisor, Swarm, TOOLS, Tool, ToolNode, ToolOutput, Tools, Turn, active_agent, tool,
};

use crate::kit::{Note, questions, script};

/// Each message as its kind and text.
fn said(state: &AgentState) -> Vec<(String, String)> {
    let kind = |kept: &ChatMessage| serde_json::to_value(kept).unwrap()["type"].clone();
    let messages = state.messages.iter();
    messages
        .map(|kept| (kind(kept).as_str().unwrap().to_owned(), kept.text()))
        .collect()
}

fn shop(replies: Json) -> Graph<AgentState> {
    let model = script(replies);
    let sales = Agent::builder(model.clone()).handoff("repairs", "For what is broken.");
    let repairs = Agent::builder(model).handoff("sales", "For what can be bought.");
    Swarm::builder()
        .agent("sales", sales)
        .agent("repairs", repairs)
        .build()
        .unwrap()
}

#[tokio::test]
async fn agents_of_a_swarm_hand_the_conversation_on_and_nothing_is_lost() {
    let to = |agent: &str| json!([{ "name": format!("transfer_to_{agent}"), "args": {} }]);
    let graph = shop(json!([
        { "at": "sales", "expect": "a flat tyre", "text": "Not mine.", "tool_calls": to("repairs") },
        { "at": "repairs", "expect": "transferred to repairs", "text": "Bring it in." },
        { "at": "repairs", "expect": "a new bell", "tool_calls": to("sales") },
        { "at": "sales", "expect": "transferred to sales", "tool_calls": to("repairs") },
        { "at": "repairs", "text": "I fit one." },
    ]));
    let runtime = Runtime::new(Memory::new());
    let thread = runtime.thread(&graph, "t").unwrap();
    let first = thread
        .start(AgentState::ask("I have a flat tyre."))
        .await
        .unwrap();
    assert_eq!(first.outcome, Outcome::Finished);
    assert_eq!(first.state.answer(), "Bring it in.");
    assert_eq!(active_agent(&first.state.messages), Some("repairs"));

    let second = thread
        .start(AgentState::ask("And a new bell."))
        .await
        .unwrap();
    assert_eq!(second.state.answer(), "I fit one.");
    let kinds: Vec<String> = said(&second.state)
        .into_iter()
        .map(|(kind, _)| kind)
        .collect();
    let wanted = [
        "human", "ai", "tool", "ai", "human", "ai", "tool", "ai", "tool", "ai",
    ];
    assert_eq!(kinds, wanted);
    assert_eq!(second.state.spent.model_calls, 5);
}

#[tokio::test]
async fn agents_that_hand_on_for_ever_end_at_the_step_limit() {
    let there = json!([{ "name": "transfer_to_repairs", "args": {} }]);
    let back = json!([{ "name": "transfer_to_sales", "args": {} }]);
    let mut replies = Vec::new();
    for _ in 0..12 {
        replies.push(json!({ "at": "sales", "tool_calls": there }));
        replies.push(json!({ "at": "repairs", "tool_calls": back }));
    }
    replies.push(json!({ "at": "sales", "text": "Nobody can." }));
    let runtime = Runtime::new(Memory::new());
    let thread = runtime.thread(&shop(json!(replies)), "t").unwrap();
    let stopped = thread.start(AgentState::ask("Help.")).await.unwrap();
    assert_eq!(stopped.outcome, Outcome::Finished);
    assert_eq!(stopped.state.answer(), "Nobody can.");
    assert!(stopped.state.ended.is_some());
}

#[test]
fn a_handoff_to_nobody_is_found_when_the_swarm_is_built() {
    let model = script(json!([]));
    let lost = Agent::builder(model).handoff("nobody", "Whatever.");
    let refused = Swarm::builder().agent("lost", lost).build().unwrap_err();
    let AgentError::Graph(refused) = refused else {
        panic!("{refused}");
    };
    assert!(
        matches!(&refused.problems[..], [BuildProblem::UnknownTarget { to, .. }] if to == "nobody"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_person_who_speaks_while_an_agent_of_a_swarm_waits_loses_nothing() {
    let model = script(json!([
        { "at": "sales", "tool_calls": [{ "name": "look_up", "args": { "note": "price" } }] },
        { "at": "sales", "expect": "price is 40", "tool_calls": [{ "name": "pay", "args": { "note": "40" } }] },
        { "at": "sales", "expect": ["price is 40", "no result", "wait"], "text": "I wait." },
    ]));
    let sales = Agent::builder(model).tools([look_up(), pay()]);
    let graph = Swarm::builder().agent("sales", sales).build().unwrap();
    let runtime = Runtime::new(Memory::new());
    let thread = runtime.thread(&graph, "t").unwrap();
    let paused = thread.start(AgentState::ask("Pay.")).await.unwrap();
    assert_eq!(questions(&paused).len(), 1);
    let stopped = thread.start(AgentState::ask("wait")).await.unwrap();
    assert_eq!(stopped.state.answer(), "I wait.");
}

#[test]
fn a_handoff_in_a_supervisors_team_is_found_when_it_is_built() {
    let model = script(json!([]));
    let lost = Agent::builder(model.clone()).handoff("math", "For sums.");
    let refused = Supervisor::builder(Agent::builder(model))
        .agent("research", "Finds facts.", lost)
        .build()
        .unwrap_err();
    assert!(
        matches!(&refused, AgentError::HandoffToNobody { agent } if agent == "research"),
        "{refused}"
    );
}

fn look_up() -> Tool {
    tool("look_up", "Looks it up.", |note: Note, _| async move {
        Ok(format!("{} is 40", note.note))
    })
    .read()
}

fn pay() -> Tool {
    tool("pay", "Pays.", |note: Note, _| async move {
        Ok(format!("paid {}", note.note))
    })
    .keyed()
    .approved_by_a_person(Approval::always())
}

fn team(replies: Json) -> Graph<AgentState> {
    let model = script(replies);
    let research = Agent::builder(model.clone()).tools([look_up()]);
    let payments = Agent::builder(model.clone()).tools([pay()]);
    Supervisor::builder(Agent::builder(model).tools([look_up()]))
        .agent("research", "Finds facts.", research)
        .agent("payments", "Pays bills.", payments)
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_supervisor_asks_its_agents_at_once_and_works_with_their_answers() {
    let graph = team(json!([
        { "at": "supervisor", "expect": "the bill", "tool_calls": [
            { "name": "ask_research", "args": { "task": "How much is the bill?" } },
            { "name": "ask_research", "args": { "task": "Whose bill is it?" } },
            { "name": "look_up", "args": { "note": "the date" } },
            { "name": "ask_payments", "args": {} },
            { "name": "ask_nobody", "args": { "task": "x" } } ] },
        { "at": "research", "expect": "How much", "tool_calls": [{ "name": "look_up", "args": { "note": "bill" } }] },
        { "at": "research", "expect": "Whose", "text": "Ada's." },
        { "at": "research", "expect": "bill is 40", "text": "It is 40." },
        { "at": "supervisor", "expect": ["It is 40.", "Ada's.", "the date is 40", "was not called", "there is no tool"],
          "text": "Ada owes 40." },
    ]));
    let runtime = Runtime::new(Memory::new());
    let thread = runtime.thread(&graph, "t").unwrap();
    let stopped = thread.start(AgentState::ask("Check the bill.")).await;
    let stopped = stopped.unwrap();
    assert_eq!(stopped.outcome, Outcome::Finished);
    assert_eq!(stopped.state.answer(), "Ada owes 40.");
    // The agents' own conversations stay with them; what they cost does not.
    assert_eq!(stopped.state.messages.len(), 8);
    assert_eq!(stopped.state.spent.model_calls, 5);
}

#[tokio::test]
async fn an_agent_of_a_supervisor_waits_for_a_person_and_goes_on_in_another_process() {
    let graph = team(json!([
        { "at": "supervisor", "tool_calls": [{ "name": "ask_payments", "args": { "task": "Pay 40 to Ada." } }] },
        { "at": "payments", "tool_calls": [{ "name": "pay", "args": { "note": "40" } }] },
        { "at": "payments", "expect": "paid 40", "text": "Done." },
        { "at": "supervisor", "expect": "Done.", "text": "It is paid." },
    ]));
    let store = Memory::new();
    let before = Runtime::new(store.clone()).thread(&graph, "t").unwrap();
    let paused: RunResult<AgentState> = before.start(AgentState::ask("Pay Ada.")).await.unwrap();
    let question = questions(&paused).remove(0);

    let after = Runtime::new(store).thread(&graph, "t").unwrap();
    let stopped = after.answer(question.id, json!({ "type": "accept" })).await;
    let stopped = stopped.unwrap().unwrap();
    assert_eq!(stopped.state.answer(), "It is paid.");
}

/// A support desk whose tools write to its state and choose its nodes.
#[derive(Clone, Debug, Default, State)]
struct Desk {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    ticket: Option<u32>,
    billed: bool,
    #[state(append)]
    notes: Vec<String>,
}

impl Conversation for Desk {
    fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    fn said(turn: Turn) -> DeskUpdate {
        DeskUpdate::default().messages_all(turn.messages)
    }
}

fn desk(replies: Json) -> Graph<Desk> {
    let open = |name: &'static str, number: u32| {
        tool(name, "Opens a ticket.", move |note: Note, _| async move {
            let told = ToolOutput::text(format!("ticket {number}: {}", note.note));
            let told = told.update(DeskUpdate::default().ticket(Some(number)))?;
            Ok(match note.note.as_str() {
                "money" => told.goto("billing"),
                _ => told,
            })
        })
        .idempotent()
    };
    let remember = tool("remember", "Remembers it.", |note: Note, _| async move {
        ToolOutput::text("ok").update(DeskUpdate::default().notes(note.note))
    });
    let forget = tool("forget", "Forgets all.", |_: Note, _| async move {
        ToolOutput::text("ok").update(DeskUpdate::default().overwrite_notes(Vec::new()))
    });
    let wrong = tool("wrong", "Writes to another state.", |_: Note, _| async {
        ToolOutput::text("?").update(WrongUpdate::default().nothing_of_it(1_u8))
    });
    let tools = [
        open("open", 7),
        open("open_another", 8),
        remember.idempotent(),
        forget.idempotent(),
        wrong.read(),
    ];
    let model = ModelNode::new(MODEL, script(replies));
    let model = model.tools(tools.clone()).unwrap();
    Graph::builder("desk")
        .node(MODEL, model)
        .node(TOOLS, ToolNode::new(Tools::new(tools).unwrap()))
        .node("billing", |_: View<Desk>, _: NodeCx| async {
            Ok::<_, NodeError>(DeskUpdate::default().billed(true))
        })
        .edge(START, MODEL)
        .route(
            MODEL,
            &[TOOLS, END],
            |desk: &Desk| match superstep_agent::unanswered_calls(&desk.messages).is_empty() {
                true => END,
                false => TOOLS,
            },
        )
        .commands(TOOLS, &["billing"])
        .edge(TOOLS, MODEL)
        .edge("billing", END)
        .build()
        .unwrap()
}

#[derive(Clone, Debug, Default, State)]
struct Wrong {
    nothing_of_it: u8,
}

async fn run_desk(replies: Json) -> RunResult<Desk> {
    let runtime = Runtime::new(Memory::new());
    let thread = runtime.thread(&desk(replies), "t").unwrap();
    let input = DeskUpdate::default().messages(ChatMessage::user("Help."));
    thread.start(input).await.unwrap()
}

#[tokio::test]
async fn a_tool_writes_to_the_state_and_chooses_the_next_node() {
    let stopped = run_desk(json!([
        { "at": "model", "tool_calls": [{ "name": "open", "args": { "note": "money" } }] },
    ]))
    .await;
    assert_eq!(stopped.outcome, Outcome::Finished);
    assert_eq!(
        (stopped.state.ticket, stopped.state.billed),
        (Some(7), true)
    );

    // Without a target, the edge leads back to the model.
    let stopped = run_desk(json!([
        { "at": "model", "tool_calls": [{ "name": "open", "args": { "note": "a bell" } }] },
        { "at": "model", "expect": "ticket 7", "text": "Done." },
    ]))
    .await;
    assert_eq!(
        (stopped.state.ticket, stopped.state.billed),
        (Some(7), false)
    );
    assert_eq!(stopped.state.messages.len(), 4);

    let stopped = run_desk(json!([
        { "at": "model", "tool_calls": [
            { "name": "remember", "args": { "note": "a" } },
            { "name": "remember", "args": { "note": "b" } } ] },
        { "at": "model", "text": "Done." },
    ]))
    .await;
    assert_eq!(stopped.state.notes, ["a", "b"]);
}

#[tokio::test]
async fn updates_of_tools_that_contradict_each_other_or_the_state_fail_the_node() {
    for (calls, why) in [
        (
            json!([
                { "name": "open", "args": { "note": "a" } },
                { "name": "open_another", "args": { "note": "b" } },
            ]),
            "`open_another` writes `ticket`",
        ),
        (
            json!([{ "name": "wrong", "args": { "note": "a" } }]),
            "no such field",
        ),
        (
            json!([{ "name": "forget", "args": { "note": "a" } }]),
            "overwrites",
        ),
    ] {
        let stopped = run_desk(json!([{ "at": "model", "tool_calls": calls }])).await;
        let Outcome::Failed(failures) = &stopped.outcome else {
            panic!("{:?}", stopped.outcome);
        };
        assert!(failures[0].message.contains(why), "{}", failures[0].message);
    }
}
