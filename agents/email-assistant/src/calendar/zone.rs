//! Times in a time zone. A meeting at 10:00 in Berlin is an instant and a zone: the instant says when it is, the zone what
//! clocks show there.
//!
//! The rules of the zones are compiled in, so that every machine agrees on them, also one without a time zone database.

use chrono::{NaiveDateTime, TimeDelta};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneTransition};

use super::{in_utc, moment, naive};

/// A time zone of the IANA database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeetingZone {
    name: String,
    rules: TimeZone,
}

/// Why a text is not a time that a meeting can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeProblem {
    /// The time zone is not in the IANA database.
    #[error(
        "`{name}` is not a time zone; write a name of the IANA database, such as {}",
        examples(.suggestion.as_deref())
    )]
    UnknownZone {
        /// The name as it was written.
        name: String,
        /// A zone for a city of that name, if there is one.
        suggestion: Option<String>,
    },
    /// The text is not a time.
    #[error("`{0}` is not a time; write YYYY-MM-DDTHH:MM:SS")]
    NotATime(String),
    /// The clocks of the zone skip this time.
    #[error(
        "`{time}` does not exist in {zone}, because clocks go forward then; choose another time"
    )]
    Skipped {
        /// The time as it was written.
        time: String,
        /// Name of the zone.
        zone: String,
    },
}

fn examples(suggestion: Option<&str>) -> String {
    match suggestion {
        Some(zone) => format!("`{zone}`"),
        None => "`Europe/Berlin`, `America/New_York` or `UTC`".to_owned(),
    }
}

impl MeetingZone {
    /// Finds a zone by its name, in any case. An empty name is UTC.
    pub fn find(name: &str) -> Result<Self, TimeProblem> {
        let name = name.trim();
        if is_utc(name) {
            return Ok(Self {
                name: "UTC".to_owned(),
                rules: TimeZone::UTC,
            });
        }
        let unknown = || TimeProblem::UnknownZone {
            name: name.chars().take(NAME_CHARS_SHOWN).collect(),
            suggestion: suggestion(name),
        };
        let rules = TimeZone::get(name).map_err(|_| unknown())?;
        let name = rules.iana_name().ok_or_else(unknown)?.to_owned();
        Ok(Self { name, rules })
    }

    /// Returns the name of the zone, in the spelling of the IANA database.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the zone is UTC itself.
    pub fn is_utc(&self) -> bool {
        is_utc(&self.name)
    }

    /// Converts a time to UTC, as `YYYY-MM-DDTHH:MM:SSZ`. An offset in the text takes precedence over the zone. Of a time that
    /// clocks show twice, takes the first.
    pub fn to_utc(&self, text: &str) -> Result<String, TimeProblem> {
        let not_a_time = || TimeProblem::NotATime(text.chars().take(NAME_CHARS_SHOWN).collect());
        let Some(time) = naive(text) else {
            return moment(text).ok_or_else(not_a_time);
        };
        let civil: DateTime = time
            .format(CIVIL)
            .to_string()
            .parse()
            .map_err(|_| not_a_time())?;
        let offset = match self.rules.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Fold { before, .. } => before,
            AmbiguousOffset::Gap { .. } => {
                return Err(TimeProblem::Skipped {
                    time: text.trim().to_owned(),
                    zone: self.name.clone(),
                });
            }
        };
        let utc = time.checked_sub_signed(TimeDelta::seconds(offset.seconds().into()));
        let utc = utc.map(|utc| in_utc(utc.and_utc()));
        // A year that has not four digits cannot be written in a calendar.
        utc.filter(|utc| utc.len() == UTC_CHARS)
            .ok_or_else(not_a_time)
    }

    /// Returns what clocks in the zone show at this time, which is in the form of [`Self::to_utc`], with the zone's offset
    /// in seconds. `None` if that form cannot tell the time from another one: where clocks show it twice, and this is the
    /// second.
    pub fn local(&self, utc: &str) -> Option<(NaiveDateTime, i32)> {
        let time = naive(utc.strip_suffix('Z')?)?;
        let at = Timestamp::from_second(time.and_utc().timestamp()).ok()?;
        let offset = self.rules.to_offset(at).seconds();
        let local = time.checked_add_signed(TimeDelta::seconds(offset.into()))?;
        let again = self.to_utc(&local.format(CIVIL).to_string()).ok()?;
        (again == utc).then_some((local, offset))
    }

    /// Returns the changes of the zone's offset around a time in the form of [`Self::to_utc`]: the last one before it and the
    /// next one after it, as far as there are any.
    pub(super) fn changes_around(&self, utc: &str) -> Vec<OffsetChange> {
        let time = utc.strip_suffix('Z').and_then(naive);
        let at = time.and_then(|time| Timestamp::from_second(time.and_utc().timestamp()).ok());
        let Some(at) = at else {
            return Vec::new();
        };
        // `preceding` leaves out a change at exactly this time.
        let after = at.checked_add(jiff::SignedDuration::from_secs(1));
        let before = self.rules.preceding(after.unwrap_or(at)).next();
        let after = self.rules.following(at).next();
        let changes = before.into_iter().chain(after);
        changes.filter_map(|change| self.change(&change)).collect()
    }

    fn change(&self, change: &TimeZoneTransition<'_>) -> Option<OffsetChange> {
        let before = change
            .timestamp()
            .checked_sub(jiff::SignedDuration::from_secs(1));
        let from = self.rules.to_offset(before.ok()?).seconds();
        let utc = chrono::DateTime::from_timestamp(change.timestamp().as_second(), 0)?;
        Some(OffsetChange {
            local: utc
                .naive_utc()
                .checked_add_signed(TimeDelta::seconds(from.into()))?,
            from,
            to: change.offset().seconds(),
            is_daylight: change.dst().is_dst(),
            abbreviation: change.abbreviation().to_owned(),
        })
    }
}

