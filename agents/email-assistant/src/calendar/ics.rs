//! A calendar in a folder of `.ics` files, one per event, named after the event's id.

use std::path::{Path, PathBuf};

use anyhow::bail;
use archie_agent::user_folder::{Access, FileName, RelativePath, UserFolder};
use superstep::checkpoint::BoxFuture;

use super::zone::OffsetChange;
use super::{Calendar, Event, MeetingZone, NotMade};

/// Calendar in local `iCalendar` files.
#[derive(Debug)]
pub struct Ics {
    folder: PathBuf,
}

impl Ics {
    /// Opens the calendar in this folder, which the first new event creates.
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
                // Skipping an unreadable event would make its time look free, so it is an error.
                let bytes = folder.read(&entry.name.into(), EVENT_BYTES_MAX)?;
                events.extend(read_events(&String::from_utf8_lossy(&bytes)));
            }
        }
        events.sort_by(|one, other| one.start.cmp(&other.start));
        Ok(events)
    }
}

/// Returns the file name of an event.
fn name_of(event: &Event) -> anyhow::Result<RelativePath> {
    Ok(FileName::new(format!("{}.ics", event.id))?.into())
}

impl Calendar for Ics {
    fn on<'a>(&'a self, days: &'a [String]) -> BoxFuture<'a, anyhow::Result<Vec<Event>>> {
        Box::pin(async move {
            let mut events = self.all()?;
            events.retain(|event| days.iter().any(|day| event.is_on(day)));
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

/// Writes an event as `iCalendar` text, which [`read_events`] reads. Times are local times of the event's zone, with the rules
/// of the zone, or in UTC.
pub fn write(event: &Event) -> String {
    let zone = zone_of(&event.timezone);
    let mut lines = vec![
        "BEGIN:VCALENDAR".to_owned(),
        "VERSION:2.0".to_owned(),
        "PRODID:-//archie//mail//EN".to_owned(),
    ];
    if let Some(zone) = &zone {
        lines.extend(rules(zone, &event.start));
    }
    let zone = zone.as_ref();
    lines.extend([
        "BEGIN:VEVENT".to_owned(),
        format!("UID:{}", escaped(&event.id)),
        format!("DTSTAMP:{}", compact(&event.start)),
        time_line("DTSTART", &event.start, zone),
        time_line("DTEND", &event.end, zone),
        format!("SUMMARY:{}", escaped(&event.title)),
    ]);
    if !event.organizer.is_empty() {
        lines.push(format!(
            "ORGANIZER:mailto:{}",
            without_breaks(&event.organizer)
        ));
    }
    for attendee in &event.attendees {
        lines.push(format!("ATTENDEE:mailto:{}", without_breaks(attendee)));
    }
    lines.push("END:VEVENT".to_owned());
    lines.push("END:VCALENDAR\r\n".to_owned());
    lines.join("\r\n")
}

/// Returns the zone with this name; `None` for UTC, in which times are written, and for a name that is not a zone.
fn zone_of(name: &str) -> Option<MeetingZone> {
    MeetingZone::find(name).ok().filter(|zone| !zone.is_utc())
}

fn time_line(name: &str, utc: &str, zone: Option<&MeetingZone>) -> String {
    match zone.and_then(|zone| Some((zone, zone.local(utc)?))) {
        Some((zone, (time, _))) => {
            format!("{name};TZID={}:{}", zone.name(), time.format(COMPACT))
        }
        None => format!("{name}:{}", compact(utc)),
    }
}

/// Returns the rules of a zone around a time, which a calendar needs to understand local times.
fn rules(zone: &MeetingZone, utc: &str) -> Vec<String> {
    let mut changes = zone.changes_around(utc);
    if changes.is_empty() {
        // The offset of this zone never changes.
        let Some((_, offset)) = zone.local(utc) else {
            return Vec::new();
        };
        changes.push(OffsetChange {
            local: chrono::NaiveDateTime::default(),
            from: offset,
            to: offset,
            is_daylight: false,
            abbreviation: zone.name().to_owned(),
        });
    }
    let mut lines = vec![
        "BEGIN:VTIMEZONE".to_owned(),
        format!("TZID:{}", zone.name()),
    ];
    for change in changes {
        let kind = if change.is_daylight {
            "DAYLIGHT"
        } else {
            "STANDARD"
        };
        lines.extend([
            format!("BEGIN:{kind}"),
            format!("DTSTART:{}", change.local.format(COMPACT)),
            format!("TZOFFSETFROM:{}", offset(change.from)),
            format!("TZOFFSETTO:{}", offset(change.to)),
            format!("TZNAME:{}", change.abbreviation),
            format!("END:{kind}"),
        ]);
    }
    lines.push("END:VTIMEZONE".to_owned());
    lines
}

/// Formats an offset from UTC in seconds as `+HHMM`.
fn offset(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.abs() / 60;
    format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
}

/// Reads the events of an `iCalendar` text. Ignores properties that it does not know.
pub fn read_events(text: &str) -> Vec<Event> {
    let mut events = Vec::new();
    let mut event: Option<Event> = None;
    // A line that begins with white space continues the one before it.
    let unfolded = text.replace("\r\n", "\n");
    let unfolded = unfolded.replace("\n ", "").replace("\n\t", "");
    for line in unfolded.lines() {
        let (name, value) = name_and_value(line);
        match (name, &mut event) {
            ("BEGIN", _) if value == "VEVENT" => event = Some(Event::default()),
            ("END", _) if value == "VEVENT" => events.extend(event.take()),
            ("UID", Some(event)) => event.id = unescaped(value),
            ("SUMMARY", Some(event)) => event.title = unescaped(value),
            ("DTSTART", Some(event)) => (event.start, event.timezone) = time_of(line, value),
            ("DTEND", Some(event)) => event.end = time_of(line, value).0,
            ("ORGANIZER", Some(event)) => event.organizer = address(value),
            ("ATTENDEE", Some(event)) => event.attendees.push(address(value)),
            _ => {}
        }
    }
    events
}

/// Returns the time of a line in UTC, and its zone. A zone that is not in the IANA database is left out, and the time counts as
/// UTC.
fn time_of(line: &str, value: &str) -> (String, String) {
    let head = &line[..line.len() - value.len()];
    let parameters = head.trim_end_matches(':').split(';');
    let zone = parameters.filter_map(|parameter| parameter.split_once('='));
    let zone = zone
        .filter(|(name, _)| name.eq_ignore_ascii_case("TZID"))
        .find_map(|(_, zone)| zone_of(zone.trim_matches('"')));
    let local = moment(value, COMPACT).map(|time| time.format(LOCAL).to_string());
    let utc = zone
        .zip(local)
        .and_then(|(zone, local)| Some((zone.to_utc(&local).ok()?, zone.name().to_owned())));
    utc.unwrap_or_else(|| (spread(value), String::new()))
}

/// Splits a line into the property's name, without parameters, and its value. A quoted parameter may contain a colon.
fn name_and_value(line: &str) -> (&str, &str) {
    let mut is_quoted = false;
    let colon = line.find(|c| {
        is_quoted ^= c == '"';
        c == ':' && !is_quoted
    });
    let (name, value) = colon.map_or((line, ""), |at| (&line[..at], &line[at + 1..]));
    (name.split(';').next().unwrap_or_default(), value)
}

/// Replaces line breaks, so that no value can start a new property.
fn without_breaks(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn escaped(text: &str) -> String {
    without_breaks(text)
        .replace('\\', "\\\\")
        .replace(',', "\\,")
        .replace(';', "\\;")
}

/// Reverses [`escaped`]. An escaped line break becomes a space, as in [`escaped`].
fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n' | 'N') => text.push(' '),
                Some(c @ ('\\' | ',' | ';')) => text.push(c),
                // Not a known escape sequence.
                other => {
                    text.push('\\');
                    text.extend(other);
                }
            },
            c => text.push(c),
        }
    }
    without_breaks(&text)
}

fn address(value: &str) -> String {
    let mut rest = value;
    while let Some((scheme, after)) = rest.split_at_checked(MAILTO.len())
        && scheme.eq_ignore_ascii_case(MAILTO)
    {
        rest = after;
    }
    without_breaks(rest)
}

/// Converts `20250110T100000Z` to `2025-01-10T10:00:00Z`; leaves any other form unchanged, except for line breaks.
fn spread(text: &str) -> String {
    let bare = text.trim_end_matches('Z');
    match moment(bare, COMPACT) {
        Some(moment) => moment.format(SPREAD).to_string(),
        None => without_breaks(text),
    }
}

/// Converts `2025-01-10T10:00:00Z` to `20250110T100000Z`; the reverse of [`spread`].
fn compact(text: &str) -> String {
    match moment(text, SPREAD) {
        Some(moment) => format!("{}Z", moment.format(COMPACT)),
        None => without_breaks(text),
    }
}

/// Parses a time in exactly this form. The parser alone also accepts spaces, signs and five-digit years.
fn moment(text: &str, form: &str) -> Option<chrono::NaiveDateTime> {
    let moment = chrono::NaiveDateTime::parse_from_str(text, form).ok()?;
    (moment.format(form).to_string() == text).then_some(moment)
}

const MAILTO: &str = "mailto:";
const COMPACT: &str = "%Y%m%dT%H%M%S";
const SPREAD: &str = "%Y-%m-%dT%H:%M:%SZ";
const LOCAL: &str = "%Y-%m-%dT%H:%M:%S";

/// Maximum number of files in the folder.
const EVENTS_MAX: usize = 10_000;

/// Maximum size of an event file, in bytes.
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
            timezone: String::new(),
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

