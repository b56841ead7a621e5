//! The floors: what the databases do by themselves, with the durability that ours has and none of our code.
//!
//! `rows=one` commits one row of 1 KiB at a time. `rows=same` writes again, commit by commit, the very rows that a chain
//! of ours wrote: a script names them (`script.rs`), and the tables with their indexes were made by ours beforehand.
//! Statements are prepared once and every value is bound. A superstep of ours is one commit and so is one of the
//! floor's, except that the same rows include the commit that starts a run, as ours do.

mod postgres;
mod script;
mod sqlite;

use bench_rounds::{Failure, Task, serve};

fn main() -> Result<(), Failure> {
    let task = Task::parse(std::env::args().skip(1))?;
    if task.work != "chain" {
        return Err(format!("the floor does not do `{}`", task.work).into());
    }
    let folder = std::path::PathBuf::from(std::env::var("BENCH_FOLDER")?);
    if task.store == "sqlite" {
        let mut floor = sqlite::Floor::open(&task, &folder)?;
        return serve(env!("CARGO_PKG_VERSION"), || floor.round());
    }
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let floor = postgres::Floor::new(&task, &folder)?;
    serve(env!("CARGO_PKG_VERSION"), || tokio.block_on(floor.round()))
}

/// The row of the one-row floor.
fn one_row() -> Vec<u8> {
    (0..1024_usize)
        .map(|at| bench_rounds::message(at / 200).as_bytes()[at % 200])
        .collect()
}
