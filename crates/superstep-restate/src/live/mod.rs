//! The live bus of a cluster: live messages of threads, over Redis.
//!
//! There is one stream of bounded length per thread, which expires when nothing has been published for a while. A worker
//! publishes through a bounded buffer and one connection ([`outbound`]); a process that streams threads reads all their
//! streams over one other connection ([`inbound`]). The source of truth is the log in the store, so all of this may be lost.

mod inbound;
mod outbound;
pub(crate) mod packet;
mod server;

use std::sync::Arc;
use std::time::Duration;

use superstep::{LiveBus, LiveMessage, Subscription, ThreadId};
use superstep_tls::TlsError;
use tokio::task::JoinSet;

use inbound::Inbound;
use outbound::Outbox;
use server::RedisServer;

/// Redis as the [live bus](LiveBus) of a cluster: processes that stream a thread see the live events of its nodes, whichever
/// worker runs them. Cheap to clone.
///
/// Pass it to the runtimes of the workers and of the programs that stream threads, with
/// [`RuntimeBuilder::live_bus`](superstep::RuntimeBuilder::live_bus). Live events contain user data and stay in Redis for a while
/// ([`RedisOptions::keep`]), so protect Redis like the store.
///
/// If Redis is unreachable, runs and streams continue: streams poll the log instead of being notified, and live events are
/// lost. A warning is logged once, and a message when it is back. Redis need not be durable, and must be a single server: one
/// command reads the keys of many threads, which a Redis Cluster refuses.
///
/// An address `rediss://…` is encrypted, and the certificate must be for its host. Parameters of the address say what to trust, as
/// in an address of PostgreSQL: `?sslrootcert=FILE`, `sslcert` and `sslkey`, and `sslmode` (default: `verify-full`). The password is
/// in the address, or in the first line of the file that `passfile` names. Every new connection reads the files again.
#[derive(Clone)]
pub struct Redis(Arc<Ends>);

/// Options for storing live messages in Redis.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RedisOptions {
    /// Prefix of all keys; programs that share a store must share it. Default: `superstep`.
    pub prefix: String,
    /// Approximate maximum number of items in the stream of a thread; an item contains messages of one thread that were sent
    /// together. Default: 4,096.
    pub length_max: u32,
    /// How long the stream of a thread is kept after the last message. Default: ten minutes.
    pub keep: Duration,
    /// Maximum number of messages waiting to be sent; beyond it the oldest are dropped. Default: 8,192.
    pub waiting_max: usize,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            prefix: "superstep".to_owned(),
            length_max: 4_096,
            keep: Duration::from_secs(600),
            waiting_max: 8_192,
        }
    }
}

impl RedisOptions {
    fn key(&self, thread: &ThreadId) -> String {
        format!("{}:live:{thread}", self.prefix)
    }
}

/// Error from setting up Redis.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedisError {
    /// The address is not a valid Redis address.
    #[error("`{address}` is not an address of a Redis; they look like redis://127.0.0.1:6379")]
    BadAddress {
        /// The rejected address, without a password.
        address: String,
        /// Parsing error.
        #[source]
        source: redis::RedisError,
    },
    /// A parameter of the address about TLS or the password cannot be used.
    #[error("the parameters of the address of Redis cannot be used")]
    BadParameters {
        /// Why not.
        #[from]
        source: TlsError,
    },
}

impl RedisError {
    /// Codes of all variants.
    pub const CODES: &'static [&'static str] = &["redis-bad-address", "redis-bad-parameters"];

    /// Returns the stable code of this error: the name of its page in the error index.
    pub fn code(&self) -> &'static str {
        match self {
            RedisError::BadAddress { .. } => "redis-bad-address",
            RedisError::BadParameters { .. } => "redis-bad-parameters",
        }
    }
}

/// Both directions of the bus.
struct Ends {
    outbox: Arc<Outbox>,
    inbound: Inbound,
    /// The sending and the listening task, aborted on drop.
    _spawned: JoinSet<()>,
}

impl Redis {
    /// Creates a client for this address. Redis need not be reachable yet.
    pub async fn connect(address: &str) -> Result<Self, RedisError> {
        Self::connect_with(address, RedisOptions::default()).await
    }

    /// Creates a client for this address with options other than the defaults. Redis need not be reachable yet.
    // Async only because it spawns tasks, which requires a runtime.
    pub async fn connect_with(address: &str, options: RedisOptions) -> Result<Self, RedisError> {
        let server = RedisServer::parse(address)?;
        let outbox = Arc::new(Outbox::new(options.clone()));
        let mut spawned = JoinSet::new();
        spawned.spawn(outbound::send_all(server.clone(), outbox.clone()));
        let (inbound, listening) = inbound::listen(server, options, outbox.clone());
        spawned.spawn(listening);
        Ok(Self(Arc::new(Ends {
            outbox,
            inbound,
            _spawned: spawned,
        })))
    }
}

impl LiveBus for Redis {
    fn publish(&self, thread: &ThreadId, notice: LiveMessage) {
        self.0.outbox.put(thread, notice);
    }

    fn subscribe(&self, thread: &ThreadId) -> Box<dyn Subscription> {
        self.0.inbound.subscribe(thread)
    }

    fn dropped(&self) -> u64 {
        self.0.outbox.dropped()
    }
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis")
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}

/// Returns an address without what is in front of its host, for messages.
pub(crate) fn without_password(address: &str) -> String {
    match (address.split_once("://"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        (None, Some((_, host))) => format!("…@{host}"),
        (_, None) => address.to_owned(),
    }
}

/// Wait before the next attempt to reach Redis: doubles each time, up to a limit.
#[derive(Debug)]
struct Backoff(Duration);

impl Backoff {
    fn new() -> Self {
        Self(FIRST_WAIT)
    }

    async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(LONGEST_WAIT);
    }
}

const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);
