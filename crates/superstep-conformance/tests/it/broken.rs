//! The reference implementations with one defect each, of the kinds that real stores have had.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Mutex;
use std::task::Poll;

use serde_json::Value as Json;
use superstep_core::checkpoint::format::{Body, Entry, Extensions};
use superstep_core::checkpoint::{
    Answer, AnswerBody, Archive, ArchivedListing, BoxFuture, CheckpointResult, Checkpointer,
    Commit, Glance, Head, History, InterruptQuery, InterruptRow, Loaded, Memory, RecordWrite,
    Saved, Status, StoredBody, ThreadQuery, ThreadRow,
};
use superstep_core::error::CheckpointError;
use superstep_core::store::{
    Item, MemoryStore, Namespace, NamespaceQuery, PutItem, Search, Store, StoreResult, Ttl,
};
use superstep_core::{Epoch, Seq, TaskId, ThreadId, Timestamp};

/// What is wrong with a checkpointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    None,
    FenceSkipped,
    RetryRefused,
    /// The epoch alone decides whether a commit was saved before.
    LoserToldSaved,
    CancelKeptByClaim,
    RecordReplaced,
    RecordUnfenced,
    AnswerReplaced,
    AnswerRetryRefused,
    /// The value alone decides whether an answer was stored before.
    EqualAnswerTaken,
    AnswersHalfStored,
    FalsyAnswerDropped,
    AnswerOverlooked,
    DeleteForgetsEpoch,
    PruneDropsTooMuch,
    TenantIgnored,
    ClockOrder,
    PageIgnored,
    CopyNotSealedAnew,
    ExportIgnoresTenant,
    ExportOfDeletedIsEmpty,
    ExportCutAtAPage,
    /// Where the thread stands is read after the rest.
    ExportTorn,
    ExportLosesSnapshots,
    ImportLosesRecords,
    ImportLosesCancel,
    ImportLosesListing,
    ImportLosesDeadlines,
    ImportLosesEpoch,
    /// Every answer counts as seen.
    ImportLosesSeen,
    /// A search takes what it once found for what it would find.
    ListingNeverComparedAgain,
    ImportReplaces,
    ImportTwiceRefused,
    ImportTakesAnyName,
    ImportTakesDamage,
    ImportNeedsEntries,
    GlanceOverlooksRecords,
    GlanceShowsEveryRecord,
    GlanceOverlooksCancel,
    GlanceOverlooksAnswers,
    GlanceOfLastEpoch,
}

/// A checkpointer with a defect.
pub(crate) struct Broken {
    inner: Memory,
    defect: Defect,
    tenants: Mutex<BTreeSet<String>>,
    cancelled: Mutex<BTreeSet<ThreadId>>,
    replaced: Mutex<Vec<(ThreadId, Answer)>>,
}

impl Broken {
    pub(crate) fn new(defect: Defect) -> Self {
        Self {
            inner: Memory::new(),
            defect,
            tenants: Mutex::default(),
            cancelled: Mutex::default(),
            replaced: Mutex::default(),
        }
    }

