//! A schema of its own in the database that tests share.

use std::sync::atomic::{AtomicU32, Ordering};

use superstep_conformance::sql::{Costs, Database};
use superstep_core::checkpoint::{BoxFuture, Checkpointer};
use superstep_core::store::Store;
use superstep_postgres::{Options, Postgres};
use tokio_postgres::{Client, NoTls};

/// A database whose tables go with it.
pub(crate) struct Db {
    pub(crate) postgres: Postgres,
    pub(crate) schema: Schema,
}

impl std::ops::Deref for Db {
    type Target = Postgres;

    fn deref(&self) -> &Postgres {
        &self.postgres
    }
}

pub(crate) async fn db() -> Db {
    let schema = Schema::new();
    Db {
        postgres: schema.connect().await,
        schema,
    }
}

/// The name of a schema that nobody else has. What it holds is dropped with it.
pub(crate) struct Schema {
    pub(crate) url: String,
    pub(crate) name: String,
}

impl Schema {
    pub(crate) fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        Self {
            url: url(),
            name: format!("test_{}_{made}", std::process::id()),
        }
    }

    /// Few partitions and few connections, for there are many tests.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::default();
        options.schema.clone_from(&self.name);
        options.partitions = 5;
        options.connections = 4;
        options
    }

    pub(crate) async fn connect(&self) -> Postgres {
        let connected = Postgres::connect_with(&self.named_url(), self.options()).await;
        connected
            .unwrap_or_else(|error| panic!("{error} ({error:?}): run `cargo xtask services up`"))
    }

    /// The store's connections bear the schema's name, so that a test can kill its own.
    pub(crate) fn named_url(&self) -> String {
        let mark = if self.url.contains('?') { '&' } else { '?' };
        format!("{}{mark}application_name={}", self.url, self.name)
    }

    /// A plain connection beside the store's, with the schema before its eyes.
    pub(crate) async fn client(&self) -> Client {
        let client = client(&self.url).await;
        let set = format!("SET search_path TO \"{}\"", self.name);
        client.batch_execute(&set).await.unwrap();
        client
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let (url, name) = (self.url.clone(), self.name.clone());
        // Inside a runtime nothing can be waited for, so this has one of its own.
        let drop_schema = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                // Connections that the test's runtime no longer serves would keep their locks.
                let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
                let sql = format!("DROP SCHEMA IF EXISTS \"{name}\" CASCADE");
                let client = client(&url).await;
                client
                    .batch_execute("SET client_min_messages = error")
                    .await
                    .unwrap();
                client.query(kill, &[&name]).await.unwrap();
                client.batch_execute(&sql).await.unwrap();
            });
        };
        // A test that fails fails for its own reason; what is left behind here harms nobody.
        let _ = std::thread::spawn(drop_schema).join();
    }
}

/// Waits until so many statements of the store wait for a lock.
pub(crate) async fn wait_for_waiting(db: &Db, statements: i64) {
    let client = db.schema.client().await;
    let sql = "SELECT count(*) FROM pg_stat_activity
         WHERE application_name = $1 AND wait_event_type = 'Lock'";
    for _ in 0..4_000 {
        let waiting = client.query_one(sql, &[&db.schema.name]).await.unwrap();
        if waiting.get::<_, i64>(0) == statements {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("no statement came to wait");
}

pub(crate) async fn client(url: &str) -> Client {
    let connected = tokio_postgres::connect(url, NoTls).await;
    let (client, connection) =
        connected.unwrap_or_else(|error| panic!("{error}: run `cargo xtask services up`"));
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        // Tests break connections on purpose.
        let _ = connection.await;
    });
    tasks.detach_all();
    client
}

/// The database that tests share.
pub(crate) fn url() -> String {
    superstep_conformance::services::url("postgres")
}

impl Database for Db {
    fn store(&self) -> &dyn Checkpointer {
        &self.postgres
    }

    fn items(&self) -> &dyn Store {
        &self.postgres
    }

    fn flip_byte_of_item<'a>(&'a self, key: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let client = self.schema.client().await;
            // Without the trigger, which takes a changed value for one of an older program.
            client
                .batch_execute("ALTER TABLE item DISABLE TRIGGER item_unsealed")
                .await
                .unwrap();
            let flip = "UPDATE item SET value = set_byte(value, 14, get_byte(value, 14) # 1) WHERE key = $1";
            let flipped = client.execute(flip, &[&key.as_bytes()]).await.unwrap();
            assert_eq!(flipped, 1);
            client
                .batch_execute("ALTER TABLE item ENABLE TRIGGER item_unsealed")
                .await
                .unwrap();
        })
    }

    fn execute<'a>(&'a self, statement: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let client = self.schema.client().await;
            client.batch_execute(statement).await.unwrap();
        })
    }

    fn rows<'a>(&'a self, table: &'a str) -> BoxFuture<'a, u64> {
        Box::pin(async move {
            let sql = format!("SELECT count(*) FROM {table}");
            let row = self.schema.client().await.query_one(&sql, &[]).await;
            row.unwrap().get::<_, i64>(0).unsigned_abs()
        })
    }

    fn bytes(&self) -> BoxFuture<'_, u64> {
        Box::pin(async { self.postgres.bytes().await.unwrap() })
    }

    fn listing_table(&self) -> &'static str {
        "listing"
    }

    fn costs(&self) -> Costs {
        Costs {
            // 3.2 KiB when this was written: every row has a header of 28 bytes, and a changed one stays until it is vacuumed.
            parked_thread: 4_096,
            // A third more, the maps of free and visible pages, and the pages a table grows by at once.
            entries_of_108_000_bytes: 108_000 * 133 / 100 + 98_304,
        }
    }
}
