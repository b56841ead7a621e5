//! Which looks of a watch its person was told of.
//!
//! In the long-term store: a look that was made, and whose process died before it was told, is told by the next one.

use super::watch::NAME;
use crate::agents::AnyThread;
use crate::home::Home;

/// Of one watch.
pub(super) struct Told<'a> {
    home: &'a Home,
    thread: String,
}

impl<'a> Told<'a> {
    pub(super) fn of(home: &'a Home, thread: &dyn AnyThread) -> Self {
        let thread = thread.id();
        Self { home, thread }
    }

    /// How many of its looks were told.
    pub(super) async fn looks(&self) -> anyhow::Result<usize> {
        self.home.recall(KEPT, &self.thread).await
    }

    /// So many are told now. Only afterwards: what is told twice is seen, what is told never is not.
    pub(super) async fn up_to(&self, looks: usize) -> anyhow::Result<()> {
        self.home.keep(KEPT, &self.thread, &looks).await
    }
}

/// Where it is kept.
const KEPT: [&str; 2] = [NAME, "told"];
