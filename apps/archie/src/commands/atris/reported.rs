//! Tracks which looks of a watch were printed.
//!
//! The count is in the long-term store: if a process dies after a look and before printing it, the next process prints it.

use archie_atris::watch::NAME;
use superstep::AnyThread;

use crate::app::App;

/// Count of the printed looks of one watch.
pub(super) struct ReportedLooks<'a> {
    app: &'a App,
    thread: String,
}

impl<'a> ReportedLooks<'a> {
    pub(super) fn of(app: &'a App, thread: &dyn AnyThread) -> Self {
        let thread = thread.id().to_string();
        Self { app, thread }
    }

    /// Returns how many looks were printed.
    pub(super) async fn looks(&self) -> anyhow::Result<usize> {
        self.app.recall(KEPT, &self.thread).await
    }

    /// Stores how many looks were printed. Call it after printing: a crash in between prints a look twice instead of never.
    pub(super) async fn up_to(&self, looks: usize) -> anyhow::Result<()> {
        self.app.keep(KEPT, &self.thread, &looks).await
    }
}

/// Namespace in the long-term store.
const KEPT: [&str; 2] = [NAME, "told"];
