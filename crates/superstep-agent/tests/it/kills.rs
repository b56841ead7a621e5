//! An agent with a tool of each class, killed at every point: before and after every write of the store, every delivery to
//! the receiver, every lookup and every call of the model.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use superstep::Memory;
use superstep::checkpoint::Checkpointer;
use superstep_agent::AgentState;
use superstep_llm::Message;
use superstep_sqlite::Sqlite;

use crate::mortal::Fate;
use crate::world::{Line, Mutant, RESULTS, World, finish, process};

const ALL: [&str; 5] = ["look", "put", "pay", "post", "send"];

fn world(store: Arc<dyn Checkpointer>, mutant: Option<Mutant>) -> World {
    World {
        store,
        receiver: Arc::default(),
        asked: Arc::default(),
        mutant,
    }
}

/// Lives that end at these points, and then one that does not. Gives how many points the last one had.
async fn lives(world: &World, deaths: &[u64]) -> (AgentState, u32, u64) {
    for death in deaths {
        let fate = Fate::at(*death);
        let thread = process(world, &fate, &Line::new(world, &fate), &ALL);
        fate.lives(finish(world, &thread)).await;
    }
    let fate = Fate::never();
    let thread = process(world, &fate, &Line::new(world, &fate), &ALL);
    let (state, asked) = finish(world, &thread).await;
    (state, asked, fate.points())
}

/// What is wrong with how it went, if something is.
fn fault(world: &World, state: &AgentState, deaths: u64) -> Option<String> {
    let wanted: Vec<_> = RESULTS.iter().map(|(_, result)| *result).collect();
    let wanted = format!("done: {}", wanted.join(", "));
    if state.answer() != wanted {
        return Some(format!("the answer is {:?}", state.answer()));
    }
    let asked = world.asked.load(Ordering::SeqCst);
    if asked > 2 + deaths {
        return Some(format!("the model was asked {asked} times"));
    }
    let decided: Vec<_> = state
        .messages
        .iter()
        .flat_map(|kept| match &kept.message {
            Message::Assistant(answer) => answer.tool_calls.clone(),
            _ => Vec::new(),
        })
        .map(|call| call.args["note"].as_str().unwrap().to_owned())
        .collect();
    let effects = world.receiver.effects();
    for tool in ["pay", "post", "send"] {
        let happened: Vec<_> = effects
            .happened
            .iter()
            .filter(|(name, ..)| name == tool)
            .collect();
        match happened.as_slice() {
            [(_, _, note)] if *note == decided[0] => {}
            other => {
                return Some(format!(
                    "`{tool}` happened so: {other:?}, decided was {decided:?}"
                ));
            }
        }
    }
    if effects.puts != 1 || effects.put.as_ref() != Some(&decided[0]) {
        return Some(format!("`put` changed {} times", effects.puts));
    }
    None
}

/// Kills at every point, and gives the first fault with the number of trials and questions.
async fn sweep(
    mutant: Option<Mutant>,
    store: impl Fn() -> Arc<dyn Checkpointer>,
) -> Result<(u64, u32), String> {
    let calm = world(store(), None);
    let (state, asked, points) = lives(&calm, &[]).await;
    assert_eq!((fault(&calm, &state, 0), asked), (None, 0));
    let mut questions = 0;
    for death in 1..=points {
        let world = world(store(), mutant);
        let (state, asked, _) = lives(&world, &[death]).await;
        questions += asked;
        if let Some(fault) = fault(&world, &state, 1) {
            return Err(format!("death at {death} of {points}: {fault}"));
        }
    }
    Ok((points, questions))
}

fn memory() -> Arc<dyn Checkpointer> {
    Arc::new(Memory::default())
}

#[tokio::test]
async fn killed_at_every_point_it_does_everything_once_or_asks() {
    let (points, questions) = sweep(None, memory).await.unwrap();
    eprintln!("{points} deaths, {questions} questions");
    assert!(points > 30, "{points}");
    // Between the record of the start and that of the end there is a handful of points.
    assert!(
        (1..points / 2).contains(&u64::from(questions)),
        "{questions}"
    );
}

#[tokio::test]
async fn the_same_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let next = std::sync::atomic::AtomicU32::new(0);
    let store = || -> Arc<dyn Checkpointer> {
        let at = next.fetch_add(1, Ordering::SeqCst);
        Arc::new(Sqlite::open(dir.path().join(format!("{at}.db"))).unwrap())
    };
    let (points, questions) = sweep(None, store).await.unwrap();
    eprintln!("{points} deaths, {questions} questions");
}

#[tokio::test]
async fn killed_twice_it_does_everything_once_or_asks() {
    let mut trials = 0;
    for first in (1..46).step_by(2) {
        for second in (1..30).step_by(4) {
            let world = world(memory(), None);
            let (state, ..) = lives(&world, &[first, second]).await;
            assert_eq!(
                fault(&world, &state, 2),
                None,
                "deaths at {first} and {second}"
            );
            trials += 1;
        }
    }
    eprintln!("{trials} trials");
}

#[tokio::test]
async fn the_sweep_has_teeth() {
    for (mutant, tool) in [
        (Mutant::RandomKey, "pay"),
        (Mutant::NoStart, ""),
        (Mutant::BlindLookup, "post"),
    ] {
        let caught = sweep(Some(mutant), memory).await;
        let fault = caught.expect_err(&format!("{mutant:?} was not noticed"));
        assert!(fault.contains(tool), "{mutant:?}: {fault}");
    }
}
