//! The tables and their migrations.
//!
//! A thread is spread over tables by how often each part is written. `thread` is the small row that every commit compares and
//! updates: half of each page is left free and no column that changes with a superstep is indexed, so the new version stays
//! on its page and no index is touched. `listing` is what lists show and `term` is its index by content; they are written at
//! run boundaries. All of them are partitioned by a hash of the thread, so no single table, index or vacuum grows with the
//! whole. The number of partitions is fixed when the schema is created. `thread` has a quarter as many: a planned statement
//! locks all partitions of the table that it updates, and PostgreSQL has sixteen fast-path locks per connection (measured
//! with 16 partitions of `thread`: a commit costs the server a quarter more).
//!
//! User-provided texts are stored as bytes, because PostgreSQL's text type has no NUL and sorts by collation. Migrations are
//! never edited, only added.

use superstep_core::error::CheckpointError;
use tokio_postgres::{IsolationLevel, Transaction};

use crate::Options;
use crate::fault::{Fault, PostgresError};
use crate::pool::Pool;
use crate::store;

/// Each migration takes the schema from its index to the next number, given the number of partitions.
const MIGRATIONS: &[fn(u32) -> String] = &[
    checkpoints,
    items,
    cache,
    inbox,
    checksums,
    leases,
    registry,
    lifetimes,
    crons,
    beginnings,
    outbox,
    ticks,
    waiting,
];

const TABLES: &str = "
    CREATE SEQUENCE thread_id;

    -- Addressed by name in every request. A deleted thread keeps its row. `was` is the status before the last change.
    CREATE TABLE thread (
        id bigint NOT NULL DEFAULT nextval('thread_id'),
        epoch bigint NOT NULL,
        seq bigint NOT NULL,
        recoveries bigint NOT NULL,
        answers bigint NOT NULL,
        seen bigint NOT NULL,
        status smallint NOT NULL,
        was smallint NOT NULL,
        cancel boolean NOT NULL,
        tenant text COLLATE \"C\" NOT NULL,
        name text COLLATE \"C\" NOT NULL,
        PRIMARY KEY (tenant, name)
    ) PARTITION BY HASH (name);
    CREATE INDEX thread_running ON thread (tenant, name) WHERE status = 1;
    CREATE INDEX thread_answered ON thread (tenant, name) WHERE status = 2 AND answers > seen;

    CREATE TABLE log (
        thread bigint NOT NULL,
        seq bigint NOT NULL,
        epoch bigint NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (thread, seq)
    ) PARTITION BY HASH (thread);

    CREATE TABLE snapshot (
        thread bigint NOT NULL,
        seq bigint NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (thread, seq)
    ) PARTITION BY HASH (thread);

    CREATE TABLE record (
        thread bigint NOT NULL,
        task uuid NOT NULL,
        key bytea NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (thread, task, key)
    ) PARTITION BY HASH (thread);

    -- Answered if `answered_at` is there; without an answer then, the time ran out.
    CREATE TABLE interrupt (
        thread bigint NOT NULL,
        seq bigint NOT NULL,
        asked_at bigint NOT NULL,
        deadline bigint,
        closed bigint,
        answered_at bigint,
        id uuid NOT NULL,
        tenant text COLLATE \"C\" NOT NULL,
        name text COLLATE \"C\" NOT NULL,
        answer bytea,
        answered_by bytea,
        body bytea NOT NULL,
        PRIMARY KEY (thread, id)
    ) PARTITION BY HASH (thread);
    CREATE INDEX interrupt_live ON interrupt (thread) WHERE closed IS NULL;
    CREATE INDEX interrupt_open ON interrupt (tenant, asked_at)
        WHERE answered_at IS NULL AND closed IS NULL;
    CREATE INDEX interrupt_due ON interrupt (deadline)
        WHERE answered_at IS NULL AND closed IS NULL AND deadline IS NOT NULL;

    CREATE TABLE listing (
        thread bigint PRIMARY KEY,
        created bigint NOT NULL,
        updated bigint NOT NULL,
        tenant text COLLATE \"C\" NOT NULL,
        name text COLLATE \"C\" NOT NULL,
        graph bytea NOT NULL,
        metadata bytea,
        state bytea,
        metadata_terms bigint[] NOT NULL,
        state_terms bigint[] NOT NULL
    ) PARTITION BY HASH (thread);
    CREATE INDEX listing_updated ON listing (tenant, updated DESC, name);

    CREATE TABLE term (
        term bigint NOT NULL,
        thread bigint NOT NULL,
        PRIMARY KEY (term, thread)
    ) PARTITION BY HASH (thread);

    -- For a statement that finds out at its end that it must not have happened.
    CREATE FUNCTION refuse() RETURNS bigint LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = 'SS001'; END $$;
