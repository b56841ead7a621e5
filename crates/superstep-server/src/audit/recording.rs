//! What requests leave in the audit log: an entry before they take effect, and one with their outcome.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::Method;
use serde_json::{Value as Json, json};
use superstep::ThreadId;
use superstep::checkpoint::{Answer, AnswerBody};

use super::writer::AuditRecord;
use crate::caller::Caller;
use crate::error::{ApiError, ApiResult};
use crate::permission::Permission;
use crate::request_scope::RequestScope;
use crate::{App, Shared};

/// Records a request that changes something: before it takes effect, and how it ended. A request without an outcome was cut off,
/// and may have taken effect.
pub(crate) async fn record_request(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Response {
    let Some(log) = &app.audit else {
        return next.run(request).await;
    };
    let Some(scope) = RequestScope::current().filter(|scope| changes_something(scope)) else {
        return next.run(request).await;
    };
    let caller = scope.caller();
    let path = request.uri().path();
    let record = |action: String, detail: Json| AuditRecord {
        at: app.runtime.now(),
        principal: caller.principal.clone(),
        action,
        resource: path.chars().take(PATH_CHARS_MAX).collect(),
        detail: detail.to_string(),
    };
    let action = format!("{} {}", scope.method(), scope.route().unwrap_or_default());
    let before = record(action, json!({ "request": scope.id }));
    let mut after = record("outcome".to_owned(), Json::Null);
    if let Err(error) = log.append(&caller.tenant, vec![before]).await {
        return ApiError::from(error).into_response();
    }
    let response = next.run(request).await;
    after.at = app.runtime.now();
    let status = response.status().as_u16();
    after.detail = json!({ "request": scope.id, "status": status }).to_string();
    log.append_later(&caller.tenant, vec![after]).await;
    response
}

/// Whether a request may change something. A route that the table does not have may do anything.
fn changes_something(scope: &RequestScope) -> bool {
    let is_safe = [Method::GET, Method::HEAD, Method::OPTIONS].contains(scope.method());
    // Some routes that only read take a body.
    let only_reads = scope
        .api_route()
        .is_some_and(|route| route.needs == [Permission::Read]);
    scope.route().is_some() && !is_safe && !only_reads
}

/// Records a command to a thread, which may come through a socket, before it takes effect.
pub(crate) async fn record_command(
    app: &Shared,
    caller: &Caller,
    thread: &ThreadId,
    command: &'static str,
) -> ApiResult<()> {
    let Some(log) = &app.audit else {
        return Ok(());
    };
    let record = AuditRecord {
        at: app.runtime.now(),
        principal: caller.principal.clone(),
        action: command.to_owned(),
        resource: format!("/threads/{}", thread.name()),
        detail: json!({ "request": request_id() }).to_string(),
    };
    Ok(log.append(&caller.tenant, vec![record]).await?)
}

/// Records answers to interrupts before they are stored: their hashes, not what they say.
pub(crate) async fn record_answers(
    app: &Shared,
    caller: &Caller,
    thread: &ThreadId,
    answers: &[Answer],
) -> ApiResult<()> {
    let Some(log) = app.audit.as_ref().filter(|_| !answers.is_empty()) else {
        return Ok(());
    };
    let request = request_id();
    let record = |answer: &Answer| {
        let said = match &answer.body {
            AnswerBody::Value(value) => value.json().map(|json| log.hash_of(json)).ok(),
            AnswerBody::Expired => None,
        };
        AuditRecord {
            at: app.runtime.now(),
            principal: caller.principal.clone(),
            action: "interrupt.answer".to_owned(),
            resource: format!("/threads/{}", thread.name()),
            detail: json!({
                "interrupt": answer.interrupt.to_string(),
                "answer_hash": said,
                "request": request,
            })
            .to_string(),
        }
    };
    let records = answers.iter().map(record).collect();
    Ok(log.append(&caller.tenant, records).await?)
}

/// Returns the id of the request that the current task works for; `None` if there is none.
fn request_id() -> Option<String> {
    RequestScope::current().map(|scope| scope.id.clone())
}

/// How much of a path is recorded.
const PATH_CHARS_MAX: usize = 1_024;
