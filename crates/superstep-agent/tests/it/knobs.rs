//! Settings of an agent: what its requests carry, how many calls it makes at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use superstep::{Memory, Outcome, RunResult, Runtime, Thread};
use superstep_agent::{Agent, AgentBuilder, AgentState, Approval, Tool, tool};

use crate::kit::{Note, questions, script};

fn thread(agent: AgentBuilder) -> Thread<AgentState> {
    let graph = agent.build().unwrap();
    Runtime::new(Memory::default()).thread(&graph, "t").unwrap()
}

async fn run(agent: AgentBuilder) -> RunResult<AgentState> {
    thread(agent).start(AgentState::ask("go")).await.unwrap()
}

#[tokio::test]
async fn every_request_carries_the_settings() {
    let model = script(json!([
        { "at": "model", "tool_calls": [{ "name": "look", "args": { "note": "around" } }] },
        { "at": "model", "text": "done" }
    ]));
    let agent = Agent::builder(model.clone())
        .tools([Crowd::default().tool("look")])
        .tokens_max(64)
        .temperature(0.25)
        .top_p(0.5)
        .stop("END")
        .stop("STOP")
        .seed(7);
    assert_eq!(run(agent).await.outcome, Outcome::Finished);
    let prompts = model.prompts();
    assert_eq!(prompts.len(), 2);
    for asked in prompts {
        assert_eq!(asked.tokens_max, Some(64));
        assert_eq!(asked.temperature, Some(0.25));
        assert_eq!(asked.top_p, Some(0.5));
        assert_eq!(asked.stop, ["END", "STOP"]);
        assert_eq!(asked.seed, Some(7));
    }
}

/// Counts how many calls are in progress at once.
#[derive(Clone, Default)]
struct Crowd {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    started: Arc<Mutex<Vec<String>>>,
}

impl Crowd {
    fn tool(&self, name: &'static str) -> Tool {
        let crowd = self.clone();
        tool(name, "Looks.", move |note: Note, _| {
            let crowd = crowd.clone();
            async move {
                crowd.started.lock().unwrap().push(note.note.clone());
                let now = crowd.now.fetch_add(1, Ordering::SeqCst) + 1;
                crowd.most.fetch_max(now, Ordering::SeqCst);
                // The first call takes longest, so results that came in order of their ends would be the wrong way round.
                let turns = if note.note == "0" { 50 } else { 5 };
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
                crowd.now.fetch_sub(1, Ordering::SeqCst);
                Ok(format!("saw {}", note.note))
            }
        })
        .read()
    }
}

/// A model that requests these calls, numbered, and then answers.
fn requests(tools: &[&str]) -> Arc<superstep_llm::Script> {
    let calls: Vec<_> = tools
        .iter()
        .enumerate()
        .map(|(at, name)| json!({ "name": name, "args": { "note": at.to_string() } }))
        .collect();
    script(json!([
        { "at": "model", "tool_calls": calls },
        { "at": "model", "text": "done" }
    ]))
}

#[tokio::test]
async fn no_more_calls_than_the_limit_are_in_progress_at_once() {
    for (limit, most) in [(Some(1), 1), (Some(2), 2), (Some(9), 4), (None, 4)] {
        let crowd = Crowd::default();
        let mut agent = Agent::builder(requests(&["look"; 4])).tools([crowd.tool("look")]);
        if let Some(limit) = limit {
            agent = agent.parallel_tools(limit);
        }
        let state = run(agent).await.state;
        assert_eq!(crowd.most.load(Ordering::SeqCst), most, "limit {limit:?}");
        let results: Vec<_> = state.messages[2..6].iter().map(|m| m.text()).collect();
        assert_eq!(results, ["saw 0", "saw 1", "saw 2", "saw 3"]);
        if limit == Some(1) {
            assert_eq!(*crowd.started.lock().unwrap(), ["0", "1", "2", "3"]);
        }
    }
}

#[tokio::test]
async fn one_call_at_a_time_waits_for_the_approval_of_the_call_before() {
    let crowd = Crowd::default();
    let mail = crowd.tool("mail").approved_by_a_person(Approval::always());
    let model = requests(&["look", "mail", "look"]);
    let agent = Agent::builder(model).tools([crowd.tool("look"), mail]);
    let thread = thread(agent.parallel_tools(1));
    let paused = thread.start(AgentState::ask("go")).await.unwrap();
    assert_eq!(questions(&paused).len(), 1);
    assert_eq!(*crowd.started.lock().unwrap(), ["0"]);
    let ended = thread.answer_only(json!({ "type": "accept" })).await;
    assert_eq!(ended.unwrap().unwrap().outcome, Outcome::Finished);
    assert_eq!(*crowd.started.lock().unwrap(), ["0", "1", "2"]);
}

#[tokio::test]
async fn with_a_limit_of_two_other_calls_go_on_while_one_waits_for_a_person() {
    let crowd = Crowd::default();
    let mail = crowd.tool("mail").approved_by_a_person(Approval::always());
    let model = requests(&["mail", "look", "look", "look"]);
    let agent = Agent::builder(model).tools([crowd.tool("look"), mail]);
    let thread = thread(agent.parallel_tools(2));
    let paused = thread.start(AgentState::ask("go")).await.unwrap();
    assert_eq!(questions(&paused).len(), 1);
    assert_eq!(*crowd.started.lock().unwrap(), ["1", "2", "3"]);
}

#[tokio::test]
async fn the_context_of_a_run_chooses_among_the_declared_models() {
    let says = |text: &str| script(json!([{ "at": "model", "text": text }]));
    for (context, answer) in [
        (None, "slow and sure"),
        (Some(json!({ "model": "fast" })), "quick"),
        (Some(json!({ "model": "local" })), "at home"),
        (Some(json!({ "model": null })), "slow and sure"),
        (Some(json!({ "person": "ada" })), "slow and sure"),
        (Some(json!("ada")), "slow and sure"),
    ] {
        let agent = Agent::builder(says("slow and sure"))
            .model_choice("fast", says("quick"))
            .model_choice("local", says("at home"));
        let mut thread = thread(agent);
        if let Some(context) = &context {
            thread = thread.with_context(context).unwrap();
        }
        let ended = thread.start(AgentState::ask("go")).await.unwrap();
        assert_eq!(ended.state.answer(), answer, "{context:?}");
    }
}

#[tokio::test]
async fn an_unknown_model_fails_before_anything_is_spent_and_lists_the_names() {
    for (chosen, named) in [(json!("fats"), "`fats`"), (json!(7), "`7`")] {
        let default = script(json!([{ "at": "model", "text": "hello" }]));
        let fast = script(json!([{ "at": "model", "text": "hello" }]));
        let agent = Agent::builder(default.clone())
            .model_choice("fast", fast.clone())
            .model_choice("local", fast.clone());
        let thread = thread(agent)
            .with_context(json!({ "model": chosen }))
            .unwrap();
        let ended = thread.start(AgentState::ask("go")).await.unwrap();
        let Outcome::Failed(failed) = ended.outcome else {
            panic!("{:?}", ended.outcome);
        };
        let why = format!("{failed:?}");
        assert!(
            why.contains(named) && why.contains("it has `fast`, `local`"),
            "{why}"
        );
        assert!(default.prompts().is_empty() && fast.prompts().is_empty());
    }
}
