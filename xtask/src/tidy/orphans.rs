//! No Rust file lies about that no `mod` reaches: it would be neither compiled nor tested.

use std::collections::{BTreeMap, BTreeSet};

use super::assert_tidy;
use super::files::{self, File};
use super::rust_code::code_only;

fn faults_of(files: &[File]) -> Vec<String> {
    let rust: BTreeMap<&str, &File> = files
        .iter()
        .filter(|f| f.is_rust())
        .map(|f| (f.path.as_str(), f))
        .collect();
    let mut reached: BTreeSet<String> = rust
        .values()
        .filter(|file| is_target(file))
        .map(|file| file.path.clone())
        .collect();
    let mut waiting: Vec<String> = reached.iter().cloned().collect();
    while let Some(path) = waiting.pop() {
        let Some(file) = rust.get(path.as_str()) else {
            continue;
        };
        for child in children(file)
            .into_iter()
            .filter(|child| rust.contains_key(child.as_str()))
        {
            if reached.insert(child.clone()) {
                waiting.push(child);
            }
        }
    }
    let orphans = rust
        .values()
        .filter(|file| !reached.contains(&file.path) && !is_named(file, &rust, &reached));
    orphans
        .map(|file| format!("{}: no `mod` reaches this file", file.path))
        .collect()
}

/// Whether cargo finds the file by itself.
fn is_target(file: &File) -> bool {
    let Some((_, path)) = file.split_package() else {
        return false;
    };
    let parts: Vec<&str> = path.split('/').collect();
    matches!(
        parts.as_slice(),
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "bin", _]
            | ["src", "bin", _, "main.rs"]
            | ["tests" | "examples" | "benches", _]
            | ["tests" | "examples" | "benches", _, "main.rs"]
    )
}

/// The files that the `mod name;` lines of a file may mean.
fn children(file: &File) -> Vec<String> {
    let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let stem = name.trim_end_matches(".rs");
    let beside = is_target(file) || stem == "mod";
    let below = if beside {
        folder.to_owned()
    } else {
        format!("{folder}/{stem}")
    };
    let code = code_only(&file.text);
    let mut children = Vec::new();
    for (line, text) in code.lines().zip(file.text.lines()) {
        if let Some(name) = declared_module(line) {
            children.push(format!("{below}/{name}.rs"));
            children.push(format!("{below}/{name}/mod.rs"));
        }
        if let Some(path) = text
            .trim()
            .strip_prefix("#[path = \"")
            .and_then(|rest| rest.strip_suffix("\"]"))
        {
            children.push(format!("{folder}/{path}"));
        }
    }
    children.extend(included(&file.text).map(|path| normal(&format!("{folder}/{path}"))));
    children
}

/// The paths that `include!` and `include_str!` name.
fn included(text: &str) -> impl Iterator<Item = &str> {
    let calls = ["include!(\"", "include_str!(\""];
    calls
        .into_iter()
        .flat_map(|call| text.split(call).skip(1))
        .filter_map(|rest| rest.split('"').next())
}

/// A path without `..`.
fn normal(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// `name` of a line `pub(crate) mod name;`.
fn declared_module(line: &str) -> Option<&str> {
    let words: Vec<&str> = line.trim().strip_suffix(';')?.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "mod")?;
    // Attributes and a visibility may stand before it, and one name after it.
    (words.len() == at + 2).then(|| words[at + 1])
}

/// Whether a reached file of the same package names the file or its folder, as a test over fixtures does.
fn is_named(file: &File, rust: &BTreeMap<&str, &File>, reached: &BTreeSet<String>) -> bool {
    let Some((package, path)) = file.split_package() else {
        return false;
    };
    let Some((folder, _)) = path.rsplit_once('/') else {
        return false;
    };
    if folder == "src" || !folder.contains('/') {
        return false;
    }
    let names = format!("\"{folder}/");
    reached
        .iter()
        .filter_map(|reached| rust.get(reached.as_str()))
        .any(|other| {
            other.split_package().is_some_and(|(of, _)| of == package)
                && other.text.contains(&names)
        })
}

#[test]
fn every_rust_file_is_reached() {
    assert_tidy(&faults_of(&files::all()));
}

#[test]
fn an_orphan_is_found() {
    let files = [
        File::new(
            "crates/a/src/lib.rs",
            "pub mod b;\nmod c;\n#[cfg(test)] mod d;\n// mod lost;\n#[doc = include_str!(\"../docs/shown.rs\")]\n",
        ),
        File::new("crates/a/src/b.rs", "pub(crate) mod deep;\n"),
        File::new("crates/a/src/b/deep.rs", ""),
        File::new(
            "crates/a/src/c/mod.rs",
            "mod e;\n#[path = \"odd.rs\"]\nmod f;\n",
        ),
        File::new("crates/a/src/c/e.rs", ""),
        File::new("crates/a/src/c/odd.rs", ""),
        File::new("crates/a/src/d.rs", ""),
        File::new("crates/a/docs/shown.rs", ""),
        File::new("crates/a/src/lost.rs", ""),
        File::new("crates/a/src/deep.rs", ""),
        File::new(
            "crates/a/tests/it/main.rs",
            "mod g;\nfn f() { compile_fail(\"tests/ui/*.rs\") }\n",
        ),
        File::new("crates/a/tests/it/g.rs", ""),
        File::new("crates/a/tests/it/h.rs", ""),
        File::new("crates/a/tests/ui/wrong.rs", ""),
        File::new("crates/a/tests/old/wrong.rs", ""),
    ];
    assert_eq!(
        faults_of(&files),
        [
            "crates/a/src/deep.rs: no `mod` reaches this file",
            "crates/a/src/lost.rs: no `mod` reaches this file",
            "crates/a/tests/it/h.rs: no `mod` reaches this file",
            "crates/a/tests/old/wrong.rs: no `mod` reaches this file",
        ]
    );
}
