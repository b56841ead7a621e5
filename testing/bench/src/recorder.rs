//! What ours writes, row by row, for the floor to write again.
//!
//! Triggers on our own tables record every row that is inserted, changed or deleted while ours runs a chain once.
//! The script says which rows each commit touches: of a changed row the columns that differ, and the key it is found
//! by. It knows no statement of ours, so the floor writes the same rows in the fewest words, and a statement of ours
//! that gets worse shows.

mod postgres;
mod sqlite;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::ensure;
use serde_json::{Map, Value as Json, json};

use super::ours::chain;

/// Writes the script of a chain into the folder, and makes our tables, empty, where the floor looks for them: in the
/// database of that address, or else in a file in the folder.
pub(super) fn prepare(folder: &Path, url: Option<&str>) -> anyhow::Result<()> {
    let tokio = tokio::runtime::Runtime::new()?;
    let commits = match url {
        Some(url) => postgres::record(&tokio, url)?,
        None => sqlite::record(&tokio, folder)?,
    };
    for commit in &commits {
        let entries = commit.iter().filter(|change| change["table"] == "log");
        ensure!(
            entries.count() <= 1,
            "two commits were taken for one: {commit:?}"
        );
    }
    let script = json!({ "supersteps": chain::NODES, "commits": commits });
    Ok(std::fs::write(
        folder.join("script.json"),
        script.to_string(),
    )?)
}

/// The changes of one commit, as the script has them.
type Commit = Vec<Json>;

/// For each table the columns of its primary key.
type Keys = BTreeMap<String, Vec<String>>;

/// A row as it was and as it is; one of them is null where it was made or deleted.
fn change(table: &str, old: &Json, new: &Json, keys: &Keys) -> Json {
    let (old, new) = (columns(old), columns(new));
    let key = || {
        let of_key = |column: &String| keys.get(table).is_some_and(|key| key.contains(column));
        marked(table, old.iter().filter(|(column, _)| of_key(column)))
    };
    match (old.is_empty(), new.is_empty()) {
        (true, _) => {
            json!({ "table": table, "kind": "insert", "values": marked(table, new.iter()) })
        }
        (_, true) => json!({ "table": table, "kind": "delete", "key": key() }),
        (false, false) => {
            let differs = |(column, value): &(&String, &Json)| old.get(*column) != Some(*value);
            let values = marked(table, new.iter().filter(differs));
            json!({ "table": table, "kind": "update", "values": values, "key": key() })
        }
    }
}

fn columns(row: &Json) -> Map<String, Json> {
    row.as_object().cloned().unwrap_or_default()
}

/// The columns of a row, with marks in place of what differs from thread to thread.
fn marked<'a>(table: &str, columns: impl Iterator<Item = (&'a String, &'a Json)>) -> Json {
    let mark = |(column, value): (&'a String, &'a Json)| {
        let value = match (table, column.as_str()) {
            ("thread", "id") | (_, "thread") => json!({ "of": "thread" }),
            ("thread" | "listing", "name") => json!({ "of": "name" }),
            (_, "place") => {
                let place = value.as_i64().unwrap_or(0);
                json!({ "of": "place", "seq": place & 0xffff_ffff })
            }
            _ => value.clone(),
        };
        (column.clone(), value)
    };
    Json::Object(columns.map(mark).collect())
}

#[test]
fn a_chain_is_recorded_commit_by_commit() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path(), None).unwrap();
    let script = std::fs::read(folder.path().join("script.json")).unwrap();
    let script: Json = serde_json::from_slice(&script).unwrap();
    let commits = script["commits"].as_array().unwrap();
    assert!(commits.len() > chain::NODES, "{} commits", commits.len());
    let is_entry = |change: &&Json| change["table"] == "log" && change["kind"] == "insert";
    let entries = commits.iter().filter_map(Json::as_array).flatten();
    assert_eq!(entries.filter(is_entry).count(), commits.len());
}

#[test]
fn a_changed_row_is_told_by_its_key_and_what_differs() {
    let keys = Keys::from([("thread".to_owned(), vec!["id".to_owned()])]);
    let old = json!({ "id": 7, "seq": 1, "epoch": 1 });
    let new = json!({ "id": 7, "seq": 2, "epoch": 1 });
    assert_eq!(
        change("thread", &old, &new, &keys),
        json!({ "table": "thread", "kind": "update", "values": { "seq": 2 }, "key": { "id": { "of": "thread" } } })
    );
    let entry = json!({ "place": (7_i64 << 32) | 2, "body": "\\x00" });
    assert_eq!(
        change("log", &Json::Null, &entry, &keys)["values"]["place"],
        json!({ "of": "place", "seq": 2 })
    );
}
