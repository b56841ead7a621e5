//! Schedules: cron expressions in a time zone.
//!
//! An expression is about the clock on the wall, and in many zones that clock is changed twice a year. croner finds the times of
//! an expression on a clock that is never changed; what the changes mean is decided here, because a search from inside of an
//! hour that comes twice would otherwise lead back into its first pass.

use croner::Cron as Pattern;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp as Instant;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use superstep_core::Timestamp;

/// When something repeats: a cron expression in a time zone.
///
/// When the clock of the zone is changed, no time is lost or comes twice:
///
/// - A schedule that comes in every hour, such as `*/10 * * * *`, follows elapsed time: ten minutes pass between two times,
///   whatever the clock shows.
/// - Any other schedule, such as `30 2 * * *`, comes once for each time that it names. If the clock skips the time, it comes right
///   after the change; if the clock shows the time twice, it comes the first time.
///
/// ```
/// use superstep::{Schedule, Timestamp};
///
/// let schedule = Schedule::parse("30 4 * * 1-5", Some("Europe/Berlin"))?;
/// // Friday, 3 January 2025, 12:00 in Berlin; the next time is on Monday.
/// let next = schedule.next_after(Timestamp(1_735_902_000_000));
/// assert_eq!(next, Some(Timestamp(1_736_134_200_000)));
/// # Ok::<(), superstep::ScheduleError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Schedule {
    pattern: Pattern,
    zone: TimeZone,
    /// Whether the expression matches in every hour of a day.
    has_every_hour: bool,
}

/// Error from reading a schedule.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// Not a valid cron expression, or one that never fires.
    #[error(
        "`{expression}` is not a valid cron expression: {why}; write five fields (minute, hour, day of month, month, day of week), such as `30 4 * * 1-5`"
    )]
    Expression {
        /// The rejected expression, shortened.
        expression: String,
        /// What is wrong with it.
        why: String,
    },
    /// Not the name of a time zone.
    #[error("`{zone}` is not a time zone; write an IANA name, such as `Europe/Berlin`")]
    Zone {
        /// The rejected name, shortened.
        zone: String,
    },
}

impl ScheduleError {
    /// Codes of this error.
    pub const CODES: &'static [&'static str] =
        &["schedule-bad-expression", "schedule-unknown-zone"];

    /// Returns the stable code of this error: the name of its page in the error index.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Expression { .. } => "schedule-bad-expression",
            Self::Zone { .. } => "schedule-unknown-zone",
        }
    }
}

impl Schedule {
    /// Reads a cron expression of five fields, or a nickname such as `@daily`, for the time zone with an IANA name. Without a name,
    /// the schedule is in UTC.
    ///
    /// Fields have numbers, names (`MON`, `JAN`), lists, ranges and steps. If both the day of the month and the day of the week are
    /// restricted, one of them has to match.
    pub fn parse(expression: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        let bad = |why: String| ScheduleError::Expression {
            expression: shortened(expression),
            why,
        };
        check_form(expression).map_err(bad)?;
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let pattern = parser.parse(expression);
        let pattern = pattern.map_err(|error| bad(error.to_string()))?;
        let zone = match zone {
            None => TimeZone::UTC,
            Some(name) => zone_named(name)?,
        };
        let has_every_hour = (0..24).all(|hour| pattern.pattern.hour_match(hour).unwrap_or(false));
        let schedule = Self {
            pattern,
            zone,
            has_every_hour,
        };
        // The calendar repeats, so a date that does not come after 1970 never comes.
        match schedule.next_civil(0, true) {
            Some(_) => Ok(schedule),
            None => Err(bad("no date matches it".to_owned())),
        }
    }

