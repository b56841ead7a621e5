//! Modes of processes on a cluster: workers that Restate calls, clients, and the judge of random programs.

mod clients;
mod graphs;
mod judge;
mod program;
mod register;
mod serve;
mod store;
mod work;

use crate::{AnyError, Args};

pub(crate) async fn perform(args: &Args) -> Result<(), AnyError> {
    match args.mode.as_str() {
        "prepare" => prepare(args).await,
        "worker" => serve::serve(args).await,
        "clients" => clients::clients(args).await,
        "judge" => judge::judge(args).await,
        _ => register::register(args).await,
    }
}

/// Creates the tables of the threads, so that no worker has to wait for another that does.
async fn prepare(args: &Args) -> Result<(), AnyError> {
    store::Place::of(args)?.open().await?;
    println!("prepared");
    Ok(())
}
