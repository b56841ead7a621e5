//! The one state that every generated graph works on: a channel of each kind that is stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use superstep_core::label::Labeled;
use superstep_core::{Message, State};

use super::entropy::hash;

/// The state of every generated graph.
#[derive(Clone, Debug, Default, PartialEq, State)]
#[state(crate = superstep_core)]
pub(super) struct World {
    #[state(append)]
    pub(super) log: Vec<String>,
    #[state(reduce = add)]
    pub(super) total: i64,
    #[state(messages)]
    pub(super) notes: Vec<Note>,
    #[state(topic)]
    pub(super) bells: Vec<String>,
    /// How often each node has run, which bounds the loops.
    #[state(reduce = count)]
    pub(super) turns: Turns,
    /// Written only where another driver runs the graph.
    #[state(append)]
    pub(super) facts: Vec<Labeled<String>>,
    pub(super) s0: i64,
    pub(super) s1: i64,
    pub(super) s2: i64,
    pub(super) s3: i64,
    pub(super) s4: i64,
    pub(super) s5: i64,
}

/// How many nodes of a program have a channel of their own.
pub(super) const SLOTS: usize = 6;

/// The name under which inputs are counted in `turns`.
pub(super) const INPUTS: &str = "=inputs";

fn add(a: i64, b: i64) -> i64 {
    a.wrapping_add(b)
}

/// How often each node has run, by its name.
pub(super) type Turns = BTreeMap<String, u32>;

fn count(mut turns: Turns, more: Turns) -> Turns {
    for (who, n) in more {
        *turns.entry(who).or_default() += n;
    }
    turns
}

impl World {
    pub(super) fn turns_of(&self, who: &str) -> u32 {
        self.turns.get(who).copied().unwrap_or(0)
    }

    /// What a node's choices hang on: different whenever something was written.
    pub(super) fn mark(&self) -> u64 {
        let turns: u32 = self.turns.values().sum();
        hash(format!("{}/{}/{turns}/{:?}", self.log.len(), self.total, self.bells).as_bytes())
    }
}

impl WorldUpdate {
    pub(super) fn slot(self, slot: usize, value: i64) -> Self {
        match slot {
            0 => self.s0(value),
            1 => self.s1(value),
            2 => self.s2(value),
            3 => self.s3(value),
            4 => self.s4(value),
            _ => self.s5(value),
        }
    }
}

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Note {
    id: Option<String>,
    text: String,
}

impl Note {
    pub(super) fn new(id: String, text: String) -> Self {
        Self { id: Some(id), text }
    }
}

impl Message for Note {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    fn set_id(&mut self, id: String) {
        self.id = Some(id);
    }
}

/// What is sent to workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) from: String,
    pub(super) number: u32,
    pub(super) salt: u64,
}
