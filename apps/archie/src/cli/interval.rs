//! Parses times as people write them.

use std::time::Duration;

/// Parses an interval such as `30s`, `10m`, `2h` or `1d`: at least 1 ms and at most 100 days.
pub fn interval(text: &str) -> Result<Duration, String> {
    parse(text, 100 * DAY_MS)
}

/// Parses an age such as `12h` or `30d`: at least 1 ms and at most 100 years.
pub fn age(text: &str) -> Result<Duration, String> {
    parse(text, 36_500 * DAY_MS)
}

fn parse(text: &str, ms_max: u64) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time: write 30s, 10m, 2h or 1d");
    let is_digit = |c: char| c.is_ascii_digit();
    let split = text.find(|c| !is_digit(c)).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => DAY_MS,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    match number.checked_mul(factor) {
        Some(ms) if (1..=ms_max).contains(&ms) => Ok(Duration::from_millis(ms)),
        _ => Err(wrong()),
    }
}

const DAY_MS: u64 = 86_400_000;

#[test]
fn an_interval_is_a_number_and_a_unit() {
    assert_eq!(interval("30s"), Ok(Duration::from_secs(30)));
    assert_eq!(interval("10m"), Ok(Duration::from_secs(600)));
    assert_eq!(interval("2h"), Ok(Duration::from_secs(7_200)));
    for wrong in ["", "m", "0s", "10", "-1m", "10 m", "9999999d", "1w", "1é"] {
        assert!(interval(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn an_age_may_be_longer_than_an_interval() {
    assert_eq!(age("400d"), Ok(Duration::from_secs(400 * 86_400)));
    assert!(interval("400d").is_err());
    assert!(age("40000d").is_err());
}
