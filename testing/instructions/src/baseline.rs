//! The committed figures.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context;
use harness::workspace;
use serde::{Deserialize, Serialize};

/// The file, below the root of the workspace.
pub(crate) const FILE: &str = "testing/instructions/baseline.json";

/// How much more is accepted.
pub(crate) const PERCENT_MAX: u64 = 2;

#[derive(Serialize, Deserialize)]
pub(crate) struct Baseline {
    /// Compiler that the figures are of.
    pub(crate) rustc: String,
    /// Instructions per unit.
    instructions: BTreeMap<String, u64>,
}

impl Baseline {
    pub(crate) fn of(counts: Vec<(&'static str, u64)>) -> anyhow::Result<Self> {
        let owned = |(unit, count): (&str, u64)| (unit.to_owned(), count);
        Ok(Self {
            rustc: rustc()?,
            instructions: counts.into_iter().map(owned).collect(),
        })
    }

    pub(crate) fn read() -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(path()).with_context(|| format!("cannot read {FILE}"))?;
        Ok(serde_json::from_str(&text)?)
    }

    pub(crate) fn write(&self) -> anyhow::Result<()> {
        let text = format!("{}\n", serde_json::to_string_pretty(self)?);
        std::fs::write(path(), text).with_context(|| format!("cannot write {FILE}"))
    }

    pub(crate) fn count(&self, unit: &str) -> Option<u64> {
        self.instructions.get(unit).copied()
    }
}

pub(crate) fn is_worse(before: u64, now: u64) -> bool {
    now * 100 > before * (100 + PERCENT_MAX)
}

pub(crate) fn rustc() -> anyhow::Result<String> {
    let version = workspace::output_of(workspace::program("rustc").arg("--version"))?;
    Ok(version.trim().to_owned())
}

fn path() -> PathBuf {
    workspace::root().join(FILE)
}

#[test]
fn two_percent_more_is_accepted_and_no_more_than_that() {
    assert!(!is_worse(10_000, 9_000));
    assert!(!is_worse(10_000, 10_200));
    assert!(is_worse(10_000, 10_201));
}
