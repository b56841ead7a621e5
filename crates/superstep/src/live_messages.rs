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
use tokio::sync::broadcast;

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
    channels: Mutex<BTreeMap<ThreadId, broadcast::Sender<LiveMessage>>>,
    /// Whether no other process runs the threads of the store, so that every entry is announced here.
    is_sole_process: AtomicBool,
}

/// Number of messages that a slow watcher may lag behind before it reads the store again.
const BEHIND_MAX: usize = 1_024;

impl LiveBus for LocalBus {
    /// A message without a watcher is dropped.
    fn publish(&self, thread: &ThreadId, notice: LiveMessage) {
        if self.0.watchers.load(Ordering::SeqCst) == 0 {
            return;
        }
        if let Some(channel) = lock(&self.0.channels).get(thread) {
            let _ = channel.send(notice);
        }
    }

    fn assume_sole_process(&self) {
        self.0.is_sole_process.store(true, Ordering::Relaxed);
    }

    fn subscribe(&self, thread: &ThreadId) -> Box<dyn Subscription> {
        self.0.watchers.fetch_add(1, Ordering::SeqCst);
        let mut channels = lock(&self.0.channels);
        let channel = channels
            .entry(thread.clone())
            .or_insert_with(|| broadcast::channel(BEHIND_MAX).0);
        Box::new(Watcher {
            receiver: Some(channel.subscribe()),
            thread: thread.clone(),
            watched: self.0.clone(),
        })
    }
}

/// Subscription of one watcher to a thread.
struct Watcher {
    receiver: Option<broadcast::Receiver<LiveMessage>>,
    thread: ThreadId,
    watched: Arc<Watched>,
}

impl Subscription for Watcher {
    fn next(&mut self) -> BoxFuture<'_, LiveDelivery> {
        Box::pin(async {
            match &mut self.receiver {
                Some(receiver) => receiver
                    .recv()
                    .await
                    .map_or(LiveDelivery::Missed, LiveDelivery::Now),
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
        let mut channels = lock(&self.watched.channels);
        self.receiver = None;
        let is_left = |channel: &broadcast::Sender<_>| channel.receiver_count() == 0;
        if channels.get(&self.thread).is_some_and(is_left) {
            channels.remove(&self.thread);
        }
        self.watched.watchers.fetch_sub(1, Ordering::SeqCst);
    }
}
