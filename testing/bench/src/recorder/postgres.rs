//! Recording in PostgreSQL, where every row knows the transaction it was written in.

use anyhow::Context;
use serde_json::Value as Json;
use services::database::ask;
use superstep::Runtime;
use superstep_postgres::{Options, Postgres};

use super::{Commit, Keys, change};
use crate::ours::chain;

pub(super) fn record(tokio: &tokio::runtime::Runtime, url: &str) -> anyhow::Result<Vec<Commit>> {
    let open = |schema: &str| {
        let mut options = Options::default();
        options.schema = schema.to_owned();
        tokio.block_on(Postgres::connect_with(url, options))
    };
    // The floor's; ours only makes its tables.
    drop(open("superstep")?);

    let (graph, runtime) = (chain::graph()?, Runtime::new(open(SCHEMA)?));
    tokio.block_on(chain::one(&runtime, &graph))?;
    let keys = keys(url)?;
    ask(url, RECORDER)?;
    for table in keys.keys() {
        let on = format!("AFTER INSERT OR UPDATE OR DELETE ON {SCHEMA}.{table}");
        let what = format!("FOR EACH ROW EXECUTE FUNCTION {SCHEMA}.record('{table}')");
        ask(url, &format!("CREATE TRIGGER recorded {on} {what}"))?;
    }
    tokio.block_on(chain::one(&runtime, &graph))?;
    read(url, &keys)
}

/// The tables that are not parts of others, and their keys.
fn keys(url: &str) -> anyhow::Result<Keys> {
    let found = ask(
        url,
        &format!(
            "SELECT coalesce(jsonb_object_agg(t.relname, (
                 SELECT coalesce(jsonb_agg(a.attname), '[]') FROM pg_index i
                 JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = ANY (i.indkey)
                 WHERE i.indrelid = t.oid AND i.indisprimary)), '{{}}')
             FROM pg_class t WHERE t.relnamespace = '{SCHEMA}'::regnamespace
                 AND t.relkind IN ('r', 'p') AND NOT t.relispartition"
        ),
    )?;
    let found: Json = serde_json::from_str(&found)?;
    let tables = found.as_object().context("tables by name")?;
    let names = |key: &Json| {
        let names = key.as_array().into_iter().flatten();
        names.filter_map(Json::as_str).map(str::to_owned).collect()
    };
    Ok(tables
        .iter()
        .map(|(table, key)| (table.clone(), names(key)))
        .collect())
}

fn read(url: &str, keys: &Keys) -> anyhow::Result<Vec<Commit>> {
    let found = ask(
        url,
        &format!(
            "SELECT jsonb_agg(changes ORDER BY first) FROM (
                 SELECT min(n) AS first, jsonb_agg(jsonb_build_array(tbl, old, new) ORDER BY n) AS changes
                 FROM {SCHEMA}.recorded GROUP BY transaction) AS commits"
        ),
    )?;
    let commits: Vec<Vec<(String, Json, Json)>> =
        serde_json::from_str(&found).context("changes by transaction")?;
    let changes = |commit: &Vec<(String, Json, Json)>| {
        let changes = commit.iter();
        changes
            .map(|(table, old, new)| change(table, old, new, keys))
            .collect()
    };
    Ok(commits.iter().map(changes).collect())
}

const SCHEMA: &str = "recorded";
const RECORDER: &str = "
    CREATE TABLE recorded.recorded (
        n bigint GENERATED ALWAYS AS IDENTITY, transaction text, tbl text, old jsonb, new jsonb);
    CREATE FUNCTION recorded.record() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO recorded.recorded (transaction, tbl, old, new)
        VALUES (pg_current_xact_id()::text, TG_ARGV[0], to_jsonb(OLD), to_jsonb(NEW));
        RETURN NULL;
    END $$";
