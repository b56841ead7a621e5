//! On a Restate of its own: our workers beside bare handlers, called in turns by one load.
//!
//! Bare is a worker without any crate of ours (`bench/restate`). One kind of it sends, in one durable run, the very
//! statements that ours sends; what it is faster by is what our machine, our driver and our journal cost. The other has
//! a durable run and a write a step, as most people would write it.

mod load;
mod servers;
mod stage;
mod wire;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use services::database::ask;
use superstep::Runtime;
use superstep::driver::QueuedRequest;

use super::contest::{
    CPU_PER_RUN, MS_PER_RUN, Measured, P50, P99, POSTGRES_CPU_PER_RUN, RESTATE_CPU_PER_RUN,
    RUNS_PER_SECOND, quantile,
};
use super::findings::{Findings, Which};
use super::lab::Lab;
use super::ours::worker;
use super::report::{Goal, Row};
use super::side::{BARE_CALLS, BARE_SEGMENT, BARE_STEPS, OURS, Side};
use load::{Done, Errand, Work, errands, new_id, new_thread};
use servers::cpu_of;
use stage::{Stage, answer_to, questions};

pub(super) fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut found = Findings::new("restate", lab.quick);
    let mut stage = Stage::build(lab)?;
    chains(lab, &mut stage, &mut found)?;
    ensure_same_rows(&stage)?;
    found.rows.push(read_back(&stage)?);
    parked(lab, &mut stage, &mut found)?;
    answers(lab, &mut stage, &mut found)?;
    fans(lab, &mut stage, &mut found)?;
    Ok(found)
}

/// Twenty steps, by few clients and by many.
fn chains(lab: &Lab, stage: &mut Stage, found: &mut Findings) -> anyhow::Result<()> {
    let order = worker::chain_order()?;
    let time = Duration::from_millis(lab.size(2_000, 300) as u64);
    for clients in [1, 32, 128] {
        let title = match clients {
            1 => "20 steps, 1 client".to_owned(),
            many => format!("20 steps, {many} clients"),
        };
        let contest = Contest {
            title: &title,
            sides: &[
                (OURS, "run"),
                (BARE_SEGMENT, "chain"),
                (BARE_STEPS, "steps"),
            ],
            figures: &[
                RUNS_PER_SECOND,
                P50,
                P99,
                CPU_PER_RUN,
                POSTGRES_CPU_PER_RUN,
                RESTATE_CPU_PER_RUN,
            ],
            clients,
            rounds: lab.rounds(),
        };
        contest.hold(stage, found, |_| Ok(Work::For(time, order.clone())))?;
        let which = |figure| which(&title, figure);
        let speed = which(RUNS_PER_SECOND);
        found.judge(speed, BARE_SEGMENT, Goal::RatioAtLeast(0.9));
        found.judge(which(P50), BARE_SEGMENT, Goal::RatioAtMost(1.2));
        if clients > 1 {
            found.judge(speed, BARE_STEPS, Goal::RatioAtLeast(1.5));
        }
    }
    Ok(())
}

/// A side that repeats statements does not read what they answer: whether they found what they look for is in the tables.
fn ensure_same_rows(stage: &Stage) -> anyhow::Result<()> {
    let each = |url: &str| {
        ask(
            url,
            "SELECT (SELECT count(*) FROM superstep.log)::float8 / count(*),
                (SELECT count(*) FROM superstep.listing)::float8 / count(*), max(status), max(seq)
             FROM superstep.thread",
        )
    };
    let (ours, bare) = (each(stage.ours.url())?, each(stage.bare.url())?);
    ensure!(
        ours == bare,
        "a thread of ours has rows {ours}, a bare one {bare}"
    );
    Ok(())
}

/// What nobody's call includes: the state of a thread that has done the chain.
fn read_back(stage: &Stage) -> anyhow::Result<Row> {
    let errand = Errand {
        thread: new_thread(),
        order: worker::chain_order()?,
    };
    let runtime = Runtime::new(stage.ours.store.clone());
    let graph = worker::chain()?;
    let thread = runtime.thread(&graph, errand.thread.to_string())?;
    let way = stage.way(OURS, "run");
    stage
        .tokio
        .block_on(stage.http.give(&way, &errand, new_id()))?;
    let mut times = Vec::new();
    for _ in 0..READS {
        let begun = Instant::now();
        let state = stage.tokio.block_on(thread.state())?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        let state = state.context("the thread is not there")?;
        let page: worker::Page = state.values.decode()?;
        ensure!(page.paragraphs.len() == worker::NODES, "{page:?}");
    }
    let work = "20 steps: reading the state back, in no call above";
    Ok(Row::new(work, P50, quantile(&times, 0.5)))
}

