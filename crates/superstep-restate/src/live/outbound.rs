//! Sends live messages to Redis: through a buffer that never blocks, in batches, over one connection.
//!
//! A batch without a reply is sent again: subscribers skip duplicates by their number.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use redis::{AsyncConnectionConfig, Pipeline, RedisResult};
use superstep::__private::lock;
use superstep::{LiveMessage, ThreadId};
use tokio::sync::Notify;

use super::packet;
use super::server::{RedisLink, RedisServer};
use super::{Backoff, RedisOptions};

/// Buffer of messages to be sent.
pub(super) struct Outbox {
    options: RedisOptions,
    waiting: Mutex<Waiting>,
    /// Notified when the buffer gets new work.
    news: Notify,
    dropped: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    live_messages: VecDeque<(ThreadId, LiveMessage)>,
    bytes: usize,
    /// Streams whose listener is to be woken.
    wakes: BTreeSet<String>,
}

/// Maximum size of all waiting payloads, in bytes.
const WAITING_BYTES_MAX: usize = 32 << 20;
/// Maximum size of a payload, in bytes. Larger ones are not sent live.
const PAYLOAD_BYTES_MAX: usize = 64 << 10;
/// Maximum number of messages per batch, and below per item of a thread's stream.
const BATCH_MAX: usize = 1_024;
const ITEM_MAX: usize = 64;
const ITEM_BYTES_MAX: usize = 64 << 10;
/// How long to wait for the reply to a batch.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a wake-up is kept; it only matters to a listener that is reading now.
const WAKE_KEPT: Duration = Duration::from_secs(60);
/// Name of the field that contains a message.
const FIELD: &str = "n";

