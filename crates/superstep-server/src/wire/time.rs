//! Times and durations as clients read and write them.

use jiff::Timestamp as Instant;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use superstep::Timestamp;

/// Writes a time as ISO-8601 with an offset.
pub(crate) fn time(at: Timestamp) -> String {
    let instant = Instant::from_millisecond(at.0).unwrap_or(match at.0 < 0 {
        true => Instant::MIN,
        false => Instant::MAX,
    });
    // The client libraries of Python before 3.11 do not read `Z`.
    instant.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

/// Reads a time in ISO-8601. Without an offset, it is in UTC.
pub(crate) fn read_time(text: &str) -> Option<Timestamp> {
    let instant = match text.parse::<Instant>() {
        Ok(instant) => instant,
        Err(_) => {
            let shown: DateTime = text.parse().ok()?;
            Offset::UTC.to_timestamp(shown).ok()?
        }
    };
    Some(Timestamp(instant.as_millisecond()))
}

/// Converts minutes, in which clients write lifetimes, into milliseconds; `None` for a number that is not positive.
pub(crate) fn minutes(minutes: f64) -> Option<u64> {
    let ms = minutes * 60_000.0;
    // A cast saturates; what is not a number becomes zero.
    (ms >= 1.0).then(|| (ms as u64).min(MS_MAX))
}

/// Longest duration that callers can name: a thousand years. Stores add durations to times, and must not overflow.
pub(crate) const MS_MAX: u64 = 1_000 * 366 * 24 * 60 * 60 * 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_an_offset_and_never_fail() {
        assert_eq!(
            time(Timestamp(1_700_000_000_123)),
            "2023-11-14T22:13:20.123000+00:00"
        );
        assert!(time(Timestamp(i64::MAX)).starts_with("9999-"));
        assert_eq!(minutes(1.5), Some(90_000));
        assert_eq!(minutes(f64::NAN), None);
        assert_eq!(minutes(f64::MAX), Some(MS_MAX));
    }

    #[test]
    fn times_of_both_clients_are_read() {
        let wanted = Some(Timestamp(1_700_000_000_000));
        for text in [
            "2023-11-14T22:13:20Z",
            "2023-11-14T22:13:20.000Z",
            "2023-11-14T22:13:20+00:00",
            "2023-11-15T00:13:20+02:00",
            "2023-11-14T22:13:20",
            "2023-11-14 22:13:20",
        ] {
            assert_eq!(read_time(text), wanted, "{text}");
        }
        for text in ["", "tomorrow", "1700000000", "2023-11-31T00:00:00Z"] {
            assert_eq!(read_time(text), None, "{text}");
        }
    }
}
