//! What one run of ours writes: commits, each a list of rows that are inserted, changed or deleted.
//!
//! It is recorded by triggers while ours runs a chain once. Where a row names its thread, the script has a mark in
//! place of the value, so that every run writes the rows of a thread of its own.

use std::borrow::Cow;
use std::path::Path;

use bench_rounds::Failure;
use serde_json::Value as Json;

/// One run.
#[derive(Debug)]
pub(crate) struct Script {
    /// How many supersteps it is.
    pub(crate) supersteps: usize,
    pub(crate) commits: Vec<Vec<Change>>,
}

/// One row of one commit.
#[derive(Debug)]
pub(crate) struct Change {
    table: String,
    kind: Kind,
    /// The columns that are written, and what into them.
    values: Vec<(String, Value)>,
    /// The columns that the row is found by.
    key: Vec<(String, Value)>,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Insert,
    Update,
    Delete,
}

/// What is bound to a place of a statement.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
    Ints(Vec<i64>),
    /// The thread's number.
    Thread,
    /// The thread's name.
    Name,
    /// The thread's number above, this below.
    Place(i64),
}

impl Script {
    pub(crate) fn read(folder: &Path) -> Result<Self, Failure> {
        let json: Json = serde_json::from_slice(&std::fs::read(folder.join("script.json"))?)?;
        let supersteps = json["supersteps"].as_u64().ok_or("no supersteps")?;
        let commits = list(&json["commits"])?
            .iter()
            .map(|commit| list(commit)?.iter().map(Change::read).collect());
        Ok(Self {
            supersteps: usize::try_from(supersteps)?,
            commits: commits.collect::<Result<_, Failure>>()?,
        })
    }
}

impl Change {
    fn read(json: &Json) -> Result<Self, Failure> {
        let text = |name: &str| {
            let found = json[name].as_str().map(str::to_owned);
            found.ok_or_else(|| format!("a change has no `{name}`"))
        };
        Ok(Self {
            table: text("table")?,
            kind: match text("kind")?.as_str() {
                "insert" => Kind::Insert,
                "update" => Kind::Update,
                _ => Kind::Delete,
            },
            values: columns(&json["values"])?,
            key: columns(&json["key"])?,
        })
    }

    /// The statement; `place` gives the text of a place for a value.
    pub(crate) fn sql(&self, mut place: impl FnMut(&Value) -> String) -> String {
        let table = &self.table;
        let mut equations = |columns: &[(String, Value)], between: &str| {
            let equation =
                |(column, value): &(String, Value)| format!("{column} = {}", place(value));
            columns
                .iter()
                .map(equation)
                .collect::<Vec<_>>()
                .join(between)
        };
        match self.kind {
            Kind::Update => {
                let values = equations(&self.values, ", ");
                let key = equations(&self.key, " AND ");
                format!("UPDATE {table} SET {values} WHERE {key}")
            }
            Kind::Delete => format!(
                "DELETE FROM {table} WHERE {}",
                equations(&self.key, " AND ")
            ),
            Kind::Insert => {
                let columns: Vec<&str> = self
                    .values
                    .iter()
                    .map(|(column, _)| column.as_str())
                    .collect();
                let places: Vec<String> =
                    self.values.iter().map(|(_, value)| place(value)).collect();
                let (columns, places) = (columns.join(", "), places.join(", "));
                format!("INSERT INTO {table} ({columns}) VALUES ({places})")
            }
        }
    }

    /// The values, in the order of their places.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Value> {
        self.values.iter().chain(&self.key).map(|(_, value)| value)
    }
}

impl Value {
    fn read(json: &Json) -> Result<Self, Failure> {
        Ok(match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => Value::Int(number.as_i64().ok_or("a number is not whole")?),
            Json::String(text) => match text.strip_prefix("\\x") {
                Some(digits) => Value::Bytes(bytes(digits)?),
                None => Value::Text(text.clone()),
            },
            Json::Array(items) => {
                let ints = items.iter().map(Json::as_i64).collect::<Option<_>>();
                Value::Ints(ints.ok_or("a list is not one of numbers")?)
            }
            Json::Object(mark) => match mark.get("of").and_then(Json::as_str) {
                Some("thread") => Value::Thread,
                Some("name") => Value::Name,
                Some("place") => Value::Place(json["seq"].as_i64().ok_or("a place has no seq")?),
                _ => return Err(format!("{json} is no mark").into()),
            },
        })
    }

    /// The value in the rows of one run.
    pub(crate) fn of_run(&self, run: i64) -> Cow<'_, Value> {
        match self {
            Value::Thread => Cow::Owned(Value::Int(run)),
            Value::Name => Cow::Owned(Value::Text(format!("{run:036x}"))),
            Value::Place(seq) => Cow::Owned(Value::Int((run << 32) | seq)),
            other => Cow::Borrowed(other),
        }
    }
}

fn list(json: &Json) -> Result<&Vec<Json>, Failure> {
    Ok(json.as_array().ok_or("a list is missing")?)
}

fn columns(json: &Json) -> Result<Vec<(String, Value)>, Failure> {
    let columns = json.as_object().into_iter().flatten();
    columns
        .map(|(column, value)| Ok((column.clone(), Value::read(value)?)))
        .collect()
}

fn bytes(digits: &str) -> Result<Vec<u8>, Failure> {
    let pairs = (0..digits.len()).step_by(2);
    pairs
        .map(|at| {
            let pair = digits.get(at..at + 2).ok_or("half a byte")?;
            Ok(u8::from_str_radix(pair, 16)?)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_becomes_a_statement_with_its_values_in_order() {
        let change = Change::read(&json!({
            "table": "log", "kind": "update",
            "values": { "body": "\\x0aff" }, "key": { "place": { "of": "place", "seq": 3 } },
        }))
        .unwrap();
        assert_eq!(
            change.sql(|_| "?".to_owned()),
            "UPDATE log SET body = ? WHERE place = ?"
        );
        let values: Vec<_> = change
            .values()
            .map(|value| value.of_run(2).into_owned())
            .collect();
        assert!(matches!(
            values.as_slice(),
            [Value::Bytes(_), Value::Int(0x2_0000_0003)]
        ));
    }
}
