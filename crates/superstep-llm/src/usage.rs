//! What a call took.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Tokens of a call, or of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Read by the model, cached ones among them.
    pub input_tokens: u64,
    /// Written by the model, thoughts among them.
    pub output_tokens: u64,
    /// Those of the input that the provider had kept from an earlier call.
    #[serde(default)]
    pub cached_tokens: u64,
}

impl Usage {
    /// Input and output.
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
