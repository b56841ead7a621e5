//! Live spans of runs, supersteps and nodes, for subscribers of `tracing` at level debug. They hold ids and names,
//! nothing of the user's. Without a subscriber each is one look at a number.
//!
//! A run that is resumed elsewhere is another live span there: what is one over processes and pauses is the thread's
//! [trace](superstep_core::trace), which is read from its log.

use superstep_core::Run;
use superstep_core::node::Task;
use superstep_core::trace::{fields, spans};
use tracing::{Level, Span};

/// The span of a run and the field of its thread, by OpenTelemetry's names for agents: the names in a `tracing` span are
/// fixed where it is created, and dashboards group by these.
const RUN: &str = "invoke_agent";
const CONVERSATION: &str = "gen_ai.conversation.id";

#[inline]
pub(crate) fn are_wanted() -> bool {
    tracing::enabled!(Level::DEBUG)
}

#[cold]
pub(crate) fn of_run(run: &Run) -> Span {
    tracing::debug_span!(
        RUN,
        { fields::RUN } = %run.id(),
        { CONVERSATION } = %run.thread(),
    )
}

#[cold]
pub(crate) fn of_superstep(task: &Task) -> Span {
    tracing::debug_span!(spans::SUPERSTEP, { fields::STEP } = task.step())
}

#[cold]
pub(crate) fn of_node(task: &Task, superstep: &Span) -> Span {
    tracing::debug_span!(
        parent: superstep,
        spans::NODE,
        { fields::NODE } = task.node().as_str(),
        { fields::STEP } = task.step(),
        { fields::ATTEMPT } = task.attempt(),
    )
}
