//! The long-term store: facts that outlive threads.
//!
//! Superstep keeps facts of its own in the same store, budgets for example, and so may the program around the server. Their
//! namespaces are invisible here. So are the facts of other tenants.

use std::sync::Arc;

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::State;
use axum::routing::{post, put};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::Page;
use superstep::store::{
    FilterOp, Item, ItemFilter, Namespace, NamespaceQuery, PutItem, Search, Store, Ttl,
};

use crate::caller::{Caller, Payload, QueryFields};
use crate::error::{ApiError, ApiResult};
use crate::{App, Shared, wire};

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route(
            "/store/items",
            put(put_item).get(get_item).delete(delete_item),
        )
        .route("/store/items/search", post(search))
        .route("/store/namespaces", post(namespaces))
}

fn store_of(app: &Shared) -> ApiResult<&Arc<dyn Store>> {
    let store = app.store.as_ref();
    store.ok_or_else(|| ApiError::bad_request("This server has no store"))
}

/// First segment of the namespaces in which Superstep keeps its own facts.
const SYSTEM: &str = "superstep";

fn is_reserved(app: &Shared, segments: &[String]) -> bool {
    let first = segments.first();
    first.is_some_and(|first| first == SYSTEM || app.reserved.contains(first))
}

fn refuse_reserved(app: &Shared, segments: &[String]) -> ApiResult<()> {
    match segments.first().filter(|_| is_reserved(app, segments)) {
        Some(first) => Err(ApiError::invalid(format!(
            "Namespaces that begin with `{first}` are reserved"
        ))),
        None => Ok(()),
    }
}

fn namespace_of(app: &Shared, caller: &Caller, segments: Vec<String>) -> ApiResult<Namespace> {
    refuse_reserved(app, &segments)?;
    caller.check_namespace(&segments)?;
    Ok(Namespace::of_tenant(&caller.tenant, segments)?)
}

#[derive(Debug, Deserialize)]
struct PutBody {
    namespace: Vec<String>,
    key: String,
    value: Map<String, Json>,
    #[serde(default)]
    ttl: Option<f64>,
}

