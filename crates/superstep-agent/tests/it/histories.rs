//! Long conversations: what the model still reads of them.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::checkpoint::Checkpointer;
use superstep::store::{MemoryStore, Search, Store};
use superstep::{Memory, Outcome, Runtime, Thread, Timestamp};
use superstep_agent::budget::{Limits, Meter};
use superstep_agent::{
    Agent, AgentState, AgentStateUpdate, ChatMessage, Hooks, Spending, SummarizeHistory, Tool,
    TrimHistory, tool,
};
use superstep_conformance::Prng;
use superstep_llm::{Answer, Message, Request, Script, ToolCall};

use crate::kit::{Note, questions, script};
use crate::mortal::{Fate, KillSweep, Mortal};

/// A conversation in which a person writes, and the model answers or calls tools, at random.
fn conversation(random: &mut Prng) -> Vec<Message> {
    let mut said = Vec::new();
    for turn in 0..random.below(6) + 1 {
        said.push(Message::user(format!("question {turn}")));
        for round in 0..random.below(4) {
            let calls: Vec<_> = (0..random.below(3) + 1)
                .map(|at| ToolCall {
                    id: format!("c{turn}_{round}_{at}"),
                    name: "look".to_owned(),
                    args: json!({ "note": "x".repeat(random.below(60) + 1) }),
                })
                .collect();
            said.push(Message::Assistant(Answer {
                tool_calls: calls.clone(),
                ..Answer::default()
            }));
            said.extend(calls.iter().map(|call| Message::tool(call, "y".repeat(40))));
        }
        said.push(Message::assistant(format!("answer {turn}")));
    }
    said.push(Message::user("the last question"));
    said
}

/// Runs an agent over a conversation with one more answer to come, and returns what its model read.
async fn read_by_model(said: &[Message], hooks: impl Hooks) -> Vec<Message> {
    let model = script(json!([{ "at": "model", "text": "done" }]));
    let graph = Agent::builder(model.clone())
        .system("Be brief.")
        .hooks(hooks)
        .build()
        .unwrap();
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    let said = said
        .iter()
        .map(|message| ChatMessage::new(message.clone(), []));
    let input = AgentStateUpdate::default().messages_all(said.collect::<Vec<_>>());
    let ended = thread.start(input).await.unwrap();
    assert_eq!(ended.outcome, Outcome::Finished);
    model.prompts().remove(0).messages
}

/// What a provider would refuse in these messages.
fn fault(messages: &[Message]) -> Option<String> {
    let [Message::System { .. }, Message::User { .. }, ..] = messages else {
        return Some("it does not begin with the person".to_owned());
    };
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        match message {
            Message::Tool(result) => {
                let call = open.iter().position(|id| *id == result.tool_call_id);
                match call {
                    Some(at) => drop(open.remove(at)),
                    None => return Some(format!("{} has no call", result.tool_call_id)),
                }
            }
            _ if !open.is_empty() => return Some(format!("{open:?} have no results")),
            _ => open.extend(message.tool_calls().iter().map(|call| call.id.as_str())),
        }
    }
    (!open.is_empty()).then(|| format!("{open:?} have no results"))
}

#[tokio::test]
async fn whatever_is_left_of_a_conversation_is_one_that_providers_take() {
    for seed in 0..60 {
        let mut random = Prng::new(seed);
        let said = conversation(&mut random);
        for most in [1, 2, 3, 5, 8, 1_000] {
            let read = read_by_model(&said, TrimHistory::last(most)).await;
            assert_eq!(fault(&read), None, "seed {seed}, last {most}: {read:#?}");
            // The system prompt, and the question that the newest messages belong to.
            assert!(read.len() <= most + 2, "seed {seed}, last {most}");
            assert_eq!(read.last(), said.last());
            if most >= said.len() {
                assert_eq!(read[1..], said);
            }
        }
        for size in [1_100, 1_200, 1_500, 100_000] {
            let read = read_by_model(&said, TrimHistory::tokens(size)).await;
            assert_eq!(fault(&read), None, "seed {seed}, tokens {size}: {read:#?}");
        }
    }
}

#[tokio::test]
async fn trimming_keeps_the_newest_and_the_question_they_belong_to() {
    let call = |id: &str| ToolCall {
        id: id.to_owned(),
        name: "look".to_owned(),
        args: json!({}),
    };
    let calls = |id: &str| {
        Message::Assistant(Answer {
            tool_calls: vec![call(id)],
            ..Answer::default()
        })
    };
    let said = [
        Message::user("old"),
        Message::assistant("old answer"),
        Message::user("new"),
        calls("1"),
        Message::tool(&call("1"), "one"),
        calls("2"),
        Message::tool(&call("2"), "two"),
    ];
    let read = read_by_model(&said, TrimHistory::last(3)).await;
    let wanted = [&said[2], &said[5], &said[6]];
    assert_eq!(read[1..].iter().collect::<Vec<_>>(), wanted);
}

