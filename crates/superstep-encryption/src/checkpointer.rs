//! A checkpointer that stores ciphertext and returns what was stored.
//!
//! It encrypts bodies, answers, the names of those who answered, and every field of metadata and listed states that is not searchable.
//! Ids, graphs, statuses, times, lifetimes and sizes stay in clear: the inner store compares and sorts by them. What it exports is
//! plain, as its caller sees it; what it imports is encrypted.
//!
//! Rule 2 of [`Checkpointer`] compares bytes, and the same thing has other bytes under another key. So where the inner store says that
//! something else is there, this one looks whether it is the same thing under an older key, and repeats the call with the stored
//! bytes.

use std::fmt;
use std::sync::Arc;

use superstep_core::checkpoint::{
    Answer, Archive, ArchivedAnswer, ArchivedListing, AskedRow, BoxFuture, CheckpointResult,
    Checkpointer, Commit, ExpiredThread, Glance, Head, History, InterruptQuery, InterruptRow,
    Listing, Loaded, Metadata, NewThread, OverdueCursor, Page, RecordRow, RecordWrite, Saved,
    SizeQuery, SizeRow, Status, StoredBody, ThreadAnnotation, ThreadLifetime, ThreadQuery,
    ThreadRow, UnfinishedThread,
};
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, Seq, TaskId, ThreadId, Timestamp, Value};

use crate::body::{BodyPlace, answerer_place, hide_answer, show_answer, thread_place};
use crate::encryption::{Encryption, Reader};
use crate::error::EncryptionError;
use crate::fields::{hide_metadata, hide_text, hide_values, show_metadata, show_text, show_values};
use crate::keyring::TenantKeys;

/// A [`Checkpointer`] in front of another one, which gets nothing but ciphertext of what users write.
#[derive(Clone)]
pub struct EncryptedCheckpointer {
    inner: Arc<dyn Checkpointer>,
    encryption: Encryption,
}

impl EncryptedCheckpointer {
    /// Creates a checkpointer that encrypts what it stores in another one.
    pub fn new(inner: Arc<dyn Checkpointer>, encryption: Encryption) -> Self {
        Self { inner, encryption }
    }
}

type Opened<T> = Result<T, EncryptionError>;

