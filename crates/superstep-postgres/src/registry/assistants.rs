//! Assistants and their versions: the tables `assistant` and `assistant_version`.
//!
//! A version is written once and goes with its assistant; only the time at which it was last made the current one changes. The
//! row of the assistant names the current version. Each writer updates or locks that row first, so the writers of one assistant
//! are serialized.

use superstep_core::checkpoint::Page;
use superstep_core::registry::{
    Assistant, AssistantChange, AssistantQuery, CreatedAssistant, NewAssistant,
};
use superstep_core::{AssistantId, Timestamp};
use tokio_postgres::types::ToSql;
use tokio_postgres::{IsolationLevel, Row, Transaction};

use super::{json, small_number};
use crate::fault::Fault;
use crate::id::Id;
use crate::list::limits;
use crate::pool::{Params, Pool};
use crate::read::text;

/// Stores an assistant unless one exists under its id.
pub(super) async fn create(pool: &Pool, new: &NewAssistant) -> Result<CreatedAssistant, Fault> {
    let first = new.first_version();
    let row = VersionColumns::of(&first)?;
    loop {
        if !pool.write(CREATE, &row.params()).await?.is_empty() {
            return Ok(CreatedAssistant::Stored(first.clone()));
        }
        if let Some(found) = find(pool, &new.tenant, new.id).await? {
            return Ok(CreatedAssistant::Exists(found));
        }
        // The assistant that existed was deleted in between, so this one can be stored.
    }
}

/// Returns the current version of an assistant.
pub(super) async fn find(
    pool: &Pool,
    tenant: &str,
    id: AssistantId,
) -> Result<Option<Assistant>, Fault> {
    let params: Params<'_> = &[&tenant.as_bytes(), &Id(id.to_bytes())];
    let rows = pool.read(CURRENT, params).await?;
    rows.first().map(assistant).transpose()
}

/// Returns the assistants that match a query, on all pages and in no order. A tenant has few of them, so they are compared here,
/// by the same rules as everywhere.
pub(super) async fn matching(pool: &Pool, query: &AssistantQuery) -> Result<Vec<Assistant>, Fault> {
    let rows = pool.read(ALL_CURRENT, &[&query.tenant.as_bytes()]).await?;
    let mut found = Vec::new();
    for row in &rows {
        let assistant = assistant(row)?;
        if query.matches(&assistant) {
            found.push(assistant);
        }
    }
    Ok(found)
}

/// Applies a change as a new version.
pub(super) async fn change(
    pool: &Pool,
    tenant: &str,
    id: AssistantId,
    change: &AssistantChange,
    now: Timestamp,
) -> Result<Option<Assistant>, Fault> {
    let (tenant, id) = (tenant.as_bytes(), Id(id.to_bytes()));
    let mut alone = pool.alone().await?;
    let transaction = alone.begin(IsolationLevel::ReadCommitted).await?;
    // Apart from the statement that reads the version: that one must begin after a change that this one waited for.
    let lock = "SELECT newest FROM assistant WHERE tenant = $1 AND id = $2 FOR NO KEY UPDATE";
    let locked = transaction.query_opt(lock, &[&tenant, &id]).await?;
    let changed = match locked {
        Some(row) => {
            let current = transaction.query_one(CURRENT, &[&tenant, &id]).await?;
            let version = small_number(&row, 0).saturating_add(1);
            let changed = change.applied(&assistant(&current)?, version, now);
            add_version(&transaction, &changed).await?;
            Some(changed)
        }
        None => None,
    };
    transaction.commit().await?;
    alone.give_back();
    Ok(changed)
}

async fn add_version(transaction: &Transaction<'_>, version: &Assistant) -> Result<(), Fault> {
    let row = VersionColumns::of(version)?;
    transaction.execute(CHANGE, &row.params()).await?;
    Ok(())
}

/// Returns the versions of an assistant, newest first.
pub(super) async fn versions(
    pool: &Pool,
    tenant: &str,
    id: AssistantId,
    page: Page,
) -> Result<Vec<Assistant>, Fault> {
    let (limit, offset) = limits(page);
    let params: Params<'_> = &[&tenant.as_bytes(), &Id(id.to_bytes()), &limit, &offset];
    let rows = pool.read(VERSIONS, params).await?;
    rows.iter().map(assistant).collect()
}

/// Makes a version the current one. Returns it, if there is one.
pub(super) async fn use_version(
    pool: &Pool,
    tenant: &str,
    id: AssistantId,
    version: u32,
    now: Timestamp,
) -> Result<Option<Assistant>, Fault> {
    let (tenant, id, version) = (tenant.as_bytes(), Id(id.to_bytes()), i64::from(version));
    let params: Params<'_> = &[&tenant, &id, &version, &now.0];
    let rows = pool.write(USE, params).await?;
    rows.first().map(assistant).transpose()
}

