//! Which looks of a watch were printed.
//!
//! In the long-term store: if a process dies after a look and before it prints it, the next one prints it.

use archie_atris::watch::NAME;
use superstep::AnyThread;

use crate::app::App;

/// The printed looks of one watch.
pub(super) struct ReportedLooks<'a> {
    app: &'a App,
    thread: String,
}

impl<'a> ReportedLooks<'a> {
    pub(super) fn of(app: &'a App, thread: &dyn AnyThread) -> Self {
        let thread = thread.id().to_string();
        Self { app, thread }
    }

    /// Returns how many of its looks were printed.
    pub(super) async fn looks(&self) -> anyhow::Result<usize> {
        self.app.recall(KEPT, &self.thread).await
    }

    /// Stores that this many were printed. Called after printing: a look printed twice is seen, one never printed is not.
    pub(super) async fn up_to(&self, looks: usize) -> anyhow::Result<()> {
        self.app.keep(KEPT, &self.thread, &looks).await
    }
}

/// Where it is kept.
const KEPT: [&str; 2] = [NAME, "told"];
