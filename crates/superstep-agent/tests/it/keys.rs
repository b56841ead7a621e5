//! Keys: the same for every go at a call, another one on a fork, and not used past their time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use superstep::checkpoint::format::Change;
use superstep::{Memory, NodeError, Outcome, Runtime, Seq, Thread};
use superstep_agent::{Agent, AgentState, Go, HookCx, Hooks, Tool, ToolCx, tool};
use superstep_llm::{BoxFuture, ToolCall};

use crate::kit::{Note, questions, script};
use crate::mortal::{Fate, Mortal};
use crate::world::{Line, World, finish, process};

fn world() -> World {
    World {
        store: Arc::new(Memory::default()),
        receiver: Arc::default(),
        asked: Arc::default(),
        mutant: None,
    }
}

#[tokio::test]
async fn a_fork_pays_again_under_a_key_of_its_own() {
    let world = world();
    let fate = Fate::never();
    let thread = process(&world, &fate, &Line::new(&world, &fate), &["pay"]);
    finish(&world, &thread).await;
    // Back to where the model has decided and nothing is paid.
    let history = thread.history(Seq(0), 100).await.unwrap();
    let advanced = |change: &Change| matches!(change, Change::FrameAdvanced(_));
    let decided = history
        .iter()
        .find(|past| past.entry.changes.iter().any(advanced));
    let decided = decided.expect("the superstep of the model").seq;
    let stopped = thread.replay(decided).await.unwrap();
    assert_eq!(stopped.outcome, Outcome::Finished);
    let effects = world.receiver.effects();
    let keys: Vec<_> = effects.happened.iter().map(|(_, key, _)| key).collect();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0], keys[1]);
}

/// A keyed tool whose receiver forgets at once.
fn forgotten(calls: &Arc<AtomicU32>, fate: &Arc<Fate>) -> Tool {
    let (calls, fate) = (calls.clone(), fate.clone());
    tool("pay", "Pays.", move |_: Note, _: ToolCx| {
        let (calls, fate) = (calls.clone(), fate.clone());
        async move {
            calls.fetch_add(1, Ordering::SeqCst);
            fate.point().await;
            Ok("paid")
        }
    })
    .keyed()
    .key_lifetime(Some(Duration::ZERO))
}

fn pays(store: &Memory, fate: &Arc<Fate>, tool: Tool) -> Thread<AgentState> {
    let model = script(json!([
        { "at": "model", "tool_calls": [{ "id": "c", "name": "pay", "args": { "note": "x" } }] },
        { "at": "model", "text": "Done." }
    ]));
    let graph = Agent::builder(model).tools([tool]).build().unwrap();
    let store = Mortal::new(Arc::new(store.clone()), fate.clone());
    Runtime::new(store).thread(&graph, "t").unwrap()
}

#[tokio::test]
async fn a_key_that_the_receiver_may_have_forgotten_is_not_used_again() {
    let mut died = false;
    for death in 1..=40 {
        let fate = Fate::at(death);
        let store = Memory::default();
        let calls = Arc::new(AtomicU32::new(0));
        let thread = pays(&store, &fate, forgotten(&calls, &fate));
        if fate
            .lives(thread.start(AgentState::ask("go")))
            .await
            .is_some()
        {
            break;
        }
        if calls.load(Ordering::SeqCst) == 0 {
            continue;
        }
        died = true;
        let fate = Fate::never();
        let thread = pays(&store, &fate, forgotten(&calls, &fate));
        // The second process has a script of its own, which begins at the first reply; only the tool is of interest.
        let stopped = thread.recover().await.unwrap();
        assert!(calls.load(Ordering::SeqCst) == 1, "death at {death}");
        if let Outcome::Paused(_) = &stopped.outcome {
            assert_eq!(questions(&stopped)[0].kind, "outcome_unknown");
            return;
        }
    }
    panic!("nobody was asked; died: {died}");
}

/// Changes the arguments to something else each time.
struct Fickle(AtomicU32);

impl Hooks for Fickle {
    fn before_tool<'a>(
        &'a self,
        call: &'a mut ToolCall,
        _: &'a HookCx<'a>,
    ) -> BoxFuture<'a, Result<Go, NodeError>> {
        call.args["note"] = json!(format!("{}", self.0.fetch_add(1, Ordering::SeqCst)));
        Box::pin(async { Ok(Go::On) })
    }
}

#[tokio::test]
async fn under_one_key_there_is_one_set_of_arguments() {
    let model = script(json!([
        { "at": "model", "tool_calls": [
            { "id": "c", "name": "pay", "args": { "note": "x" } },
        ] },
        { "at": "model", "text": "Done." }
    ]));
    let lost = tool("pay", "Pays.", |_: Note, _| async {
        Err::<(), _>(superstep_agent::ToolError::unknown("nothing came back"))
    });
    let graph = Agent::builder(model)
        .tools([lost])
        .hooks(Fickle(AtomicU32::new(0)))
        .build()
        .unwrap();
    let thread = Runtime::new(Memory::default()).thread(&graph, "t").unwrap();
    let paused = thread.start(AgentState::ask("go")).await.unwrap();
    assert_eq!(questions(&paused).len(), 1);
    let stopped = thread
        .answer_only(json!({ "type": "call" }))
        .await
        .unwrap()
        .unwrap();
    let Outcome::Failed(failures) = &stopped.outcome else {
        panic!("it was called with other arguments: {:?}", stopped.outcome);
    };
    assert!(
        failures[0].to_string().contains("other arguments"),
        "{}",
        failures[0]
    );
}

/// A tool that notes the fence of each call, and can die in it.
fn noted(fences: &Arc<Mutex<Vec<u64>>>, fate: &Arc<Fate>) -> Tool {
    let (fences, fate) = (fences.clone(), fate.clone());
    tool("pay", "Pays.", move |_: Note, cx: ToolCx| {
        fences.lock().unwrap().push(cx.fence());
        let fate = fate.clone();
        async move {
            fate.point().await;
            Ok("paid")
        }
    })
    .idempotent()
}

#[tokio::test]
async fn the_fence_rises_when_another_takes_the_thread_over() {
    for death in 1..=40 {
        let store = Memory::default();
        let fences = Arc::default();
        let fate = Fate::at(death);
        let thread = pays(&store, &fate, noted(&fences, &fate));
        fate.lives(thread.start(AgentState::ask("go"))).await;
        if fences.lock().unwrap().is_empty() {
            continue;
        }
        let fate = Fate::never();
        let thread = pays(&store, &fate, noted(&fences, &fate));
        thread.recover().await.unwrap();
        let fences = fences.lock().unwrap().clone();
        // Its script begins anew and wants another call; that one is made under the same fence.
        assert!(fences[0] < fences[1], "{fences:?}");
        return;
    }
    panic!("the tool was never called");
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_asked_about() {
    let slow = tool("pay", "Pays.", |_: Note, _| async {
        std::future::pending::<()>().await;
        Ok(())
    })
    .timeout(Duration::from_millis(1));
    let fate = Fate::never();
    let thread = pays(&Memory::default(), &fate, slow);
    let paused = thread.start(AgentState::ask("go")).await.unwrap();
    assert_eq!(questions(&paused)[0].kind, "outcome_unknown");
}
