//! Pages of lists, and the headers that say what follows.

use axum::Json as JsonBody;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue};
use serde_json::Value as Json;
use superstep::checkpoint::Page;

use crate::error::{ApiError, ApiResult};

/// Returns a page, with the defaults of the API.
pub(super) fn page(limit: Option<u32>, offset: Option<u32>) -> ApiResult<Page> {
    let limit = limit.unwrap_or(10);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(ApiError::invalid(format!(
            "`limit` is {limit}; it must be from 1 to {LIMIT_MAX}"
        )));
    }
    Ok(Page {
        limit,
        offset: offset.unwrap_or(0),
    })
}

/// Returns a page of a list with this many rows.
pub(super) fn paged(rows: Vec<Json>, page: Page, total: u64) -> Response {
    let next = u64::from(page.offset) + rows.len() as u64;
    let mut response = JsonBody(rows).into_response();
    let headers = response.headers_mut();
    headers.insert(
        HeaderName::from_static("x-pagination-total"),
        HeaderValue::from(total),
    );
    if next < total {
        headers.insert(
            HeaderName::from_static("x-pagination-next"),
            HeaderValue::from(next),
        );
    }
    response
}

/// Returns a page of a list that is searched for what the caller may see. A header says if the search ended at its bound, so that an
/// incomplete page is not taken for the end of the list.
pub(super) fn searched(rows: Vec<Json>, is_complete: bool) -> Response {
    let mut response = JsonBody(rows).into_response();
    if !is_complete {
        response.headers_mut().insert(
            HeaderName::from_static("x-superstep-incomplete"),
            HeaderValue::from_static("true"),
        );
    }
    response
}

/// Longest page.
const LIMIT_MAX: u32 = 1_000;
