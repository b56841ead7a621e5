//! Assistants and their versions.

use rusqlite::{Connection, Row, params};
use superstep_core::checkpoint::Page;
use superstep_core::registry::{
    Assistant, AssistantChange, AssistantQuery, CreatedAssistant, NewAssistant,
};
use superstep_core::{AssistantId, Timestamp};

use super::{json, json_text};
use crate::fault::Fault;
use crate::list::rows_max;
use crate::row;

/// Selects the columns that `assistant` reads. Every version shows when the assistant was created.
macro_rules! select_assistant {
    ($rest:literal) => {
        concat!(
            "SELECT v.id, v.version, v.graph, v.name, v.description, v.config, v.context, v.metadata,
                    a.created, v.updated
             FROM assistant AS a LEFT JOIN assistant_version AS v
                 ON v.tenant = a.tenant AND v.id = a.id ",
            $rest
        )
    };
}

/// Stores an assistant as its version 1, unless one with its id exists.
pub(super) fn create(
    connection: &Connection,
    new: &NewAssistant,
) -> Result<CreatedAssistant, Fault> {
    if let Some(found) = find(connection, &new.tenant, new.id)? {
        return Ok(CreatedAssistant::Exists(found));
    }
    let tenant = row::tenant(connection, &new.tenant)?;
    let first = new.first_version();
    connection
        .prepare_cached(
            "INSERT INTO assistant (tenant, id, version, highest, created)
             VALUES (?1, ?2, ?3, ?3, ?4)",
        )?
        .execute(params![
            tenant,
            first.id.to_bytes(),
            first.version,
            first.created.0,
        ])?;
    put_version(connection, tenant, &first)?;
    Ok(CreatedAssistant::Stored(first))
}

/// Returns the current version of an assistant.
pub(super) fn find(
    connection: &Connection,
    tenant: &str,
    id: AssistantId,
) -> Result<Option<Assistant>, Fault> {
    let mut select = connection.prepare_cached(select_assistant!(
        // An assistant whose version is missing is not left out: its columns are null, which is damage.
        "AND v.version = a.version
         WHERE a.tenant = (SELECT id FROM tenant WHERE name = ?1) AND a.id = ?2"
    ))?;
    let mut rows = select.query(params![tenant, id.to_bytes()])?;
    rows.next()?.map(|row| assistant(row, tenant)).transpose()
}

/// Returns the current versions of all assistants that match a query, in no order.
pub(super) fn matching(
    connection: &Connection,
    query: &AssistantQuery,
) -> Result<Vec<Assistant>, Fault> {
    let mut select = connection.prepare_cached(select_assistant!(
        "AND v.version = a.version
         WHERE a.tenant = (SELECT id FROM tenant WHERE name = ?1)"
    ))?;
    let mut rows = select.query([&query.tenant])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let assistant = assistant(row, &query.tenant)?;
        if query.matches(&assistant) {
            found.push(assistant);
        }
    }
    Ok(found)
}

/// Stores a changed assistant as its next version, and makes that the current one.
pub(super) fn change(
    connection: &Connection,
    tenant: &str,
    id: AssistantId,
    change: &AssistantChange,
    now: Timestamp,
) -> Result<Option<Assistant>, Fault> {
    let Some(current) = find(connection, tenant, id)? else {
        return Ok(None);
    };
    let (number, version): (i64, u32) = connection
        .prepare_cached(
            "UPDATE assistant SET version = highest + 1, highest = highest + 1
             WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2
             RETURNING tenant, version",
        )?
        .query_row(params![tenant, id.to_bytes()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let changed = change.applied(&current, version, now);
    put_version(connection, number, &changed)?;
    Ok(Some(changed))
}

/// Stores a new version.
fn put_version(connection: &Connection, tenant: i64, version: &Assistant) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO assistant_version (tenant, id, version, updated, graph, name, description,
                 config, context, metadata)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            tenant,
            version.id.to_bytes(),
            version.version,
            version.updated.0,
            version.graph,
            version.name,
            version.description,
            json_text(&version.config)?,
            json_text(&version.context)?,
            json_text(&version.metadata)?,
        ])?;
    Ok(())
}

/// Returns the versions of an assistant, newest first.
pub(super) fn versions(
    connection: &Connection,
    tenant: &str,
    id: AssistantId,
    page: Page,
) -> Result<Vec<Assistant>, Fault> {
    let mut select = connection.prepare_cached(select_assistant!(
        "WHERE a.tenant = (SELECT id FROM tenant WHERE name = ?1) AND a.id = ?2
         ORDER BY v.version DESC LIMIT ?3 OFFSET ?4"
    ))?;
    let limit = rows_max(page) as i64;
    let mut rows = select.query(params![tenant, id.to_bytes(), limit, page.offset])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(assistant(row, tenant)?);
    }
    Ok(found)
}

/// Makes a version the current one, if it exists.
pub(super) fn use_version(
    connection: &Connection,
    tenant: &str,
    id: AssistantId,
    version: u32,
    now: Timestamp,
) -> Result<Option<Assistant>, Fault> {
    let marked = connection
        .prepare_cached(
            "UPDATE assistant_version SET updated = ?4
             WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2 AND version = ?3",
        )?
        .execute(params![tenant, id.to_bytes(), version, now.0])?;
    if marked == 0 {
        return Ok(None);
    }
    connection
        .prepare_cached(
            "UPDATE assistant SET version = ?3
             WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2",
        )?
        .execute(params![tenant, id.to_bytes(), version])?;
    find(connection, tenant, id)
}

/// Deletes an assistant with its versions. Returns whether it existed.
pub(super) fn delete(
    connection: &Connection,
    tenant: &str,
    id: AssistantId,
) -> Result<bool, Fault> {
    connection
        .prepare_cached(
            "DELETE FROM assistant_version
             WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2",
        )?
        .execute(params![tenant, id.to_bytes()])?;
    let deleted = connection
        .prepare_cached(
            "DELETE FROM assistant
             WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2",
        )?
        .execute(params![tenant, id.to_bytes()])?;
    Ok(deleted > 0)
}

/// Reads an assistant of this tenant.
fn assistant(row: &Row<'_>, tenant: &str) -> Result<Assistant, Fault> {
    Ok(Assistant {
        tenant: tenant.to_owned(),
        id: AssistantId::from_bytes(row.get(0)?),
        version: row.get(1)?,
        graph: row.get(2)?,
        name: row.get(3)?,
        description: row.get(4)?,
        config: json(row, 5)?,
        context: json(row, 6)?,
        metadata: json(row, 7)?,
        created: Timestamp(row.get(8)?),
        updated: Timestamp(row.get(9)?),
    })
}
