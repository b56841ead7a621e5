//! What happened in a trial, in order: as a hash always, in words when somebody wants to read it.

use super::entropy::stir;

/// Every step of the machine, every call of the store, every fault.
#[derive(Debug, Clone, Default)]
pub(super) struct Trace {
    hash: u64,
    events: u64,
    words: Option<Vec<String>>,
}

impl Trace {
    pub(super) fn new(keep_words: bool) -> Self {
        Self {
            hash: 0x5eed,
            events: 0,
            words: keep_words.then(Vec::new),
        }
    }

    pub(super) fn add(&mut self, event: std::fmt::Arguments<'_>) {
        let words = event.to_string();
        self.events += 1;
        self.hash = stir(self.hash.rotate_left(5) ^ super::entropy::hash(words.as_bytes()));
        if let Some(kept) = &mut self.words {
            kept.push(words);
        }
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }

    pub(super) fn into_words(self) -> Vec<String> {
        self.words.unwrap_or_default()
    }
}
