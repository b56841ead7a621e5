//! Does to a private Restate what later tests will do, and says how long each thing took: the test of the services
//! themselves, with real processes.

use std::time::{Duration, Instant};

use anyhow::ensure;

use super::restate::{Layout, Restate, Setup};

pub(super) fn run() -> anyhow::Result<()> {
    let began = Instant::now();
    let limit = "RESTATE_WORKER__INVOKER__HTTP2_STREAMS_PER_CONNECTION_LIMIT".to_owned();
    let setup = Setup {
        layout: Layout::Cluster,
        env: vec![(limit, "16".to_owned())],
    };
    let restate = Restate::private("drill", setup)?;
    tell("three nodes are whole", began.elapsed());
    for node in restate.nodes()? {
        eprintln!("  {}: {}, {}", node.name, node.ingress, node.admin);
    }

    check_settings(&restate)?;

    let (victim, led) = busiest(&restate)?;
    ensure!(
        restate.kill(victim)?,
        "the node that leads most does not run"
    );
    let health = restate.health()?;
    ensure!(!health.is_whole(), "a node was killed and nobody noticed");
    let took = restate.wait_until_led()?;
    tell(
        &format!("the leader of {led} partitions was killed, and others lead"),
        took,
    );

    restate.start_node(victim)?;
    tell(
        "it was started again, and all is whole",
        restate.wait_until_whole()?,
    );

    let began = Instant::now();
    let moved = restate.transfer_leaders()?;
    ensure!(moved > 0, "no leader could be moved");
    tell(
        &format!("{moved} leaders were transferred"),
        began.elapsed(),
    );

    restate.release_leaders()?;
    tell(
        "they were let go, and all is whole",
        restate.wait_until_whole()?,
    );

    let began = Instant::now();
    restate.stop()?;
    tell("three nodes have stopped", began.elapsed());
    restate.start()?;
    tell("and are whole again", began.elapsed());
    Ok(())
}

/// The server says nothing about a setting that it does not know.
fn check_settings(restate: &Restate) -> anyhow::Result<()> {
    for (key, value) in [
        ("disable-telemetry", "true"),
        ("default-retry-policy.initial-interval", "50ms"),
        ("default-retry-policy.max-interval", "2s"),
        ("default-retry-policy.max-attempts", "unlimited"),
        ("rocksdb-total-memory-size", "512.0 MiB"),
        ("worker.invoker.http2-streams-per-connection-limit", "16"),
    ] {
        let found = restate.setting(key)?;
        ensure!(found == [value; 3], "`{key}` is {found:?}, not {value}");
    }
    Ok(())
}

/// The node that leads most partitions, and how many.
fn busiest(restate: &Restate) -> anyhow::Result<(usize, usize)> {
    let partitions = restate.partitions()?;
    let led = |node: usize| {
        let leaders = partitions.iter().map(|partition| partition.leader);
        leaders.filter(|leader| *leader == Some(node)).count()
    };
    let nodes = 0..restate.nodes()?.len();
    let (led, victim) = nodes
        .map(|node| (led(node), node))
        .max()
        .unwrap_or_default();
    Ok((victim, led))
}

fn tell(what: &str, took: Duration) {
    eprintln!("drill: {what} ({:.1} s)", took.as_secs_f64());
}
