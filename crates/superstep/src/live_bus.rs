//! The live bus: how what happens on a thread now reaches the processes that watch it.
//!
//! The log in the store is the source of truth, and a watcher reads it. The bus carries the rest: that there is a new entry to
//! read, and what nodes show while they run. So a bus may lose messages. Watchers also poll the log, and still see everything
//! in it, in order and once, only later; what nodes showed live is then missing.

use superstep_core::checkpoint::BoxFuture;
use superstep_core::driver::LiveEvent;
use superstep_core::{Seq, ThreadId};

/// Carries live messages about threads from the processes that run them to those that watch them.
///
/// A runtime has a bus that stays in its process, unless [`RuntimeBuilder::live_bus`](crate::RuntimeBuilder::live_bus) sets another.
/// Live events hold what nodes show, which is user data: trust the transport of a bus as you trust the store.
pub trait LiveBus: Send + Sync + 'static {
    /// Sends a message to the watchers of a thread. Runs and nodes call it while they work, so it neither waits nor fails; what
    /// it cannot send, it drops and counts. Messages of one process about one thread arrive in the order they were published.
    fn publish(&self, thread: &ThreadId, notice: LiveMessage);

    /// Subscribes to a thread. Returns at once.
    fn subscribe(&self, thread: &ThreadId) -> Box<dyn Subscription>;

    /// Lets watchers rely on the announcements of this bus, because no other process runs the threads of its store. They then poll
    /// the log rarely. Default: does nothing.
    fn assume_sole_process(&self) {}

    /// Returns how many messages were dropped so far.
    fn dropped(&self) -> u64 {
        0
    }
}

/// A message from a run to its watchers.
#[derive(Debug, Clone, PartialEq)]
pub enum LiveMessage {
    /// The store has an entry with this number.
    Entry(Seq),
    /// A node shows something.
    Live(LiveEvent),
}

/// The messages of one thread, until this is dropped.
pub trait Subscription: Send + Sync {
    /// Returns the next message. Cancel-safe: dropping the future loses nothing. Waits as long as the bus is silent or broken,
    /// so callers poll the log in between.
    fn next(&mut self) -> BoxFuture<'_, LiveDelivery>;

    /// Whether the bus currently announces the entries of every process. If not, watchers poll the log more often. Default:
    /// false.
    fn hears_all(&self) -> bool {
        false
    }
}

/// What a subscription delivers.
#[derive(Debug, Clone, PartialEq)]
pub enum LiveDelivery {
    /// A message that was published just now.
    Now(LiveMessage),
    /// Events from before the subscription, from a bus that retains some. Delivered at most once, and first. They may be of
    /// tasks that ended since: the log decides which still count.
    Before(Vec<LiveEvent>),
    /// Messages may have been lost.
    Missed,
}
