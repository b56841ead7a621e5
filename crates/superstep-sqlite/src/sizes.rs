//! Reports of how much threads take.

use rusqlite::{Connection, Row, ToSql};
use superstep_core::ThreadId;
use superstep_core::checkpoint::{SizeGroup, SizeQuery, SizeRow, StoredSize};

use crate::fault::Fault;
use crate::list::PAGE_MAX;
use crate::read::count;

/// Sums up how much threads take.
pub(crate) fn report(connection: &Connection, query: &SizeQuery) -> Result<Vec<SizeRow>, Fault> {
    let thread = query.thread.as_ref();
    let tenant = query.tenant.as_deref();
    if thread.is_some_and(|thread| tenant.is_some_and(|tenant| tenant != thread.tenant())) {
        return Ok(Vec::new());
    }
    let tenant = thread.map(ThreadId::tenant).or(tenant);
    let name = thread.map(ThreadId::name);
    let limit = query.page.limit.min(PAGE_MAX);
    let mut params: Vec<&dyn ToSql> = vec![&limit, &query.page.offset];
    let mut chosen = String::from(match query.by {
        SizeGroup::Tenant => "SELECT l.thread, n.name AS tenant, NULL AS graph, NULL AS name",
        SizeGroup::Graph => "SELECT l.thread, n.name AS tenant, l.graph, NULL AS name",
        SizeGroup::Thread => "SELECT l.thread, n.name AS tenant, l.graph, t.name",
    });
    chosen.push_str(
        " FROM line l JOIN tenant n ON n.id = l.tenant JOIN thread t ON t.id = l.thread WHERE true",
    );
    if let Some(tenant) = &tenant {
        params.push(tenant);
        chosen.push_str(" AND n.name = ?3");
    }
    if let Some(name) = &name {
        params.push(name);
        chosen.push_str(" AND t.name = ?4");
    }
    let mut select = connection.prepare_cached(&REPORT.replace("@chosen", &chosen))?;
    let mut rows = select.query(params.as_slice())?;
    let mut report = Vec::new();
    while let Some(row) = rows.next()? {
        report.push(size_row(row)?);
    }
    Ok(report)
}

fn size_row(row: &Row<'_>) -> Result<SizeRow, Fault> {
    let tenant: String = row.get(0)?;
    let name: Option<String> = row.get(2)?;
    let thread = name.map(|name| ThreadId::of_tenant(&tenant, &name));
    let size = |first| -> rusqlite::Result<StoredSize> {
        Ok(StoredSize {
            count: count(row, first)?,
            bytes: count(row, first + 1)?,
        })
    };
    Ok(SizeRow {
        thread: thread.transpose()?,
        tenant,
        graph: row.get(1)?,
        threads: count(row, 3)?,
        entries: size(4)?,
        snapshots: size(6)?,
        records: size(8)?,
        interrupts: size(10)?,
    })
}

/// The length of a body is in the header of its row, so no body is read.
const REPORT: &str = "
    WITH chosen AS (@chosen),
    parts AS (
        SELECT 0 AS kind, tenant, graph, name, count(*) AS bodies, 0 AS bytes
        FROM chosen GROUP BY tenant, graph, name
        UNION ALL
        SELECT 1, c.tenant, c.graph, c.name, count(*), sum(length(b.body))
        FROM chosen c JOIN log b ON b.place BETWEEN c.thread << 32 AND c.thread << 32 | 4294967295
        GROUP BY c.tenant, c.graph, c.name
        UNION ALL
        SELECT 2, c.tenant, c.graph, c.name, count(*), sum(length(b.body))
        FROM chosen c JOIN snapshot b ON b.place BETWEEN c.thread << 32 AND c.thread << 32 | 4294967295
        GROUP BY c.tenant, c.graph, c.name
        UNION ALL
        SELECT 3, c.tenant, c.graph, c.name, count(*), sum(length(b.body))
        FROM chosen c JOIN record b ON b.thread = c.thread GROUP BY c.tenant, c.graph, c.name
        UNION ALL
        SELECT 4, c.tenant, c.graph, c.name, count(*), sum(length(b.body))
        FROM chosen c JOIN interrupt b ON b.thread = c.thread GROUP BY c.tenant, c.graph, c.name)
    SELECT tenant, graph, name,
        coalesce(sum(bodies) FILTER (WHERE kind = 0), 0),
        coalesce(sum(bodies) FILTER (WHERE kind = 1), 0), coalesce(sum(bytes) FILTER (WHERE kind = 1), 0),
        coalesce(sum(bodies) FILTER (WHERE kind = 2), 0), coalesce(sum(bytes) FILTER (WHERE kind = 2), 0),
        coalesce(sum(bodies) FILTER (WHERE kind = 3), 0), coalesce(sum(bytes) FILTER (WHERE kind = 3), 0),
        coalesce(sum(bodies) FILTER (WHERE kind = 4), 0), coalesce(sum(bytes) FILTER (WHERE kind = 4), 0)
    FROM parts GROUP BY tenant, graph, name
    ORDER BY sum(bytes) DESC, tenant, graph, name LIMIT ?1 OFFSET ?2";
