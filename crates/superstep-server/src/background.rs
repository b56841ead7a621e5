//! Work that no request waits for: threads of stateless runs are deleted, and threads whose lifetime is over.

use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use superstep::__private::lock;
use superstep::checkpoint::{
    AtLifetimeEnd, CheckpointResult, ExpiredThread, Metadata, ThreadAnnotation,
};
use superstep::store::StoreResult;
use superstep::{ThreadId, Timestamp};
use tokio::task::JoinSet;

use crate::error::ApiResult;
use crate::{App, Shared, cron, files, thread};

/// Tasks of the server, which end with it.
#[derive(Default)]
pub(crate) struct Background {
    tasks: Mutex<JoinSet<()>>,
}

impl Background {
    /// Starts a task.
    pub(crate) fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        // A handler may be dropped after the runtime of the server has stopped.
        if let Ok(handle) = tokio::runtime::Handle::try_current() {
            tasks.spawn_on(work, &handle);
        }
    }

    /// Ends all tasks where they are.
    pub(crate) fn stop(&self) {
        lock(&self.tasks).abort_all();
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background")
            .field("tasks", &lock(&self.tasks).len())
            .finish()
    }
}

/// Starts to delete what has expired, for as long as the server exists.
pub(crate) fn start_upkeep(app: &App) {
    // The task belongs to what it works for, so it must not keep that alive.
    let weak = Arc::downgrade(app);
    app.background.run(keep_up(weak));
}

async fn keep_up(app: Weak<Shared>) {
    loop {
        tokio::time::sleep(UPKEEP_EVERY).await;
        let Some(app) = app.upgrade() else {
            return;
        };
        if let Err(error) = end_lifetimes(&app).await {
            tracing::warn!(detail = %error.detail, "expired threads were not deleted");
        }
        if let Err(error) = sweep_items(&app).await {
            tracing::warn!(%error, "expired items were not deleted");
        }
        if let Err(error) = sweep_cache(&app).await {
            tracing::warn!(%error, "expired node results were not deleted");
        }
        if let Err(error) = sweep_registry(&app).await {
            tracing::warn!(
                ?error,
                "expired request keys and deliveries were not deleted"
            );
        }
    }
}

/// Deletes the items of the long-term store that have expired.
async fn sweep_items(app: &Shared) -> StoreResult<()> {
    let Some(store) = &app.store else {
        return Ok(());
    };
    let now = app.runtime.now();
    while store.sweep(now, SWEPT_AT_ONCE).await? >= u64::from(SWEPT_AT_ONCE) {}
    Ok(())
}

/// Deletes the results of cached nodes that have expired.
async fn sweep_cache(app: &Shared) -> CheckpointResult<()> {
    let now = app.runtime.now();
    let sweep = || app.runtime.cache().sweep(now, SWEPT_AT_ONCE);
    while sweep().await? >= u64::from(SWEPT_AT_ONCE) {}
    Ok(())
}

/// Deletes request keys that have expired, and deliveries that were confirmed long ago.
async fn sweep_registry(app: &Shared) -> CheckpointResult<()> {
    let now = app.runtime.now();
    let all = u64::from(SWEPT_AT_ONCE);
    while app.registry().sweep_requests(now, SWEPT_AT_ONCE).await? >= all {}
    let before = Timestamp(now.0.saturating_sub(DELIVERED_KEPT_MS));
    let sweep = || app.registry().sweep_deliveries(before, SWEPT_AT_ONCE);
    while sweep().await? >= all {}
    Ok(())
}

/// Deletes the threads whose lifetime is over, or their histories.
async fn end_lifetimes(app: &Shared) -> ApiResult<()> {
    let checkpointer = app.runtime.checkpointer();
    let now = app.runtime.now();
    let mut after = None;
    loop {
        // Behind those of the last page: a thread that has to wait, or cannot be deleted, must not keep the others.
        let page = checkpointer
            .expired(now, after.as_ref(), SWEPT_AT_ONCE)
            .await?;
        for expired in &page {
            if let Err(error) = end_lifetime(app, expired, now).await {
                let thread = &expired.thread;
                tracing::warn!(%thread, detail = %error.detail, "an expired thread was not deleted");
            }
        }
        let is_last = page.len() < SWEPT_AT_ONCE as usize;
        after = page.into_iter().next_back();
        if is_last {
            return Ok(());
        }
    }
}

async fn end_lifetime(app: &Shared, expired: &ExpiredThread, now: Timestamp) -> ApiResult<()> {
    let (checkpointer, thread) = (app.runtime.checkpointer(), &expired.thread);
    if !thread::active_runs(app, thread).await?.is_empty() {
        return Ok(());
    }
    match expired.at_end {
        AtLifetimeEnd::Delete => delete_thread(app, thread).await,
        AtLifetimeEnd::KeepLatest => {
            checkpointer.prune(thread, 1).await?;
            let change = ThreadAnnotation {
                metadata: Metadata::new(),
                graph: None,
                lifetime: Some(None),
                at: now,
            };
            app.runtime.annotate_thread(thread, &change).await?;
            Ok(())
        }
    }
}

/// Deletes a thread, its runs, its crons and its files.
pub(crate) async fn delete_thread(app: &Shared, thread: &ThreadId) -> ApiResult<()> {
    cron::delete_of_thread(app, thread).await?;
    delete_rows(app, thread).await
}

async fn delete_rows(app: &Shared, thread: &ThreadId) -> ApiResult<()> {
    // First, so that after a crash the thread is still there to be deleted again; and last, because an upload may have come between.
    files::delete_of_thread(app, thread).await?;
    app.runtime.checkpointer().delete(thread).await?;
    app.registry().delete_runs(thread).await?;
    app.feeds.forget(thread);
    files::delete_of_thread(app, thread).await
}

/// Deletes a thread with an id that the server chose, for one run. The id is never used again, so the store need not remember it.
pub(crate) async fn forget_thread(app: &Shared, thread: &ThreadId) -> ApiResult<()> {
    delete_rows(app, thread).await?;
    app.runtime.checkpointer().forget(thread).await?;
    Ok(())
}

const UPKEEP_EVERY: Duration = Duration::from_secs(60);
/// How long a delivery is listed after its receiver confirmed it: a week.
const DELIVERED_KEPT_MS: i64 = 7 * 24 * 60 * 60 * 1_000;
/// Number of threads, of items and of rows of each kind that are listed or deleted at once. A round repeats until there are fewer.
const SWEPT_AT_ONCE: u32 = 1_000;
