//! Kills workers, nodes and clients while others work, and remembers when.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::fleet::{Fleet, WORKERS};
use super::lab::Lab;
use harness::prng::Prng;

pub(super) struct Monkey {
    prng: Prng,
    next_worker: Instant,
    node: NodeTurn,
    next_clients: Instant,
    pub(super) figures: Figures,
}

#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) workers_killed: u64,
    pub(super) nodes_killed: u64,
    pub(super) clients_killed: u64,
    /// From the start of a killed node until all are well and every partition is led.
    pub(super) whole_again_ms: Vec<u64>,
    /// What was killed and when, as the judge reads it.
    pub(super) kills: Vec<String>,
}

/// At most one node is away at a time.
#[derive(Debug, Clone, Copy)]
enum NodeTurn {
    /// All are there; one is killed then.
    Whole(Instant),
    /// This one is gone, and started then.
    Away(usize, Instant),
    /// It was started at the first time; whether all are well is looked at at the second.
    Coming(Instant, Instant),
}

impl Monkey {
    pub(super) fn new(seed: u64) -> Self {
        let mut prng = Prng::of_trial(seed, 0);
        let now = Instant::now();
        Self {
            next_worker: now + between(&mut prng, WORKER_MS),
            // The first one comes early, so that short trials have one too.
            node: NodeTurn::Whole(now + between(&mut prng, FIRST_NODE_MS)),
            next_clients: now + between(&mut prng, CLIENTS_MS),
            prng,
            figures: Figures::default(),
        }
    }

    /// Does what is due. Says whether the clients are.
    pub(super) fn tick(&mut self, lab: &Lab, fleet: &mut Fleet) -> anyhow::Result<bool> {
        let now = Instant::now();
        if now >= self.next_worker {
            let place = self.prng.below(WORKERS as u64) as usize;
            let at = unix_ms();
            let worker = fleet.kill_and_start(lab, place)?;
            self.figures.kills.push(format!("{at} worker {worker}"));
            self.figures.workers_killed += 1;
            self.next_worker = Instant::now() + between(&mut self.prng, WORKER_MS);
        }
        self.tick_node(lab)?;
        let is_due = now >= self.next_clients;
        if is_due {
            self.figures.clients_killed += 1;
            self.next_clients = now + between(&mut self.prng, CLIENTS_MS);
        }
        Ok(is_due)
    }

    fn tick_node(&mut self, lab: &Lab) -> anyhow::Result<()> {
        let now = Instant::now();
        let nodes = lab.restate.nodes()?.len() as u64;
        if nodes == 1 {
            return Ok(());
        }
        match self.node {
            NodeTurn::Whole(at) if now >= at => {
                // A cluster of three survives one that is gone, not two.
                if !lab.restate.health()?.is_whole() {
                    self.node = NodeTurn::Whole(now + LOOK);
                    return Ok(());
                }
                let node = self.prng.below(nodes) as usize;
                let killed_at = unix_ms();
                lab.restate.kill(node)?;
                self.figures.kills.push(format!("{killed_at} node {node}"));
                self.figures.nodes_killed += 1;
                let back = Instant::now() + between(&mut self.prng, AWAY_MS);
                self.node = NodeTurn::Away(node, back);
            }
            NodeTurn::Away(node, at) if now >= at => {
                lab.restate.start_node(node)?;
                self.node = NodeTurn::Coming(now, now + LOOK);
            }
            NodeTurn::Coming(since, at) if now >= at => {
                self.node = match lab.restate.health()?.is_whole() {
                    true => {
                        let took = u64::try_from(since.elapsed().as_millis())?;
                        self.figures.whole_again_ms.push(took);
                        NodeTurn::Whole(now + between(&mut self.prng, NODE_MS))
                    }
                    false => NodeTurn::Coming(since, Instant::now() + LOOK),
                };
            }
            _ => {}
        }
        Ok(())
    }
}

fn between(prng: &mut Prng, range_ms: (u64, u64)) -> Duration {
    Duration::from_millis(range_ms.0 + prng.below(range_ms.1 - range_ms.0 + 1))
}

pub(super) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

const WORKER_MS: (u64, u64) = (2_000, 5_000);
const NODE_MS: (u64, u64) = (20_000, 40_000);
const FIRST_NODE_MS: (u64, u64) = (3_000, 8_000);
const AWAY_MS: (u64, u64) = (500, 5_000);
const CLIENTS_MS: (u64, u64) = (8_000, 16_000);
const LOOK: Duration = Duration::from_secs(1);
