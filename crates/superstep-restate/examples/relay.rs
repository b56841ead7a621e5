//! A graph on a cluster, to be killed while you look: twenty legs of a relay, then eight runners at once, and a question at
//! the end. `docs/cluster.md` walks through it.
//!
//! ```sh
//! relay worker 127.0.0.1:9080   # a process that runs the graph; several may share an address
//! relay run first               # starts a thread, and shows how far it is
//! relay answer first gold       # answers its question
//! ```
#![expect(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use superstep::prelude::*;
use superstep::run::StreamEventBody;
use superstep::{Event, Seq};
use superstep_postgres::Postgres;
use superstep_restate::{Restate, Worker};

#[derive(Clone, Debug, Default, State)]
struct Relay {
    /// Who ran, leg by leg.
    #[state(append)]
    legs: Vec<String>,
    medal: Option<String>,
}

const RUNNER: SendTo<u32> = SendTo::new("runner");

async fn leg(relay: View<Relay>, cx: NodeCx) -> Result<RelayUpdate, NodeError> {
    let by = run_for(&cx, 500).await?;
    let leg = relay.legs.len() + 1;
    Ok(RelayUpdate::default().legs(format!("leg {leg}, by worker {by}")))
}

async fn together(_: View<Relay>, _: NodeCx) -> Result<Command<Relay>, NodeError> {
    let update = RelayUpdate::default().legs("all together");
    Ok((1..=8).fold(Command::update(update), |command, n| {
        command.send(&RUNNER, n)
    }))
}

async fn runner(n: u32, cx: NodeCx) -> Result<RelayUpdate, NodeError> {
    let by = run_for(&cx, 800).await?;
    Ok(RelayUpdate::default().legs(format!("runner {n}, by worker {by}")))
}

async fn finish(_: View<Relay>, cx: NodeCx) -> Result<RelayUpdate, NodeError> {
    let medal: String = cx
        .interrupt(Interrupt::new("medal", "Which medal?"))
        .await?;
    Ok(RelayUpdate::default().medal(medal))
}

/// Runs, and says in which process. What a step has done is done, whoever is killed afterwards.
async fn run_for(cx: &NodeCx, ms: u64) -> Result<u32, NodeError> {
    cx.step("run", async || {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Ok::<_, NodeError>(std::process::id())
    })
    .await
}

fn graph() -> Result<Graph<Relay>, Box<dyn Error>> {
    let next = |relay: &Relay| match relay.legs.len() < 20 {
        true => "leg",
        false => "together",
    };
    Ok(Graph::builder("relay")
        .node("leg", leg)
        .node("together", together)
        .map_node(&RUNNER, runner)
        .node("finish", finish)
        .edge(START, "leg")
        .route("leg", &["leg", "together"], next)
        .commands("together", &["runner"])
        .edge("runner", "finish")
        .edge("finish", END)
        .build()?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let postgres = Postgres::connect(&variable("POSTGRES_URL")?).await?;
    match arguments.as_slice() {
        ["worker", address] => work(postgres, address.parse()?).await,
        ["run", thread] => run(&client(postgres)?, thread).await,
        ["answer", thread, medal] => answer(&client(postgres)?, thread, medal).await,
        _ => Err("relay worker ADDRESS | run THREAD | answer THREAD MEDAL".into()),
    }
}

async fn work(postgres: Postgres, address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::new(postgres.clone());
    runtime.register(&graph()?);
    let listener = Worker::listen(address)?;
    let id = std::process::id();
    println!("worker {id} listens at {address}");
    let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let stop = async {
        tokio::select! {
            _ = term.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        println!("worker {id} hands its runs over and stops");
    };
    Ok(Worker::new(runtime, postgres).serve(listener, stop).await?)
}

fn client(postgres: Postgres) -> Result<Runtime, Box<dyn Error>> {
    let nodes = variable("RESTATE_CLUSTER_INGRESS")?;
    let engine = Restate::new(nodes.split(','), postgres.clone())?;
    Ok(Runtime::builder(postgres).engine(engine).build())
}

async fn run(runtime: &Runtime, thread: &str) -> Result<(), Box<dyn Error>> {
    let thread = runtime.thread(&graph()?, thread)?;
    let stopped = tokio::select! {
        stopped = thread.start(RelayUpdate::default()) => stopped?,
        watched = show(&thread) => return watched,
    };
    let lines = stopped.state.legs.len();
    println!("{lines} lines; {}", told(&stopped.outcome));
    Ok(())
}

/// Shows what the thread's nodes write, as soon as it is stored.
async fn show(thread: &Thread<Relay>) -> Result<(), Box<dyn Error>> {
    let mut events = thread.events(Seq(0));
    loop {
        if let Event::Logged(seen) = events.next().await?
            && let StreamEventBody::Update { updates, .. } = &seen.what
        {
            for update in updates {
                println!("{:>4}  {update:?}", seen.seq.0);
            }
        }
    }
}

async fn answer(runtime: &Runtime, thread: &str, medal: &str) -> Result<(), Box<dyn Error>> {
    let thread = runtime.thread(&graph()?, thread)?;
    match thread.answer_only(medal).await? {
        Some(stopped) => {
            let medal = stopped.state.medal.unwrap_or_default();
            println!("medal: {medal}; {}", told(&stopped.outcome));
        }
        None => println!("whoever runs the thread goes on with it"),
    }
    Ok(())
}

fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Finished => "finished".to_owned(),
        Outcome::Paused(asked) => {
            let asked: Vec<String> = asked.iter().map(|q| format!("{:?}", q.request)).collect();
            format!("waits for an answer to {}", asked.join(", "))
        }
        other => format!("{other:?}"),
    }
}

fn variable(name: &str) -> Result<String, Box<dyn Error>> {
    let missing = || format!("{name} is not set: eval \"$(cargo xtask services env)\"");
    std::env::var(name).map_err(|_| missing().into())
}
