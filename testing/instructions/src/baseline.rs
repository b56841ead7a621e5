//! The committed figures, and how new ones are judged by them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, bail};
use harness::workspace;
use serde::{Deserialize, Serialize};

use crate::callgrind::Figures;

/// The file, below the root of the workspace.
const FILE: &str = "testing/instructions/baseline.json";

/// How much more is accepted.
const PERCENT_MAX: u64 = 2;

const HOW_TO_RECORD: &str = "`cargo xtask bench instructions --record` (and `instructions-server`)";

/// A unit, and what it costs.
pub(crate) type Count = (&'static str, Figures);

/// Whose workloads were counted. The server's are built with other features of the same crates, so they are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Runtime,
    Server,
}

/// What to do if the figures are of another compiler, whose instructions say nothing about our code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherCompiler {
    Report,
    /// Used by CI, where figures that are never judged would go unnoticed.
    Fail,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Baseline {
    /// Compiler that the figures are of.
    rustc: String,
    runtime: Section,
    server: Section,
}

/// Figures per unit.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Section {
    instructions: BTreeMap<String, u64>,
    /// Shown and not judged.
    allocations: BTreeMap<String, f64>,
}

impl Baseline {
    pub(crate) fn read() -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(path()).with_context(|| format!("cannot read {FILE}"))?;
        Ok(serde_json::from_str(&text)?)
    }

    pub(crate) fn write(&self) -> anyhow::Result<()> {
        let text = format!("{}\n", serde_json::to_string_pretty(self)?);
        std::fs::write(path(), text).with_context(|| format!("cannot write {FILE}"))
    }

    /// Replaces the figures of a part. Those of another compiler are removed with it, and so have to be recorded again too.
    pub(crate) fn replace(&mut self, part: Part, rustc: String, counts: &[Count]) {
        if self.rustc != rustc {
            *self = Self::default();
            self.rustc = rustc;
        }
        let counts = counts.iter();
        let (instructions, allocations) = counts
            .map(|(unit, figures)| {
                let instructions = ((*unit).to_owned(), figures.instructions);
                (instructions, ((*unit).to_owned(), figures.allocations))
            })
            .unzip();
        let section = Section {
            instructions,
            allocations,
        };
        match part {
            Part::Runtime => self.runtime = section,
            Part::Server => self.server = section,
        }
    }

    pub(crate) fn instructions(&self, part: Part, unit: &str) -> Option<u64> {
        self.section(part).instructions.get(unit).copied()
    }

    /// Returns the units that take more instructions than is accepted.
    pub(crate) fn worse(&self, part: Part, counts: &[Count]) -> Vec<&'static str> {
        let worse = counts.iter().filter(|(unit, figures)| {
            let before = self.instructions(part, unit);
            before.is_some_and(|before| is_worse(before, figures.instructions))
        });
        worse.map(|(unit, _)| *unit).collect()
    }

    /// Fails if a unit is worse than the committed figure or has none. Returns a note if the figures were not compared.
    pub(crate) fn judge(
        &self,
        part: Part,
        counts: &[Count],
        rustc: &str,
        other_compiler: OtherCompiler,
    ) -> anyhow::Result<Option<String>> {
        let has_none = |unit: &str| self.instructions(part, unit).is_none();
        let new: Vec<&str> = (counts.iter().map(|(unit, _)| *unit))
            .filter(|unit| has_none(unit))
            .collect();
        if !new.is_empty() {
            bail!(
                "not in {FILE}: {}; record them with {HOW_TO_RECORD}",
                new.join(", ")
            );
        }
        if rustc != self.rustc {
            let note = format!(
                "not judged: the figures of {FILE} are of {}, and this is {rustc}; record new ones with {HOW_TO_RECORD}",
                self.rustc
            );
            return match other_compiler {
                OtherCompiler::Report => Ok(Some(note)),
                OtherCompiler::Fail => bail!(note),
            };
        }
        let worse = self.worse(part, counts);
        if !worse.is_empty() {
            bail!(
                "more than {PERCENT_MAX} % more instructions than in {FILE}: {}",
                worse.join(", ")
            );
        }
        Ok(None)
    }

    fn section(&self, part: Part) -> &Section {
        match part {
            Part::Runtime => &self.runtime,
            Part::Server => &self.server,
        }
    }
}

fn is_worse(before: u64, now: u64) -> bool {
    now * 100 > before * (100 + PERCENT_MAX)
}

pub(crate) fn rustc() -> anyhow::Result<String> {
    let version = workspace::output_of(workspace::program("rustc").arg("--version"))?;
    Ok(version.trim().to_owned())
}

fn path() -> PathBuf {
    workspace::root().join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUSTC: &str = "rustc 1.0.0";

    fn counts(units: &[(&'static str, u64)]) -> Vec<Count> {
        let figures = |instructions| Figures {
            instructions,
            allocations: 1.0,
        };
        let units = units.iter();
        units
            .map(|(unit, instructions)| (*unit, figures(*instructions)))
            .collect()
    }

    fn baseline() -> Baseline {
        let mut baseline = Baseline::default();
        let before = counts(&[("superstep", 10_000)]);
        baseline.replace(Part::Runtime, RUSTC.to_owned(), &before);
        baseline
    }

    fn judge(units: &[(&'static str, u64)], rustc: &str, other: OtherCompiler) -> String {
        match baseline().judge(Part::Runtime, &counts(units), rustc, other) {
            Ok(note) => note.unwrap_or_default(),
            Err(error) => format!("failed: {error}"),
        }
    }

    #[test]
    fn two_percent_more_is_accepted_and_no_more_than_that() {
        let judge = |now| judge(&[("superstep", now)], RUSTC, OtherCompiler::Report);
        assert_eq!(judge(9_000), "");
        assert_eq!(judge(10_200), "");
        let failed = judge(10_201);
        assert!(
            failed.starts_with("failed: more than 2 %") && failed.ends_with("superstep"),
            "{failed}"
        );
    }

    #[test]
    fn a_unit_without_a_figure_fails_until_it_is_recorded() {
        let units = [("superstep", 10_000), ("answer", 1)];
        let failed = judge(&units, RUSTC, OtherCompiler::Report);
        assert!(failed.contains("answer; record"), "{failed}");
        let mut baseline = baseline();
        let counts = counts(&units);
        baseline.replace(Part::Runtime, RUSTC.to_owned(), &counts);
        let judged = baseline.judge(Part::Runtime, &counts, RUSTC, OtherCompiler::Report);
        assert!(judged.is_ok_and(|note| note.is_none()));
    }

    #[test]
    fn figures_of_another_compiler_are_reported_and_fail_in_ci() {
        let judge = |other| judge(&[("superstep", 90_000)], "rustc 2.0.0", other);
        assert!(judge(OtherCompiler::Report).starts_with("not judged"));
        let failed = judge(OtherCompiler::Fail);
        assert!(
            failed.starts_with("failed: not judged") && failed.contains("--record"),
            "{failed}"
        );
    }

    #[test]
    fn recording_a_part_keeps_the_other_one_unless_the_compiler_changed() {
        let mut baseline = baseline();
        baseline.replace(Part::Server, RUSTC.to_owned(), &counts(&[("request", 5)]));
        assert_eq!(
            baseline.instructions(Part::Runtime, "superstep"),
            Some(10_000)
        );
        let other = "rustc 2.0.0".to_owned();
        baseline.replace(Part::Server, other, &counts(&[("request", 5)]));
        assert_eq!(baseline.instructions(Part::Runtime, "superstep"), None);
        assert_eq!(baseline.instructions(Part::Server, "request"), Some(5));
    }
}