";

/// Storage settings of each partition. The body of an entry stays in its row as long as it fits a page.
const PARTITIONED: &[(&str, &str)] = &[
    (
        "thread",
        "WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05)",
    ),
    ("log", "WITH (toast_tuple_target = 8160)"),
    ("snapshot", ""),
    ("record", "WITH (toast_tuple_target = 8160)"),
    ("interrupt", ""),
    ("listing", "WITH (fillfactor = 80)"),
    ("term", ""),
];

fn checkpoints(partitions: u32) -> String {
    let mut sql = TABLES.to_owned();
    for (table, settings) in PARTITIONED {
        let parts = match *table {
            "thread" => partitions.div_ceil(4),
            _ => partitions,
        };
        for n in 0..parts {
            sql.push_str(&format!(
                "CREATE TABLE {table}_{n} PARTITION OF {table}
                     FOR VALUES WITH (MODULUS {parts}, REMAINDER {n}) {settings};\n"
            ));
        }
    }
    sql
}

fn items(_: u32) -> String {
    "CREATE TABLE item (
        row bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        created bigint NOT NULL,
        updated bigint NOT NULL,
        expires bigint,
        ttl_ms bigint,
        refresh boolean NOT NULL,
        namespace bytea NOT NULL,
        key bytea NOT NULL,
        value bytea NOT NULL,
        UNIQUE (namespace, key)
    );
    CREATE INDEX item_expires ON item (expires) WHERE expires IS NOT NULL;"
        .to_owned()
}

fn cache(_: u32) -> String {
    // A key may be longer than an index allows. If two keys have the same hash the later one wins: it is a cache.
    "CREATE TABLE cache (
        hash bigint PRIMARY KEY,
        expires bigint,
        key bytea NOT NULL,
        body bytea NOT NULL
    );
    CREATE INDEX cache_expires ON cache (expires) WHERE expires IS NOT NULL;"
        .to_owned()
}

fn inbox(_: u32) -> String {
    "CREATE TABLE inbox (
        id uuid PRIMARY KEY,
        at bigint NOT NULL,
        tenant text COLLATE \"C\" NOT NULL,
        name text COLLATE \"C\" NOT NULL,
        body bytea NOT NULL,
        reply bytea
    );
    CREATE INDEX inbox_at ON inbox (at);"
        .to_owned()
}

/// Checksums of items and of cached results. A worker of the previous version may still write without them. A trigger drops
/// the checksum of an item that it changes, so the change does not look like damage. Results that it caches are not found,
/// which only costs another run of the node.
fn checksums(_: u32) -> String {
    "ALTER TABLE item ADD COLUMN checksum integer;
    ALTER TABLE cache ADD COLUMN checksum integer;
    CREATE FUNCTION item_unsealed() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN NEW.checksum := NULL; RETURN NEW; END $$;
    CREATE TRIGGER item_unsealed BEFORE UPDATE ON item FOR EACH ROW
        WHEN (NEW.value IS DISTINCT FROM OLD.value AND NEW.checksum IS NOT DISTINCT FROM OLD.checksum)
        EXECUTE FUNCTION item_unsealed();"
        .to_owned()
}

