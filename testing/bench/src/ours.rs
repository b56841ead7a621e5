//! Our own side: a process of its own that is measured as the others are, on the way that users go.
//!
//! A `Runtime` over the checkpointer as it comes, with its event log, driven by tokio as `#[tokio::main]` sets it up.

pub(super) mod chain;
pub(super) mod served;
pub(super) mod worker;

mod approval;
mod fanout;
mod kept;
mod turns;

use std::sync::atomic::{AtomicU64, Ordering};

use bench_rounds::{Round, Task};

pub(super) use kept::{Keeper, Kept};

/// Does what the command line says until nobody asks for more.
pub(crate) fn serve(words: Vec<String>) -> anyhow::Result<()> {
    let task = Task::parse(words.into_iter()).map_err(anyhow::Error::from_boxed)?;
    let tokio = tokio::runtime::Runtime::new()?;
    match task.work.as_str() {
        "worker" => return worker::serve(&task, &tokio),
        "server" => return served::serve(&task, &tokio),
        _ => {}
    }
    let mut side = Side {
        keeper: Keeper::of(&task.store)?,
        kept: None,
        task,
    };
    let version = env!("CARGO_PKG_VERSION");
    bench_rounds::serve(version, || tokio.block_on(side.round())).map_err(anyhow::Error::from_boxed)
}

struct Side {
    task: Task,
    keeper: Keeper,
    /// What all rounds share, as a server does.
    kept: Option<Kept>,
}

impl Side {
    async fn round(&mut self) -> anyhow::Result<Round> {
        let is_weighed = matches!(self.task.work.as_str(), "loop" | "marginal" | "parked");
        // What is weighed begins empty, and memory would grow from round to round.
        if is_weighed || !self.keeper.is_durable() || self.kept.is_none() {
            self.kept = Some(self.keeper.fresh().await?);
        }
        let kept = self.kept.as_ref().expect("it was just made");
        match self.task.work.as_str() {
            "chain" => chain::round(&self.task, &kept.runtime).await,
            "calls" => served::round(&self.task, &kept.runtime).await,
            "loop" => turns::round(&self.task, kept).await,
            "marginal" => turns::marginal(&self.task, kept).await,
            "fanout" => fanout::round(&self.task, &kept.runtime).await,
            "resume" => approval::answers(&self.task, &kept.runtime).await,
            "parked" => approval::parked(&self.task, kept).await,
            unknown => anyhow::bail!("ours does not do `{unknown}`"),
        }
    }
}

/// A name that no thread of this process had, as long as the random ids that the others give theirs.
fn thread_name() -> String {
    static NAMED: AtomicU64 = AtomicU64::new(1);
    let number = NAMED.fetch_add(1, Ordering::Relaxed);
    format!("{:036x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A setting of the command line.
fn number(task: &Task, name: &str) -> anyhow::Result<usize> {
    task.number(name).map_err(anyhow::Error::from_boxed)
}
