//! An agent with a tool of each class, killed at every point: before and after every write of the store, every delivery to
//! the receiver, every lookup and every call of the model.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use superstep::Memory;
use superstep::checkpoint::Checkpointer;
use superstep_agent::AgentState;
use superstep_llm::Message;
use superstep_sqlite::Sqlite;

use crate::mortal::{Fate, KillFailure, KillSweep, SweepReport, Trial};
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

/// One process: does everything, or what is left of it. Gives how often it had to ask a person.
async fn life(world: &World, fate: &Arc<Fate>) -> (AgentState, u32) {
    let thread = process(world, fate, &Line::new(world, fate), &ALL);
    finish(world, &thread).await
}

/// How it ended. What the model wanted differs each time that it is asked, so it is checked against what happened instead.
#[derive(Debug)]
struct End {
    state: AgentState,
    questions: u32,
}

impl PartialEq for End {
    fn eq(&self, other: &Self) -> bool {
        self.state.answer() == other.state.answer()
    }
}

/// Everything happened once, as the model decided.
fn check(Trial { world, end, kills }: &Trial<'_, World, End>) {
    let wanted = RESULTS.map(|(_, result)| result).join(", ");
    assert_eq!(end.state.answer(), format!("done: {wanted}"));
    let asked = world.asked.load(Ordering::SeqCst);
    assert!(
        asked <= 2 + kills.len() as u64,
        "the model was asked {asked} times"
    );
    let calls = end
        .state
        .messages
        .iter()
        .flat_map(|kept| match &kept.message {
            Message::Assistant(answer) => answer.tool_calls.clone(),
            _ => Vec::new(),
        });
    let decided: Vec<_> = calls
        .map(|call| call.args["note"].as_str().unwrap().to_owned())
        .collect();
    let effects = world.receiver.effects();
    for tool in ["pay", "post", "send"] {
        let happened = effects.happened.iter().filter(|(name, ..)| name == tool);
        let notes: Vec<_> = happened.map(|(_, _, note)| note).collect();
        assert_eq!(notes, [&decided[0]], "how `{tool}` happened");
    }
    assert_eq!(
        (effects.puts, effects.put.as_ref()),
        (1, Some(&decided[0])),
        "`put`"
    );
}

/// Kills at every point, or with `repeated` at several of them. Gives what it did, and how many questions there were.
async fn sweep(
    mutant: Option<Mutant>,
    repeated: Option<u32>,
    store: impl Fn() -> Arc<dyn Checkpointer>,
) -> Result<(SweepReport<End>, u32), KillFailure> {
    let mut questions = 0;
    let sweep = KillSweep::new(
        || world(store(), mutant),
        async |world, fate| {
            let (state, questions) = life(world, fate).await;
            End { state, questions }
        },
    );
    let sweep = match repeated {
        Some(trials) => sweep.repeated(trials, 1),
        None => sweep,
    };
    let report = sweep.run(async |trial| {
        check(trial);
        questions += trial.end.questions;
    });
    let report = report.await?;
    assert_eq!(report.calm.questions, 0);
    Ok((report, questions))
}

fn memory() -> Arc<dyn Checkpointer> {
    Arc::new(Memory::default())
}

#[tokio::test]
async fn killed_at_every_point_it_does_everything_once_or_asks() {
    let (report, questions) = sweep(None, None, memory).await.unwrap();
    let points = report.points;
    eprintln!(
        "{points} points, {} kills, {questions} questions",
        report.kills
    );
    assert!(
        points > 30 && report.kills == points,
        "{points}, {}",
        report.kills
    );
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
    sweep(None, None, store).await.unwrap();
}

#[tokio::test]
async fn killed_again_and_again_it_does_everything_once_or_asks() {
    let (report, _) = sweep(None, Some(200), memory).await.unwrap();
    assert!(report.kills > 250, "{}", report.kills);
}

#[tokio::test]
async fn the_sweep_has_teeth() {
    for (mutant, tool) in [
        (Mutant::RandomKey, "pay"),
        (Mutant::NoStart, ""),
        (Mutant::BlindLookup, "post"),
    ] {
        let caught = sweep(Some(mutant), None, memory).await;
        let failure = caught.expect_err(&format!("{mutant:?} was not noticed"));
        assert!(failure.to_string().contains(tool), "{mutant:?}: {failure}");
    }
}
