//! A PostgreSQL server and a Redis that go away now and then while others use them.

use std::time::{Duration, Instant};

use harness::prng::Prng;
use services::{PrivateCluster, PrivateRedis, Stop};

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

/// The outages of a Redis so far.
#[derive(Debug, Default)]
pub(super) struct RedisOutages {
    pub(super) flushes: u64,
    /// From the kill until it answers again.
    pub(super) away_ms: Vec<u64>,
}

impl RedisOutages {
    /// Deletes everything in Redis, or kills it and starts it again a moment later.
    pub(super) fn next(
        &mut self,
        test: &str,
        redis: &PrivateRedis,
        prng: &mut Prng,
    ) -> anyhow::Result<()> {
        // In turn, so that a few are of both kinds.
        if self.flushes <= self.away_ms.len() as u64 {
            self.flushes += 1;
            return redis.flush();
        }
        let begun = Instant::now();
        redis.kill()?;
        std::thread::sleep(Duration::from_millis(prng.below(AWAY_MS_MAX)));
        redis.start_again()?;
        let away = u64::try_from(begun.elapsed().as_millis())?;
        self.away_ms.push(away);
        eprintln!("{test}: Redis, away for {away} ms");
        Ok(())
    }
}

const AWAY_MS_MAX: u64 = 2_000;
