//! Defects of a checkpointer that is read: what it loads, lists and finds.

use superstep_core::checkpoint::{
    AnswerBody, CheckpointResult, Checkpointer as _, FilterValue, History, InterruptQuery,
    InterruptRow, Loaded, Status, StoredBody, ThreadQuery, ThreadRow,
};
use superstep_core::{Epoch, Seq, ThreadId};

use super::{Broken, Defect};

impl Broken {
    /// What is loaded of a thread, as the defect would have it.
    pub(super) async fn load_bent(&self, thread: &ThreadId) -> CheckpointResult<Option<Loaded>> {
        let Some(mut loaded) = self.inner.load(thread).await? else {
            let is_new = self.is(Defect::MissingThreadIsNew);
            return Ok(is_new.then(Loaded::default));
        };
        loaded.interrupts = self.with_replaced(loaded.interrupts);
        let is_bare = loaded.head.seq == Seq(0) && loaded.head.status == Status::Running;
        let is_created = loaded.head.seq == Seq(0) && loaded.head.status == Status::Idle;
        let is_deleted = loaded.head.status == Status::Deleted;
        match self.defect {
            Defect::CreatedNotLoaded if is_created => return Ok(None),
            Defect::ClaimMakesAnEntry if is_bare => {
                let (seq, body) = (Seq(1), Vec::new());
                loaded.history.entries.push(StoredBody { seq, body });
            }
            Defect::DeletedEpochNotRaised if is_deleted => {
                loaded.head.epoch = Epoch(loaded.head.epoch.0 - 1);
            }
            Defect::LoadedHeadLags => loaded.head.seq = Seq(loaded.head.seq.0.saturating_sub(1)),
            Defect::LoadedWithoutSnapshot if !is_deleted => {
                let entries = self.inner.entries(thread, Seq(0), u32::MAX).await?;
                let snapshot = None;
                loaded.history = History { snapshot, entries };
            }
            Defect::ClosedQuestionsLoaded => {
                let query = InterruptQuery {
                    tenant: thread.tenant().to_owned(),
                    thread: Some(thread.clone()),
                    ..InterruptQuery::default()
                };
                loaded.interrupts = self.inner.interrupts(&query).await?;
            }
            _ => {}
        }
        Ok(Some(loaded))
    }

    /// The questions that are listed, as the defect would have it.
    pub(super) async fn interrupts_bent(
        &self,
        query: &InterruptQuery,
    ) -> CheckpointResult<Vec<InterruptRow>> {
        let mut query = query.clone();
        match self.defect {
            Defect::DueMeansOpen => query.open_only |= query.due.is_some(),
            Defect::AnsweredIsOpen => query.open_only = false,
            Defect::QuestionsOfEveryThread => query.thread = None,
            _ => {}
        }
        Ok(self.with_replaced(self.inner.interrupts(&query).await?))
    }

    /// What a search by what is in a thread finds, as the defect would have it.
    pub(super) async fn search(&self, query: &ThreadQuery) -> CheckpointResult<Vec<ThreadRow>> {
        let listed = self.listed.lock().expect("no clause panics").clone();
        let mut query = query.clone();
        match self.defect {
            Defect::MetadataSearchedOnce if !query.metadata.is_empty() => {
                let mut rows = self.inner.threads(&query).await?;
                rows.retain(|row| listed.get(&row.thread).is_some_and(|line| line.1));
                Ok(rows)
            }
            Defect::StatusOfTheListing => {
                let wanted = std::mem::take(&mut query.statuses);
                let mut rows = self.inner.threads(&query).await?;
                rows.retain(|row| {
                    let found = listed.get(&row.thread).map(|line| line.0);
                    wanted.is_empty() || found.is_some_and(|found| wanted.contains(&found))
                });
                Ok(rows)
            }
            Defect::LaterFieldsNotSearched => {
                let fields: Vec<_> = query.metadata.iter().map(|by| by.field.clone()).collect();
                let mut rows = self.inner.threads(&query).await?;
                rows.retain(|row| {
                    let is_searched = |field| row.metadata.keys().take(64).any(|key| key == field);
                    fields.iter().all(is_searched)
                });
                Ok(rows)
            }
            Defect::TextEndsAtNul => {
                for by in query.metadata.iter_mut().chain(&mut query.values) {
                    by.field = until_nul(&by.field);
                    if let FilterValue::Text(text) = &by.equals {
                        by.equals = FilterValue::Text(until_nul(text));
                    }
                }
                self.inner.threads(&query).await
            }
            Defect::StatusIgnored => {
                query.statuses.clear();
                self.inner.threads(&query).await
            }
            Defect::CopyLosesListing => {
                let mut rows = self.inner.threads(&query).await?;
                for row in rows.iter_mut().filter(|row| row.thread.name() == "to") {
                    row.metadata.clear();
                }
                Ok(rows)
            }
            _ => self.list_bent(&query).await,
        }
    }

    pub(super) fn with_replaced(&self, mut rows: Vec<InterruptRow>) -> Vec<InterruptRow> {
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
        if self.is(Defect::QuestionsNewestFirst) {
            rows.reverse();
        }
        rows
    }
}

fn until_nul(text: &str) -> String {
    text.split('\0').take(1).collect()
}

fn is_truthy(answer: &AnswerBody) -> bool {
    match answer {
        AnswerBody::Value(value) => ![b"false" as &[u8], b"0", b"\"\"", b"null"]
            .contains(&value.json().expect("answers are JSON")),
        AnswerBody::Expired => true,
    }
}
