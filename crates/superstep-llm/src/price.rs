//! Prices of tokens.
//!
//! Prices change without notice. So the table has the day and the sources it was read from, and a model without a price has
//! an *unknown* cost, never zero.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::{ModelName, Provider};
use crate::usage::Usage;

/// Cost of a call, if it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// Cost in billionths of a dollar.
    NanoDollars(u64),
    /// The model has no price in the table, or the server did not report its usage.
    Unknown,
}

impl Cost {
    /// Adds two costs. Unknown if either is unknown.
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

/// Price of a model, in billionths of a dollar per token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// Price of an input token that was not cached.
    pub input: u64,
    /// Price of an input token that the provider read from its prompt cache.
    pub cached: u64,
    /// Price of an output token.
    pub output: u64,
}

impl Price {
    /// Returns the cost of this usage.
    pub fn of(&self, usage: &Usage) -> Cost {
        let fresh = usage.input_tokens.saturating_sub(usage.cached_tokens);
        let read = fresh * self.input + usage.cached_tokens * self.cached;
        Cost::NanoDollars(read + usage.output_tokens * self.output)
    }
}

/// Price table, by provider and model.
#[derive(Debug, Clone)]
pub struct Prices {
    lines: BTreeMap<(Provider, String), Price>,
}

impl Prices {
    /// Returns the table that is built into this version.
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

    /// Adds or replaces a price: for a model that is not in the table, or one with a negotiated price.
    #[must_use]
    pub fn with(mut self, model: &ModelName, price: Price) -> Self {
        let key = (price_list(model.provider()), model.name().to_owned());
        self.lines.insert(key, price);
        self
    }

    /// Returns the price of a model, if it is known. A dated name (`gpt-4.1-2025-04-14`) has the price of the undated one.
    /// Models of OpenAI's Responses API have the prices of the chat completions API.
    pub fn price(&self, model: &ModelName) -> Option<Price> {
        let provider = price_list(model.provider());
        let line = |name: &str| self.lines.get(&(provider, name.to_owned())).copied();
        line(model.name()).or_else(|| line(undated(model.name())?))
    }

    /// Returns the names of the models in the table.
    pub fn models(&self) -> Vec<ModelName> {
        let names = self.lines.keys().cloned();
        names
            .map(|(provider, name)| ModelName::new(provider, name))
            .collect()
    }

    /// Returns the cost of a call; unknown if the price or the usage is.
    pub fn cost(&self, model: &ModelName, usage: Option<&Usage>) -> Cost {
        match (self.price(model), usage) {
            (Some(price), Some(usage)) => price.of(usage),
            _ => Cost::Unknown,
        }
    }
}

/// Returns the provider under whose prices a provider's models are listed.
fn price_list(provider: Provider) -> Provider {
    match provider {
        Provider::OpenAiResponses => Provider::OpenAi,
        other => other,
    }
}

impl Default for Prices {
    fn default() -> Self {
        Self::known()
    }
}

/// Returns the name without a trailing date, if it has one.
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

/// Day when the table was read.
pub const PRICES_OF: &str = "2025-10-01";

/// Sources of the table: the providers' price lists.
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

/// Prices in thousandths of a dollar per million tokens, which equals billionths of a dollar per token.
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

#[test]
fn a_price_of_your_own_is_found_whichever_api_the_model_is_called_through() {
    let price = Price {
        input: 1,
        cached: 2,
        output: 3,
    };
    let responses: ModelName = "openai_responses:mine".parse().unwrap();
    let prices = Prices::known().with(&responses, price);
    assert_eq!(prices.price(&responses), Some(price));
}