fn long(tool_calls: usize) -> Json {
    let mut replies: Vec<Json> = (0..tool_calls)
        .map(|at| {
            let note = format!("{at:0>60}");
            json!({ "at": "model", "tool_calls": [{ "name": "look", "args": { "note": note } }] })
        })
        .collect();
    replies.push(json!({ "at": "model", "text": "done" }));
    Json::Array(replies)
}

fn look() -> Tool {
    tool(
        "look",
        "Looks.",
        |note: Note, _| async move { Ok(note.note) },
    )
    .read()
}

/// A model that summarizes: each summary says how many there were before.
fn summarizer() -> Arc<Script> {
    let replies: Vec<_> = (1..30)
        .map(|at| json!({ "at": "model summary", "text": format!("summary {at}") }))
        .collect();
    script(Json::Array(replies))
}

fn summarizing(
    model: Arc<Script>,
    summarizer: &Arc<Script>,
    store: &Arc<MemoryStore>,
    checkpoints: impl Checkpointer,
) -> Thread<AgentState> {
    let hook = SummarizeHistory::new(summarizer.clone(), store.clone()).over(300);
    let agent = Agent::builder(model).system("Be brief.").tools([look()]);
    let graph = agent.hooks(hook).build().unwrap();
    Runtime::new(checkpoints).thread(&graph, "t").unwrap()
}

fn texts(request: &Request) -> String {
    let texts: Vec<_> = request.messages.iter().map(Message::text).collect();
    texts.join("\n")
}

#[tokio::test]
async fn each_part_of_a_conversation_is_summarized_once() {
    let (model, summarizer, store) = (script(long(12)), summarizer(), Arc::default());
    let thread = summarizing(model.clone(), &summarizer, &store, Memory::default());
    let ended = thread.start(AgentState::ask("find it")).await.unwrap();
    assert_eq!(ended.state.answer(), "done");
    // The conversation itself is complete.
    assert_eq!(ended.state.messages.len(), 1 + 2 * 12 + 1);
    for asked in model.prompts() {
        assert_eq!(fault(&asked.messages), None, "{asked:#?}");
        assert!(texts(&asked).contains("find it"), "{asked:#?}");
        let tokens: u64 = asked
            .messages
            .iter()
            .map(superstep_llm::fit::tokens_of)
            .sum();
        assert!(tokens < 500, "{tokens}");
    }
    let asked = summarizer.prompts();
    assert!((2..8).contains(&asked.len()), "{}", asked.len());
    // Each result is in one request for a summary, and each request has the summary before.
    for at in 0..6 {
        let result = format!("[tool result]\n{at:0>60}\n");
        let of: Vec<_> = asked
            .iter()
            .filter(|asked| texts(asked).contains(&result))
            .collect();
        assert_eq!(of.len(), 1, "result {at}");
    }
    assert!(!texts(&asked[0]).contains("summary so far"));
    assert!(texts(&asked[1]).contains("[summary so far]\nsummary 1"));
    let last = model.prompts().pop().unwrap();
    let newest = format!("so far:\nsummary {}", asked.len());
    assert!(texts(&last).contains(&newest), "{}", texts(&last));
}

#[tokio::test]
async fn another_process_uses_the_summaries_that_there_are() {
    let (store, checkpoints) = (Arc::<MemoryStore>::default(), Arc::new(Memory::default()));
    let first = summarizer();
    let thread = summarizing(
        script(long(8)),
        &first,
        &store,
        Mortal::new(checkpoints.clone(), Fate::never()),
    );
    thread.start(AgentState::ask("find it")).await.unwrap();
    assert!(!first.prompts().is_empty());

    let second = script(json!([]));
    let model = script(json!([{ "at": "model", "expect": "so far:\nsummary", "text": "again" }]));
    let thread = summarizing(
        model,
        &second,
        &store,
        Mortal::new(checkpoints, Fate::never()),
    );
    let ended = thread.start(AgentState::ask("and?")).await.unwrap();
    assert_eq!(ended.state.answer(), "again");
    assert!(second.prompts().is_empty());
}

