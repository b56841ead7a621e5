//! Streaming a thread: the stored log from any point, then live events.
//!
//! The log is the source of truth, and live messages only wake the watcher. So a watcher that leaves and returns, in any
//! process, loses, repeats and reorders nothing, even if the [bus](crate::LiveBus) that carries the messages fails.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::str::FromStr;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};
use superstep_core::__private::shorten;
use superstep_core::checkpoint::BoxFuture;
use superstep_core::driver::LiveEvent;
use superstep_core::error::NameError;
use superstep_core::run::{StreamEvent, StreamMode};
use superstep_core::{Seq, TaskId};

use crate::drive::DriveError;
use crate::event_reader::{EventReader, LogPlace, WatchedThread};

/// Something that happened on a thread.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// An item of the log. It is numbered, and the same for every watcher.
    Logged(StreamEvent),
    /// An event that a running node shows now. It is not in the log (yet) and may be lost; gaps in [`LiveEvent::index`] reveal
    /// losses.
    ///
    /// It is valid until the log reports that its task ended, or until it is [replaced](Event::Replaced). Events that were
    /// replaced before they arrived are not delivered.
    Live(LiveEvent),
    /// Everything that this task has shown live is void. The task failed and is retried, or runs again after a crash or an
    /// answer, and shows everything again.
    Replaced {
        /// Task whose live events are void.
        task: TaskId,
    },
}

/// The place of an item of the log: the entry, and the position in it. Written `12-3`, as the id of a server-sent event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// Sequence number of the entry.
    pub seq: Seq,
    /// Position within the entry, from 0.
    pub index: u32,
}

impl Event {
    /// Returns the place of a log item; `None` for live events, which have none.
    pub fn id(&self) -> Option<EventId> {
        match self {
            Event::Logged(StreamEvent { seq, index, .. }) => Some(EventId {
                seq: *seq,
                index: *index,
            }),
            Event::Live(_) | Event::Replaced { .. } => None,
        }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.seq.0, self.index)
    }
}

/// Also reads `12.3`, the form of earlier versions, which clients may have kept.
impl FromStr for EventId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let parts = text.split_once(['-', '.']);
        let numbers = parts.and_then(|(seq, index)| Some((seq.parse().ok()?, index.parse().ok()?)));
        let (seq, index) = numbers.ok_or_else(|| NameError::Event {
            text: shorten(text),
        })?;
        let seq = Seq(seq);
        Ok(Self { seq, index })
    }
}

impl EventId {
    /// Before the first event of every thread.
    pub const START: Self = Self {
        seq: Seq(0),
        index: 0,
    };

    /// Reads the value of a `Last-Event-ID` header, with which a client of a web service continues where it left; a client
    /// without one continues from the [start](EventId::START).
    ///
    /// ```
    /// use superstep::EventId;
    ///
    /// assert_eq!(EventId::from_header(Some("12-3"))?.to_string(), "12-3");
    /// assert_eq!(EventId::from_header(None::<&str>)?, EventId::START);
    /// assert!(EventId::from_header(Some("latest")).is_err());
    /// # Ok::<(), superstep::DriveError>(())
    /// ```
    #[doc(alias = "Last-Event-ID")]
    pub fn from_header(value: Option<impl AsRef<[u8]>>) -> Result<Self, DriveError> {
        match value {
            None => Ok(Self::START),
            // Bytes that are not UTF-8 become characters that are no digits.
            Some(value) => Ok(String::from_utf8_lossy(value.as_ref()).parse()?),
        }
    }
}

/// In the JSON form of `docs/streaming.md`.
impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Event::Logged(logged) => logged.serialize(serializer),
            Event::Live(live) => json!({
                "type": "live",
                "node": live.node,
                "task": live.task.to_string(),
                "attempt": live.attempt,
                "index": live.index,
                "payload": live.payload.decode::<Json>().unwrap_or_default(),
            })
            .serialize(serializer),
            Event::Replaced { task } => {
                json!({ "type": "replaced", "task": task.to_string() }).serialize(serializer)
            }
        }
    }
}

