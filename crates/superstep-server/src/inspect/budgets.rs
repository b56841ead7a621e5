//! Budgets, as the long-term store has them: what was spent and reserved by a run, a thread or the whole tenant.
//!
//! The limits themselves are part of the program. The store has only those that a person raised.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value as Json, json};
use superstep::checkpoint::{Page, ThreadQuery};
use superstep::store::{Item, Search};
use superstep::{RunId, ThreadId};

use crate::Shared;
use crate::caller::Caller;
use crate::error::{ApiError, ApiResult};
use crate::wire;

/// Returns a page of the budgets of a caller's tenant, most recently changed first. A caller that reaches only what it owns sees those of
/// its own threads and their runs. Also returns whether the page is complete: only so many budgets of others are looked at.
pub(crate) async fn budgets(
    app: &Shared,
    caller: &Caller,
    page: Page,
) -> ApiResult<(Vec<Json>, bool)> {
    let store = app.store.as_ref();
    let store = store.ok_or_else(|| ApiError::bad_request("This server has no store"))?;
    let items = async |page: Page| {
        let search = Search {
            prefix: budget_namespace(&caller.tenant).into(),
            page,
            ..Search::default()
        };
        store.search(&search, app.runtime.now()).await
    };
    if caller.owner.is_none() {
        return Ok((items(page).await?.iter().map(budget).collect(), true));
    }
    let (mut own, mut offset) = (Vec::new(), 0);
    let wanted = page.offset as usize + page.limit as usize;
    let mut is_complete = true;
    while own.len() < wanted {
        if offset >= SEARCHED_MAX {
            is_complete = false;
            break;
        }
        let limit = ITEMS_AT_ONCE;
        let found = items(Page { limit, offset }).await?;
        let is_last = found.len() < limit as usize;
        offset += limit;
        own.extend(only_own(app, caller, found).await?);
        if is_last {
            break;
        }
    }
    let shown = own.iter().skip(page.offset as usize);
    let shown = shown.take(page.limit as usize).map(budget);
    Ok((shown.collect(), is_complete))
}

/// Returns those of the budgets that belong to threads of the caller's own.
async fn only_own(app: &Shared, caller: &Caller, items: Vec<Item>) -> ApiResult<Vec<Item>> {
    let thread_of = |item: &Item| {
        let name = AccountPlace::of(item).thread?;
        ThreadId::of_tenant(&caller.tenant, name).ok()
    };
    let threads: BTreeSet<ThreadId> = items.iter().filter_map(thread_of).collect();
    let query = ThreadQuery {
        tenant: caller.tenant.clone(),
        ids: Some(threads.into_iter().collect()),
        metadata_contains: caller.own_only(None)?,
        page: Page {
            limit: ITEMS_AT_ONCE,
            offset: 0,
        },
        ..ThreadQuery::default()
    };
    let own = app.runtime.threads(&query).await?.into_iter();
    let own: BTreeSet<ThreadId> = own.map(|row| row.thread).collect();
    let is_own = |item: &Item| thread_of(item).is_some_and(|thread| own.contains(&thread));
    Ok(items.into_iter().filter(is_own).collect())
}

/// Number of budgets that are read at once.
const ITEMS_AT_ONCE: u32 = 500;
/// Number of budgets of a tenant that are searched for those of one owner.
const SEARCHED_MAX: u32 = 10_000;

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

/// Whose account it is.
#[derive(Debug)]
struct AccountPlace<'a> {
    level: Option<&'a str>,
    thread: Option<&'a str>,
    run: Option<RunId>,
}

impl<'a> AccountPlace<'a> {
    fn of(item: &'a Item) -> Self {
        // The last segment is the level, apart from the tenant's own account, which is above the others.
        let level = item.namespace.segments().get(3).map(String::as_str);
        let (thread, run) = match (level, item.key.split_once('/')) {
            (Some("run"), Some((thread, run))) => (Some(thread), run.parse::<RunId>().ok()),
            (Some("thread"), _) => (Some(item.key.as_str()), None),
            _ => (None, None),
        };
        Self { level, thread, run }
    }
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
    let AccountPlace { level, thread, run } = AccountPlace::of(item);
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
