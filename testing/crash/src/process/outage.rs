//! A PostgreSQL server that goes away now and then while others use it.

use std::time::{Duration, Instant};

use harness::prng::Prng;
use services::{PrivateCluster, Stop};

use super::Plan;

/// The outages of a PostgreSQL server so far.
#[derive(Debug, Default)]
pub(super) struct DatabaseOutages {
    pub(super) fast: u64,
    pub(super) immediate: u64,
    /// From the word to stop until the server answers again.
    pub(super) away_ms: Vec<u64>,
}

impl DatabaseOutages {
    /// Returns how long the server stays before it goes away again.
    pub(super) fn gap(plan: &Plan, prng: &mut Prng) -> Duration {
        let (start, end) = (plan.every.start * 1_000, plan.every.end * 1_000);
        Duration::from_millis(start + prng.below(end - start + 1))
    }

    /// Stops the server, and starts it again a moment later. `test` is the name of the trial that says so.
    pub(super) fn restart(
        &mut self,
        test: &str,
        server: &PrivateCluster,
        prng: &mut Prng,
    ) -> anyhow::Result<()> {
        let begun = Instant::now();
        // In turn, so that a few are of both kinds.
        let (stop, count) = match self.fast < self.immediate {
            true => (Stop::Fast, &mut self.fast),
            false => (Stop::Immediate, &mut self.immediate),
        };
        *count += 1;
        server.stop(stop)?;
        std::thread::sleep(Duration::from_millis(prng.below(AWAY_MS_MAX)));
        server.start_again()?;
        let away = u64::try_from(begun.elapsed().as_millis())?;
        self.away_ms.push(away);
        eprintln!("{test}: {stop:?}, away for {away} ms");
        Ok(())
    }
}

const AWAY_MS_MAX: u64 = 2_000;
