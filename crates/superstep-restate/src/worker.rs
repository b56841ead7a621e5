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
use crate::handlers::{CheckClockError, Desk, Node, Thread};
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
    /// What is broken on purpose.
    #[cfg(test)]
    mutant: Option<Mutant>,
}

/// Why a worker could not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// Not a key.
    #[error("`{key}` is not an identity key; Restate prints it when it starts, as `publickeyv1_…`")]
    BadKey {
        /// What was given.
        key: String,
    },
    /// Everybody who reaches the address could have any thread run.
    #[error(
        "{address} can be reached from other machines, and without an identity key everybody who reaches it can run threads; give the public key that Restate prints when it starts (`Worker::identity_key`, `archie worker --identity-key publickeyv1_…`), or listen at 127.0.0.1"
    )]
    NoIdentityKey {
        /// Where it was to listen.
        address: SocketAddr,
    },
    /// The clock of this machine is wrong, and so would be the times that the worker stores.
    #[error(
        "the clock of this machine is {} s {} the clock of the database; set it (is NTP running?)",
        by_ms.abs() / 1_000,
        if *by_ms > 0 { "ahead of" } else { "behind" }
    )]
    ClockSkew {
        /// How many milliseconds it is ahead, or behind if it is negative.
        by_ms: i64,
    },
    /// The store could not be asked for the time.
    #[error("the store could not be asked for the time")]
    Store(#[source] DriveError),
    /// The address could not be used.
    #[error("the address could not be listened at")]
    Listen(#[from] io::Error),
}

impl WorkerError {
    /// The codes of this error.
    pub const CODES: &'static [&'static str] = &[
        "worker-bad-key",
        "worker-no-identity-key",
        "worker-clock-skew",
        "worker-store",
        "worker-listen",
    ];

    /// The stable code of this error: the name of its page in the error index.
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
    /// A worker for the graphs that are [registered](Runtime::register) with this runtime, and the queue that orders come
    /// through.
    pub fn new(runtime: Runtime, queue: impl RequestQueue) -> Self {
        Self {
            runtime,
            queue: Arc::new(queue),
            limits: SegmentLimits::default(),
            identity_key: None,
            takes_unsigned: false,
            operations: None,
            drain: Duration::from_secs(60),
            #[cfg(test)]
            mutant: None,
        }
    }

    /// How far its segments go.
    #[must_use]
    pub fn limits(mut self, limits: SegmentLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Refuses calls that are not signed with this key of the Restate cluster.
    #[must_use]
    pub fn identity_key(mut self, key: impl Into<String>) -> Self {
        self.identity_key = Some(key.into());
        self
    }

    /// Serves on every address without an identity key. Everybody who reaches the address can then have any thread of any
    /// tenant run: only for a network that nobody else is on, such as the inside of a pod.
    #[must_use]
    pub fn take_unsigned_calls(mut self) -> Self {
        self.takes_unsigned = true;
        self
    }

    /// Tells its health and its figures at an address of their own: `/health`, `/ready` and `/metrics`.
    #[must_use]
    pub fn operations(mut self, listener: TcpListener) -> Self {
        self.operations = Some(listener);
        self
    }

    /// How long what is under way may take when the worker is stopped. Default: a minute. What takes longer is cut and
    /// tried again by another worker.
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Listens at an address that several workers of one machine may share: each connection goes to one of them.
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

    /// Serves until `stop` ends; then begins nothing new, lets every segment come to its boundary and returns. What a thread
    /// still has to do is done by the other workers.
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
        let desk = Desk::new(this.runtime, this.queue, this.limits);
        #[cfg(test)]
        let desk = desk.broken(this.mutant);
        let desk = Arc::new(desk);
        desk.check_clock().await.map_err(|error| match error {
            CheckClockError::Skew(skew) => WorkerError::ClockSkew { by_ms: skew.by_ms },
            CheckClockError::Unknown(error) => WorkerError::Store(error),
        })?;
        let endpoint = endpoint(&desk, this.identity_key.as_deref())?;
        let health = Health::new(desk.clone());
        // Whatever is spawned ends with this call.
        let mut tasks = JoinSet::new();
        if let Some(listener) = this.operations {
            tasks.spawn(operations::serve(listener, health));
        }
        tasks.spawn(watch_clock(desk.clone()));
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

    /// Without what the mutant does without.
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

/// Serves connections until `stop` ends. Gives those that are open then.
async fn accept(
    listener: &TcpListener,
    endpoint: &HyperEndpoint,
    stop: impl Future<Output = ()>,
    tasks: &mut JoinSet<()>,
) -> GracefulShutdown {
    let connections = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        // Those that have ended are kept until somebody looks.
        while tasks.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => return connections,
        };
        let stream =
            match accepted.and_then(|(stream, _)| stream.set_nodelay(true).map(|()| stream)) {
                Ok(stream) => stream,
                Err(error) => {
                    // Too many open files, or a caller that is gone: others may still come through.
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

/// Looks at the clock again and again: it may be set while the worker runs. Until it is right, segments are refused and
/// the worker is not ready.
async fn watch_clock(desk: Arc<Desk>) {
    loop {
        tokio::time::sleep(CLOCK_LOOK).await;
        match desk.check_clock().await {
            Ok(()) => {}
            Err(CheckClockError::Skew(error)) => tracing::error!(%error, "the worker runs nothing"),
            // A store that does not answer says so to whoever needs it.
            Err(CheckClockError::Unknown(error)) => {
                tracing::debug!(%error, "the store was not asked for the time");
            }
        }
    }
}

/// What Restate is told of the worker: its services, and how they are to be tried again.
fn endpoint(desk: &Arc<Desk>, identity_key: Option<&str>) -> Result<Endpoint, WorkerError> {
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

/// A segment that fails is tried again: at once, for its worker may be gone, and then less and less often, for days. Giving
/// up would leave a thread that says it is running. Then the invocation is paused, where people see it and can resume it.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LONGEST_RETRY: Duration = Duration::from_secs(10);
const RETRIES_MAX: u64 = 50_000;
const CLOCK_LOOK: Duration = Duration::from_secs(5);
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1_024;
