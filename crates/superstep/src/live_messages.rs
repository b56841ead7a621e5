//! The live bus within one process: carries messages from its runs to the watchers in the same process.
//!
//! Most threads have no watcher, and publishing then costs nothing: the first watcher of a thread creates its channel, and the
//! last one removes it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use superstep_core::__private::lock;
use superstep_core::ThreadId;
use superstep_core::checkpoint::BoxFuture;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use crate::live_bus::{LiveBus, LiveDelivery, LiveMessage, Subscription};

/// Live bus for the watchers in this process.
#[derive(Default)]
pub(crate) struct LocalBus(Arc<Watched>);

/// The watchers of each thread.
#[derive(Default)]
struct Watched {
    /// Number of watchers, so that a run without any skips the lock.
    ///
    /// A watcher is counted before it reads the store. So if a run has stored an entry and then finds no watcher counted, every
    /// later watcher will read that entry.
    watchers: AtomicUsize,
    queues: Mutex<BTreeMap<ThreadId, Vec<Arc<WatcherQueue>>>>,
    /// Whether no other process runs the threads of the store, so that every entry is announced here.
    is_sole_process: AtomicBool,
}

/// What waits for one watcher. It takes memory for what waits, and little while nothing does: most watchers watch idle threads.
struct WatcherQueue {
    sender: mpsc::UnboundedSender<LiveMessage>,
    waiting: AtomicUsize,
    /// Whether messages were dropped since the watcher last looked, because too many waited.
    has_missed: AtomicBool,
}

/// Number of messages that a slow watcher may lag behind before it reads the store again.
const BEHIND_MAX: usize = 1_024;

impl WatcherQueue {
    fn add(&self, message: &LiveMessage) {
        // After a gap, everything is dropped until the watcher knows of it.
        if self.has_missed.load(Ordering::SeqCst) {
            return;
        }
        if self.waiting.fetch_add(1, Ordering::SeqCst) >= BEHIND_MAX {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            self.has_missed.store(true, Ordering::SeqCst);
            return;
        }
        // The watcher may be gone.
        let _ = self.sender.send(message.clone());
    }
}

impl LiveBus for LocalBus {
    /// A message without a watcher is dropped.
    fn publish(&self, thread: &ThreadId, notice: LiveMessage) {
        if self.0.watchers.load(Ordering::SeqCst) == 0 {
            return;
        }
        if let Some(queues) = lock(&self.0.queues).get(thread) {
            queues.iter().for_each(|queue| queue.add(&notice));
        }
    }

    fn assume_sole_process(&self) {
        self.0.is_sole_process.store(true, Ordering::Relaxed);
    }

    fn subscribe(&self, thread: &ThreadId) -> Box<dyn Subscription> {
        self.0.watchers.fetch_add(1, Ordering::SeqCst);
        let (sender, receiver) = mpsc::unbounded_channel();
        let queue = Arc::new(WatcherQueue {
            sender,
            waiting: AtomicUsize::new(0),
            has_missed: AtomicBool::new(false),
        });
        let mut queues = lock(&self.0.queues);
        queues
            .entry(thread.clone())
            .or_default()
            .push(queue.clone());
        Box::new(Watcher {
            receiver,
            queue,
            thread: thread.clone(),
            watched: self.0.clone(),
        })
    }
}

/// Subscription of one watcher to a thread.
struct Watcher {
    receiver: mpsc::UnboundedReceiver<LiveMessage>,
    queue: Arc<WatcherQueue>,
    thread: ThreadId,
    watched: Arc<Watched>,
}

impl Subscription for Watcher {
    fn next(&mut self) -> BoxFuture<'_, LiveDelivery> {
        Box::pin(async {
            let message = match self.receiver.try_recv() {
                Ok(message) => Some(message),
                // What waited before the gap was delivered.
                Err(TryRecvError::Empty) if self.queue.has_missed.swap(false, Ordering::SeqCst) => {
                    return LiveDelivery::Missed;
                }
                Err(_) => self.receiver.recv().await,
            };
            match message {
                Some(message) => {
                    self.queue.waiting.fetch_sub(1, Ordering::SeqCst);
                    LiveDelivery::Now(message)
                }
                // The watcher itself holds a sender, so this does not happen.
                None => std::future::pending().await,
            }
        })
    }

    fn hears_all(&self) -> bool {
        self.watched.is_sole_process.load(Ordering::Relaxed)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut queues = lock(&self.watched.queues);
        if let Some(of_thread) = queues.get_mut(&self.thread) {
            of_thread.retain(|queue| !Arc::ptr_eq(queue, &self.queue));
            if of_thread.is_empty() {
                queues.remove(&self.thread);
            }
        }
        drop(queues);
        self.watched.watchers.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use superstep_core::Seq;

    use super::*;

    #[tokio::test]
    async fn a_watcher_that_lags_behind_hears_what_waited_and_then_that_it_missed_some() {
        let bus = LocalBus::default();
        let thread = ThreadId::new("t").unwrap();
        let mut watcher = bus.subscribe(&thread);
        let message = |seq: usize| LiveMessage::Entry(Seq(seq as u64));
        for seq in 0..BEHIND_MAX + 5 {
            bus.publish(&thread, message(seq));
        }
        for _ in 0..BEHIND_MAX {
            assert!(matches!(watcher.next().await, LiveDelivery::Now(_)));
        }
        assert!(matches!(watcher.next().await, LiveDelivery::Missed));
        bus.publish(&thread, message(0));
        assert!(matches!(watcher.next().await, LiveDelivery::Now(_)));
    }
}
