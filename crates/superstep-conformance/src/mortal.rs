//! A process that dies at a chosen point, and a sweep that kills a program at every one of them.
//!
//! A process is a future and what it was given. It comes to a *point* each time that it is about to do something outside of
//! itself, or has just done it: each call of a [`Mortal`] store is two, and whatever else acts on the world says so with
//! [`Fate::point`] or [`Fate::around`]. At the point of its [`Fate`] it stops permanently, as a killed process does, and the future
//! is dropped; what the store has by then is all that the next one finds.
//!
//! [`KillSweep`] counts the points of a life without a kill, then kills at each of them, starts the next process over the same
//! store, and checks that it comes to the same end:
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! use superstep_conformance::block_on;
//! use superstep_conformance::mortal::KillSweep;
//!
//! let sweep = KillSweep::new(AtomicU32::default, async |sent, fate| {
//!     // Not once: a process that is killed after this sends again.
//!     fate.around(async { sent.fetch_add(1, Ordering::SeqCst) }).await;
//! });
//! let failure = block_on(sweep.run(async |trial| {
//!     assert_eq!(trial.world.load(Ordering::SeqCst), 1, "how often it was sent");
//! }));
//! assert!(failure.unwrap_err().to_string().starts_with("killed at point 2 of 2"));
//! ```

mod sweep;

pub use sweep::{Kill, KillFailure, KillProblem, KillSweep, SweepReport, Trial};

use std::fmt;
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};

use superstep_core::__private::lock;
use superstep_core::ThreadId;
use superstep_core::checkpoint::{
    Answer, BoxFuture, CheckpointResult, Checkpointer, Commit, RESULT_KEY, RecordWrite, Saved,
};

/// When a process dies. Each process has its own: what is left of a dead one does nothing more.
#[derive(Debug, Default)]
pub struct Fate {
    dies_at: Option<u64>,
    points: AtomicU64,
    died: AtomicBool,
    /// Where it died, for people.
    site: Mutex<String>,
    /// Who waits to see it die.
    watcher: Mutex<Option<Waker>>,
}

impl Fate {
    /// It lives as long as it has something to do.
    pub fn never() -> Arc<Self> {
        Arc::default()
    }

    /// It dies at this point, counted from 1.
    pub fn at(point: u64) -> Arc<Self> {
        Arc::new(Self {
            dies_at: Some(point),
            ..Self::default()
        })
    }

    /// How many points it came to.
    pub fn points(&self) -> u64 {
        self.points.load(Ordering::SeqCst)
    }

    /// Returns a store as this process sees it, with a point before and after each call.
    pub fn checkpointer(self: &Arc<Self>, store: impl Checkpointer) -> Mortal {
        Mortal::new(Arc::new(store), self.clone())
    }

    /// Does something outside of the process, with a point before and after it.
    pub async fn around<T>(&self, act: impl Future<Output = T>) -> T {
        self.around_named("an act", act).await
    }

    /// Comes to a point. If this is where it dies, nothing after it happens.
    pub async fn point(&self) {
        self.point_named(|| "at a point of its own".to_owned())
            .await;
    }

    async fn around_named<T>(&self, name: &str, act: impl Future<Output = T>) -> T {
        self.point_named(|| format!("before {name}")).await;
        let done = act.await;
        self.point_named(|| format!("after {name}")).await;
        done
    }

    async fn point_named(&self, site: impl FnOnce() -> String) {
        let point = self.points.fetch_add(1, Ordering::SeqCst) + 1;
        if self.dies_at.is_none_or(|at| point < at) {
            return;
        }
        if !self.died.swap(true, Ordering::SeqCst) {
            *lock(&self.site) = site();
        }
        if let Some(watcher) = self.watcher().take() {
            watcher.wake();
        }
        pending::<()>().await;
    }

    /// What the process came to; none if it died.
    pub async fn lives<T>(&self, life: impl Future<Output = T>) -> Option<T> {
        let mut life = pin!(life);
        poll_fn(|cx| {
            // First, so that a death on another thread is not missed.
            *self.watcher() = Some(cx.waker().clone());
            if self.has_died() {
                return Poll::Ready(None);
            }
            match life.as_mut().poll(cx) {
                _ if self.has_died() => Poll::Ready(None),
                Poll::Ready(done) => Poll::Ready(Some(done)),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Where it died, as in `before commit 3`; empty if it did not.
    fn site(&self) -> String {
        lock(&self.site).clone()
    }

    fn has_died(&self) -> bool {
        self.died.load(Ordering::SeqCst)
    }

    fn watcher(&self) -> MutexGuard<'_, Option<Waker>> {
        // It is only ever replaced as a whole.
        lock(&self.watcher)
    }
}

/// A store as a mortal process sees it: each call is two points, before and after.
pub struct Mortal {
    /// The store, which outlives the process.
    pub inner: Arc<dyn Checkpointer>,
    /// When the process dies.
    pub fate: Arc<Fate>,
    /// A mutant: records whose key ends so are not stored, and nobody is told. A test that does not notice has no teeth.
    pub forgets: Option<&'static str>,
}

impl Mortal {
    /// A store that forgets nothing.
    pub fn new(inner: Arc<dyn Checkpointer>, fate: Arc<Fate>) -> Self {
        Self {
            inner,
            fate,
            forgets: None,
        }
    }

    fn doing<'a, T: Send + 'a>(
        &'a self,
        work: BoxFuture<'a, CheckpointResult<T>>,
    ) -> BoxFuture<'a, CheckpointResult<T>> {
        Box::pin(self.fate.around_named("a call of the store", work))
    }
}

impl fmt::Debug for Mortal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mortal")
            .field("fate", &self.fate)
            .finish_non_exhaustive()
    }
}

impl Checkpointer for Mortal {
    fn save<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, CheckpointResult<Saved>> {
        Box::pin(async move {
            let name = match &commit.entry {
                Some(_) => format!("commit {}", commit.head.seq.0),
                None => "a claim".to_owned(),
            };
            let save = self.inner.save(commit);
            self.fate.around_named(&name, save).await
        })
    }

    fn record<'a>(&'a self, record: &'a RecordWrite) -> BoxFuture<'a, CheckpointResult<Vec<u8>>> {
        Box::pin(async move {
            let name = match record.key.as_str() {
                RESULT_KEY => "the record of a node's result".to_owned(),
                key => format!("the record of `{key}`"),
            };
            if self.forgets.is_some_and(|end| record.key.ends_with(end)) {
                let forgotten = async { Ok(record.body.clone()) };
                return self.fate.around_named(&name, forgotten).await;
            }
            let record = self.inner.record(record);
            self.fate.around_named(&name, record).await
        })
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        answers: &'a [Answer],
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        let answer = self.inner.answer(thread, answers);
        Box::pin(self.fate.around_named("an answer is stored", answer))
    }

    crate::forward! {
        through doing:
        create annotate load load_at entries glance request_cancel unfinished threads count_threads sizes interrupts overdue
        copy delete forget prune expire expired export import
    }
    // Renewals follow the clock, so they are no points at which every execution of a program can be killed.
    crate::forward! { renew }
}