async fn put_item(
    State(app): State<App>,
    caller: Caller,
    Payload(body): Payload<PutBody>,
) -> ApiResult<StatusCode> {
    let ttl = match body.ttl {
        Some(minutes) => Some(Ttl {
            ms: wire::minutes(minutes)
                .ok_or_else(|| ApiError::invalid("`ttl` is not a positive number of minutes"))?,
            refresh_on_read: true,
        }),
        None => None,
    };
    let put = PutItem {
        namespace: namespace_of(&app, &caller, body.namespace)?,
        key: body.key,
        value: Json::Object(body.value),
        ttl,
    };
    put.check()?;
    store_of(&app)?.put(&put, app.runtime.now()).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn get_item(
    State(app): State<App>,
    caller: Caller,
    query: QueryFields,
) -> ApiResult<JsonBody<Json>> {
    let segments = query.text("namespace").unwrap_or_default();
    let segments = segments.split('.').map(str::to_owned).collect();
    let namespace = namespace_of(&app, &caller, segments)?;
    let key = query.text("key");
    let key = key.ok_or_else(|| ApiError::invalid("`key` is missing"))?;
    let found = store_of(&app)?
        .get(&namespace, key, app.runtime.now())
        .await?;
    Ok(JsonBody(found.as_ref().map_or(Json::Null, wire::item)))
}

#[derive(Debug, Deserialize)]
struct DeleteBody {
    #[serde(default)]
    namespace: Vec<String>,
    key: String,
}

async fn delete_item(
    State(app): State<App>,
    caller: Caller,
    Payload(body): Payload<DeleteBody>,
) -> ApiResult<StatusCode> {
    let namespace = namespace_of(&app, &caller, body.namespace)?;
    store_of(&app)?.delete(&namespace, &body.key).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SearchBody {
    namespace_prefix: Vec<String>,
    filter: Option<Map<String, Json>>,
    limit: Option<u32>,
    offset: Option<u32>,
}

async fn search(
    State(app): State<App>,
    caller: Caller,
    Payload(body): Payload<SearchBody>,
) -> ApiResult<JsonBody<Json>> {
    refuse_reserved(&app, &body.namespace_prefix)?;
    let search = Search {
        prefix: caller.own_prefix(body.namespace_prefix)?,
        tenant: caller.tenant,
        filters: read_filters(&body.filter.unwrap_or_default())?,
        page: Page {
            limit: body.limit.unwrap_or(10).min(LIMIT_MAX),
            offset: body.offset.unwrap_or(0),
        },
    };
    let store = store_of(&app)?;
    let now = app.runtime.now();
    let mut visible = VisiblePage::new(search.page);
    while let Some(page) = visible.next_read() {
        let read = Search {
            page,
            ..search.clone()
        };
        let items = store.search(&read, now).await?;
        visible.take(items, |item: &Item| {
            is_reserved(&app, item.namespace.segments())
        });
    }
    let items = visible.found.iter().map(|found| {
        let mut item = wire::item(found);
        item["score"] = Json::Null;
        item
    });
    Ok(JsonBody(json!({ "items": items.collect::<Vec<_>>() })))
}

/// Reads conditions: `{"field": value}`, or `{"field": {"$gt": value}}`.
fn read_filters(filter: &Map<String, Json>) -> ApiResult<Vec<ItemFilter>> {
    let mut filters = Vec::new();
    for (field, wanted) in filter {
        let ops = wanted.as_object().filter(|ops| {
            let mut names = ops.keys();
            !ops.is_empty() && names.all(|name| name.starts_with('$'))
        });
        let Some(ops) = ops else {
            filters.push(ItemFilter {
                field: field.clone(),
                op: FilterOp::Eq,
                value: wanted.clone(),
            });
            continue;
        };
        for (name, value) in ops {
            filters.push(ItemFilter {
                field: field.clone(),
                op: read_op(name)?,
                value: value.clone(),
            });
        }
    }
    Ok(filters)
}

fn read_op(name: &str) -> ApiResult<FilterOp> {
    match name {
        "$eq" => Ok(FilterOp::Eq),
        "$ne" => Ok(FilterOp::Ne),
        "$gt" => Ok(FilterOp::Gt),
        "$gte" => Ok(FilterOp::Gte),
        "$lt" => Ok(FilterOp::Lt),
        "$lte" => Ok(FilterOp::Lte),
        _ => Err(ApiError::invalid(format!("`{name}` is not an operator"))),
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NamespacesBody {
    prefix: Option<Vec<String>>,
    suffix: Option<Vec<String>>,
    max_depth: Option<usize>,
    limit: Option<u32>,
    offset: Option<u32>,
}

async fn namespaces(
    State(app): State<App>,
    caller: Caller,
    Payload(body): Payload<NamespacesBody>,
) -> ApiResult<JsonBody<Json>> {
    let prefix = body.prefix.unwrap_or_default();
    refuse_reserved(&app, &prefix)?;
    let query = NamespaceQuery {
        prefix: caller.own_prefix(prefix)?,
        tenant: caller.tenant,
        suffix: body.suffix.unwrap_or_default(),
        depth_max: body.max_depth,
        page: Page {
            limit: body.limit.unwrap_or(100).min(LIMIT_MAX),
            offset: body.offset.unwrap_or(0),
        },
    };
    let store = store_of(&app)?;
    let now = app.runtime.now();
    let mut visible = VisiblePage::new(query.page);
    while let Some(page) = visible.next_read() {
        let read = NamespaceQuery {
            page,
            ..query.clone()
        };
        let found = store.namespaces(&read, now).await?;
        visible.take(found, |found: &Namespace| {
            is_reserved(&app, found.segments())
        });
    }
    let found: Vec<&[String]> = visible.found.iter().map(Namespace::segments).collect();
    Ok(JsonBody(json!({ "namespaces": found })))
}

/// A page of what callers may see, read from pages of everything.
struct VisiblePage<T> {
    wanted: Page,
    /// Number of visible rows that come before the page.
    skipped: u32,
    found: Vec<T>,
    read: u32,
    is_over: bool,
}

impl<T> VisiblePage<T> {
    fn new(wanted: Page) -> Self {
        Self {
            wanted,
            skipped: 0,
            found: Vec::new(),
            read: 0,
            is_over: wanted.limit == 0,
        }
    }

    /// Returns what to read next; `None` when the page is complete.
    fn next_read(&self) -> Option<Page> {
        (!self.is_over).then_some(Page {
            limit: READ_AT_ONCE,
            offset: self.read,
        })
    }

    fn take(&mut self, rows: Vec<T>, is_hidden: impl Fn(&T) -> bool) {
        let is_last = rows.len() < READ_AT_ONCE as usize;
        self.read = self.read.saturating_add(READ_AT_ONCE);
        for row in rows.into_iter().filter(|row| !is_hidden(row)) {
            if self.skipped < self.wanted.offset {
                self.skipped += 1;
            } else if self.found.len() < self.wanted.limit as usize {
                self.found.push(row);
            }
        }
        self.is_over = is_last || self.found.len() >= self.wanted.limit as usize;
    }
}

/// Longest page.
const LIMIT_MAX: u32 = 1_000;
/// Number of rows that are read at once.
const READ_AT_ONCE: u32 = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_counts_only_what_callers_may_see() {
        let mut visible = VisiblePage::new(Page {
            limit: 2,
            offset: 1,
        });
        assert!(visible.next_read().is_some());
        visible.take(vec![1, 2, 3, 4, 5, 6, 7], |row| row % 2 == 1);
        assert_eq!(visible.found, [4, 6]);
        assert!(visible.next_read().is_none());
    }

    #[test]
    fn conditions_are_read_in_both_forms() {
        let filter = json!({ "a": 1, "b": { "$gt": 2, "$lte": 3 }, "c": { "d": 4 } });
        let Json::Object(filter) = filter else {
            panic!("it is an object");
        };
        let filters = read_filters(&filter).unwrap();
        assert_eq!(filters.len(), 4);
        assert!(filters.iter().any(|filter| filter.op == FilterOp::Lte));
        assert!(read_filters(&Map::from_iter([("a".to_owned(), json!({ "$near": 1 }))])).is_err());
    }
}
