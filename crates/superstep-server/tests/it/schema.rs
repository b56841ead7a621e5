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

    /// Returns every row of every table as text, with bytes as hexadecimal digits.
    pub(crate) async fn all_rows(&self) -> String {
        let connected = tokio_postgres::connect(&self.url, tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        let read = async {
            let sql = "SELECT tablename::text FROM pg_catalog.pg_tables WHERE schemaname = $1";
            let mut rows = String::new();
            for table in client.query(sql, &[&self.name]).await.unwrap() {
                let table: &str = table.get(0);
                let sql = format!("SELECT t::text FROM \"{}\".\"{table}\" AS t", self.name);
                for row in client.query(&sql, &[]).await.unwrap() {
                    rows.push_str(row.get(0));
                    rows.push('\n');
                }
            }
            rows
        };
        tokio::select! {
            rows = read => rows,
            lost = connection => panic!("the connection ended: {lost:?}"),
        }
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