    fn is(&self, defect: Defect) -> bool {
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
        Ok(bent)
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

    /// The archive as the defect would have it, on its way out.
    fn bent_export(&self, mut archive: Archive) -> Archive {
        match self.defect {
            Defect::ExportCutAtAPage => {
                let cut = archive.entries.len().saturating_sub(1_000);
                archive.entries.drain(..cut);
            }
            Defect::ExportTorn => archive.head.seq = archive.head.seq.next(),
            Defect::ExportLosesSnapshots => archive.snapshots.clear(),
            _ => {}
        }
        archive
    }

    /// The archive as the defect would have it, on its way in.
    fn bent_import(&self, mut archive: Archive) -> Archive {
        match self.defect {
            Defect::ImportLosesRecords => archive.records.clear(),
            Defect::ImportLosesCancel => archive.cancel = false,
            Defect::ImportLosesListing => archive.listing = ArchivedListing::default(),
            Defect::ImportLosesDeadlines => {
                for question in &mut archive.interrupts {
                    question.deadline = None;
                }
            }
            Defect::ImportLosesEpoch => {
                archive.head.epoch = Epoch(1);
                for entry in &mut archive.entries {
                    entry.epoch = Epoch(1);
                }
            }
            Defect::ImportLosesSeen => archive.seen = archive.head.answers,
            _ => {}
        }
        archive
    }

    async fn export_anyhow(&self, thread: &ThreadId) -> CheckpointResult<Archive> {
        let exported = self.inner.export(thread).await;
        if exported.is_ok() {
            return exported;
        }
        if self.is(Defect::ExportOfDeletedIsEmpty)
            && let Some(loaded) = self.inner.load(thread).await?
        {
            return Ok(empty(thread, loaded.head));
        }
        let tenants = self.tenants.lock().expect("no clause panics").clone();
        for tenant in tenants
            .iter()
            .filter(|_| self.is(Defect::ExportIgnoresTenant))
        {
            let elsewhere = ThreadId::of_tenant(tenant, thread.name()).expect("it was one before");
            if let Ok(found) = self.inner.export(&elsewhere).await {
                return Ok(found);
            }
        }
        exported
    }

    async fn import_anyhow(&self, thread: &ThreadId, archive: &Archive) -> CheckpointResult<()> {
        let is_living = self.inner.export(thread).await.is_ok();
        if self.is(Defect::ImportTwiceRefused) && is_living
            || self.is(Defect::ImportNeedsEntries) && archive.entries.is_empty()
        {
            let thread = thread.clone();
            return Err(CheckpointError::ThreadExists { thread });
        }
        let thread = match self.is(Defect::ImportTakesAnyName) {
            true => &archive.thread,
            false => thread,
        };
        let archive = self.bent_import(archive.clone());
        match self.inner.import(thread, &archive).await {
            Err(CheckpointError::ThreadExists { .. }) if self.is(Defect::ImportReplaces) => {
                self.inner.delete(thread).await?;
                self.inner.import(thread, &archive).await
            }
            Err(CheckpointError::Format(_)) if self.is(Defect::ImportTakesDamage) => Ok(()),
            imported => imported,
        }
    }

    async fn open_questions(&self, thread: &ThreadId) -> CheckpointResult<Vec<InterruptRow>> {
        Ok(self
            .inner
            .load(thread)
            .await?
            .unwrap_or_default()
            .interrupts)
    }

    async fn refuse_answered(&self, thread: &ThreadId, answers: &[Answer]) -> CheckpointResult<()> {
        let rows = self.open_questions(thread).await?;
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
        let rows = self.open_questions(thread).await?;
        Ok(answers.iter().all(|answer| {
            let row = rows.iter().find(|row| row.id == answer.interrupt);
            row.is_some_and(|row| row.answer.as_ref() == Some(&answer.body))
        }))
    }

    fn with_replaced(&self, mut rows: Vec<InterruptRow>) -> Vec<InterruptRow> {
        for (thread, answer) in self.replaced.lock().expect("no clause panics").iter() {
            for row in rows.iter_mut().filter(|row| row.thread == *thread) {
                if row.id == answer.interrupt {
                    row.answer = Some(answer.body.clone());
                }
            }
        }
        if self.is(Defect::FalsyAnswerDropped) {
            for row in &mut rows {
                row.answer = row.answer.take().filter(is_truthy);
            }
        }
        rows
    }
}

fn empty(thread: &ThreadId, head: Head) -> Archive {
    Archive {
        thread: thread.clone(),
        head,
        seen: 0,
        cancel: false,
        listing: ArchivedListing::default(),
        entries: Vec::new(),
        snapshots: Vec::new(),
        records: Vec::new(),
        interrupts: Vec::new(),
        extensions: Extensions::default(),
    }
}

fn is_truthy(answer: &AnswerBody) -> bool {
    match answer {
        AnswerBody::Value(value) => ![b"false" as &[u8], b"0", b"\"\"", b"null"]
            .contains(&value.json().expect("answers are JSON")),
        AnswerBody::Expired => true,
    }
}

impl Checkpointer for Broken {
    fn save<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, CheckpointResult<Saved>> {
        Box::pin(async move {
            self.tenants
                .lock()
                .expect("no clause panics")
                .insert(commit.thread.tenant().to_owned());
            let head = self.head(&commit.thread).await?;
            let expected = (head.epoch, head.seq) == (commit.expect.epoch, commit.expect.seq);
            if self.is(Defect::RetryRefused) && !expected {
                let (thread, epoch) = (commit.thread.clone(), commit.expect.epoch);
                return Err(CheckpointError::Fenced { thread, epoch });
            }
            let mut saved = match self.inner.save(&self.bent(commit).await?).await {
                Ok(saved) => saved,
                Err(error) => self.forgiven(commit).await?.ok_or(error)?,
            };
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
            let stored = self.inner.record(&write).await?;
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
            let result = self.inner.answer(thread, answers).await;
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

    fn load<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Option<Loaded>>> {
        Box::pin(async move {
            let mut loaded = self.inner.load(thread).await?;
            if let Some(loaded) = &mut loaded {
                loaded.interrupts = self.with_replaced(std::mem::take(&mut loaded.interrupts));
            }
            Ok(loaded)
        })
    }

    fn load_at<'a>(
        &'a self,
        thread: &'a ThreadId,
        seq: Seq,
    ) -> BoxFuture<'a, CheckpointResult<History>> {
        Box::pin(async move {
            let mut history = self.inner.load_at(thread, seq).await?;
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
                Defect::GlanceOverlooksAnswers => glance.unseen = false,
                Defect::GlanceOfLastEpoch => glance.epoch = Epoch(glance.epoch.0 - 1),
                _ => {}
            }
            Ok(Some(glance))
        })
    }

