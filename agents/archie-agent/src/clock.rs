//! The system clock. Every other module reads the time through here.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use superstep::Timestamp;

/// Returns the current time as a [`Timestamp`], in milliseconds since 1970.
pub fn now() -> Timestamp {
    Timestamp(i64::try_from(since().as_millis()).unwrap_or(i64::MAX))
}

/// Returns the current time in seconds since 1970.
pub fn seconds() -> u64 {
    since().as_secs()
}

fn since() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default()
}
