//! The tables, their migrations, and the setup of connections.
//!
//! A thread is spread over tables by how often each part is written. `thread` is the small row that every commit compares;
//! commits inside a run do not change it (the view `head` has the current sequence number). `line` is what lists show, and
//! `term` is its index by content; they are written at run boundaries. `log` and `snapshot` are clustered: their key combines
//! the thread's number and the sequence number in one integer, so a history is contiguous, needs no second index, and a body
//! of up to a page stays in its row. (Measured with 270-byte bodies: 24 bytes of overhead per row, against 45 for a
//! two-column key without rowid; with 1,500-byte bodies 556 against 3,182.)
//!
//! `run` is the queue of runs and their history in one table; `assistant` and `assistant_version` are the assistants, `cron` the
//! crons. `delivery` is the outbox; `api_key` and `request_key` are the keys of callers; `audit` and `audit_head` the audit logs.
//!
//! The file has our application id, so we never mistake another program's database for ours, and a schema number. Migrations
//! are never edited, only added.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use superstep_core::Seq;
use superstep_core::error::CheckpointError;

use crate::Options;
use crate::fault::{Fault, SqliteError};
use crate::store;

/// Each migration takes the schema from its index to the next number.
const MIGRATIONS: &[Migration] = &[
    Migration::sql(CHECKPOINTS),
    Migration::sql(ITEMS),
    Migration::sql(CACHE),
    Migration::sql(HEADS),
    Migration {
        sql: CHECKSUMS,
        fill: Some(store::fill_checksums),
    },
    Migration::sql(LEASES),
    Migration::sql(REGISTRY),
    Migration::sql(LIFETIMES),
    Migration::sql(CRONS),
    Migration::sql(OUTBOX),
    Migration::sql(TICKS),
    Migration::sql(WAITING),
];

/// SQL statements, and a function that computes new columns of existing rows.
struct Migration {
    sql: &'static str,
    fill: Option<FillRows>,
}

/// Computes what a migration adds to existing rows.
type FillRows = fn(&Connection) -> Result<(), Fault>;

impl Migration {
    const fn sql(sql: &'static str) -> Self {
        Self { sql, fill: None }
    }
}

