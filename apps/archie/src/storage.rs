//! The open database of the threads: SQLite or PostgreSQL, plain or encrypted.
//!
//! Owns which wrappers are in front of the database. Nothing else in the program decides that, so no command stores what users write in
//! clear next to ciphertext. The commands for API keys and the audit log, backups and erasure use the database itself: what they read
//! and delete is not encrypted, or must not need a key.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use superstep::registry::Registry;
use superstep::store::Store as Memory;
use superstep::{Checkpointer, Runtime};
use superstep_encryption::{
    EncryptedCheckpointer, EncryptedLiveBus, EncryptedRegistry, EncryptedRequestQueue,
    EncryptedStore, Encryption, EncryptionError, LocalKeys, PlainData, SearchableFields,
    check_unencrypted,
};
use superstep_postgres::Postgres;
use superstep_restate::{Redis, Restate, Worker};
use superstep_sqlite::Sqlite;
use zeroize::Zeroizing;

use crate::cli::settings::{EncryptionSettings, Engine, KEY_VARIABLE, KeySource, Settings, Store};

/// An open database, with its encryption if it has one. A clone is another handle to both.
#[derive(Clone)]
pub(crate) struct Storage {
    pub(crate) database: Database,
    pub(crate) encryption: Option<Encryption>,
}

/// The database itself. What is read from it and written to it directly is not encrypted.
#[derive(Clone)]
pub(crate) enum Database {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl Storage {
    /// Opens the database of the settings. Fails if an engine is set and the store is a file, which workers could not share; if the
    /// database is encrypted and the settings do not have its key; and if it has plain data that the settings do not accept.
    pub(crate) async fn open(settings: &Settings) -> anyhow::Result<Self> {
        let database = match &settings.store {
            Store::Sqlite(_) if settings.engine != Engine::Local => bail!(NO_SHARED_STORE),
            Store::Sqlite(path) => Database::Sqlite(open_sqlite(path)?),
            Store::Postgres(url) => Database::Postgres(connect(url).await?),
        };
        let encryption = open_encryption(&settings.encryption, &database).await?;
        Ok(Self {
            database,
            encryption,
        })
    }

    /// Returns the long-term store.
    pub(crate) fn memory(&self) -> Arc<dyn Memory> {
        let memory = self.database.memory();
        match &self.encryption {
            Some(encryption) => Arc::new(EncryptedStore::new(memory, encryption.clone())),
            None => memory,
        }
    }

    /// Returns the runs, assistants, crons and deliveries of a server.
    pub(crate) fn registry(&self) -> Arc<dyn Registry> {
        let registry = self.database.registry();
        match &self.encryption {
            Some(encryption) => Arc::new(EncryptedRegistry::new(registry, encryption.clone())),
            None => registry,
        }
    }

    /// Builds the runtime: drives threads in this process, or sends requests to a Restate cluster.
    pub(crate) async fn runtime(&self, settings: &Settings) -> anyhow::Result<Runtime> {
        let mut builder = match (&self.database, &self.encryption) {
            (database, Some(encryption)) => Runtime::builder(EncryptedCheckpointer::new(
                database.checkpointer(),
                encryption.clone(),
            )),
            (Database::Sqlite(sqlite), None) => Runtime::builder(sqlite.clone()),
            (Database::Postgres(postgres), None) => Runtime::builder(postgres.clone()),
        };
        let Database::Postgres(postgres) = &self.database else {
            return Ok(builder.build());
        };
        if let Engine::Restate(ingress) = &settings.engine {
            builder = builder.engine(match &self.encryption {
                Some(encryption) => Restate::new([ingress], queue(postgres, encryption))?,
                None => Restate::new([ingress], postgres.clone())?,
            });
        }
        if let Some(url) = &settings.redis {
            let bus = Redis::connect(url).await;
            let bus = bus.context("Redis cannot be reached; is the server running?")?;
            builder = match &self.encryption {
                Some(encryption) => {
                    builder.live_bus(EncryptedLiveBus::new(Arc::new(bus), encryption.clone()))
                }
                None => builder.live_bus(bus),
            };
        }
        Ok(builder.build())
    }

    /// Creates a worker for the graphs of a runtime, with the queue of requests in this database.
    pub(crate) fn worker(&self, runtime: Runtime) -> anyhow::Result<Worker> {
        let Database::Postgres(postgres) = &self.database else {
            bail!(NO_SHARED_STORE);
        };
        Ok(match &self.encryption {
            Some(encryption) => Worker::new(runtime, queue(postgres, encryption)),
            None => Worker::new(runtime, postgres.clone()),
        })
    }
}

fn queue(postgres: &Postgres, encryption: &Encryption) -> EncryptedRequestQueue {
    EncryptedRequestQueue::new(Arc::new(postgres.clone()), encryption.clone())
}

impl Database {
    pub(crate) fn checkpointer(&self) -> Arc<dyn Checkpointer> {
        match self {
            Self::Sqlite(sqlite) => Arc::new(sqlite.clone()),
            Self::Postgres(postgres) => Arc::new(postgres.clone()),
        }
    }

