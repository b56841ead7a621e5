//! A schema of PostgreSQL for one test.

use std::sync::atomic::{AtomicU32, Ordering};

use superstep_postgres::{Options, Postgres};

/// A schema that no other test has.
pub(crate) struct Schema {
    url: String,
    name: String,
}

impl Schema {
    pub(crate) fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        Self {
            url: superstep_conformance::services::url("postgres"),
            name: format!("server_{}_{made}", std::process::id()),
        }
    }

    pub(crate) async fn connect(&self) -> Postgres {
        let mut options = Options::default();
        options.schema.clone_from(&self.name);
        options.partitions = 2;
        options.connections = 8;
        Postgres::connect_with(&self.url, options).await.unwrap()
    }

    pub(crate) async fn drop_tables(&self) {
        let connected = tokio_postgres::connect(&self.url, tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        let sql = format!(
            "SET client_min_messages = error; DROP SCHEMA IF EXISTS \"{}\" CASCADE",
            self.name
        );
        tokio::select! {
            done = client.batch_execute(&sql) => done.unwrap(),
            lost = connection => panic!("the connection ended: {lost:?}"),
        }
    }
}