impl Outbox {
    pub(super) fn new(options: RedisOptions) -> Self {
        Self {
            options,
            waiting: Mutex::default(),
            news: Notify::new(),
            dropped: AtomicU64::new(0),
        }
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn put(&self, thread: &ThreadId, notice: LiveMessage) {
        let bytes = payload_bytes(&notice);
        if bytes > PAYLOAD_BYTES_MAX {
            return self.drop_notices(1);
        }
        let mut waiting = self.waiting();
        let is_first = waiting.live_messages.is_empty();
        waiting.bytes += bytes;
        waiting.live_messages.push_back((thread.clone(), notice));
        let dropped = waiting.shrink(self.options.waiting_max);
        drop(waiting);
        self.drop_notices(dropped);
        if is_first {
            self.news.notify_one();
        }
    }

    /// Wakes the listener of a stream.
    pub(super) fn wake(&self, key: &str) {
        self.waiting().wakes.insert(key.to_owned());
        self.news.notify_one();
    }

    /// Takes the oldest messages. Waits until there are some.
    async fn take(&self) -> Batch {
        loop {
            {
                let mut waiting = self.waiting();
                let many = waiting.live_messages.len().min(BATCH_MAX);
                if many > 0 || !waiting.wakes.is_empty() {
                    let live_messages: Vec<_> = waiting.live_messages.drain(..many).collect();
                    let bytes: usize = live_messages.iter().map(|(_, it)| payload_bytes(it)).sum();
                    waiting.bytes -= bytes;
                    let wakes = std::mem::take(&mut waiting.wakes);
                    return Batch {
                        live_messages,
                        wakes,
                    };
                }
            }
            self.news.notified().await;
        }
    }

    /// Puts an unsent batch back in front. Drops what no longer fits.
    fn give_back(&self, batch: Batch) {
        let mut waiting = self.waiting();
        for (thread, notice) in batch.live_messages.into_iter().rev() {
            waiting.bytes += payload_bytes(&notice);
            waiting.live_messages.push_front((thread, notice));
        }
        waiting.wakes.extend(batch.wakes);
        let dropped = waiting.shrink(self.options.waiting_max);
        drop(waiting);
        self.drop_notices(dropped);
    }

    fn drop_notices(&self, many: usize) {
        if many > 0 {
            self.dropped.fetch_add(many as u64, Ordering::Relaxed);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Its content only changes in single calls, so a panic cannot leave it half changed.
        lock(&self.waiting)
    }
}

impl Waiting {
    /// Drops the oldest messages until the rest fits. Returns how many.
    fn shrink(&mut self, notices_max: usize) -> usize {
        let mut dropped = 0;
        while self.live_messages.len() > notices_max || self.bytes > WAITING_BYTES_MAX {
            let Some((_, oldest)) = self.live_messages.pop_front() else {
                break;
            };
            self.bytes -= payload_bytes(&oldest);
            dropped += 1;
        }
        dropped
    }
}

fn payload_bytes(notice: &LiveMessage) -> usize {
    match notice {
        LiveMessage::Entry(_) => 0,
        LiveMessage::Live(event) => event.payload.len(),
    }
}

/// Sends what arrives in the buffer until the task is aborted.
pub(super) async fn send_all(server: RedisServer, outbox: std::sync::Arc<Outbox>) {
    let mut link = None;
    let mut backoff = Backoff::new();
    let mut is_down = false;
    loop {
        let batch = outbox.take().await;
        match send(&server, &mut link, &batch, &outbox.options).await {
            Ok(()) => {
                backoff = Backoff::new();
                if std::mem::take(&mut is_down) {
                    tracing::info!("live events are sent again");
                }
            }
            Err(error) => {
                link = None;
                if !std::mem::replace(&mut is_down, true) {
                    tracing::warn!(%error, "live events are not sent: Redis does not accept them; runs continue, and sending is retried");
                }
                match error.is_io_error() {
                    true => outbox.give_back(batch),
                    // Redis rejected the batch: it would do so again, and block the others.
                    false => outbox.drop_notices(batch.live_messages.len()),
                }
                backoff.wait().await;
            }
        }
    }
}

async fn send(
    server: &RedisServer,
    link: &mut Option<RedisLink>,
    batch: &Batch,
    options: &RedisOptions,
) -> RedisResult<()> {
    let link = match link {
        Some(link) => link,
        None => {
            let config = AsyncConnectionConfig::new().set_response_timeout(Some(REPLY_TIMEOUT));
            link.insert(server.connect(config).await?)
        }
    };
    let commands = batch.commands(options);
    commands.exec_async(&mut link.connection).await
}

struct Batch {
    live_messages: Vec<(ThreadId, LiveMessage)>,
    wakes: BTreeSet<String>,
}

impl Batch {
    fn commands(&self, options: &RedisOptions) -> Pipeline {
        let mut commands = Pipeline::new();
        let mut threads: BTreeMap<&ThreadId, Vec<&LiveMessage>> = BTreeMap::new();
        for (thread, notice) in &self.live_messages {
            let of_thread = threads.entry(thread).or_default();
            // Of consecutive entries only the last one matters.
            if let (Some(LiveMessage::Entry(_)), LiveMessage::Entry(_)) = (of_thread.last(), notice)
            {
                of_thread.pop();
            }
            of_thread.push(notice);
        }
        for (thread, live_messages) in threads {
            let key = options.key(thread);
            for item in items(&live_messages) {
                add(&mut commands, &key, options.length_max, &item);
            }
            expire(&mut commands, &key, options.keep);
        }
        for key in &self.wakes {
            add(&mut commands, key, 1, &[Vec::new()]);
            expire(&mut commands, key, WAKE_KEPT);
        }
        commands
    }
}

/// Encodes the messages of one thread into items of its stream.
fn items(live_messages: &[&LiveMessage]) -> Vec<Vec<Vec<u8>>> {
    let mut items = Vec::new();
    let mut item = Vec::new();
    let mut bytes = 0;
    for notice in live_messages {
        let packet = packet::encode(notice);
        let is_full = item.len() >= ITEM_MAX || bytes + packet.len() > ITEM_BYTES_MAX;
        if is_full && !item.is_empty() {
            items.push(std::mem::take(&mut item));
            bytes = 0;
        }
        bytes += packet.len();
        item.push(packet);
    }
    items.push(item);
    items
}

fn add(commands: &mut Pipeline, key: &str, length_max: u32, packets: &[Vec<u8>]) {
    commands.cmd("XADD").arg(key);
    commands.arg("MAXLEN").arg("~").arg(length_max).arg("*");
    for packet in packets {
        commands.arg(FIELD).arg(packet);
    }
    commands.ignore();
}

fn expire(commands: &mut Pipeline, key: &str, keep: Duration) {
    let ms = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
    commands.cmd("PEXPIRE").arg(key).arg(ms).ignore();
}

#[cfg(test)]
mod tests {
    use superstep::Seq;

    use super::*;

    fn thread() -> ThreadId {
        ThreadId::new("t").expect("a name")
    }

    fn outbox(waiting_max: usize) -> Outbox {
        Outbox::new(RedisOptions {
            waiting_max,
            ..RedisOptions::default()
        })
    }

    fn waiting(outbox: &Outbox) -> Vec<LiveMessage> {
        let waiting = outbox.waiting();
        let live_messages = waiting.live_messages.iter();
        live_messages.map(|(_, notice)| notice.clone()).collect()
    }

    #[tokio::test]
    async fn the_oldest_are_dropped_and_counted_when_too_many_wait() {
        let outbox = outbox(2);
        for seq in 1..=5 {
            outbox.put(&thread(), LiveMessage::Entry(Seq(seq)));
        }
        assert_eq!(outbox.dropped(), 3);
        let batch = outbox.take().await;
        outbox.put(&thread(), LiveMessage::Entry(Seq(6)));
        outbox.give_back(batch);
        assert_eq!(outbox.dropped(), 4);
        let left = [LiveMessage::Entry(Seq(5)), LiveMessage::Entry(Seq(6))];
        assert_eq!(waiting(&outbox), left);
    }

    #[test]
    fn items_hold_no_more_than_they_may() {
        let entries: Vec<_> = (0..150).map(|seq| LiveMessage::Entry(Seq(seq))).collect();
        let items = items(&entries.iter().collect::<Vec<_>>());
        let lengths: Vec<_> = items.iter().map(Vec::len).collect();
        assert_eq!(lengths, [ITEM_MAX, ITEM_MAX, 22]);
    }
}
