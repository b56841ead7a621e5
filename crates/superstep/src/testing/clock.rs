//! The clock of a test: the time of tokio, which a test can pause and move.

use std::time::Duration;

use superstep_core::Timestamp;
use tokio::time::Instant;

use crate::clock::Clock;

/// A clock that follows the time of tokio. In a test with `#[tokio::test(start_paused = true)]` no real time passes: the time stands
/// still while anything runs, and jumps to the next timer when everything waits. So the delays of retries, timeouts and
/// `tokio::time::sleep` fire in their order and at once, and deadlines pass when the test [moves](TestClock::advance) the time.
///
/// `start_paused` needs the feature `test-util` of tokio, in the dev-dependencies.
///
/// ```
/// # use std::time::Duration;
/// use superstep::testing::TestClock;
/// use superstep::{Memory, Runtime};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let clock = TestClock::new();
/// let runtime = Runtime::builder(Memory::default()).clock(clock.clock()).build();
/// let before = runtime.now();
/// clock.advance(Duration::from_secs(3_600)).await;
/// assert_eq!(runtime.now(), before.plus_ms(3_600_000));
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TestClock {
    start: Timestamp,
    origin: Instant,
}

impl TestClock {
    /// Creates a clock that shows the first second of 2026 (UTC) now.
    pub fn new() -> Self {
        Self::starting_at(FIRST_OF_2026)
    }

    /// Creates a clock that shows this time now.
    pub fn starting_at(start: Timestamp) -> Self {
        Self {
            start,
            origin: Instant::now(),
        }
    }

    /// Returns the time that the clock shows.
    pub fn now(&self) -> Timestamp {
        self.start.plus_ms(millis(self.origin.elapsed()))
    }

    /// Returns this clock for a [`RuntimeBuilder`](crate::RuntimeBuilder::clock).
    pub fn clock(&self) -> Clock {
        let clock = self.clone();
        Clock::new(move || clock.now())
    }

    /// Moves the time. Timers on the way fire in their order.
    ///
    /// # Panics
    /// If the time of tokio is not paused: the test would really wait.
    pub async fn advance(&self, by: Duration) {
        assert!(
            is_paused(),
            "a test that moves the time needs `#[tokio::test(start_paused = true)]`"
        );
        // Not `tokio::time::advance`: it jumps over timers, which then all fire at the end.
        tokio::time::sleep(by).await;
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether the time of tokio is paused. Tokio does not say, but then its time does not pass.
fn is_paused() -> bool {
    let before = Instant::now();
    std::thread::sleep(Duration::from_millis(1));
    Instant::now() == before
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

const FIRST_OF_2026: Timestamp = Timestamp(1_767_225_600_000);
