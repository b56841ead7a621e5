//! What each tenant may use: requests, runs and open streams.
//!
//! The counts are those of this process. A request over a limit is refused with 429 and the time after which it fits.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use superstep::__private::lock;

use crate::caller::Caller;
use crate::error::{ApiError, ApiResult};
use crate::request_scope::RequestScope;
use crate::{App, Shared};

/// What one tenant may use of a server. Default: no limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TenantLimits {
    requests_per_second: Option<u32>,
    runs_per_minute: Option<u32>,
    open_requests: Option<u32>,
    active_runs: Option<u32>,
    concurrent_runs: Option<u32>,
}

impl TenantLimits {
    /// Sets how many requests a tenant may send per second, to each process; twice as many at once after a pause. Default: no limit.
    #[must_use]
    pub fn requests_per_second(mut self, requests: u32) -> Self {
        self.requests_per_second = Some(requests.max(1));
        self
    }

    /// Sets how many runs a tenant may submit per minute, to each process. Runs of crons do not count. Default: no limit.
    #[must_use]
    pub fn runs_per_minute(mut self, runs: u32) -> Self {
        self.runs_per_minute = Some(runs.max(1));
        self
    }

    /// Sets how many requests of a tenant may be open at once in each process. A stream is open until it ends. Default: no limit.
    #[must_use]
    pub fn open_requests(mut self, requests: u32) -> Self {
        self.open_requests = Some(requests.max(1));
        self
    }

    /// Sets how many pending and running runs a tenant may have. Requests at the same moment may exceed it by a few. Default: no
    /// limit.
    #[must_use]
    pub fn active_runs(mut self, runs: u32) -> Self {
        self.active_runs = Some(runs.max(1));
        self
    }

    /// Sets how many runs of a tenant each process executes at once. Further ones wait, and do not delay those of other tenants.
    /// Default: no limit.
    #[must_use]
    pub fn concurrent_runs(mut self, runs: u32) -> Self {
        self.concurrent_runs = Some(runs.max(1));
        self
    }

    pub(crate) fn concurrent_runs_max(&self) -> Option<usize> {
        self.concurrent_runs.map(|runs| runs as usize)
    }
}

/// What the tenants use now.
#[derive(Debug)]
pub(crate) struct Quotas {
    limits: TenantLimits,
    tenants: Arc<Mutex<BTreeMap<String, TenantUse>>>,
}

#[derive(Debug)]
struct TenantUse {
    requests: TokenBucket,
    runs: TokenBucket,
    open_requests: u32,
}

impl Quotas {
    pub(crate) fn new(limits: TenantLimits) -> Self {
        Self {
            limits,
            tenants: Arc::default(),
        }
    }

    /// Whether requests are limited at all. If not, nothing is kept of them.
    pub(crate) fn limits_requests(&self) -> bool {
        self.limits.open_requests.is_some() || self.limits.requests_per_second.is_some()
    }

    /// Counts a request of a tenant. Returns its permit, which is given back when it is dropped.
    pub(crate) fn open_request(&self, tenant: &str, now: Instant) -> ApiResult<OpenRequest> {
        let limits = &self.limits;
        self.with(tenant, now, |found| {
            if limits
                .open_requests
                .is_some_and(|max| found.open_requests >= max)
            {
                return Err(too_many("open requests and streams", RETRY_OPEN));
            }
            if let Some(rate) = limits.requests_per_second {
                let taken = found.requests.take(requests_bucket(rate), now);
                taken.map_err(|after| too_many("requests", after))?;
            }
            found.open_requests += 1;
            Ok(())
        })?;
        Ok(OpenRequest {
            tenant: tenant.to_owned(),
            tenants: self.tenants.clone(),
        })
    }

    /// Counts a run that a tenant submits, or refuses it.
    pub(crate) async fn submit_run(&self, app: &Shared, tenant: &str) -> ApiResult<()> {
        let checked = self.check_run(app, tenant).await;
        if checked.is_err() {
            app.counters.limited.fetch_add(1, Ordering::Relaxed);
        }
        checked
    }

    async fn check_run(&self, app: &Shared, tenant: &str) -> ApiResult<()> {
        if let Some(max) = self.limits.active_runs {
            let active = app.registry().active_runs(tenant, max).await?;
            if active.len() >= max as usize {
                return Err(too_many("pending and running runs", RETRY_ACTIVE));
            }
        }
        let Some(rate) = self.limits.runs_per_minute else {
            return Ok(());
        };
        let now = Instant::now();
        self.with(tenant, now, |found| {
            let taken = found.runs.take(runs_bucket(rate), now);
            taken.map_err(|after| too_many("runs", after))
        })
    }

