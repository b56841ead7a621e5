//! The graph that random programs are run by: one node for each kind of stage, and one that says which comes next.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use superstep::error::BuildError;
use superstep::prelude::*;
use superstep::{Failed, RetryPolicy};

use super::program::{Part, Program, Stage, value_of};
use crate::ledger::{Ledger, Report};

/// A program, how far it is, and what it left behind.
#[derive(Clone, Debug, Default, PartialEq, State)]
pub(crate) struct Work {
    pub(crate) seed: u64,
    pub(crate) stages: Vec<Stage>,
    /// How many stages have begun.
    pub(crate) begun: u64,
    /// How many supersteps of a chain are done.
    pub(crate) links: u32,
    #[state(append)]
    pub(crate) done: Vec<String>,
    #[state(reduce = add)]
    pub(crate) sum: u64,
}

fn add(sum: u64, more: u64) -> u64 {
    sum + more
}

impl Work {
    pub(crate) fn input(program: &Program) -> WorkUpdate {
        WorkUpdate::default()
            .seed(program.seed)
            .stages(program.stages.clone())
    }

    /// The stage that is under way, and its number.
    fn stage(&self) -> (u64, &Stage) {
        let at = self.begun.saturating_sub(1);
        (at, &self.stages[at as usize])
    }
}

/// A task of a fan-out.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Job {
    seed: u64,
    task: String,
    part: Part,
}

/// A task that a task of a fan-out sends out.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Leaf {
    seed: u64,
    task: String,
}

const PART: SendTo<Job> = SendTo::new("part");
const LATE: SendTo<Job> = SendTo::new("late");
const LEAF: SendTo<Leaf> = SendTo::new("leaf");
const STAGES: [&str; 9] = [
    "chain", "spread", "ask", "flaky", "patient", "sleep", "broken", "fatal", END,
];

pub(crate) fn graph(ledger: &Arc<Ledger>) -> Result<Graph<Work>, BuildError> {
    let soon = RetryPolicy::attempts(5).every(SOON);
    let late = RetryPolicy::attempts(5).every(LATER);
    let node = |body: Body| Stand {
        ledger: ledger.clone(),
        body,
    };
    let part = || Parts(ledger.clone());
    let handler = ledger.clone();
    Graph::builder("work")
        .node("next", next)
        .node("chain", node(Body::Chain))
        .node("spread", spread)
        .map_node(&PART, part())
        .map_node(&LATE, part())
        .map_node(&LEAF, Leaves(ledger.clone()))
        .node("join", join)
        .node("ask", node(Body::Ask))
        .node("flaky", node(Body::Flaky))
        .node("patient", node(Body::Patient))
        .node("sleep", node(Body::Sleep))
        .node("broken", node(Body::Broken))
        .on_error("broken", &["next"], move |failed, cx| {
            handled(handler.clone(), failed, cx)
        })
        .node("fatal", node(Body::Fatal))
        .edge(START, "next")
        .commands("next", &STAGES)
        .commands("chain", &["chain", "next"])
        .commands("spread", &["part", "late"])
        .commands("part", &["leaf", "join"])
        .commands("late", &["leaf", "join"])
        .edge("leaf", "join")
        .defer("join")
        .edge("join", "next")
        .edge("ask", "next")
        .edge("flaky", "next")
        .edge("patient", "next")
        .edge("sleep", "next")
        .edge("broken", "next")
        .edge("fatal", "next")
        .retry("flaky", soon)
        .retry("part", soon)
        .retry("patient", late)
        .retry("late", late)
        .build()
}

async fn next(work: View<Work>, _: NodeCx) -> Result<Command<Work>, NodeError> {
    let Some(stage) = work.stages.get(work.begun as usize) else {
        return Ok(Command::to(END));
    };
    let node = match stage {
        Stage::Chain(_) => "chain",
        Stage::Spread(_) => "spread",
        Stage::Ask => "ask",
        Stage::Flaky(_) => "flaky",
        Stage::Patient => "patient",
        Stage::Sleep(_) => "sleep",
        Stage::Broken => "broken",
        Stage::Fatal => "fatal",
    };
    let update = WorkUpdate::default().begun(work.begun + 1).links(0);
    Ok(Command::update(update).goto(node))
}

async fn join(_: View<Work>, _: NodeCx) -> Result<WorkUpdate, NodeError> {
    Ok(WorkUpdate::default())
}

async fn spread(work: View<Work>, _: NodeCx) -> Result<Command<Work>, NodeError> {
    let (at, Stage::Spread(parts)) = work.stage() else {
        return Err(NodeError::fatal("not a stage that spreads"));
    };
    let mut command = Command::update(WorkUpdate::default());
    for (index, part) in parts.iter().enumerate() {
        let job = Job {
            seed: work.seed,
            task: format!("{at}.part.{index}"),
            part: part.clone(),
        };
        command = match part.is_late {
            true => command.send(&LATE, job),
            false => command.send(&PART, job),
        };
    }
    Ok(command)
}

async fn handled(
    ledger: Arc<Ledger>,
    failed: Failed<Work>,
    cx: NodeCx,
) -> Result<WorkUpdate, NodeError> {
    let (at, _) = failed.state.stage();
    let mut task = Doing::new(&ledger, &cx, failed.state.seed, format!("{at}.handled"));
    task.effect("once").await?;
    Ok(task.done())
}

