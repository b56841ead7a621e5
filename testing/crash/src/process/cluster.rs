//! `crash cluster|leaders|race|upgrade|fanout` on a cluster: three Restate nodes, two workers behind one address, PostgreSQL.
//!
//! The nodes and the workers are this command's own, and real processes. The workers, the clients and the judge are
//! the program `testing/workers` in its other modes; the same ledger counts their effects.

mod clients;
mod fanout;
mod fleet;
mod lab;
mod leaders;
mod monkey;
mod programs;
mod race;
mod upgrade;

use super::{Found, Plan, Test};

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    match plan.test {
        Test::Leaders => leaders::run(plan),
        Test::Race => race::run(plan),
        Test::Upgrade => upgrade::run(plan),
        Test::Fanout => fanout::run(plan),
        _ => programs::run(plan),
    }
}
