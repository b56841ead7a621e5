//! Two sides measured in turns, so that whatever else the machine does hits both.

use std::time::{Duration, Instant};

/// The medians of both sides, in seconds a round.
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
        ours: median(&mut a),
        theirs: median(&mut b),
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
    Ok(median(&mut took))
}

pub(super) fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times
        .get(times.len() / 2)
        .map_or(f64::NAN, Duration::as_secs_f64)
}
