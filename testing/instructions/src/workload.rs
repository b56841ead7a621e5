//! The workloads whose instructions are counted.

use anyhow::{Context, ensure};
use bench_rounds::message;
use superstep::prelude::*;
use superstep::run::{StreamEventBody, StreamMode};
use superstep::{DriveError, Event, GraphBuilder, Seq};
use tokio::task::JoinSet;

use crate::stores::{OpenStore, memory, postgres, sqlite};

/// A workload: what one unit of it is called, and the function that does this many rounds and returns how many units they are.
/// What the function does besides its rounds must not depend on their number.
pub(crate) struct Workload {
    pub(crate) unit: &'static str,
    pub(crate) rounds: u64,
    pub(crate) run: fn(&Executor, u64) -> anyhow::Result<u64>,
}

/// Runs everything on one OS thread, so that the same instructions run in the same order each time. Only SQLite has threads
/// besides: one that writes large groups, and one that reads.
pub(crate) type Executor = tokio::runtime::Runtime;

pub(crate) const ALL: &[Workload] = &[
    Workload {
        unit: "superstep",
        rounds: 50,
        run: |executor, rounds| supersteps(executor, rounds, memory),
    },
    Workload {
        unit: "superstep on SQLite",
        rounds: 25,
        run: |executor, rounds| supersteps(executor, rounds, sqlite),
    },
    Workload {
        unit: "superstep on PostgreSQL, in the client",
        rounds: 25,
        run: |executor, rounds| supersteps(executor, rounds, postgres),
    },
    Workload {
        unit: "fan-out task",
        rounds: 1,
        run: |executor, rounds| fan_out_tasks(executor, rounds, memory),
    },
    Workload {
        unit: "fan-out task on SQLite",
        rounds: 1,
        run: |executor, rounds| fan_out_tasks(executor, rounds, sqlite),
    },
    Workload {
        unit: "superstep seen by a watcher of updates",
        rounds: 50,
        run: |executor, rounds| seen_later(executor, rounds, Some(StreamMode::Updates)),
    },
    Workload {
        unit: "superstep seen by a watcher of everything",
        rounds: 50,
        run: |executor, rounds| seen_later(executor, rounds, None),
    },
    Workload {
        unit: "superstep seen live by one of 100 watchers of updates",
        rounds: 2,
        run: seen_live,
    },
    Workload {
        unit: "answer",
        rounds: ANSWERS,
        run: |executor, rounds| answers(executor, rounds, memory),
    },
    Workload {
        unit: "answer on SQLite",
        rounds: ANSWERS,
        run: |executor, rounds| answers(executor, rounds, sqlite),
    },
    Workload {
        unit: "answer on PostgreSQL, in the client",
        rounds: ANSWERS,
        run: |executor, rounds| answers(executor, rounds, postgres),
    },
    Workload {
        unit: "state read of a thread of 20 supersteps",
        rounds: 50,
        run: states_read,
    },
    // The two sizes of each: a run may cost more next to the larger document only by what reading it costs.
    Workload {
        unit: "run of 20 supersteps next to a 10 KB document",
        rounds: 2,
        run: |executor, rounds| runs_with_document(executor, rounds, 10_000),
    },
    Workload {
        unit: "run of 20 supersteps next to a 1 MB document",
        rounds: 2,
        run: |executor, rounds| runs_with_document(executor, rounds, 1_000_000),
    },
    Workload {
        unit: "state read with a 10 KB document",
        rounds: 2,
        run: |executor, rounds| states_with_document(executor, rounds, 10_000),
    },
    Workload {
        unit: "state read with a 1 MB document",
        rounds: 2,
        run: |executor, rounds| states_with_document(executor, rounds, 1_000_000),
    },
];

#[derive(Clone, Debug, Default, State)]
pub(crate) struct Talk {
    #[state(append)]
    messages: Vec<String>,
    step: u64,
}

#[derive(Clone, Debug, Default, State)]
struct Fan {
    branches: u64,
    #[state(append)]
    out: Vec<u64>,
    total: u64,
}

#[derive(Clone, Debug, Default, State)]
struct Notes {
    document: String,
    #[state(append)]
    notes: Vec<String>,
    step: u64,
}

pub(crate) const NODES: u64 = 20;
const BRANCHES: u64 = 1_000;
const BRANCH: SendTo<u64> = SendTo::new("branch");
const WATCHERS: u64 = 100;
const ANSWERS: u64 = 25;

fn supersteps(executor: &Executor, rounds: u64, store: OpenStore) -> anyhow::Result<u64> {
    let (runtime, graph) = (store(executor)?, chain()?);
    for number in 0..rounds {
        executor.block_on(run_chain(&runtime, &graph, number))?;
    }
    Ok(rounds * NODES)
}

