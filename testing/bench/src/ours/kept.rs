//! Runtimes over fresh stores, and what those weigh.

use std::path::PathBuf;

use anyhow::Context;
use superstep::{Memory, Runtime};
use superstep_postgres::Postgres;
use superstep_sqlite::Sqlite;

/// Where fresh stores come from.
#[derive(Debug)]
pub(crate) enum Keeper {
    Memory,
    Sqlite { folder: PathBuf, made: u32 },
    Postgres { url: String, made: u32 },
}

/// A runtime, and the store below it.
pub(crate) struct Kept {
    pub(crate) runtime: Runtime,
    store: Store,
}

enum Store {
    Memory,
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl Keeper {
    pub(crate) fn of(store: &str) -> anyhow::Result<Self> {
        let said = |name: &str| std::env::var(name).with_context(|| format!("{name} is not set"));
        Ok(match store {
            "none" => Keeper::Memory,
            "sqlite" => Keeper::Sqlite {
                folder: said("BENCH_FOLDER")?.into(),
                made: 0,
            },
            "postgres" => Keeper::Postgres {
                url: said("BENCH_POSTGRES")?,
                made: 0,
            },
            unknown => anyhow::bail!("there is no store `{unknown}`"),
        })
    }

    pub(crate) fn is_durable(&self) -> bool {
        !matches!(self, Keeper::Memory)
    }

    /// A store that nobody has used.
    pub(crate) async fn fresh(&mut self) -> anyhow::Result<Kept> {
        Ok(match self {
            // Without a checkpointer a runtime keeps its threads in memory, with their whole log.
            Keeper::Memory => Kept {
                runtime: Runtime::new(Memory::default()),
                store: Store::Memory,
            },
            Keeper::Sqlite { folder, made } => {
                *made += 1;
                let sqlite = Sqlite::open(folder.join(format!("ours-{made}.db")))?;
                Kept {
                    runtime: Runtime::new(sqlite.clone()),
                    store: Store::Sqlite(sqlite),
                }
            }
            Keeper::Postgres { url, made } => {
                *made += 1;
                let mut options = superstep_postgres::Options::default();
                options.schema = format!("ours_{made}");
                let postgres = Postgres::connect_with(url, options).await?;
                Kept {
                    runtime: Runtime::new(postgres.clone()),
                    store: Store::Postgres(postgres),
                }
            }
        })
    }
}

impl Kept {
    /// What the store has on disk, with its indexes.
    pub(crate) async fn bytes(&self) -> anyhow::Result<u64> {
        Ok(match &self.store {
            Store::Memory => anyhow::bail!("memory has no size"),
            Store::Sqlite(sqlite) => sqlite.bytes().await?,
            Store::Postgres(postgres) => postgres.bytes().await?,
        })
    }
}