/// Threads that wait, beside as many that ended: what the worker has in memory.
fn parked(lab: &Lab, stage: &mut Stage, found: &mut Findings) -> anyhow::Result<()> {
    let threads = lab.size(10_000, 100);
    let way = stage.way(OURS, "run");
    let mut memory = Vec::new();
    // The first times warm up whatever is kept of many orders: where threads lie is remembered of the last hundred
    // thousand, and that map doubles between the second and the third.
    for asks in [false, false, false, true] {
        let work = Work::Each(errands(&worker::approval_order(asks)?, threads));
        let done = stage.http.load(&way, CLIENTS, work);
        let done = stage.tokio.block_on(done)?;
        let bytes = stage.ours.worker.round()?.bytes.unwrap_or(f64::NAN);
        let megabytes = bytes / 1e6;
        let (what, speed) = (
            if asks { "wait" } else { "ended" },
            done.times.len() as f64 / done.wall.as_secs_f64(),
        );
        eprintln!("{threads} threads that {what}: {megabytes:.1} MB, {speed:.0} a second");
        memory.push(megabytes);
    }
    let work = format!("{threads} parked threads: memory of the worker");
    let row = Row::new(work, "MB", memory[3]).against("after as many that ended", memory[2]);
    found.rows.push(match lab.quick {
        true => row,
        // An allocator keeps more or less from time to time: a twentieth is 150 bytes a thread.
        false => row.ratio_at_most(1.05),
    });
    // The same for the others, so that nobody's tables are smaller.
    let way = stage.way(BARE_SEGMENT, "park");
    let parked = errands(&worker::approval_order(true)?, threads);
    let threads = parked.iter().map(|errand| errand.thread.clone());
    stage.bare_parked = threads.collect();
    let done = stage.http.load(&way, CLIENTS, Work::Each(parked));
    stage.tokio.block_on(done)?;
    Ok(())
}

/// From an answer to the end of the run.
fn answers(lab: &Lab, stage: &mut Stage, found: &mut Findings) -> anyhow::Result<()> {
    let each = lab.size(200, 10);
    for clients in [1, CLIENTS] {
        let title = match clients {
            1 => "answer to a parked thread, 1 client".to_owned(),
            many => format!("answer to a parked thread, {many} clients"),
        };
        let contest = Contest {
            title: &title,
            sides: &[(OURS, "run"), (BARE_SEGMENT, "answer")],
            figures: &[P50, P99],
            clients,
            rounds: lab.rounds(),
        };
        contest.hold(stage, found, |turn| {
            let errands = match turn.side.label == OURS.label {
                true => our_answers(turn.stage, each)?,
                false => bare_answers(turn.stage, each)?,
            };
            Ok(Work::Each(errands))
        })?;
        found.judge(which(&title, P50), BARE_SEGMENT, Goal::RatioAtMost(1.3));
    }
    Ok(())
}

fn our_answers(stage: &Stage, count: usize) -> anyhow::Result<VecDeque<Errand>> {
    let open = stage.tokio.block_on(questions(&stage.ours.store, count))?;
    ensure!(open.len() == count, "only {} wait", open.len());
    open.iter().map(answer_to).collect()
}

/// An order of the same size for each; what it says is not read.
fn bare_answers(stage: &mut Stage, count: usize) -> anyhow::Result<VecDeque<Errand>> {
    let open = stage.tokio.block_on(questions(&stage.ours.store, 1))?;
    let order: Arc<QueuedRequest> = answer_to(open.first().context("nobody asks")?)?.order;
    let count = count.min(stage.bare_parked.len());
    let threads = stage.bare_parked.drain(..count);
    Ok(threads
        .map(|thread| Errand {
            thread,
            order: order.clone(),
        })
        .collect())
}