impl EncryptedCheckpointer {
    async fn hide_commit(&self, commit: &Commit) -> Opened<Commit> {
        let keys = self
            .encryption
            .keys_to_write(commit.thread.tenant())
            .await?;
        let (thread, seq) = (&commit.thread, commit.head.seq);
        let asked = commit.asked.iter().map(|asked| AskedRow {
            body: BodyPlace::interrupt(thread, seq, asked.id).hide(&keys, &asked.body),
            ..asked.clone()
        });
        let hide = |place: BodyPlace<'_>, body: &Option<Vec<u8>>| {
            body.as_ref().map(|body| place.hide(&keys, body))
        };
        Ok(Commit {
            entry: hide(BodyPlace::entry(thread, seq), &commit.entry),
            snapshot: hide(BodyPlace::snapshot(thread, seq), &commit.snapshot),
            asked: asked.collect(),
            listing: (commit.listing.as_ref()).map(|listing| Listing {
                graph: listing.graph.clone(),
                metadata: (listing.metadata.as_ref())
                    .map(|metadata| self.hide_metadata(&keys, thread, metadata)),
                values: self.hide_values(&keys, thread, listing.values.as_ref()),
            }),
            thread: thread.clone(),
            expect: commit.expect,
            head: commit.head,
            at: commit.at,
            closed: commit.closed.clone(),
            released: commit.released.clone(),
            lease: commit.lease,
        })
    }

    fn hide_metadata(&self, keys: &TenantKeys, thread: &ThreadId, metadata: &Metadata) -> Metadata {
        let place = thread_place("metadata", thread);
        hide_metadata(keys, self.encryption.searchable(), &place, metadata)
    }

    fn hide_values(
        &self,
        keys: &TenantKeys,
        thread: &ThreadId,
        values: Option<&Value>,
    ) -> Option<Value> {
        let place = thread_place("values", thread);
        values.map(|values| hide_values(keys, self.encryption.searchable(), &place, values))
    }

    async fn save_hidden(&self, commit: &Commit) -> CheckpointResult<Saved> {
        let mut hidden = self.hide_commit(commit).await?;
        let saved = match self.inner.save(&hidden).await {
            Err(CheckpointError::Fenced { thread, epoch }) => {
                let stored = self.entry_under_older_key(commit, &hidden).await?;
                let Some(stored) = stored else {
                    return Err(CheckpointError::Fenced { thread, epoch });
                };
                hidden.entry = Some(stored);
                self.inner.save(&hidden).await?
            }
            saved => saved?,
        };
        let show = |reader: &Reader<'_>| show_saved(reader, &commit.thread, &saved);
        Ok(self.encryption.read(commit.thread.tenant(), show).await?)
    }

    /// Returns what is stored in the place of a refused commit's entry, if it is that entry in another form.
    async fn entry_under_older_key(
        &self,
        commit: &Commit,
        hidden: &Commit,
    ) -> CheckpointResult<Option<Vec<u8>>> {
        let (Some(entry), Some(before)) = (&commit.entry, commit.head.seq.0.checked_sub(1)) else {
            return Ok(None);
        };
        let found = self.inner.entries(&commit.thread, Seq(before), 1).await?;
        let is_other = |found: &StoredBody| {
            found.seq == commit.head.seq && hidden.entry.as_ref() != Some(&found.body)
        };
        let Some(stored) = found.into_iter().find(is_other) else {
            return Ok(None);
        };
        let place = BodyPlace::entry(&commit.thread, stored.seq);
        let show = |reader: &Reader<'_>| place.show(reader, &stored.body);
        let shown = self.encryption.read(commit.thread.tenant(), show).await;
        Ok(shown
            .is_ok_and(|shown| shown == *entry)
            .then_some(stored.body))
    }

    async fn hide_answers(&self, thread: &ThreadId, answers: &[Answer]) -> Opened<Vec<Answer>> {
        let keys = self.encryption.keys_to_write(thread.tenant()).await?;
        let hide = |answer: &Answer| Answer {
            interrupt: answer.interrupt,
            body: hide_answer(&keys, thread, answer.interrupt, &answer.body),
            by: hide_text(&keys, &answerer_place(thread, answer.interrupt), &answer.by),
            at: answer.at,
        };
        Ok(answers.iter().map(hide).collect())
    }

    /// Whether refused answers are all stored, as they were given, under an older key.
    async fn has_answers(&self, thread: &ThreadId, answers: &[Answer]) -> CheckpointResult<bool> {
        let keys = self.encryption.keys_to_write(thread.tenant()).await?;
        let has_one_form = keys.is_encrypted && !keys.has_older();
        if has_one_form || Answer::named_twice(answers).is_some() {
            return Ok(false);
        }
        let query = InterruptQuery {
            tenant: thread.tenant().to_owned(),
            thread: Some(thread.clone()),
            page: Page {
                limit: u32::MAX,
                offset: 0,
            },
            ..InterruptQuery::default()
        };
        let stored = self.interrupts(&query).await?;
        let holds = |answer: &Answer| stored.iter().any(|row| row.holds(answer));
        Ok(answers.iter().all(holds))
    }

    async fn show_interrupts(
        &self,
        rows: Vec<InterruptRow>,
    ) -> CheckpointResult<Vec<InterruptRow>> {
        let mut shown = Vec::with_capacity(rows.len());
        for row in &rows {
            let show = |reader: &Reader<'_>| show_interrupt(reader, row);
            shown.push(self.encryption.read(row.thread.tenant(), show).await?);
        }
        Ok(shown)
    }

    fn check_query(&self, query: &ThreadQuery) -> Opened<()> {
        let searchable = self.encryption.searchable();
        searchable.check_filters(&query.metadata)?;
        searchable.check_filters(&query.values)?;
        searchable.check_part(query.metadata_contains.as_ref())?;
        searchable.check_part(query.values_contains.as_ref())
    }

    async fn show_archive(&self, archive: &Archive) -> CheckpointResult<Archive> {
        let show = |reader: &Reader<'_>| show_archive(reader, archive);
        Ok(self.encryption.read(archive.thread.tenant(), show).await?)
    }

    async fn import_hidden(&self, thread: &ThreadId, archive: &Archive) -> CheckpointResult<()> {
        archive.check_for(thread)?;
        let keys = self.encryption.keys_to_write(thread.tenant()).await?;
        let hidden = self.hide_archive(&keys, archive);
        match self.inner.import(thread, &hidden).await {
            // The same archive, imported before under an older key?
            Err(error @ CheckpointError::ThreadExists { .. }) => {
                let stored = self.inner.export(thread).await?;
                match archive.is_same_thread(&self.show_archive(&stored).await?) {
                    true => Ok(()),
                    false => Err(error),
                }
            }
            done => done,
        }
    }

    fn hide_archive(&self, keys: &TenantKeys, archive: &Archive) -> Archive {
        let thread = &archive.thread;
        let mut hidden = archive.clone();
        for entry in &mut hidden.entries {
            entry.body = BodyPlace::entry(thread, entry.seq).hide(keys, &entry.body);
        }
        for snapshot in &mut hidden.snapshots {
            snapshot.body = BodyPlace::snapshot(thread, snapshot.seq).hide(keys, &snapshot.body);
        }
        for record in &mut hidden.records {
            let place = BodyPlace::record(thread, record.task, &record.key);
            record.body = place.hide(keys, &record.body);
        }
        for row in &mut hidden.interrupts {
            row.body = BodyPlace::interrupt(thread, row.seq, row.id).hide(keys, &row.body);
            row.answer = row.answer.as_ref().map(|answer| ArchivedAnswer {
                body: hide_answer(keys, thread, row.id, &answer.body),
                by: hide_text(keys, &answerer_place(thread, row.id), &answer.by),
                at: answer.at,
            });
        }
        let listing = &archive.listing;
        hidden.listing = ArchivedListing {
            metadata: self.hide_metadata(keys, thread, &listing.metadata),
            values: self.hide_values(keys, thread, listing.values.as_ref()),
            ..listing.clone()
        };
        hidden
    }

    /// Copies a thread by way of an archive, because its bodies are encrypted for the place that they are in.
    async fn copy_hidden(
        &self,
        from: &ThreadId,
        upto: Option<Seq>,
        to: &ThreadId,
    ) -> CheckpointResult<()> {
        let source = self.inner.export(from).await?;
        let source = self.show_archive(&source).await?;
        let upto = upto.unwrap_or(source.head.seq);
        let is_reachable = source.entries.iter().any(|entry| entry.seq == upto);
        if !is_reachable {
            return Err(CheckpointError::NoCheckpoint {
                thread: from.clone(),
                seq: upto,
            });
        }
        let target = self.inner.glance(to, None).await?;
        if target.is_some_and(|target| target.status != Status::Deleted) {
            return Err(CheckpointError::ThreadExists { thread: to.clone() });
        }
        let lifetime = self.lifetime_of(from).await?;
        let updated = source.listing.updated;
        self.import_hidden(to, &copied(source, upto, to)?).await?;
        if lifetime.is_some() {
            // A second write: a crash between the two leaves a copy that is kept longer.
            let change = ThreadAnnotation {
                lifetime: Some(lifetime),
                at: updated,
                ..ThreadAnnotation::default()
            };
            self.inner.annotate(to, &change).await?;
        }
        Ok(())
    }

    async fn lifetime_of(&self, thread: &ThreadId) -> CheckpointResult<Option<ThreadLifetime>> {
        let query = ThreadQuery {
            tenant: thread.tenant().to_owned(),
            ids: Some(vec![thread.clone()]),
            ..ThreadQuery::default()
        };
        let rows = self.inner.threads(&query).await?;
        Ok(rows.into_iter().find_map(|row| row.lifetime))
    }
}

