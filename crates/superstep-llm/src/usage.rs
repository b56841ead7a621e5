//! Token usage.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Number of tokens used by one call, or by many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens, including cached ones.
    pub input_tokens: u64,
    /// Output tokens, including reasoning.
    pub output_tokens: u64,
    /// Input tokens that the provider read from its prompt cache.
    #[serde(default)]
    pub cached_tokens: u64,
}

impl Usage {
    /// Returns input plus output tokens.
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens + self.output_tokens
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input_tokens += more.input_tokens;
        self.output_tokens += more.output_tokens;
        self.cached_tokens += more.cached_tokens;
    }
}
