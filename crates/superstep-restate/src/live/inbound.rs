//! Listens at the streams of all threads that somebody in this process watches: one task, one connection.
//!
//! A read waits at Redis until something comes. A client that begins to watch meanwhile wakes it by writing to a stream that
//! belongs to this process and is always read along.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult};
use superstep::checkpoint::BoxFuture;
use superstep::driver::LiveEvent;
use superstep::{Heard, Notice, Subscription, ThreadId};
use tokio::sync::{broadcast, mpsc, oneshot};

use super::outbound::Outbox;
use super::packet;
use super::{Backoff, RedisOptions};

/// Where to ask to listen.
pub(super) struct Inbound {
    asks: mpsc::UnboundedSender<Ask>,
    outbox: Arc<Outbox>,
    wake: String,
    is_up: Arc<AtomicBool>,
}

/// Somebody begins to watch.
struct Ask {
    thread: ThreadId,
    reply: oneshot::Sender<Joined>,
}

/// From where on one who watches hears.
struct Joined {
    before: Vec<LiveEvent>,
    now: broadcast::Receiver<Heard>,
}

/// How many notices a slow watcher may be behind before it reads the store again.
const BEHIND_MAX: usize = 4_096;
/// How many items of a stream are read at once.
const ITEMS_MAX: usize = 32;
/// How long a read blocks in Redis. If a wake-up is lost, a new subscriber waits at most this long.
const BLOCK: Duration = Duration::from_secs(1);
/// How much longer the reply may take.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// A listener, to be run, and where to ask it.
pub(super) fn listen(
    client: Client,
    options: RedisOptions,
    outbox: Arc<Outbox>,
) -> (Inbound, impl Future<Output = ()> + Send + 'static) {
    let (asks, asked) = mpsc::unbounded_channel();
    let wake = format!(
        "{}:wake:{:016x}",
        options.prefix,
        RandomState::new().hash_one(std::process::id())
    );
    let inbound = Inbound {
        asks,
        outbox,
        wake: wake.clone(),
        is_up: Arc::default(),
    };
    let listener = Listener {
        client,
        options,
        connection: None,
        asked,
        asking: Vec::new(),
        followed: BTreeMap::new(),
        wake,
        woken: START.to_owned(),
        is_up: inbound.is_up.clone(),
    };
    (inbound, listener.run())
}

impl Inbound {
    pub(super) fn subscribe(&self, thread: &ThreadId) -> Box<dyn Subscription> {
        let (reply, joined) = oneshot::channel();
        let thread = thread.clone();
        // A listener that is gone is one that nobody can be told by any more; the log is still there.
        let _ = self.asks.send(Ask { thread, reply });
        self.outbox.wake(&self.wake);
        Box::new(Watcher {
            joining: Some(joined),
            now: None,
            is_up: self.is_up.clone(),
        })
    }
}

/// One who watches a thread.
struct Watcher {
    joining: Option<oneshot::Receiver<Joined>>,
    now: Option<broadcast::Receiver<Heard>>,
    is_up: Arc<AtomicBool>,
}

impl Watcher {
    async fn hear(&mut self) -> Heard {
        if let Some(joining) = &mut self.joining {
            let joined = joining.await;
            self.joining = None;
            if let Ok(Joined { before, now }) = joined {
                self.now = Some(now);
                return Heard::Before(before);
            }
        }
        let Some(now) = &mut self.now else {
            return std::future::pending().await;
        };
        match now.recv().await {
            Ok(heard) => heard,
            Err(broadcast::error::RecvError::Lagged(_)) => Heard::Missed,
            Err(broadcast::error::RecvError::Closed) => {
                self.now = None;
                Heard::Missed
            }
        }
    }
}

impl Subscription for Watcher {
    fn next(&mut self) -> BoxFuture<'_, Heard> {
        Box::pin(self.hear())
    }

    fn hears_all(&self) -> bool {
        self.now.is_some() && self.is_up.load(Ordering::Relaxed)
    }
}

struct Listener {
    client: Client,
    options: RedisOptions,
    connection: Option<MultiplexedConnection>,
    asked: mpsc::UnboundedReceiver<Ask>,
    asking: Vec<Ask>,
    /// By key.
    followed: BTreeMap<String, Followed>,
    wake: String,
    woken: String,
    is_up: Arc<AtomicBool>,
}

/// A stream that somebody watches.
struct Followed {
    /// The last item that was read.
    cursor: String,
    told: broadcast::Sender<Heard>,
}

/// An item of a stream: its id, and its fields and values in turn.
type Item = (String, Vec<Vec<u8>>);
/// Before the first item of a stream.
const START: &str = "0-0";

impl Listener {
    async fn run(mut self) {
        let mut backoff = Backoff::new();
        let mut is_down = false;
        while self.is_wanted().await {
            match self.listen().await {
                Ok(()) => {
                    backoff = Backoff::new();
                    self.is_up.store(true, Ordering::Relaxed);
                    if std::mem::take(&mut is_down) {
                        tracing::info!("live events are heard again");
                    }
                }
                Err(error) => {
                    self.connection = None;
                    self.is_up.store(false, Ordering::Relaxed);
                    if !std::mem::replace(&mut is_down, true) {
                        tracing::warn!(%error, "live events are not heard: Redis does not answer; those who watch read the log, and it is tried again");
                    }
                    backoff.wait().await;
                }
            }
        }
    }

