//! Where sessions are kept, and how one is driven to its end.

use std::sync::Arc;

use bench_rounds::Failure;
use graph_flow::{
    ExecutionStatus, FlowRunner, Graph, InMemorySessionStorage, PostgresSessionStorage, Session,
    SessionStorage,
};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

/// A storage, and the way to its tables if it has some.
#[derive(Clone)]
pub struct Sessions {
    storage: Arc<dyn SessionStorage>,
    pool: Option<PgPool>,
}

impl Sessions {
    pub async fn open(store: &str) -> Result<Self, Failure> {
        if store != "postgres" {
            let storage = Arc::new(InMemorySessionStorage::new());
            return Ok(Self {
                storage,
                pool: None,
            });
        }
        let url = std::env::var("BENCH_POSTGRES")?;
        let pool = PgPoolOptions::new()
            .max_connections(16)
            .connect(&url)
            .await?;
        Ok(Self {
            storage: Arc::new(PostgresSessionStorage::with_pool(pool.clone()).await?),
            pool: Some(pool),
        })
    }

    pub fn runner(&self, graph: Arc<Graph>) -> FlowRunner {
        FlowRunner::new(graph, self.storage.clone())
    }

    /// Makes a session that begins at a task. Gives its id.
    pub async fn start(&self, first: &str) -> Result<String, Failure> {
        let id = uuid::Uuid::new_v4().to_string();
        let session = Session::new_from_task(id.clone(), first);
        self.storage.save(session).await?;
        Ok(id)
    }

    /// Puts an answer into a session, as a program that serves people does.
    pub async fn answer(&self, id: &str) -> Result<(), Failure> {
        let session = self.storage.get(id).await?.ok_or("the session is gone")?;
        session.context.set("answer", "yes")?;
        Ok(self.storage.save(session).await?)
    }

    pub async fn clear(&self) -> Result<(), Failure> {
        if let Some(pool) = &self.pool {
            sqlx::query("TRUNCATE sessions").execute(pool).await?;
        }
        Ok(())
    }

    /// What the table has on disk, with its indexes.
    pub async fn bytes(&self) -> Result<u64, Failure> {
        let pool = self.pool.as_ref().ok_or("memory has no size")?;
        let query = "SELECT pg_total_relation_size('sessions')";
        let (bytes,): (i64,) = sqlx::query_as(query).fetch_one(pool).await?;
        Ok(bytes.unsigned_abs())
    }
}

/// Goes on until the session ends or waits. Gives how many steps that were.
pub async fn drive(runner: &FlowRunner, session: &str) -> Result<usize, Failure> {
    let mut steps = 0;
    loop {
        let stopped = runner.run(session).await?;
        steps += 1;
        if !matches!(stopped.status, ExecutionStatus::Paused { .. }) {
            return Ok(steps);
        }
    }
}
