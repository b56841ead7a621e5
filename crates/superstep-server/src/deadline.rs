//! Deadlines of interrupts: when one has passed, the answer that the interrupt specifies is given, and the thread resumes.

use std::error::Error;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::{App, Shared};

/// Starts to answer at deadlines, for as long as the server exists.
pub(crate) fn start(app: &App) {
    // The workers of a cluster do it, with timers of the engine.
    if app.queue.is_shared() {
        return;
    }
    // The task belongs to what it works for, so it must not keep that alive.
    let weak = Arc::downgrade(app);
    app.background.run(answer_until_gone(weak));
}

async fn answer_until_gone(app: Weak<Shared>) {
    // A call ends when the threads that it resumed have stopped. The next deadlines do not wait for that.
    let mut calls = JoinSet::new();
    loop {
        let Some(app) = app.upgrade() else {
            return;
        };
        if calls.len() < CALLS_MAX {
            let runtime = app.runtime.clone();
            calls.spawn(async move { runtime.expire_interrupts().await });
        }
        drop(app);
        tokio::time::sleep(LOOK_AGAIN).await;
        let mut is_failed = false;
        while let Some(ended) = calls.try_join_next() {
            let error: &dyn Error = match &ended {
                Ok(Ok(_)) => continue,
                Ok(Err(error)) => error,
                Err(error) => error,
            };
            tracing::warn!(error, "not every interrupt was answered at its deadline");
            is_failed = true;
        }
        if is_failed {
            tokio::time::sleep(AFTER_FAILURE).await;
        }
    }
}

/// How often the server looks for deadlines that have passed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How much longer it waits after a thread did not resume, or a store did not answer.
const AFTER_FAILURE: Duration = Duration::from_secs(2);
/// How many calls may be in progress. Each resumes threads that no other one has taken.
const CALLS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use superstep::prelude::*;
    use superstep::registry::MemoryRegistry;
    use superstep::{Clock, Timestamp};
    use tokio::time::Instant;

    use super::*;
    use crate::Server;

    #[derive(Clone, Debug, Default, State)]
    struct Leave {
        approved: bool,
    }

    async fn approve(_: View<Leave>, cx: NodeCx) -> Result<LeaveUpdate, NodeError> {
        let question = Interrupt::new("approve", "A week in May?");
        let question = question.within(Duration::from_secs(60)).or_answer(true);
        let approved: bool = cx.interrupt(question).await?;
        Ok(LeaveUpdate::default().approved(approved))
    }

    #[tokio::test(start_paused = true)]
    async fn an_interrupt_is_answered_when_its_deadline_has_passed() {
        let begin = Instant::now();
        let clock =
            Clock::new(move || Timestamp(i64::try_from(begin.elapsed().as_millis()).unwrap()));
        let graph = Graph::builder("leave")
            .node("approve", approve)
            .edge(START, "approve")
            .edge("approve", END)
            .build()
            .unwrap();
        let runtime = Runtime::builder(Memory::default()).clock(clock).build();
        let thread = runtime.thread(&graph, "ada").unwrap();
        let builder = Server::builder(runtime.clone(), Arc::new(MemoryRegistry::new()));
        let _server = builder.graph(graph.definition()).start().await.unwrap();
        let paused = thread.start(LeaveUpdate::default()).await.unwrap();
        assert!(matches!(paused.outcome, Outcome::Paused(_)));
        let approved = async || thread.values().await.unwrap().unwrap().approved;
        tokio::time::sleep(Duration::from_secs(58)).await;
        assert!(!approved().await);
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(approved().await);
    }
}
