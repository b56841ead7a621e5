//! Totals of what model calls used and cost.

use std::fmt;

use superstep::HistoryEntry;
use superstep::checkpoint::format::Change;
use superstep::trace::CallSpan;
use superstep_agent::trace::{MODEL, fields};
use superstep_llm::{Cost, Usage};

/// Total usage of a number of model calls.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageTotal {
    /// Number of calls.
    pub calls: usize,
    /// Sum of the tokens that the servers reported. A call without a report adds zero.
    pub usage: Usage,
    /// Total cost; unknown as soon as the cost of one call is unknown.
    pub cost: Cost,
}

impl Default for UsageTotal {
    fn default() -> Self {
        Self {
            calls: 0,
            usage: Usage::default(),
            cost: Cost::NanoDollars(0),
        }
    }
}

impl UsageTotal {
    /// Adds one call.
    pub fn add(&mut self, usage: Option<Usage>, cost: Cost) {
        self.calls += 1;
        self.usage += usage.unwrap_or_default();
        self.cost = self.cost.plus(cost);
    }

    /// Returns the total of both.
    #[must_use]
    pub fn plus(mut self, more: &Self) -> Self {
        self.calls += more.calls;
        self.usage += more.usage;
        self.cost = self.cost.plus(more.cost);
        self
    }

    /// Adds the model calls recorded in a log entry.
    pub fn add_entry(&mut self, past: &HistoryEntry) {
        for change in &past.entry.changes {
            let Change::FrameAdvanced(advanced) = change else {
                continue;
            };
            let events = advanced.writes.iter().flat_map(|write| &write.events);
            // Agents may emit any event; skip those that are not calls.
            let calls = events.filter_map(|event| event.decode::<CallSpan>().ok());
            for call in calls.filter(|call| call.span == MODEL) {
                self.add_call(&call);
            }
        }
    }

    /// Returns the total without the cost if that is unknown, for a line that is printed again and again.
    pub fn known(&self) -> String {
        let whole = self.to_string();
        match self.cost {
            Cost::Unknown => whole.trim_end_matches(", cost unknown").to_owned(),
            Cost::NanoDollars(_) => whole,
        }
    }

    fn add_call(&mut self, call: &CallSpan) {
        let number = |name: &str| call.fields.get(name).and_then(serde_json::Value::as_u64);
        let usage = number(fields::INPUT_TOKENS).map(|input_tokens| Usage {
            input_tokens,
            output_tokens: number(fields::OUTPUT_TOKENS).unwrap_or_default(),
            cached_tokens: 0,
        });
        let cost = number(fields::COST).map_or(Cost::Unknown, Cost::NanoDollars);
        self.add(usage, cost);
    }
}

impl fmt::Display for UsageTotal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = match self.calls {
            1 => "1 model call".to_owned(),
            many => format!("{many} model calls"),
        };
        write!(
            f,
            "{calls}, {} tokens in, {} out, cost {}",
            self.usage.input_tokens, self.usage.output_tokens, self.cost
        )
    }
}

#[test]
fn an_unknown_cost_can_be_left_out() {
    let mut spent = UsageTotal::default();
    spent.add(None, Cost::NanoDollars(1_000_000));
    assert_eq!(
        spent.known(),
        "1 model call, 0 tokens in, 0 out, cost $0.001000"
    );
    spent.add(None, Cost::Unknown);
    assert_eq!(spent.known(), "2 model calls, 0 tokens in, 0 out");
    assert!(spent.to_string().ends_with("cost unknown"));
}
