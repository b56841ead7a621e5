//! Clients that follow a run, and what becomes of the run when the last of them goes away.

use std::sync::{Arc, Weak};
use std::time::Duration;

use superstep::__private::lock;
use superstep::RunId;
use superstep::registry::CancelledRun;

use crate::feed::Feeds;
use crate::{App, Shared};

/// A client that streams a run. While it exists, the run is not cancelled because another client went away.
#[derive(Debug)]
pub(crate) struct RunFollower {
    feeds: Feeds,
    app: Weak<Shared>,
    tenant: String,
    run: RunId,
    /// Whether the run is cancelled if this client goes away.
    is_cancelling: bool,
}

/// How long a client may take to come back: a proxy that drops an idle connection is not a client that lost interest.
const GRACE: Duration = Duration::from_secs(10);

impl RunFollower {
    pub(super) fn new(app: &App, tenant: &str, run: RunId, is_cancelling: bool) -> Self {
        let feeds = app.feeds.clone();
        *lock(&feeds.0.followers)
            .entry((tenant.to_owned(), run))
            .or_default() += 1;
        Self {
            feeds,
            app: Arc::downgrade(app),
            tenant: tenant.to_owned(),
            run,
            is_cancelling,
        }
    }

    /// Leaves the run alone from now on: it has ended.
    pub(crate) fn run_ended(&mut self) {
        self.is_cancelling = false;
    }
}

impl Drop for RunFollower {
    fn drop(&mut self) {
        let key = (self.tenant.clone(), self.run);
        let mut followers = lock(&self.feeds.0.followers);
        if let Some(count) = followers.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                followers.remove(&key);
            }
        }
        drop(followers);
        // A server that shuts down breaks its connections; another one continues the run.
        if !self.is_cancelling || self.feeds.is_broken() {
            return;
        }
        let (feeds, app) = (Arc::downgrade(&self.feeds.0), self.app.clone());
        self.feeds.spawn(async move {
            tokio::time::sleep(GRACE).await;
            let (Some(feeds), Some(app)) = (feeds.upgrade(), app.upgrade()) else {
                return;
            };
            if lock(&feeds.followers).contains_key(&key) {
                return;
            }
            match app.queue.cancel(&key.0, key.1).await {
                Ok(CancelledRun::Running | CancelledRun::Withdrawn) => {
                    tracing::info!(run = %key.1, "run cancelled because its client disconnected");
                }
                Ok(CancelledRun::Ended | CancelledRun::Missing) => {}
                Err(error) => {
                    tracing::warn!(run = %key.1, ?error, "run of a disconnected client not cancelled");
                }
            }
        });
    }
}
