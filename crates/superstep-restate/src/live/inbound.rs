//! Reads the streams of all threads that this process has subscribers for, with one task and one connection.
//!
//! A read blocks in Redis until a message arrives. A new subscriber wakes it by writing to a stream that belongs to this
//! process and is part of every read.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisResult};
use superstep::checkpoint::BoxFuture;
use superstep::driver::LiveEvent;
use superstep::{LiveDelivery, LiveMessage, Subscription, ThreadId};
use tokio::sync::{broadcast, mpsc, oneshot};

use super::outbound::Outbox;
use super::packet;
use super::server::{RedisLink, RedisServer};
use super::{Backoff, RedisOptions};

/// Handle to the listener, for new subscriptions.
pub(super) struct Inbound {
    asks: mpsc::UnboundedSender<Ask>,
    outbox: Arc<Outbox>,
    wake: String,
    is_up: Arc<AtomicBool>,
}

/// A new subscription.
struct Ask {
    thread: ThreadId,
    reply: oneshot::Sender<Joined>,
}

/// What a new subscriber gets: earlier events, and the channel for later ones.
struct Joined {
    before: Vec<LiveEvent>,
    now: broadcast::Receiver<LiveDelivery>,
}

/// Number of messages that a slow subscriber may lag behind before it reads the store again.
const BEHIND_MAX: usize = 4_096;
/// Maximum number of items per stream and read.
const ITEMS_MAX: usize = 32;
/// How long a read blocks in Redis. If a wake-up is lost, a new subscriber waits at most this long.
const BLOCK: Duration = Duration::from_secs(1);
/// How much longer the reply of a blocking read may take.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// Creates a listener: its handle, and the future to spawn.
pub(super) fn listen(
    server: RedisServer,
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
        server,
        options,
        link: None,
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
        // If the listener has stopped, there are no live messages; the log still works.
        let _ = self.asks.send(Ask { thread, reply });
        self.outbox.wake(&self.wake);
        Box::new(Watcher {
            joining: Some(joined),
            now: None,
            is_up: self.is_up.clone(),
        })
    }
}

/// A subscriber of a thread.
struct Watcher {
    joining: Option<oneshot::Receiver<Joined>>,
    now: Option<broadcast::Receiver<LiveDelivery>>,
    is_up: Arc<AtomicBool>,
}

impl Watcher {
    async fn hear(&mut self) -> LiveDelivery {
        if let Some(joining) = &mut self.joining {
            let joined = joining.await;
            self.joining = None;
            if let Ok(Joined { before, now }) = joined {
                self.now = Some(now);
                return LiveDelivery::Before(before);
            }
        }
        let Some(now) = &mut self.now else {
            return std::future::pending().await;
        };
        match now.recv().await {
            Ok(heard) => heard,
            Err(broadcast::error::RecvError::Lagged(_)) => LiveDelivery::Missed,
            Err(broadcast::error::RecvError::Closed) => {
                self.now = None;
                LiveDelivery::Missed
            }
        }
    }
}

impl Subscription for Watcher {
    fn next(&mut self) -> BoxFuture<'_, LiveDelivery> {
        Box::pin(self.hear())
    }

    fn hears_all(&self) -> bool {
        self.now.is_some() && self.is_up.load(Ordering::Relaxed)
    }
}

struct Listener {
    server: RedisServer,
    options: RedisOptions,
    link: Option<RedisLink>,
    asked: mpsc::UnboundedReceiver<Ask>,
    asking: Vec<Ask>,
    /// Streams with subscribers, by key.
    followed: BTreeMap<String, Followed>,
    wake: String,
    woken: String,
    is_up: Arc<AtomicBool>,
}

/// A stream with subscribers.
struct Followed {
    /// Id of the last item that was read.
    cursor: String,
    told: broadcast::Sender<LiveDelivery>,
}

/// An item of a stream: its id, and its field names and values in turn.
type Item = (String, Vec<Vec<u8>>);
/// Id before the first item of a stream.
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
                    self.link = None;
                    self.is_up.store(false, Ordering::Relaxed);
                    if !std::mem::replace(&mut is_down, true) {
                        tracing::warn!(%error, "live events are not heard: Redis does not answer; those who watch read the log, and it is tried again");
                    }
                    backoff.wait().await;
                }
            }
        }
    }

    /// Waits until there is a subscriber. Returns `false` once there can be no more.
    async fn is_wanted(&mut self) -> bool {
        self.followed
            .retain(|_, followed| followed.told.receiver_count() > 0);
        while let Ok(ask) = self.asked.try_recv() {
            self.asking.push(ask);
        }
        self.asking.retain(|ask| !ask.reply.is_closed());
        if self.followed.is_empty() && self.asking.is_empty() {
            self.link = None;
            match self.asked.recv().await {
                Some(ask) => self.asking.push(ask),
                None => return false,
            }
        }
        true
    }

    /// Admits new subscribers, then forwards the next messages, if any arrive soon.
    async fn listen(&mut self) -> RedisResult<()> {
        let mut link = match &self.link {
            Some(link) => link.clone(),
            None => self.connect().await?,
        };
        while let Some(ask) = self.asking.pop() {
            let joined = self.let_in(&mut link.connection, &ask.thread).await;
            match joined {
                // The subscriber may have been dropped meanwhile.
                Ok(joined) => drop(ask.reply.send(joined)),
                Err(error) => {
                    self.asking.push(ask);
                    return Err(error);
                }
            }
        }
        self.read(&mut link.connection).await
    }

    async fn connect(&mut self) -> RedisResult<RedisLink> {
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(BLOCK + REPLY_TIMEOUT));
        let mut link = self.server.connect(config).await?;
        let connection = &mut link.connection;
        rewind(connection, &self.wake, &mut self.woken).await?;
        for (key, followed) in &mut self.followed {
            rewind(connection, key, &mut followed.cursor).await?;
            // Fails if there is no subscriber, which does no harm.
            let _ = followed.told.send(LiveDelivery::Missed);
        }
        self.link = Some(link.clone());
        Ok(link)
    }

    /// Admits a subscriber: reads earlier events, up to the point from which the stream is followed.
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
            LiveDelivery::Now(LiveMessage::Live(event)) => Some(event),
            _ => None,
        };
        Ok(Joined {
            before: items.iter().flat_map(heard).filter_map(live).collect(),
            now: followed.told.subscribe(),
        })
    }

    /// Waits for a while for the next items of all streams, and forwards them.
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
                    // Fails if there is no subscriber, which does no harm.
                    let _ = followed.told.send(heard);
                }
            }
        }
        Ok(())
    }
}

/// Decodes the messages of an item. One that this version does not know counts as missed.
fn heard((_, fields): &Item) -> impl Iterator<Item = LiveDelivery> {
    let values = fields.iter().skip(1).step_by(2);
    values.map(|packet| packet::decode(packet).map_or(LiveDelivery::Missed, LiveDelivery::Now))
}

/// Restarts a stream if its newest item is older than the cursor: a Redis that replaced another one may have a clock that is
/// behind.
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

/// Parses the id of an item, which is two numbers.
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
