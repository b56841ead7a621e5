//! Reports of how much threads take: what is counted, by what it is grouped, and how a store without sums of its own groups it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::checkpoint::Page;
use crate::ids::ThreadId;

/// Selects what a report of sizes sums up. Default: a row for each tenant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SizeQuery {
    /// Tenant of the threads; `None` for every tenant, which is for operators alone.
    pub tenant: Option<String>,
    /// Only this thread.
    pub thread: Option<ThreadId>,
    /// What a row of the report sums up.
    pub by: SizeGroup,
    /// Which page of the report to return.
    pub page: Page,
}

/// What a row of a report of sizes sums up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SizeGroup {
    /// All threads of a tenant.
    #[default]
    Tenant,
    /// All threads of a tenant that have the same graph.
    Graph,
    /// One thread.
    Thread,
}

/// A row of a report of sizes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SizeRow {
    /// Tenant of the threads; empty for the unnamed one.
    pub tenant: String,
    /// Graph of the threads, empty for those that have none yet; `None` if the row is for all graphs of the tenant.
    pub graph: Option<String>,
    /// The thread; `None` if the row is for several.
    pub thread: Option<ThreadId>,
    /// Number of threads.
    pub threads: u64,
    /// Entries of the logs.
    pub entries: StoredSize,
    /// Snapshots.
    pub snapshots: StoredSize,
    /// Records of tasks in progress.
    pub records: StoredSize,
    /// Interrupts, answered and closed ones included, without their answers.
    pub interrupts: StoredSize,
}

/// How many bodies of a kind are stored, and how many bytes they have: as they are stored, without what a database adds for rows and
/// indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoredSize {
    /// Number of bodies.
    pub count: u64,
    /// Sum of their lengths.
    pub bytes: u64,
}

impl StoredSize {
    /// Returns the size of bodies of these lengths.
    pub fn of(lengths: impl IntoIterator<Item = usize>) -> Self {
        let mut size = Self::default();
        for bytes in lengths {
            size += Self {
                count: 1,
                bytes: bytes as u64,
            };
        }
        size
    }
}

impl std::ops::AddAssign for StoredSize {
    fn add_assign(&mut self, more: Self) {
        self.count += more.count;
        self.bytes += more.bytes;
    }
}

impl SizeRow {
    /// Returns the bytes of all kinds.
    pub fn bytes(&self) -> u64 {
        let kinds = [self.entries, self.snapshots, self.records, self.interrupts];
        kinds.iter().map(|kind| kind.bytes).sum()
    }

    fn add(&mut self, more: &Self) {
        self.threads += more.threads;
        self.entries += more.entries;
        self.snapshots += more.snapshots;
        self.records += more.records;
        self.interrupts += more.interrupts;
    }
}

impl SizeQuery {
    /// Whether a thread is in the report.
    pub fn matches(&self, thread: &ThreadId) -> bool {
        self.tenant
            .as_ref()
            .is_none_or(|tenant| tenant == thread.tenant())
            && self.thread.as_ref().is_none_or(|only| only == thread)
    }

    /// Returns the page of the report, given a row for each thread that [matches](Self::matches): largest first, and rows of equal
    /// size by tenant, graph and thread.
    pub fn report(&self, threads: impl IntoIterator<Item = SizeRow>) -> Vec<SizeRow> {
        let mut groups: BTreeMap<_, SizeRow> = BTreeMap::new();
        for row in threads {
            let graph = row.graph.clone().filter(|_| self.by != SizeGroup::Tenant);
            let thread = row.thread.clone().filter(|_| self.by == SizeGroup::Thread);
            let key = (row.tenant.clone(), graph, thread);
            let group = groups.entry(key).or_insert_with_key(|key| SizeRow {
                tenant: key.0.clone(),
                graph: key.1.clone(),
                thread: key.2.clone(),
                ..SizeRow::default()
            });
            group.add(&row);
        }
        // Stable, so that equal rows keep the order of the map.
        let mut rows: Vec<SizeRow> = groups.into_values().collect();
        rows.sort_by_key(|row| Reverse(row.bytes()));
        let skipped = rows.into_iter().skip(self.page.offset as usize);
        skipped.take(self.page.limit as usize).collect()
    }
}
