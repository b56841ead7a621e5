//! Reports of how much threads take.

use superstep_core::ThreadId;
use superstep_core::checkpoint::{SizeGroup, SizeQuery, SizeRow, StoredSize};
use tokio_postgres::types::ToSql;
use tokio_postgres::{IsolationLevel, Row};

use crate::fault::Fault;
use crate::list::{is_tenant, limits};
use crate::pool::Pool;
use crate::read::count;

/// Sums up how much threads take.
pub(crate) async fn report(pool: &Pool, query: &SizeQuery) -> Result<Vec<SizeRow>, Fault> {
    let thread = query.thread.as_ref();
    let tenant = query.tenant.as_deref();
    let is_elsewhere = |thread: &ThreadId| tenant.is_some_and(|tenant| tenant != thread.tenant());
    if tenant.is_some_and(|tenant| !is_tenant(tenant)) || thread.is_some_and(is_elsewhere) {
        return Ok(Vec::new());
    }
    let tenant = thread.map(ThreadId::tenant).or(tenant);
    let name = thread.map(ThreadId::name);
    let (limit, offset) = limits(query.page);
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![&limit, &offset];
    let mut chosen = String::from(match query.by {
        SizeGroup::Tenant => {
            "SELECT l.thread, l.tenant, NULL::bytea AS graph, NULL::text COLLATE \"C\" AS name"
        }
        SizeGroup::Graph => "SELECT l.thread, l.tenant, l.graph, NULL::text COLLATE \"C\" AS name",
        SizeGroup::Thread => "SELECT l.thread, l.tenant, l.graph, l.name",
    });
    chosen.push_str(" FROM listing l");
    if let Some(tenant) = &tenant {
        params.push(tenant);
        chosen.push_str(" WHERE l.tenant = $3");
    }
    if let Some(name) = &name {
        params.push(name);
        // By the key of `thread`: the list has no index by name.
        chosen.push_str(
            " AND l.thread = (SELECT id FROM thread WHERE tenant = $3 AND name = $4 AND status <> 6)",
        );
    }
    let sql = REPORT.replace("@chosen", &chosen);
    let rows = match thread {
        Some(_) => pool.read(&sql, &params).await?,
        None => read_long(pool, &sql, &params).await?,
    };
    rows.iter().map(size_row).collect()
}

/// Reads what takes longer than other requests may, with plans for whole tables. Cancels the statement if the caller stops waiting.
async fn read_long(
    pool: &Pool,
    sql: &str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, Fault> {
    let mut alone = pool.alone().await?;
    let cancel = alone.cancel_on_drop();
    let transaction = alone.begin(IsolationLevel::ReadCommitted).await?;
    transaction
        .batch_execute(
            "SET LOCAL statement_timeout = 0; SET LOCAL plan_cache_mode = auto;
             SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on",
        )
        .await?;
    let rows = transaction.query(sql, params).await?;
    transaction.commit().await?;
    cancel.disarm();
    alone.give_back();
    Ok(rows)
}

fn size_row(row: &Row) -> Result<SizeRow, Fault> {
    let tenant: String = row.get(0);
    let graph: Option<&[u8]> = row.get(1);
    let graph = graph.map(|graph| String::from_utf8_lossy(graph).into_owned());
    let name: Option<&str> = row.get(2);
    let thread = name.map(|name| ThreadId::of_tenant(&tenant, name));
    let size = |first| StoredSize {
        count: count(row, first),
        bytes: count(row, first + 1),
    };
    Ok(SizeRow {
        thread: thread.transpose()?,
        tenant,
        graph,
        threads: count(row, 3),
        entries: size(4),
        snapshots: size(6),
        records: size(8),
        interrupts: size(10),
    })
}

/// The length of a body is in its row, also if the body is stored apart, so no body is read.
const REPORT: &str = "
    WITH chosen AS (@chosen),
    parts AS (
        SELECT 0 AS kind, tenant, graph, name, count(*) AS bodies, 0::int8 AS bytes
        FROM chosen GROUP BY tenant, graph, name
        UNION ALL
        SELECT 1, c.tenant, c.graph, c.name, count(*), sum(octet_length(b.body))
        FROM chosen c JOIN log b ON b.thread = c.thread GROUP BY c.tenant, c.graph, c.name
        UNION ALL
        SELECT 2, c.tenant, c.graph, c.name, count(*), sum(octet_length(b.body))
        FROM chosen c JOIN snapshot b ON b.thread = c.thread GROUP BY c.tenant, c.graph, c.name
        UNION ALL
        SELECT 3, c.tenant, c.graph, c.name, count(*), sum(octet_length(b.body))
        FROM chosen c JOIN record b ON b.thread = c.thread GROUP BY c.tenant, c.graph, c.name
        UNION ALL
        SELECT 4, c.tenant, c.graph, c.name, count(*), sum(octet_length(b.body))
        FROM chosen c JOIN interrupt b ON b.thread = c.thread GROUP BY c.tenant, c.graph, c.name)
    SELECT tenant, graph, name,
        coalesce(sum(bodies) FILTER (WHERE kind = 0), 0)::int8,
        coalesce(sum(bodies) FILTER (WHERE kind = 1), 0)::int8, coalesce(sum(bytes) FILTER (WHERE kind = 1), 0)::int8,
        coalesce(sum(bodies) FILTER (WHERE kind = 2), 0)::int8, coalesce(sum(bytes) FILTER (WHERE kind = 2), 0)::int8,
        coalesce(sum(bodies) FILTER (WHERE kind = 3), 0)::int8, coalesce(sum(bytes) FILTER (WHERE kind = 3), 0)::int8,
        coalesce(sum(bodies) FILTER (WHERE kind = 4), 0)::int8, coalesce(sum(bytes) FILTER (WHERE kind = 4), 0)::int8
    FROM parts GROUP BY tenant, graph, name
    ORDER BY sum(bytes) DESC, tenant, graph, name LIMIT $1 OFFSET $2";
