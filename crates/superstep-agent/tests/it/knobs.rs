//! Settings of an agent: what its requests carry, how many calls it makes at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::label::Label;
use superstep::{Memory, NodeError, Outcome, RunResult, Runtime, State, Thread};
use superstep_agent::{
    Agent, AgentBuilder, AgentError, AgentState, Approval, ChatMessage, Conversation, EndReason,
    Go, HookCx, Hooks, Spent, Supervisor, Tool, Turn, tool,
};
use superstep_llm::{BoxFuture, Reply};

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

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Weather {
    city: String,
    /// In degrees Celsius.
    degrees: i32,
    #[serde(default)]
    rain: bool,
}

fn bergen() -> Weather {
    Weather {
        city: "Bergen".to_owned(),
        degrees: 9,
        rain: true,
    }
}

#[tokio::test]
async fn after_the_loop_the_agent_answers_with_the_type() {
    let model = script(json!([
        { "at": "model", "tool_calls": [{ "name": "look", "args": { "note": "Bergen" } }] },
        { "at": "model", "text": "Nine degrees and rain in Bergen." },
        { "at": "model", "expect": "as JSON", "json": { "city": "Bergen", "degrees": 9, "rain": true } }
    ]));
    let agent = Agent::builder(model.clone())
        .tools([Crowd::default().tool("look")])
        .temperature(0.5)
        .stop("END")
        .answers_with::<Weather>();
    let state = run(agent).await.state;
    assert_eq!(state.answer_as::<Weather>().unwrap(), Some(bergen()));
    assert_eq!(state.answer(), "Nine degrees and rain in Bergen.");
    assert_eq!((state.ended, state.spent.model_calls), (None, 3));
    let prompts = model.prompts();
    // A schema and tools together would make servers ignore one of the two.
    assert!(prompts[1].output.is_none() && !prompts[1].tools.is_empty());
    assert!(prompts[2].output.is_some() && prompts[2].tools.is_empty());
    assert_eq!(prompts[2].temperature, Some(0.5));
    // A stop text inside the JSON would cut it off.
    assert_eq!(prompts[1].stop, ["END"]);
    assert!(prompts[2].stop.is_empty(), "{:?}", prompts[2].stop);
    model.finish().unwrap();
}

#[tokio::test]
async fn without_tools_one_request_is_enough_and_a_wrong_answer_is_repaired_once() {
    let right = json!({ "at": "model", "json": { "city": "Bergen", "degrees": 9, "rain": true } });
    let model = script(json!([right]));
    let state = run(Agent::builder(model.clone()).answers_with::<Weather>())
        .await
        .state;
    assert_eq!(state.answer_as::<Weather>().unwrap(), Some(bergen()));
    assert_eq!(model.prompts().len(), 1);

    let model = script(json!([{ "at": "model", "text": "Rain." }, right]));
    let state = run(Agent::builder(model).answers_with::<Weather>())
        .await
        .state;
    assert_eq!(state.answer_as::<Weather>().unwrap(), Some(bergen()));
    assert_eq!((state.ended, state.spent.model_calls), (None, 2));

    let wrong = json!({ "at": "model", "text": "Rain." });
    let model = script(json!([wrong, wrong, right]));
    let thread = thread(Agent::builder(model).answers_with::<Weather>());
    let state = thread.start(AgentState::ask("go")).await.unwrap().state;
    assert_eq!(state.answer_as::<Weather>().unwrap(), None);
    assert_eq!(state.ended, Some(EndReason::InvalidAnswer));
    // A later run is not bound by it.
    let state = thread.start(AgentState::ask("again")).await.unwrap().state;
    assert_eq!(state.answer_as::<Weather>().unwrap(), Some(bergen()));
    assert_eq!(state.ended, None);
}

#[tokio::test]
async fn at_the_step_limit_the_answer_has_the_type_too() {
    let model = script(json!([
        { "at": "model", "tool_calls": [{ "name": "look", "args": { "note": "Bergen" } }] },
        { "at": "model", "json": { "city": "Bergen", "degrees": 9, "rain": true } }
    ]));
    let agent = Agent::builder(model.clone())
        .tools([Crowd::default().tool("look")])
        .step_limit(2)
        .answers_with::<Weather>();
    let state = run(agent).await.state;
    assert_eq!(state.answer_as::<Weather>().unwrap(), Some(bergen()));
    assert_eq!(state.ended, Some(EndReason::StepLimit));
    assert!(model.prompts()[1].tools.is_empty());
}