/// Stream of a thread's events. It never ends by itself: [`StreamEventBody::Stopped`](superstep_core::run::StreamEventBody) reports that a run
/// stopped.
///
/// Also a [`Stream`] of results, which ends after an error. Nothing is read unless it is polled, and dropping it stops reading; it
/// has no influence on the run. [`Events::next`] is cancel-safe.
///
/// ```
/// # use superstep::prelude::*;
/// # use superstep::{DriveError, RunOptions, Seq};
/// # #[derive(Clone, Debug, Default, State)]
/// # struct Refund { order: String, cents: u64, receipt: Option<String> }
/// # async fn example(thread: Thread<Refund>) -> Result<(), DriveError> {
/// use superstep::Event;
/// use superstep::run::{StreamEventBody, StreamMode};
///
/// let mut events = thread.events(Seq(0)).only([StreamMode::Updates, StreamMode::Custom]);
/// loop {
///     match events.next().await? {
///         Event::Logged(item) => match item.what {
///             StreamEventBody::Update { node, .. } => println!("{node} has written"),
///             StreamEventBody::Stopped(_) => break,
///             _ => {}
///         },
///         Event::Live(live) => println!("{}: {:?}", live.node, live.payload),
///         Event::Replaced { .. } => println!("what it showed before is void"),
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Events {
    watched: WatchedThread,
    /// Place after the last event that was returned.
    place: LogPlace,
    modes: Option<BTreeSet<StreamMode>>,
    ready: VecDeque<Event>,
    /// The reader, while `batch` does not own it.
    reader: Option<Box<EventReader>>,
    /// Reads further events. It owns the reader, so that this need not borrow from itself.
    batch: Option<NextBatch>,
    /// Whether an event was asked for.
    is_started: bool,
    /// Whether the [`Stream`] returned an error.
    has_failed: bool,
}

type NextBatch = BoxFuture<'static, (Result<VecDeque<Event>, DriveError>, Box<EventReader>)>;

fn next_batch(mut reader: Box<EventReader>) -> NextBatch {
    Box::pin(async move { (reader.next_batch().await, reader) })
}

impl Events {
    pub(crate) fn new(watched: WatchedThread, place: LogPlace) -> Self {
        // The subscription begins here, not with the first poll.
        let reader = EventReader::new(&watched, place);
        Self {
            watched,
            place,
            modes: None,
            ready: VecDeque::new(),
            reader: Some(Box::new(reader)),
            batch: None,
            is_started: false,
            has_failed: false,
        }
    }

    /// Restricts log items to these modes. Stops of runs and live events are always delivered.
    #[must_use]
    pub fn only(mut self, modes: impl IntoIterator<Item = StreamMode>) -> Self {
        let modes = modes.into_iter().collect();
        if self.is_started && self.modes.is_some() {
            // What was read ahead may lack states that are wanted now.
            let reader = EventReader::new(&self.watched, self.place);
            self.reader = Some(Box::new(reader));
            self.batch = None;
            self.ready.clear();
        }
        if let Some(reader) = &mut self.reader {
            reader.restrict(&modes);
        }
        self.modes = Some(modes);
        self
    }

    /// Returns the next event, waiting for it if necessary. After an error, the next call tries again.
    pub async fn next(&mut self) -> Result<Event, DriveError> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, DriveError>> {
        loop {
            while let Some(event) = self.ready.pop_front() {
                if let Some(id) = event.id() {
                    self.place = LogPlace::after_event(id);
                }
                if is_wanted(&event, self.modes.as_ref()) {
                    return Poll::Ready(Ok(event));
                }
            }
            self.is_started = true;
            if let Some(reader) = self.reader.take() {
                self.batch = Some(next_batch(reader));
            }
            let batch = self
                .batch
                .as_mut()
                .expect("either it or the reader is there");
            let (batch, reader) = ready!(batch.as_mut().poll(cx));
            (self.batch, self.reader) = (None, Some(reader));
            self.ready = batch?;
        }
    }

    /// Returns the log items stored so far, without waiting for further ones.
    pub async fn stored(self) -> Result<Vec<StreamEvent>, DriveError> {
        // Reads from the place on, because what was read ahead may be in a batch that waits for more.
        let mut reader = EventReader::new(&self.watched, self.place);
        if let Some(modes) = &self.modes {
            reader.restrict(modes);
        }
        let events = reader.stored().await?.into_iter();
        let wanted = events.filter(|event| is_wanted(event, self.modes.as_ref()));
        let logged = wanted.filter_map(|event| match event {
            Event::Logged(logged) => Some(logged),
            Event::Live(_) | Event::Replaced { .. } => None,
        });
        Ok(logged.collect())
    }
}

fn is_wanted(event: &Event, modes: Option<&BTreeSet<StreamMode>>) -> bool {
    match (event, modes) {
        (Event::Logged(logged), Some(modes)) => {
            logged.what.mode().is_none_or(|mode| modes.contains(&mode))
        }
        _ => true,
    }
}

impl Stream for Events {
    type Item = Result<Event, DriveError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_failed {
            return Poll::Ready(None);
        }
        let event = ready!(self.poll_event(cx));
        self.has_failed = event.is_err();
        Poll::Ready(Some(event))
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("thread", &self.watched.thread)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}
