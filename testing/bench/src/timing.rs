//! Times of what runs in this process: two sides in turns, so that whatever else the machine does hits both.
//!
//! What counts is the quiet tenth: other work on the machine only ever adds time, and in steps. (Measured with busy
//! cores: a wait for the disk takes 80 us or, when the thread is not woken before the next tick, 4 ms.)

use std::time::{Duration, Instant};

/// Both sides, in seconds a round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sides {
    pub(super) ours: f64,
    pub(super) theirs: f64,
}

/// Does so many rounds of both, after one of each that does not count.
pub(super) fn alternate(
    rounds: usize,
    mut ours: impl FnMut() -> anyhow::Result<()>,
    mut theirs: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Sides> {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let begun = Instant::now();
        ours()?;
        let between = Instant::now();
        theirs()?;
        if round > 0 {
            a.push(between - begun);
            b.push(between.elapsed());
        }
    }
    Ok(Sides {
        ours: quiet(&mut a),
        theirs: quiet(&mut b),
    })
}

/// How long something takes: the median of so many, in seconds.
pub(super) fn median_of(
    times: usize,
    mut work: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    work()?;
    let mut took = Vec::new();
    for _ in 0..times {
        let begun = Instant::now();
        work()?;
        took.push(begun.elapsed());
    }
    let middle = took.len() / 2;
    Ok(quantile(&mut took, middle))
}

/// What a tenth of the times is at most, in seconds.
pub(super) fn quiet(times: &mut [Duration]) -> f64 {
    quantile(times, times.len() / 10)
}

fn quantile(times: &mut [Duration], rank: usize) -> f64 {
    times.sort_unstable();
    times.get(rank).map_or(f64::NAN, Duration::as_secs_f64)
}
