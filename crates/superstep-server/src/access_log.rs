//! The access log: one record for each request, without anything secret.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// A request that is over, for an access log. It has no query string, no header and no body: those may contain secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AccessRecord {
    /// When the response ended.
    pub time: String,
    /// Id of the request, also in the header `x-request-id` of its response.
    pub request_id: String,
    /// Method, such as `GET`.
    pub method: String,
    /// Path of the route, with the names of its parameters instead of their values; `None` if there is no such route.
    pub route: Option<String>,
    /// Status of the response; `None` if the client went away before it.
    pub status: Option<u16>,
    /// Time from the head of the request to the end of the response, which may be a stream.
    pub duration_ms: u64,
    /// Bytes of the response's body.
    pub bytes: u64,
    /// Tenant of the caller; `None` if the request was refused before the caller was known.
    pub tenant: Option<String>,
    /// Name of the caller.
    pub principal: Option<String>,
}

/// Where records are written.
#[derive(Clone)]
pub(crate) struct AccessLog(Arc<dyn Fn(&AccessRecord) + Send + Sync>);

impl AccessLog {
    pub(crate) fn new(write: impl Fn(&AccessRecord) + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }

    pub(crate) fn write(&self, record: &AccessRecord) {
        (self.0)(record);
    }
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessLog")
    }
}
