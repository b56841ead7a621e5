//! A cache of nodes with a defect.

use std::collections::BTreeMap;
use std::sync::Mutex;

use superstep_core::Timestamp;
use superstep_core::checkpoint::{BoxFuture, CheckpointResult};
use superstep_core::driver::NodeCache;

/// What is wrong with a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheDefect {
    None,
    FoundByPrefix,
    ExpiredFound,
    FirstResultStays,
    /// An underscore stands for any character.
    ClearedByPattern,
    KeysFoldCase,
}

/// A cache with a defect.
pub(crate) struct BrokenCache {
    results: Mutex<BTreeMap<String, Kept>>,
    defect: CacheDefect,
}

type Kept = (Vec<u8>, Option<Timestamp>);

impl BrokenCache {
    pub(crate) fn new(defect: CacheDefect) -> Self {
        Self {
            results: Mutex::default(),
            defect,
        }
    }

    fn is(&self, defect: CacheDefect) -> bool {
        self.defect == defect
    }

    fn name(&self, key: &str) -> String {
        match self.is(CacheDefect::KeysFoldCase) {
            true => key.to_lowercase(),
            false => key.to_owned(),
        }
    }

    fn is_cleared(&self, key: &str, prefix: &str) -> bool {
        if !self.is(CacheDefect::ClearedByPattern) {
            return key.starts_with(prefix);
        }
        let fits = |(found, wanted)| wanted == '_' || found == wanted;
        prefix.len() <= key.len() && key.chars().zip(prefix.chars()).all(fits)
    }
}

impl NodeCache for BrokenCache {
    fn get<'a>(
        &'a self,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Vec<u8>>>> {
        Box::pin(async move {
            let results = self.results.lock().expect("no clause panics");
            let key = self.name(key);
            let found = match self.is(CacheDefect::FoundByPrefix) {
                true => results.range(key..).next().map(|(_, kept)| kept),
                false => results.get(&key),
            };
            let lives = |end: Timestamp| now < end || self.is(CacheDefect::ExpiredFound);
            let found = found.filter(|kept| kept.1.is_none_or(lives));
            Ok(found.map(|kept| kept.0.clone()))
        })
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        bytes: Vec<u8>,
        expires: Option<Timestamp>,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            let mut results = self.results.lock().expect("no clause panics");
            let key = self.name(key);
            if !(self.is(CacheDefect::FirstResultStays) && results.contains_key(&key)) {
                results.insert(key, (bytes, expires));
            }
            Ok(())
        })
    }

    fn clear<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            let mut results = self.results.lock().expect("no clause panics");
            results.retain(|key, _| !self.is_cleared(key, prefix));
            Ok(())
        })
    }
}
