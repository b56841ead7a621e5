//! What a registry shows of every package: description, licence, readme, keywords, categories, docs, and the licence's text.

use serde_json::Value as Json;

use harness::workspace::root;

use crate::metadata::{Metadata, Package};

use super::assert_tidy;

/// Most that crates.io takes.
const KEYWORDS_MAX: usize = 5;

fn faults_of(package: &Package) -> Vec<String> {
    let about = &package.about;
    let is_text = |field: &str| about[field].as_str().is_some_and(|text| !text.is_empty());
    let count = |field: &str| about[field].as_array().map_or(0, Vec::len);
    let docs = format!("https://docs.rs/{}", package.name);
    let wanted = [
        (is_text("description"), "a description"),
        (about["license"] == "MIT OR Apache-2.0", "the licence"),
        (about["readme"] == "README.md", "a readme"),
        (
            (1..=KEYWORDS_MAX).contains(&count("keywords")),
            "one to five keywords",
        ),
        (count("categories") > 0, "a category"),
        (
            about["documentation"].as_str() == Some(&docs),
            "`documentation` at docs.rs",
        ),
        (package.rust_version.is_some(), "a `rust-version`"),
    ];
    let missing = wanted.iter().filter(|(is_there, _)| !is_there);
    missing
        .map(|(_, what)| format!("{} needs {what} in its Cargo.toml", package.name))
        .collect()
}

#[test]
fn every_published_package_says_what_it_is() {
    let metadata = Metadata::read().unwrap();
    assert!(metadata.published().count() > 10);
    let faults: Vec<_> = metadata.published().flat_map(faults_of).collect();
    assert_tidy(&faults);
}

/// Cargo packs what a link points to, so each folder has a link to the one text.
#[test]
fn every_published_package_has_the_licences() {
    let mut faults = Vec::new();
    for package in Metadata::read().unwrap().published() {
        for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let path = std::path::Path::new(&package.manifest).with_file_name(name);
            if std::fs::read(&path).ok() != std::fs::read(root().join(name)).ok() {
                faults.push(format!(
                    "{}: make it a link to the root's {name}",
                    path.display()
                ));
            }
        }
    }
    assert_tidy(&faults);
}

#[test]
fn a_package_that_says_nothing_is_found() {
    let package = Package {
        name: "a".to_owned(),
        about: Json::Null,
        ..Package::default()
    };
    assert_eq!(faults_of(&package).len(), 7);
}
