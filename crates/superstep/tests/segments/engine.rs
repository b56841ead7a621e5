//! An engine that drives runs in segments, in this process, and forgets as much as a cluster might.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use superstep::checkpoint::BoxFuture;
use superstep::driver::QueuedRequest;
use superstep::graph::Definition;
use superstep::run::ResumeToken;
use superstep::{
    DriveError, Engine, Memory, RunId, RunReport, Runtime, SegmentEnd, SegmentLimits, Suspension,
    ThreadId,
};
use tokio::task::JoinSet;

/// The engine that a scenario is given.
pub(crate) struct InSegments {
    segments: Arc<Segments>,
    /// Orders that nobody waits for.
    sent: Mutex<JoinSet<()>>,
}

struct Segments {
    /// Makes the segments.
    one: Runtime,
    /// Runs what is handed over.
    other: Runtime,
    limits: SegmentLimits,
    made: AtomicU64,
    /// One order at a time, as for a thread of a cluster; a scenario has one thread.
    turn: tokio::sync::Mutex<()>,
}

impl InSegments {
    pub(crate) fn new(store: Memory) -> Self {
        let segments = Segments {
            one: Runtime::new(store.clone()),
            other: Runtime::new(store),
            limits: SegmentLimits {
                supersteps: 1,
                longest_wait: Duration::from_millis(20),
                cancel_poll: Duration::from_millis(10),
                ..SegmentLimits::default()
            },
            made: AtomicU64::new(0),
            turn: tokio::sync::Mutex::default(),
        };
        Self {
            segments: Arc::new(segments),
            sent: Mutex::default(),
        }
    }
}

impl Segments {
    async fn drive(
        &self,
        thread: &ThreadId,
        id: RunId,
        order: &QueuedRequest,
    ) -> Result<RunReport, DriveError> {
        let _turn = self.turn.lock().await;
        let order = QueuedRequest::from_bytes(&order.to_bytes(thread), thread).unwrap();
        if order.request.is_change() {
            let epoch = self.one.local().epoch_of(thread).await?;
            let first = self.one.local().change(thread, id, &order, epoch).await?;
            let again = self.one.local().change(thread, id, &order, epoch).await?;
            assert_eq!(first, again, "a change is made once");
            return Ok(first);
        }
        let mut carried = None;
        loop {
            carried = Some(match self.segment(thread, id, &order, carried).await? {
                SegmentEnd::Stopped(report) => return Ok(report),
                SegmentEnd::Suspended(Suspension::Continue(token)) => token,
                SegmentEnd::Suspended(Suspension::Sleep { until, token }) => {
                    while superstep::Clock::default().now() < until {
                        if !self.one.local().is_wanted(thread).await? {
                            break;
                        }
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    token
                }
                SegmentEnd::Suspended(Suspension::Dispatch { tasks, token }) => {
                    let run = |task| {
                        self.other
                            .local()
                            .run_task(thread, id, &order, &token, task, &self.limits)
                    };
                    for task in &tasks {
                        run(*task).await?;
                    }
                    // Their replies were lost.
                    for task in &tasks {
                        run(*task).await?;
                    }
                    token
                }
            });
        }
    }

    async fn segment(
        &self,
        thread: &ThreadId,
        id: RunId,
        order: &QueuedRequest,
        carried: Option<ResumeToken>,
    ) -> Result<SegmentEnd, DriveError> {
        let make = || {
            self.one
                .local()
                .segment(thread, id, order, carried.clone(), &self.limits)
        };
        let mut boundary = make().await?;
        if self.made.fetch_add(1, Ordering::Relaxed) % 3 == 2 {
            // Its end was not journaled.
            boundary = make().await?;
        }
        let journaled = serde_json::to_vec(&boundary).unwrap();
        Ok(serde_json::from_slice(&journaled).unwrap())
    }
}

impl Engine for InSegments {
    fn register(&self, graph: &Arc<Definition>) {
        self.segments.one.register_definition(graph);
        self.segments.other.register_definition(graph);
    }

    fn execute<'a>(
        &'a self,
        thread: &'a ThreadId,
        id: RunId,
        order: &'a QueuedRequest,
    ) -> BoxFuture<'a, Result<RunReport, DriveError>> {
        Box::pin(self.segments.drive(thread, id, order))
    }

    fn send<'a>(
        &'a self,
        thread: &'a ThreadId,
        id: RunId,
        order: &'a QueuedRequest,
    ) -> BoxFuture<'a, Result<(), DriveError>> {
        let (segments, thread, order) = (self.segments.clone(), thread.clone(), order.clone());
        Box::pin(async move {
            let sent = async move { drop(segments.drive(&thread, id, &order).await) };
            self.sent.lock().unwrap().spawn(sent);
            Ok(())
        })
    }
}
