//! The rules of this repository that no compiler knows, as ordinary tests.
//!
//! Each rule is a function from text or data to a list of faults, so that beside the test that holds
//! the repository to it stands a test that shows it a bad sample. A rule that cannot fail is no rule.

mod agent_pages;
mod arrows;
mod changelog;
mod configuration;
mod core_is_pure;
mod core_knows_no_models;
mod coverage;
mod doc_examples;
mod error_pages;
mod files;
mod guarantees;
mod machine_paths;
mod minimum_rust;
mod module_docs;
mod names;
mod operations;
mod orphans;
mod packages;
mod pages;
mod printing;
mod rust_code;
mod scale;
mod skipped_tests;
mod studio_tests;
mod user_folders;
mod weight;
mod words;

/// Fails with every fault at once.
#[track_caller]
fn assert_tidy(faults: &[String]) {
    assert!(
        faults.is_empty(),
        "{} fault(s):\n  {}",
        faults.len(),
        faults.join("\n  ")
    );
}
