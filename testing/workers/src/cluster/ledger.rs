//! The ledger: a table to which every effect adds a row, and from which nothing is ever taken.
//!
//! It is beside the tables of the threads and knows nothing of them. Rows are numbered in the order in which they came.

use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row, Statement};

use crate::AnyError;
use crate::store::Place;

/// A way to the ledger.
pub(crate) struct Ledger {
    client: Client,
    put: Statement,
    schema: String,
    /// The process that does what is put down.
    worker: String,
    /// What the connection is kept going by.
    _connected: JoinSet<()>,
}

/// A row of the ledger.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) thread: String,
    pub(crate) phase: String,
    pub(crate) key: String,
    pub(crate) worker: String,
    /// In milliseconds since 1970.
    pub(crate) at: i64,
}

impl Ledger {
    pub(crate) async fn open(place: &Place, worker: &str) -> Result<Self, AnyError> {
        let (client, connection) = tokio_postgres::connect(&place.url, NoTls).await?;
        let mut connected = JoinSet::new();
        connected.spawn(async move {
            if connection.await.is_err() {
                std::process::exit(8);
            }
        });
        // It counts what processes do, and no process of its own is killed.
        client.batch_execute("SET synchronous_commit = off").await?;
        let schema = place.schema.clone();
        client.batch_execute(&table(&schema)).await?;
        let put = format!(
            "INSERT INTO {schema}.ledger (thread, phase, key, attempt, worker) VALUES ($1, $2, $3, $4, $5)"
        );
        Ok(Self {
            put: client.prepare(&put).await?,
            client,
            schema,
            worker: worker.to_owned(),
            _connected: connected,
        })
    }

    /// Puts something down; returns when it is there. Without its ledger a trial means nothing, so the process ends.
    pub(crate) async fn put(&self, thread: &str, phase: &str, key: &str, attempt: u32) {
        let attempt = i64::from(attempt);
        let values: [&(dyn ToSql + Sync); 5] = [&thread, &phase, &key, &attempt, &self.worker];
        if let Err(error) = self.client.execute(&self.put, &values).await {
            eprintln!("the ledger is gone: {error}");
            std::process::exit(8);
        }
    }

    /// All lines, or those of one thread, in the order in which they came.
    pub(crate) async fn lines(&self, thread: Option<&str>) -> Result<Vec<Line>, AnyError> {
        let sql = format!(
            "SELECT thread, phase, key, worker, (extract(epoch FROM at) * 1000)::int8
             FROM {}.ledger WHERE $1::text IS NULL OR thread = $1 ORDER BY id",
            self.schema
        );
        let rows = self.client.query(&sql, &[&thread]).await?;
        let line = |row: &Row| Line {
            thread: row.get(0),
            phase: row.get(1),
            key: row.get(2),
            worker: row.get(3),
            at: row.get(4),
        };
        Ok(rows.iter().map(line).collect())
    }

    /// How many results of tasks of a thread are stored and not yet joined.
    pub(crate) async fn stored_results(&self, thread: &str) -> Result<i64, AnyError> {
        let sql = format!(
            "SELECT count(*) FROM {0}.record r JOIN {0}.thread t ON t.id = r.thread
             WHERE t.name = $1 AND r.key = $2",
            self.schema
        );
        let key = superstep::checkpoint::RESULT_KEY.as_bytes();
        let row = self.client.query_one(&sql, &[&thread, &key]).await?;
        Ok(row.get(0))
    }
}

fn table(schema: &str) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {schema}.ledger (
            id bigserial PRIMARY KEY,
            at timestamptz NOT NULL DEFAULT clock_timestamp(),
            thread text NOT NULL,
            phase text NOT NULL,
            key text NOT NULL,
            attempt bigint NOT NULL,
            worker text NOT NULL)"
    )
}
