//! What a registry shows of every package: description, licence, readme, keywords, categories, docs, and the licence's text; and
//! no two packages have a program of the same name.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

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

/// Names of programs that several packages have. Cargo puts them at one path of the target folder, where the last one built wins,
/// and tests start the wrong one.
fn shared_programs(metadata: &Metadata) -> Vec<String> {
    let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in metadata.members() {
        let targets = package.about["targets"].as_array().into_iter().flatten();
        for program in targets.filter(|target| target["kind"][0] == "bin") {
            let name = program["name"].as_str().unwrap_or_default();
            owners.entry(name).or_default().push(&package.name);
        }
    }
    let shared = owners.into_iter().filter(|(_, owners)| owners.len() > 1);
    shared
        .map(|(name, owners)| format!("`{name}` is a program of {}", owners.join(" and ")))
        .collect()
}

#[test]
fn no_two_packages_have_a_program_of_the_same_name() {
    assert_tidy(&shared_programs(&Metadata::read().unwrap()));
}

#[test]
fn a_shared_name_of_a_program_is_found() {
    let package = |name: &str, program: &str| {
        json!({ "id": name, "name": name, "targets": [
            { "kind": ["lib"], "name": "library" },
            { "kind": ["bin"], "name": program },
        ] })
    };
    let metadata = Metadata::from_json(&json!({
        "workspace_members": ["a", "b", "c"],
        "packages": [package("a", "first"), package("b", "second"), package("c", "first")],
    }));
    assert_eq!(
        shared_programs(&metadata),
        ["`first` is a program of a and c"]
    );
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
