//! A request from its head to the end of its response: its id, who sent it, and what came of it.
//!
//! The outermost layer of the router makes a [`RequestScope`], and the body of the response holds it if it is a stream, or if
//! something measures it. Whatever works for the request finds it with [`RequestScope::current`]. The request is over when nothing
//! holds its scope any more: then it is counted as closed, and written to the access log.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use superstep::trace::CallerSpan;
use uuid::Uuid;

use crate::access_log::{AccessLog, AccessRecord};
use crate::caller::Caller;
use crate::cors::check_origin;
use crate::quotas::OpenRequest;
use crate::routes::table::{ApiRoute, FoundRoute};
use crate::{App, Shared};

tokio::task_local! {
    static SCOPE: Arc<RequestScope>;
}

/// A request that is being answered.
pub(crate) struct RequestScope {
    /// The client's own id of the request, if it sent a good one.
    pub(crate) id: String,
    /// The caller's span, in whose trace the runs of this request are.
    pub(crate) caller_span: Option<CallerSpan>,
    method: Method,
    /// The path of the route, with the names of its parameters; `None` if there is no such route.
    route: Option<MatchedPath>,
    found: FoundRoute,
    started: Instant,
    /// Zero before the response began.
    status: AtomicU16,
    /// Bytes of the response's body so far.
    bytes: AtomicU64,
    caller: OnceLock<Caller>,
    /// The tenant's permit to have this request open.
    permit: OnceLock<OpenRequest>,
    log: Option<AccessLog>,
    open: Arc<AtomicU64>,
}

impl RequestScope {
    fn of(request: &Request, app: &App) -> Self {
        let route = request.extensions().get::<MatchedPath>();
        app.counters.open_requests.fetch_add(1, Ordering::Relaxed);
        Self {
            id: request_id(request.headers()),
            caller_span: caller_span(request.headers()),
            method: request.method().clone(),
            route: route.cloned(),
            found: FoundRoute::of(request),
            started: Instant::now(),
            status: AtomicU16::new(0),
            bytes: AtomicU64::new(0),
            caller: OnceLock::new(),
            permit: OnceLock::new(),
            log: app.access_log.clone(),
            open: app.counters.open_requests.clone(),
        }
    }

    /// Returns the request that the current task works for.
    pub(crate) fn current() -> Option<Arc<Self>> {
        SCOPE.try_with(Arc::clone).ok()
    }

    /// Does some work for this request, in another task than the one that received it.
    pub(crate) async fn within<T>(scope: Option<Arc<Self>>, work: impl Future<Output = T>) -> T {
        match scope {
            Some(scope) => SCOPE.scope(scope, work).await,
            None => work.await,
        }
    }

    /// Notes who sent the request.
    pub(crate) fn set_caller(&self, caller: &Caller) {
        // Of two, the first stays: it was authenticated.
        let _ = self.caller.set(caller.clone());
    }

    /// Returns who sent the request.
    pub(crate) fn caller(&self) -> Caller {
        self.caller.get().cloned().unwrap_or_default()
    }

    /// Holds a permit until the request is over.
    pub(crate) fn hold(&self, permit: OpenRequest) {
        let _ = self.permit.set(permit);
    }

    /// Returns the line of the table for this request; `None` if there is no such route.
    pub(crate) fn api_route(&self) -> Option<&'static ApiRoute> {
        match self.found {
            FoundRoute::Listed(route) => Some(route),
            FoundRoute::OtherMethod | FoundRoute::NotListed | FoundRoute::None => None,
        }
    }

    /// Whether it matters when the client has read the response: an access log has its duration, and a tenant's permit is for the
    /// whole request.
    fn lasts_until_read(&self) -> bool {
        self.log.is_some() || self.permit.get().is_some()
    }

    pub(crate) fn method(&self) -> &Method {
        &self.method
    }

    pub(crate) fn route(&self) -> Option<&str> {
        self.route.as_ref().map(MatchedPath::as_str)
    }
}

impl Drop for RequestScope {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        let Some(log) = &self.log else { return };
        let status = *self.status.get_mut();
        let caller = self.caller.get();
        log.write(&AccessRecord {
            time: jiff::Timestamp::now().to_string(),
            request_id: std::mem::take(&mut self.id),
            method: self.method.to_string(),
            route: self.route.take().map(|route| route.as_str().to_owned()),
            status: (status > 0).then_some(status),
            duration_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            bytes: *self.bytes.get_mut(),
            tenant: caller.map(|caller| caller.tenant.clone()),
            principal: caller.map(|caller| caller.principal.clone()),
        });
    }
}

impl fmt::Debug for RequestScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestScope")
            .field("id", &self.id)
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

/// Gives a request its scope and its response the request's id, and refuses pages of other sites. The outermost layer.
pub(crate) async fn open_scope(State(app): State<App>, request: Request, next: Next) -> Response {
    let scope = Arc::new(RequestScope::of(&request, &app));
    // Around everything else, so that scripts of other origins can read errors too.
    let answering = check_origin(&app, request, |request| answer(&app, request, next));
    let mut response = SCOPE.scope(scope.clone(), answering).await;
    drop(app);
    if let Ok(id) = HeaderValue::from_str(&scope.id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    let status = response.status().as_u16();
    scope.status.store(status, Ordering::Relaxed);
    // The body is complete, and nothing needs to know when its client has read it.
    if response.body().size_hint().exact().is_some() && !scope.lasts_until_read() {
        return response;
    }
    response.map(|body| Body::new(ScopedBody { body, scope }))
}

async fn answer(app: &Shared, request: Request, next: Next) -> Response {
    app.counters.requests.fetch_add(1, Ordering::Relaxed);
    let response = next.run(request).await;
    if response.status().is_server_error() {
        app.counters.failures.fetch_add(1, Ordering::Relaxed);
    }
    response
}

/// The body of a response, which holds the scope of its request and counts its bytes.
struct ScopedBody {
    body: Body,
    scope: Arc<RequestScope>,
}

impl HttpBody for ScopedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            let bytes = data.len() as u64;
            self.scope.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Returns the id that a client gave its request, or a new one: what is written to logs must not be what a client likes.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID);
    let given = given.and_then(|given| given.to_str().ok());
    match given.filter(|given| is_request_id(given)) {
        Some(given) => given.to_owned(),
        None => Uuid::now_v7().to_string(),
    }
}

/// Reads the header of W3C Trace Context. One that is not valid is ignored, as the recommendation says.
fn caller_span(headers: &HeaderMap) -> Option<CallerSpan> {
    let header = headers.get("traceparent")?.to_str().ok()?;
    CallerSpan::from_traceparent(header)
}

fn is_request_id(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    (1..=REQUEST_ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_allowed)
}

const REQUEST_ID: &str = "x-request-id";
const REQUEST_ID_BYTES_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_a_client_is_taken_if_it_is_harmless() {
        for good in ["a", "0190a6b2-0000-7000-8000-00000000000a", "req_1.2:3"] {
            assert!(is_request_id(good), "{good}");
        }
        let long = "x".repeat(129);
        for bad in ["", " ", "a b", "a\nb", "a\"b", "é", &long] {
            assert!(!is_request_id(bad), "{bad}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(REQUEST_ID, HeaderValue::from_static("a b"));
        assert_eq!(request_id(&headers).len(), 36);
    }
}
