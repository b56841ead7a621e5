//! The wire that stays in its process: what its runs tell those who watch them here.
//!
//! Most threads are watched by nobody, and then telling costs nothing: a channel is made when the
//! first one comes to watch and goes with the last.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use superstep_core::__private::lock;
use superstep_core::ThreadId;
use superstep_core::checkpoint::BoxFuture;
use tokio::sync::broadcast;

use crate::wire::{Heard, Notice, Subscription, Wire};

/// Tells those who watch in this process.
#[derive(Default)]
pub(crate) struct Notices(Arc<Watched>);

/// Who watches which thread.
#[derive(Default)]
struct Watched {
    /// How many watch, so that a run that nobody watches need not ask who does.
    ///
    /// One who comes is counted before reading the store. So a run that has just stored an entry and
    /// finds nobody counted will have its entry read.
    watchers: AtomicUsize,
    channels: Mutex<BTreeMap<ThreadId, broadcast::Sender<Notice>>>,
}

/// How many notices a slow watcher may be behind before it reads the store again.
const BEHIND_MAX: usize = 1_024;

impl Wire for Notices {
    /// Nobody watches: then nobody misses it.
    fn publish(&self, thread: &ThreadId, notice: Notice) {
        if self.0.watchers.load(Ordering::SeqCst) == 0 {
            return;
        }
        if let Some(channel) = lock(&self.0.channels).get(thread) {
            let _ = channel.send(notice);
        }
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

/// One who watches a thread, until it is dropped.
struct Watcher {
    receiver: Option<broadcast::Receiver<Notice>>,
    thread: ThreadId,
    watched: Arc<Watched>,
}

impl Subscription for Watcher {
    fn next(&mut self) -> BoxFuture<'_, Heard> {
        Box::pin(async {
            match &mut self.receiver {
                Some(receiver) => receiver.recv().await.map_or(Heard::Missed, Heard::Now),
                None => std::future::pending().await,
            }
        })
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
