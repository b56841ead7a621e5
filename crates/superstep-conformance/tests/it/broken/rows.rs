//! Defects of a checkpointer in which threads are rows: how they are created, annotated, listed, counted and expired.

use serde_json::Value as Json;
use superstep_core::checkpoint::{
    AtLifetimeEnd, CheckpointResult, Checkpointer as _, ExpiredThread, Filter, FilterValue,
    NewThread, Page, SizeQuery, SizeRow, Status, StoredSize, ThreadAnnotation, ThreadLifetime,
    ThreadQuery, ThreadRow, ThreadSort,
};
use superstep_core::{Seq, ThreadId, Timestamp};

use super::{Broken, Defect};

impl Broken {
    pub(super) async fn create_bent(
        &self,
        thread: &ThreadId,
        new: &NewThread,
    ) -> CheckpointResult<bool> {
        self.note_tenant(thread);
        let former = self.inner.load(thread).await?;
        let is_deleted = former.is_some_and(|former| former.head.status == Status::Deleted);
        match self.defect {
            Defect::CreateReplaces => self.inner.delete(thread).await?,
            Defect::CreateForgetsEpoch if is_deleted => self.inner.forget(thread).await?,
            Defect::CreateOfDeletedRefused if is_deleted => return Ok(false),
            _ => {}
        }
        let created = self.inner.create(thread, new).await?;
        Ok(created || self.is(Defect::CreateAlwaysTold))
    }

    pub(super) async fn annotate_bent(
        &self,
        thread: &ThreadId,
        change: &ThreadAnnotation,
    ) -> CheckpointResult<bool> {
        let mut change = change.clone();
        let row = self.row(thread).await?;
        match (self.defect, &row) {
            (Defect::AnnotateReplaces, Some(row)) => {
                // As far as a field can be removed at all.
                for field in row.metadata.keys() {
                    let given = change.metadata.entry(field.clone());
                    given.or_insert(Json::Null);
                }
            }
            (Defect::AnnotateIsNoChange, Some(row)) => change.at = row.updated,
            (Defect::AnnotateMakesAThread, None) => {
                let new = NewThread {
                    at: change.at,
                    ..NewThread::default()
                };
                self.inner.create(thread, &new).await?;
            }
            (Defect::LifetimeNeverRemoved, _) => {
                change.lifetime = change.lifetime.filter(Option::is_some)
            }
            _ => {}
        }
        let found = self.inner.annotate(thread, &change).await?;
        let mut annotated = self.annotated.lock().expect("no clause panics");
        annotated.insert(thread.clone(), change.graph);
        Ok(found || self.is(Defect::AnnotateAlwaysTold))
    }

    /// The threads that are listed, as the defect would have it.
    pub(super) async fn list_bent(&self, query: &ThreadQuery) -> CheckpointResult<Vec<ThreadRow>> {
        let query = self.bent_query(query);
        if self.is(Defect::TiesFollowTheDirection) && !query.is_ascending {
            let whole = ThreadQuery {
                is_ascending: true,
                page: EVERYTHING,
                ..query.clone()
            };
            let rows = self.inner.threads(&whole).await?.into_iter().rev();
            let rows = rows.skip(query.page.offset as usize);
            return Ok(rows.take(query.page.limit as usize).collect());
        }
        let mut rows = self.inner.threads(&query).await?;
        let annotated = self.annotated.lock().expect("no clause panics");
        match self.defect {
            Defect::CreatedNotListed => {
                rows.retain(|row| row.head.seq > Seq(0) || row.head.status != Status::Idle);
            }
            Defect::AnnotationsNotSearched
                if !query.metadata.is_empty() || query.metadata_contains.is_some() =>
            {
                rows.retain(|row| !annotated.contains_key(&row.thread));
            }
            Defect::AnnotateRenamesGraph => {
                for row in &mut rows {
                    if let Some(Some(graph)) = annotated.get(&row.thread) {
                        row.graph.clone_from(graph);
                    }
                }
            }
            Defect::CopyLosesLifetime => {
                for row in rows.iter_mut().filter(|row| row.thread.name() == "to") {
                    row.lifetime = None;
                }
            }
            _ => {}
        }
        Ok(rows)
    }

