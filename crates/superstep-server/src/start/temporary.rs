//! Threads of stateless runs, which are deleted after the run.

use std::time::Duration;

use superstep::checkpoint::{AtLifetimeEnd, ThreadLifetime};
use superstep::{RunId, ThreadId};

use crate::background::forget_thread;
use crate::{App, Shared};

/// How long a temporary thread is kept at most: a process that dies deletes none.
pub(super) const LIFETIME: ThreadLifetime = ThreadLifetime {
    ms: 24 * 60 * 60 * 1_000,
    at_end: AtLifetimeEnd::Delete,
};

/// Deletes a temporary thread. Deleting it twice is no error.
pub(crate) async fn discard(app: &Shared, thread: &ThreadId) {
    if let Err(error) = forget_thread(app, thread).await {
        tracing::warn!(%thread, detail = %error.detail, "a temporary thread was not deleted");
    }
}

/// Deletes a temporary thread after its run, also if the client went away.
pub(super) fn delete_afterwards(app: &App, thread: &ThreadId, run: RunId) {
    let (shared, thread) = (app.clone(), thread.clone());
    app.background.run(async move {
        if let Err(error) = shared.queue.wait(thread.tenant(), run).await {
            tracing::warn!(%thread, ?error, "the end of a stateless run was not seen");
            return;
        }
        // A client that streams the run still reads its last events.
        tokio::time::sleep(GRACE).await;
        discard(&shared, &thread).await;
    });
}

const GRACE: Duration = Duration::from_secs(10);
