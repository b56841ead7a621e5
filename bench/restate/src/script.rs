//! What ours sent to PostgreSQL for one order: statements, with what was bound to their places.
//!
//! It was recorded on the wire while a worker of ours carried out such an order. Where a value is the name or the number of
//! the thread or the id of the order, and where a text names a partition, there is a mark instead, so that every call has a
//! thread of its own.

use std::borrow::Cow;
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
    /// The number of the thread, which the statement that makes it tells.
    Number,
}

/// Where a thread lies.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Its number, in the form that PostgreSQL takes.
    pub(crate) number: [u8; 8],
    /// The partition of its row.
    pub(crate) of_thread: String,
    /// The partitions of everything else.
    pub(crate) of_rest: String,
}

/// Whose statements they are now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whose<'a> {
    pub(crate) name: &'a str,
    pub(crate) order: &'a [u8; 16],
    /// None until the thread is made.
    pub(crate) place: Option<&'a Place>,
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
}

impl Call {
    /// The text, with the partitions of a thread.
    pub(crate) fn text(&self, whose: &Whose<'_>) -> Result<Cow<'_, str>, Failure> {
        if !self.sql.contains('@') {
            return Ok(Cow::Borrowed(&self.sql));
        }
        let place = whose.place.ok_or(UNKNOWN)?;
        let text = self.sql.replace("@thread", &place.of_thread);
        Ok(Cow::Owned(text.replace("@rest", &place.of_rest)))
    }

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
                Some("number") => Param::Number,
                _ => return Err(format!("{json} is no mark").into()),
            },
        })
    }

    /// The bytes of it in a call for this thread and this order.
    pub(crate) fn of<'a>(&'a self, whose: &Whose<'a>) -> Result<Option<&'a [u8]>, Failure> {
        Ok(match self {
            Param::Null => None,
            Param::Bytes(bytes) => Some(bytes),
            Param::Name => Some(whose.name.as_bytes()),
            Param::Order => Some(whose.order),
            Param::Number => Some(&whose.place.ok_or(UNKNOWN)?.number),
        })
    }
}

const UNKNOWN: &str = "nobody has told where the thread lies";

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
        "sql": "SELECT $1 FROM log_@rest, thread_@thread",
        "params": [{ "of": "name" }, { "of": "order" }, { "of": "number" }, null, "0aff"],
    });
    let call = Call::read(&json).unwrap();
    let place = Place {
        number: 5_i64.to_be_bytes(),
        of_thread: "3".to_owned(),
        of_rest: "12".to_owned(),
    };
    let mut whose = Whose {
        name: "a",
        order: &[7; 16],
        place: Some(&place),
    };
    let bound = call.params.iter().map(|param| param.of(&whose).unwrap());
    let bound: Vec<Option<&[u8]>> = bound.collect();
    let number = [0, 0, 0, 0, 0, 0, 0, 5];
    assert_eq!(
        bound,
        [
            Some(&b"a"[..]),
            Some(&[7; 16]),
            Some(&number),
            None,
            Some(&[10, 255])
        ]
    );
    assert_eq!(
        call.text(&whose).unwrap(),
        "SELECT $1 FROM log_12, thread_3"
    );
    whose.place = None;
    assert!(call.text(&whose).is_err());
}