    fn request_cancel<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            self.inner.request_cancel(thread).await?;
            self.cancelled
                .lock()
                .expect("no clause panics")
                .insert(thread.clone());
            Ok(())
        })
    }

    fn unfinished(&self, limit: u32) -> BoxFuture<'_, CheckpointResult<Vec<ThreadId>>> {
        self.inner.unfinished(limit)
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
                return self.inner.threads(&query).await;
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

    fn overdue(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<Vec<InterruptRow>>> {
        self.inner.overdue(now, limit)
    }

    fn interrupts<'a>(
        &'a self,
        query: &'a InterruptQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>> {
        Box::pin(async move { Ok(self.with_replaced(self.inner.interrupts(query).await?)) })
    }

    fn copy<'a>(
        &'a self,
        from: &'a ThreadId,
        upto: Option<Seq>,
        to: &'a ThreadId,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        self.inner.copy(from, upto, to)
    }

    fn delete<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        self.inner.delete(thread)
    }

    fn prune<'a>(
        &'a self,
        thread: &'a ThreadId,
        keep: u32,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        let kept = if self.is(Defect::PruneDropsTooMuch) {
            keep / 2
        } else {
            keep
        };
        self.inner.prune(thread, kept)
    }

    fn expire(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        self.inner.expire(before, limit)
    }

    fn export<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Archive>> {
        Box::pin(async move { Ok(self.bent_export(self.export_anyhow(thread).await?)) })
    }

    fn import<'a>(
        &'a self,
        thread: &'a ThreadId,
        archive: &'a Archive,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(self.import_anyhow(thread, archive))
    }
}

/// What is wrong with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreDefect {
    None,
    PrefixAsText,
    ExpiredFound,
    CreatedForgotten,
    ReadDoesNotProlong,
    SweepTakesAll,
    FiltersIgnored,
    LimitsIgnored,
    /// What was seen is not compared.
    PutIfAlways,
    /// What was seen is compared, and stored a moment later.
    PutIfTorn,
    /// Whoever comes too late is told that it was stored.
    LoserToldStored,
    PutIfSeesExpired,
    PutIfForgetsCreated,
}