    fn bent_query(&self, query: &ThreadQuery) -> ThreadQuery {
        let mut query = query.clone();
        match self.defect {
            Defect::FirstStatusOnly => query.statuses.truncate(1),
            Defect::IdsIgnored => query.ids = None,
            Defect::NoIdsMeanAny => query.ids = query.ids.filter(|ids| !ids.is_empty()),
            Defect::ExceptionsIgnored => query.except.clear(),
            Defect::NestedIgnored => {
                let parts = [&mut query.metadata_contains, &mut query.values_contains];
                for part in parts.into_iter().flatten() {
                    if let Some(part) = part.as_object_mut() {
                        part.retain(|_, value| !value.is_object() && !value.is_array());
                    }
                }
            }
            Defect::ContainedNumbersAsText => {
                let in_metadata = scalars(query.metadata_contains.as_ref());
                let in_values = scalars(query.values_contains.as_ref());
                query.metadata.extend(in_metadata);
                query.values.extend(in_values);
            }
            Defect::SortIgnored => query.sort = ThreadSort::Updated,
            Defect::CreatedIsUpdated if query.sort == ThreadSort::Created => {
                query.sort = ThreadSort::Updated;
            }
            Defect::DirectionIgnored => query.is_ascending = false,
            _ => {}
        }
        query
    }

    pub(super) async fn count_bent(&self, query: &ThreadQuery) -> CheckpointResult<u64> {
        match self.defect {
            Defect::CountOfThePage => Ok(self.inner.threads(query).await?.len() as u64),
            Defect::CountIgnoresConditions => {
                let all = ThreadQuery {
                    tenant: query.tenant.clone(),
                    ..ThreadQuery::default()
                };
                self.inner.count_threads(&all).await
            }
            Defect::TenantIgnored => {
                let tenants = self.tenants.lock().expect("no clause panics").clone();
                let mut counted = 0;
                for tenant in tenants {
                    let query = ThreadQuery {
                        tenant,
                        ..query.clone()
                    };
                    counted += self.inner.count_threads(&query).await?;
                }
                Ok(counted)
            }
            _ => self.inner.count_threads(query).await,
        }
    }

    pub(super) async fn sizes_bent(&self, query: &SizeQuery) -> CheckpointResult<Vec<SizeRow>> {
        let mut query = query.clone();
        match self.defect {
            Defect::SizesOfAllTenants => query.tenant = None,
            Defect::SizesOfAllThreads => query.thread = None,
            Defect::SizesIgnoreThePage => query.page = EVERYTHING,
            _ => {}
        }
        let mut found = self.inner.sizes(&query).await?;
        match self.defect {
            Defect::SizesSmallestFirst => found.reverse(),
            Defect::SizesWithoutSnapshots => {
                for row in &mut found {
                    row.snapshots = StoredSize::default();
                }
            }
            _ => {}
        }
        Ok(found)
    }

    pub(super) async fn expired_bent(
        &self,
        now: Timestamp,
        after: Option<&ExpiredThread>,
        limit: u32,
    ) -> CheckpointResult<Vec<ExpiredThread>> {
        let is_over: fn(&ThreadRow, ThreadLifetime, Timestamp) -> bool = match self.defect {
            Defect::RunningThreadsExpire => |row, lifetime, now| lifetime.is_over(row.updated, now),
            Defect::LifetimeFromCreation => |row, lifetime, now| {
                row.head.status != Status::Running && lifetime.is_over(row.created, now)
            },
            Defect::LifetimeOverflows => |row, lifetime, now| {
                let end = row.updated.0.wrapping_add_unsigned(lifetime.ms);
                row.head.status != Status::Running && end <= now.0
            },
            _ => return self.bent_expired(now, after, limit).await,
        };
        let tenants = self.tenants.lock().expect("no clause panics").clone();
        let mut found = Vec::new();
        for tenant in tenants {
            let query = ThreadQuery {
                tenant,
                page: EVERYTHING,
                ..ThreadQuery::default()
            };
            for row in self.inner.threads(&query).await? {
                if let Some(lifetime) = row.lifetime
                    && is_over(&row, lifetime, now)
                {
                    found.push(ExpiredThread {
                        ended: lifetime.ends(row.updated),
                        thread: row.thread,
                        at_end: lifetime.at_end,
                    });
                }
            }
        }
        found.retain(|found| after.is_none_or(|after| found > after));
        found.sort();
        found.truncate(limit as usize);
        Ok(found)
    }

