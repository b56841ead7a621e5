//! Runs per second and the first event of a stream, by servers that take turns.

use std::time::Duration;

use anyhow::Context;
use tokio::runtime::Runtime;

use super::load::{ClientAction, LoadResult, load};
use super::peer_servers::PeerServers;
use super::server_process::ServerProcess;
use crate::contest::{self, Measure, Measured, P50, P99, RUNS_PER_SECOND, quantile};
use crate::findings::{Findings, Which};
use crate::lab::Lab;
use crate::report::{Goal, Row, rounded};
use crate::side::{AEGRA, AGENT_SERVER, BARE_DRIVER, Running, Side};

pub(super) fn run(
    lab: &Lab,
    tokio: &Runtime,
    peer_servers: Option<&PeerServers>,
    found: &mut Findings,
) -> anyhow::Result<()> {
    for store in ["sqlite", "postgres"] {
        let mut servers = vec![ServerProcess::over_empty_store(lab, store)?];
        if let Some(peer_servers) = peer_servers {
            servers.extend(peer_servers.start(lab, tokio, store)?);
        }
        let mut contest = ServerContest {
            lab,
            tokio,
            store,
            servers,
        };
        contest.runs(found)?;
        contest.first_events(found)?;
        contest.memory(found)?;
        // They end before their folders and databases go.
        drop(contest);
        lab.clear()?;
    }
    Ok(())
}

/// Servers over one kind of store that take turns.
struct ServerContest<'a> {
    lab: &'a Lab,
    tokio: &'a Runtime,
    store: &'static str,
    servers: Vec<ServerProcess>,
}

