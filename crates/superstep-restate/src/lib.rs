//! Runs Superstep graphs on a cluster, with [Restate] as the engine.
//!
//! Restate provides distribution, a single writer per thread, timers, retries and failover; this crate implements none of
//! them. A thread is a Restate virtual object, a request to it is an invocation, and Restate journals an invocation in
//! segments of many supersteps. A pause ends the invocation: nothing waits in memory, and the thread resumes on whatever
//! version of the program is deployed when the answer arrives. The store, which all processes share, is the only source of
//! truth; Restate's journal contains ids and numbers, but no user data.
//!
//! - [`Worker`] is the process that Restate calls: a [`Runtime`](superstep::Runtime) with graphs, and an address.
//! - [`Restate`] is the [`Engine`](superstep::Engine) that a program sends its requests to. With it, workers run the
//!   [`Thread`](superstep::Thread)s of a runtime; the rest of the API stays the same.
//! - [`Redis`] is the [`LiveBus`](superstep::LiveBus) that carries live events of nodes from the workers to the processes that
//!   stream a thread. It is optional: without it, they follow the log, with a small delay.
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
//! let runtime = Runtime::builder(postgres.clone()).live_bus(wire.clone()).build();
//! runtime.register(&graph);
//! let listener = Worker::listen("127.0.0.1:9080".parse()?)?;
//! Worker::new(runtime, postgres.clone()).serve(listener, std::future::pending()).await?;
//!
//! // In the program that uses them:
//! let engine = Restate::new(["http://127.0.0.1:8080"], postgres.clone())?;
//! let runtime = Runtime::builder(postgres).engine(engine).live_bus(wire).build();
//! # Ok(())
//! # }
//! ```
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [Cluster](../../book/html/docs/cluster.html)
//! - [Local and cluster](../../book/html/docs/concepts/local-and-cluster.html)
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

/// Compiles the examples of the page on clusters as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/cluster.md")]
struct Cluster;
