//! The audit log over HTTP, for a tenant's administrators.

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde_json::{Value as Json, json};
use superstep::registry::AuditEntry;

use crate::App;
use crate::caller::{Caller, QueryFields};
use crate::error::{ApiError, ApiResult};
use crate::wire;

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/superstep/audit", get(list))
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    query: QueryFields,
) -> ApiResult<JsonBody<Json>> {
    if app.audit.is_none() {
        return Err(ApiError::not_found("This server keeps no audit log"));
    }
    caller.refuse_restricted()?;
    let after = match query.text("after") {
        None => 0,
        Some(text) => text
            .parse::<u64>()
            .ok()
            // What a store can count to.
            .filter(|after| i64::try_from(*after).is_ok())
            .ok_or_else(|| ApiError::invalid("`after` is not a number"))?,
    };
    let limit = query.number("limit")?.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        let why = format!("`limit` is not between 1 and {LIMIT_MAX}");
        return Err(ApiError::invalid(why));
    }
    let registry = app.registry();
    let (entries, head) = tokio::try_join!(
        registry.audit(&caller.tenant, after, limit),
        registry.audit_head(&caller.tenant)
    )?;
    Ok(JsonBody(json!({
        "entries": entries.iter().map(shown).collect::<Vec<_>>(),
        "head": { "seq": head.seq, "hash": hex(&head.hash) },
    })))
}

fn shown(entry: &AuditEntry) -> Json {
    json!({
        "seq": entry.seq,
        "at": wire::time(entry.at),
        "principal": entry.principal,
        "action": entry.action,
        "resource": entry.resource,
        "detail": serde_json::from_str::<Json>(&entry.detail).unwrap_or_default(),
        "previous": hex(&entry.previous),
        "hash": hex(&entry.hash),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const LIMIT: u32 = 100;
const LIMIT_MAX: u32 = 1_000;
