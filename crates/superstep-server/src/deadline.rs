//! Deadlines of interrupts: when one has passed, the answer that the interrupt specifies is given, and the thread resumes.

use std::error::Error;
use std::sync::{Arc, Weak};
use std::time::Duration;

use superstep::{DeadlineScan, OverdueThread, ThreadId};
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
    let Some(runtime) = app.upgrade().map(|app| app.runtime.clone()) else {
        return;
    };
    let mut scan = DeadlineScan::new(&runtime);
    // The next deadlines do not wait for the threads that were resumed, however long their nodes take.
    let mut resumed = JoinSet::new();
    while app.strong_count() > 0 {
        let mut pause = LOOK_AGAIN;
        let room = THREADS_MAX.saturating_sub(resumed.len());
        if room > 0 {
            let found = scan.next(room).await.unwrap_or_else(|error| {
                let error: &dyn Error = &error;
                tracing::warn!(error, "overdue interrupts were not read");
                pause = AFTER_FAILURE;
                Vec::new()
            });
            for overdue in found {
                resumed.spawn(answer(overdue));
            }
        }
        tokio::time::sleep(pause).await;
        while let Some(ended) = resumed.try_join_next() {
            match ended {
                Ok(None) => {}
                // It must not be tried again every second.
                Ok(Some(failed)) => scan.defer(failed),
                Err(error) => {
                    let error: &dyn Error = &error;
                    tracing::warn!(error, "an interrupt was not answered at its deadline");
                }
            }
        }
    }
}

/// Answers the interrupts of a thread. Returns the thread if it could not resume.
async fn answer(overdue: OverdueThread) -> Option<ThreadId> {
    let thread = overdue.thread().clone();
    match overdue.expire().await {
        Ok(_) => None,
        Err(error) => {
            let error: &dyn Error = &error;
            tracing::warn!(%thread, error, "not every interrupt was answered at its deadline");
            Some(thread)
        }
    }
}

/// How often the server looks for deadlines that have passed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long it waits instead after a store did not answer.
const AFTER_FAILURE: Duration = Duration::from_secs(3);
/// How many threads may be in progress. Threads and not scans are counted: a slow thread must not take the place of others.
const THREADS_MAX: usize = 1_024;

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
        is_slow: bool,
        approved: bool,
    }

    async fn approve(leave: View<Leave>, cx: NodeCx) -> Result<LeaveUpdate, NodeError> {
        let question = Interrupt::new("approve", "A week in May?");
        let question = question.within(Duration::from_secs(60)).or_answer(true);
        let approved: bool = cx.interrupt(question).await?;
        if leave.is_slow {
            std::future::pending::<()>().await;
        }
        Ok(LeaveUpdate::default().approved(approved))
    }

    fn graph() -> Graph<Leave> {
        Graph::builder("leave")
            .node("approve", approve)
            .edge(START, "approve")
            .edge("approve", END)
            .build()
            .unwrap()
    }

    /// Returns a runtime with the clock of tokio.
    fn runtime() -> Runtime {
        let begin = Instant::now();
        let clock =
            Clock::new(move || Timestamp(i64::try_from(begin.elapsed().as_millis()).unwrap()));
        Runtime::builder(Memory::default()).clock(clock).build()
    }

    #[tokio::test(start_paused = true)]
    async fn an_interrupt_is_answered_when_its_deadline_has_passed() {
        let (graph, runtime) = (graph(), runtime());
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

    #[tokio::test(start_paused = true)]
    async fn slow_threads_with_deadlines_of_their_own_do_not_make_another_one_late() {
        let (graph, runtime) = (graph(), runtime());
        let builder = Server::builder(runtime.clone(), Arc::new(MemoryRegistry::new()));
        let _server = builder.graph(graph.definition()).start().await.unwrap();
        for number in 0..40 {
            let thread = runtime.thread(&graph, format!("slow-{number}")).unwrap();
            let slow = LeaveUpdate::default().is_slow(true);
            thread.start(slow).await.unwrap();
            tokio::time::sleep(Duration::from_millis(1_100)).await;
        }
        let thread = runtime.thread(&graph, "ada").unwrap();
        thread.start(LeaveUpdate::default()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(64)).await;
        assert!(thread.values().await.unwrap().unwrap().approved);
    }
}
