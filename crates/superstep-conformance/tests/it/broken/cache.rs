//! A cache of nodes with a defect.

use std::collections::BTreeMap;
use std::sync::Mutex;

use superstep_core::Timestamp;
use superstep_core::checkpoint::{BoxFuture, CheckpointResult};
use superstep_core::driver::NodeCache;
use superstep_core::graph::CacheKey;

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
    /// A tenant is the beginning of another one's name.
    TenantClearedByPrefix,
    /// A tenant is looked for in the whole key, which callers can choose a part of.
    TenantFoundAnywhere,
    /// The unnamed tenant is every tenant.
    UnnamedTenantIsAll,
    SweepIgnoresLimit,
    SweepTakesWhatLasts,
    /// Counts what has expired, and keeps it.
    SweepKeepsBytes,
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

    fn is_of_tenant(&self, key: &str, tenant: &str) -> bool {
        let found = CacheKey::tenant_of(key);
        if self.is(CacheDefect::TenantClearedByPrefix) {
            return found.is_some_and(|found| found.starts_with(tenant));
        }
        if self.is(CacheDefect::TenantFoundAnywhere) {
            return found == Some(tenant) || key.contains(&format!("@{tenant}/"));
        }
        found == Some(tenant)
            || (self.is(CacheDefect::UnnamedTenantIsAll) && tenant.is_empty() && found.is_some())
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

    fn clear_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move {
            let mut results = self.results.lock().expect("no clause panics");
            let before = results.len();
            results.retain(|key, _| !self.is_of_tenant(key, tenant));
            Ok((before - results.len()) as u64)
        })
    }

    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move {
            let mut results = self.results.lock().expect("no clause panics");
            let limit = match self.is(CacheDefect::SweepIgnoresLimit) {
                true => usize::MAX,
                false => limit as usize,
            };
            let has_expired = |(_, expires): &Kept| match expires {
                Some(expires) => *expires <= now,
                None => self.is(CacheDefect::SweepTakesWhatLasts),
            };
            let old = results.iter().filter(|(_, kept)| has_expired(kept));
            let old: Vec<String> = old.map(|(key, _)| key.clone()).take(limit).collect();
            if !self.is(CacheDefect::SweepKeepsBytes) {
                results.retain(|key, _| !old.contains(key));
            }
            Ok(old.len() as u64)
        })
    }
}
