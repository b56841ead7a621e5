//! Wires: how what happens on a thread right now travels to those who watch it.
//!
//! The log in the store is the truth, and a watcher reads it. What a wire carries is the rest: that there is something new
//! to read, and what nodes show while they run. So a wire may lose everything it is given. Then watchers look at the log
//! now and then, and see what is in it, in order and once, only later; and nothing that was shown live.

use superstep_core::checkpoint::BoxFuture;
use superstep_core::driver::LiveEvent;
use superstep_core::{Seq, ThreadId};

/// Carries notices of threads from the processes that run them to those that watch them.
///
/// A runtime has one that stays in its process, unless it is given another with
/// [`RuntimeBuilder::wire`](crate::RuntimeBuilder::wire). Live events hold what nodes showed, which is the user's data:
/// whatever a wire sends them through is to be trusted as the store is.
pub trait Wire: Send + Sync + 'static {
    /// Tells those who watch a thread. Called from the midst of runs and nodes, so it neither waits nor fails; what cannot be
    /// carried is dropped and counted. Notices of one process about one thread arrive in the order they were given.
    fn publish(&self, thread: &ThreadId, notice: Notice);

    /// Begins to watch a thread. Returns at once.
    fn subscribe(&self, thread: &ThreadId) -> Box<dyn Subscription>;

    /// How many notices were dropped so far.
    fn dropped(&self) -> u64 {
        0
    }
}

/// What a run tells those who watch it.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// There is an entry of this number in the store.
    Entry(Seq),
    /// A node shows something.
    Live(LiveEvent),
}

/// Notices of one thread, until it is dropped.
pub trait Subscription: Send + Sync {
    /// What is heard next. May be dropped and called again without losing anything. Waits for as long as the wire is silent
    /// or broken: callers look at the log in between.
    fn next(&mut self) -> BoxFuture<'_, Heard>;

    /// Whether entries are heard of right now, whichever process makes them. If not, the log is looked at often.
    fn hears_all(&self) -> bool {
        false
    }
}

/// What one who watches hears.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// What was published, just now.
    Now(Notice),
    /// What was shown before, by a wire that keeps some of it. At most once, and first. What of it still counts, the log
    /// tells: it may be of tasks that have ended since.
    Before(Vec<LiveEvent>),
    /// Something may have been missed.
    Missed,
}
