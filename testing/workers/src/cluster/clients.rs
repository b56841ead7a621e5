//! `clients`: those who give orders to the cluster, many at once.
//!
//! A command is a line `TAG WORDS`; what became of it is a line `TAG JSON`, whenever that is known. Every order has an id that
//! follows from what it is about, so a client that is killed can be started anew and says the same again.

use std::io::BufRead;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use harness::prng::mix;
use serde_json::{Value as Json, json};
use superstep::checkpoint::{RESULT_KEY, Status};
use superstep::prelude::*;
use superstep::{
    Checkpointer, InterruptId, RunId, RunOptions, RunResult, Runtime, Thread, ThreadId,
};
use superstep_postgres::Postgres;
use superstep_restate::Restate;
use tokio::sync::{Barrier, mpsc};
use tokio::task::JoinSet;

use super::graphs::{self, Talk, TalkUpdate, Trip, TripUpdate, Version, Wide, WideUpdate};
use super::program::{Program, answer_to};
use super::store::{Mutant, Place};
use super::work::{self, Work};
use crate::ledger::{Ledger, Report};
use crate::{AnyError, Args};

pub(crate) async fn clients(args: &Args) -> Result<(), AnyError> {
    let desk = Arc::new(Desk::open(args).await?);
    println!("ready");
    let mut lines = stdin_lines();
    let mut commands = JoinSet::new();
    while let Some(line) = lines.recv().await {
        // Those that have ended are kept until somebody looks.
        while commands.try_join_next().is_some() {}
        let desk = desk.clone();
        commands.spawn(async move {
            let (tag, words) = line.split_once(' ').unwrap_or((&line, ""));
            let told = match tokio::time::timeout(STUCK, desk.perform(words)).await {
                Ok(Ok(told)) => told,
                Ok(Err(error)) => json!({ "error": error.to_string() }),
                Err(_) => json!({ "error": "stuck" }),
            };
            println!("{tag} {told}");
        });
    }
    Ok(())
}

/// Ends with the one that writes them.
fn stdin_lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// What every client works with.
struct Desk {
    store: Postgres,
    ledger: Arc<Ledger>,
    runtime: Runtime,
    ingress: Vec<String>,
    seed: u64,
    work: Graph<Work>,
    talk: Graph<Talk>,
    wide: Graph<Wide>,
    trip: Graph<Trip>,
}

impl Desk {
    async fn open(args: &Args) -> Result<Self, AnyError> {
        let ledger = Arc::new(Ledger::connect(args).await?);
        let store = Place::of(args)?.open().await?;
        let engine = Restate::new(args.ingress.clone(), store.clone())?;
        Ok(Self {
            runtime: Runtime::builder(store.clone()).engine(engine).build(),
            store,
            ingress: args.ingress.clone(),
            seed: args.seed,
            work: work::graph(&ledger)?,
            talk: graphs::talk(&ledger)?,
            wide: graphs::wide(&ledger)?,
            trip: graphs::trip(&ledger, Version::Old, Mutant::None)?,
            ledger,
        })
    }

    async fn perform(&self, words: &str) -> Result<Json, AnyError> {
        let words: Vec<&str> = words.split(' ').collect();
        match words.as_slice() {
            ["program", number] => self.program(number.parse()?).await,
            ["talk", thread, rounds] => {
                let input = TalkUpdate::default().rounds(rounds.parse()?);
                let thread = self.thread(&self.talk, thread, "start")?;
                Ok(told(&thread.start(input).await?))
            }
            ["trip", thread, way] => {
                let input = TripUpdate::default().by_side_way(*way == "side");
                let thread = self.thread(&self.trip, thread, "start")?;
                Ok(told(&thread.start(input).await?))
            }
            ["wide", thread, tasks] => {
                let input = WideUpdate::default().tasks(tasks.parse()?);
                let thread = self.thread(&self.wide, thread, "start")?;
                let stopped = thread.start(input).await?;
                Ok(json!({ "outcome": name_of(&stopped.outcome), "state": stopped.state }))
            }
            ["answer", graph, thread, question, answer] => {
                let (question, answer) = (question.parse()?, answer.parse()?);
                self.answer(graph, thread, question, answer).await
            }
            ["race", thread, question, racers] => {
                self.race(thread, question.parse()?, racers.parse()?).await
            }
            ["stored", thread] => self.stored_results(thread).await,
            ["look", graph, thread] => self.look(graph, thread).await,
            ["effects", thread] => self.effects(thread).await,
            unknown => Err(format!("`{unknown:?}` is not a command").into()),
        }
    }