    fn with<T>(&self, tenant: &str, now: Instant, act: impl FnOnce(&mut TenantUse) -> T) -> T {
        let mut tenants = lock(&self.tenants);
        if tenants.len() >= TENANTS_MAX && !tenants.contains_key(tenant) {
            // Those that use nothing are as if they had never been here.
            tenants.retain(|_, found| {
                found.open_requests > 0 || now.duration_since(found.last_used()) < FORGET_AFTER
            });
        }
        let found = tenants.entry(tenant.to_owned());
        let found = found.or_insert_with(|| TenantUse {
            requests: TokenBucket::full(self.limits.requests_per_second.map(requests_bucket), now),
            runs: TokenBucket::full(self.limits.runs_per_minute.map(runs_bucket), now),
            open_requests: 0,
        });
        act(found)
    }
}

impl TenantUse {
    fn last_used(&self) -> Instant {
        self.requests.at.max(self.runs.at)
    }
}

/// A tenant's permit to have a request open.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    tenant: String,
    tenants: Arc<Mutex<BTreeMap<String, TenantUse>>>,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        if let Some(found) = lock(&self.tenants).get_mut(&self.tenant) {
            found.open_requests = found.open_requests.saturating_sub(1);
        }
    }
}

/// Refuses a request of a tenant that sends too many, and notes who sent it. Inside of authentication.
pub(crate) async fn check_quota(State(app): State<App>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let caller = match Caller::from_request_parts(&mut parts, &app).await {
        Ok(caller) => caller,
        Err(refusal) => return refusal.into_response(),
    };
    let request = Request::from_parts(parts, body);
    let Some(scope) = RequestScope::current() else {
        return next.run(request).await;
    };
    scope.set_caller(&caller);
    // Whether the server is alive must be visible also to those who have used up what they may.
    let is_open_to_all = scope
        .api_route()
        .is_some_and(|route| route.needs.is_empty());
    if !is_open_to_all && app.quotas.limits_requests() {
        match app.quotas.open_request(&caller.tenant, Instant::now()) {
            Ok(permit) => scope.hold(permit),
            Err(refusal) => {
                app.counters.limited.fetch_add(1, Ordering::Relaxed);
                return refusal.into_response();
            }
        }
    }
    drop(scope);
    next.run(request).await
}

fn too_many(what: &str, after: Duration) -> ApiError {
    ApiError::too_many(format!("Too many {what} of this tenant"), after)
}

/// How a bucket fills: its size, and the time for one token.
#[derive(Debug, Clone, Copy)]
struct BucketRate {
    size: f64,
    per_second: f64,
}

fn requests_bucket(per_second: u32) -> BucketRate {
    BucketRate {
        size: f64::from(per_second) * 2.0,
        per_second: f64::from(per_second),
    }
}

fn runs_bucket(per_minute: u32) -> BucketRate {
    BucketRate {
        size: f64::from(per_minute),
        per_second: f64::from(per_minute) / 60.0,
    }
}

/// A token bucket: each request takes a token, and tokens come back at a rate.
#[derive(Debug)]
struct TokenBucket {
    tokens: f64,
    at: Instant,
}

impl TokenBucket {
    fn full(rate: Option<BucketRate>, now: Instant) -> Self {
        Self {
            tokens: rate.map_or(0.0, |rate| rate.size),
            at: now,
        }
    }

    /// Takes a token. If there is none, returns the time until there is.
    fn take(&mut self, rate: BucketRate, now: Instant) -> Result<(), Duration> {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        self.tokens = (self.tokens + since * rate.per_second).min(rate.size);
        self.at = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let missing = (1.0 - self.tokens) / rate.per_second;
        Err(Duration::from_secs_f64(missing))
    }
}

/// How long to wait for a stream to end, or a run.
const RETRY_OPEN: Duration = Duration::from_secs(5);
const RETRY_ACTIVE: Duration = Duration::from_secs(5);
/// Number of tenants from which on those are forgotten that use nothing, and the time after which every bucket is full.
const TENANTS_MAX: usize = 10_000;
const FORGET_AFTER: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_that_sends_too_much_waits_and_others_do_not() {
        let quotas = Quotas::new(TenantLimits::default().requests_per_second(10));
        let now = Instant::now();
        let sent = |tenant: &str, at: Instant| quotas.open_request(tenant, at).map(drop);
        for _ in 0..20 {
            sent("a", now).unwrap();
        }
        let refused = sent("a", now).unwrap_err();
        assert_eq!(refused.status, http::StatusCode::TOO_MANY_REQUESTS);
        sent("b", now).unwrap();
        sent("a", now + Duration::from_millis(100)).unwrap();
        sent("a", now + Duration::from_millis(150)).unwrap_err();
        sent("a", now + Duration::from_millis(200)).unwrap();
    }

    #[test]
    fn a_request_is_open_until_its_permit_is_dropped() {
        let quotas = Quotas::new(TenantLimits::default().open_requests(2));
        let now = Instant::now();
        let first = quotas.open_request("a", now).unwrap();
        let _second = quotas.open_request("a", now).unwrap();
        quotas.open_request("a", now).unwrap_err();
        drop(first);
        quotas.open_request("a", now).unwrap();
    }
}