#[tokio::test]
async fn a_short_conversation_is_not_summarized() {
    let (summarizer, store) = (summarizer(), Arc::<MemoryStore>::default());
    let thread = summarizing(script(long(1)), &summarizer, &store, Memory::default());
    thread.start(AgentState::ask("find it")).await.unwrap();
    assert!(summarizer.prompts().is_empty());
    let search = Search::default();
    assert!(
        store
            .search(&search, Timestamp(0))
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_summary_within_a_limit_asks_a_person() {
    let (summarizer, store) = (summarizer(), Arc::<MemoryStore>::default());
    let spending = Spending::new(store.clone()).per_thread(Limits::of(Meter::Calls, 1));
    let hook = SummarizeHistory::new(summarizer.clone(), store)
        .over(300)
        .spending(spending);
    let model = script(long(12));
    let graph = Agent::builder(model)
        .tools([look()])
        .hooks(hook)
        .build()
        .unwrap();
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    let paused = thread.start(AgentState::ask("find it")).await.unwrap();
    assert_eq!(questions(&paused)[0].kind, "budget");
    assert_eq!(summarizer.prompts().len(), 1);
    let ended = thread
        .answer_only(json!({ "type": "raise", "by": 50 }))
        .await;
    assert_eq!(ended.unwrap().unwrap().state.answer(), "done");
    assert!(summarizer.prompts().len() > 1);
}

#[tokio::test]
async fn summary_and_model_at_the_same_limit_ask_apart() {
    let (summarizer, store) = (summarizer(), Arc::<MemoryStore>::default());
    // Enough for the calls before the first summary, and for nothing after it.
    let spending = Spending::new(store.clone()).per_thread(Limits::of(Meter::Calls, 3));
    let hook = SummarizeHistory::new(summarizer.clone(), store)
        .over(60)
        .spending(spending.clone());
    let graph = Agent::builder(script(long(12)))
        .tools([look()])
        .hooks(hook)
        .spending(spending)
        .build()
        .unwrap();
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    let mut ended = thread.start(AgentState::ask("find it")).await.unwrap();
    let mut keys = Vec::new();
    while let Outcome::Paused(questions) = &ended.outcome {
        keys.push(questions[0].key.clone());
        let answer = json!({ "type": "stop" });
        ended = thread.answer_only(answer).await.unwrap().unwrap();
    }
    assert_eq!(ended.outcome, Outcome::Finished, "{keys:?}");
    assert!(
        keys.iter().any(|key| key.starts_with("summary:")),
        "{keys:?}"
    );
    assert!(
        keys.iter().any(|key| key.starts_with("budget:")),
        "{keys:?}"
    );
}

#[tokio::test]
async fn an_empty_summary_is_not_used() {
    let empty: Vec<_> = (1..30)
        .map(|_| json!({ "at": "model summary", "text": "" }))
        .collect();
    let (summarizer, store) = (script(Json::Array(empty)), Arc::<MemoryStore>::default());
    let model = script(long(12));
    let thread = summarizing(model.clone(), &summarizer, &store, Memory::default());
    let ended = thread.start(AgentState::ask("find it")).await.unwrap();
    assert_eq!(ended.state.answer(), "done");
    assert!(!summarizer.prompts().is_empty());
    let last = texts(model.prompts().last().unwrap());
    assert!(last.contains("find it"), "{last}");
    assert!(!last.contains("Summary of the conversation"), "{last}");
}

#[tokio::test]
async fn a_message_that_is_too_long_to_be_summarized_loses_its_middle() {
    let (model, summarizer, store) = (script(long(3)), summarizer(), Arc::default());
    let thread = summarizing(model, &summarizer, &store, Memory::default());
    // Far more than the model that summarizes needs to have room for: twice 300 tokens, and 4,096 for instructions and answer.
    let asked = format!("find it {} in the attic", "straw ".repeat(20_000));
    let ended = thread.start(AgentState::ask(asked)).await.unwrap();
    assert_eq!(ended.state.answer(), "done");
    let asked = &summarizer.prompts()[0];
    let tokens: u64 = asked
        .messages
        .iter()
        .map(superstep_llm::fit::tokens_of)
        .sum();
    assert!(tokens <= 2 * 300 + 4_096, "{tokens}");
    let text = texts(asked);
    assert!(text.contains("find it straw") && text.contains("in the attic"));
}

/// What outlives a process that summarizes.
struct World {
    store: Arc<MemoryStore>,
    checkpoints: Arc<Memory>,
    model: Arc<Script>,
    summarizer: Arc<Script>,
}

fn world() -> World {
    let repeating = |script: Arc<Script>| Arc::new(Arc::into_inner(script).unwrap().repeating());
    World {
        store: Arc::default(),
        checkpoints: Arc::default(),
        model: repeating(script(long(12))),
        summarizer: repeating(summarizer()),
    }
}

#[tokio::test]
async fn killed_at_every_point_it_repeats_at_most_one_summary() {
    let sweep = KillSweep::new(world, async |world: &World, fate| {
        let checkpoints = fate.checkpointer((*world.checkpoints).clone());
        let (model, store) = (world.model.clone(), &world.store);
        let thread = summarizing(model, &world.summarizer, store, checkpoints);
        let run = thread.start_once("once", AgentState::ask("find it"));
        run.await.unwrap().state.answer().to_owned()
    });
    let mut calm = None;
    let report = sweep.run(async |trial| {
        let summaries = trial.world.summarizer.prompts().len();
        let calm = *calm.get_or_insert(summaries);
        assert!(calm > 1, "{calm}");
        assert!(
            summaries <= calm + 1,
            "{summaries} summaries, {calm} if calm"
        );
    });
    let report = report.await.unwrap();
    assert_eq!(report.calm, "done");
    assert_eq!(report.kills, report.points);
}