/// Returns the archive of an idle copy: the history up to an entry, sealed for another thread.
fn copied(source: Archive, upto: Seq, to: &ThreadId) -> CheckpointResult<Archive> {
    use superstep_core::checkpoint::format::{Body as _, Entry, Snapshot};
    let from = &source.thread;
    let mut entries = source.entries;
    entries.retain(|entry| entry.seq <= upto);
    for entry in &mut entries {
        entry.body = Entry::unseal(&entry.body, from, entry.seq)?.seal(to, entry.seq);
        // No owner ever had epoch 0, so no commit mistakes a copied entry for its own.
        entry.epoch = Epoch(0);
    }
    let mut snapshots = source.snapshots;
    snapshots.retain(|snapshot| snapshot.seq <= upto);
    for snapshot in &mut snapshots {
        snapshot.body =
            Snapshot::unseal(&snapshot.body, from, snapshot.seq)?.seal(to, snapshot.seq);
    }
    Ok(Archive {
        thread: to.clone(),
        head: Head {
            epoch: Epoch(1),
            seq: upto,
            ..Head::default()
        },
        seen: 0,
        cancel: false,
        listing: source.listing,
        entries,
        snapshots,
        records: Vec::new(),
        interrupts: Vec::new(),
        extensions: source.extensions,
    })
}

