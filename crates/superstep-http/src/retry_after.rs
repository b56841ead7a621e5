//! The `Retry-After` header: a number of seconds, or a date.

use std::time::Duration;

/// Returns the time to wait. `now` is in seconds since 1970. `None` if the header cannot be read, or if its date has passed:
/// the clocks may differ, so the usual wait between two attempts applies.
pub(super) fn retry_after(value: &str, now: u64) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let wait = http_date(value)?.checked_sub(now)?;
    (wait > 0).then(|| Duration::from_secs(wait))
}

/// Returns the seconds since 1970 of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`, the only form that servers may send today.
fn http_date(text: &str) -> Option<u64> {
    let (_, date) = text.split_once(", ")?;
    let parts: Vec<&str> = date.split(' ').collect();
    let [day, month, year, time, "GMT"] = parts[..] else {
        return None;
    };
    let day = number(day, 2).filter(|day| (1..=31).contains(day))?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let year = number(year, 4).filter(|year| *year >= 1970)?;
    let clock: Vec<&str> = time.split(':').collect();
    let [hour, minute, second] = clock[..] else {
        return None;
    };
    let hour = number(hour, 2).filter(|hour| *hour < 24)?;
    let minute = number(minute, 2).filter(|minute| *minute < 60)?;
    // 60 is a leap second.
    let second = number(second, 2).filter(|second| *second <= 60)?;
    Some(((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

fn number(text: &str, digits: usize) -> Option<u64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Returns the days from 1970-01-01 to a date, in the Gregorian calendar.
fn days(year: u64, month: u64, day: u64) -> u64 {
    // Years that begin in March have the leap day at their end, so that the days before a month do not depend on it.
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - BEFORE_1970
}

/// Days from 0000-03-01 to 1970-01-01.
const BEFORE_1970: u64 = 719_468;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_read_to_the_second() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Tue, 29 Feb 2000 23:59:59 GMT", 951_868_799),
            ("Wed, 01 Mar 2000 00:00:00 GMT", 951_868_800),
            ("Thu, 31 Dec 2026 12:00:00 GMT", 1_798_718_400),
        ] {
            assert_eq!(http_date(text), Some(seconds), "{text}");
        }
        for text in [
            "",
            "soon",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nom 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(http_date(text), None, "{text}");
        }
    }

    #[test]
    fn a_server_asks_to_wait_for_seconds_or_until_a_date() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        for (value, now, wait) in [
            ("7", 0, Some(7)),
            (" 0 ", 0, Some(0)),
            (date, 784_111_770, Some(7)),
            (date, 784_111_777, None),
            (date, 784_111_800, None),
            ("tomorrow", 0, None),
        ] {
            let wait = wait.map(Duration::from_secs);
            assert_eq!(retry_after(value, now), wait, "{value} at {now}");
        }
    }
}