/// What a node that stands in the graph by name does.
#[derive(Debug, Clone, Copy)]
enum Body {
    Chain,
    Ask,
    Flaky,
    Patient,
    Sleep,
    Broken,
    Fatal,
}

struct Stand {
    ledger: Arc<Ledger>,
    body: Body,
}

impl Node<Work> for Stand {
    async fn run(&self, work: View<Work>, cx: NodeCx) -> Result<Command<Work>, NodeError> {
        let (at, stage) = work.stage();
        let doing = |name: &str| Doing::new(&self.ledger, &cx, work.seed, format!("{at}.{name}"));
        match (self.body, stage) {
            (Body::Chain, Stage::Chain(length)) => {
                let mut task = doing(&format!("chain.{}", work.links));
                task.effect("once").await?;
                let links = work.links + 1;
                let next = if links < *length { "chain" } else { "next" };
                Ok(Command::update(task.done().links(links)).goto(next))
            }
            (Body::Ask, _) => {
                let mut task = doing("ask");
                task.ask().await?;
                task.effect("told").await?;
                Ok(task.done().into())
            }
            (Body::Flaky, Stage::Flaky(fails)) => Ok(doing("flaky").fails(*fails).await?.into()),
            (Body::Patient, _) => Ok(doing("patient").fails(1).await?.into()),
            (Body::Sleep, Stage::Sleep(ms)) => {
                let mut task = doing("sleep");
                task.effect("before").await?;
                tokio::time::sleep(Duration::from_millis(*ms)).await;
                task.effect("after").await?;
                Ok(task.done().into())
            }
            (Body::Broken, _) => {
                doing("broken").effect("before").await?;
                Err(NodeError::fatal("broken, as planned"))
            }
            (Body::Fatal, _) => {
                doing("fatal").effect("before").await?;
                Err(NodeError::fatal("fatal, as planned"))
            }
            (body, stage) => Err(NodeError::fatal(format!("{body:?} at {stage:?}"))),
        }
    }
}

struct Parts(Arc<Ledger>);

impl Node<Work, Job> for Parts {
    async fn run(&self, job: Job, cx: NodeCx) -> Result<Command<Work>, NodeError> {
        let Job { seed, task, part } = job;
        let mut doing = Doing::new(&self.0, &cx, seed, task.clone());
        for (n, effect) in part.effect_names().iter().enumerate() {
            doing.effect(effect).await?;
            if n == 0 && cx.attempt() <= part.fails {
                return Err(NodeError::retryable("not yet"));
            }
        }
        if part.asks {
            doing.ask().await?;
        }
        let command = Command::update(doing.done());
        if part.leaves == 0 {
            return Ok(command.goto("join"));
        }
        let leaf = |n: u32| Leaf {
            seed,
            task: format!("{}.{n}", task.replace("part", "leaf")),
        };
        Ok((0..part.leaves).fold(command, |command, n| command.send(&LEAF, leaf(n))))
    }
}

struct Leaves(Arc<Ledger>);

impl Node<Work, Leaf> for Leaves {
    async fn run(&self, leaf: Leaf, cx: NodeCx) -> Result<Command<Work>, NodeError> {
        let mut doing = Doing::new(&self.0, &cx, leaf.seed, leaf.task);
        doing.effect("once").await?;
        Ok(doing.done().into())
    }
}

/// A task that does things which the ledger is told of.
struct Doing<'a> {
    ledger: &'a Ledger,
    cx: &'a NodeCx,
    seed: u64,
    task: String,
    sum: u64,
}

impl<'a> Doing<'a> {
    fn new(ledger: &'a Ledger, cx: &'a NodeCx, seed: u64, task: String) -> Self {
        Self {
            ledger,
            cx,
            seed,
            task,
            sum: 0,
        }
    }

    /// An effect of 1 to 6 ms that must happen, and not again once it is acknowledged.
    async fn effect(&mut self, name: &str) -> Result<(), NodeError> {
        let key = format!("{}/{name}", self.task);
        let value = value_of(self.seed, &key);
        let report = |phase| Report {
            thread: self.cx.thread().name(),
            phase,
            key: &key,
            detail: self.cx.attempt().into(),
        };
        self.sum += self
            .cx
            .step(name, || async {
                self.ledger.report(report("start")).await;
                tokio::time::sleep(Duration::from_micros(1_000 + value * 5)).await;
                Ok::<_, NodeError>(value)
            })
            .await?;
        self.ledger.report(report("acked")).await;
        Ok(())
    }

    async fn ask(&mut self) -> Result<(), NodeError> {
        let question = Interrupt::new(&self.task, "how much?");
        self.sum += self.cx.interrupt::<u64>(question).await?;
        Ok(())
    }

    /// An effect, so many failures, an effect.
    async fn fails(mut self, times: u32) -> Result<WorkUpdate, NodeError> {
        self.effect("before").await?;
        if self.cx.attempt() <= times {
            return Err(NodeError::retryable("not yet"));
        }
        self.effect("after").await?;
        Ok(self.done())
    }

    fn done(self) -> WorkUpdate {
        WorkUpdate::default()
            .done(format!("{}={}", self.task, self.sum))
            .sum(self.sum)
    }
}

const SOON: Duration = Duration::from_millis(60);
/// Longer than the workers wait themselves.
const LATER: Duration = Duration::from_millis(900);
