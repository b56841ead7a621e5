//! A database in a directory of its own.

use std::path::PathBuf;

use superstep_conformance::sql::{Costs, Database};
use superstep_core::checkpoint::{BoxFuture, Checkpointer};
use superstep_core::store::Store;
use superstep_sqlite::Sqlite;
use tempfile::TempDir;

/// A database that goes with its directory.
pub(crate) struct Db {
    pub(crate) sqlite: Sqlite,
    pub(crate) dir: TempDir,
}

impl std::ops::Deref for Db {
    type Target = Sqlite;

    fn deref(&self) -> &Sqlite {
        &self.sqlite
    }
}

impl Db {
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("test.db")
    }
}

pub(crate) fn db() -> Db {
    let dir = tempfile::tempdir().unwrap();
    Db {
        sqlite: Sqlite::open(dir.path().join("test.db")).unwrap(),
        dir,
    }
}

impl Database for Db {
    fn store(&self) -> &dyn Checkpointer {
        &self.sqlite
    }

    fn items(&self) -> &dyn Store {
        &self.sqlite
    }

    fn flip_byte_of_item<'a>(&'a self, key: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let connection = rusqlite::Connection::open(self.path()).unwrap();
            // Without the trigger, which takes a changed value for one of an older program.
            let trigger: String = connection
                .query_row(
                    "SELECT sql FROM sqlite_schema WHERE name = 'item_unsealed'",
                    [],
                    |row| row.get(0),
                )
                .unwrap();
            connection
                .execute_batch("DROP TRIGGER item_unsealed")
                .unwrap();
            let flip = "UPDATE item SET value = replace(value, 'api.', 'apj.') WHERE key = ?1";
            assert_eq!(connection.execute(flip, [key]).unwrap(), 1);
            connection.execute_batch(&trigger).unwrap();
        })
    }

    fn execute<'a>(&'a self, statement: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let connection = rusqlite::Connection::open(self.path()).unwrap();
            connection.execute(statement, []).unwrap();
        })
    }

    fn rows<'a>(&'a self, table: &'a str) -> BoxFuture<'a, u64> {
        Box::pin(async move {
            let connection = rusqlite::Connection::open(self.path()).unwrap();
            let sql = format!("SELECT count(*) FROM {table}");
            let rows: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
            rows.unsigned_abs()
        })
    }

    fn bytes(&self) -> BoxFuture<'_, u64> {
        Box::pin(async { self.sqlite.bytes().await.unwrap() })
    }

    fn listing_table(&self) -> &'static str {
        "line"
    }

    fn costs(&self) -> Costs {
        Costs {
            parked_thread: 2_048,
            entries_of_108_000_bytes: 108_000 * 115 / 100,
        }
    }
}
