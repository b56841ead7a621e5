//! The workloads whose instructions are counted, all with the store in memory.

use anyhow::{Context, ensure};
use bench_rounds::message;
use superstep::prelude::*;
use superstep::run::StreamMode;
use superstep::{Memory, Seq};

use crate::{counted, requests};

/// A workload: what one unit of it is called, and the function that runs it and returns how many units it counted.
pub(crate) struct Workload {
    pub(crate) unit: &'static str,
    pub(crate) run: fn(&Executor) -> anyhow::Result<u64>,
}

/// Runs everything on one OS thread, so that the same instructions run in the same order each time.
pub(crate) type Executor = tokio::runtime::Runtime;

pub(crate) const ALL: &[Workload] = &[
    Workload {
        unit: "superstep",
        run: supersteps,
    },
    Workload {
        unit: "fan-out task",
        run: fan_out_tasks,
    },
    Workload {
        unit: "superstep seen by a watcher of updates",
        run: updates_seen,
    },
    Workload {
        unit: "superstep seen by a watcher of everything",
        run: everything_seen,
    },
    Workload {
        unit: "answer",
        run: answers,
    },
    Workload {
        unit: "state read of a thread of 20 supersteps",
        run: states_read,
    },
    Workload {
        unit: "run of 20 supersteps next to a 1 MB document",
        run: runs_with_document,
    },
    Workload {
        unit: "request to a server",
        run: requests::bare,
    },
    Workload {
        unit: "run of 20 supersteps on a new thread of a server",
        run: requests::runs,
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
pub(crate) const RUNS: u64 = 50;
const BRANCHES: u64 = 1_000;
const BRANCH: SendTo<u64> = SendTo::new("branch");
const DOCUMENT_BYTES: usize = 1_000_000;

fn supersteps(executor: &Executor) -> anyhow::Result<u64> {
    let (runtime, graph) = (Runtime::new(Memory::default()), chain()?);
    // The first runs fill caches and create what is created once.
    let mut run = |number| executor.block_on(run_chain(&runtime, &graph, number));
    (0..RUNS).try_for_each(&mut run)?;
    counted(|| (RUNS..2 * RUNS).try_for_each(&mut run))?;
    Ok(RUNS * NODES)
}

fn fan_out_tasks(executor: &Executor) -> anyhow::Result<u64> {
    let (runtime, graph) = (Runtime::new(Memory::default()), fan()?);
    let run = |number: u64| {
        executor.block_on(async {
            let thread = runtime.thread(&graph, name(number))?;
            let input = FanUpdate::default().branches(BRANCHES);
            let stopped = thread.start(input).await?;
            ensure!(stopped.state.total == BRANCHES, "{:?}", stopped.outcome);
            Ok(())
        })
    };
    run(1)?;
    counted(|| run(2))?;
    Ok(BRANCHES)
}

fn updates_seen(executor: &Executor) -> anyhow::Result<u64> {
    seen(executor, Some(StreamMode::Updates))
}

fn everything_seen(executor: &Executor) -> anyhow::Result<u64> {
    seen(executor, None)
}

fn seen(executor: &Executor, mode: Option<StreamMode>) -> anyhow::Result<u64> {
    let (runtime, graph) = (Runtime::new(Memory::default()), chain()?);
    executor.block_on(run_chain(&runtime, &graph, 0))?;
    let thread = runtime.thread(&graph, name(0))?;
    let watch = |_| {
        executor.block_on(async {
            let events = thread.events(Seq(0));
            let events = match mode {
                Some(mode) => events.only([mode]),
                None => events,
            };
            ensure!(events.stored().await?.len() as u64 >= NODES);
            Ok(())
        })
    };
    watch(0)?;
    counted(|| (0..RUNS).try_for_each(watch))?;
    Ok(RUNS * NODES)
}

fn answers(executor: &Executor) -> anyhow::Result<u64> {
    let (runtime, graph) = (Runtime::new(Memory::default()), approval()?);
    let waiting: Vec<_> = (0..2 * RUNS)
        .map(|number| {
            let thread = runtime.thread(&graph, name(number))?;
            executor.block_on(thread.start(TalkUpdate::default().step(0)))?;
            Ok(thread)
        })
        .collect::<anyhow::Result<_>>()?;
    let answer = |thread: &Thread<Talk>| {
        let stopped = executor.block_on(thread.answer_only("yes"))?;
        let stopped = stopped.context("another owner runs the thread")?;
        ensure!(stopped.state.step == 3, "{stopped:?}");
        Ok(())
    };
    let (first, rest) = waiting.split_at(RUNS as usize);
    first.iter().try_for_each(answer)?;
    counted(|| rest.iter().try_for_each(answer))?;
    Ok(RUNS)
}

fn states_read(executor: &Executor) -> anyhow::Result<u64> {
    let (runtime, graph) = (Runtime::new(Memory::default()), chain()?);
    executor.block_on(run_chain(&runtime, &graph, 0))?;
    let thread = runtime.thread(&graph, name(0))?;
    let read = |_| {
        let state = executor.block_on(thread.state())?;
        ensure!(state.is_some());
        Ok(())
    };
    read(0)?;
    counted(|| (0..RUNS).try_for_each(read))?;
    Ok(RUNS)
}

fn runs_with_document(executor: &Executor) -> anyhow::Result<u64> {
    let (runtime, graph) = (Runtime::new(Memory::default()), notes()?);
    let thread = runtime.thread(&graph, "notes")?;
    let document = "lorem ipsum ".repeat(DOCUMENT_BYTES / 12);
    let run = |input| {
        executor.block_on(async {
            let outcome = thread.start(input).await?.outcome;
            ensure!(outcome == Outcome::Finished, "{outcome:?}");
            Ok(())
        })
    };
    run(NotesUpdate::default().document(document).step(0))?;
    run(NotesUpdate::default())?;
    counted(|| run(NotesUpdate::default()))?;
    Ok(1)
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

pub(crate) fn chain() -> anyhow::Result<Graph<Talk>> {
    let names: Vec<String> = (0..NODES).map(|at| format!("n{at}")).collect();
    let mut builder = Graph::builder("chain").edge(START, names[0].as_str());
    for (at, name) in names.iter().enumerate() {
        let next = names.get(at + 1).map_or(END, String::as_str);
        builder = builder.node(name.as_str(), say).edge(name.as_str(), next);
    }
    // What callers of a server may write.
    Ok(builder.inputs(["step"]).build()?)
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
