use std::str::FromStr;

use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp(Instant::from_str(text).unwrap().as_millisecond())
}

fn berlin(expression: &str) -> Schedule {
    Schedule::parse(expression, Some("Europe/Berlin")).unwrap()
}

/// The next times after one, each as it is written in UTC.
fn times(schedule: &Schedule, after: &str, count: usize) -> Vec<String> {
    let mut last = at(after);
    let mut found = Vec::new();
    for _ in 0..count {
        last = schedule.next_after(last).unwrap();
        let time = Instant::from_millisecond(last.0).unwrap();
        found.push(time.strftime("%d %H:%M").to_string());
    }
    found
}

#[test]
fn a_schedule_is_in_utc_without_a_zone() {
    let weekdays = Schedule::parse("30 4 * * 1-5", None).unwrap();
    let found = times(&weekdays, "2025-01-02T04:30:00Z", 3);
    assert_eq!(found, ["03 04:30", "06 04:30", "07 04:30"]);
    let daily = Schedule::parse("@daily", None).unwrap();
    assert_eq!(times(&daily, "2025-01-02T00:00:00Z", 1), ["03 00:00"]);
    let named = Schedule::parse("0 0 1 JAN *", None).unwrap();
    assert_eq!(
        named.next_after(at("2025-06-01T00:00:00Z")),
        Some(at("2026-01-01T00:00:00Z"))
    );
}

#[test]
fn the_time_is_that_of_the_zone() {
    for (zone, wanted) in [
        ("Europe/Berlin", "2025-01-02T08:00:00Z"),
        ("america/new_york", "2025-01-02T14:00:00Z"),
        ("Asia/Kolkata", "2025-01-02T03:30:00Z"),
        ("UTC", "2025-01-02T09:00:00Z"),
    ] {
        let schedule = Schedule::parse("0 9 * * *", Some(zone)).unwrap();
        let next = schedule.next_after(at("2025-01-01T23:00:00Z"));
        assert_eq!(next, Some(at(wanted)), "{zone}");
    }
}

/// On 30 March 2025 at 01:00 UTC, the clock goes from 02:00 to 03:00.
#[test]
fn a_time_that_the_clock_skips_comes_after_the_change() {
    for (expression, wanted) in [
        ("30 2 * * *", ["29 01:30", "30 01:00", "31 00:30"]),
        ("0,30 2 * * *", ["29 01:30", "30 01:00", "31 00:00"]),
        ("0 2,3 * * *", ["29 02:00", "30 01:00", "31 00:00"]),
        ("0 3 * * *", ["29 02:00", "30 01:00", "31 01:00"]),
    ] {
        let found = times(&berlin(expression), "2025-03-29T01:15:00Z", 3);
        assert_eq!(found, wanted, "{expression}");
    }
}

/// On 26 October 2025 at 01:00 UTC, the clock goes from 03:00 to 02:00.
#[test]
fn a_time_that_the_clock_shows_twice_comes_once() {
    for (expression, wanted) in [
        ("30 2 * * *", ["26 00:30", "27 01:30", "28 01:30"]),
        ("0 2,3 * * *", ["26 00:00", "26 02:00", "27 01:00"]),
        ("*/30 2 * * *", ["26 00:00", "26 00:30", "27 01:00"]),
    ] {
        let found = times(&berlin(expression), "2025-10-25T12:00:00Z", 3);
        assert_eq!(found, wanted, "{expression}");
    }
    // From inside of the second pass, the first one is past.
    let next = berlin("40 2 * * *").next_after(at("2025-10-26T01:35:00Z"));
    assert_eq!(next, Some(at("2025-10-27T01:40:00Z")));
}

#[test]
fn what_comes_in_every_hour_follows_elapsed_time() {
    for day in ["2025-03-30", "2025-10-26"] {
        let after = format!("{day}T00:10:00Z");
        let found = times(&berlin("*/30 * * * *"), &after, 5);
        let day = &day[8..];
        let wanted = ["00:30", "01:00", "01:30", "02:00", "02:30"].map(|at| format!("{day} {at}"));
        assert_eq!(found, wanted);
        let found = times(&berlin("15 * * * *"), &after, 3);
        let wanted = ["00:15", "01:15", "02:15"].map(|at| format!("{day} {at}"));
        assert_eq!(found, wanted);
    }
}

#[test]
fn a_clock_that_is_changed_by_half_an_hour_is_followed() {
    // Lord Howe Island: on 5 April 2025 at 15:00 UTC from 02:00 back to 01:30.
    let schedule = Schedule::parse("45 1 * * *", Some("Australia/Lord_Howe")).unwrap();
    let found = times(&schedule, "2025-04-04T00:00:00Z", 3);
    assert_eq!(found, ["04 14:45", "05 14:45", "06 15:15"]);
}

#[test]
fn fractions_of_a_second_do_not_move_the_time() {
    let schedule = berlin("* * * * *");
    for ms in [0, 1, 999, 59_999] {
        let after = Timestamp(at("2025-01-01T00:00:00Z").0 + ms);
        let next = schedule.next_after(after);
        assert_eq!(next, Some(at("2025-01-01T00:01:00Z")), "{ms}");
    }
}

