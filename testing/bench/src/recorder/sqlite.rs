//! Recording in SQLite. A commit begins where the row of the thread changes, for that is what ours writes first, or,
//! inside a run, where there is an entry more: each commit of a chain has one.

use std::path::Path;

use rusqlite::Connection;
use serde_json::Value as Json;
use superstep::Runtime;
use superstep_sqlite::Sqlite;

use super::{Commit, Keys, change};
use crate::ours::chain;

pub(super) fn record(
    tokio: &tokio::runtime::Runtime,
    folder: &Path,
) -> anyhow::Result<Vec<Commit>> {
    // The floor's; ours only makes its tables.
    drop(Sqlite::open(folder.join("threads.db"))?);

    let path = folder.join("recorded.db");
    let graph = chain::graph()?;
    let run = || {
        let runtime = Runtime::new(Sqlite::open(&path)?);
        tokio.block_on(chain::one(&runtime, &graph))
    };
    // The first thread of a database may write what later ones find there.
    run()?;
    let connection = Connection::open(&path)?;
    let keys = keys(&connection)?;
    for table in keys.keys() {
        connection.execute_batch(&triggers(&connection, table)?)?;
    }
    run()?;
    read(&connection, &keys)
}

fn keys(connection: &Connection) -> anyhow::Result<Keys> {
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let mut keys = Keys::new();
    for table in strings(connection, tables)? {
        let key = format!("SELECT name FROM pragma_table_info('{table}') WHERE pk > 0");
        keys.insert(table, strings(connection, &key)?);
    }
    connection.execute_batch("CREATE TABLE recorded (tbl TEXT, old TEXT, new TEXT)")?;
    Ok(keys)
}

/// One trigger for each kind of change. Bytes are written as PostgreSQL writes them, for JSON has none.
fn triggers(connection: &Connection, table: &str) -> anyhow::Result<String> {
    let columns = strings(
        connection,
        &format!("SELECT name FROM pragma_table_info('{table}')"),
    )?;
    let row = |which: &str| {
        let column = |column: &String| {
            let value = format!("{which}.{column}");
            format!("'{column}', iif(typeof({value}) = 'blob', '\\x' || hex({value}), {value})")
        };
        let columns: Vec<String> = columns.iter().map(column).collect();
        format!("json_object({})", columns.join(", "))
    };
    let (old, new) = (row("OLD"), row("NEW"));
    let trigger = |kind: &str, old: &str, new: &str| {
        format!(
            "CREATE TRIGGER recorded_{table}_{kind} AFTER {kind} ON {table} BEGIN
                 INSERT INTO recorded VALUES ('{table}', {old}, {new}); END;"
        )
    };
    Ok([
        trigger("INSERT", "NULL", &new),
        trigger("UPDATE", &old, &new),
        trigger("DELETE", &old, "NULL"),
    ]
    .concat())
}

fn read(connection: &Connection, keys: &Keys) -> anyhow::Result<Vec<Commit>> {
    let mut select = connection.prepare("SELECT tbl, old, new FROM recorded ORDER BY rowid")?;
    let mut rows = select.query([])?;
    let mut commits: Vec<Commit> = Vec::new();
    while let Some(row) = rows.next()? {
        let table: String = row.get(0)?;
        let json = |at: usize| -> anyhow::Result<Json> {
            let text: Option<String> = row.get(at)?;
            Ok(text.map_or(Ok(Json::Null), |text| serde_json::from_str(&text))?)
        };
        let has_entry = |commit: &Commit| commit.iter().any(|change| change["table"] == "log");
        let is_next = table == "thread" || table == "log" && commits.last().is_some_and(has_entry);
        if is_next || commits.is_empty() {
            commits.push(Commit::new());
        }
        let change = change(&table, &json(1)?, &json(2)?, keys);
        commits.last_mut().expect("there is one").push(change);
    }
    Ok(commits)
}

fn strings(connection: &Connection, query: &str) -> anyhow::Result<Vec<String>> {
    let mut select = connection.prepare(query)?;
    let rows = select.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