    fn thread<S: State>(
        &self,
        graph: &Graph<S>,
        name: &str,
        order: &str,
    ) -> Result<Thread<S>, AnyError> {
        self.thread_of(&self.runtime, graph, name, order)
    }

    /// A thread whose next order has an id that follows from its name and what it is about.
    fn thread_of<S: State>(
        &self,
        runtime: &Runtime,
        graph: &Graph<S>,
        name: &str,
        order: &str,
    ) -> Result<Thread<S>, AnyError> {
        let mut options = RunOptions::default();
        let half = |half: &str| u128::from(mix(self.seed, &format!("{half} {name} {order}")));
        let id = half("first") << 64 | half("second");
        options.run = Some(RunId::from_bytes(id.to_be_bytes()));
        // A trial may kill often within one superstep; that is no poison.
        options.recoveries_max = 1_000;
        Ok(runtime.thread(graph, name)?.with_options(options))
    }

    /// Runs a random program to its end and answers whatever it asks.
    async fn program(&self, number: u64) -> Result<Json, AnyError> {
        let program = Program::random(self.seed, number);
        let name = format!("program-{number}");
        let report = async |phase: &str, key: &str| {
            let (thread, detail) = (name.as_str(), 0);
            let report = Report {
                thread,
                phase,
                key,
                detail,
            };
            self.ledger.report(report).await;
        };
        report("ordered", "start").await;
        let thread = self.thread(&self.work, &name, "start")?;
        thread.start(Work::input(&program)).await?;
        report("told", "start").await;
        loop {
            match self.status(thread.id()).await? {
                Status::Idle | Status::Failed => return Ok(json!("ended")),
                Status::Paused => {}
                // An order of a client that is no more is being carried out.
                Status::Running => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
                other => return Err(format!("it is {other:?}").into()),
            }
            let open = thread.interrupts().await?;
            let Some(open) = open.first() else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (id, key) = (open.interrupt.id, &open.interrupt.key);
            let order = format!("answer {id}");
            report("ordered", &order).await;
            let answer = answer_to(program.seed, key);
            let thread = self.thread(&self.work, &name, &order)?;
            thread.answer(id, answer).await?;
            report("told", &order).await;
        }
    }

    /// How many results of tasks of a thread are stored and not yet joined.
    async fn stored_results(&self, thread: &str) -> Result<Json, AnyError> {
        let thread = self.thread(&self.wide, thread, "look")?;
        let loaded = self.store.load(thread.id()).await?.unwrap_or_default();
        let results = loaded.records.iter().filter(|row| row.key == RESULT_KEY);
        Ok(json!(results.count()))
    }

    async fn status(&self, thread: &ThreadId) -> Result<Status, AnyError> {
        let glance = self.store.glance(thread, None).await?;
        Ok(glance.ok_or("the thread is not there")?.status)
    }

    async fn answer(
        &self,
        graph: &str,
        thread: &str,
        question: InterruptId,
        answer: u64,
    ) -> Result<Json, AnyError> {
        let begun = Instant::now();
        let mut told = match graph {
            "talk" => {
                let thread = self.thread(&self.talk, thread, &format!("answer {question}"))?;
                answered(thread.answer(question, answer).await)
            }
            _ => {
                // Somebody who is refused may ask again later, and that is another order.
                let order = format!("answer {question} at {:?}", SystemTime::now());
                let thread = self.thread(&self.trip, thread, &order)?;
                answered(thread.answer(question, answer).await)
            }
        };
        told["took_ms"] = json!(u64::try_from(begun.elapsed().as_millis())?);
        Ok(told)
    }