/// Until when the owner of a running thread holds it, in milliseconds; null if the owner did not say. Not indexed, because it
/// changes while a run goes on.
fn leases(_: u32) -> String {
    "ALTER TABLE thread ADD COLUMN lease bigint;".to_owned()
}

/// Runs and assistants. What a caller may write is stored as bytes, also the tenant of an assistant, because nothing checks that
/// it is a name.
///
/// The two functions are volatile, so under READ COMMITTED each statement inside them sees what was committed before it, also
/// what was committed while the function waited for its lock. A single statement would not: it sees the tables as of its start.
fn registry(_: u32) -> String {
    "-- `number` is the order in which runs were created. `name` is that of the thread.
    CREATE TABLE run (
        number bigint GENERATED ALWAYS AS IDENTITY,
        created bigint NOT NULL,
        updated bigint NOT NULL,
        due bigint NOT NULL,
        attempts integer NOT NULL,
        status smallint NOT NULL,
        id uuid NOT NULL,
        assistant uuid NOT NULL,
        tenant text COLLATE \"C\" NOT NULL,
        name text COLLATE \"C\" NOT NULL,
        principal bytea NOT NULL,
        request bytea NOT NULL,
        arguments bytea NOT NULL,
        metadata bytea NOT NULL,
        error bytea,
        PRIMARY KEY (tenant, id)
    );
    CREATE INDEX run_active ON run (tenant, name, number) WHERE status < 2;
    CREATE INDEX run_of_thread ON run (tenant, name, number);
    CREATE INDEX run_of_tenant ON run (tenant, number);
    CREATE INDEX run_due ON run (due) WHERE status = 0;

    -- `outcome` is 0 if the run was stored, 1 if one with its id exists, 2 if its thread is busy. `ahead` are the active runs of
    -- the thread, oldest first.
    CREATE FUNCTION create_run(
        new_tenant text, new_id uuid, new_name text, new_assistant uuid, new_principal bytea,
        new_created bigint, new_due bigint, new_request bytea, new_arguments bytea, new_metadata bytea,
        reject_if_busy boolean, OUT outcome integer, OUT ahead uuid[]) LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtextextended(
            current_schema()::text || '/run/' || new_tenant || '/' || new_name, 0));
        IF EXISTS (SELECT FROM run r WHERE r.tenant = new_tenant AND r.id = new_id) THEN
            outcome := 1;
            RETURN;
        END IF;
        ahead := ARRAY(
            SELECT r.id FROM run r
            WHERE r.tenant = new_tenant AND r.name = new_name AND r.status < 2
            ORDER BY r.number);
        IF reject_if_busy AND cardinality(ahead) > 0 THEN
            outcome := 2;
            RETURN;
        END IF;
        INSERT INTO run (created, updated, due, attempts, status, id, assistant, tenant, name,
            principal, request, arguments, metadata)
        VALUES (new_created, new_created, new_due, 0, 0, new_id, new_assistant, new_tenant, new_name,
            new_principal, new_request, new_arguments, new_metadata)
        ON CONFLICT (tenant, id) DO NOTHING;
        IF FOUND THEN
            outcome := 0;
        ELSE
            outcome := 1;
        END IF;
    END $$;

    CREATE FUNCTION take_runs(now_ms bigint, rows_max bigint) RETURNS SETOF run LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtextextended(current_schema()::text || '/take', 0));
        RETURN QUERY UPDATE run AS r SET status = 1, attempts = r.attempts + 1, updated = now_ms
            FROM (SELECT p.tenant, p.id FROM run p
                  WHERE p.status = 0 AND p.due <= now_ms AND NOT EXISTS (
                      SELECT FROM run o
                      WHERE o.tenant = p.tenant AND o.name = p.name AND o.status < 2
                        AND (o.status = 1 OR (o.due <= now_ms AND o.number < p.number)))
                  ORDER BY p.number LIMIT rows_max) AS oldest
            WHERE r.tenant = oldest.tenant AND r.id = oldest.id AND r.status = 0
            RETURNING r.*;
    END $$;

    -- `version` is the current version, `newest` the highest number that a version has.
    CREATE TABLE assistant (
        created bigint NOT NULL,
        version bigint NOT NULL,
        newest bigint NOT NULL,
        id uuid NOT NULL,
        tenant bytea NOT NULL,
        PRIMARY KEY (tenant, id)
    );

    -- Goes with its assistant, also a version that is being added while the assistant is deleted.
    CREATE TABLE assistant_version (
        created bigint NOT NULL,
        updated bigint NOT NULL,
        version bigint NOT NULL,
        id uuid NOT NULL,
        tenant bytea NOT NULL,
        graph bytea NOT NULL,
        name bytea NOT NULL,
        description bytea NOT NULL,
        config bytea NOT NULL,
        context bytea NOT NULL,
        metadata bytea NOT NULL,
        PRIMARY KEY (tenant, id, version),
        FOREIGN KEY (tenant, id) REFERENCES assistant ON DELETE CASCADE
    );"
    .to_owned()
}

