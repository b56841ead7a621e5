//! Where the rows of a thread lie: its number, and the partitions that hold them.
//!
//! A statement that names a partitioned table and finds its thread only as it runs makes the server lock and open every
//! partition of that table: with sixteen of them, a load cost five times its work. So the server is asked once where a
//! thread lies, the answer is remembered, and statements name the partitions themselves.
//!
//! None of it ever changes: a deleted thread keeps its row and its number. (Unless somebody puts an old backup under a
//! process that runs. Statements compare the number too; what is not found by it is asked for again.)
//!
//! # How many texts there are
//!
//! A text with the names of partitions is prepared once for each of them, on each connection. Every table but `thread` is
//! split by the same number in the same way, so one suffix fits them all; `thread` has its own, and only the two
//! statements that a run is made of name it too. Where partitions are so many that this is no longer few, the tables
//! are named as a whole, and the server finds the partition by the thread's number before it opens any.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex};

use superstep_core::__private::lock;
use superstep_core::ThreadId;
use tokio_postgres::Row;

use crate::fault::Fault;
use crate::pool::Pool;

/// Where one thread lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The thread's number.
    pub(crate) id: i64,
    partitions: Option<Partitions>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Partitions {
    of_thread: u32,
    of_rest: u32,
}

impl Place {
    /// The text with this place's tables where it says `@log` and the like.
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

    /// One whose tables are named as a whole: for what is rare, and for a thread that is just being made.
    pub(crate) fn unnamed(id: i64) -> Self {
        Self {
            id,
            partitions: None,
        }
    }
}

/// The places of the threads that this process has met, and the way to the others.
pub(crate) struct Places {
    pub(crate) pool: Arc<Pool>,
    known: Mutex<Known>,
    columns: String,
    are_named: bool,
}

impl Places {
    /// For tables that are split into so many.
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

    /// Where a thread lies; none if there never was one.
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

    /// What a statement that makes a thread gives, to [learn](Self::learn) its place from.
    pub(crate) fn columns(&self) -> &str {
        &self.columns
    }

    /// Remembers the place that stands in three columns.
    pub(crate) fn learn(&self, thread: &ThreadId, row: &Row, first: usize) -> Place {
        let place = Place {
            id: row.get(first),
            partitions: self.partitions(row, first),
        };
        lock(&self.known).put(thread.clone(), place);
        place
    }

    /// None if they are too many to be named, or are not what we made.
    fn partitions(&self, row: &Row, first: usize) -> Option<Partitions> {
        let of_thread: &str = row.get(first + 1);
        let of_rest: Option<i32> = row.get(first + 2);
        Some(Partitions {
            of_thread: of_thread.rsplit('_').next()?.parse().ok()?,
            of_rest: u32::try_from(of_rest?).ok()?,
        })
        .filter(|_| self.are_named)
    }

    /// For a place that turned out to be wrong.
    pub(crate) fn forget(&self, thread: &ThreadId) {
        lock(&self.known).forget(thread);
    }
}

/// A bounded cache in two halves. What nobody asks for until a half is full is forgotten.
#[derive(Default)]
struct Known {
    recent: HashMap<ThreadId, Place>,
    older: HashMap<ThreadId, Place>,
}

impl Known {
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
/// From here on a connection would have to prepare too many texts.
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
        let mut known = Known::default();
        let thread = |n: usize| ThreadId::new(&format!("t{n}")).unwrap();
        for n in 0..KNOWN_MAX * 2 {
            known.put(thread(n), place(None));
            assert!(known.get(&thread(0)).is_some());
        }
        assert!(known.get(&thread(1)).is_none());
        assert!(known.recent.len() + known.older.len() <= KNOWN_MAX);
    }
}
