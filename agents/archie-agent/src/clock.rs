//! What time it is: the one place where the program asks.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use superstep::Timestamp;

/// Now, as stores know it.
pub fn now() -> Timestamp {
    Timestamp(i64::try_from(since().as_millis()).unwrap_or(i64::MAX))
}

/// Now, in seconds since 1970.
pub fn seconds() -> u64 {
    since().as_secs()
}

fn since() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default()
}
