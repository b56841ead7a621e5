use serde::{Deserialize, Serialize};
use superstep_core::state::{StateSchema, present};
use superstep_core::{Channel, ChannelKind, ChannelSet, State, StateUpdate};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Review {
    pub verdict: Option<String>,
    pub notes: Vec<String>,
    pub score: i64,
}

/// A partial update of [`Review`]: what is not set does not change.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReviewUpdate {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    verdict: Option<Option<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(
        rename = "=notes",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    overwrite_notes: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    score: Option<i64>,
    #[serde(
        rename = "=score",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    overwrite_score: Option<i64>,
}

impl ReviewUpdate {
    /// Sets `verdict`.
    pub fn verdict(mut self, value: impl Into<Option<String>>) -> Self {
        self.verdict = Some(value.into());
        self
    }

    /// Adds an item to `notes`.
    pub fn notes(mut self, item: impl Into<String>) -> Self {
        self.notes.push(item.into());
        self
    }

    /// Replaces the whole of `notes`; what siblings write to it in this superstep is dropped.
    pub fn overwrite_notes(mut self, value: impl Into<Vec<String>>) -> Self {
        self.overwrite_notes = Some(value.into());
        self
    }

    /// Folds this into `score`. Of several calls the last one counts.
    pub fn score(mut self, value: i64) -> Self {
        self.score = Some(value);
        self
    }
}

impl StateUpdate for ReviewUpdate {
    fn written(&self) -> ChannelSet {
        ChannelSet::EMPTY
            .with(0, self.verdict.is_some())
            .with(1, !self.notes.is_empty() || self.overwrite_notes.is_some())
            .with(2, self.score.is_some() || self.overwrite_score.is_some())
    }

    fn overwritten(&self) -> ChannelSet {
        ChannelSet::EMPTY
            .with(1, self.overwrite_notes.is_some())
            .with(2, self.overwrite_score.is_some())
    }

    fn discard(&mut self, channels: ChannelSet) {
        if channels.has(0) {
            self.verdict = None;
        }
        if channels.has(1) {
            self.notes.clear();
            self.overwrite_notes = None;
        }
        if channels.has(2) {
            self.score = None;
            self.overwrite_score = None;
        }
    }
}

impl State for Review {
    type Update = ReviewUpdate;

    const VERSION: u32 = 1;

    const CHANNELS: &'static [Channel] = &[
        Channel {
            name: "verdict",
            kind: ChannelKind::Last,
        },
        Channel {
            name: "notes",
            kind: ChannelKind::Append,
        },
        Channel {
            name: "score",
            kind: ChannelKind::Reduce,
        },
    ];

    fn apply(&mut self, update: ReviewUpdate) {
        if let Some(value) = update.verdict {
            self.verdict = value;
        }
        if let Some(value) = update.overwrite_notes {
            self.notes = value;
        }
        self.notes.extend(update.notes);
        if let Some(value) = update.overwrite_score {
            self.score = value;
        }
        if let Some(value) = update.score {
            self.score = add(self.score, value);
        }
    }

    fn schema() -> serde_json::Value {
        let text = || StateSchema::of("string");
        StateSchema::new("Review")
            .field("verdict", StateSchema::nullable(text()), "")
            .field("notes", StateSchema::list(text()), "")
            .field("score", StateSchema::of("integer"), "")
            .finish()
    }
}

fn add(total: i64, write: i64) -> i64 {
    total + write
}