/// A store with a defect.
pub(crate) struct BrokenStore {
    inner: MemoryStore,
    defect: StoreDefect,
}

impl BrokenStore {
    pub(crate) fn new(defect: StoreDefect) -> Self {
        Self {
            inner: MemoryStore::new(),
            defect,
        }
    }

    fn is(&self, defect: StoreDefect) -> bool {
        self.defect == defect
    }
}

/// Lets everybody else go first.
async fn give_way() {
    let mut given = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut given, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Store for BrokenStore {
    fn get<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Option<Item>>> {
        let now = if self.is(StoreDefect::ExpiredFound) {
            Timestamp(0)
        } else {
            now
        };
        self.inner.get(namespace, key, now)
    }

    fn put<'a>(&'a self, put: &'a PutItem, now: Timestamp) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(async move {
            let mut put = put.clone();
            if self.is(StoreDefect::LimitsIgnored) && put.check().is_err() {
                return Ok(());
            }
            if self.is(StoreDefect::CreatedForgotten) {
                self.inner.delete(&put.namespace, &put.key).await?;
            }
            if self.is(StoreDefect::ReadDoesNotProlong) {
                put.ttl = put.ttl.map(|ttl| Ttl {
                    refresh_on_read: false,
                    ..ttl
                });
            }
            self.inner.put(&put, now).await
        })
    }

    fn put_if<'a>(
        &'a self,
        seen: Option<&'a Json>,
        put: &'a PutItem,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(async move {
            let (namespace, key) = (&put.namespace, &put.key);
            match self.defect {
                StoreDefect::PutIfAlways => {
                    self.inner.put(put, now).await?;
                    Ok(true)
                }
                StoreDefect::PutIfTorn => {
                    let found = self.inner.get(namespace, key, now).await?;
                    give_way().await;
                    if found.map(|item| item.value).as_ref() != seen {
                        return Ok(false);
                    }
                    self.inner.put(put, now).await?;
                    Ok(true)
                }
                StoreDefect::LoserToldStored => {
                    self.inner.put_if(seen, put, now).await?;
                    Ok(true)
                }
                StoreDefect::PutIfSeesExpired => {
                    let found = self.inner.get(namespace, key, Timestamp(0)).await?;
                    if found.map(|item| item.value).as_ref() != seen {
                        return Ok(false);
                    }
                    self.inner.put(put, now).await?;
                    Ok(true)
                }
                StoreDefect::PutIfForgetsCreated => {
                    let stored = self.inner.put_if(seen, put, now).await?;
                    if stored {
                        self.inner.delete(namespace, key).await?;
                        self.inner.put(put, now).await?;
                    }
                    Ok(stored)
                }
                _ => self.inner.put_if(seen, put, now).await,
            }
        })
    }

    fn delete<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        self.inner.delete(namespace, key)
    }

    fn search<'a>(
        &'a self,
        search: &'a Search,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Item>>> {
        Box::pin(async move {
            let mut search = search.clone();
            if self.is(StoreDefect::FiltersIgnored) {
                search.filters.clear();
            }
            if !self.is(StoreDefect::PrefixAsText) {
                return self.inner.search(&search, now).await;
            }
            let prefix = std::mem::take(&mut search.prefix).join(".");
            let mut items = self.inner.search(&search, now).await?;
            items.retain(|item| item.namespace.segments().join(".").starts_with(&prefix));
            Ok(items)
        })
    }

    fn namespaces<'a>(
        &'a self,
        query: &'a NamespaceQuery,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Namespace>>> {
        self.inner.namespaces(query, now)
    }

    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, StoreResult<u64>> {
        let limit = if self.is(StoreDefect::SweepTakesAll) {
            u32::MAX
        } else {
            limit
        };
        self.inner.sweep(now, limit)
    }
}