    pub(crate) fn memory(&self) -> Arc<dyn Memory> {
        match self {
            Self::Sqlite(sqlite) => Arc::new(sqlite.clone()),
            Self::Postgres(postgres) => Arc::new(postgres.clone()),
        }
    }

    fn registry(&self) -> Arc<dyn Registry> {
        match self {
            Self::Sqlite(sqlite) => Arc::new(sqlite.clone()),
            Self::Postgres(postgres) => Arc::new(postgres.clone()),
        }
    }
}

/// Opens the encryption of a database, and checks that both fit.
async fn open_encryption(
    settings: &EncryptionSettings,
    database: &Database,
) -> anyhow::Result<Option<Encryption>> {
    let store = database.memory();
    let Some(source) = &settings.keys else {
        check_unencrypted(&*store).await.map_err(with_advice)?;
        return Ok(None);
    };
    let own = settings.searchable.iter().map(String::as_str);
    let searchable = SearchableFields::new(SEARCHED.iter().copied().chain(own));
    let plain = match settings.accept_plain_data {
        true => PlainData::AcceptUntilEncrypted,
        false => PlainData::Refuse,
    };
    let encryption = Encryption::new(read_keys(source)?, store)
        .with_searchable(searchable)
        .with_plain_data(plain);
    let (threads, registry) = (database.checkpointer(), database.registry());
    let checked = encryption.check_database(&*threads, Some(&*registry));
    checked.await.map_err(with_advice)?;
    Ok(Some(encryption))
}

/// Fields of metadata that the server and Studio search by. They hold ids, and names of callers.
const SEARCHED: &[&str] = &[
    "owner",
    "graph_id",
    "assistant_id",
    "cron_id",
    "a2a",
    "a2a_task",
];

/// Reads the key-encryption keys.
pub(crate) fn read_keys(source: &KeySource) -> anyhow::Result<LocalKeys> {
    let (text, place) = match source {
        KeySource::File(file) => {
            let place = format!("the key file `{}`", file.display());
            let text = std::fs::read_to_string(file);
            (text.with_context(|| format!("cannot read {place}"))?, place)
        }
        KeySource::Variable => {
            let place = format!("`{KEY_VARIABLE}`");
            // The error would show a text that is not Unicode.
            let text = std::env::var(KEY_VARIABLE).ok();
            (text.with_context(|| format!("cannot read {place}"))?, place)
        }
    };
    let text = Zeroizing::new(text);
    LocalKeys::from_text(&text).with_context(|| format!("{place} has no usable keys"))
}

/// Adds what to do in this program, if there is something.
fn with_advice(error: EncryptionError) -> anyhow::Error {
    let advice = match &error {
        EncryptionError::NoKeyGiven => {
            "the database cannot be opened without its key; name the key file in `ARCHIE_ENCRYPTION_KEY_FILE`"
        }
        EncryptionError::KeyEncryptionKey { .. } => {
            "the database cannot be opened with this key; use the key file of the processes that wrote it"
        }
        EncryptionError::PlainDatabase => {
            "the database was not encrypted so far; name another one with `--store`, or set `ARCHIE_ACCEPT_PLAIN_DATA=1` to encrypt \
             new data only"
        }
        _ => return error.into(),
    };
    anyhow::Error::from(error).context(advice)
}

/// Says what to do about a cluster over a file.
const NO_SHARED_STORE: &str =
    "workers of a cluster share their threads: give --store postgres://… with --engine restate:URL";

/// Connects to the store on a PostgreSQL server.
pub(crate) async fn connect(url: &str) -> anyhow::Result<Postgres> {
    let store = Postgres::connect(url).await;
    store.context("the store cannot be reached; is the server running?")
}

/// Opens the database. A new file or folder is readable by its owner only, because it contains what people tell their agents.
pub(crate) fn open_sqlite(path: &Path) -> anyhow::Result<Sqlite> {
    use std::os::unix::fs::PermissionsExt;
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        && !folder.exists()
    {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    own_file(path)?;
    Sqlite::open(path)
        .with_context(|| format!("the threads in {} cannot be opened", path.display()))
}

/// Creates a file that only its owner can read. Leaves an existing file unchanged, including its permissions.
fn own_file(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path);
    file.with_context(|| format!("{} cannot be opened", path.display()))?;
    Ok(())
}