fn fan_out_tasks(executor: &Executor, rounds: u64, store: OpenStore) -> anyhow::Result<u64> {
    let (runtime, graph) = (store(executor)?, fan()?);
    for number in 0..rounds {
        executor.block_on(async {
            let thread = runtime.thread(&graph, name(number))?;
            let input = FanUpdate::default().branches(BRANCHES);
            let stopped = thread.start(input).await?;
            ensure!(stopped.state.total == BRANCHES, "{:?}", stopped.outcome);
            anyhow::Ok(())
        })?;
    }
    Ok(rounds * BRANCHES)
}

/// Reads the log of a run that is over.
fn seen_later(executor: &Executor, rounds: u64, mode: Option<StreamMode>) -> anyhow::Result<u64> {
    let (runtime, graph) = (memory(executor)?, chain()?);
    executor.block_on(run_chain(&runtime, &graph, 0))?;
    let thread = runtime.thread(&graph, name(0))?;
    for _ in 0..rounds {
        executor.block_on(async {
            let events = thread.events(Seq(0));
            let events = match mode {
                Some(mode) => events.only([mode]),
                None => events,
            };
            ensure!(events.stored().await?.len() as u64 >= NODES);
            anyhow::Ok(())
        })?;
    }
    Ok(rounds * NODES)
}

/// Watches runs while they run. The superstep itself is in the figure, divided by the number of watchers.
fn seen_live(executor: &Executor, rounds: u64) -> anyhow::Result<u64> {
    let runtime = memory(executor)?;
    let graph = chain_of(wait_and_say).build()?;
    let thread = runtime.thread(&graph, name(0))?;
    executor.block_on(async {
        // The thread exists when it is watched.
        say_all(&thread).await?;
        let mut watchers = JoinSet::new();
        for _ in 0..WATCHERS {
            let mut events = thread.events(Seq(0)).only([StreamMode::Updates]);
            watchers.spawn(async move {
                let mut runs = 0;
                while runs < rounds + 1 {
                    if let Event::Logged(item) = events.next().await?
                        && matches!(item.what, StreamEventBody::Stopped(_))
                    {
                        runs += 1;
                    }
                }
                Ok::<_, DriveError>(())
            });
        }
        for _ in 0..rounds {
            say_all(&thread).await?;
        }
        while let Some(watched) = watchers.join_next().await {
            watched??;
        }
        Ok(rounds * NODES * WATCHERS)
    })
}

async fn say_all(thread: &Thread<Talk>) -> anyhow::Result<()> {
    let outcome = thread.start(TalkUpdate::default().step(0)).await?.outcome;
    ensure!(outcome == Outcome::Finished, "{outcome:?}");
    Ok(())
}

fn answers(executor: &Executor, rounds: u64, store: OpenStore) -> anyhow::Result<u64> {
    let (runtime, graph) = (store(executor)?, approval()?);
    let waiting: Vec<_> = (0..2 * ANSWERS)
        .map(|number| {
            let thread = runtime.thread(&graph, name(number))?;
            executor.block_on(thread.start(TalkUpdate::default().step(0)))?;
            Ok(thread)
        })
        .collect::<anyhow::Result<_>>()?;
    let answered = waiting.get(..usize::try_from(rounds)?);
    for thread in answered.context("there are not as many threads")? {
        let stopped = executor.block_on(thread.answer_only("yes"))?;
        let stopped = stopped.context("another owner runs the thread")?;
        ensure!(stopped.state.step == 3, "{stopped:?}");
    }
    Ok(rounds)
}

fn states_read(executor: &Executor, rounds: u64) -> anyhow::Result<u64> {
    let (runtime, graph) = (memory(executor)?, chain()?);
    executor.block_on(run_chain(&runtime, &graph, 0))?;
    let thread = runtime.thread(&graph, name(0))?;
    for _ in 0..rounds {
        ensure!(executor.block_on(thread.state())?.is_some());
    }
    Ok(rounds)
}

fn runs_with_document(executor: &Executor, rounds: u64, bytes: usize) -> anyhow::Result<u64> {
    let (runtime, graph) = (memory(executor)?, notes()?);
    let thread = executor.block_on(thread_with_document(&runtime, &graph, bytes))?;
    for _ in 0..rounds {
        executor.block_on(take_notes(&thread, NotesUpdate::default()))?;
    }
    Ok(rounds)
}

fn states_with_document(executor: &Executor, rounds: u64, bytes: usize) -> anyhow::Result<u64> {
    let (runtime, graph) = (memory(executor)?, notes()?);
    let thread = executor.block_on(thread_with_document(&runtime, &graph, bytes))?;
    for _ in 0..rounds {
        ensure!(executor.block_on(thread.state())?.is_some());
    }
    Ok(rounds)
}