/// A change of a zone's offset, as calendars describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OffsetChange {
    /// What clocks showed when they changed.
    pub(super) local: NaiveDateTime,
    /// Offset before the change, in seconds.
    pub(super) from: i32,
    /// Offset after the change, in seconds.
    pub(super) to: i32,
    pub(super) is_daylight: bool,
    pub(super) abbreviation: String,
}

/// Returns a text for a person: what clocks in the zone show, the zone, and the same in UTC.
pub fn shown(utc: &str, zone: &str) -> String {
    let zone = MeetingZone::find(zone).ok().filter(|zone| !zone.is_utc());
    let local = zone.and_then(|zone| Some((zone.local(utc)?, zone)));
    match local {
        Some(((time, _), zone)) => {
            format!(
                "{} {} ({utc})",
                time.format("%Y-%m-%d %H:%M:%S"),
                zone.name()
            )
        }
        None => utc.to_owned(),
    }
}

fn is_utc(name: &str) -> bool {
    let names = ["", "utc", "z", "gmt", "etc/utc", "etc/gmt"];
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Returns the zone of a city, such as `Europe/Berlin` for `berlin` or `Berlin time`.
fn suggestion(name: &str) -> Option<String> {
    let words: Vec<String> = name
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .map(str::to_lowercase)
        .collect();
    let mut zones = jiff::tz::db().available().map(|zone| zone.to_string());
    zones.find(|zone| {
        let city = zone.rsplit_once('/').map(|(_, city)| city.to_lowercase());
        city.is_some_and(|city| words.contains(&city))
    })
}

const CIVIL: &str = "%Y-%m-%dT%H:%M:%S";
/// Length of `YYYY-MM-DDTHH:MM:SSZ`.
const UTC_CHARS: usize = 20;
/// How much of a text that is not a zone or a time an error shows.
const NAME_CHARS_SHOWN: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(time: &str, zone: &str) -> Result<String, String> {
        let zone = MeetingZone::find(zone).map_err(|problem| problem.to_string())?;
        zone.to_utc(time).map_err(|problem| problem.to_string())
    }

    #[test]
    fn ten_in_berlin_is_nine_utc_in_winter_and_eight_in_summer() {
        for (time, zone, wanted) in [
            (
                "2025-01-10T10:00:00",
                "Europe/Berlin",
                "2025-01-10T09:00:00Z",
            ),
            (
                "2025-07-10T10:00:00",
                "Europe/Berlin",
                "2025-07-10T08:00:00Z",
            ),
            ("2025-07-10 10:00", "europe/berlin", "2025-07-10T08:00:00Z"),
            (
                "2025-03-30T03:00:00",
                "Europe/Berlin",
                "2025-03-30T01:00:00Z",
            ),
            (
                "2025-07-10T10:00:00",
                "Asia/Kolkata",
                "2025-07-10T04:30:00Z",
            ),
            ("2025-01-10T10:00:00", "", "2025-01-10T10:00:00Z"),
            ("2025-01-10T10:00:00", "utc", "2025-01-10T10:00:00Z"),
            (
                "2025-01-10T10:00:00+02:00",
                "America/New_York",
                "2025-01-10T08:00:00Z",
            ),
        ] {
            assert_eq!(utc(time, zone).unwrap(), wanted, "{time} {zone}");
        }
    }

    #[test]
    fn an_unknown_zone_and_a_skipped_time_are_refused_with_what_to_write() {
        assert_eq!(
            utc("2025-01-10T10:00:00", "Mars/Base").unwrap_err(),
            "`Mars/Base` is not a time zone; write a name of the IANA database, such as `Europe/Berlin`, `America/New_York` or `UTC`"
        );
        assert_eq!(
            utc("2025-01-10T10:00:00", "Berlin time").unwrap_err(),
            "`Berlin time` is not a time zone; write a name of the IANA database, such as `Europe/Berlin`"
        );
        assert_eq!(
            utc("2025-03-30T02:30:00", "Europe/Berlin").unwrap_err(),
            "`2025-03-30T02:30:00` does not exist in Europe/Berlin, because clocks go forward then; choose another time"
        );
        assert_eq!(
            utc("tomorrow", "Europe/Berlin").unwrap_err(),
            "`tomorrow` is not a time; write YYYY-MM-DDTHH:MM:SS"
        );
    }

    #[test]
    fn of_a_time_that_clocks_show_twice_only_the_first_is_written_as_local() {
        let berlin = MeetingZone::find("Europe/Berlin").unwrap();
        let first = berlin.to_utc("2025-10-26T02:30:00").unwrap();
        assert_eq!(first, "2025-10-26T00:30:00Z");
        assert!(berlin.local(&first).is_some());
        assert_eq!(berlin.local("2025-10-26T01:30:00Z"), None);
        assert_eq!(
            shown("2025-01-10T09:00:00Z", "Europe/Berlin"),
            "2025-01-10 10:00:00 Europe/Berlin (2025-01-10T09:00:00Z)"
        );
        assert_eq!(shown("2025-01-10T09:00:00Z", ""), "2025-01-10T09:00:00Z");
    }
}
