//! What tokens cost.
//!
//! Prices change and nobody tells a program. So every line has the day it was read and where, and a model without a line
//! has a cost that is *unknown*, never zero.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::{ModelName, Provider};
use crate::usage::Usage;

/// What a call cost, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// In billionths of a dollar.
    NanoDollars(u64),
    /// Nobody knows: the model has no price in the table, or the server did not tell its usage.
    Unknown,
}

impl Cost {
    /// The sum, unknown if a part of it is.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        match (self, more) {
            (Self::NanoDollars(one), Self::NanoDollars(other)) => Self::NanoDollars(one + other),
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NanoDollars(nano) => write!(f, "${}.{:06}", nano / NANO, nano % NANO / 1_000),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// What a model costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// Billionths of a dollar for a token that it reads.
    pub input: u64,
    /// For a token that it reads and that the provider had kept.
    pub cached: u64,
    /// For a token that it writes.
    pub output: u64,
}

impl Price {
    /// What this much costs.
    pub fn of(&self, usage: &Usage) -> Cost {
        let fresh = usage.input_tokens.saturating_sub(usage.cached_tokens);
        let read = fresh * self.input + usage.cached_tokens * self.cached;
        Cost::NanoDollars(read + usage.output_tokens * self.output)
    }
}

/// Prices by model.
#[derive(Debug, Clone)]
pub struct Prices {
    lines: BTreeMap<(Provider, String), Price>,
}

impl Prices {
    /// The table that comes with this version.
    pub fn known() -> Self {
        let lines = TABLE.iter().map(|line| {
            let price = Price {
                input: line.input,
                cached: line.cached,
                output: line.output,
            };
            ((line.provider, line.model.to_owned()), price)
        });
        Self {
            lines: lines.collect(),
        }
    }

    /// With a price of your own: for a model that is not in the table, or one that you pay less for.
    #[must_use]
    pub fn with(mut self, model: &ModelName, price: Price) -> Self {
        let key = (model.provider(), model.name().to_owned());
        self.lines.insert(key, price);
        self
    }

    /// What a model costs, if it is known. A dated name (`gpt-4.1-2025-04-14`) has the price of the plain one.
    pub fn price(&self, model: &ModelName) -> Option<Price> {
        let provider = match model.provider() {
            Provider::OpenAiResponses => Provider::OpenAi,
            other => other,
        };
        let line = |name: &str| self.lines.get(&(provider, name.to_owned())).copied();
        line(model.name()).or_else(|| line(undated(model.name())?))
    }

    /// What a call cost.
    pub fn cost(&self, model: &ModelName, usage: Option<&Usage>) -> Cost {
        match (self.price(model), usage) {
            (Some(price), Some(usage)) => price.of(usage),
            _ => Cost::Unknown,
        }
    }
}

impl Default for Prices {
    fn default() -> Self {
        Self::known()
    }
}

/// The name without the day it ends with, if it ends with one.
fn undated(name: &str) -> Option<&str> {
    let is_date = |end: &str| {
        let digits = end.chars().filter(char::is_ascii_digit).count();
        digits == 8 && end.chars().all(|c| c.is_ascii_digit() || c == '-')
    };
    [8, 10].into_iter().find_map(|length| {
        let at = name.len().checked_sub(length)?;
        let (plain, end) = (name.get(..at)?, name.get(at..)?);
        is_date(end).then(|| plain.strip_suffix('-')).flatten()
    })
}

const NANO: u64 = 1_000_000_000;

/// The day the table was read.
pub const PRICES_OF: &str = "2025-10-01";

/// Where it was read: the providers' own lists.
pub const PRICES_FROM: [&str; 3] = [
    "https://openai.com/api/pricing",
    "https://www.anthropic.com/pricing",
    "https://ai.google.dev/gemini-api/docs/pricing",
];

struct Line {
    provider: Provider,
    model: &'static str,
    input: u64,
    cached: u64,
    output: u64,
}

/// Thousandths of a dollar for a million tokens are billionths of a dollar for one.
const fn line(provider: Provider, model: &'static str, [input, cached, output]: [u64; 3]) -> Line {
    Line {
        provider,
        model,
        input,
        cached,
        output,
    }
}

const TABLE: [Line; 22] = [
    line(Provider::OpenAi, "gpt-5", [1_250, 125, 10_000]),
    line(Provider::OpenAi, "gpt-5-mini", [250, 25, 2_000]),
    line(Provider::OpenAi, "gpt-5-nano", [50, 5, 400]),
    line(Provider::OpenAi, "gpt-4.1", [2_000, 500, 8_000]),
    line(Provider::OpenAi, "gpt-4.1-mini", [400, 100, 1_600]),
    line(Provider::OpenAi, "gpt-4.1-nano", [100, 25, 400]),
    line(Provider::OpenAi, "gpt-4o", [2_500, 1_250, 10_000]),
    line(Provider::OpenAi, "gpt-4o-mini", [150, 75, 600]),
    line(Provider::OpenAi, "o3", [2_000, 500, 8_000]),
    line(Provider::OpenAi, "o4-mini", [1_100, 275, 4_400]),
    line(Provider::OpenAi, "text-embedding-3-small", [20, 20, 0]),
    line(Provider::OpenAi, "text-embedding-3-large", [130, 130, 0]),
    line(
        Provider::Anthropic,
        "claude-opus-4-1",
        [15_000, 1_500, 75_000],
    ),
    line(
        Provider::Anthropic,
        "claude-opus-4",
        [15_000, 1_500, 75_000],
    ),
    line(
        Provider::Anthropic,
        "claude-sonnet-4-5",
        [3_000, 300, 15_000],
    ),
    line(Provider::Anthropic, "claude-sonnet-4", [3_000, 300, 15_000]),
    line(
        Provider::Anthropic,
        "claude-3-7-sonnet",
        [3_000, 300, 15_000],
    ),
    line(Provider::Anthropic, "claude-3-5-haiku", [800, 80, 4_000]),
    line(Provider::Anthropic, "claude-3-haiku", [250, 30, 1_250]),
    line(Provider::Gemini, "gemini-2.5-flash", [300, 75, 2_500]),
    line(Provider::Gemini, "gemini-2.5-flash-lite", [100, 25, 400]),
    line(Provider::Gemini, "gemini-2.0-flash", [100, 25, 400]),
];
