//! A live bus that carries ciphertext of what nodes show, for a bus that leaves this process.
//!
//! Which node of which thread shows something, and when, stays in clear. A message that cannot be decrypted counts as missed: a bus may
//! lose messages, and watchers read the log.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use superstep::{LiveBus, LiveDelivery, LiveMessage, Subscription};
use superstep_core::checkpoint::BoxFuture;
use superstep_core::driver::LiveEvent;
use superstep_core::{ThreadId, Value};

use crate::body::{CODEC_ENCRYPTED, thread_place};
use crate::cipher::Place;
use crate::encryption::{Encryption, Reader};
use crate::error::EncryptionError;

/// A [`LiveBus`] in front of another one, which carries nothing but ciphertext of what nodes show.
#[derive(Clone)]
pub struct EncryptedLiveBus {
    inner: Arc<dyn LiveBus>,
    encryption: Encryption,
    /// Messages that could not be encrypted.
    dropped: Arc<AtomicU64>,
}

impl EncryptedLiveBus {
    /// Creates a bus that encrypts what it sends through another one.
    pub fn new(inner: Arc<dyn LiveBus>, encryption: Encryption) -> Self {
        Self {
            inner,
            encryption,
            dropped: Arc::default(),
        }
    }
}

fn place(thread: &ThreadId, event: &LiveEvent) -> Place {
    thread_place("live", thread)
        .bytes(&event.task.to_bytes())
        .number(event.go)
        .number(event.index)
}

impl LiveBus for EncryptedLiveBus {
    /// Uses the keys at hand: a process that runs a thread has just written with them.
    fn publish(&self, thread: &ThreadId, notice: LiveMessage) {
        let LiveMessage::Live(mut event) = notice else {
            return self.inner.publish(thread, notice);
        };
        let Some(keys) = self.encryption.keys_at_hand(thread.tenant()) else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let plain = event.payload.as_bytes();
        let encrypted = keys.current().encrypt(&place(thread, &event), plain);
        event.payload = Value::from_bytes([&[CODEC_ENCRYPTED][..], &encrypted].concat());
        self.inner.publish(thread, LiveMessage::Live(event));
    }

    fn subscribe(&self, thread: &ThreadId) -> Box<dyn Subscription> {
        Box::new(Decrypted {
            inner: self.inner.subscribe(thread),
            encryption: self.encryption.clone(),
            thread: thread.clone(),
            pending: None,
        })
    }

    fn assume_sole_process(&self) {
        self.inner.assume_sole_process();
    }

    fn dropped(&self) -> u64 {
        self.inner.dropped() + self.dropped.load(Ordering::Relaxed)
    }
}

/// A subscription that decrypts what it delivers.
struct Decrypted {
    inner: Box<dyn Subscription>,
    encryption: Encryption,
    thread: ThreadId,
    /// Came, and is not delivered yet: reading a key takes a while, and a dropped future must not lose it.
    pending: Option<LiveDelivery>,
}

impl Subscription for Decrypted {
    fn next(&mut self) -> BoxFuture<'_, LiveDelivery> {
        Box::pin(async move {
            if self.pending.is_none() {
                self.pending = Some(self.inner.next().await);
            }
            let shown = match &self.pending {
                Some(delivery) => {
                    let show = |reader: &Reader<'_>| show(reader, &self.thread, delivery);
                    self.encryption.read(self.thread.tenant(), show).await
                }
                None => Ok(LiveDelivery::Missed),
            };
            self.pending = None;
            shown.unwrap_or(LiveDelivery::Missed)
        })
    }

    fn hears_all(&self) -> bool {
        self.inner.hears_all()
    }
}

fn show(
    reader: &Reader<'_>,
    thread: &ThreadId,
    delivery: &LiveDelivery,
) -> Result<LiveDelivery, EncryptionError> {
    Ok(match delivery {
        LiveDelivery::Now(LiveMessage::Live(event)) => {
            LiveDelivery::Now(LiveMessage::Live(show_event(reader, thread, event)?))
        }
        LiveDelivery::Before(events) => {
            let events = events.iter().map(|event| show_event(reader, thread, event));
            LiveDelivery::Before(events.collect::<Result<_, _>>()?)
        }
        LiveDelivery::Now(LiveMessage::Entry(_)) | LiveDelivery::Missed => delivery.clone(),
    })
}

fn show_event(
    reader: &Reader<'_>,
    thread: &ThreadId,
    event: &LiveEvent,
) -> Result<LiveEvent, EncryptionError> {
    let what = || format!("what a node of thread `{thread}` shows");
    let payload = match event.payload.as_bytes().split_first() {
        Some((&CODEC_ENCRYPTED, encrypted)) => {
            Value::from_bytes(reader.decrypt(&place(thread, event), encrypted, what)?)
        }
        _ => {
            reader.check_plain(what)?;
            event.payload.clone()
        }
    };
    Ok(LiveEvent {
        payload,
        ..event.clone()
    })
}

impl fmt::Debug for EncryptedLiveBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptedLiveBus")
            .field("encryption", &self.encryption)
            .finish_non_exhaustive()
    }
}