    #[tokio::test]
    async fn an_event_is_on_its_day_in_utc_and_on_its_local_day() {
        let folder = tempfile::tempdir().unwrap();
        let calendar = Ics::new(&folder.path().join("calendar"));
        let event = Event {
            id: "abc1".to_owned(),
            start: "2025-01-10T23:30:00Z".to_owned(),
            end: "2025-01-11T00:30:00Z".to_owned(),
            timezone: "Europe/Berlin".to_owned(),
            ..Event::default()
        };
        calendar.create(&event).await.unwrap();
        for (day, count) in [
            ("2025-01-09", 0),
            ("2025-01-10", 1),
            ("2025-01-11", 1),
            ("2025-01-12", 0),
        ] {
            let found = calendar.on(&[day.to_owned()]).await.unwrap();
            assert_eq!(found.len(), count, "{day}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let event = Event {
            id: "abc1".to_owned(),
            title: "C:\\new; a, b \\, \r\nEND:VEVENT".to_owned(),
            start: "2025-01-10T10:00:00Z".to_owned(),
            end: "one day".to_owned(),
            attendees: vec!["\"Lovelace, Ada\" <ada@example.com>".to_owned()],
            organizer: "x\rATTENDEE:mailto:eve@example.com".to_owned(),
            timezone: "Europe/Berlin\r\nATTENDEE:mailto:eve@example.com".to_owned(),
        };
        let written = write(&event);
        let read = read_events(&written);
        assert_eq!(read.len(), 1, "{written}");
        assert_eq!(read[0].title, "C:\\new; a, b \\,   END:VEVENT");
        assert_eq!(read[0].attendees, event.attendees);
        assert_eq!(read[0].organizer, "x ATTENDEE:mailto:eve@example.com");
        assert_eq!(write(&read[0]), written);
    }

    #[test]
    fn a_meeting_in_a_zone_is_written_with_local_times_and_the_rules_of_the_zone() {
        let event = Event {
            id: "abc1".to_owned(),
            title: "Sync".to_owned(),
            start: "2025-07-10T08:00:00Z".to_owned(),
            end: "2025-07-10T08:30:00Z".to_owned(),
            attendees: vec!["bob@example.com".to_owned()],
            organizer: "carol@example.com".to_owned(),
            timezone: "Europe/Berlin".to_owned(),
        };
        let written = write(&event);
        for line in [
            "TZID:Europe/Berlin",
            "BEGIN:DAYLIGHT\r\nDTSTART:20250330T020000\r\nTZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\nTZNAME:CEST",
            "BEGIN:STANDARD\r\nDTSTART:20251026T030000\r\nTZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\nTZNAME:CET",
            "DTSTART;TZID=Europe/Berlin:20250710T100000",
            "DTEND;TZID=Europe/Berlin:20250710T103000",
            "ORGANIZER:mailto:carol@example.com",
        ] {
            assert!(
                written.contains(&format!("{line}\r\n")),
                "{line}: {written}"
            );
        }
        assert_eq!(read_events(&written), [event]);
    }

    #[test]
    fn the_second_hour_of_a_night_with_25_hours_is_not_taken_for_the_first() {
        let event = Event {
            start: "2025-10-26T01:30:00Z".to_owned(),
            end: "2025-10-26T02:30:00Z".to_owned(),
            timezone: "Europe/Berlin".to_owned(),
            ..Event::default()
        };
        let read = read_events(&write(&event)).remove(0);
        assert_eq!((read.start, read.end), (event.start, event.end));
    }

    #[test]
    fn times_of_other_programs_are_read_in_their_zones() {
        let of = |line: &str| read_events(&format!("BEGIN:VEVENT\n{line}\nEND:VEVENT\n")).remove(0);
        let quoted = of("DTSTART;VALUE=DATE-TIME;TZID=\"America/New_York\":20250110T100000");
        assert_eq!(quoted.start, "2025-01-10T15:00:00Z");
        assert_eq!(quoted.timezone, "America/New_York");
        let unknown = of("DTSTART;TZID=W. Europe Standard Time:20250110T100000");
        assert_eq!(unknown.start, "2025-01-10T10:00:00Z");
    }

    #[test]
    fn lines_that_are_folded_and_parameters_with_colons_are_read() {
        let text = "BEGIN:VEVENT\r\nSUMMARY;ALTREP=\"cid:1\":a long\r\n  ti\r\n\ttle\r\nORGANIZER:MAILTO:a@example.com\r\nEND:VEVENT\r\n";
        let read = read_events(text);
        assert_eq!(read[0].title, "a long title");
        assert_eq!(read[0].organizer, "a@example.com");
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
