//! What of a suite fails, and why: a table in a file, with which the results of a run are compared.
//!
//! A test that fails without a reason in the table is an error. So is a reason that no longer holds, because a stale list hides the
//! next failure.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, ensure};
use harness::workspace::root;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Whether each test passed, by its name.
pub(crate) type TestResults = BTreeMap<String, bool>;

/// The table of a suite.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedResults {
    /// The tests that pass. Default: all that `fails` does not name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    passes: Option<BTreeSet<String>>,
    /// The tests that fail, each with the reason.
    fails: BTreeMap<String, String>,
}

impl ExpectedResults {
    /// Reads the table in a file of this package.
    pub(crate) fn read(file: &str) -> anyhow::Result<Self> {
        let path = root().join("testing/server-suites").join(file);
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("cannot read `{}`", path.display()))?;
        Self::parse(&text).with_context(|| format!("`{}` is not a table", path.display()))
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let table: Self = serde_json::from_str(text)?;
        for (test, reason) in &table.fails {
            ensure!(!reason.trim().is_empty(), "`{test}` has no reason");
        }
        Ok(table)
    }

    /// Leaves out the tests that were not asked for.
    pub(crate) fn keep(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.fails.retain(|test, _| is_wanted(test));
        if let Some(passes) = &mut self.passes {
            passes.retain(|test| is_wanted(test));
        }
    }

    /// Returns the results that differ from the table.
    pub(crate) fn unexpected(&self, results: &TestResults) -> Vec<String> {
        let is_known = |test: &String| self.passes.as_ref().is_none_or(|all| all.contains(test));
        let differing =
            results
                .iter()
                .filter_map(|(test, passed)| match (*passed, self.fails.get(test)) {
                    (true, Some(_)) => Some(format!("`{test}` passes, and has a reason to fail")),
                    (true, None) if is_known(test) => None,
                    (true, None) => Some(format!("`{test}` passes, and is not in the table")),
                    (false, Some(_)) => None,
                    (false, None) => Some(format!("`{test}` fails")),
                });
        differing.collect()
    }

    /// Returns the tests of the table that have no result.
    pub(crate) fn absent<'a>(&'a self, results: &TestResults) -> Vec<&'a str> {
        let named = self.passes.iter().flatten().chain(self.fails.keys());
        let absent = named.filter(|test| !results.contains_key(*test));
        absent.map(String::as_str).collect()
    }

    /// Returns the table of these results, with the reasons that are known. A reason that is empty has to be written.
    pub(crate) fn recorded(&self, results: &TestResults) -> Self {
        let names = |wanted: bool| {
            let chosen = results.iter().filter(move |(_, passed)| **passed == wanted);
            chosen.map(|(test, _)| test.clone())
        };
        let reason = |test: &String| self.fails.get(test).cloned().unwrap_or_default();
        Self {
            passes: self.passes.as_ref().map(|_| names(true).collect()),
            fails: names(false)
                .map(|test| (test.clone(), reason(&test)))
                .collect(),
        }
    }

    /// Prints the table of these results.
    #[expect(clippy::print_stdout, reason = "the table is data")]
    pub(crate) fn print_recorded(&self, results: &TestResults) -> anyhow::Result<()> {
        println!("{}", serde_json::to_string_pretty(&self.recorded(results))?);
        Ok(())
    }

    /// Prints the results, as JSON if that is wanted. Fails if they differ from the table. `skipped` is how many tests did not run.
    #[expect(clippy::print_stdout, reason = "the results are data")]
    pub(crate) fn report(
        &self,
        suite: &str,
        results: &TestResults,
        skipped: usize,
        json: bool,
    ) -> anyhow::Result<()> {
        let passed = results.values().filter(|passed| **passed).count();
        let mut unexpected = self.unexpected(results);
        let absent = self.absent(results).into_iter();
        unexpected.extend(absent.map(|test| format!("`{test}` did not run")));
        let is_known =
            |(test, passed): &(&String, &bool)| !**passed && self.fails.contains_key(*test);
        let known = results.iter().filter(is_known).count();
        eprintln!(
            "{suite}: {passed} of {} tests pass, {known} fail for known reasons, {skipped} were skipped",
            results.len()
        );
        for difference in &unexpected {
            eprintln!("unexpected: {difference}");
        }
        if json {
            let failed = results.iter().filter(|(_, passed)| !**passed);
            let report = json!({
                "suite": suite,
                "passed": passed,
                "failed": failed.map(|(test, _)| test).collect::<Vec<_>>(),
                "skipped": skipped,
                "of": results.len(),
                "unexpected": unexpected,
            });
            println!("{report}");
        }
        ensure!(!results.is_empty(), "no test ran");
        ensure!(
            unexpected.is_empty(),
            "{} results are unexpected",
            unexpected.len()
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(all: &[(&str, bool)]) -> TestResults {
        let named = all
            .iter()
            .map(|(test, passed)| ((*test).to_owned(), *passed));
        named.collect()
    }

    #[test]
    fn results_that_differ_from_the_table_are_found() {
        let table =
            r#"{ "passes": ["ping"], "fails": { "image": "no images", "audio": "no sound" } }"#;
        let table = ExpectedResults::parse(table).unwrap();
        let found = results(&[("ping", true), ("image", false), ("audio", false)]);
        assert_eq!(table.unexpected(&found), Vec::<String>::new());
        assert_eq!(table.absent(&found), Vec::<&str>::new());
        let found = results(&[("ping", false), ("image", true), ("new", true)]);
        assert_eq!(
            table.unexpected(&found),
            [
                "`image` passes, and has a reason to fail",
                "`new` passes, and is not in the table",
                "`ping` fails",
            ]
        );
        assert_eq!(table.absent(&found), ["audio"]);
        assert!(table.report("suite", &found, 0, false).is_err());
    }

    #[test]
    fn a_table_without_passes_lists_failures_only() {
        let mut table =
            ExpectedResults::parse(r#"{ "fails": { "a": "why", "b": "why" } }"#).unwrap();
        let found = results(&[("a", false), ("b", false), ("c", true)]);
        assert!(table.report("suite", &found, 0, false).is_ok());
        table.keep(|test| test == "a");
        assert_eq!(table.unexpected(&found), ["`b` fails"]);
    }

    #[test]
    fn a_recorded_table_keeps_its_reasons_and_lacks_new_ones() {
        let table = ExpectedResults::parse(r#"{ "fails": { "a": "why", "b": "why" } }"#).unwrap();
        let recorded = table.recorded(&results(&[("a", false), ("c", false), ("d", true)]));
        let text = serde_json::to_string(&recorded).unwrap();
        assert_eq!(text, r#"{"fails":{"a":"why","c":""}}"#);
        assert!(
            ExpectedResults::parse(&text).is_err(),
            "a reason is missing"
        );
    }

    #[test]
    fn the_tables_of_this_package_can_be_read() {
        for file in [
            crate::mcp_conformance::TABLE,
            crate::a2a_kit::TABLE,
            crate::schemathesis::OUR_TABLE,
            crate::schemathesis::REFERENCE_TABLE,
        ] {
            assert!(ExpectedResults::read(file).is_ok(), "{file}");
        }
    }
}
