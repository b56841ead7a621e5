//! A folder of `.ics` files, one for each event, named after its id.

use std::path::{Path, PathBuf};

use anyhow::bail;

use super::{Calendar, Event, NotMade};
use crate::agents::BoxFuture;
use crate::user_folder::{Access, FileName, RelativePath, UserFolder};

/// Events in files.
#[derive(Debug)]
pub struct Ics {
    folder: PathBuf,
}

impl Ics {
    /// The events in this folder. It is made when there is one to keep.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    fn all(&self) -> anyhow::Result<Vec<Event>> {
        let Some(folder) = UserFolder::open_unlinked(&self.folder)? else {
            return Ok(Vec::new());
        };
        let listing = folder.entries(EVENTS_MAX)?;
        if listing.is_cut {
            bail!(
                "{} holds more than {EVENTS_MAX} files; move old events elsewhere",
                self.folder.display()
            );
        }
        let mut events = Vec::new();
        for entry in listing.entries {
            let name = Path::new(entry.name.as_os_str());
            if name.extension().is_some_and(|extension| extension == "ics") {
                // An event that cannot be read is an hour that looks free, so that it is an error.
                let bytes = folder.read(&entry.name.into(), EVENT_BYTES_MAX)?;
                events.extend(read(&String::from_utf8_lossy(&bytes)));
            }
        }
        events.sort_by(|one, other| one.start.cmp(&other.start));
        Ok(events)
    }
}

/// The file of an event.
fn name_of(event: &Event) -> anyhow::Result<RelativePath> {
    Ok(FileName::new(format!("{}.ics", event.id))?.into())
}

impl Calendar for Ics {
    fn on<'a>(&'a self, days: &'a [String]) -> BoxFuture<'a, anyhow::Result<Vec<Event>>> {
        Box::pin(async move {
            let mut events = self.all()?;
            events.retain(|event| days.iter().any(|day| event.start.starts_with(day.as_str())));
            Ok(events)
        })
    }

    fn create<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Result<(), NotMade>> {
        Box::pin(async move {
            let name = name_of(event).map_err(NotMade::Refused)?;
            let folder = UserFolder::create_unlinked(&self.folder, Access::Private);
            let folder = folder.map_err(|error| NotMade::Refused(error.into()))?;
            let written = folder.write_new(&name, write(event).as_bytes(), Access::Private);
            written.map_err(|error| NotMade::Unknown(error.into()))?;
            Ok(())
        })
    }

    fn find<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, anyhow::Result<bool>> {
        Box::pin(async move {
            Ok(match UserFolder::open_unlinked(&self.folder)? {
                Some(folder) => folder.kind(&name_of(event)?)?.is_some(),
                None => false,
            })
        })
    }
}

fn write(event: &Event) -> String {
    let compact = |moment: &str| moment.replace(['-', ':'], "");
    let mut lines = vec![
        "BEGIN:VCALENDAR".to_owned(),
        "VERSION:2.0".to_owned(),
        "PRODID:-//archie//mail//EN".to_owned(),
        "BEGIN:VEVENT".to_owned(),
        format!("UID:{}", event.id),
        format!("DTSTAMP:{}", compact(&event.start)),
        format!("DTSTART:{}", compact(&event.start)),
        format!("DTEND:{}", compact(&event.end)),
        format!("SUMMARY:{}", escaped(&event.title)),
    ];
    if !event.organizer.is_empty() {
        lines.push(format!("ORGANIZER:mailto:{}", escaped(&event.organizer)));
    }
    for attendee in &event.attendees {
        lines.push(format!("ATTENDEE:mailto:{}", escaped(attendee)));
    }
    lines.push("END:VEVENT".to_owned());
    lines.push("END:VCALENDAR\r\n".to_owned());
    lines.join("\r\n")
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace(['\n', '\r'], " ")
        .replace(',', "\\,")
        .replace(';', "\\;")
}

fn read(text: &str) -> Vec<Event> {
    let mut events = Vec::new();
    let mut event: Option<Event> = None;
    for line in text.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let name = name.split(';').next().unwrap_or_default();
        match (name, &mut event) {
            ("BEGIN", _) if value == "VEVENT" => event = Some(Event::default()),
            ("END", _) if value == "VEVENT" => events.extend(event.take()),
            ("UID", Some(event)) => event.id = value.to_owned(),
            ("SUMMARY", Some(event)) => event.title = value.replace("\\,", ",").replace("\\;", ";"),
            ("DTSTART", Some(event)) => event.start = spread(value),
            ("DTEND", Some(event)) => event.end = spread(value),
            ("ORGANIZER", Some(event)) => {
                event.organizer = value.trim_start_matches("mailto:").to_owned()
            }
            ("ATTENDEE", Some(event)) => {
                event
                    .attendees
                    .push(value.trim_start_matches("mailto:").to_owned());
            }
            _ => {}
        }
    }
    events
}

/// `20250110T100000Z` as `2025-01-10T10:00:00Z`.
fn spread(text: &str) -> String {
    let form = "%Y%m%dT%H%M%S";
    let moment = chrono::NaiveDateTime::parse_from_str(text.trim_end_matches('Z'), form);
    moment.map_or_else(
        |_| text.to_owned(),
        |moment| moment.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
    )
}

/// How many events are looked through.
const EVENTS_MAX: usize = 10_000;

/// How large one event may be.
const EVENT_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_event_is_kept_once_and_found_on_its_day() {
        let folder = tempfile::tempdir().unwrap();
        let calendar = Ics::new(&folder.path().join("calendar"));
        let event = Event {
            id: "abc1".to_owned(),
            title: "Sync, weekly".to_owned(),
            start: "2025-01-10T10:00:00Z".to_owned(),
            end: "2025-01-10T10:30:00Z".to_owned(),
            attendees: vec!["bob@example.com".to_owned()],
            organizer: "alice@example.com".to_owned(),
        };
        assert!(!calendar.find(&event).await.unwrap());
        for _ in 0..2 {
            calendar.create(&event).await.unwrap();
            assert!(calendar.find(&event).await.unwrap());
        }
        assert_eq!(
            calendar.on(&["2025-01-10".to_owned()]).await.unwrap(),
            [event]
        );
        assert!(
            calendar
                .on(&["2025-01-11".to_owned()])
                .await
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn moments_and_days_are_read_in_the_forms_models_write() {
        use super::super::{day, moment};
        assert_eq!(
            moment("2025-01-10T12:00:00+02:00").unwrap(),
            "2025-01-10T10:00:00Z"
        );
        assert_eq!(moment("2025-01-10 10:00").unwrap(), "2025-01-10T10:00:00Z");
        assert_eq!(day("10-01-2025").unwrap(), "2025-01-10");
        assert!(moment("tomorrow").is_none());
    }
}