/// A hundred tasks by calls, and a join.
fn fans(lab: &Lab, stage: &mut Stage, found: &mut Findings) -> anyhow::Result<()> {
    let order = worker::fanout_order(BRANCHES)?;
    let each = lab.size(10, 2);
    let title = format!("fan-out of {BRANCHES} and a join");
    let contest = Contest {
        title: &title,
        sides: &[(OURS, "run"), (BARE_CALLS, "fan")],
        figures: &[
            MS_PER_RUN,
            CPU_PER_RUN,
            POSTGRES_CPU_PER_RUN,
            RESTATE_CPU_PER_RUN,
        ],
        clients: 1,
        rounds: lab.rounds(),
    };
    contest.hold(stage, found, |_| Ok(Work::Each(errands(&order, each))))?;
    found.judge(
        which(&title, MS_PER_RUN),
        BARE_CALLS,
        Goal::RatioAtMost(1.1),
    );
    Ok(())
}

fn which<'a>(title: &'a str, figure: &'static str) -> Which<'a> {
    Which {
        title,
        store: STORE,
        figure,
    }
}

/// The same work by several sides in turns, all on one Restate.
struct Contest<'a> {
    title: &'a str,
    /// Each with the handler that does it, if it is bare.
    sides: &'a [(Side, &'static str)],
    figures: &'a [&'static str],
    clients: usize,
    rounds: usize,
}

/// Whose turn it is.
struct Turn<'a> {
    stage: &'a mut Stage,
    side: Side,
}

impl Contest<'_> {
    fn hold(
        &self,
        stage: &mut Stage,
        found: &mut Findings,
        mut work: impl FnMut(Turn<'_>) -> anyhow::Result<Work>,
    ) -> anyhow::Result<()> {
        let mut measured: Vec<Vec<Measured>> = Vec::new();
        for (side, _) in self.sides {
            let version = stage.of(*side).worker.version.clone();
            let of_side = |figure| Measured::new(self.title, STORE, *side, &version, figure);
            measured.push(self.figures.iter().copied().map(of_side).collect());
        }
        for round in 0..=self.rounds {
            for (at, (side, bare)) in self.sides.iter().enumerate() {
                let work = work(Turn { stage, side: *side })?;
                let way = stage.way(*side, bare);
                let before = Used::look(stage, *side)?;
                let done = stage.http.load(&way, self.clients, work);
                let done = stage.tokio.block_on(done).context(side.label)?;
                let used = Used::look(stage, *side)?.since(&before);
                // The first one warms up: connections, statements, caches of all servers.
                if round > 0 {
                    let figures = self.figures.iter();
                    let figures: Vec<f64> = figures
                        .map(|figure| made_of(figure, &done, &used))
                        .collect();
                    self.tell(round, side.label, &figures);
                    for (measured, figure) in measured[at].iter_mut().zip(figures) {
                        measured.push(figure);
                    }
                }
            }
        }
        found.measured.extend(measured.concat());
        Ok(())
    }

    fn tell(&self, round: usize, side: &str, figures: &[f64]) {
        let figures = self.figures.iter().zip(figures);
        let figures: Vec<String> = figures
            .map(|(name, figure)| format!("{figure:.1} {name}"))
            .collect();
        let (title, of) = (self.title, self.rounds);
        let figures = figures.join(", ");
        eprintln!("{title}, round {round} of {of}: {side}: {figures}");
    }
}

/// Seconds of a processor.
struct Used {
    /// Since the last look.
    worker: f64,
    postgres: f64,
    restate: f64,
}

impl Used {
    fn look(stage: &mut Stage, side: Side) -> anyhow::Result<Self> {
        Ok(Self {
            worker: stage.of(side).worker.round()?.cpu_s,
            postgres: cpu_of(&stage.of(side).database_name()).as_secs_f64(),
            restate: cpu_of(&stage.restate_folder()).as_secs_f64(),
        })
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            worker: self.worker,
            postgres: self.postgres - before.postgres,
            restate: self.restate - before.restate,
        }
    }
}

fn made_of(figure: &str, done: &Done, used: &Used) -> f64 {
    let times: Vec<f64> = done.times.iter().map(Duration::as_secs_f64).collect();
    let count = times.len() as f64;
    match figure {
        RUNS_PER_SECOND => count / done.wall.as_secs_f64(),
        P50 | MS_PER_RUN => quantile(&times, 0.5) * 1e3,
        P99 => quantile(&times, 0.99) * 1e3,
        POSTGRES_CPU_PER_RUN => used.postgres / count * 1e6,
        RESTATE_CPU_PER_RUN => used.restate / count * 1e6,
        _ => used.worker / count * 1e6,
    }
}

const STORE: &str = "restate";
const BRANCHES: u64 = 100;
const CLIENTS: usize = 32;
const READS: usize = 50;