/// How long a thread is kept after its row in the list last changed, and what happens then; null without a limit. Only threads
/// with a lifetime are in the index of ends. It adds numbers of type `numeric`, because a sum of two large integers would be out of range, and the
/// commit that writes the row would fail.
fn lifetimes(_: u32) -> String {
    "ALTER TABLE listing ADD COLUMN lifetime_ms bigint, ADD COLUMN at_end smallint;
    CREATE INDEX listing_ends ON listing ((updated::numeric + lifetime_ms::numeric))
        WHERE lifetime_ms IS NOT NULL;
    CREATE INDEX listing_created ON listing (tenant, created DESC, name);"
        .to_owned()
}

/// Crons. A tenant has few of them, so a list reads them all. Only crons that will fire are in the index. The tenant is stored as
/// that of an assistant is.
fn crons(_: u32) -> String {
    "-- `thread` is the name of the thread; null if each run has a thread of its own.
    CREATE TABLE cron (
        created bigint NOT NULL,
        updated bigint NOT NULL,
        next bigint,
        ends bigint,
        enabled boolean NOT NULL,
        id uuid NOT NULL,
        assistant uuid NOT NULL,
        thread text COLLATE \"C\",
        tenant bytea NOT NULL,
        principal bytea NOT NULL,
        schedule bytea NOT NULL,
        zone bytea,
        metadata bytea NOT NULL,
        arguments bytea NOT NULL,
        error bytea,
        PRIMARY KEY (tenant, id)
    );
    CREATE INDEX cron_next ON cron (next) WHERE next IS NOT NULL;"
        .to_owned()
}

