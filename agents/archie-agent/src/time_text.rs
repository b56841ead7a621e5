//! Times and durations as people say them.

/// Returns a duration: `8 s`, `1 min 8 s`, `2 h 5 min`, `3 days 4 h`.
pub fn duration(seconds: u64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    let parts = |whole: String, rest: u64, unit: &str| match rest {
        0 => whole,
        rest => format!("{whole} {rest} {unit}"),
    };
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3_600 => parts(format!("{minutes} min"), seconds % 60, "s"),
        3_600..86_400 => parts(format!("{hours} h"), minutes % 60, "min"),
        _ => parts(days(hours / 24), hours % 24, "h"),
    }
}

/// Returns how long ago a time was: `just now`, `3 min ago`, `2 h ago`, `5 days ago`. Times are milliseconds since 1970. A time
/// in the future, which another machine's clock may give, counts as now.
pub fn ago(then_ms: i64, now_ms: i64) -> String {
    let seconds = now_ms.saturating_sub(then_ms).max(0) / 1_000;
    let seconds = u64::try_from(seconds).unwrap_or(0);
    match seconds {
        ..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} ago", days(seconds / 86_400)),
    }
}

fn days(count: u64) -> String {
    match count {
        1 => "1 day".to_owned(),
        count => format!("{count} days"),
    }
}

#[test]
fn durations_have_their_two_largest_units() {
    for (seconds, said) in [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (68, "1 min 8 s"),
        (7_500, "2 h 5 min"),
        (7_200, "2 h"),
        (86_400, "1 day"),
        (273_600, "3 days 4 h"),
    ] {
        assert_eq!(duration(seconds), said);
    }
}

#[test]
fn times_are_relative() {
    for (ms, said) in [
        (-5_000, "just now"),
        (59_999, "just now"),
        (180_000, "3 min ago"),
        (7_300_000, "2 h ago"),
        (86_400_000, "1 day ago"),
        (86_400_000 * 40, "40 days ago"),
    ] {
        assert_eq!(ago(1_000_000, 1_000_000 + ms), said);
    }
}