/// Returns a thread with a document of this size, which it got in its first run.
async fn thread_with_document(
    runtime: &Runtime,
    graph: &Graph<Notes>,
    bytes: usize,
) -> anyhow::Result<Thread<Notes>> {
    let thread = runtime.thread(graph, "notes")?;
    let document = "lorem ipsum ".repeat(bytes / 12);
    let input = NotesUpdate::default().document(document).step(0);
    take_notes(&thread, input).await?;
    take_notes(&thread, NotesUpdate::default()).await?;
    Ok(thread)
}

async fn take_notes(thread: &Thread<Notes>, input: NotesUpdate) -> anyhow::Result<()> {
    let outcome = thread.start(input).await?.outcome;
    ensure!(outcome == Outcome::Finished, "{outcome:?}");
    Ok(())
}

async fn run_chain(runtime: &Runtime, graph: &Graph<Talk>, number: u64) -> anyhow::Result<()> {
    let thread = runtime.thread(graph, name(number))?;
    let stopped = thread.start(TalkUpdate::default().step(0)).await?;
    ensure!(stopped.state.messages.len() as u64 == NODES, "{stopped:?}");
    Ok(())
}

/// A name as long as a random id.
fn name(number: u64) -> String {
    format!("{:036x}", (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

async fn say(talk: View<Talk>, _: NodeCx) -> Result<TalkUpdate, NodeError> {
    let update = TalkUpdate::default().step(talk.step + 1);
    Ok(update.messages(message(talk.step as usize)))
}

/// Lets others run first, as a call of a model does, so that watchers see each superstep when it is stored.
async fn wait_and_say(talk: View<Talk>, cx: NodeCx) -> Result<TalkUpdate, NodeError> {
    tokio::task::yield_now().await;
    say(talk, cx).await
}

pub(crate) fn chain() -> anyhow::Result<Graph<Talk>> {
    // What callers of a server may write.
    Ok(chain_of(say).inputs(["step"]).build()?)
}

fn chain_of(node: impl Node<Talk> + Copy) -> GraphBuilder<Talk> {
    let names: Vec<String> = (0..NODES).map(|at| format!("n{at}")).collect();
    let mut builder = Graph::builder("chain").edge(START, names[0].as_str());
    for (at, name) in names.iter().enumerate() {
        let next = names.get(at + 1).map_or(END, String::as_str);
        builder = builder.node(name.as_str(), node).edge(name.as_str(), next);
    }
    builder
}

fn fan() -> anyhow::Result<Graph<Fan>> {
    let split = |fan: View<Fan>, _: NodeCx| async move {
        let all = Command::update(FanUpdate::default());
        Ok::<_, NodeError>((0..fan.branches).fold(all, |all, n| all.send(&BRANCH, n)))
    };
    let branch = |n: u64, _: NodeCx| async move { Ok::<_, NodeError>(FanUpdate::default().out(n)) };
    let join = |fan: View<Fan>, _: NodeCx| async move {
        Ok::<_, NodeError>(FanUpdate::default().total(fan.out.len() as u64))
    };
    Ok(Graph::builder("fanout")
        .node("split", split)
        .map_node(&BRANCH, branch)
        .node("join", join)
        .edge(START, "split")
        .commands("split", &["branch"])
        .edge("branch", "join")
        .edge("join", END)
        .build()?)
}

fn approval() -> anyhow::Result<Graph<Talk>> {
    let ask = |talk: View<Talk>, cx: NodeCx| async move {
        let answer: String = cx.interrupt(Interrupt::new("approve", "approve?")).await?;
        let update = TalkUpdate::default().step(talk.step + 1);
        Ok::<_, NodeError>(update.messages(answer))
    };
    Ok(Graph::builder("approval")
        .node("draft", say)
        .node("ask", ask)
        .node("done", say)
        .edge(START, "draft")
        .edge("draft", "ask")
        .edge("ask", "done")
        .edge("done", END)
        .build()?)
}

fn notes() -> anyhow::Result<Graph<Notes>> {
    let note = |notes: View<Notes>, _: NodeCx| async move {
        let update = NotesUpdate::default().notes(message(notes.step as usize));
        Ok::<_, NodeError>(update.step(notes.step + 1))
    };
    let again = |notes: &Notes| match notes.step.is_multiple_of(NODES) {
        true => END,
        false => "note",
    };
    Ok(Graph::builder("notes")
        .node("note", note)
        .edge(START, "note")
        .route("note", &["note", END], again)
        .build()?)
}