/// Deletes an assistant, and its versions with it. Returns whether it existed.
pub(super) async fn delete(pool: &Pool, tenant: &str, id: AssistantId) -> Result<bool, Fault> {
    let sql = "DELETE FROM assistant WHERE tenant = $1 AND id = $2 RETURNING 1";
    let params: Params<'_> = &[&tenant.as_bytes(), &Id(id.to_bytes())];
    Ok(!pool.write(sql, params).await?.is_empty())
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT v.tenant, v.id, v.graph, v.name, v.description, v.config, v.context, v.metadata,
                 v.version, a.created, v.updated
             FROM assistant a JOIN assistant_version v ON v.tenant = a.tenant AND v.id = a.id ",
            $rest
        )
    };
}

const CURRENT: &str = select!("AND v.version = a.version WHERE a.tenant = $1 AND a.id = $2");
const ALL_CURRENT: &str = select!("AND v.version = a.version WHERE a.tenant = $1");
const VERSIONS: &str =
    select!("WHERE a.tenant = $1 AND a.id = $2 ORDER BY v.version DESC LIMIT $3 OFFSET $4");

/// Writes the row of the assistant first, and depending on that the version.
macro_rules! insert_version {
    ($head:literal) => {
        concat!(
            "WITH head AS (",
            $head,
            " RETURNING 1)
             INSERT INTO assistant_version (tenant, id, version, created, updated, graph, name, description,
                 config, context, metadata)
             SELECT $1::bytea, $2::uuid, $3::int8, $4::int8, $4::int8, $5::bytea, $6::bytea, $7::bytea,
                 $8::bytea, $9::bytea, $10::bytea
             FROM head RETURNING 1"
        )
    };
}

const CREATE: &str = insert_version!(
    "INSERT INTO assistant (tenant, id, version, newest, created)
     VALUES ($1::bytea, $2::uuid, $3::int8, $3::int8, $4::int8) ON CONFLICT DO NOTHING"
);
const CHANGE: &str = insert_version!(
    "UPDATE assistant SET version = $3::int8, newest = $3::int8
     WHERE tenant = $1::bytea AND id = $2::uuid"
);

const USE: &str = "
    WITH head AS (
        UPDATE assistant a SET version = $3
        WHERE a.tenant = $1 AND a.id = $2 AND EXISTS (
            SELECT FROM assistant_version v
            WHERE v.tenant = $1 AND v.id = $2 AND v.version = $3)
        RETURNING a.created),
    chosen AS (
        UPDATE assistant_version v SET updated = $4 FROM head
        WHERE v.tenant = $1 AND v.id = $2 AND v.version = $3
        RETURNING v.*)
    SELECT c.tenant, c.id, c.graph, c.name, c.description, c.config, c.context, c.metadata,
        c.version, h.created, c.updated
    FROM chosen c CROSS JOIN head h";

/// A version as parameters of a statement.
struct VersionColumns<'a> {
    tenant: &'a [u8],
    id: Id,
    version: i64,
    at: i64,
    graph: &'a [u8],
    name: &'a [u8],
    description: &'a [u8],
    config: Vec<u8>,
    context: Vec<u8>,
    metadata: Vec<u8>,
}

impl<'a> VersionColumns<'a> {
    /// The version was made when it was last updated, because it is new.
    fn of(version: &'a Assistant) -> Result<Self, Fault> {
        Ok(Self {
            tenant: version.tenant.as_bytes(),
            id: Id(version.id.to_bytes()),
            version: i64::from(version.version),
            at: version.updated.0,
            graph: version.graph.as_bytes(),
            name: version.name.as_bytes(),
            description: version.description.as_bytes(),
            config: serde_json::to_vec(&version.config)?,
            context: serde_json::to_vec(&version.context)?,
            metadata: serde_json::to_vec(&version.metadata)?,
        })
    }

    fn params(&self) -> [&(dyn ToSql + Sync); 10] {
        [
            &self.tenant,
            &self.id,
            &self.version,
            &self.at,
            &self.graph,
            &self.name,
            &self.description,
            &self.config,
            &self.context,
            &self.metadata,
        ]
    }
}

/// Reads a version from the columns that `select!` names.
fn assistant(row: &Row) -> Result<Assistant, Fault> {
    Ok(Assistant {
        tenant: text(row, 0)?,
        id: AssistantId::from_bytes(row.get::<_, Id>(1).0),
        graph: text(row, 2)?,
        name: text(row, 3)?,
        description: text(row, 4)?,
        config: json(row, 5)?,
        context: json(row, 6)?,
        metadata: json(row, 7)?,
        version: small_number(row, 8),
        created: Timestamp(row.get(9)),
        updated: Timestamp(row.get(10)),
    })
}