fn show_saved(reader: &Reader<'_>, thread: &ThreadId, saved: &Saved) -> Opened<Saved> {
    let mut shown = saved.clone();
    shown.records = show_records(reader, thread, &saved.records)?;
    if let Some(unseen) = &mut shown.unseen {
        for (id, answer) in &mut unseen.answered {
            *answer = show_answer(reader, thread, *id, answer)?;
        }
    }
    Ok(shown)
}

fn show_records(
    reader: &Reader<'_>,
    thread: &ThreadId,
    records: &[RecordRow],
) -> Opened<Vec<RecordRow>> {
    let show = |row: &RecordRow| {
        let place = BodyPlace::record(thread, row.task, &row.key);
        Ok(RecordRow {
            body: place.show(reader, &row.body)?,
            ..row.clone()
        })
    };
    records.iter().map(show).collect()
}

fn show_entries(
    reader: &Reader<'_>,
    thread: &ThreadId,
    entries: &[StoredBody],
) -> Opened<Vec<StoredBody>> {
    let show = |entry: &StoredBody| {
        let body = BodyPlace::entry(thread, entry.seq).show(reader, &entry.body)?;
        Ok(StoredBody {
            seq: entry.seq,
            body,
        })
    };
    entries.iter().map(show).collect()
}

fn show_history(reader: &Reader<'_>, thread: &ThreadId, history: &History) -> Opened<History> {
    let show = |snapshot: &StoredBody| {
        let body = BodyPlace::snapshot(thread, snapshot.seq).show(reader, &snapshot.body)?;
        Ok::<_, EncryptionError>(StoredBody {
            seq: snapshot.seq,
            body,
        })
    };
    Ok(History {
        snapshot: history.snapshot.as_ref().map(show).transpose()?,
        entries: show_entries(reader, thread, &history.entries)?,
    })
}

fn show_interrupt(reader: &Reader<'_>, row: &InterruptRow) -> Opened<InterruptRow> {
    let (thread, id) = (&row.thread, row.id);
    let answer = row.answer.as_ref();
    let what = || format!("who answered interrupt `{id}` of thread `{thread}`");
    let answerer = answerer_place(thread, id);
    Ok(InterruptRow {
        body: BodyPlace::interrupt(thread, row.seq, id).show(reader, &row.body)?,
        answer: answer
            .map(|answer| show_answer(reader, thread, id, answer))
            .transpose()?,
        answered_by: show_text(reader, &answerer, &row.answered_by, what)?,
        ..row.clone()
    })
}

fn show_loaded(reader: &Reader<'_>, thread: &ThreadId, loaded: &Loaded) -> Opened<Loaded> {
    let interrupts = loaded.interrupts.iter();
    Ok(Loaded {
        head: loaded.head,
        history: show_history(reader, thread, &loaded.history)?,
        records: show_records(reader, thread, &loaded.records)?,
        interrupts: interrupts
            .map(|row| show_interrupt(reader, row))
            .collect::<Opened<_>>()?,
    })
}

fn show_row(reader: &Reader<'_>, row: &ThreadRow) -> Opened<ThreadRow> {
    Ok(ThreadRow {
        metadata: show_thread_metadata(reader, &row.thread, &row.metadata)?,
        values: show_thread_values(reader, &row.thread, row.values.as_ref())?,
        ..row.clone()
    })
}

fn show_thread_metadata(
    reader: &Reader<'_>,
    thread: &ThreadId,
    metadata: &Metadata,
) -> Opened<Metadata> {
    let place = thread_place("metadata", thread);
    show_metadata(reader, &place, metadata, &format!("thread `{thread}`"))
}

fn show_thread_values(
    reader: &Reader<'_>,
    thread: &ThreadId,
    values: Option<&Value>,
) -> Opened<Option<Value>> {
    let place = thread_place("values", thread);
    let what = || format!("the listed state of thread `{thread}`");
    let show = |values| show_values(reader, &place, values, what);
    values.map(show).transpose()
}

