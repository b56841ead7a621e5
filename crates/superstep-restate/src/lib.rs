//! Runs the graphs of Superstep on a cluster, with [Restate] as its engine.
//!
//! Distribution, one writer for each thread, timers, retries and failover are Restate's; this crate writes none of them.
//! A thread is a virtual object of Restate's, a request to it is an invocation, and what an invocation does is journaled in
//! segments of many supersteps. A pause ends the invocation: nothing waits in memory, and the thread continues with
//! whatever version of the program is deployed when the answer comes. The store, which several processes share, is the only
//! truth; Restate's journal holds ids and numbers, and nothing of the user's.
//!
//! - [`Worker`] is the process that Restate calls: a [`Runtime`](superstep::Runtime) with graphs, and an address.
//! - [`Restate`] is the [`Engine`](superstep::Engine) that a program gives its orders to. With it, the
//!   [`Thread`](superstep::Thread)s of a runtime are run by the workers, and everything else about them stays as it is.
//! - [`Redis`] is the [`Wire`](superstep::Wire) that carries what nodes show while they run from the workers to those who
//!   watch. It is optional: without it, watchers see the log, a little later.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use superstep::driver::RequestQueue;
//! # use superstep::prelude::*;
//! # async fn example<P: superstep::Checkpointer + RequestQueue + Clone>(
//! #     postgres: P, graph: Graph<impl State>,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! use superstep_restate::{Redis, Restate, Worker};
//!
//! // In the workers:
//! let wire = Redis::connect("redis://127.0.0.1:6379").await?;
//! let runtime = Runtime::builder(postgres.clone()).wire(wire.clone()).build();
//! runtime.register(&graph);
//! let listener = Worker::listen("127.0.0.1:9080".parse()?)?;
//! Worker::new(runtime, postgres.clone()).serve(listener, std::future::pending()).await?;
//!
//! // In the program that uses them:
//! let engine = Restate::new(["http://127.0.0.1:8080"], postgres.clone())?;
//! let runtime = Runtime::builder(postgres).engine(engine).wire(wire).build();
//! # Ok(())
//! # }
//! ```
//!
//! [Restate]: https://restate.dev

mod client;
mod cron;
#[doc(hidden)]
pub mod fuzzing;
mod handlers;
mod ingress;
mod live;
mod operations;
mod refusal;
mod worker;

pub use client::{Restate, RestateError};
pub use cron::{Cron, CronError};
pub use live::{Redis, RedisError, RedisOptions};
pub use operations::Health;
pub use worker::{Worker, WorkerError};

/// The examples of the page on clusters compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/cluster.md")]
struct Cluster;