/// Runs that are stored as running, if their thread is free. A program that is older than this calls the function without
/// `may_begin`.
fn beginnings(_: u32) -> String {
    "
    -- `outcome` is 0 if the run was stored, 1 if one with its id exists, 2 if its thread is busy, 3 if it was stored as running.
    -- `ahead` are the active runs of the thread, oldest first.
    CREATE FUNCTION create_run(
        new_tenant text, new_id uuid, new_name text, new_assistant uuid, new_principal bytea,
        new_created bigint, new_due bigint, new_request bytea, new_arguments bytea, new_metadata bytea,
        reject_if_busy boolean, may_begin boolean, OUT outcome integer, OUT ahead uuid[])
        LANGUAGE plpgsql AS $$
    DECLARE
        begins boolean;
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtextextended(
            current_schema()::text || '/run/' || new_tenant || '/' || new_name, 0));
        IF EXISTS (SELECT FROM run r WHERE r.tenant = new_tenant AND r.id = new_id) THEN
            outcome := 1;
            RETURN;
        END IF;
        ahead := ARRAY(
            SELECT r.id FROM run r
            WHERE r.tenant = new_tenant AND r.name = new_name AND r.status < 2
            ORDER BY r.number);
        IF reject_if_busy AND cardinality(ahead) > 0 THEN
            outcome := 2;
            RETURN;
        END IF;
        begins := may_begin AND cardinality(ahead) = 0;
        INSERT INTO run (created, updated, due, attempts, status, id, assistant, tenant, name,
            principal, request, arguments, metadata)
        VALUES (new_created, new_created, new_due, begins::integer, begins::integer, new_id, new_assistant,
            new_tenant, new_name, new_principal, new_request, new_arguments, new_metadata)
        ON CONFLICT (tenant, id) DO NOTHING;
        IF NOT FOUND THEN
            outcome := 1;
        ELSIF begins THEN
            outcome := 3;
        ELSE
            outcome := 0;
        END IF;
    END $$;

    CREATE OR REPLACE FUNCTION create_run(
        new_tenant text, new_id uuid, new_name text, new_assistant uuid, new_principal bytea,
        new_created bigint, new_due bigint, new_request bytea, new_arguments bytea, new_metadata bytea,
        reject_if_busy boolean, OUT outcome integer, OUT ahead uuid[]) LANGUAGE sql AS $$
        SELECT outcome, ahead FROM create_run(new_tenant, new_id, new_name, new_assistant, new_principal,
            new_created, new_due, new_request, new_arguments, new_metadata, reject_if_busy, false)
    $$;"
        .to_owned()
}

/// The outbox, the keys of callers, and the audit logs.
///
/// Deliveries are numbered in the order in which they are stored, and have nothing to do with the row of their run: they outlive it.
/// Only pending deliveries (status 0) are in the index that is read to send them, and only confirmed ones (status 1) in the one
/// that is read to delete them.
fn outbox(_: u32) -> String {
    "-- `name` is that of the thread.
    CREATE TABLE delivery (
        number bigint GENERATED ALWAYS AS IDENTITY,
        at bigint NOT NULL,
        updated bigint NOT NULL,
        due bigint NOT NULL,
        attempts integer NOT NULL,
        status smallint NOT NULL,
        id uuid NOT NULL,
        run uuid NOT NULL,
        tenant text COLLATE \"C\" NOT NULL,
        name text COLLATE \"C\" NOT NULL,
        address bytea NOT NULL,
        event bytea NOT NULL,
        error bytea NOT NULL,
        body bytea NOT NULL
    );
    CREATE INDEX delivery_due ON delivery (due, number) WHERE status = 0;
    CREATE INDEX delivery_delivered ON delivery (updated) WHERE status = 1;
    -- While the table has no statistics, all indexes with a column of the condition look equally good to the planner, and it takes
    -- the newest. So the order matters, and the column that tells most comes first.
    CREATE INDEX delivery_of_tenant ON delivery (tenant, number);
    CREATE INDEX delivery_of_run ON delivery (run, tenant, number);
    ALTER TABLE delivery ADD PRIMARY KEY (id, tenant);

    -- The id of an API key is unique over all tenants: it is looked up before the tenant is known.
    CREATE TABLE api_key (
        number bigint GENERATED ALWAYS AS IDENTITY,
        created bigint NOT NULL,
        expires bigint,
        permissions smallint NOT NULL,
        restricted boolean NOT NULL,
        id uuid PRIMARY KEY,
        tenant bytea NOT NULL,
        principal bytea NOT NULL,
        name bytea NOT NULL,
        hash bytea NOT NULL
    );
    CREATE INDEX api_key_of_tenant ON api_key (tenant, number);

    CREATE TABLE request_key (
        at bigint NOT NULL,
        expires bigint NOT NULL,
        tenant bytea NOT NULL,
        principal bytea NOT NULL,
        key bytea NOT NULL,
        fingerprint bytea NOT NULL,
        PRIMARY KEY (tenant, principal, key)
    );
    CREATE INDEX request_key_expires ON request_key (expires);

    CREATE TABLE audit (
        seq bigint NOT NULL,
        at bigint NOT NULL,
        tenant bytea NOT NULL,
        principal bytea NOT NULL,
        action bytea NOT NULL,
        resource bytea NOT NULL,
        detail bytea NOT NULL,
        previous bytea NOT NULL,
        hash bytea NOT NULL,
        PRIMARY KEY (tenant, seq)
    );

    CREATE TABLE audit_head (
        seq bigint NOT NULL,
        tenant bytea PRIMARY KEY,
        hash bytea NOT NULL
    );

    -- As `take_runs` above, but none of the tenants that have as many running as they may.
    CREATE FUNCTION take_runs(now_ms bigint, rows_max bigint, skipped text[]) RETURNS SETOF run LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtextextended(current_schema()::text || '/take', 0));
        RETURN QUERY UPDATE run AS r SET status = 1, attempts = r.attempts + 1, updated = now_ms
            FROM (SELECT p.tenant, p.id FROM run p
                  WHERE p.status = 0 AND p.due <= now_ms AND p.tenant <> ALL (skipped) AND NOT EXISTS (
                      SELECT FROM run o
                      WHERE o.tenant = p.tenant AND o.name = p.name AND o.status < 2
                        AND (o.status = 1 OR (o.due <= now_ms AND o.number < p.number)))
                  ORDER BY p.number LIMIT rows_max) AS oldest
            WHERE r.tenant = oldest.tenant AND r.id = oldest.id AND r.status = 0
            RETURNING r.*;
    END $$;

    -- For the same reason as that of `delivery`: statements that were planned while the table was empty would look for a run among
    -- all of its tenant.
    ALTER TABLE run DROP CONSTRAINT run_pkey, ADD PRIMARY KEY (tenant, id);"
    .to_owned()
}

