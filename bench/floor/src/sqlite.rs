//! The floors of SQLite: one connection, with the settings that ours uses.

use std::path::Path;
use std::time::Duration;

use bench_rounds::{Failure, Round, Stopwatch, Task};
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, params_from_iter};

use crate::one_row;
use crate::script::{Script, Value};

pub(crate) struct Floor {
    connection: Connection,
    time: Duration,
    rows: Rows,
}

enum Rows {
    One(Vec<u8>),
    Same(Recorded),
}

struct Recorded {
    script: Script,
    /// A statement for each change of the script.
    statements: Vec<Vec<String>>,
    runs: i64,
}

impl Floor {
    pub(crate) fn open(task: &Task, folder: &Path) -> Result<Self, Failure> {
        let connection = Connection::open(folder.join("threads.db"))?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "wal_autocheckpoint", 2_000)?;
        connection.pragma_update(None, "cache_size", -16 * 1024)?;
        connection.set_prepared_statement_cache_capacity(128);
        let rows = match task.text("rows")? {
            "one" => {
                let table = "CREATE TABLE row (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT";
                connection.execute_batch(table)?;
                Rows::One(one_row())
            }
            _ => Rows::Same(Recorded::new(Script::read(folder)?)),
        };
        Ok(Self {
            connection,
            time: task.time()?,
            rows,
        })
    }

    pub(crate) fn round(&mut self) -> Result<Round, Failure> {
        self.rows.run(&self.connection)?;
        let (watch, mut steps) = (Stopwatch::start(), 0);
        while steps == 0 || watch.elapsed() < self.time {
            steps += self.rows.run(&self.connection)?;
        }
        Ok(watch.stop(steps))
    }
}

impl Rows {
    /// Writes what stands for one run. Gives how many supersteps that are.
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<usize> {
        match self {
            Rows::One(row) => {
                connection
                    .prepare_cached("INSERT INTO row (body) VALUES (?1)")?
                    .execute([&*row])?;
                Ok(1)
            }
            Rows::Same(recorded) => recorded.run(connection),
        }
    }
}

impl Recorded {
    fn new(script: Script) -> Self {
        let statements = script.commits.iter().map(|commit| {
            let statement = |change: &crate::script::Change| change.sql(|_| "?".to_owned());
            commit.iter().map(statement).collect()
        });
        Self {
            statements: statements.collect(),
            script,
            runs: 0,
        }
    }

    fn run(&mut self, connection: &Connection) -> rusqlite::Result<usize> {
        self.runs += 1;
        for (commit, statements) in self.script.commits.iter().zip(&self.statements) {
            connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            for (change, sql) in commit.iter().zip(statements) {
                let values = change.values().map(|value| value.of_run(self.runs));
                connection
                    .prepare_cached(sql)?
                    .execute(params_from_iter(values.map(Bound)))?;
            }
            connection.prepare_cached("COMMIT")?.execute([])?;
        }
        Ok(self.script.supersteps)
    }
}

/// A value as SQLite takes it.
struct Bound<'a>(std::borrow::Cow<'a, Value>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self.0.as_ref() {
            Value::Bool(value) => ValueRef::Integer(i64::from(*value)),
            Value::Int(value) => ValueRef::Integer(*value),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
            // SQLite has no lists, and marks were replaced.
            Value::Null | Value::Ints(_) | Value::Thread | Value::Name | Value::Place(_) => {
                ValueRef::Null
            }
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}
