//! Files with threads in them, made before a server is started over them: as if an earlier server had run them.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value as Json, json};
use superstep::prelude::*;
use superstep::{RunOptions, Runtime};
use superstep_sqlite::Sqlite;
use tokio::task::JoinSet;

use crate::ours::served::FILE;
use crate::ours::served::graphs::{CountUpdate, OrderUpdate, StampUpdate, count, order, stamp};
use harness::prng::Prng;

/// Makes threads on which one step has run, and returns their ids.
pub(super) async fn stamped(folder: &Path, threads: usize) -> anyhow::Result<Vec<String>> {
    let (runtime, graph) = (open(folder)?, stamp()?);
    let all: Vec<String> = (0..threads as u64).map(thread_id).collect();
    let mut running = JoinSet::new();
    for id in &all {
        let thread = runtime.thread(&graph, id)?;
        running.spawn(async move {
            let stopped = thread.start(StampUpdate::default().number(0)).await?;
            ensure_ends(&stopped.outcome)
        });
        leave(&mut running, AT_ONCE).await?;
    }
    leave(&mut running, 1).await?;
    Ok(all)
}

/// Makes orders to search among; every second one waits for a person.
pub(super) async fn orders(folder: &Path, threads: usize) -> anyhow::Result<()> {
    let (runtime, graph) = (open(folder)?, order()?);
    let mut running = JoinSet::new();
    for number in 0..threads as u64 {
        let owner = format!("user-{}", number % OWNERS);
        let metadata: BTreeMap<String, Json> = BTreeMap::from([
            ("owner".to_owned(), json!(owner)),
            ("graph_id".to_owned(), json!("order")),
        ]);
        let thread = runtime.thread(&graph, thread_id(number))?;
        let thread = thread.with_metadata(metadata);
        running.spawn(async move {
            let stopped = thread.start(order_of(number)).await?;
            ensure_ends(&stopped.outcome)
        });
        leave(&mut running, AT_ONCE).await?;
    }
    leave(&mut running, 1).await
}

/// Makes a thread of so many steps, and returns its id.
pub(super) async fn counted(folder: &Path, steps: u64) -> anyhow::Result<String> {
    let (runtime, graph) = (open(folder)?, count()?);
    let id = thread_id(u64::MAX);
    let mut options = RunOptions::default();
    options.step_limit = steps + 1;
    let thread = runtime.thread(&graph, &id)?.with_options(options);
    let input = CountUpdate::default().left(steps).note("a small state");
    let stopped = thread.start(input).await?;
    anyhow::ensure!(stopped.state.left == 0, "{:?}", stopped.outcome);
    Ok(id)
}

fn open(folder: &Path) -> anyhow::Result<Runtime> {
    Ok(Runtime::new(Sqlite::open(folder.join(FILE))?))
}

/// Waits until fewer than so many are left.
async fn leave(running: &mut JoinSet<anyhow::Result<()>>, most: usize) -> anyhow::Result<()> {
    while running.len() >= most {
        if let Some(ended) = running.join_next().await {
            ended??;
        }
    }
    Ok(())
}

fn ensure_ends(outcome: &Outcome) -> anyhow::Result<()> {
    let is_fine = matches!(outcome, Outcome::Finished | Outcome::Paused(_));
    anyhow::ensure!(is_fine, "{outcome:?}");
    Ok(())
}

fn order_of(number: u64) -> OrderUpdate {
    let mut prng = Prng::of_trial(2, number);
    OrderUpdate::default()
        .customer(format!("customer-{number}"))
        .city(format!("city-{}", number % CITIES))
        .amount(prng.below(100_000))
        .express(number.is_multiple_of(2))
        .note(prng.text(190))
}

/// Returns the id of a thread: a UUID, as a server gives them, in no order.
fn thread_id(number: u64) -> String {
    let mut prng = Prng::of_trial(1, number);
    let (high, low) = (prng.next(), prng.next());
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

const AT_ONCE: usize = 64;
/// An order in so many is of the same city, or of the same owner.
const CITIES: u64 = 50;
const OWNERS: u64 = 1_000;

#[test]
fn ids_are_uuids_and_differ() {
    let id = thread_id(7);
    let lengths: Vec<usize> = id.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12]);
    assert_ne!(id, thread_id(8));
}