/// When the last tick of a cron was due that made a run. Those of earlier ticks are not known.
fn ticks(_: u32) -> String {
    "ALTER TABLE cron ADD COLUMN ticked bigint;".to_owned()
}

/// Pending deliveries by tenant: with this index, those of a tenant that has enough in progress are not read to find those of others.
/// And requests to workers by tenant, so that the erasure of a tenant does not read all of them for each batch.
fn waiting(_: u32) -> String {
    "CREATE INDEX delivery_waiting ON delivery (tenant, due, number) WHERE status = 0;
    CREATE INDEX inbox_of_tenant ON inbox (tenant);"
        .to_owned()
}

/// Number of the first schema whose items have checksums.
const CHECKSUMS: u32 = 5;

/// Migrates the database to the newest schema. Returns its number of partitions.
///
/// Each migration is one transaction that also writes its number, and it holds a lock until the transaction ends. A process
/// that dies in the middle leaves the previous schema; if several start at once, one migrates and the others find it done.
pub(crate) async fn migrate(pool: &Pool, options: &Options) -> Result<u32, Fault> {
    let mut alone = pool.alone().await?;
    let partitions = loop {
        let transaction = alone.begin(IsolationLevel::ReadCommitted).await?;
        // PostgreSQL's notices about `IF NOT EXISTS` are noise.
        transaction
            .batch_execute(
                "SET LOCAL client_min_messages = warning; SET LOCAL statement_timeout = 0",
            )
            .await?;
        check_server(&transaction).await?;
        let is_newest = step(&transaction, options).await?;
        let partitions = partitions(&transaction).await?;
        transaction.commit().await?;
        if is_newest {
            break partitions;
        }
    };
    alone.give_back();
    Ok(partitions)
}

