//! The worker: the process that Restate calls.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::graceful::GracefulShutdown;
use restate_sdk::endpoint::{Endpoint, ServiceOptions};
use restate_sdk::hyper::HyperEndpoint;
use restate_sdk::service::IntoServiceDefinition;
use superstep::driver::RequestQueue;
use superstep::{DriveError, Runtime, SegmentLimits};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;

use crate::cron::CronObject;
#[cfg(test)]
use crate::handlers::tests::Mutant;
use crate::handlers::{CheckClockError, HandlerState, Node, Thread};
use crate::operations::{self, Health};

/// A process that runs graphs for a cluster.
pub struct Worker {
    runtime: Runtime,
    queue: Arc<dyn RequestQueue>,
    limits: SegmentLimits,
    identity_key: Option<String>,
    takes_unsigned: bool,
    operations: Option<TcpListener>,
    drain: Duration,
    requests_kept: Duration,
    /// Fault injected by a test.
    #[cfg(test)]
    mutant: Option<Mutant>,
}

/// Error from starting or running a worker.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The identity key is not valid.
    #[error("`{key}` is not an identity key; Restate prints it when it starts, as `publickeyv1_…`")]
    BadKey {
        /// The rejected key.
        key: String,
    },
    /// The address is reachable from other machines and there is no identity key, so any client could run any thread.
    #[error(
        "{address} can be reached from other machines, and without an identity key everybody who reaches it can run threads; give the public key that Restate prints when it starts (`Worker::identity_key`, `archie worker --identity-key publickeyv1_…`), or listen at 127.0.0.1"
    )]
    NoIdentityKey {
        /// Address of the listener.
        address: SocketAddr,
    },
    /// This machine's clock is wrong, so the times that the worker stores would be wrong too.
    #[error(
        "the clock of this machine is {} s {} the clock of the database; set it (is NTP running?)",
        by_ms.abs() / 1_000,
        if *by_ms > 0 { "ahead of" } else { "behind" }
    )]
    ClockSkew {
        /// How many milliseconds the clock is ahead; negative if it is behind.
        by_ms: i64,
    },
    /// The clock of the store could not be read.
    #[error("the store could not be asked for the time")]
    Store(#[source] DriveError),
    /// The listener failed.
    #[error("the address could not be listened at")]
    Listen(#[from] io::Error),
}

impl WorkerError {
    /// Codes of all variants.
    pub const CODES: &'static [&'static str] = &[
        "worker-bad-key",
        "worker-no-identity-key",
        "worker-clock-skew",
        "worker-store",
        "worker-listen",
    ];

    /// Returns the stable code of this error: the name of its page in the error index.
    pub fn code(&self) -> &'static str {
        match self {
            WorkerError::BadKey { .. } => "worker-bad-key",
            WorkerError::NoIdentityKey { .. } => "worker-no-identity-key",
            WorkerError::ClockSkew { .. } => "worker-clock-skew",
            WorkerError::Store(_) => "worker-store",
            WorkerError::Listen(_) => "worker-listen",
        }
    }
}

impl Worker {
    /// Creates a worker for the graphs [registered](Runtime::register) with this runtime, and the queue that contains its
    /// requests.
    pub fn new(runtime: Runtime, queue: impl RequestQueue) -> Self {
        Self {
            runtime,
            queue: Arc::new(queue),
            limits: SegmentLimits::default(),
            identity_key: None,
            takes_unsigned: false,
            operations: None,
            drain: Duration::from_secs(60),
            requests_kept: REQUESTS_KEPT,
            #[cfg(test)]
            mutant: None,
        }
    }

    /// Sets the limits of a segment. Default: those of [`SegmentLimits`].
    #[must_use]
    pub fn limits(mut self, limits: SegmentLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Refuses calls that are not signed with this public key of the Restate cluster.
    #[must_use]
    pub fn identity_key(mut self, key: impl Into<String>) -> Self {
        self.identity_key = Some(key.into());
        self
    }

    /// Serves on every address without an identity key. Any client that reaches the address can then run any thread of any
    /// tenant: use it only on a private network, such as inside a pod.
    #[must_use]
    pub fn take_unsigned_calls(mut self) -> Self {
        self.takes_unsigned = true;
        self
    }

    /// Serves `/health`, `/ready` and `/metrics` on a separate listener. Default: not served.
    #[must_use]
    pub fn operations(mut self, listener: TcpListener) -> Self {
        self.operations = Some(listener);
        self
    }

    /// Sets how long work in progress may take once the worker is stopped. Default: one minute. Work that takes longer is
    /// aborted and retried by another worker.
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Sets how long the queue keeps a request after it was due; at least a day, for which Restate remembers ids. Default: a week,
    /// longer than Restate retries a call before it pauses it. Requests to a thread that is running are kept until it stops. What
    /// has not begun until then is never executed.
    #[must_use]
    pub fn keep_requests(mut self, kept: Duration) -> Self {
        self.requests_kept = kept.max(REQUESTS_KEPT_MIN);
        self
    }

    /// Listens on an address that several workers on one machine may share: the system gives each connection to one of them.
    pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        #[cfg(unix)]
        socket.set_reuseport(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    }

    /// Serves until `stop` completes; then starts nothing new, lets every segment reach its end, and returns. Other workers
    /// continue the threads.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> Result<(), WorkerError> {
        let address = listener.local_addr()?;
        #[cfg(test)]
        let this = self.broken();
        #[cfg(not(test))]
        let this = self;
        if this.identity_key.is_none() && !this.takes_unsigned && !address.ip().is_loopback() {
            return Err(WorkerError::NoIdentityKey { address });
        }
        let desk = HandlerState::new(this.runtime, this.queue, this.limits);
        #[cfg(test)]
        let desk = desk.broken(this.mutant);
        let desk = Arc::new(desk);
        desk.check_clock().await.map_err(|error| match error {
            CheckClockError::Skew(skew) => WorkerError::ClockSkew { by_ms: skew.by_ms },
            CheckClockError::Unknown(error) => WorkerError::Store(error),
        })?;
        let endpoint = endpoint(&desk, this.identity_key.as_deref())?;
        let health = Health::new(desk.clone());
        // Every spawned task ends with this call.
        let mut tasks = JoinSet::new();
        if let Some(listener) = this.operations {
            tasks.spawn(operations::serve(listener, health));
        }
        tasks.spawn(watch_clock(desk.clone()));
        tasks.spawn(keep_up(desk.clone(), this.requests_kept));
        let endpoint = HyperEndpoint::new(endpoint);
        let connections = accept(&listener, &endpoint, stop, &mut tasks).await;
        desk.draining.store(true, Ordering::SeqCst);
        desk.runtime.refuse_runs();
        drop(listener);
        if tokio::time::timeout(this.drain, connections.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("what is still under way is cut, and tried again by another worker");
        }
        Ok(())
    }
}

