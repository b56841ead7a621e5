//! Places of threads: a thread's number, and the partitions that contain its rows.
//!
//! If a statement names a partitioned table and learns the thread's number only as it runs, the server locks and opens every
//! partition of that table: with sixteen of them, a load cost five times its work. So the process asks the server once where
//! a thread is, caches the answer, and names the partitions in its statements.
//!
//! A place never changes: a deleted thread keeps its row and its number. (Unless an old backup is restored under a running
//! process, or the name of a forgotten thread is used again. Statements compare the number too, and look the place up again if
//! they find nothing.)
//!
//! # How many statements there are
//!
//! A statement that names partitions is prepared once per partition, on each connection. Every table except `thread` is
//! partitioned by the same number in the same way, so one suffix fits them all; `thread` has its own, and only the two
//! statements that a run consists of name it too. With too many partitions the statements name the whole tables, and the
//! server finds the partition by the thread's number before it opens any.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex};

use superstep_core::__private::lock;
use superstep_core::ThreadId;
use tokio_postgres::Row;

use crate::fault::Fault;
use crate::pool::{KeyedStatement, Params, Pool, StatementKey, TextKey};

/// Place of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the thread.
    pub(crate) id: i64,
    /// Partitions that statements name; `None` if they name whole tables.
    pub(crate) partitions: Option<Partitions>,
}

/// The partitions that contain a thread's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Partitions {
    of_thread: u32,
    of_rest: u32,
}

impl Place {
    /// Replaces `@log` and the like in a statement by this place's tables.
    pub(crate) fn address(&self, text: &str) -> String {
        let mut pieces = text.split('@');
        let mut sql = String::with_capacity(text.len() + 64);
        sql.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            let end = piece.find(|c: char| !c.is_ascii_lowercase());
            let (table, rest) = piece.split_at(end.unwrap_or(piece.len()));
            sql.push_str(table);
            if let Some(partitions) = self.partitions {
                let number = match table {
                    "thread" => partitions.of_thread,
                    _ => partitions.of_rest,
                };
                sql.push('_');
                sql.push_str(&number.to_string());
            }
            sql.push_str(rest);
        }
        sql
    }

    /// Returns a statement of the program, with this place's tables in it.
    pub(crate) fn statement<'a>(
        self,
        text: &'static str,
        params: Params<'a>,
    ) -> KeyedStatement<'a, impl Fn() -> String> {
        KeyedStatement {
            key: StatementKey {
                text: TextKey::of(text),
                partitions: self.partitions,
            },
            sql: move || self.address(text),
            params,
        }
    }

    /// Creates a place that names whole tables: for rare statements, and for a thread that is being created.
    pub(crate) fn unnamed(id: i64) -> Self {
        Self {
            id,
            partitions: None,
        }
    }
}

/// Cache of the places of threads that this process has used, and the lookup of others.
pub(crate) struct Places {
    pub(crate) pool: Arc<Pool>,
    known: Mutex<PlaceCache>,
    columns: String,
    are_named: bool,
}

impl Places {
    /// Creates a cache for tables with this many partitions.
    pub(crate) fn new(pool: Arc<Pool>, partitions: u32) -> Self {
        Self {
            pool,
            known: Mutex::default(),
            columns: format!(
                "id, tableoid::regclass::text, (SELECT n FROM generate_series(0, {partitions} - 1) AS n
                     WHERE satisfies_hash_partition('log'::regclass, {partitions}, n, id))"
            ),
            are_named: partitions <= NAMED_MAX,
        }
    }

    /// Returns the place of a thread; `None` if the thread never existed.
    pub(crate) async fn find(&self, thread: &ThreadId) -> Result<Option<Place>, Fault> {
        if let Some(place) = lock(&self.known).get(thread) {
            return Ok(Some(place));
        }
        let columns = &self.columns;
        let sql = format!("SELECT {columns} FROM thread WHERE tenant = $1 AND name = $2");
        let rows = self
            .pool
            .read(&sql, &[&thread.tenant(), &thread.name()])
            .await?;
        Ok(rows.first().map(|row| self.learn(thread, row, 0)))
    }

    /// Returns the columns that a statement must select for [`learn`](Self::learn).
    pub(crate) fn columns(&self) -> &str {
        &self.columns
    }

    /// Remembers the place in three columns, starting at `first`.
    pub(crate) fn learn(&self, thread: &ThreadId, row: &Row, first: usize) -> Place {
        let place = Place {
            id: row.get(first),
            partitions: self.partitions(row, first),
        };
        lock(&self.known).put(thread.clone(), place);
        place
    }

    /// Returns `None` if there are too many partitions to name, or they do not have our names.
    fn partitions(&self, row: &Row, first: usize) -> Option<Partitions> {
        let of_thread: &str = row.get(first + 1);
        let of_rest: Option<i32> = row.get(first + 2);
        Some(Partitions {
            of_thread: of_thread.rsplit('_').next()?.parse().ok()?,
            of_rest: u32::try_from(of_rest?).ok()?,
        })
        .filter(|_| self.are_named)
    }

    /// Removes a place that turned out to be wrong.
    pub(crate) fn forget(&self, thread: &ThreadId) {
        lock(&self.known).forget(thread);
    }
}

/// A bounded cache in two generations. An entry that is not used while a generation fills up is dropped.
#[derive(Default)]
struct PlaceCache {
    recent: HashMap<ThreadId, Place>,
    older: HashMap<ThreadId, Place>,
}

impl PlaceCache {
    fn get(&mut self, thread: &ThreadId) -> Option<Place> {
        if let Some(place) = self.recent.get(thread) {
            return Some(*place);
        }
        let place = self.older.remove(thread)?;
        self.put(thread.clone(), place);
        Some(place)
    }

    fn put(&mut self, thread: ThreadId, place: Place) {
        if self.recent.len() >= KNOWN_MAX / 2 {
            self.older = mem::take(&mut self.recent);
        }
        self.recent.insert(thread, place);
    }

    fn forget(&mut self, thread: &ThreadId) {
        self.recent.remove(thread);
        self.older.remove(thread);
    }
}

/// Some 20 MB with names of usual length.
const KNOWN_MAX: usize = 100_000;
/// Beyond this a connection would have to prepare too many statements.
const NAMED_MAX: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn place(partitions: Option<Partitions>) -> Place {
        Place { id: 7, partitions }
    }

    #[test]
    fn a_text_names_the_partitions_of_its_place() {
        let text = "DELETE FROM @log USING thread, @thread WHERE @log.thread = $1";
        let named = place(Some(Partitions {
            of_thread: 3,
            of_rest: 12,
        }));
        assert_eq!(
            named.address(text),
            "DELETE FROM log_12 USING thread, thread_3 WHERE log_12.thread = $1"
        );
        assert_eq!(place(None).address(text), text.replace('@', ""));
    }

    #[test]
    fn what_is_asked_for_is_kept_and_there_is_a_bound() {
        let mut known = PlaceCache::default();
        let thread = |n: usize| ThreadId::new(&format!("t{n}")).unwrap();
        for n in 0..KNOWN_MAX * 2 {
            known.put(thread(n), place(None));
            assert!(known.get(&thread(0)).is_some());
        }
        assert!(known.get(&thread(1)).is_none());
        assert!(known.recent.len() + known.older.len() <= KNOWN_MAX);
    }
}
