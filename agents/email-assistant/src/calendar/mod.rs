//! Calendars behind one trait: files on this machine, and Google's.

mod google;
pub mod ics;

use serde::{Deserialize, Serialize};
use superstep::checkpoint::BoxFuture;

pub use google::GoogleCalendar;
pub use ics::{Ics, read_events};

/// Where meetings are.
pub trait Calendar: Send + Sync {
    /// What is on these days (`YYYY-MM-DD`), in order.
    fn on<'a>(&'a self, days: &'a [String]) -> BoxFuture<'a, anyhow::Result<Vec<Event>>>;

    /// Makes an event under its own id. A second one of the same id is dropped, or found by [`Self::find`].
    fn create<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Result<(), NotMade>>;

    /// Whether there is an event of this id. None if nobody can tell.
    fn find<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, anyhow::Result<bool>>;
}

/// Something in a calendar.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its id: small letters and digits, made of the key of the call that made it.
    pub id: String,
    /// What it is called.
    pub title: String,
    /// When it begins, as `YYYY-MM-DDTHH:MM:SSZ`.
    pub start: String,
    /// When it ends.
    pub end: String,
    /// Who is invited.
    pub attendees: Vec<String>,
    /// Who invites.
    pub organizer: String,
}

/// Why an event was not made, or may not have been.
#[derive(Debug, thiserror::Error)]
pub enum NotMade {
    /// It surely was not.
    #[error("the meeting was not scheduled: {0:#}")]
    Refused(anyhow::Error),
    /// It may have been.
    #[error("it is not known whether the meeting was scheduled: {0:#}")]
    Unknown(anyhow::Error),
}

/// A moment as calendars take it; none if it is none.
pub fn moment(text: &str) -> Option<String> {
    let text = text.trim();
    let utc =
        |moment: chrono::DateTime<chrono::Utc>| moment.format("%Y-%m-%dT%H:%M:%SZ").to_string();
    if let Ok(moment) = chrono::DateTime::parse_from_rfc3339(text) {
        return Some(utc(moment.into()));
    }
    [
        "%Y-%m-%dT%H:%M:%S",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%d %H:%M",
    ]
    .iter()
    .find_map(|form| chrono::NaiveDateTime::parse_from_str(text, form).ok())
    .map(|moment| utc(moment.and_utc()))
}

/// A day in the form that calendars take; models write it in several.
pub fn day(text: &str) -> Option<String> {
    let text = text.trim();
    ["%Y-%m-%d", "%d-%m-%Y", "%d.%m.%Y", "%Y/%m/%d"]
        .iter()
        .find_map(|form| chrono::NaiveDate::parse_from_str(text, form).ok())
        .map(|day| day.format("%Y-%m-%d").to_string())
}
