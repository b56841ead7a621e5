//! The wire of a cluster: what happens on a thread right now, over Redis.
//!
//! One stream for each thread, of bounded length, that expires when nothing has been published for a while. A worker
//! publishes through a bounded buffer and one connection ([`outbound`]); a process that watches reads all its streams over one
//! other connection ([`inbound`]). Nothing here is the truth: that is the log in the store, so all of it may be lost.

mod inbound;
mod outbound;
pub(crate) mod packet;

use std::sync::Arc;
use std::time::Duration;

use superstep::{Notice, Subscription, ThreadId, Wire};
use tokio::task::JoinSet;

use inbound::Inbound;
use outbound::Outbox;

/// Redis as the [wire](Wire) of a cluster: those who watch a thread see what its nodes show, whichever worker runs them.
/// Cheap to clone.
///
/// Give it to the runtimes of the workers and to those of the programs that watch, with
/// [`RuntimeBuilder::wire`](superstep::RuntimeBuilder::wire). What nodes show is the user's data and is kept in Redis for
/// a while ([`RedisOptions::keep`]), so Redis is to be trusted and guarded as the store is.
///
/// When Redis is out of reach, runs and watchers go on: watchers look at the log often instead of being told, and nothing
/// that is shown live comes through. The log says so once, and once more when it is back. It need not be durable, and it
/// is one server: the keys of many threads are read at once, which a Redis Cluster refuses.
#[derive(Clone)]
pub struct Redis(Arc<Ends>);

/// How threads are kept in Redis.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RedisOptions {
    /// What its keys begin with: programs that have a store in common have this in common. Default: `superstep`.
    pub prefix: String,
    /// How many items the stream of a thread keeps, about; an item holds the notices of one thread that were sent together.
    /// Default: 4,096.
    pub length_max: u32,
    /// How long the stream of a thread is kept after the last notice. Default: ten minutes.
    pub keep: Duration,
    /// How many notices may wait to be sent; then the oldest are dropped. Default: 8,192.
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

/// Why Redis could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedisError {
    /// Not an address of a Redis.
    #[error("`{address}` is not an address of a Redis; they look like redis://127.0.0.1:6379")]
    BadAddress {
        /// What was given, without a password.
        address: String,
        /// What is wrong with it.
        #[source]
        source: redis::RedisError,
    },
}

impl RedisError {
    /// The codes of this error.
    pub const CODES: &'static [&'static str] = &["redis-bad-address"];

    /// The stable code of this error: the name of its page in the error index.
    pub fn code(&self) -> &'static str {
        match self {
            RedisError::BadAddress { .. } => "redis-bad-address",
        }
    }
}

/// Both ends of the wire.
struct Ends {
    outbox: Arc<Outbox>,
    inbound: Inbound,
    /// What sends and listens, for as long as this lives.
    _spawned: JoinSet<()>,
}

impl Redis {
    /// A Redis by its address, which need not answer yet.
    pub async fn connect(address: &str) -> Result<Self, RedisError> {
        Self::connect_with(address, RedisOptions::default()).await
    }

    /// A Redis by its address, which need not answer yet.
    // Async for what it spawns: it is only to be called where that can be.
    pub async fn connect_with(address: &str, options: RedisOptions) -> Result<Self, RedisError> {
        let client = redis::Client::open(address).map_err(|source| RedisError::BadAddress {
            address: without_password(address),
            source,
        })?;
        let outbox = Arc::new(Outbox::new(options.clone()));
        let mut spawned = JoinSet::new();
        spawned.spawn(outbound::send_all(client.clone(), outbox.clone()));
        let (inbound, listening) = inbound::listen(client, options, outbox.clone());
        spawned.spawn(listening);
        Ok(Self(Arc::new(Ends {
            outbox,
            inbound,
            _spawned: spawned,
        })))
    }
}

impl Wire for Redis {
    fn publish(&self, thread: &ThreadId, notice: Notice) {
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

fn without_password(address: &str) -> String {
    match (address.split_once("://"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        (None, Some((_, host))) => format!("…@{host}"),
        (_, None) => address.to_owned(),
    }
}

/// How long to wait before Redis is tried again: longer each time, up to a limit.
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
