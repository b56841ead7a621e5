//! A checkpointer with a defect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use superstep_core::checkpoint::format::{Body, Entry};
use superstep_core::checkpoint::{
    Answer, Archive, BoxFuture, CheckpointResult, Checkpointer, Commit, ExpiredThread, Glance,
    Head, History, InterruptQuery, InterruptRow, Loaded, Memory, Metadata, NewThread,
    OverdueCursor, RecordWrite, Released, ReleasedRecords, Saved, SizeQuery, SizeRow, Status,
    StoredBody, ThreadAnnotation, ThreadLifetime, ThreadQuery, ThreadRow, UnfinishedThread,
};
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, InterruptId, Seq, TaskId, ThreadId, Timestamp};

use super::Defect;

/// A checkpointer with a defect.
pub(crate) struct Broken {
    pub(super) inner: Memory,
    pub(super) defect: Defect,
    pub(super) tenants: Mutex<BTreeSet<String>>,
    cancelled: Mutex<BTreeSet<ThreadId>>,
    pub(super) replaced: Mutex<Vec<(ThreadId, Answer)>>,
    /// The write before this one was refused.
    refused: AtomicBool,
    /// The status at the last listing, and whether that had metadata.
    pub(super) listed: Mutex<BTreeMap<ThreadId, (Status, bool)>>,
    /// The threads that were annotated, and the graph that was given last.
    pub(super) annotated: Mutex<BTreeMap<ThreadId, Option<String>>>,
    pub(super) exported_lifetime: Mutex<Option<ThreadLifetime>>,
}

impl Broken {
    pub(crate) fn new(defect: Defect) -> Self {
        Self {
            inner: Memory::new(),
            defect,
            tenants: Mutex::default(),
            cancelled: Mutex::default(),
            replaced: Mutex::default(),
            refused: AtomicBool::new(false),
            listed: Mutex::default(),
            annotated: Mutex::default(),
            exported_lifetime: Mutex::default(),
        }
    }

