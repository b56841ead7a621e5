//! The floors of PostgreSQL: so many writers over so many connections, each commit one statement.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use bench_rounds::{Failure, Round, Stopwatch, Task};
use tokio::task::JoinSet;
use tokio_postgres::types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked};
use tokio_postgres::{Client, NoTls, Statement};

use crate::one_row;
use crate::script::{Change, Script, Value};

pub(crate) struct Floor {
    script: Option<Arc<Script>>,
    runs: Arc<AtomicI64>,
    connections: usize,
    writers: usize,
    time: Duration,
}

struct Connection {
    client: Client,
    rows: Rows,
    runs: Arc<AtomicI64>,
    /// Moves the bytes for as long as the client is used.
    _moving: JoinSet<()>,
}

enum Rows {
    One(Statement, Vec<u8>),
    /// A statement for each commit of the script.
    Same(Arc<Script>, Vec<Statement>),
}

impl Floor {
    pub(crate) fn new(task: &Task, folder: &Path) -> Result<Self, Failure> {
        let script = match task.text("rows")? {
            "one" => None,
            _ => Some(Arc::new(Script::read(folder)?)),
        };
        Ok(Self {
            script,
            runs: Arc::default(),
            connections: task.number("connections")?,
            writers: task.number("at_once")?,
            time: task.time()?,
        })
    }

    /// Every writer waits for its commit before it sends the next. Writers that share a connection do not wait for
    /// each other.
    pub(crate) async fn round(&self) -> Result<Round, Failure> {
        let (connections, time) = (self.connect().await?, self.time);
        let (watch, begun) = (Stopwatch::start(), Instant::now());
        let mut writers = JoinSet::new();
        for writer in 0..self.writers {
            let connection = connections[writer % connections.len()].clone();
            writers.spawn(async move {
                let mut steps = 0;
                while steps == 0 || begun.elapsed() < time {
                    steps += connection.run().await?;
                }
                Ok::<_, Failure>(steps)
            });
        }
        let mut steps = 0;
        while let Some(writer) = writers.join_next().await {
            steps += writer??;
        }
        Ok(watch.stop(steps))
    }

    /// Made anew for each round, for a server has only so many; each has done a run before the clock starts.
    async fn connect(&self) -> Result<Vec<Arc<Connection>>, Failure> {
        let mut connections = Vec::new();
        for _ in 0..self.connections {
            let connection = Connection::open(self.script.clone(), self.runs.clone()).await?;
            connection.run().await?;
            connections.push(Arc::new(connection));
        }
        Ok(connections)
    }
}

impl Connection {
    async fn open(script: Option<Arc<Script>>, runs: Arc<AtomicI64>) -> Result<Self, Failure> {
        let url = std::env::var("BENCH_POSTGRES")?;
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
        let mut moving = JoinSet::new();
        moving.spawn(async {
            // When it breaks, the next statement says so.
            let _ = connection.await;
        });
        client.batch_execute(SETTINGS).await?;
        let rows = match script {
            None => Rows::One(client.prepare(INSERT).await?, one_row()),
            Some(script) => {
                let mut statements = Vec::new();
                for commit in &script.commits {
                    statements.push(client.prepare(&statement(commit)).await?);
                }
                Rows::Same(script, statements)
            }
        };
        Ok(Self {
            client,
            rows,
            runs,
            _moving: moving,
        })
    }

    /// Writes what stands for one run. Gives how many supersteps that are.
    async fn run(&self) -> Result<usize, Failure> {
        match &self.rows {
            Rows::One(insert, row) => {
                self.client.execute(insert, &[row]).await?;
                Ok(1)
            }
            Rows::Same(script, statements) => {
                let run = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
                for (commit, statement) in script.commits.iter().zip(statements) {
                    let values = commit.iter().flat_map(Change::values).filter(is_bound);
                    let values: Vec<Bound> = values
                        .map(|value| Bound(value.of_run(run).into_owned()))
                        .collect();
                    let params: Vec<&(dyn ToSql + Sync)> = values
                        .iter()
                        .map(|value| value as &(dyn ToSql + Sync))
                        .collect();
                    self.client.query(statement, &params).await?;
                }
                Ok(script.supersteps)
            }
        }
    }
}

/// All changes of a commit as one statement.
fn statement(commit: &[Change]) -> String {
    let mut places = 0;
    let mut place = |value: &Value| {
        let Some(kind) = kind(value) else {
            return "NULL".to_owned();
        };
        places += 1;
        format!("${places}::{kind}")
    };
    let parts: Vec<String> = commit
        .iter()
        .enumerate()
        .map(|(at, change)| format!("part{at} AS ({})", change.sql(&mut place)))
        .collect();
    format!("WITH {} SELECT 1", parts.join(", "))
}

fn is_bound(value: &&Value) -> bool {
    kind(value).is_some()
}

fn kind(value: &Value) -> Option<&'static str> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Thread | Value::Place(_) => "int8",
        Value::Text(_) | Value::Name => "text",
        Value::Bytes(_) => "bytea",
        Value::Ints(_) => "int8[]",
    })
}

/// A value as PostgreSQL takes it.
#[derive(Debug)]
struct Bound(Value);

impl ToSql for Bound {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        match &self.0 {
            Value::Bool(value) => value.to_sql(kind, out),
            Value::Int(value) => value.to_sql(kind, out),
            Value::Text(text) => text.to_sql(kind, out),
            Value::Bytes(bytes) => bytes.to_sql(kind, out),
            Value::Ints(ints) => ints.to_sql(kind, out),
            // Nulls stand in the statement, and marks were replaced.
            Value::Null | Value::Thread | Value::Name | Value::Place(_) => Ok(IsNull::Yes),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Planned once and kept, as ours are; the table of the one row is made by whoever comes first.
const SETTINGS: &str = "
    SET client_min_messages = warning;
    SET search_path TO superstep, public;
    SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off; SET jit = off;
    CREATE TABLE IF NOT EXISTS public.row
        (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body bytea NOT NULL)";
const INSERT: &str = "INSERT INTO public.row (body) VALUES ($1)";
