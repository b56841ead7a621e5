//! Results of a test run, read from the JUnit file that the test runner wrote.

use anyhow::{Context, ensure};
use roxmltree::{Document, Node};
use serde_json::{Value as Json, json};

use crate::expected::TestResults;

/// Which tests passed.
#[derive(Debug, Default)]
pub(crate) struct SuiteResults {
    /// Whether each test passed, by its name.
    tests: TestResults,
}

impl SuiteResults {
    /// Prints which tests did not pass, and all results as JSON if that is wanted. Fails if fewer tests passed than expected;
    /// default: all.
    #[expect(clippy::print_stdout, reason = "the results are data")]
    pub(crate) fn report(
        &self,
        suite: &str,
        client: &str,
        json: bool,
        expect: Option<usize>,
    ) -> anyhow::Result<()> {
        let (passed, of) = (self.passed(), self.of());
        for name in self.failed() {
            eprintln!("did not pass: {name}");
        }
        eprintln!("{client}: {passed} of {of} tests passed");
        if json {
            println!("{}", self.to_json(suite));
        }
        let expected = expect.unwrap_or(of);
        ensure!(of > 0, "no test ran");
        ensure!(
            passed >= expected,
            "{passed} tests passed, and {expected} should"
        );
        Ok(())
    }

    /// Adds the tests of a JUnit file.
    pub(crate) fn add(&mut self, junit: &str) -> anyhow::Result<()> {
        self.add_if(junit, |_| true)
    }

    /// Adds the tests of a JUnit file that were not skipped: some runners list those that were not asked for as skipped.
    pub(crate) fn add_selected(&mut self, junit: &str) -> anyhow::Result<()> {
        self.add_if(junit, |test| !has_child(test, &["skipped"]))
    }

    fn add_if(
        &mut self,
        junit: &str,
        counts: impl Fn(&Node<'_, '_>) -> bool,
    ) -> anyhow::Result<()> {
        let file = Document::parse(junit).context("not a valid JUnit file")?;
        let tests = file
            .descendants()
            .filter(|node| node.has_tag_name("testcase") && counts(node));
        for test in tests {
            // A test can have two entries, one of them for what failed after it.
            let has_passed = self.tests.entry(name_of(&test)).or_insert(true);
            *has_passed &= is_passed(&test);
        }
        Ok(())
    }

    /// Returns whether each test passed, by its name.
    pub(crate) fn tests(&self) -> &TestResults {
        &self.tests
    }

    /// Returns how many tests passed.
    pub(crate) fn passed(&self) -> usize {
        self.tests.values().filter(|passed| **passed).count()
    }

    /// Returns how many tests there are.
    pub(crate) fn of(&self) -> usize {
        self.tests.len()
    }

    /// Returns the names of the tests that did not pass, in order.
    pub(crate) fn failed(&self) -> Vec<&str> {
        let failed = self.tests.iter().filter(|(_, passed)| !**passed);
        failed.map(|(name, _)| name.as_str()).collect()
    }

    /// Returns what a program reads of the results.
    pub(crate) fn to_json(&self, suite: &str) -> Json {
        json!({
            "suite": suite,
            "passed": self.passed(),
            "failed": self.failed(),
            "of": self.of(),
        })
    }
}

/// Returns the file and the name of a test. The file is `tests.integration.test_runs`, `tests/api.test.mts` or
/// `src/tests/stream.queue.test.tsx`.
fn name_of(test: &Node<'_, '_>) -> String {
    let attribute = |name: &'static str| test.attribute(name).unwrap_or_default();
    let class = attribute("classname");
    let file = match class.rsplit_once('/') {
        Some((_, file)) => file.split(".test.").next(),
        None => class.rsplit('.').next(),
    };
    format!("{}::{}", file.unwrap_or_default(), attribute("name"))
}

/// A test that was skipped shows nothing, so it has not passed.
fn is_passed(test: &Node<'_, '_>) -> bool {
    !has_child(test, &["failure", "error", "skipped"])
}

fn has_child(test: &Node<'_, '_>, names: &[&str]) -> bool {
    test.children()
        .any(|child| names.contains(&child.tag_name().name()))
}

#[test]
fn results_are_counted_by_test() {
    let mut results = SuiteResults::default();
    let file = r#"<?xml version="1.0"?><testsuites><testsuite tests="4">
        <testcase classname="tests.integration.test_runs" name="test_wait" time="0.1" />
        <testcase classname="tests.integration.test_runs" name="test_list"><failure message="no">x</failure></testcase>
        <testcase classname="tests.integration.test_runs" name="test_join"><skipped message="no server" /></testcase>
        <testcase classname="tests.integration.test_store" name="test_put" />
        <testcase classname="tests.integration.test_store" name="test_put"><error message="after it" /></testcase>
        </testsuite></testsuites>"#;
    results.add(file).unwrap();
    assert_eq!((results.passed(), results.of()), (1, 4));
    assert_eq!(
        results.failed(),
        [
            "test_runs::test_join",
            "test_runs::test_list",
            "test_store::test_put"
        ]
    );
    assert_eq!(results.to_json("python")["of"], 4);
    assert!(results.add("<testsuites>").is_err());
}

#[test]
fn tests_that_were_not_selected_can_be_left_out() {
    let mut results = SuiteResults::default();
    let file = r#"<testsuites><testsuite>
        <testcase classname="tests/api.test.mts" name="runs &gt; wait" />
        <testcase classname="tests/api.test.mts" name="runs &gt; list runs"><skipped /></testcase>
        <testcase classname="tests/api.test.mts" name="errors &gt; stream"><failure /></testcase>
        <testcase classname="src/tests/stream.queue.test.tsx" name="clears"><failure /></testcase>
        </testsuite></testsuites>"#;
    results.add_selected(file).unwrap();
    assert_eq!((results.passed(), results.of()), (1, 3));
    assert_eq!(
        results.failed(),
        ["api::errors > stream", "stream.queue::clears"]
    );
}
