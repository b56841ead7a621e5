//! The suites of official clients, each run as its own program against our server, and its answers compared with LangGraph's.
//!
//! They need Python with its module `venv` and a registry of Python packages, once; without them the test fails and says so.

use std::process::Command;

use serde_json::Value as Json;
use superstep_conformance::services;

/// How many of the 55 tests of the Python SDK pass: all.
const PASSED_MIN: u64 = 55;

#[test]
fn the_integration_suite_of_the_python_sdk_passes() {
    run_suite(&[]);
}

#[test]
fn the_integration_suite_of_the_python_sdk_passes_on_postgres() {
    run_suite(&["--store", &services::url("postgres")]);
}

#[test]
fn the_integration_suite_of_the_python_sdk_passes_in_a_cluster() {
    let store = format!("restate:{}", services::url("postgres"));
    run_suite(&["--store", &store]);
}

#[track_caller]
fn run_suite(arguments: &[&str]) {
    let mut suite = Command::new(env!("CARGO_BIN_EXE_server-suites"));
    suite
        .args(["python", "--json", "--expect", &PASSED_MIN.to_string()])
        .args(arguments);
    let output = suite.output().expect("the program is built");
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{reported}");
    let printed = String::from_utf8_lossy(&output.stdout);
    let last = printed.lines().last().unwrap_or_default();
    let results: Json = serde_json::from_str(last).expect("the last line is JSON");
    assert!(results["passed"].as_u64() >= Some(PASSED_MIN), "{results}");
    assert_eq!(results["of"], 55, "{results}");
}

/// How many of the comparisons with LangGraph's server are equal, apart from the differences on purpose.
const EQUAL_MIN: u64 = 930;

#[test]
fn answers_are_those_of_langgraphs_server() {
    let mut comparison = Command::new(env!("CARGO_BIN_EXE_server-suites"));
    comparison.args(["differential", "--json", "--expect", &EQUAL_MIN.to_string()]);
    let output = comparison.output().unwrap();
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{reported}");
    let printed = String::from_utf8_lossy(&output.stdout);
    let results: Json = serde_json::from_str(printed.lines().last().unwrap_or_default()).unwrap();
    assert!(results["equal"].as_u64() >= Some(EQUAL_MIN), "{results}");
    assert!(results["scripts"].as_u64() >= Some(40), "{results}");
    let on_purpose = results["differences"].as_u64();
    assert!(on_purpose.is_some_and(|count| count <= 15), "{results}");
}