const CHECKPOINTS: &str = "
    CREATE TABLE tenant (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
    INSERT INTO tenant (id, name) VALUES (0, '');

    -- Nothing that changes with every commit is indexed. A deleted thread keeps its row.
    CREATE TABLE thread (
        id INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL,
        name TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        status INTEGER NOT NULL,
        cancel INTEGER NOT NULL,
        recoveries INTEGER NOT NULL,
        answers INTEGER NOT NULL,
        seen INTEGER NOT NULL,
        UNIQUE (tenant, name)
    ) STRICT;
    CREATE INDEX thread_running ON thread (status) WHERE status = 1;
    CREATE INDEX thread_answered ON thread (status) WHERE status = 2 AND answers > seen;

    CREATE TABLE line (
        thread INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL,
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        graph TEXT NOT NULL,
        metadata BLOB,
        state BLOB
    ) STRICT;
    CREATE INDEX line_updated ON line (tenant, updated);

    CREATE TABLE term (
        term INTEGER NOT NULL,
        thread INTEGER NOT NULL,
        PRIMARY KEY (term, thread)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE log (place INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
    CREATE TABLE snapshot (place INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;

    CREATE TABLE record (
        thread INTEGER NOT NULL,
        task BLOB NOT NULL,
        key TEXT NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (thread, task, key)
    ) STRICT, WITHOUT ROWID;

    -- An answer is a value's bytes, or the number 0 if the time ran out.
    CREATE TABLE interrupt (
        row INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL,
        thread INTEGER NOT NULL,
        id BLOB NOT NULL,
        seq INTEGER NOT NULL,
        asked_at INTEGER NOT NULL,
        deadline INTEGER,
        closed INTEGER,
        answer ANY,
        answered_by TEXT,
        answered_at INTEGER,
        body BLOB NOT NULL,
        UNIQUE (thread, id)
    ) STRICT;
    CREATE INDEX interrupt_live ON interrupt (thread) WHERE closed IS NULL;
    CREATE INDEX interrupt_open ON interrupt (tenant, asked_at)
        WHERE answer IS NULL AND closed IS NULL;
    CREATE INDEX interrupt_due ON interrupt (deadline)
        WHERE answer IS NULL AND closed IS NULL AND deadline IS NOT NULL;
";

const ITEMS: &str = "
    CREATE TABLE item (
        row INTEGER PRIMARY KEY,
        namespace TEXT NOT NULL,
        key TEXT NOT NULL,
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        expires INTEGER,
        ttl_ms INTEGER,
        refresh INTEGER NOT NULL,
        value TEXT NOT NULL,
        UNIQUE (namespace, key)
    ) STRICT;
    CREATE INDEX item_expires ON item (expires) WHERE expires IS NOT NULL;
";

const CACHE: &str = "
    CREATE TABLE cache (
        key TEXT PRIMARY KEY,
        expires INTEGER,
        body BLOB NOT NULL
    ) STRICT;
    CREATE INDEX cache_expires ON cache (expires) WHERE expires IS NOT NULL;
";

/// A superstep inside a run only adds one row to the log, because every further page costs disk time. So the row of a thread
/// may lag behind; this view has the sequence number of the newest log entry.
const HEADS: &str = "
    CREATE VIEW head AS
    SELECT id, tenant, name, epoch, status, cancel, recoveries, answers, seen,
           max(seq, coalesce(
               (SELECT max(place) FROM log
                WHERE place BETWEEN thread.id << 32 AND thread.id << 32 | 4294967295) & 4294967295,
               0)) AS seq
    FROM thread;
";

/// Checksums of items and of cached results. A program of the previous version may still have the file open and write without
/// them. A trigger drops the checksum of an item that it changes, so the change does not look like damage. Results that it
/// caches are not found, which only costs another run of the node.
const CHECKSUMS: &str = "
    ALTER TABLE item ADD COLUMN checksum INTEGER;
    ALTER TABLE cache ADD COLUMN checksum INTEGER;
    CREATE TRIGGER item_unsealed AFTER UPDATE OF value ON item
        WHEN new.value IS NOT old.value AND new.checksum IS old.checksum
        BEGIN UPDATE item SET checksum = NULL WHERE row = new.row; END;
";

/// Until when the owner of a running thread holds it, in milliseconds; null if the owner did not say.
const LEASES: &str = "ALTER TABLE thread ADD COLUMN lease INTEGER;";

/// Runs and assistants. A run may belong to a thread that has no row yet.
///
/// The number of a run is its place in the order of creation, and `AUTOINCREMENT` never gives it to another run. Only pending
/// and running runs (status 0 and 1) are in the partial indexes, so the queue costs the same however many runs have ended.
/// The large columns come last: a list of runs does not read the requests.
const REGISTRY: &str = "
    CREATE TABLE run (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant INTEGER NOT NULL,
        id BLOB NOT NULL,
        thread TEXT NOT NULL,
        assistant BLOB NOT NULL,
        principal TEXT NOT NULL,
        status INTEGER NOT NULL,
        attempts INTEGER NOT NULL,
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        due INTEGER NOT NULL,
        metadata TEXT NOT NULL,
        error TEXT NOT NULL,
        arguments TEXT NOT NULL,
        request BLOB NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX run_id ON run (tenant, id);
    -- An index ends with the number of the row, so these two have the runs of a tenant or a thread in order.
    CREATE INDEX run_tenant ON run (tenant);
    CREATE INDEX run_thread ON run (tenant, thread);
    CREATE INDEX run_due ON run (due) WHERE status = 0;
    CREATE INDEX run_active ON run (tenant, thread, status) WHERE status = 0 OR status = 1;

    -- The current version, and the highest one that ever was.
    CREATE TABLE assistant (
        tenant INTEGER NOT NULL,
        id BLOB NOT NULL,
        version INTEGER NOT NULL,
        highest INTEGER NOT NULL,
        created INTEGER NOT NULL,
        PRIMARY KEY (tenant, id)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE assistant_version (
        tenant INTEGER NOT NULL,
        id BLOB NOT NULL,
        version INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        graph TEXT NOT NULL,
        name TEXT NOT NULL,
        description TEXT NOT NULL,
        config TEXT NOT NULL,
        context TEXT NOT NULL,
        metadata TEXT NOT NULL,
        PRIMARY KEY (tenant, id, version)
    ) STRICT, WITHOUT ROWID;
";

/// How long a thread is kept after its row last changed, and what happens then; null without a limit. Only threads with a lifetime
/// are in the index of ends. (A sum that exceeds 63 bits is a float, which is still larger than any time.)
const LIFETIMES: &str = "
    ALTER TABLE line ADD COLUMN lifetime_ms INTEGER;
    ALTER TABLE line ADD COLUMN at_end INTEGER;
    CREATE INDEX line_created ON line (tenant, created);
    CREATE INDEX line_ends ON line (updated + lifetime_ms) WHERE lifetime_ms IS NOT NULL;
";

/// Crons. A tenant has few of them, so a list reads them all. Only crons that will fire are in the index, in the order in which
/// they do.
const CRONS: &str = "
    CREATE TABLE cron (
        tenant INTEGER NOT NULL,
        id BLOB NOT NULL,
        assistant BLOB NOT NULL,
        thread TEXT,
        principal TEXT NOT NULL,
        schedule TEXT NOT NULL,
        zone TEXT,
        ends INTEGER,
        enabled INTEGER NOT NULL,
        next INTEGER,
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        metadata TEXT NOT NULL,
        error TEXT NOT NULL,
        arguments TEXT NOT NULL,
        PRIMARY KEY (tenant, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX cron_next ON cron (next) WHERE next IS NOT NULL;
";

/// When the last tick of a cron was due that made a run. Those of earlier ticks are not known.
const TICKS: &str = "ALTER TABLE cron ADD COLUMN ticked INTEGER;";

/// Pending deliveries by tenant: with this index, those of a tenant that has enough in progress are not read to find those of others.
const WAITING: &str = "CREATE INDEX delivery_waiting ON delivery (tenant, due) WHERE status = 0;";

/// The outbox, the keys of callers, and the audit logs.
///
/// Deliveries are numbered in the order in which they are stored, as runs are, and have nothing to do with the row of their run:
/// they outlive it. Only pending deliveries (status 0) are in the index that is read to send them, and only confirmed ones (status
/// 1) in the one that is read to delete them.
const OUTBOX: &str = "
    CREATE TABLE delivery (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant INTEGER NOT NULL,
        id BLOB NOT NULL,
        run BLOB NOT NULL,
        thread TEXT NOT NULL,
        status INTEGER NOT NULL,
        attempts INTEGER NOT NULL,
        due INTEGER NOT NULL,
        at INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        address TEXT NOT NULL,
        event TEXT NOT NULL,
        error TEXT NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX delivery_id ON delivery (tenant, id);
    -- An index ends with the number of the row, so these two have the deliveries of a tenant or a run in order.
    CREATE INDEX delivery_tenant ON delivery (tenant);
    CREATE INDEX delivery_run ON delivery (tenant, run);
    CREATE INDEX delivery_due ON delivery (due) WHERE status = 0;
    CREATE INDEX delivery_delivered ON delivery (updated) WHERE status = 1;

    -- The id of an API key is unique over all tenants: it is looked up before the tenant is known.
    CREATE TABLE api_key (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id BLOB NOT NULL UNIQUE,
        tenant INTEGER NOT NULL,
        principal TEXT NOT NULL,
        name TEXT NOT NULL,
        hash BLOB NOT NULL,
        permissions INTEGER NOT NULL,
        restricted INTEGER NOT NULL,
        created INTEGER NOT NULL,
        expires INTEGER
    ) STRICT;
    CREATE INDEX api_key_tenant ON api_key (tenant);

    CREATE TABLE request_key (
        tenant INTEGER NOT NULL,
        principal TEXT NOT NULL,
        key TEXT NOT NULL,
        fingerprint BLOB NOT NULL,
        at INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        PRIMARY KEY (tenant, principal, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX request_key_expires ON request_key (expires);

    CREATE TABLE audit (
        tenant INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        at INTEGER NOT NULL,
        principal TEXT NOT NULL,
        action TEXT NOT NULL,
        resource TEXT NOT NULL,
        detail TEXT NOT NULL,
        previous BLOB NOT NULL,
        hash BLOB NOT NULL,
        PRIMARY KEY (tenant, seq)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE audit_head (
        tenant INTEGER PRIMARY KEY,
        seq INTEGER NOT NULL,
        hash BLOB NOT NULL
    ) STRICT;
";

/// Opens the writing connection, and migrates the file to the newest schema.
pub(crate) fn open_writer(path: &Path, options: &Options) -> Result<Connection, Fault> {
    check_library()?;
    create_unless_there(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(options.busy_timeout)?;
    // Before anything is changed, because the file may not be ours.
    check_ours(&connection, path)?;
    patiently(options.busy_timeout, || use_wal(&connection))?;
    connection.pragma_update(None, "wal_autocheckpoint", options.wal_pages)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    set_up_writer(&mut connection, options.cache_kib)?;
    Ok(connection)
}

/// Opens a writing connection to a private database in memory.
pub(crate) fn open_in_memory() -> Result<Connection, Fault> {
    check_library()?;
    let mut connection = Connection::open_in_memory()?;
    set_up_writer(&mut connection, Options::default().cache_kib)?;
    Ok(connection)
}

/// Opens a read-only connection. The writing connection must be open.
pub(crate) fn open_reader(path: &Path, options: &Options) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(options.busy_timeout)?;
    set_up(&connection, options.cache_kib)?;
    Ok(connection)
}

fn set_up_writer(connection: &mut Connection, cache_kib: u32) -> Result<(), Fault> {
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Only this reaches the medium on macOS; it has no effect elsewhere.
    connection.pragma_update(None, "fullfsync", true)?;
    set_up(connection, cache_kib)?;
    migrate(connection)
}

fn set_up(connection: &Connection, cache_kib: u32) -> Result<(), Fault> {
    connection.pragma_update(None, "cache_size", -i64::from(cache_kib))?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // Makes plans independent of the bound values; otherwise SQLite prepares a statement again for new bounds.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    Ok(())
}

fn check_library() -> Result<(), SqliteError> {
    if rusqlite::version_number() < LIBRARY_MIN.0 {
        return Err(SqliteError::OldLibrary {
            found: rusqlite::version(),
            needed: LIBRARY_MIN.1,
        });
    }
    Ok(())
}

pub(crate) fn create_unless_there(path: &Path) -> io::Result<()> {
    match create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

/// Creates an empty file that only its owner can read; SQLite gives its companion files the same mode.
pub(crate) fn create_new(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?;
    sync_parent(path)
}

/// A new file survives a power cut only once its directory is on disk.
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    if cfg!(unix) {
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
    } else {
        Ok(())
    }
}

fn check_ours(connection: &Connection, path: &Path) -> Result<(), Fault> {
    let foreign = || SqliteError::Foreign {
        path: path.to_owned(),
    };
    let application: i64 = pragma(connection, "application_id")?;
    if application == APPLICATION_ID {
        return check_known(pragma(connection, "user_version")?);
    }
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let is_new = application == 0 && tables == 0 && pragma(connection, "user_version")? == 0;
    // Another process may have initialized the file between the two checks.
    if is_new || pragma(connection, "application_id")? == APPLICATION_ID {
        return Ok(());
    }
    Err(foreign().into())
}

fn check_known(found: i64) -> Result<(), Fault> {
    let found = u32::try_from(found).unwrap_or(u32::MAX);
    if found > KNOWN {
        return Err(CheckpointError::NewerDatabase {
            found,
            known: KNOWN,
        }
        .into());
    }
    Ok(())
}

/// Runs each migration in one transaction that also writes its number. A process that dies in the middle leaves the previous
/// schema; if several start at once, one migrates and the others find it done.
fn migrate(connection: &mut Connection) -> Result<(), Fault> {
    loop {
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let version: i64 = pragma(&transaction, "user_version")?;
        check_known(version)?;
        let Some(migration) = usize::try_from(version)
            .ok()
            .and_then(|at| MIGRATIONS.get(at))
        else {
            return Ok(());
        };
        transaction.execute_batch(migration.sql)?;
        if let Some(fill) = migration.fill {
            fill(&transaction)?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", version + 1)?;
        transaction.commit()?;
    }
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

fn use_wal(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| {
        let mode: String = row.get(0)?;
        // A file system without shared memory keeps the old mode, which has other guarantees.
        if mode == "wal" {
            Ok(())
        } else {
            Err(rusqlite::Error::InvalidQuery)
        }
    })
}

/// Retries while the database is busy. Changing the journal mode needs exclusive access for a moment, and SQLite does not
/// wait for that.
fn patiently(
    patience: Duration,
    mut action: impl FnMut() -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let began = Instant::now();
    loop {
        match action() {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && began.elapsed() < patience =>
            {
                sleep(Duration::from_millis(2));
            }
            done => return done,
        }
    }
}

/// Returns the key of an entry or a snapshot: the thread's number in the high bits, the sequence number in the low ones.
/// Clamps larger sequence numbers, so a range that ends there is still correct.
pub(crate) fn place(thread: i64, seq: Seq) -> i64 {
    (thread << SEQ_BITS) | i64::try_from(seq.0).unwrap_or(SEQ_MAX).min(SEQ_MAX)
}

/// Returns the sequence number of a place.
pub(crate) fn seq_at(place: i64) -> Seq {
    Seq((place & SEQ_MAX).unsigned_abs())
}

/// Fails if the numbers do not fit into a place.
pub(crate) fn check_place(thread: i64, seq: Seq) -> Result<(), SqliteError> {
    if thread > i64::MAX >> SEQ_BITS {
        return Err(SqliteError::TooMany {
            what: "thread",
            number: thread.unsigned_abs(),
        });
    }
    if seq.0 > SEQ_MAX.unsigned_abs() {
        return Err(SqliteError::TooMany {
            what: "entry",
            number: seq.0,
        });
    }
    Ok(())
}

/// Four billion entries per thread, two billion threads.
const SEQ_BITS: u32 = 32;
const SEQ_MAX: i64 = (1 << SEQ_BITS) - 1;

const KNOWN: u32 = MIGRATIONS.len() as u32;
/// The letters `SSTP`.
const APPLICATION_ID: i64 = 0x5353_5450;
/// First release without the WAL-reset bug.
const LIBRARY_MIN: (i32, &str) = (3_051_003, "3.51.3");
const STATEMENTS_KEPT: usize = 128;
const WAL_BYTES_KEPT: i64 = 64 * 1024 * 1024;
