//! The engine: sends requests to the cluster.

use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use superstep::checkpoint::BoxFuture;
use superstep::driver::{QueuedRequest, RequestQueue};
use superstep::{DriveError, Engine, RunId, RunReport, ThreadId, Timestamp};
use superstep_tls::TlsError;

use crate::handlers::{Reply, now};
use crate::ingress::Ingress;
use crate::refusal::{Refusal, chain};

/// Client of a Restate cluster whose workers run the graphs. Cheap to clone.
#[derive(Clone)]
pub struct Restate {
    pub(crate) ingress: Ingress,
    pub(crate) queue: Arc<dyn RequestQueue>,
}

/// Error of a call to the cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestateError {
    /// No ingress address was given.
    #[error("give the address of at least one ingress, such as http://127.0.0.1:8080")]
    NoAddress,
    /// The address is not a valid ingress address.
    #[error(
        "`{address}` is not an address of an ingress; they look like http://127.0.0.1:8080, or https://restate.internal:8080 with TLS"
    )]
    BadAddress {
        /// The rejected address, without a password.
        address: String,
    },
    /// A parameter of the address about TLS cannot be used.
    #[error("the parameters of the address of an ingress cannot be used")]
    BadParameters {
        /// Why not.
        #[from]
        source: TlsError,
    },
    /// A node did not answer, or answered with a transient error, until the retry deadline.
    #[error(
        "the node at {node} could not carry out the call; is it up, and is a worker registered?"
    )]
    Silent {
        /// Address of the node that was tried last.
        node: String,
        /// Error of the connection, or the status and body of the response.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A worker or the cluster rejected the call; a retry would fail too.
    #[error("the cluster refuses the call: {message}")]
    Refused {
        /// Text of the rejection.
        message: String,
    },
    /// The response is not one of a worker.
    #[error(
        "the cluster answered something that is not an answer of a worker; do all workers have this version?"
    )]
    Unreadable {
        /// Decoding error.
        #[source]
        source: serde_json::Error,
    },
}

impl RestateError {
    /// Codes of all variants.
    pub const CODES: &'static [&'static str] = &[
        "restate-no-address",
        "restate-bad-address",
        "restate-bad-parameters",
        "restate-silent",
        "restate-refused",
        "restate-unreadable",
    ];

    /// Returns the stable code of this error: the name of its page in the error index.
    pub fn code(&self) -> &'static str {
        match self {
            RestateError::NoAddress => "restate-no-address",
            RestateError::BadAddress { .. } => "restate-bad-address",
            RestateError::BadParameters { .. } => "restate-bad-parameters",
            RestateError::Silent { .. } => "restate-silent",
            RestateError::Refused { .. } => "restate-refused",
            RestateError::Unreadable { .. } => "restate-unreadable",
        }
    }
}

impl From<RestateError> for DriveError {
    fn from(error: RestateError) -> Self {
        DriveError::Engine {
            code: error.code().to_owned(),
            message: chain(&error),
            is_refusal: matches!(error, RestateError::Refused { .. }),
        }
    }
}

impl Restate {
    /// Creates a client of a cluster from the addresses of its ingresses and the queue that its workers read.
    ///
    /// An address `https://…` is encrypted. Its parameters say what to trust, as in an address of PostgreSQL:
    /// `https://restate.internal:8080?sslrootcert=FILE`, `sslcert` and `sslkey`, and `sslmode` (default: `verify-full`). Every new
    /// connection reads the files again.
    pub fn new<T: Into<String>>(
        ingresses: impl IntoIterator<Item = T>,
        queue: impl RequestQueue,
    ) -> Result<Self, RestateError> {
        Ok(Self {
            ingress: Ingress::new(ingresses)?,
            queue: Arc::new(queue),
        })
    }

    /// Sets how long to retry while the cluster does not answer. Default: two minutes.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.ingress.patience = patience;
        self
    }

    /// Sends a request that is executed after a delay, without waiting for the execution. Once this returns, the request is
    /// accepted: it survives a crash of any process, as long as the store and the cluster keep their data.
    pub async fn send_after(
        &self,
        thread: &ThreadId,
        id: RunId,
        request: &QueuedRequest,
        delay: Duration,
    ) -> Result<(), DriveError> {
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let due = now().plus_ms(delay_ms);
        self.keep(thread, id, request, due).await?;
        let delay = match delay.as_millis() {
            0 => String::new(),
            ms => format!("?delay={ms}ms"),
        };
        let path = format!("{}/send{delay}", path_of(thread, request));
        self.ingress
            .call(&path, &id.to_string(), body_of(id))
            .await?;
        Ok(())
    }

    async fn keep(
        &self,
        thread: &ThreadId,
        id: RunId,
        request: &QueuedRequest,
        due: Timestamp,
    ) -> Result<(), DriveError> {
        let bytes = request.to_bytes(thread);
        let kept = self.queue.put(id, thread, &bytes, due).await?;
        // The cluster executes what was stored first under this id.
        let is_same = kept == bytes
            || QueuedRequest::from_bytes(&kept, thread).is_ok_and(|kept| kept.is_same_as(request));
        match is_same {
            true => Ok(()),
            false => Err(DriveError::IdReused { run: id }),
        }
    }

    async fn ask(
        &self,
        thread: &ThreadId,
        id: RunId,
        request: &QueuedRequest,
    ) -> Result<RunReport, DriveError> {
        self.keep(thread, id, request, now()).await?;
        let path = path_of(thread, request);
        let answer = self
            .ingress
            .call(&path, &id.to_string(), body_of(id))
            .await?;
        let reply = serde_json::from_slice(&answer)
            .map_err(|source| RestateError::Unreadable { source })?;
        match reply {
            Reply::Done(report) => Ok(report),
            Reply::Refused => Err(self.refusal(thread, id).await?),
        }
    }

    async fn refusal(&self, thread: &ThreadId, id: RunId) -> Result<DriveError, DriveError> {
        let kept = self.queue.get(id).await?.and_then(|kept| kept.reply);
        let refusal: Option<Refusal> = kept
            .map(|reply| serde_json::from_slice(&reply))
            .transpose()
            .map_err(|source| RestateError::Unreadable { source })?;
        Ok(match refusal {
            Some(refusal) => refusal.into_error(thread),
            None => DriveError::Engine {
                code: "restate-refused".to_owned(),
                message: "the request was refused, and the reason is no longer stored".to_owned(),
                is_refusal: true,
            },
        })
    }
}

impl Engine for Restate {
    fn execute<'a>(
        &'a self,
        thread: &'a ThreadId,
        id: RunId,
        request: &'a QueuedRequest,
    ) -> BoxFuture<'a, Result<RunReport, DriveError>> {
        Box::pin(self.ask(thread, id, request))
    }

    fn send<'a>(
        &'a self,
        thread: &'a ThreadId,
        id: RunId,
        request: &'a QueuedRequest,
    ) -> BoxFuture<'a, Result<(), DriveError>> {
        Box::pin(self.send_after(thread, id, request, Duration::ZERO))
    }
}

impl std::fmt::Debug for Restate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Restate")
            .field("ingress", &self.ingress)
            .finish_non_exhaustive()
    }
}

fn path_of(thread: &ThreadId, request: &QueuedRequest) -> String {
    let handler = match request.request.is_change() {
        true => "change",
        false => "run",
    };
    let thread = thread.to_string();
    let key = utf8_percent_encode(&thread, NON_ALPHANUMERIC);
    format!("/SuperstepThread/{key}/{handler}")
}

fn body_of(id: RunId) -> Vec<u8> {
    serde_json::to_vec(&id).expect("an id always encodes")
}
