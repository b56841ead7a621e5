//! The limits of simulated segments: random, so that what holds for every seed holds for every limit.

use std::time::Duration;

use superstep_core::Run;
use superstep_core::run::segment::SegmentFlaw;
use superstep_core::run::{Segment, SegmentLimits};

use super::lab::Inner;
use super::mutant::Mutant;

/// A segment of this run with limits from the dice, and with the defect of the mutant that is being tried.
pub(super) fn segment(run: Run, lab: &mut Inner) -> (Segment, SegmentLimits) {
    let limits = random(lab);
    let segment = Segment::limited(run, limits.clone());
    let segment = match flaw(lab.kept.mutant()) {
        Some(flaw) => segment.with_flaw(flaw),
        None => segment,
    };
    (segment, limits)
}

fn random(lab: &mut Inner) -> SegmentLimits {
    let suspend = lab.weather.put_down;
    // Seldom before it got anywhere, or it never would.
    let mut supersteps = u32::from(!lab.entropy.chance(suspend / 8));
    while supersteps > 0 && supersteps < SUPERSTEPS_MAX && !lab.entropy.chance(suspend) {
        supersteps += 1;
    }
    let dispatches = lab.entropy.chance(lab.weather.hand_over);
    let sleeps = lab.entropy.chance(suspend);
    SegmentLimits {
        supersteps,
        time: Duration::MAX,
        longest_wait: if sleeps {
            Duration::ZERO
        } else {
            Duration::MAX
        },
        cancel_poll: Duration::MAX,
        dispatch_from: if dispatches {
            lab.weather.hand_over_from
        } else {
            usize::MAX
        },
    }
}

/// The defects of the segment rules, which are in core; other mutants are in what surrounds the machine.
fn flaw(mutant: Option<Mutant>) -> Option<SegmentFlaw> {
    Some(match mutant? {
        Mutant::DispatchedTwice => SegmentFlaw::DispatchedTwice,
        Mutant::SuspendedBeforeRecorded => SegmentFlaw::SuspendedBeforeRecorded,
        Mutant::LimitIgnored => SegmentFlaw::LimitIgnored,
        Mutant::EndToldAtOnce => SegmentFlaw::EndAppliedAtOnce,
        _ => return None,
    })
}

/// More than any simulated run makes before it stops.
const SUPERSTEPS_MAX: u32 = 200;