fn show_archive(reader: &Reader<'_>, archive: &Archive) -> Opened<Archive> {
    let thread = &archive.thread;
    let mut shown = archive.clone();
    for entry in &mut shown.entries {
        entry.body = BodyPlace::entry(thread, entry.seq).show(reader, &entry.body)?;
    }
    for snapshot in &mut shown.snapshots {
        snapshot.body = BodyPlace::snapshot(thread, snapshot.seq).show(reader, &snapshot.body)?;
    }
    shown.records = show_records(reader, thread, &archive.records)?;
    for row in &mut shown.interrupts {
        row.body = BodyPlace::interrupt(thread, row.seq, row.id).show(reader, &row.body)?;
        if let Some(answer) = &mut row.answer {
            let what = || format!("who answered interrupt `{}` of thread `{thread}`", row.id);
            answer.body = show_answer(reader, thread, row.id, &answer.body)?;
            answer.by = show_text(reader, &answerer_place(thread, row.id), &answer.by, what)?;
        }
    }
    let listing = &archive.listing;
    shown.listing.metadata = show_thread_metadata(reader, thread, &listing.metadata)?;
    shown.listing.values = show_thread_values(reader, thread, listing.values.as_ref())?;
    Ok(shown)
}

impl fmt::Debug for EncryptedCheckpointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptedCheckpointer")
            .field("encryption", &self.encryption)
            .finish_non_exhaustive()
    }
}