/// Runs one migration, if there is one to run. Returns whether the schema is already the newest.
async fn step(transaction: &Transaction<'_>, options: &Options) -> Result<bool, Fault> {
    if version(transaction, options).await? == Some(KNOWN) {
        return Ok(true);
    }
    let schema = &options.schema;
    transaction
        .execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('superstep/' || $1, 0))",
            &[schema],
        )
        .await?;
    let version = match version(transaction, options).await? {
        Some(version) => version,
        None => begin(transaction, options).await?,
    };
    let partitions = partitions(transaction).await?;
    let Some(migration) = MIGRATIONS.get(version as usize) else {
        return Ok(true);
    };
    transaction.batch_execute(&migration(partitions)).await?;
    if version + 1 == CHECKSUMS {
        store::fill_checksums(transaction).await?;
    }
    let next = i64::from(version) + 1;
    transaction
        .execute("UPDATE meta SET version = $1", &[&next])
        .await?;
    Ok(false)
}

/// Returns the schema's number; `None` if the schema does not exist or is empty.
async fn version(transaction: &Transaction<'_>, options: &Options) -> Result<Option<u32>, Fault> {
    let schema = &options.schema;
    let tables = transaction
        .query_one(
            "SELECT count(*), count(*) FILTER (WHERE tablename = 'meta')
             FROM pg_catalog.pg_tables WHERE schemaname = $1",
            &[schema],
        )
        .await?;
    let (tables, ours): (i64, i64) = (tables.get(0), tables.get(1));
    if tables == 0 {
        return Ok(None);
    }
    let foreign = || PostgresError::Foreign {
        schema: schema.clone(),
    };
    if ours == 0 {
        return Err(foreign().into());
    }
    let found = transaction
        .query_opt("SELECT version FROM meta WHERE program = 'superstep'", &[])
        .await
        .map_err(|_| foreign())?;
    let found: i64 = found.ok_or_else(foreign)?.get(0);
    let found = u32::try_from(found).unwrap_or(u32::MAX);
    if found > KNOWN {
        return Err(CheckpointError::NewerDatabase {
            found,
            known: KNOWN,
        }
        .into());
    }
    Ok(Some(found))
}

async fn partitions(transaction: &Transaction<'_>) -> Result<u32, Fault> {
    let row = transaction
        .query_one("SELECT partitions FROM meta", &[])
        .await?;
    Ok(u32::try_from(row.get::<_, i64>(0)).unwrap_or(u32::MAX))
}

/// Creates the empty schema, with its number.
async fn begin(transaction: &Transaction<'_>, options: &Options) -> Result<u32, Fault> {
    let sql = format!(
        "CREATE SCHEMA IF NOT EXISTS \"{}\";
         CREATE TABLE meta (program text NOT NULL, version bigint NOT NULL, partitions bigint NOT NULL);
         INSERT INTO meta (program, version, partitions) VALUES ('superstep', 0, {});",
        options.schema,
        options.partitions.max(1)
    );
    transaction.batch_execute(&sql).await?;
    Ok(0)
}

async fn check_server(transaction: &Transaction<'_>) -> Result<(), Fault> {
    let row = transaction
        .query_one(
            "SELECT current_setting('server_version_num')::bigint, current_setting('server_version')",
            &[],
        )
        .await?;
    if row.get::<_, i64>(0) < SERVER_MIN.0 {
        return Err(PostgresError::OldServer {
            found: row.get(1),
            needed: SERVER_MIN.1,
        }
        .into());
    }
    Ok(())
}

/// Refuses a name that would need quoting, so no statement has to care.
pub(crate) fn check_name(schema: &str) -> Result<(), PostgresError> {
    let is_letter = |b: u8| b.is_ascii_lowercase() || b == b'_';
    let mut bytes = schema.bytes();
    let begins = bytes.next().is_some_and(is_letter);
    let goes_on = bytes.all(|b| is_letter(b) || b.is_ascii_digit());
    if begins && goes_on && schema.len() <= SCHEMA_BYTES_MAX {
        return Ok(());
    }
    Err(PostgresError::SchemaName {
        schema: schema.chars().take(SCHEMA_BYTES_MAX).collect(),
    })
}

const KNOWN: u32 = MIGRATIONS.len() as u32;
const SERVER_MIN: (i64, &str) = (140_000, "14");
const SCHEMA_BYTES_MAX: usize = 63;
