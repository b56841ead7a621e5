//! What ours sent to PostgreSQL for one order: statements, with what was bound to their places.
//!
//! It was recorded on the wire while a worker of ours carried out such an order. Where a value is the name of the
//! thread or the id of the order, there is a mark instead, so that every call has a thread of its own.

use std::path::Path;

use bench_rounds::Failure;
use serde_json::Value as Json;

/// One order.
#[derive(Debug)]
pub(crate) struct Script {
    /// What was sent together, without waiting, is one batch.
    pub(crate) batches: Vec<Vec<Call>>,
}

/// A statement, once.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) sql: String,
    pub(crate) params: Vec<Param>,
}

/// What is bound to a place, in the form that PostgreSQL takes.
#[derive(Debug)]
pub(crate) enum Param {
    Null,
    Bytes(Vec<u8>),
    /// The name of the thread.
    Name,
    /// The id of the order.
    Order,
}

impl Script {
    pub(crate) fn read(folder: &Path, name: &str) -> Result<Self, Failure> {
        let file = folder.join(format!("{name}.json"));
        let json: Json = serde_json::from_slice(&std::fs::read(file)?)?;
        let batches = list(&json)?
            .iter()
            .map(|batch| list(batch)?.iter().map(Call::read).collect());
        Ok(Self {
            batches: batches.collect::<Result<_, Failure>>()?,
        })
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.batches.iter().flatten()
    }
}

impl Call {
    fn read(json: &Json) -> Result<Self, Failure> {
        Ok(Self {
            sql: json["sql"].as_str().ok_or("no statement")?.to_owned(),
            params: list(&json["params"])?
                .iter()
                .map(Param::read)
                .collect::<Result<_, _>>()?,
        })
    }
}

impl Param {
    fn read(json: &Json) -> Result<Self, Failure> {
        Ok(match json {
            Json::Null => Param::Null,
            Json::String(digits) => Param::Bytes(bytes(digits)?),
            mark => match mark["of"].as_str() {
                Some("name") => Param::Name,
                Some("order") => Param::Order,
                _ => return Err(format!("{json} is no mark").into()),
            },
        })
    }

    /// The bytes of it in a call for this thread and this order.
    pub(crate) fn of<'a>(&'a self, name: &'a str, order: &'a [u8; 16]) -> Option<&'a [u8]> {
        match self {
            Param::Null => None,
            Param::Bytes(bytes) => Some(bytes),
            Param::Name => Some(name.as_bytes()),
            Param::Order => Some(order),
        }
    }
}

fn list(json: &Json) -> Result<&Vec<Json>, Failure> {
    Ok(json.as_array().ok_or("a list is missing")?)
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

#[test]
fn marks_become_the_thread_and_the_order() {
    let json = serde_json::json!({
        "sql": "SELECT $1", "params": [{ "of": "name" }, { "of": "order" }, null, "0aff"],
    });
    let call = Call::read(&json).unwrap();
    let bound = call.params.iter().map(|param| param.of("a", &[7; 16]));
    let bound: Vec<Option<&[u8]>> = bound.collect();
    assert_eq!(
        bound,
        [Some(&b"a"[..]), Some(&[7; 16]), None, Some(&[10, 255])]
    );
}
