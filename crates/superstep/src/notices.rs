//! What runs of this process tell those who watch them right now.
//!
//! Most threads are watched by nobody, and then telling costs nothing: a channel is made when the
//! first one comes to watch and goes with the last.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use superstep_core::driver::LiveEvent;
use superstep_core::{Seq, ThreadId};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::runtime::lock;

/// What a run tells those who watch it.
#[derive(Debug, Clone)]
pub(crate) enum Notice {
    /// There is an entry of this number in the store.
    Entry(Seq),
    /// A node shows something.
    Live(LiveEvent),
}

/// Who watches which thread.
#[derive(Default)]
pub(crate) struct Notices {
    /// How many watch, so that a run that nobody watches need not ask who does.
    ///
    /// One who comes is counted before reading the store. So a run that has just stored an entry and
    /// finds nobody counted will have its entry read.
    watchers: AtomicUsize,
    channels: Mutex<BTreeMap<ThreadId, broadcast::Sender<Notice>>>,
}

/// How many notices a slow watcher may be behind before it reads the store again.
const BEHIND_MAX: usize = 1_024;

impl Notices {
    /// Tells everybody who watches a thread. Nobody watches: then nobody misses it.
    pub(crate) fn tell(&self, thread: &ThreadId, notice: Notice) {
        if self.watchers.load(Ordering::SeqCst) == 0 {
            return;
        }
        if let Some(channel) = lock(&self.channels).get(thread) {
            let _ = channel.send(notice);
        }
    }

    /// Begins to watch a thread.
    pub(crate) fn watch(self: &Arc<Self>, thread: &ThreadId) -> Watcher {
        self.watchers.fetch_add(1, Ordering::SeqCst);
        let mut channels = lock(&self.channels);
        let channel = channels
            .entry(thread.clone())
            .or_insert_with(|| broadcast::channel(BEHIND_MAX).0);
        Watcher {
            receiver: Some(channel.subscribe()),
            thread: thread.clone(),
            notices: self.clone(),
        }
    }
}

/// One who watches a thread, until it is dropped.
pub(crate) struct Watcher {
    receiver: Option<broadcast::Receiver<Notice>>,
    thread: ThreadId,
    notices: Arc<Notices>,
}

impl Watcher {
    /// The next notice, or that some were missed.
    pub(crate) async fn next(&mut self) -> Result<Notice, RecvError> {
        match &mut self.receiver {
            Some(receiver) => receiver.recv().await,
            None => Err(RecvError::Closed),
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut channels = lock(&self.notices.channels);
        self.receiver = None;
        let is_left = |channel: &broadcast::Sender<_>| channel.receiver_count() == 0;
        if channels.get(&self.thread).is_some_and(is_left) {
            channels.remove(&self.thread);
        }
        self.notices.watchers.fetch_sub(1, Ordering::SeqCst);
    }
}