    async fn bent_expired(
        &self,
        now: Timestamp,
        after: Option<&ExpiredThread>,
        limit: u32,
    ) -> CheckpointResult<Vec<ExpiredThread>> {
        let limit = match self.is(Defect::ExpiredWithoutLimit) {
            true => u32::MAX,
            false => limit,
        };
        // Threads with the end of the cursor are left out.
        let next_end = after.map(|after| ExpiredThread {
            ended: Timestamp(after.ended.0 + 1),
            // Before every other name.
            thread: ThreadId::new("-").expect("a thread name"),
            at_end: AtLifetimeEnd::Delete,
        });
        let after = match self.defect {
            Defect::ExpiredComparesEnds => next_end.as_ref(),
            Defect::ExpiredBeginsAgain => None,
            _ => after,
        };
        let mut found = self.inner.expired(now, after, limit).await?;
        match self.defect {
            Defect::ExpiredOfUnnamedTenantOnly => {
                found.retain(|found| found.thread.tenant().is_empty());
            }
            Defect::EndOfLifetimeForgotten => {
                for found in &mut found {
                    found.at_end = AtLifetimeEnd::Delete;
                }
            }
            _ => {}
        }
        Ok(found)
    }

    pub(super) async fn forget_bent(&self, thread: &ThreadId) -> CheckpointResult<()> {
        match self.defect {
            Defect::ForgetDoesNothing => return Ok(()),
            Defect::ForgetDeletes => self.inner.delete(thread).await?,
            _ => {}
        }
        self.inner.forget(thread).await
    }

    /// Remembers the lifetime of a thread that is exported, for a defect that lets archives have it.
    pub(super) async fn note_lifetime(&self, thread: &ThreadId) -> CheckpointResult<()> {
        let lifetime = self.row(thread).await?.and_then(|row| row.lifetime);
        *self.exported_lifetime.lock().expect("no clause panics") = lifetime;
        Ok(())
    }

    /// Gives an imported thread the lifetime of the one that was exported last.
    pub(super) async fn restore_lifetime(
        &self,
        thread: &ThreadId,
        at: Timestamp,
    ) -> CheckpointResult<()> {
        let lifetime = *self.exported_lifetime.lock().expect("no clause panics");
        if lifetime.is_some() && self.is(Defect::ArchiveHasTheLifetime) {
            let change = ThreadAnnotation {
                lifetime: Some(lifetime),
                at,
                ..ThreadAnnotation::default()
            };
            self.inner.annotate(thread, &change).await?;
        }
        Ok(())
    }

    pub(super) fn note_tenant(&self, thread: &ThreadId) {
        let mut tenants = self.tenants.lock().expect("no clause panics");
        tenants.insert(thread.tenant().to_owned());
    }

    async fn row(&self, thread: &ThreadId) -> CheckpointResult<Option<ThreadRow>> {
        let query = ThreadQuery {
            tenant: thread.tenant().to_owned(),
            ids: Some(vec![thread.clone()]),
            ..ThreadQuery::default()
        };
        Ok(self.inner.threads(&query).await?.pop())
    }
}

/// The scalars of a JSON object as conditions that compare type and value.
fn scalars(part: Option<&Json>) -> Vec<Filter> {
    let fields = part.and_then(Json::as_object).into_iter().flatten();
    let filter = |(field, value): (&String, &Json)| {
        FilterValue::of(value).map(|equals| Filter {
            field: field.clone(),
            equals,
        })
    };
    fields.filter_map(filter).collect()
}

const EVERYTHING: Page = Page {
    limit: u32::MAX,
    offset: 0,
};