    /// Answers one question as many at once, each by a way of its own into the cluster, and each something else.
    async fn race(
        &self,
        thread: &str,
        question: InterruptId,
        racers: u64,
    ) -> Result<Json, AnyError> {
        let start = Arc::new(Barrier::new(racers as usize));
        let mut running = JoinSet::new();
        for racer in 0..racers {
            let mut ingress = self.ingress.clone();
            ingress.rotate_left(racer as usize % self.ingress.len());
            let engine = Restate::new(ingress, self.store.clone())?;
            let runtime = Runtime::builder(self.store.clone()).engine(engine).build();
            let order = format!("answer {question} by {racer}");
            let thread = self.thread_of(&runtime, &self.talk, thread, &order)?;
            let start = start.clone();
            running.spawn(async move {
                start.wait().await;
                (racer, answered(thread.answer(question, racer).await))
            });
        }
        let mut told = vec![Json::Null; racers as usize];
        while let Some(racer) = running.join_next().await {
            let (racer, answered) = racer?;
            told[racer as usize] = answered;
        }
        Ok(json!(told))
    }

    async fn look(&self, graph: &str, name: &str) -> Result<Json, AnyError> {
        match graph {
            "talk" => self.look_at(&self.talk, name).await,
            "trip" => self.look_at(&self.trip, name).await,
            _ => self.look_at(&self.wide, name).await,
        }
    }

    async fn look_at<S: State + serde::Serialize + serde::de::DeserializeOwned>(
        &self,
        graph: &Graph<S>,
        name: &str,
    ) -> Result<Json, AnyError> {
        let thread = self.thread(graph, name, "look")?;
        let loaded = self.store.load(thread.id()).await?;
        let head = loaded.ok_or("the thread is not there")?.head;
        let state = thread.state().await?.ok_or("the thread has no state")?;
        let open: Vec<String> = thread
            .interrupts()
            .await?
            .iter()
            .map(|open| open.interrupt.id.to_string())
            .collect();
        Ok(json!({
            "seq": head.seq.0,
            "epoch": head.epoch.0.to_string(),
            "status": format!("{:?}", head.status),
            "state": state.values.decode::<S>()?,
            "open": open,
        }))
    }

    /// What the ledger holds of a thread: which effects, in the order in which they came, and whose they were.
    async fn effects(&self, name: &str) -> Result<Json, AnyError> {
        let lines = self.ledger.lines_of(name).await?;
        let told = lines.iter();
        Ok(told
            .map(|line| json!([line.phase, line.key, line.worker]))
            .collect())
    }
}

fn told<S>(stopped: &RunResult<S>) -> Json {
    let open: Vec<String> = match &stopped.outcome {
        Outcome::Paused(questions) => questions.iter().map(|asked| asked.id.to_string()).collect(),
        _ => Vec::new(),
    };
    json!({ "outcome": name_of(&stopped.outcome), "open": open })
}

fn answered<S>(answered: Result<Option<RunResult<S>>, superstep::DriveError>) -> Json {
    match answered {
        Ok(Some(stopped)) => told(&stopped),
        Ok(None) => json!({ "outcome": "elsewhere" }),
        Err(superstep::DriveError::Engine { code, message, .. }) => {
            json!({ "refused": code, "message": message })
        }
        Err(error) => json!({ "refused": error.code(), "message": error.to_string() }),
    }
}

fn name_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Finished => "finished",
        Outcome::Paused(_) => "paused",
        Outcome::Failed(_) => "failed",
        _ => "other",
    }
}

/// After which an order counts as lost.
const STUCK: Duration = Duration::from_secs(150);
