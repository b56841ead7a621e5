//! Live spans of runs, supersteps and nodes, for `tracing` subscribers at debug level. They carry ids and names, never user
//! data. Without a subscriber, each costs one atomic load.
//!
//! A run that is resumed in another process gets a new live span there. The thread's [trace](superstep_core::trace), read from
//! its log, spans processes and pauses.

use superstep_core::Run;
use superstep_core::node::Task;
use superstep_core::trace::{fields, spans};
use tracing::{Level, Span};

/// Name of the span of a run, and of the field for its thread, by OpenTelemetry's conventions for agents: `tracing` fixes names
/// where a span is created, and dashboards group by these.
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