impl ServerContest<'_> {
    fn runs(&mut self, found: &mut Findings) -> anyhow::Result<()> {
        for (clients, at_least) in [(1, 100.0), (16, 20.0), (64, 20.0)] {
            let title = format!("5 nodes, {}", in_words(clients));
            self.take_turns(&title, clients, ClientAction::Run, found)?;
            let which = Which {
                title: &title,
                store: self.store,
                figure: RUNS_PER_SECOND,
            };
            // Each of these took part over one kind of store only.
            found.judge(which, AGENT_SERVER, Goal::RatioAtLeast(at_least));
            found.judge(which, AEGRA, Goal::RatioAtLeast(25.0));
            found.judge(which, BARE_DRIVER, Goal::RatioAtLeast(0.6));
        }
        Ok(())
    }

    fn first_events(&mut self, found: &mut Findings) -> anyhow::Result<()> {
        for (clients, figure, at_most) in [(1, P50, 10.0), (16, P99, 50.0)] {
            let title = format!("first event of a stream, {}", in_words(clients));
            self.take_turns(&title, clients, ClientAction::FirstEvent, found)?;
            let which = Which {
                title: &title,
                store: self.store,
                figure,
            };
            // What the disk of a database server does is not ours to promise.
            if self.store == "sqlite" {
                found.limit(which, at_most);
            }
        }
        Ok(())
    }

    /// What the servers have in memory after all these runs, each on a thread of its own.
    fn memory(&mut self, found: &mut Findings) -> anyhow::Result<()> {
        let mut after = Vec::new();
        for server in &mut self.servers {
            let megabytes = server.usage()?.bytes / 1e6;
            after.push((server.side.label, server.runs, megabytes));
        }
        let Some(((_, runs, ours), others)) = after.split_first() else {
            return Ok(());
        };
        let store = self.store;
        let work = format!("memory after {runs} runs on as many threads, {store}");
        let row = Row::new(work, "MB", *ours);
        found.rows.push(match others.first() {
            Some((side, runs, theirs)) => {
                row.against(format!("{side} after {runs} runs, MB"), *theirs)
            }
            None => row,
        });
        Ok(())
    }

    /// Lets every server have its turn in every round, and the driver too where it does the same. The first round warms up
    /// connections, statements and caches, and does not count.
    fn take_turns(
        &mut self,
        title: &str,
        clients: usize,
        action: ClientAction,
        found: &mut Findings,
    ) -> anyhow::Result<()> {
        let seconds = if self.lab.quick { 0.5 } else { 3.0 };
        let time = Duration::from_secs_f64(seconds);
        let mut driver = match action {
            ClientAction::Run => Some(self.driver(clients, seconds)?),
            ClientAction::FirstEvent => None,
        };
        let figures = action.figures();
        let mut measured: Vec<Vec<Measured>> = Vec::new();
        for server in &self.servers {
            measured.push(self.empty_figures(title, server.side, &server.version, figures));
        }
        if let Some(driver) = &driver {
            measured.push(self.empty_figures(title, BARE_DRIVER, &driver.version, figures));
        }
        for round in 0..=self.lab.rounds() {
            let mut turns = Vec::new();
            for server in &mut self.servers {
                server.usage()?;
                let done = load(server.address, clients, action, time);
                let done = self.tokio.block_on(done).context(server.side.label)?;
                server.runs += done.times_s.len();
                turns.push((server.side, done, server.usage()?.cpu_s));
            }
            if let Some(driver) = &mut driver {
                let round = driver.round().context(BARE_DRIVER.label)?;
                let done = LoadResult {
                    wall_s: round.wall_s,
                    times_s: round.times_s,
                };
                turns.push((BARE_DRIVER, done, round.cpu_s));
            }
            if round == 0 {
                continue;
            }
            for ((side, done, cpu_s), measured) in turns.iter().zip(&mut measured) {
                let of_round = figures.iter().map(|figure| figure_of(figure, done, *cpu_s));
                let of_round: Vec<f64> = of_round.collect();
                self.report_round(title, round, *side, figures, &of_round);
                for (measured, figure) in measured.iter_mut().zip(of_round) {
                    measured.push(figure);
                }
            }
        }
        found.measured.extend(measured.concat());
        Ok(())
    }

    /// Starts the driver, with a store of its own and as many callers as the servers have clients.
    fn driver(&self, callers: usize, seconds: f64) -> anyhow::Result<Running> {
        let contest = contest::Contest {
            title: String::new(),
            work: "calls",
            store: self.store,
            settings: vec![format!("at_once={callers}"), format!("seconds={seconds}")],
            rounds: self.lab.rounds(),
            measure: Measure::Speed,
            sides: &[],
        };
        self.lab.start(BARE_DRIVER, &contest)
    }

    /// Returns the figures of a side, still without any round.
    fn empty_figures(
        &self,
        title: &str,
        side: Side,
        version: &str,
        figures: &[&'static str],
    ) -> Vec<Measured> {
        let figures = figures.iter().copied();
        figures
            .map(|figure| Measured::new(title, self.store, side, version, figure))
            .collect()
    }

    fn report_round(&self, title: &str, round: usize, side: Side, names: &[&str], figures: &[f64]) {
        let figures: Vec<String> = names
            .iter()
            .zip(figures)
            .map(|(name, figure)| format!("{} {name}", rounded(*figure)))
            .collect();
        let (store, of, side) = (self.store, self.lab.rounds(), side.label);
        eprintln!(
            "{title}, {store}, round {round} of {of}: {side}: {}",
            figures.join(", ")
        );
    }
}

impl ClientAction {
    fn figures(self) -> &'static [&'static str] {
        match self {
            ClientAction::Run => &[RUNS_PER_SECOND, P50, P99, CPU_PER_RUN],
            ClientAction::FirstEvent => &[P50, P99],
        }
    }
}

fn figure_of(figure: &str, done: &LoadResult, cpu_s: f64) -> f64 {
    let count = done.times_s.len() as f64;
    match figure {
        RUNS_PER_SECOND => count / done.wall_s,
        P50 => quantile(&done.times_s, 0.5) * 1e3,
        P99 => quantile(&done.times_s, 0.99) * 1e3,
        _ => cpu_s / count * 1e6,
    }
}

fn in_words(clients: usize) -> String {
    match clients {
        1 => "1 client".to_owned(),
        many => format!("{many} clients"),
    }
}

/// What the process of the side used. That of PostgreSQL is not in it.
const CPU_PER_RUN: &str = "CPU us/run";