    /// Returns the first time after `after`; `None` if that is so far in the future that no calendar has it.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        // The times are whole seconds, so what is after the second is after the time.
        let after = Instant::from_second(after.0.div_euclid(1_000)).ok()?;
        let next = match self.has_every_hour {
            true => self.next_elapsed(after)?,
            false => self.next_on_the_wall(after)?,
        };
        Some(Timestamp(next.as_second() * 1_000))
    }

    /// Searches from one change of the clock to the next: between two of them, the clock goes as fast as time.
    fn next_elapsed(&self, after: Instant) -> Option<Instant> {
        let (mut from, mut is_included) = (after, false);
        loop {
            let offset = self.zone.to_offset(from);
            let civil = self.next_civil(civil_second(from, offset), is_included)?;
            let found = instant(civil, offset)?;
            match self.zone.following(from).next() {
                // The clock is changed before it shows the time.
                Some(change) if change.timestamp() <= found => {
                    (from, is_included) = (change.timestamp(), true);
                }
                _ => return Some(found),
            }
        }
    }

    /// Searches on the clock, and passes over what it has shown before: of an hour that comes twice, the second pass.
    fn next_on_the_wall(&self, after: Instant) -> Option<Instant> {
        let mut civil = civil_second(after, self.zone.to_offset(after));
        loop {
            civil = self.next_civil(civil, false)?;
            let found = self.first_instant(civil)?;
            if found > after {
                return Some(found);
            }
        }
    }

    /// Returns when the clock first shows a time, or is changed so that it never does.
    fn first_instant(&self, civil: i64) -> Option<Instant> {
        let shown = Offset::UTC.to_datetime(Instant::from_second(civil).ok()?);
        match self.zone.to_ambiguous_timestamp(shown).offset() {
            AmbiguousOffset::Unambiguous { offset } => instant(civil, offset),
            AmbiguousOffset::Fold { before, .. } => instant(civil, before),
            AmbiguousOffset::Gap { after, .. } => {
                // By the offset after the change, the time is before it.
                let change = self.zone.following(instant(civil, after)?).next()?;
                Some(change.timestamp())
            }
        }
    }

    /// Returns the first time that matches on a clock that is never changed, in seconds since 1970 by that clock.
    fn next_civil(&self, from: i64, is_included: bool) -> Option<i64> {
        let from = chrono::DateTime::from_timestamp(from, 0)?;
        let found = self.pattern.find_next_occurrence(&from, is_included);
        // The only error is that the search went beyond the year 5000.
        Some(found.ok()?.timestamp())
    }
}

/// Returns what a clock with this offset shows, in seconds since 1970 by that clock.
fn civil_second(at: Instant, offset: Offset) -> i64 {
    at.as_second() + i64::from(offset.seconds())
}

/// Returns when a clock with this offset shows a time.
fn instant(civil: i64, offset: Offset) -> Option<Instant> {
    Instant::from_second(civil - i64::from(offset.seconds())).ok()
}

fn zone_named(name: &str) -> Result<TimeZone, ScheduleError> {
    let found = TimeZone::get(name).ok().filter(|zone| !zone.is_unknown());
    found.ok_or_else(|| ScheduleError::Zone {
        zone: shortened(name),
    })
}

/// Refuses what the parser would read as something else, or search for a very long time.
fn check_form(expression: &str) -> Result<(), String> {
    if expression.len() > EXPRESSION_BYTES_MAX {
        return Err(format!("it has more than {EXPRESSION_BYTES_MAX} bytes"));
    }
    let fields = expression.split_whitespace().count();
    if fields != 5 && !expression.trim_start().starts_with('@') {
        return Err(format!("it has {fields} fields"));
    }
    // croner takes an empty part for a set without members, and searches every second of three thousand years for one.
    let mut parts = expression
        .split_whitespace()
        .flat_map(|field| field.split(','));
    match parts.any(|part| part.is_empty() || part.starts_with('/')) {
        true => Err("a field has an empty part".to_owned()),
        false => Ok(()),
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= SHOWN_MAX {
        return text.to_owned();
    }
    text.chars().take(SHOWN_MAX).chain(['…']).collect()
}

/// Longest expression.
const EXPRESSION_BYTES_MAX: usize = 256;
/// Number of characters of a refused text that an error has.
const SHOWN_MAX: usize = 64;

#[cfg(test)]
mod tests;
