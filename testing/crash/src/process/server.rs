//! `crash server|streams|outages|slow`: the server of `superstep-server`, a process of its own that clients use over HTTP, and that is
//! killed, cut off from its clients, left without a database, and kept busy for minutes.
//!
//! The process is the program of `testing/workers` in its mode `http`; on a cluster there are two of them, and two workers in the
//! mode `http-worker` behind a Restate and a Redis of the trials' own. The clients are threads of this one: they speak plain HTTP
//! over connections that they can cut after any byte, and remember what they were told. Judged is what the server shows in the
//! end, and what the ledger counted.

mod api;
mod host;
mod http;
mod judge;
mod kills;
mod load;
mod order;
mod outages;
mod site;
mod slow;
mod sse;
mod streams;
mod watcher;

use super::{Found, Plan, Test};

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    match plan.test {
        Test::Streams => streams::run(plan),
        Test::Outages => outages::run(plan),
        Test::Slow => slow::run(plan),
        _ => kills::run(plan),
    }
}
