//! What calls of models and tools cost: their fields in a trace, and their sums.
//!
//! The names are those of `superstep-agent`, which this crate does not depend on; a test compares them.

use superstep::trace::Span;

/// Kind of a model call.
pub(crate) const MODEL: &str = "model";
/// Kind of a tool call.
pub(crate) const TOOL: &str = "tool";
/// Model that was requested.
pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
/// Number of input tokens. Absent if the server did not report usage.
pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// Number of output tokens. Absent if the server did not report usage.
pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// Name of the tool.
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
/// Id of the tool call.
pub(crate) const TOOL_CALL: &str = "gen_ai.tool.call.id";
/// Class of the tool: what calling it twice means.
pub(crate) const TOOL_CLASS: &str = "superstep.tool.class";
/// Cost of a call, in billionths of a dollar. Absent if it is unknown.
pub(crate) const COST: &str = "superstep.cost_nano_dollars";

/// Sums over model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CallTotals {
    /// Number of model calls.
    pub(super) calls: u64,
    /// Input tokens, as far as they were reported.
    pub(super) input_tokens: u64,
    /// Output tokens, as far as they were reported.
    pub(super) output_tokens: u64,
    /// Cost in billionths of a dollar, as far as it is known.
    pub(super) nano_dollars: u64,
    /// Number of calls whose cost is unknown.
    pub(super) unknown: u64,
}

impl CallTotals {
    /// Sums up the model calls inside a span.
    pub(super) fn of(span: &Span) -> Self {
        let mut totals = Self::default();
        totals.add(span);
        totals
    }

    /// Adds the model calls inside a span.
    pub(super) fn add(&mut self, span: &Span) {
        if span.kind.is_call(MODEL) {
            self.add_call(|name| span.fields.get(name).and_then(|value| value.as_u64()));
        }
        span.inner.iter().for_each(|inner| self.add(inner));
    }

    /// Adds a model call, given its numbers by the names of its fields.
    pub(super) fn add_call(&mut self, number: impl Fn(&str) -> Option<u64>) {
        let sum = |total: u64, name: &str| total.saturating_add(number(name).unwrap_or(0));
        self.calls += 1;
        self.input_tokens = sum(self.input_tokens, INPUT_TOKENS);
        self.output_tokens = sum(self.output_tokens, OUTPUT_TOKENS);
        self.nano_dollars = sum(self.nano_dollars, COST);
        self.unknown += u64::from(number(COST).is_none());
    }
}

#[test]
fn the_names_are_those_that_agents_write() {
    use superstep_agent::trace::{self, fields};
    assert_eq!((MODEL, TOOL), (trace::MODEL.as_str(), trace::TOOL.as_str()));
    assert_eq!(REQUEST_MODEL, fields::REQUEST_MODEL);
    assert_eq!(INPUT_TOKENS, fields::INPUT_TOKENS);
    assert_eq!(OUTPUT_TOKENS, fields::OUTPUT_TOKENS);
    assert_eq!(TOOL_NAME, fields::TOOL_NAME);
    assert_eq!(TOOL_CALL, fields::TOOL_CALL);
    assert_eq!(TOOL_CLASS, fields::TOOL_CLASS);
    assert_eq!(COST, fields::COST);
}
