//! The checkpointer of a scenario: a paused time stands still while it works, and it notes the steps that are recorded.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use superstep_core::__private::lock;
use superstep_core::checkpoint::{
    Answer, Archive, BoxFuture, CheckpointResult, Commit, ExpiredThread, Glance, History,
    InterruptQuery, InterruptRow, Loaded, NewThread, OverdueCursor, RESULT_KEY, RecordWrite, Saved,
    SizeQuery, SizeRow, StoredBody, ThreadAnnotation, ThreadQuery, ThreadRow, UnfinishedThread,
};
use superstep_core::{Checkpointer, Epoch, Seq, TaskId, ThreadId, Timestamp};

/// A checkpointer in front of the one that the test chose.
pub(super) struct ObservedStore {
    pub(super) inner: Arc<dyn Checkpointer>,
    pub(super) steps: Arc<Mutex<Vec<String>>>,
}

/// Awaits a call of the store while paused time stands still.
///
/// When every task waits, tokio moves a paused time to the next timer. A database works on OS threads of its own, which tokio does
/// not see, so timeouts would fire while it is at work. While a blocking task runs, tokio does not move the time.
async fn held<T>(mut call: BoxFuture<'_, CheckpointResult<T>>) -> CheckpointResult<T> {
    let first = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
    if let Poll::Ready(done) = first {
        return done;
    }
    let (release, released) = std::sync::mpsc::channel::<()>();
    // It ends when the sender is dropped, also if this call is.
    tokio::task::spawn_blocking(move || released.recv_timeout(HOLD_MAX).is_err());
    let done = call.await;
    drop(release);
    done
}

/// For so long, in real time. A store that itself waits for a timer of the runtime would wait forever otherwise.
const HOLD_MAX: Duration = Duration::from_secs(2);

/// Writes methods that forward to the store, held.
macro_rules! held {
    ($($operation:ident($($given:ident: $of:ty),*) -> $output:ty;)+) => {
        $(fn $operation<'a>(&'a self, $($given: $of),*) -> BoxFuture<'a, CheckpointResult<$output>> {
            Box::pin(held(self.inner.$operation($($given),*)))
        })+
    };
}

impl Checkpointer for ObservedStore {
    fn record<'a>(&'a self, record: &'a RecordWrite) -> BoxFuture<'a, CheckpointResult<Vec<u8>>> {
        Box::pin(async move {
            let stored = held(self.inner.record(record)).await?;
            if record.key != RESULT_KEY {
                lock(&self.steps).push(record.key.clone());
            }
            Ok(stored)
        })
    }

    held! {
        create(thread: &'a ThreadId, new: &'a NewThread) -> bool;
        annotate(thread: &'a ThreadId, change: &'a ThreadAnnotation) -> bool;
        save(commit: &'a Commit) -> Saved;
        answer(thread: &'a ThreadId, answers: &'a [Answer]) -> ();
        load(thread: &'a ThreadId) -> Option<Loaded>;
        load_at(thread: &'a ThreadId, seq: Seq) -> History;
        entries(thread: &'a ThreadId, after: Seq, limit: u32) -> Vec<StoredBody>;
        glance(thread: &'a ThreadId, task: Option<TaskId>) -> Option<Glance>;
        request_cancel(thread: &'a ThreadId) -> ();
        unfinished(after: Option<&'a ThreadId>, limit: u32) -> Vec<UnfinishedThread>;
        renew(owned: &'a [(ThreadId, Epoch)], lease: Timestamp) -> ();
        threads(query: &'a ThreadQuery) -> Vec<ThreadRow>;
        count_threads(query: &'a ThreadQuery) -> u64;
        sizes(query: &'a SizeQuery) -> Vec<SizeRow>;
        interrupts(query: &'a InterruptQuery) -> Vec<InterruptRow>;
        overdue(now: Timestamp, after: Option<&'a OverdueCursor>, limit: u32) -> Vec<InterruptRow>;
        copy(from: &'a ThreadId, upto: Option<Seq>, to: &'a ThreadId) -> ();
        delete(thread: &'a ThreadId) -> ();
        forget(thread: &'a ThreadId) -> ();
        prune(thread: &'a ThreadId, keep: u32) -> u64;
        expire(before: Timestamp, limit: u32) -> u64;
        expired(now: Timestamp, after: Option<&'a ExpiredThread>, limit: u32) -> Vec<ExpiredThread>;
        export(thread: &'a ThreadId) -> Archive;
        import(thread: &'a ThreadId, archive: &'a Archive) -> ();
    }
}
