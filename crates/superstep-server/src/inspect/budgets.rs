//! Budgets, as the long-term store has them: what was spent and reserved by a run, a thread or the whole tenant.
//!
//! The limits themselves are part of the program. The store has only those that a person raised.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use superstep::checkpoint::Page;
use superstep::store::{Item, Search, Store};
use superstep::{RunId, Timestamp};

use crate::error::ApiResult;
use crate::wire;

/// Returns a page of a tenant's budgets, most recently changed first.
pub(crate) async fn budgets(
    store: &dyn Store,
    tenant: &str,
    page: Page,
    now: Timestamp,
) -> ApiResult<Vec<Json>> {
    let search = Search {
        prefix: budget_namespace(tenant).into(),
        page,
        ..Search::default()
    };
    let items = store.search(&search, now).await?;
    Ok(items.iter().map(budget).collect())
}

/// Returns the namespace below which agents store the budgets of a tenant: a reserved one, as `superstep-agent` names it.
///
/// Tenant names may contain dots and segments may not. Names never contain colons, so no two names map to the same segment.
pub(crate) fn budget_namespace(tenant: &str) -> [String; 3] {
    let tenant = match tenant {
        "" => ":".to_owned(),
        tenant => tenant.replace('.', ":"),
    };
    ["superstep".to_owned(), "budgets".to_owned(), tenant]
}

/// An account as agents store it. Keys of calls are left out: they are of no use to a reader.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StoredAccount {
    spent: BTreeMap<String, u64>,
    reserved: BTreeMap<String, StoredReservation>,
    raised: BTreeMap<String, u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StoredReservation {
    amounts: BTreeMap<String, u64>,
}

/// Returns an account as clients read it.
pub(crate) fn budget(item: &Item) -> Json {
    let account = StoredAccount::deserialize(&item.value).ok();
    let reserved = account.as_ref().map(|account| {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        let reservations = account.reserved.values();
        for (meter, amount) in reservations.flat_map(|reserved| &reserved.amounts) {
            let sum = sums.entry(meter).or_default();
            *sum = sum.saturating_add(*amount);
        }
        json!({ "calls": account.reserved.len(), "amounts": sums })
    });
    // The last segment is the level, apart from the tenant's own account, which is above the others.
    let level = item.namespace.segments().get(3).map(String::as_str);
    let (thread, run) = match (level, item.key.split_once('/')) {
        (Some("run"), Some((thread, run))) => (Some(thread), run.parse::<RunId>().ok()),
        (Some("thread"), _) => (Some(item.key.as_str()), None),
        _ => (None, None),
    };
    json!({
        "level": level.unwrap_or("tenant"),
        "thread_id": thread,
        "run_id": run.map(|run| wire::uuid(run.to_bytes())),
        "spent": account.as_ref().map(|account| &account.spent),
        "reserved": reserved,
        "raised": account.as_ref().map(|account| &account.raised),
        "updated_at": wire::time(item.updated),
    })
}
