//! Tests of whole graphs: [`Scenario`] drives a graph with scripted answers, and [`TestClock`] is a time that the test moves.
//!
//! A single node needs neither: call it with [`View::of`](crate::View::of) and [`TestCx`](crate::TestCx). To kill a program at
//! every point and see whether it comes to the same end, use `superstep_conformance::mortal::KillSweep`; a scenario can be the
//! life of such a sweep. The guide is `docs/testing.md`.

mod clock;
mod scenario;
mod script;
mod store;

pub use clock::TestClock;
pub use scenario::{Scenario, ScenarioEnd};
pub use script::ScenarioError;
