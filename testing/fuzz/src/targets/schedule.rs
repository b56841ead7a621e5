//! Intervals and cron expressions. The first byte chooses.

use std::time::Duration;

use archie::cli::interval::interval;
use superstep_core::{ThreadId, Timestamp};
use superstep_restate::Cron;

pub(super) fn run(bytes: &[u8]) {
    let (kind, bytes) = super::choice(bytes);
    let Some(text) = super::text(bytes) else {
        return;
    };
    if kind % 2 == 0 {
        if let Ok(every) = interval(text) {
            assert!(every > Duration::ZERO && every <= Duration::from_secs(100 * 86_400));
        }
        return;
    }
    let cron = Cron {
        pattern: text.to_owned(),
        thread: ThreadId::new("t").expect("a thread"),
    };
    for after in [0, 1_700_000_000_000, 4_102_444_799_999, i64::MAX] {
        if let Ok(next) = cron.next_after(Timestamp(after)) {
            assert!(next.0 > after, "the next time is not after the last one");
        }
    }
}
