//! The guide to testing shows these files as they are.
//!
//! After a change: `UPDATE_GUIDE=1 cargo test -p example-testing --test guide`

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the guide with every listing written again.
fn written(guide: &str) -> String {
    let (mut text, mut rest) = (String::new(), guide);
    while let Some((before, after)) = rest.split_once("<!-- from ") {
        let (path, after) = after.split_once(" -->\n").expect("a whole marker");
        let (_, after) = after
            .split_once("<!-- end -->")
            .expect("the end of a listing");
        let listing = read(path);
        text += &format!("{before}<!-- from {path} -->\n```rust\n{listing}```\n<!-- end -->");
        rest = after;
    }
    text + rest
}

#[test]
fn listings_are_the_files() {
    let path = "docs/testing.md";
    let guide = read(path);
    let fresh = written(&guide);
    if std::env::var_os("UPDATE_GUIDE").is_some() {
        fs::write(root().join(path), &fresh).unwrap();
        return;
    }
    assert!(
        guide == fresh,
        "{path} is out of date: run this test with UPDATE_GUIDE=1"
    );
}

/// Code that is in no file of this package is not run by anything.
#[test]
fn all_code_of_the_guide_is_a_listing() {
    let guide = read("docs/testing.md");
    let listings = guide.matches("<!-- from examples/testing/").count();
    assert_eq!(guide.matches("```rust").count(), listings);
    let files = fs::read_dir(root().join("examples/testing/tests")).unwrap();
    // All but this file, and the agent.
    assert_eq!(files.count(), listings);
}