#[cfg(test)]
impl Worker {
    pub(crate) fn mutant(mut self, mutant: Option<Mutant>) -> Self {
        self.mutant = mutant;
        self
    }

    /// Removes the protection that the injected fault disables.
    fn broken(mut self) -> Self {
        match self.mutant {
            Some(Mutant::TakesUnsignedCalls) => self.identity_key = None,
            Some(Mutant::ServesAnywhere) => self.takes_unsigned = true,
            _ => {}
        }
        self
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("runtime", &self.runtime)
            .finish_non_exhaustive()
    }
}

/// Accepts connections until `stop` completes. Returns the ones that are still open.
async fn accept(
    listener: &TcpListener,
    endpoint: &HyperEndpoint,
    stop: impl Future<Output = ()>,
    tasks: &mut JoinSet<()>,
) -> GracefulShutdown {
    let connections = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        // Finished tasks stay in the set until they are joined.
        while tasks.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => return connections,
        };
        let stream =
            match accepted.and_then(|(stream, _)| stream.set_nodelay(true).map(|()| stream)) {
                Ok(stream) => stream,
                Err(error) => {
                    // Too many open files, or a client that is gone: others may still get through.
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            };
        let connection = http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), endpoint.clone());
        let connection = connections.watch(connection);
        tasks.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection of Restate's broke");
            }
        });
    }
}

/// Checks the clock periodically, because it may change while the worker runs. Until it is right, segments are refused and
/// the worker is not ready.
async fn watch_clock(desk: Arc<HandlerState>) {
    loop {
        tokio::time::sleep(CLOCK_LOOK).await;
        match desk.check_clock().await {
            Ok(()) => {}
            Err(CheckClockError::Skew(error)) => tracing::error!(%error, "the worker runs nothing"),
            // A store that does not answer reports it to the callers that need it.
            Err(CheckClockError::Unknown(error)) => {
                tracing::debug!(%error, "the store was not asked for the time");
            }
        }
    }
}

/// Deletes what is no longer needed, for as long as the worker runs. All workers of a cluster do it.
async fn keep_up(desk: Arc<HandlerState>, requests_kept: Duration) {
    loop {
        tokio::time::sleep(UPKEEP_EVERY).await;
        if let Err(error) = desk.sweep(requests_kept).await {
            tracing::warn!(%error, "old requests and expired node results were not deleted");
        }
    }
}

/// Builds the endpoint that Restate discovers: its services, and their retry policy.
fn endpoint(desk: &Arc<HandlerState>, identity_key: Option<&str>) -> Result<Endpoint, WorkerError> {
    let options = || {
        ServiceOptions::new()
            .retry_policy_initial_interval(FIRST_RETRY)
            .retry_policy_exponentiation_factor(2.0)
            .retry_policy_max_interval(LONGEST_RETRY)
            .retry_policy_max_attempts(RETRIES_MAX)
            .retry_policy_pause_on_max_attempts()
    };
    let mut endpoint = Endpoint::builder()
        .bind(
            Thread(desk.clone())
                .into_service_definition()
                .options(options()),
        )
        .bind(
            Node(desk.clone())
                .into_service_definition()
                .options(options()),
        )
        .bind(
            CronObject(desk.clone())
                .into_service_definition()
                .options(options()),
        );
    if let Some(key) = identity_key {
        endpoint = endpoint
            .identity_key(key)
            .map_err(|_| WorkerError::BadKey {
                key: key.to_owned(),
            })?;
    }
    Ok(endpoint.build())
}

/// Restate retries a failed segment: at once, because its worker may be gone, and then less and less often, for days. Giving
/// up would leave a thread that looks running. After the last attempt the invocation is paused, where people see it and can
/// resume it.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LONGEST_RETRY: Duration = Duration::from_secs(10);
const RETRIES_MAX: u64 = 50_000;
const CLOCK_LOOK: Duration = Duration::from_secs(5);
const UPKEEP_EVERY: Duration = Duration::from_secs(60);
/// How long a request is kept after it was due.
const REQUESTS_KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const REQUESTS_KEPT_MIN: Duration = Duration::from_secs(24 * 60 * 60);
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// Maximum number of connections waiting to be accepted.
const BACKLOG: u32 = 1_024;
