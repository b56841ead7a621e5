//! A process that dies at a chosen point, for tests that kill at every one of them.
//!
//! A process is a future and what it was given. It comes to a *point* each time that it is about to do something outside of
//! itself, or has just done it: each call of a [`Mortal`] store is two, and whatever else acts on the world says so with
//! [`Fate::point`]. At the point of its [`Fate`] it stops permanently, as a killed process does, and the future is dropped; what
//! the store has by then is all that the next one finds. Count the points of a calm life, then live once for each of them:
//!
//! ```
//! use superstep_conformance::block_on;
//! use superstep_conformance::mortal::Fate;
//!
//! let fate = Fate::never();
//! let life = async |fate: &Fate| {
//!     fate.point().await;
//!     "done"
//! };
//! assert_eq!(block_on(fate.lives(life(&fate))), Some("done"));
//! for point in 1..=fate.points() {
//!     let fate = Fate::at(point);
//!     assert_eq!(block_on(fate.lives(life(&fate))), None);
//! }
//! ```

use std::fmt;
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};

use superstep_core::__private::lock;
use superstep_core::checkpoint::{BoxFuture, CheckpointResult, Checkpointer, RecordWrite};

/// When a process dies. Each process has its own: what is left of a dead one does nothing more.
#[derive(Debug, Default)]
pub struct Fate {
    dies_at: Option<u64>,
    points: AtomicU64,
    died: AtomicBool,
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

    /// Comes to a point. If this is where it dies, nothing after it happens.
    pub async fn point(&self) {
        let point = self.points.fetch_add(1, Ordering::SeqCst) + 1;
        if self.dies_at.is_none_or(|at| point < at) {
            return;
        }
        self.died.store(true, Ordering::SeqCst);
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
        Box::pin(async move {
            self.fate.point().await;
            let done = work.await;
            self.fate.point().await;
            done
        })
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
    fn record<'a>(&'a self, record: &'a RecordWrite) -> BoxFuture<'a, CheckpointResult<Vec<u8>>> {
        if self.forgets.is_some_and(|end| record.key.ends_with(end)) {
            return self.doing(Box::pin(async { Ok(record.body.clone()) }));
        }
        self.doing(self.inner.record(record))
    }

    crate::forward! {
        through doing:
        save answer load load_at entries glance request_cancel unfinished threads interrupts overdue
        copy delete prune expire export import
    }
    // Renewals follow the clock, so they are no points at which every execution of a program can be killed.
    crate::forward! { renew }
}
