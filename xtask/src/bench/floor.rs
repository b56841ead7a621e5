//! The bare floor: prepared statements on a SQLite connection with our pragmas. It uses none of our crates, so
//! that no change of ours can move it.

use std::path::Path;

use rusqlite::Connection;

#[derive(Debug)]
pub(super) struct Floor {
    connection: Connection,
    row: Vec<u8>,
}

impl Floor {
    pub(super) fn open(path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "wal_autocheckpoint", 2_000)?;
        connection.pragma_update(None, "cache_size", -16 * 1024)?;
        connection.execute_batch(
            "CREATE TABLE row (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT",
        )?;
        Ok(Self {
            connection,
            row: (0..1024_u32).map(|at| at.to_le_bytes()[0]).collect(),
        })
    }

    /// So many commits, each of one row of 1 KiB.
    pub(super) fn commits(&self, count: usize) -> rusqlite::Result<()> {
        for _ in 0..count {
            self.insert()?;
        }
        Ok(())
    }

    /// So many rows of 1 KiB, as many to a commit as our writer takes at most.
    pub(super) fn rows(&self, count: usize) -> rusqlite::Result<()> {
        for first in (0..count).step_by(GROUP) {
            let run = |sql| self.connection.prepare_cached(sql)?.execute([]).map(drop);
            run("BEGIN IMMEDIATE")?;
            for _ in first..count.min(first + GROUP) {
                self.insert()?;
            }
            run("COMMIT")?;
        }
        Ok(())
    }

    fn insert(&self) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("INSERT INTO row (body) VALUES (?1)")?
            .execute([&self.row])
            .map(drop)
    }
}

const GROUP: usize = 256;
