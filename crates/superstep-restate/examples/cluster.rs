//! A graph on a cluster, the smallest whole program: one mode is a worker that Restate calls, the other a client.
//!
//! ```sh
//! cargo xtask services up postgres restate
//! eval "$(cargo xtask services env)"
//! cargo build -p superstep-restate --example cluster
//! cargo run -p superstep-restate --example cluster worker 127.0.0.1:9080 &
//! curl -X POST "$RESTATE_ADMIN/deployments" -H content-type:application/json \
//!     -d '{"uri":"http://127.0.0.1:9080","force":true}'
//! cargo run -p superstep-restate --example cluster greet Ada
//! ```
//!
//! The client prints `Finished: ["Hello, Ada.", "Welcome to the cluster."]`, and the worker the number of its process.
//! `docs/cluster.md` explains the parts; the example `relay` kills workers and nodes.

#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

use std::error::Error;

use superstep::prelude::*;
use superstep_postgres::Postgres;
use superstep_restate::{Restate, Worker};

#[derive(Clone, Debug, Default, State)]
struct Greeting {
    name: String,
    #[state(append)]
    lines: Vec<String>,
}

async fn greet(greeting: View<Greeting>, _cx: NodeCx) -> Result<GreetingUpdate, NodeError> {
    println!("process {} greets {}", std::process::id(), greeting.name);
    Ok(GreetingUpdate::default().lines(format!("Hello, {}.", greeting.name)))
}

async fn welcome(_: View<Greeting>, _cx: NodeCx) -> Result<GreetingUpdate, NodeError> {
    Ok(GreetingUpdate::default().lines("Welcome to the cluster."))
}

fn graph() -> Result<Graph<Greeting>, Box<dyn Error>> {
    Ok(Graph::builder("greeting")
        .node("greet", greet)
        .node("welcome", welcome)
        .edge(START, "greet")
        .edge("greet", "welcome")
        .edge("welcome", END)
        .build()?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let postgres = Postgres::connect(&variable("POSTGRES_URL")?).await?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["worker", address] => work(postgres, address).await,
        ["greet", name] => run(postgres, name).await,
        _ => Err("usage: cluster worker ADDRESS | cluster greet NAME".into()),
    }
}

/// The worker holds the graph and runs its nodes. Start as many as you like.
async fn work(postgres: Postgres, address: &str) -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::new(postgres.clone());
    runtime.register(&graph()?);
    let listener = Worker::listen(address.parse()?)?;
    println!("worker listening at {address}");
    let stop = async {
        // Without a signal handler the worker runs until it is killed, which is safe too.
        if let Err(error) = tokio::signal::ctrl_c().await {
            eprintln!("cannot wait for ctrl-c: {error}");
            std::future::pending().await
        }
    };
    Ok(Worker::new(runtime, postgres).serve(listener, stop).await?)
}

/// The client sends requests through Restate and reads the threads from PostgreSQL. It runs no node.
async fn run(postgres: Postgres, name: &str) -> Result<(), Box<dyn Error>> {
    let ingress = variable("RESTATE_INGRESS")?;
    let engine = Restate::new(ingress.split(','), postgres.clone())?;
    let runtime = Runtime::builder(postgres).engine(engine).build();
    let thread = runtime.thread(&graph()?, format!("greeting-{}", std::process::id()))?;
    let stopped = thread.start(GreetingUpdate::default().name(name)).await?;
    println!("{:?}: {:?}", stopped.outcome, stopped.state.lines);
    Ok(())
}

fn variable(name: &str) -> Result<String, Box<dyn Error>> {
    let missing = || format!("{name} is not set: eval \"$(cargo xtask services env)\"");
    std::env::var(name).map_err(|_| missing().into())
}
