//! What a worker sends to PostgreSQL, read off the wire on its way: a proxy that passes everything on.
//!
//! Statements are told by their text and what was bound to their places, as bytes. Nothing is asked of the server, and
//! nothing of ours is built for it, so what is recorded is what was sent.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use anyhow::Context;
use serde_json::{Value as Json, json};
use superstep::__private::lock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A proxy before a database. Dropping it ends it.
pub(super) struct Wire {
    url: String,
    seen: Arc<Mutex<Seen>>,
    _serving: JoinSet<()>,
}

#[derive(Default)]
struct Seen {
    /// What was sent without waiting in between is one batch. None while nobody wants to know.
    batches: Option<Vec<Vec<Call>>>,
    /// How many answers are waited for, over all connections.
    waiting: usize,
}

struct Call {
    sql: String,
    params: Vec<Option<Vec<u8>>>,
}

/// Where the thread lies whose order is recorded: statements name its partitions and bind its number.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) number: i64,
    /// The partition of its row.
    pub(super) of_thread: u32,
    /// The partitions of everything else.
    pub(super) of_rest: u32,
}

impl Place {
    /// The text with marks for the partitions: `thread_@thread`, `log_@rest`.
    fn marked(&self, sql: &str) -> String {
        let (thread, rest) = (
            format!("thread_{}", self.of_thread),
            format!("_{}", self.of_rest),
        );
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut marked = String::with_capacity(sql.len());
        let mut left = sql;
        while let Some(start) = left.find(is_word) {
            let (between, from) = left.split_at(start);
            let (word, behind) = from.split_at(from.find(|c| !is_word(c)).unwrap_or(from.len()));
            marked.push_str(between);
            match word.strip_suffix(&rest) {
                _ if word == thread => marked.push_str("thread_@thread"),
                Some(table) if TABLES.contains(&table) => {
                    marked.push_str(table);
                    marked.push_str("_@rest");
                }
                _ => marked.push_str(word),
            }
            left = behind;
        }
        marked.push_str(left);
        marked
    }
}

/// What is split by the number of a thread.
const TABLES: [&str; 6] = ["log", "snapshot", "record", "interrupt", "listing", "term"];

impl Wire {
    /// Stands before the database of this address.
    pub(super) async fn before(url: &str) -> anyhow::Result<Self> {
        let (start, rest) = url.split_once('@').context("an address names its user")?;
        let (server, database) = rest
            .split_once('/')
            .context("an address names a database")?;
        let server: SocketAddr = server.parse().context("PostgreSQL is not on loopback")?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("{start}@{}/{database}", listener.local_addr()?);
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let mut serving = JoinSet::new();
        let sees = seen.clone();
        serving.spawn(async move {
            let mut passing = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                // What breaks is seen by whoever waits for an answer.
                passing.spawn(pass(client, server, sees.clone()));
            }
        });
        Ok(Self {
            url,
            seen,
            _serving: serving,
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn begin(&self) {
        lock(&self.seen).batches = Some(Vec::new());
    }

    /// What was sent since it began, with marks for the name of the thread, the id of the order and where the thread lies.
    pub(super) fn end(&self, name: &str, order: &[u8; 16], place: &Place) -> Json {
        let batches = lock(&self.seen).batches.take().unwrap_or_default();
        let param = |param: &Option<Vec<u8>>| match param.as_deref() {
            None => Json::Null,
            Some(bytes) if bytes == name.as_bytes() => json!({ "of": "name" }),
            Some(bytes) if bytes == order => json!({ "of": "order" }),
            Some(bytes) if bytes == place.number.to_be_bytes() => json!({ "of": "number" }),
            Some(bytes) => json!(hex(bytes)),
        };
        let call = |call: &Call| {
            let params: Vec<Json> = call.params.iter().map(param).collect();
            json!({ "sql": place.marked(&call.sql), "params": params })
        };
        let batch = |batch: &Vec<Call>| batch.iter().map(call).collect::<Vec<_>>();
        json!(batches.iter().map(batch).collect::<Vec<_>>())
    }
}

async fn pass(
    client: TcpStream,
    server: SocketAddr,
    seen: Arc<Mutex<Seen>>,
) -> std::io::Result<()> {
    let server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (mut asked, mut answered) = (Asked::default(), Answered::default());
    let there = copy(from_client, to_server, |bytes| {
        asked.read(bytes, &mut lock(&seen));
    });
    let back = copy(from_server, to_client, |bytes| {
        answered.read(bytes, &mut lock(&seen));
    });
    let (there, back) = tokio::join!(there, back);
    there.and(back)
}

async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut look: impl FnMut(&[u8]),
) -> std::io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        look(&buffer[..length]);
        to.write_all(&buffer[..length]).await?;
    }
}

/// What a client says: <https://www.postgresql.org/docs/current/protocol-message-formats.html>.
#[derive(Default)]
struct Asked {
    unread: Vec<u8>,
    is_greeted: bool,
    statements: HashMap<Vec<u8>, String>,
}