    pub(super) fn is(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    async fn head(&self, thread: &ThreadId) -> CheckpointResult<Head> {
        Ok(self
            .inner
            .load(thread)
            .await?
            .map(|loaded| loaded.head)
            .unwrap_or_default())
    }

    /// The commit as the defect would have it, before it is saved.
    async fn bent(&self, commit: &Commit) -> CheckpointResult<Commit> {
        let head = self.head(&commit.thread).await?;
        let mut bent = commit.clone();
        let from_nothing = commit.expect.epoch.0 == 0;
        if self.is(Defect::DeleteForgetsEpoch) && head.status == Status::Deleted && from_nothing {
            bent.expect = head;
            bent.head.epoch = head.epoch.next();
        }
        if self.is(Defect::AnswerOverlooked) {
            bent.head.answers = head.answers;
        }
        let is_deleted = head.status == Status::Deleted && commit.expect == head;
        if self.is(Defect::DeletedTakenUpWithoutAClaim) && is_deleted && !commit.is_claim() {
            bent.head.epoch = head.epoch.next();
        }
        if self.is(Defect::SeenAnswersForgotten) {
            bent.head.answers = 0;
        }
        if self.is(Defect::ReleaseOfResultDropsSteps) {
            for released in &mut bent.released {
                released.which = ReleasedRecords::All;
            }
        }
        let drops_every_task = match self.defect {
            Defect::ReleaseDropsEveryTask => !commit.released.is_empty(),
            Defect::ReleaseOfManyDropsAll => commit.released.len() > 16,
            _ => false,
        };
        if drops_every_task {
            let loaded = self.inner.load(&commit.thread).await?.unwrap_or_default();
            bent.released
                .extend(loaded.records.iter().map(|row| Released {
                    task: row.task,
                    which: ReleasedRecords::All,
                }));
        }
        if self.is(Defect::LeaseForgotten) {
            bent.lease = None;
        }
        if let (true, Some(listing)) = (
            self.is(Defect::FirstRunDropsMetadata) && head.seq == Seq(0),
            &mut bent.listing,
        ) {
            listing.metadata.get_or_insert_with(Metadata::new);
        }
        if let (true, Some(lease)) = (self.is(Defect::LeaseMovedBySteps), commit.lease) {
            let owned = [(commit.thread.clone(), commit.expect.epoch)];
            self.inner.renew(&owned, lease).await?;
        }
        Ok(bent)
    }

    /// The reply as the defect would have it.
    fn told<T>(&self, reply: CheckpointResult<T>) -> CheckpointResult<T> {
        if self.is(Defect::CrowdSharesItsFate)
            && self.refused.swap(reply.is_err(), Ordering::SeqCst)
        {
            return Err(CheckpointError::store("somebody else's write was refused"));
        }
        if !self.is(Defect::RefusalsNameNothing) {
            return reply;
        }
        let nobody = || ThreadId::new("nobody").expect("it is a name");
        reply.map_err(|error| match error {
            CheckpointError::Fenced { thread, .. } => CheckpointError::Fenced {
                thread,
                epoch: Epoch(0),
            },
            CheckpointError::NotOpen { thread, .. } => CheckpointError::NotOpen {
                thread,
                interrupt: InterruptId::from_bytes([0; 16]),
            },
            CheckpointError::NoCheckpoint { thread, .. } => CheckpointError::NoCheckpoint {
                thread,
                seq: Seq(0),
            },
            CheckpointError::NoThread { .. } => CheckpointError::NoThread { thread: nobody() },
            other => other,
        })
    }

    /// What the defect makes of a refusal.
    async fn forgiven(&self, commit: &Commit) -> CheckpointResult<Option<Saved>> {
        let head = self.head(&commit.thread).await?;
        if self.is(Defect::FenceSkipped) {
            let forced = Commit {
                expect: head,
                ..commit.clone()
            };
            return self.inner.save(&forced).await.map(Some);
        }
        let reached = head.epoch == commit.head.epoch && head.seq >= commit.head.seq;
        if self.is(Defect::LoserToldSaved) && reached && commit.entry.is_some() {
            return Ok(Some(Saved::default()));
        }
        Ok(None)
    }

    async fn open_interrupts(&self, thread: &ThreadId) -> CheckpointResult<Vec<InterruptRow>> {
        Ok(self
            .inner
            .load(thread)
            .await?
            .unwrap_or_default()
            .interrupts)
    }

    async fn refuse_answered(&self, thread: &ThreadId, answers: &[Answer]) -> CheckpointResult<()> {
        let rows = self.open_interrupts(thread).await?;
        let is_named =
            |row: &&InterruptRow| answers.iter().any(|answer| answer.interrupt == row.id);
        match rows
            .iter()
            .filter(is_named)
            .find(|row| row.answer.is_some())
        {
            Some(row) => Err(CheckpointError::NotOpen {
                thread: thread.clone(),
                interrupt: row.id,
            }),
            None => Ok(()),
        }
    }

    async fn has_equal(&self, thread: &ThreadId, answers: &[Answer]) -> CheckpointResult<bool> {
        let rows = self.open_interrupts(thread).await?;
        Ok(answers.iter().all(|answer| {
            let row = rows.iter().find(|row| row.id == answer.interrupt);
            row.is_some_and(|row| row.answer.as_ref() == Some(&answer.body))
        }))
    }
}

impl Checkpointer for Broken {
    fn create<'a>(
        &'a self,
        thread: &'a ThreadId,
        new: &'a NewThread,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(self.create_bent(thread, new))
    }

