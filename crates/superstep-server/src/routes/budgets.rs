//! Raising the limits of budgets. LangGraph's server has no budgets, so it is under `/superstep`.

use std::collections::BTreeMap;

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::State;
use axum::routing::post;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use superstep::ThreadId;
use superstep::store::{Namespace, PutItem};

use crate::caller::{Caller, Payload, run_id};
use crate::error::{ApiError, ApiResult};
use crate::inspect::{budget, budget_namespace};
use crate::{App, Shared};

pub(super) fn routes() -> Router<App> {
    Router::new().route("/superstep/budgets/raise", post(raise))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RaiseBody {
    level: Level,
    thread_id: Option<String>,
    run_id: Option<String>,
    limits: BTreeMap<Meter, u64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    Run,
    Thread,
    Tenant,
}

/// The meters of `superstep-agent`, which this crate does not depend on. Agents cannot read an account with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Meter {
    Tokens,
    NanoDollars,
    TimeMs,
    Calls,
    Steps,
    FanOut,
}

impl Meter {
    const fn name(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::NanoDollars => "nano_dollars",
            Self::TimeMs => "time_ms",
            Self::Calls => "calls",
            Self::Steps => "steps",
            Self::FanOut => "fan_out",
        }
    }
}

/// Raises limits of an account permanently, as a person does who answers an interrupt of kind `budget`. Agents read the account before
/// each call, so a run that is under way has the new limits from its next call on.
async fn raise(
    State(app): State<App>,
    caller: Caller,
    Payload(body): Payload<RaiseBody>,
) -> ApiResult<JsonBody<Json>> {
    body.check_owner(&app, &caller).await?;
    let store = app.store.as_ref();
    let store = store.ok_or_else(|| ApiError::bad_request("This server has no store"))?;
    if body.limits.is_empty() {
        return Err(ApiError::invalid("`limits` is empty; name what to raise"));
    }
    let (namespace, key) = body.account(&caller)?;
    for _ in 0..TRIES_MAX {
        let now = app.runtime.now();
        let found = store.get(&namespace, &key, now).await?;
        let mut item = found.ok_or_else(|| ApiError::not_found("Budget not found"))?;
        let put = PutItem {
            namespace: namespace.clone(),
            key: key.clone(),
            value: body.raised(&item.value)?,
            ttl: None,
        };
        if put.value == item.value {
            return Ok(JsonBody(budget(&item)));
        }
        // Agents change the account with every call.
        if store.put_if(Some(&item.value), &put, now).await? {
            item.value = put.value;
            item.updated = now;
            return Ok(JsonBody(budget(&item)));
        }
    }
    Err(ApiError::conflict(
        "The budget was changed by others again and again; try again",
    ))
}

impl RaiseBody {
    /// Refuses the account of a thread that is not the caller's own, and that of the tenant, which is everyone's.
    async fn check_owner(&self, app: &Shared, caller: &Caller) -> ApiResult<()> {
        match (self.level, &self.thread_id) {
            (Level::Tenant, _) | (_, None) => caller.refuse_restricted(),
            (_, Some(thread)) => {
                let thread = ThreadId::of_tenant(&caller.tenant, thread)?;
                caller.require_own_thread(app, &thread).await
            }
        }
    }

    /// Returns where agents store the account.
    fn account(&self, caller: &Caller) -> ApiResult<(Namespace, String)> {
        let thread = self.thread_id.as_deref();
        let thread = || {
            let name = thread.ok_or_else(|| ApiError::invalid("`thread_id` is missing"))?;
            // Threads of other programs than this server have names that are not UUIDs.
            Ok::<_, ApiError>(ThreadId::of_tenant(&caller.tenant, name)?)
        };
        let (below, key) = match self.level {
            Level::Run => {
                let run = self.run_id.as_deref();
                let run = run.ok_or_else(|| ApiError::invalid("`run_id` is missing"))?;
                let key = format!("{}/{}", thread()?.name(), run_id(run)?);
                (Some("run"), key)
            }
            Level::Thread => (Some("thread"), thread()?.name().to_owned()),
            Level::Tenant => (None, "tenant".to_owned()),
        };
        let segments = budget_namespace(&caller.tenant).into_iter();
        let namespace = Namespace::new(segments.chain(below.map(str::to_owned)))?;
        Ok((namespace, key))
    }

    /// Returns an account with the raised limits.
    fn raised(&self, account: &Json) -> ApiResult<Json> {
        let mut account = account.clone();
        let fields = account.as_object_mut();
        let raised = fields.map(|fields| fields.entry("raised").or_insert_with(|| json!({})));
        let raised = raised.and_then(Json::as_object_mut).ok_or_else(|| {
            ApiError::conflict("The account of the budget is damaged, so nothing was raised")
        })?;
        for (meter, limit) in &self.limits {
            let meter = meter.name();
            if let Some(known) = raised.get(meter).and_then(Json::as_u64)
                && known > *limit
            {
                return Err(ApiError::conflict(format!(
                    "The limit of `{meter}` was raised to {known}; it cannot be lowered to {limit}"
                )));
            }
            raised.insert(meter.to_owned(), (*limit).into());
        }
        Ok(account)
    }
}

/// How often a change is made again because others were faster.
const TRIES_MAX: u32 = 100;