    /// Waits until somebody watches; false when nobody can any more.
    async fn is_wanted(&mut self) -> bool {
        self.followed
            .retain(|_, followed| followed.told.receiver_count() > 0);
        while let Ok(ask) = self.asked.try_recv() {
            self.asking.push(ask);
        }
        self.asking.retain(|ask| !ask.reply.is_closed());
        if self.followed.is_empty() && self.asking.is_empty() {
            self.connection = None;
            match self.asked.recv().await {
                Some(ask) => self.asking.push(ask),
                None => return false,
            }
        }
        true
    }

    /// Admits new subscribers, and passes on what comes next, if anything does soon.
    async fn listen(&mut self) -> RedisResult<()> {
        let mut connection = match &self.connection {
            Some(connection) => connection.clone(),
            None => self.connect().await?,
        };
        while let Some(ask) = self.asking.pop() {
            let joined = self.let_in(&mut connection, &ask.thread).await;
            match joined {
                // Who has gone away meanwhile does not matter.
                Ok(joined) => drop(ask.reply.send(joined)),
                Err(error) => {
                    self.asking.push(ask);
                    return Err(error);
                }
            }
        }
        self.read(&mut connection).await
    }

    async fn connect(&mut self) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(BLOCK + REPLY_TIMEOUT));
        let connection = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        let mut connection = connection.await?;
        rewind(&mut connection, &self.wake, &mut self.woken).await?;
        for (key, followed) in &mut self.followed {
            rewind(&mut connection, key, &mut followed.cursor).await?;
            // Nobody listens: then nobody misses it.
            let _ = followed.told.send(Heard::Missed);
        }
        self.connection = Some(connection.clone());
        Ok(connection)
    }

    /// What was shown before, up to where the thread is followed from then on.
    async fn let_in(
        &mut self,
        connection: &mut MultiplexedConnection,
        thread: &ThreadId,
    ) -> RedisResult<Joined> {
        let key = self.options.key(thread);
        let upto = self.followed.get(&key).map(|it| it.cursor.as_str());
        let items: Vec<Item> = redis::cmd("XRANGE")
            .arg(&key)
            .arg("-")
            .arg(upto.unwrap_or("+"))
            .query_async(connection)
            .await?;
        let last = items.last().map_or(START, |(id, _)| id.as_str());
        let followed = self.followed.entry(key).or_insert_with(|| Followed {
            cursor: last.to_owned(),
            told: broadcast::channel(BEHIND_MAX).0,
        });
        let live = |heard| match heard {
            Heard::Now(Notice::Live(event)) => Some(event),
            _ => None,
        };
        Ok(Joined {
            before: items.iter().flat_map(heard).filter_map(live).collect(),
            now: followed.told.subscribe(),
        })
    }

    /// Waits a while for the next items of all streams, and passes them on.
    async fn read(&mut self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let mut read = redis::cmd("XREAD");
        read.arg("COUNT").arg(ITEMS_MAX);
        read.arg("BLOCK").arg(BLOCK.as_millis() as u64);
        read.arg("STREAMS").arg(&self.wake);
        for key in self.followed.keys() {
            read.arg(key);
        }
        read.arg(&self.woken);
        for followed in self.followed.values() {
            read.arg(&followed.cursor);
        }
        let streams: Option<Vec<(String, Vec<Item>)>> = read.query_async(connection).await?;
        for (key, items) in streams.into_iter().flatten() {
            let Some((last, _)) = items.last() else {
                continue;
            };
            if key == self.wake {
                self.woken.clone_from(last);
            } else if let Some(followed) = self.followed.get_mut(&key) {
                followed.cursor.clone_from(last);
                for heard in items.iter().flat_map(heard) {
                    // Nobody listens: then nobody misses it.
                    let _ = followed.told.send(heard);
                }
            }
        }
        Ok(())
    }
}

/// What an item of a stream says.
fn heard((_, fields): &Item) -> impl Iterator<Item = Heard> {
    let values = fields.iter().skip(1).step_by(2);
    values.map(|packet| packet::decode(packet).map_or(Heard::Missed, Heard::Now))
}

/// Begins a stream again if its newest item is before the cursor: a Redis that was put in the place of another may have a
/// clock that is behind.
async fn rewind(
    connection: &mut MultiplexedConnection,
    key: &str,
    cursor: &mut String,
) -> RedisResult<()> {
    let newest: Vec<Item> = redis::cmd("XREVRANGE")
        .arg(key)
        .arg(&["+", "-", "COUNT", "1"])
        .query_async(connection)
        .await?;
    if newest
        .first()
        .is_some_and(|(id, _)| place(id) < place(cursor))
    {
        *cursor = START.to_owned();
    }
    Ok(())
}

/// An id of a stream is two numbers.
fn place(id: &str) -> (u64, u64) {
    let (ms, number) = id.split_once('-').unwrap_or((id, "0"));
    (ms.parse().unwrap_or(0), number.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_compared_as_numbers() {
        assert!(place("999-0") < place("1000-0"));
        assert!(place("1000-9") < place("1000-10"));
        assert!(place(START) < place("0-1"));
    }
}