impl Asked {
    fn read(&mut self, bytes: &[u8], seen: &mut Seen) {
        self.unread.extend_from_slice(bytes);
        // The first message has no kind.
        if !self.is_greeted {
            if message_at(&self.unread, 0).is_none() {
                return;
            }
            take(&mut self.unread, 0);
            self.is_greeted = true;
        }
        while message_at(&self.unread, 1).is_some() {
            let message = take(&mut self.unread, 1);
            match message[0] {
                b'P' => self.parsed(&message[5..]),
                b'B' => self.bound(&message[5..], seen),
                b'S' | b'Q' => seen.waiting += 1,
                _ => {}
            }
        }
    }

    fn parsed(&mut self, body: &[u8]) {
        let (name, rest) = text(body);
        let (sql, _) = text(rest);
        let sql = String::from_utf8_lossy(sql).into_owned();
        self.statements.insert(name.to_vec(), sql);
    }

    fn bound(&self, body: &[u8], seen: &mut Seen) {
        let (_, rest) = text(body);
        let (name, rest) = text(rest);
        let (Some(batches), Some(sql)) = (&mut seen.batches, self.statements.get(name)) else {
            return;
        };
        let call = Call {
            sql: sql.clone(),
            params: params(rest).unwrap_or_default(),
        };
        match batches.last_mut().filter(|_| seen.waiting > 0) {
            Some(last) => last.push(call),
            None => batches.push(vec![call]),
        }
    }
}

/// What a server says.
#[derive(Default)]
struct Answered {
    unread: Vec<u8>,
}

impl Answered {
    fn read(&mut self, bytes: &[u8], seen: &mut Seen) {
        self.unread.extend_from_slice(bytes);
        while message_at(&self.unread, 1).is_some() {
            if take(&mut self.unread, 1)[0] == b'Z' {
                seen.waiting = seen.waiting.saturating_sub(1);
            }
        }
    }
}

/// The values of a bind message, after its two names.
fn params(body: &[u8]) -> Option<Vec<Option<Vec<u8>>>> {
    let formats = usize::from(u16::from_be_bytes(body.get(..2)?.try_into().ok()?));
    let mut rest = body.get(2 + 2 * formats..)?;
    let count = u16::from_be_bytes(rest.get(..2)?.try_into().ok()?);
    rest = rest.get(2..)?;
    let mut params = Vec::new();
    for _ in 0..count {
        let length = i32::from_be_bytes(rest.get(..4)?.try_into().ok()?);
        rest = rest.get(4..)?;
        let value = match usize::try_from(length) {
            Ok(length) => {
                let value = rest.get(..length)?;
                rest = rest.get(length..)?;
                Some(value.to_vec())
            }
            Err(_) => None,
        };
        params.push(value);
    }
    Some(params)
}

/// The length of the message at the beginning, if all of it is there.
fn message_at(bytes: &[u8], kind: usize) -> Option<usize> {
    let length: [u8; 4] = bytes.get(kind..kind + 4)?.try_into().ok()?;
    let length = kind + u32::from_be_bytes(length) as usize;
    (bytes.len() >= length).then_some(length)
}

fn take(bytes: &mut Vec<u8>, kind: usize) -> Vec<u8> {
    let length = message_at(bytes, kind).expect("it was seen to be there");
    bytes.drain(..length).collect()
}

/// The text up to its zero, and what is behind.
fn text(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0);
    let end = end.unwrap_or(bytes.len());
    (&bytes[..end], bytes.get(end + 1..).unwrap_or_default())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_bound_value_is_read_and_what_is_sent_at_once_is_one_batch() {
    let message = |kind: u8, body: &[u8]| {
        let length = (body.len() as u32 + 4).to_be_bytes();
        [&[kind], &length[..], body].concat()
    };
    let mut seen = Seen {
        batches: Some(Vec::new()),
        waiting: 0,
    };
    let parse = message(b'P', b"s1\0SELECT $1\0\0\0");
    let bind = message(
        b'B',
        b"\0s1\0\0\x01\0\x01\0\x02\0\0\0\x02hi\xff\xff\xff\xff\0\0",
    );
    let sync = message(b'S', b"");
    let greeting = [&8_u32.to_be_bytes()[..], &[0; 4]].concat();
    let (mut asked, mut answered) = (Asked::default(), Answered::default());
    // It comes in pieces.
    for bytes in [&greeting, &parse, &sync].map(Vec::as_slice) {
        let (first, second) = bytes.split_at(3);
        asked.read(first, &mut seen);
        asked.read(second, &mut seen);
    }
    // The server greets once by itself.
    answered.read(&message(b'Z', b"I"), &mut seen);
    asked.read(
        &[bind.clone(), sync.clone(), bind, sync].concat(),
        &mut seen,
    );
    let batches = seen.batches.unwrap();
    assert_eq!(batches.len(), 1);
    assert_eq!(batches[0].len(), 2);
    assert_eq!(batches[0][0].sql, "SELECT $1");
    assert_eq!(batches[0][1].params, [Some(b"hi".to_vec()), None]);
}

#[test]
fn the_partitions_of_a_thread_become_marks() {
    let place = Place {
        number: 7,
        of_thread: 3,
        of_rest: 12,
    };
    let sql = "WITH a AS (UPDATE thread_3 SET seq = 3 WHERE thread_12.id = $1) INSERT INTO log_12 SELECT log_1.a";
    assert_eq!(
        place.marked(sql),
        "WITH a AS (UPDATE thread_@thread SET seq = 3 WHERE thread_12.id = $1) INSERT INTO log_@rest SELECT log_1.a"
    );
}
