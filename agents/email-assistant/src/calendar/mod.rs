//! Calendars behind one trait: files on this machine, and Google Calendar.

mod google;
pub mod ics;
mod zone;

use serde::{Deserialize, Serialize};
use superstep::checkpoint::BoxFuture;

pub use google::GoogleCalendar;
pub use ics::{Ics, read_events};
pub use zone::{MeetingZone, TimeProblem, shown};

/// A calendar that can list and create events.
pub trait Calendar: Send + Sync {
    /// Returns the events on these days (`YYYY-MM-DD`, see [`Event::is_on`]), each once, ordered by start time within each day.
    fn on<'a>(&'a self, days: &'a [String]) -> BoxFuture<'a, anyhow::Result<Vec<Event>>>;

    /// Creates an event under its own id. Creating it again either changes nothing, or [`Self::find`] finds the first one.
    fn create<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Result<(), NotMade>>;

    /// Returns whether the event exists. Fails if the calendar cannot tell.
    fn find<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, anyhow::Result<bool>>;
}

/// A calendar event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Id in lower-case letters and digits, derived from the idempotency key of the call that creates the event.
    pub id: String,
    /// Title, as attendees see it.
    pub title: String,
    /// Start in UTC, as `YYYY-MM-DDTHH:MM:SSZ`; events that others made may have a date or another form.
    pub start: String,
    /// End, in the same form as `start`.
    pub end: String,
    /// Email addresses of the invited people.
    pub attendees: Vec<String>,
    /// Email address of the person who invites; may be empty.
    pub organizer: String,
    /// IANA name of the time zone in which the meeting was made; empty for UTC.
    #[serde(default)]
    pub timezone: String,
}

impl Event {
    /// Returns whether the event starts on this day (`YYYY-MM-DD`), in UTC or by the clocks of its zone.
    pub fn is_on(&self, day: &str) -> bool {
        let zone = MeetingZone::find(&self.timezone).ok();
        let local = zone.and_then(|zone| zone.local(&self.start));
        self.start.starts_with(day)
            || local.is_some_and(|(time, _)| time.format(DAY).to_string() == day)
    }
}

/// Why an event was not created, or may not have been.
#[derive(Debug, thiserror::Error)]
pub enum NotMade {
    /// The event was not created.
    #[error("the meeting was not scheduled: {0:#}")]
    Refused(anyhow::Error),
    /// The event may have been created.
    #[error("it is not known whether the meeting was scheduled: {0:#}")]
    Unknown(anyhow::Error),
}

/// Converts a time to `YYYY-MM-DDTHH:MM:SSZ`. A time without an offset counts as UTC. Returns `None` if it is not a valid time.
pub fn moment(text: &str) -> Option<String> {
    if let Ok(moment) = chrono::DateTime::parse_from_rfc3339(text.trim()) {
        return Some(in_utc(moment.into()));
    }
    naive(text).map(|moment| in_utc(moment.and_utc()))
}

/// Parses a time without an offset, in the forms that models write.
fn naive(text: &str) -> Option<chrono::NaiveDateTime> {
    [
        "%Y-%m-%dT%H:%M:%S",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%d %H:%M",
    ]
    .iter()
    .find_map(|form| chrono::NaiveDateTime::parse_from_str(text.trim(), form).ok())
}

fn in_utc(moment: chrono::DateTime<chrono::Utc>) -> String {
    moment.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Converts a day to `YYYY-MM-DD` from the forms that models write. Returns `None` if it is not a valid day.
pub fn day(text: &str) -> Option<String> {
    let text = text.trim();
    [DAY, "%d-%m-%Y", "%d.%m.%Y", "%Y/%m/%d"]
        .iter()
        .find_map(|form| chrono::NaiveDate::parse_from_str(text, form).ok())
        .map(|day| day.format(DAY).to_string())
}

const DAY: &str = "%Y-%m-%d";
