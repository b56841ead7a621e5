//! Random programs of the simulator: loops, fan-outs, joins, subgraphs, retries and interrupts, with costs and labels.

use std::sync::Arc;

use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep_conformance::sim;

/// The seeds of the programs.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=200;

pub(super) fn graphs() -> Result<Vec<Arc<Definition>>, BuildError> {
    SEEDS.map(sim::graph).collect()
}