    fn annotate<'a>(
        &'a self,
        thread: &'a ThreadId,
        change: &'a ThreadAnnotation,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(self.annotate_bent(thread, change))
    }

    fn save<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, CheckpointResult<Saved>> {
        Box::pin(async move {
            self.note_tenant(&commit.thread);
            let head = self.head(&commit.thread).await?;
            let expected = (head.epoch, head.seq) == (commit.expect.epoch, commit.expect.seq);
            if self.is(Defect::RetryRefused) && !expected {
                let (thread, epoch) = (commit.thread.clone(), commit.expect.epoch);
                return Err(CheckpointError::Fenced { thread, epoch });
            }
            let mut saved = match self.told(self.inner.save(&self.bent(commit).await?).await) {
                Ok(saved) => saved,
                Err(error) => self.forgiven(commit).await?.ok_or(error)?,
            };
            if let Some(listing) = &commit.listing {
                let line = (commit.head.status, listing.metadata.is_some());
                let mut listed = self.listed.lock().expect("no clause panics");
                listed.insert(commit.thread.clone(), line);
            }
            saved.cancel &= !self.is(Defect::CancelNeverTold);
            if self.is(Defect::CancelKeptByClaim) {
                saved.cancel |= self
                    .cancelled
                    .lock()
                    .expect("no clause panics")
                    .contains(&commit.thread);
            }
            Ok(saved)
        })
    }

    fn record<'a>(&'a self, record: &'a RecordWrite) -> BoxFuture<'a, CheckpointResult<Vec<u8>>> {
        Box::pin(async move {
            let mut write = record.clone();
            if self.is(Defect::RecordUnfenced) {
                write.epoch = self.head(&record.thread).await?.epoch;
            }
            let stored = self.told(self.inner.record(&write).await)?;
            Ok(if self.is(Defect::RecordReplaced) {
                write.body
            } else {
                stored
            })
        })
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        answers: &'a [Answer],
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            if self.is(Defect::AnswersHalfStored) {
                for answer in answers {
                    self.inner
                        .answer(thread, std::slice::from_ref(answer))
                        .await?;
                }
                return Ok(());
            }
            if self.is(Defect::AnswerRetryRefused) {
                self.refuse_answered(thread, answers).await?;
            }
            let result = self.told(self.inner.answer(thread, answers).await);
            if self.is(Defect::EqualAnswerTaken) && self.has_equal(thread, answers).await? {
                return Ok(());
            }
            if self.is(Defect::AnswerReplaced) {
                let replaced = answers
                    .iter()
                    .map(|answer| (thread.clone(), answer.clone()));
                self.replaced
                    .lock()
                    .expect("no clause panics")
                    .extend(replaced);
                return Ok(());
            }
            result
        })
    }

    fn answer_and_load<'a>(
        &'a self,
        thread: &'a ThreadId,
        answers: &'a [Answer],
    ) -> BoxFuture<'a, CheckpointResult<Option<Loaded>>> {
        Box::pin(async move {
            if self.is(Defect::LoadedBeforeItsAnswers) {
                let loaded = self.load(thread).await?;
                self.answer(thread, answers).await?;
                return Ok(loaded);
            }
            match self.answer(thread, answers).await {
                Err(_) if self.is(Defect::RefusedAnswersLoaded) => {}
                answered => answered?,
            }
            self.load(thread).await
        })
    }

    fn load<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Option<Loaded>>> {
        Box::pin(self.load_bent(thread))
    }

    fn load_at<'a>(
        &'a self,
        thread: &'a ThreadId,
        seq: Seq,
    ) -> BoxFuture<'a, CheckpointResult<History>> {
        Box::pin(async move {
            if self.is(Defect::SeqIsSigned) && seq.0 > i64::MAX as u64 {
                return Err(CheckpointError::store("out of range"));
            }
            let mut history = self.told(self.inner.load_at(thread, seq).await)?;
            if self.is(Defect::CopyNotSealedAnew) && thread.name().starts_with("to") {
                for stored in &mut history.entries {
                    let entry = Entry::unseal(&stored.body, thread, stored.seq)?;
                    stored.body =
                        entry.seal(&ThreadId::new("from").expect("it is a name"), stored.seq);
                }
            }
            Ok(history)
        })
    }

    fn entries<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<StoredBody>>> {
        Box::pin(async move {
            let after = match self.is(Defect::SeqIsSigned) && after.0 > i64::MAX as u64 {
                true => Seq(0),
                false => after,
            };
            let mut entries = self.inner.entries(thread, after, limit).await?;
            if self.is(Defect::ClockOrder) {
                entries.sort_by_key(|stored| {
                    Entry::unseal(&stored.body, thread, stored.seq)
                        .expect("entries are whole")
                        .at
                });
            }
            Ok(entries)
        })
    }

    fn glance<'a>(
        &'a self,
        thread: &'a ThreadId,
        task: Option<TaskId>,
    ) -> BoxFuture<'a, CheckpointResult<Option<Glance>>> {
        Box::pin(async move {
            let Some(mut glance) = self.inner.glance(thread, task).await? else {
                return Ok(None);
            };
            match self.defect {
                Defect::GlanceOverlooksRecords => glance.records.clear(),
                Defect::GlanceShowsEveryRecord => {
                    let loaded = self.inner.load(thread).await?.unwrap_or_default();
                    glance.records = loaded.records;
                }
                Defect::GlanceOverlooksCancel => glance.cancel = false,
                Defect::LeaseNotAtAGlance => glance.lease = None,
                Defect::GlanceOverlooksAnswers => glance.unseen = false,
                Defect::GlanceOfLastEpoch => glance.epoch = Epoch(glance.epoch.0 - 1),
                _ => {}
            }
            Ok(Some(glance))
        })
    }

    fn request_cancel<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            self.told(self.inner.request_cancel(thread).await)?;
            self.cancelled
                .lock()
                .expect("no clause panics")
                .insert(thread.clone());
            Ok(())
        })
    }

    fn threads<'a>(
        &'a self,
        query: &'a ThreadQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ThreadRow>>> {
        Box::pin(async move {
            let mut query = query.clone();
            if self.is(Defect::PageIgnored) {
                query.page.offset = 0;
            }
            if self.is(Defect::ListingNeverComparedAgain) {
                query.values.clear();
            }
            if !self.is(Defect::TenantIgnored) {
                return self.search(&query).await;
            }
            let tenants = self.tenants.lock().expect("no clause panics").clone();
            let mut rows = Vec::new();
            for tenant in tenants {
                rows.extend(
                    self.inner
                        .threads(&ThreadQuery {
                            tenant,
                            ..query.clone()
                        })
                        .await?,
                );
            }
            Ok(rows)
        })
    }

    fn count_threads<'a>(&'a self, query: &'a ThreadQuery) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(self.count_bent(query))
    }

    fn sizes<'a>(&'a self, query: &'a SizeQuery) -> BoxFuture<'a, CheckpointResult<Vec<SizeRow>>> {
        Box::pin(self.sizes_bent(query))
    }

    fn interrupts<'a>(
        &'a self,
        query: &'a InterruptQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>> {
        Box::pin(self.interrupts_bent(query))
    }

    fn copy<'a>(
        &'a self,
        from: &'a ThreadId,
        upto: Option<Seq>,
        to: &'a ThreadId,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            let upto = match self.is(Defect::CopyCutAtAPage) {
                true => upto.map(|upto| upto.min(Seq(100))),
                false => upto,
            };
            self.told(self.inner.copy(from, upto, to).await)
        })
    }

    fn delete<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            match self.is(Defect::DeleteKeepsEverything) {
                true => Ok(()),
                false => self.inner.delete(thread).await,
            }
        })
    }

    fn forget<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(self.forget_bent(thread))
    }

    fn expired<'a>(
        &'a self,
        now: Timestamp,
        after: Option<&'a ExpiredThread>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ExpiredThread>>> {
        Box::pin(self.expired_bent(now, after, limit))
    }

    fn expire(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move {
            if !self.is(Defect::ExpireOfUnnamedTenantOnly) {
                return self.inner.expire(before, limit).await;
            }
            let mut rows = self.inner.threads(&ThreadQuery::default()).await?;
            rows.retain(|row| row.updated < before && row.head.status != Status::Running);
            for row in &rows {
                self.inner.delete(&row.thread).await?;
            }
            Ok(rows.len() as u64)
        })
    }

    fn prune<'a>(
        &'a self,
        thread: &'a ThreadId,
        keep: u32,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move {
            let kept = match self.is(Defect::PruneDropsTooMuch) {
                true => keep / 2,
                false => keep,
            };
            let dropped = self.inner.prune(thread, kept).await?;
            Ok(dropped + u64::from(self.is(Defect::PruneMiscounts)))
        })
    }

    fn export<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Archive>> {
        Box::pin(async move {
            self.note_lifetime(thread).await?;
            self.export_bent(thread).await
        })
    }

    fn import<'a>(
        &'a self,
        thread: &'a ThreadId,
        archive: &'a Archive,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            self.import_bent(thread, archive).await?;
            self.restore_lifetime(thread, archive.listing.updated).await
        })
    }

    fn unfinished<'a>(
        &'a self,
        after: Option<&'a ThreadId>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<UnfinishedThread>>> {
        Box::pin(async move {
            let after = after.filter(|_| !self.is(Defect::UnfinishedFromTheStart));
            let mut found = self.inner.unfinished(after, limit).await?;
            if self.is(Defect::LeaseOfThreadsThatRest) {
                for thread in &mut found {
                    thread.lease = thread.lease.or(Some(Timestamp(5_000)));
                }
            }
            Ok(found)
        })
    }

    fn renew<'a>(
        &'a self,
        owned: &'a [(ThreadId, Epoch)],
        lease: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            match self.defect {
                Defect::LeaseNeverRenewed => Ok(()),
                Defect::LeaseRenewedByAnyone => {
                    let mut owned = owned.to_vec();
                    for (thread, epoch) in &mut owned {
                        *epoch = self.head(thread).await?.epoch;
                    }
                    self.inner.renew(&owned, lease).await
                }
                _ => self.inner.renew(owned, lease).await,
            }
        })
    }

    fn overdue<'a>(
        &'a self,
        now: Timestamp,
        after: Option<&'a OverdueCursor>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>> {
        Box::pin(async move {
            if !self.is(Defect::OverdueComparesDeadlines) {
                return self.inner.overdue(now, after, limit).await;
            }
            // Interrupts with the deadline of the cursor are left out.
            let end = after.map(|after| OverdueCursor {
                deadline: Timestamp(after.deadline.0 + 1),
                thread: after.thread.clone(),
                id: after.id,
            });
            self.inner.overdue(now, end.as_ref(), limit).await
        })
    }
}