/// A generator of numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 16) % limit
    }

    fn field(&mut self, from: u64, to: u64) -> String {
        let one = |numbers: &mut Self| from + numbers.below(to - from + 1);
        match self.below(5) {
            0 | 1 => "*".to_owned(),
            2 => format!("*/{}", 1 + self.below(to)),
            3 => format!("{},{}", one(self), one(self)),
            _ => one(self).to_string(),
        }
    }
}

#[test]
fn the_next_time_is_always_after_the_last_and_matches() {
    let zones = [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "America/Santiago",
        "Africa/Cairo",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Asia/Kathmandu",
    ];
    let mut numbers = Numbers(7);
    for round in 0..300 {
        let expression = format!(
            "{} {} {} * {}",
            numbers.field(0, 59),
            numbers.field(0, 23),
            numbers.field(1, 28),
            numbers.field(0, 6)
        );
        let zone = zones[round % zones.len()];
        let schedule = Schedule::parse(&expression, Some(zone)).unwrap();
        let year = 31_556_952_000;
        let mut last = Timestamp(1_735_689_600_000 + numbers.below(2 * year) as i64);
        for _ in 0..40 {
            let next = schedule.next_after(last).unwrap();
            assert!(next > last, "`{expression}` in {zone} after {last:?}");
            let instant = Instant::from_millisecond(next.0).unwrap();
            let civil = civil_second(instant, schedule.zone.to_offset(instant));
            let before = Instant::from_second(instant.as_second() - 1).unwrap();
            let change = schedule.zone.following(before).next();
            let is_at_a_change = change.is_some_and(|change| change.timestamp() == instant);
            // Only what the clock skipped comes at a time that the expression does not name.
            assert!(
                schedule.next_civil(civil, true) == Some(civil) || is_at_a_change,
                "`{expression}` in {zone} after {last:?} comes at {instant}"
            );
            last = next;
        }
    }
}

/// Steps through every minute around both changes of a year, and compares.
#[test]
fn no_time_is_lost_when_the_clock_is_changed() {
    for zone in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"] {
        for expression in [
            "*/7 * * * *",
            "5 * * * *",
            "30 2 * * *",
            "0,45 1-3 * * *",
            "*/20 2 * * *",
        ] {
            let schedule = Schedule::parse(expression, Some(zone)).unwrap();
            let begin = Instant::from_str("2025-01-01T00:00:00Z").unwrap();
            for change in schedule.zone.following(begin).take(2) {
                compare_with_every_minute(&schedule, expression, change.timestamp());
            }
        }
    }
}

fn compare_with_every_minute(schedule: &Schedule, expression: &str, change: Instant) {
    const DAY: i64 = 24 * 60;
    let minute = |n: i64| Instant::from_second(change.as_second() + n * 60).unwrap();
    let shown = |n: i64| civil_second(minute(n), schedule.zone.to_offset(minute(n)));
    let is_named = |civil: i64| schedule.next_civil(civil, true) == Some(civil);
    let mut wanted = Vec::new();
    let mut newest = shown(-DAY - 1);
    for n in -DAY..DAY {
        let civil = shown(n);
        let comes = match schedule.has_every_hour {
            true => is_named(civil),
            // Every minute that the clock has passed since it last showed a new one, skipped ones included.
            false => (newest / 60 + 1..=civil / 60).any(|skipped| is_named(skipped * 60)),
        };
        newest = newest.max(civil);
        if comes {
            wanted.push(minute(n));
        }
    }
    let mut found = Vec::new();
    let mut last = Timestamp(minute(-DAY).as_millisecond() - 1);
    loop {
        last = schedule.next_after(last).unwrap();
        let next = Instant::from_millisecond(last.0).unwrap();
        if next >= minute(DAY) {
            break;
        }
        found.push(next);
    }
    assert_eq!(found, wanted, "`{expression}` around {change}");
}

#[test]
fn a_bad_expression_is_refused_with_what_is_wrong() {
    let long = format!("{} * * * *", "1,".repeat(300));
    for (expression, wanted) in [
        ("", "it has 0 fields"),
        ("* * * *", "it has 4 fields"),
        // Seconds first in some programs, last in others.
        ("0 0 * * * *", "it has 6 fields"),
        ("60 * * * *", "60"),
        ("x * * * *", "illegal"),
        ("0 , * * *", "a field has an empty part"),
        ("0 /5 * * *", "a field has an empty part"),
        ("0 0 31 2 *", "no date matches it"),
        ("@sometimes", "fields"),
        (long.as_str(), "more than 256 bytes"),
    ] {
        let error = Schedule::parse(expression, None).unwrap_err();
        assert_eq!(error.code(), "schedule-bad-expression", "{expression}");
        let text = error.to_string();
        assert!(text.contains(wanted), "{expression}: {text}");
        assert!(text.contains("five fields"), "{text}");
        assert!(text.len() < 500, "{text}");
    }
    for zone in ["Mars/Olympus", "", "+02:00", "Etc/Unknown", "../etc/passwd"] {
        let error = Schedule::parse("* * * * *", Some(zone)).unwrap_err();
        assert_eq!(error.code(), "schedule-unknown-zone", "{zone}");
    }
}

#[test]
fn times_beyond_every_calendar_are_none() {
    let schedule = berlin("30 2 * * *");
    for after in [i64::MAX, i64::MIN, 253_402_207_200_000] {
        assert_eq!(schedule.next_after(Timestamp(after)), None, "{after}");
    }
}
