//! What one connection of the thread protocol gets: the events of a thread that its filters let through.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use superstep::ThreadId;
use tokio::time::Instant;

use crate::App;
use crate::error::{ApiError, ApiResult};
use crate::feed::{FeedBody, FeedEvent, FeedId, FeedItem, Subscription};
use crate::protocol::envelope::{EventKind, envelope};
use crate::protocol::filter::EventFilter;

/// The events of a thread for one connection.
pub(super) struct EventPump {
    app: App,
    thread: ThreadId,
    subscription: Subscription,
    /// What the connection has subscribed to, each under its id.
    filters: Vec<(String, EventFilter)>,
    /// What was shown before a subscription was added, and matches it.
    replayed: VecDeque<Arc<FeedEvent>>,
    /// An event that is held back until this time.
    held: Option<(Instant, ProtocolEvent)>,
}

/// An event as it is sent.
#[derive(Debug)]
pub(super) struct ProtocolEvent {
    pub(super) method: &'static str,
    pub(super) id: FeedId,
    pub(super) envelope: Json,
}

/// How long an interrupt is held back from a connection that only watches how runs go.
///
/// The client for Python ends all its iterators when such a connection shows an interrupt. It opens the connections that
/// carry the content after the run was started, so without this it would end them before the content of a quick run has
/// arrived.
const INTERRUPT_HELD: Duration = Duration::from_millis(250);

/// Highest number of subscriptions of one connection: every event is compared with each.
const SUBSCRIPTIONS_MAX: usize = 100;
/// Highest number of events, and of their bytes, that are repeated for subscriptions that are added to a connection.
const REPLAYED_MAX: usize = 10_000;
const REPLAYED_BYTES_MAX: usize = 64 * 1024 * 1024;

impl EventPump {
    /// Opens the events of a thread with a first subscription. A thread that does not exist yet has no events until a run
    /// begins.
    pub(super) async fn open(
        app: &App,
        thread: &ThreadId,
        id: String,
        filter: EventFilter,
        since: Option<FeedId>,
    ) -> ApiResult<Self> {
        let subscription = match since {
            None if filter.is_watcher() => app.feeds.for_watcher(app, thread).await?,
            since => app.feeds.of_thread(app, thread, since).await?,
        };
        Ok(Self {
            app: app.clone(),
            thread: thread.clone(),
            subscription,
            filters: vec![(id, filter)],
            replayed: VecDeque::new(),
            held: None,
        })
    }

    /// Takes the events that there are already, as far as they match. Returns how many do; they are returned first. Those of a
    /// connection that only watches are left where they are, because one of them may be held back.
    pub(super) fn take_past(&mut self) -> usize {
        if self.filters.iter().all(|(_, filter)| filter.is_watcher()) {
            return 0;
        }
        while let Some(event) = self.subscription.try_next() {
            if self.wanted(&event).is_some() {
                self.replayed.push_back(event);
            }
        }
        self.replayed.len()
    }

    /// Returns an event as it is sent, if a subscription lets it through.
    fn wanted(&self, event: &FeedEvent) -> Option<ProtocolEvent> {
        let is_wanted = |kind: &EventKind| {
            let mut filters = self.filters.iter();
            filters.any(|(_, filter)| filter.lets_through(&kind.channel, &event.namespace))
        };
        self.shown(event, is_wanted)
    }

    /// Adds a subscription. Returns how many events of the past match it; they are returned first.
    pub(super) async fn subscribe(
        &mut self,
        id: String,
        filter: EventFilter,
        since: Option<FeedId>,
    ) -> ApiResult<usize> {
        if self.filters.len() >= SUBSCRIPTIONS_MAX {
            return Err(ApiError::invalid(format!(
                "a connection has at most {SUBSCRIPTIONS_MAX} subscriptions"
            )));
        }
        let mut past = self
            .app
            .feeds
            .of_thread(&self.app, &self.thread, since)
            .await?;
        let end = self.subscription.last();
        let (mut found, mut bytes) = (Vec::new(), 0);
        while let Some(event) = past.next_past().await?
            && event.id <= end
        {
            let is_wanted = |kind: EventKind| filter.lets_through(&kind.channel, &event.namespace);
            if !EventKind::of(&event).is_some_and(is_wanted) {
                continue;
            }
            bytes += event.bytes;
            found.push(event);
            if self.replayed.len() + found.len() > REPLAYED_MAX || bytes > REPLAYED_BYTES_MAX {
                return Err(ApiError::invalid(
                    "too much has happened on the thread to be repeated on this connection; open another one",
                ));
            }
        }
        let count = found.len();
        self.replayed.extend(found);
        self.filters.push((id, filter));
        Ok(count)
    }

    /// Removes a subscription. Returns whether there was one.
    pub(super) fn unsubscribe(&mut self, id: &str) -> bool {
        let before = self.filters.len();
        self.filters.retain(|(known, _)| known != id);
        self.filters.len() < before
    }

    /// Returns the next event; `None` if the connection is to break. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<ProtocolEvent> {
        loop {
            if let Some((due, _)) = &self.held {
                tokio::time::sleep_until(*due).await;
                return self.held.take().map(|(_, event)| event);
            }
            if let Some(event) = self.replayed.pop_front() {
                match self.shown(&event, |_| true) {
                    Some(shown) => return Some(shown),
                    None => continue,
                }
            }
            let event = match self.subscription.next().await {
                FeedItem::Event(event) => event,
                FeedItem::Broken => return None,
            };
            let Some(shown) = self.wanted(&event) else {
                continue;
            };
            match self.holds_back(&event) {
                Some(due) => self.held = Some((due, shown)),
                None => return Some(shown),
            }
        }
    }

    fn shown(
        &self,
        event: &FeedEvent,
        is_wanted: impl FnOnce(&EventKind) -> bool,
    ) -> Option<ProtocolEvent> {
        let kind = EventKind::of(event).filter(is_wanted)?;
        let graph = self.subscription.graph();
        let graph = graph.as_ref().map_or("", |graph| graph.name());
        Some(ProtocolEvent {
            method: kind.method,
            id: event.id,
            envelope: envelope(&self.thread, graph, event, kind.method),
        })
    }

    /// Returns until when an event is held back, if it is.
    fn holds_back(&self, event: &FeedEvent) -> Option<Instant> {
        let is_watcher = self.filters.iter().all(|(_, filter)| filter.is_watcher());
        if !is_watcher || !matches!(event.body, FeedBody::InputRequested(_)) {
            return None;
        }
        let age = self.app.runtime.now().0.saturating_sub(event.at.0);
        let age = Duration::from_millis(u64::try_from(age).unwrap_or(0));
        let left = INTERRUPT_HELD.checked_sub(age)?;
        Some(Instant::now() + left)
    }
}
