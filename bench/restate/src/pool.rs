//! Connections to PostgreSQL, as many as ours has and set as ours are; each statement is prepared once on each, when it is
//! needed, as ours are.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bench_rounds::Failure;
use tokio::task::JoinSet;
use tokio_postgres::types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked};
use tokio_postgres::{Client, NoTls, Row, Statement};

use crate::script::{Call, Whose};

pub(crate) struct Pool {
    connections: Vec<Connection>,
    /// They move the bytes for as long as the clients are used.
    _moving: JoinSet<()>,
}

struct Connection {
    client: Client,
    statements: Mutex<HashMap<String, Statement>>,
    busy: AtomicUsize,
}

impl Pool {
    pub(crate) async fn open() -> Result<Self, Failure> {
        let url = std::env::var("BENCH_POSTGRES")?;
        let (mut connections, mut moving) = (Vec::new(), JoinSet::new());
        for _ in 0..CONNECTIONS {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
            moving.spawn(async {
                // When it breaks, the next statement says so.
                let _ = connection.await;
            });
            client.batch_execute(SETTINGS).await?;
            connections.push(Connection {
                client,
                statements: Mutex::default(),
                busy: AtomicUsize::new(0),
            });
        }
        Ok(Self {
            connections,
            _moving: moving,
        })
    }

    /// One statement, on the connection that has the least to do.
    pub(crate) async fn query(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Failure> {
        let connection = self.least_busy();
        let _busy = connection.enter();
        connection.query(sql, params).await
    }

    /// What ours sent together goes together. Gives the rows of the first.
    pub(crate) async fn play(
        &self,
        batch: &[Call],
        whose: &Whose<'_>,
    ) -> Result<Vec<Row>, Failure> {
        let connection = self.least_busy();
        let _busy = connection.enter();
        match batch {
            [only] => connection.play(only, whose).await,
            [first, second] => {
                let (first, second) = tokio::join!(
                    biased;
                    connection.play(first, whose),
                    connection.play(second, whose),
                );
                second.and(first)
            }
            _ => Err(format!("{} statements in one batch", batch.len()).into()),
        }
    }

    fn least_busy(&self) -> &Connection {
        let busy = |connection: &&Connection| connection.busy.load(Ordering::Relaxed);
        let found = self.connections.iter().min_by_key(busy);
        found.expect("there is one")
    }
}

impl Connection {
    async fn play(&self, call: &Call, whose: &Whose<'_>) -> Result<Vec<Row>, Failure> {
        let values = call.params.iter().map(|param| param.of(whose).map(Raw));
        let values: Vec<Raw<'_>> = values.collect::<Result<_, _>>()?;
        let params: Vec<&(dyn ToSql + Sync)> = values
            .iter()
            .map(|value| value as &(dyn ToSql + Sync))
            .collect();
        self.query(&call.text(whose)?, &params).await
    }

    async fn query(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Failure> {
        let statement = self.prepare(sql).await?;
        Ok(self.client.query(&statement, params).await?)
    }

    async fn prepare(&self, sql: &str) -> Result<Statement, Failure> {
        let statements = || {
            self.statements
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(statement) = statements().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        statements().insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn enter(&self) -> Busy<'_> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(&self.busy)
    }
}

struct Busy<'a>(&'a AtomicUsize);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Bytes that were bound once already.
#[derive(Debug)]
struct Raw<'a>(Option<&'a [u8]>);

impl ToSql for Raw<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        match self.0 {
            Some(bytes) => {
                out.extend_from_slice(bytes);
                Ok(IsNull::No)
            }
            None => Ok(IsNull::Yes),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

const CONNECTIONS: usize = 16;

/// Planned once and kept, as ours are; the tables of the bare rows are made by whoever comes first.
const SETTINGS: &str = "
    SET client_min_messages = warning;
    SET search_path TO superstep, public;
    SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
    SET max_parallel_workers_per_gather = 0; SET jit = off;
    CREATE TABLE IF NOT EXISTS public.step
        (thread text NOT NULL, n int NOT NULL, body text NOT NULL, PRIMARY KEY (thread, n))";
