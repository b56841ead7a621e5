//! What these tests share.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use superstep::checkpoint::format::Question;
use superstep::{Outcome, Stopped};
use superstep_llm::Script;

/// Arguments of most tools here.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Note {
    /// What to write.
    #[schemars(length(min = 1))]
    pub(crate) note: String,
}

/// A script of these replies, as JSON.
pub(crate) fn script(replies: Json) -> Arc<Script> {
    let text = serde_json::json!({ "replies": replies }).to_string();
    Arc::new(Script::parse("test", &text).unwrap())
}

pub(crate) fn questions<S>(stopped: &Stopped<S>) -> Vec<Question> {
    match &stopped.outcome {
        Outcome::Paused(questions) => questions.clone(),
        other => panic!("not paused: {other:?}"),
    }
}

pub(crate) fn request(question: &Question) -> Json {
    question.request.decode().unwrap()
}

/// Numbers from a seed, the same each time (splitmix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }
}
