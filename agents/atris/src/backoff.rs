//! Waiting between two attempts: as long as the server asks, else longer each time, with jitter.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Returns the time to wait before the attempt with this number, counted from 1. `None` if the server asks to wait longer than
/// a person at a terminal would.
pub(super) fn wait(attempt: u32, retry_after: Option<Duration>, entropy: u64) -> Option<Duration> {
    if let Some(asked) = retry_after {
        return (asked <= ASKED_MAX).then_some(asked);
    }
    let whole = FIRST * 2_u32.pow(attempt.saturating_sub(1).min(6));
    // Between half and all of it, so that clients that failed together do not come back together.
    let half = whole / 2;
    let share = (entropy % 1_000) as u32;
    Some(half + half * share / 1_000)
}

/// Returns a random number. Good enough to spread clients, not for secrets.
pub(super) fn entropy() -> u64 {
    RandomState::new().build_hasher().finish()
}

const FIRST: Duration = Duration::from_millis(200);
/// The longest wait that a server can ask for.
pub(super) const ASKED_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_spread_and_obey_the_server() {
        let millis = |attempt, entropy| wait(attempt, None, entropy).unwrap().as_millis();
        assert_eq!((millis(1, 0), millis(1, 999)), (100, 199));
        assert_eq!((millis(2, 0), millis(3, 0)), (200, 400));
        let asked = |seconds| wait(1, Some(Duration::from_secs(seconds)), 0);
        assert_eq!(asked(7), Some(Duration::from_secs(7)));
        assert_eq!(asked(600), None);
    }
}