impl Checkpointer for EncryptedCheckpointer {
    fn create<'a>(
        &'a self,
        thread: &'a ThreadId,
        new: &'a NewThread,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move {
            let keys = self.encryption.keys_to_write(thread.tenant()).await?;
            let hidden = NewThread {
                metadata: self.hide_metadata(&keys, thread, &new.metadata),
                ..new.clone()
            };
            self.inner.create(thread, &hidden).await
        })
    }

    fn annotate<'a>(
        &'a self,
        thread: &'a ThreadId,
        change: &'a ThreadAnnotation,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move {
            let keys = self.encryption.keys_to_write(thread.tenant()).await?;
            let hidden = ThreadAnnotation {
                metadata: self.hide_metadata(&keys, thread, &change.metadata),
                ..change.clone()
            };
            self.inner.annotate(thread, &hidden).await
        })
    }

    fn save<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, CheckpointResult<Saved>> {
        Box::pin(self.save_hidden(commit))
    }

    fn record<'a>(&'a self, record: &'a RecordWrite) -> BoxFuture<'a, CheckpointResult<Vec<u8>>> {
        Box::pin(async move {
            let keys = self
                .encryption
                .keys_to_write(record.thread.tenant())
                .await?;
            let place = BodyPlace::record(&record.thread, record.task, &record.key);
            let hidden = RecordWrite {
                body: place.hide(&keys, &record.body),
                ..record.clone()
            };
            let stored = self.inner.record(&hidden).await?;
            if stored == hidden.body {
                return Ok(record.body.clone());
            }
            let show = |reader: &Reader<'_>| place.show(reader, &stored);
            Ok(self.encryption.read(record.thread.tenant(), show).await?)
        })
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        answers: &'a [Answer],
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            let hidden = self.hide_answers(thread, answers).await?;
            match self.inner.answer(thread, &hidden).await {
                Err(CheckpointError::NotOpen { .. })
                    if self.has_answers(thread, answers).await? =>
                {
                    Ok(())
                }
                done => done,
            }
        })
    }

    fn answer_and_load<'a>(
        &'a self,
        thread: &'a ThreadId,
        answers: &'a [Answer],
    ) -> BoxFuture<'a, CheckpointResult<Option<Loaded>>> {
        Box::pin(async move {
            let hidden = self.hide_answers(thread, answers).await?;
            match self.inner.answer_and_load(thread, &hidden).await {
                Err(CheckpointError::NotOpen { .. })
                    if self.has_answers(thread, answers).await? =>
                {
                    self.load(thread).await
                }
                Err(error) => Err(error),
                Ok(None) => Ok(None),
                Ok(Some(loaded)) => {
                    let show = |reader: &Reader<'_>| show_loaded(reader, thread, &loaded);
                    Ok(Some(self.encryption.read(thread.tenant(), show).await?))
                }
            }
        })
    }

    fn load<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Option<Loaded>>> {
        Box::pin(async move {
            let Some(loaded) = self.inner.load(thread).await? else {
                return Ok(None);
            };
            let show = |reader: &Reader<'_>| show_loaded(reader, thread, &loaded);
            Ok(Some(self.encryption.read(thread.tenant(), show).await?))
        })
    }

    fn load_at<'a>(
        &'a self,
        thread: &'a ThreadId,
        seq: Seq,
    ) -> BoxFuture<'a, CheckpointResult<History>> {
        Box::pin(async move {
            let history = self.inner.load_at(thread, seq).await?;
            let show = |reader: &Reader<'_>| show_history(reader, thread, &history);
            Ok(self.encryption.read(thread.tenant(), show).await?)
        })
    }

    fn entries<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<StoredBody>>> {
        Box::pin(async move {
            let entries = self.inner.entries(thread, after, limit).await?;
            let show = |reader: &Reader<'_>| show_entries(reader, thread, &entries);
            Ok(self.encryption.read(thread.tenant(), show).await?)
        })
    }

    fn glance<'a>(
        &'a self,
        thread: &'a ThreadId,
        task: Option<TaskId>,
    ) -> BoxFuture<'a, CheckpointResult<Option<Glance>>> {
        Box::pin(async move {
            let Some(glance) = self.inner.glance(thread, task).await? else {
                return Ok(None);
            };
            let show = |reader: &Reader<'_>| show_records(reader, thread, &glance.records);
            let records = self.encryption.read(thread.tenant(), show).await?;
            Ok(Some(Glance { records, ..glance }))
        })
    }

    fn request_cancel<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        self.inner.request_cancel(thread)
    }

    fn unfinished<'a>(
        &'a self,
        after: Option<&'a ThreadId>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<UnfinishedThread>>> {
        self.inner.unfinished(after, limit)
    }

    fn renew<'a>(
        &'a self,
        owned: &'a [(ThreadId, Epoch)],
        lease: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        self.inner.renew(owned, lease)
    }

    fn threads<'a>(
        &'a self,
        query: &'a ThreadQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ThreadRow>>> {
        Box::pin(async move {
            self.check_query(query)?;
            let rows = self.inner.threads(query).await?;
            let show = |reader: &Reader<'_>| {
                let shown = rows.iter().map(|row| show_row(reader, row));
                shown.collect::<Opened<Vec<_>>>()
            };
            Ok(self.encryption.read(&query.tenant, show).await?)
        })
    }

    fn count_threads<'a>(&'a self, query: &'a ThreadQuery) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move {
            self.check_query(query)?;
            self.inner.count_threads(query).await
        })
    }

    /// Sums up what the ciphertext takes.
    fn sizes<'a>(&'a self, query: &'a SizeQuery) -> BoxFuture<'a, CheckpointResult<Vec<SizeRow>>> {
        self.inner.sizes(query)
    }

    fn interrupts<'a>(
        &'a self,
        query: &'a InterruptQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>> {
        Box::pin(async move {
            let rows = self.inner.interrupts(query).await?;
            self.show_interrupts(rows).await
        })
    }

    fn overdue<'a>(
        &'a self,
        now: Timestamp,
        after: Option<&'a OverdueCursor>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>> {
        Box::pin(async move {
            let rows = self.inner.overdue(now, after, limit).await?;
            self.show_interrupts(rows).await
        })
    }

    fn copy<'a>(
        &'a self,
        from: &'a ThreadId,
        upto: Option<Seq>,
        to: &'a ThreadId,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(self.copy_hidden(from, upto, to))
    }

    fn delete<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        self.inner.delete(thread)
    }

    fn forget<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        self.inner.forget(thread)
    }

    fn prune<'a>(
        &'a self,
        thread: &'a ThreadId,
        keep: u32,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        self.inner.prune(thread, keep)
    }

    fn expire(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        self.inner.expire(before, limit)
    }

    fn expired<'a>(
        &'a self,
        now: Timestamp,
        after: Option<&'a ExpiredThread>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ExpiredThread>>> {
        self.inner.expired(now, after, limit)
    }

    fn export<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Archive>> {
        Box::pin(async move {
            let stored = self.inner.export(thread).await?;
            self.show_archive(&stored).await
        })
    }

    fn import<'a>(
        &'a self,
        thread: &'a ThreadId,
        archive: &'a Archive,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(self.import_hidden(thread, archive))
    }
}