#[tokio::test]
async fn the_structured_answer_has_the_labels_of_the_conversation() {
    let model = script(json!([
        { "at": "model", "tool_calls": [{ "name": "look", "args": { "note": "Bergen" } }] },
        { "at": "model", "text": "Rain." },
        { "at": "model", "json": { "city": "Bergen", "degrees": 9 } }
    ]));
    let look = Crowd::default().tool("look").gives(Label::UNTRUSTED);
    let agent = Agent::builder(model)
        .tools([look])
        .answers_with::<Weather>();
    let state = run(agent).await.state;
    let answer = state.structured_answer.unwrap();
    assert!(answer.labels().has(&Label::UNTRUSTED), "{answer:?}");
}

/// Hides the city in every reply.
struct Hides;

impl Hooks for Hides {
    fn after_model<'a>(
        &'a self,
        reply: &'a mut Reply,
        _cx: &'a HookCx<'a>,
    ) -> BoxFuture<'a, Result<Go, NodeError>> {
        reply.answer.content = reply.text().replace("Bergen", "somewhere").into();
        Box::pin(async { Ok(Go::On) })
    }
}

#[tokio::test]
async fn hooks_see_and_change_the_structured_answer() {
    let model = script(json!([{ "at": "model", "json": { "city": "Bergen", "degrees": 9 } }]));
    let agent = Agent::builder(model).answers_with::<Weather>().hooks(Hides);
    let answer = run(agent).await.state.answer_as::<Weather>().unwrap();
    assert_eq!(answer.unwrap().city, "somewhere");
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Nested {
    either: Either,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Either {
    Number(i32),
    Text(String),
}

#[test]
fn a_type_that_servers_cannot_enforce_is_refused_when_the_agent_is_built() {
    let agent = Agent::builder(script(json!([]))).answers_with::<Nested>();
    let refused = agent.build().unwrap_err();
    assert!(matches!(refused, AgentError::Answer { .. }), "{refused}");
    assert!(refused.to_string().contains("`either`"), "{refused}");
}

#[tokio::test]
async fn to_a_supervisor_the_structured_answer_is_the_result() {
    let model = script(json!([
        { "at": "supervisor", "tool_calls": [{ "name": "ask_weather", "args": { "task": "Bergen?" } }] },
        { "at": "weather", "json": { "city": "Bergen", "degrees": 9, "rain": true } },
        { "at": "supervisor", "expect": "\"degrees\":9", "text": "Take a coat." }
    ]));
    let weather = Agent::builder(model.clone()).answers_with::<Weather>();
    let team = Supervisor::builder(Agent::builder(model.clone()))
        .agent("weather", "Knows the weather.", weather)
        .build()
        .unwrap();
    let thread = Runtime::new(Memory::default()).thread(&team, "t").unwrap();
    let ended = thread
        .start(AgentState::ask("Do I need a coat?"))
        .await
        .unwrap();
    assert_eq!(ended.state.answer(), "Take a coat.");
    model.finish().unwrap();
}

/// What the state of an agent was before it had structured answers.
#[derive(Clone, Debug, Default, State)]
struct EarlierState {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    #[state(reduce = Spent::plus)]
    spent: Spent,
    ended: Option<EndReason>,
}

impl Conversation for EarlierState {
    fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    fn said(turn: Turn) -> EarlierStateUpdate {
        EarlierStateUpdate::default()
            .messages_all(turn.messages)
            .spent(turn.spent)
            .ended(turn.ended)
    }
}

#[tokio::test]
async fn a_thread_stored_by_an_earlier_version_resumes() {
    let model = script(json!([
        { "at": "model", "tool_calls": [{ "name": "mail", "args": { "note": "Bergen" } }] },
        { "at": "model", "text": "Rain." },
        { "at": "model", "json": { "city": "Bergen", "degrees": 9, "rain": true } }
    ]));
    let mail = Crowd::default()
        .tool("mail")
        .approved_by_a_person(Approval::always());
    let agent = || Agent::builder(model.clone()).tools([mail.clone()]);
    let runtime = Runtime::new(Memory::default());
    let earlier = agent().build_over::<EarlierState>().unwrap();
    let thread = runtime.thread(&earlier, "t").unwrap();
    let input = EarlierStateUpdate::default().messages(ChatMessage::user("go"));
    assert!(matches!(
        thread.start(input).await.unwrap().outcome,
        Outcome::Paused(_)
    ));

    let now = agent().answers_with::<Weather>().build().unwrap();
    let thread = runtime.thread(&now, "t").unwrap();
    let ended = thread
        .answer_only(json!({ "type": "accept" }))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(ended.state.answer_as::<Weather>().unwrap(), Some(bergen()));
}
