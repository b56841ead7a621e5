//! Threads as rows: created before their first run, annotated, counted, measured, and swept when their lifetimes are over.

use superstep_core::checkpoint::{
    AtLifetimeEnd, ExpiredThread, NewThread, SizeQuery, SizeRow, Status, ThreadAnnotation,
    ThreadQuery,
};
use superstep_core::error::CheckpointError;
use superstep_core::{ThreadId, Timestamp};

use crate::drive::DriveError;
use crate::runtime::Runtime;

impl Runtime {
    /// Creates a thread on which nothing has happened yet, so that it is listed and has metadata before its first run. Returns
    /// false and changes nothing if the thread exists. If the store did not answer and the call was retried, false may also mean
    /// that the first attempt created the thread.
    ///
    /// ```
    /// use superstep::checkpoint::NewThread;
    /// use superstep::{Memory, Runtime, ThreadId};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let runtime = Runtime::new(Memory::default());
    /// let new = NewThread {
    ///     metadata: [("user".to_owned(), "ann".into())].into(),
    ///     at: runtime.now(),
    ///     ..NewThread::default()
    /// };
    /// assert!(runtime.create_thread(&ThreadId::new("order-17")?, &new).await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_thread(
        &self,
        thread: &ThreadId,
        new: &NewThread,
    ) -> Result<bool, DriveError> {
        Ok(self.local.store().create(thread, new).await?)
    }

    /// Changes what the row of a thread says besides its state: metadata, lifetime. Returns false if there is no such thread.
    pub async fn annotate_thread(
        &self,
        thread: &ThreadId,
        change: &ThreadAnnotation,
    ) -> Result<bool, DriveError> {
        Ok(self.local.store().annotate(thread, change).await?)
    }

    /// Returns how many threads match a query, on all pages.
    pub async fn count_threads(&self, query: &ThreadQuery) -> Result<u64, DriveError> {
        Ok(self.local.store().count_threads(query).await?)
    }

    /// Returns how much threads take, summed up for each tenant, graph or thread, largest first.
    pub async fn sizes(&self, query: &SizeQuery) -> Result<Vec<SizeRow>, DriveError> {
        Ok(self.local.store().sizes(query).await?)
    }

    /// Applies what threads specify for the end of their lifetimes, to at most `limit` threads of every tenant whose lifetime is
    /// over: deletes them, or drops their history up to the newest state. Returns how many it was. A program that gives threads
    /// lifetimes calls this now and then.
    ///
    /// A thread that starts to run while it is deleted loses that run. A thread that cannot be swept does not keep the others; the
    /// first error is returned at the end.
    pub async fn sweep_threads(&self, limit: u32) -> Result<u64, DriveError> {
        let now = self.now();
        let (mut swept, mut failure) = (0, None);
        let mut after = None;
        loop {
            let store = self.local.store();
            let expired = store.expired(now, after.as_ref(), SWEEP_BATCH).await?;
            for found in &expired {
                if swept >= u64::from(limit) {
                    break;
                }
                match self.sweep_thread(found, now).await {
                    Ok(is_swept) => swept += u64::from(is_swept),
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            let is_last = expired.len() < SWEEP_BATCH as usize || swept >= u64::from(limit);
            after = expired.into_iter().next_back();
            if is_last {
                return failure.map_or(Ok(swept), Err);
            }
        }
    }

    /// Returns whether the thread was swept: it is not if it runs by now.
    async fn sweep_thread(
        &self,
        expired: &ExpiredThread,
        now: Timestamp,
    ) -> Result<bool, DriveError> {
        let (store, thread) = (self.local.store(), &expired.thread);
        let glance = store.glance(thread, None).await?;
        let is_idle = |status| !matches!(status, Status::Running | Status::Deleted);
        if !glance.is_some_and(|glance| is_idle(glance.status)) {
            return Ok(false);
        }
        match expired.at_end {
            AtLifetimeEnd::Delete => {
                store.delete(thread).await?;
                Ok(true)
            }
            AtLifetimeEnd::KeepLatest => {
                match store.prune(thread, 1).await {
                    Ok(_) => {}
                    // Another process deleted it since.
                    Err(CheckpointError::NoThread { .. }) => return Ok(false),
                    Err(error) => return Err(error.into()),
                }
                let unlimited = ThreadAnnotation {
                    lifetime: Some(None),
                    at: now,
                    ..ThreadAnnotation::default()
                };
                Ok(store.annotate(thread, &unlimited).await?)
            }
        }
    }
}

/// Number of threads that are listed at once. Small, so that the list is young when its last thread is deleted.
const SWEEP_BATCH: u32 = 100;
