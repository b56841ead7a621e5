//! Packages by their manifests: Cargo, pip, npm, Go, Maven and Gradle.

mod cargo;
mod go;
mod java;
mod npm;
mod python;

use std::collections::BTreeSet;

use archie_agent::user_folder::UserFolder;
use serde::Serialize;
use toml::{Table, Value as Toml};

use super::SourceFile;

/// A package whose manifest is in the tree.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Package {
    /// The path of its manifest.
    pub manifest: String,
    /// Who manages it: `cargo`, `pip`, `npm`, `go`, `maven`, `gradle`.
    pub manager: &'static str,
    /// Its name; empty if it has none, as a workspace.
    pub name: String,
    /// Its version, if the manifest says it.
    pub version: Option<String>,
    /// What it depends on, by name.
    pub dependencies: Vec<Dependency>,
    /// Where its programs and its library begin: paths from the root, or names of functions.
    pub entries: Vec<String>,
    /// Whether it is a workspace of others.
    pub is_workspace: bool,
}

/// Something that a package depends on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependency {
    /// What.
    pub name: String,
    /// Which versions, as the manifest says it; empty for any.
    pub requirement: String,
    /// What for.
    pub kind: DependencyKind,
    /// Whether it is another package of the same tree.
    pub is_local: bool,
}

/// What a dependency is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DependencyKind {
    /// At work.
    Normal,
    /// To build.
    Build,
    /// To test and develop.
    Dev,
    /// Only if somebody wants it.
    Optional,
}

impl Package {
    /// The folder of its manifest; empty for the root.
    pub fn folder(&self) -> &str {
        self.manifest
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder)
    }
}

impl DependencyKind {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Build => "build",
            Self::Dev => "dev",
            Self::Optional => "optional",
        }
    }
}

/// Whether a file says what a package is made of.
pub(crate) fn is_manifest(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(
        name,
        "Cargo.toml"
            | "pyproject.toml"
            | "setup.cfg"
            | "package.json"
            | "go.mod"
            | "pom.xml"
            | "build.gradle"
            | "build.gradle.kts"
    ) || (name.starts_with("requirements") && name.ends_with(".txt"))
}

/// The packages of a tree, by the path of their manifests.
pub(super) fn packages(folder: &UserFolder, files: &[SourceFile]) -> Vec<Package> {
    let mut packages = Vec::new();
    for file in files.iter().filter(|file| is_manifest(&file.path)) {
        let Some(text) = super::read_text(folder, &file.path) else {
            continue;
        };
        if let Some(mut package) = package(file, &text, files) {
            package.manifest = file.path.clone();
            package.dependencies.sort();
            package.dependencies.dedup();
            packages.push(package);
        }
    }
    let names: BTreeSet<String> = packages
        .iter()
        .map(|package| package.name.clone())
        .collect();
    for package in &mut packages {
        for dependency in &mut package.dependencies {
            dependency.is_local |= names.contains(&dependency.name);
        }
    }
    packages
}

/// The package that a manifest of this text describes.
pub fn package(file: &SourceFile, text: &str, files: &[SourceFile]) -> Option<Package> {
    match file.name() {
        "Cargo.toml" => cargo::cargo(text, file.folder(), files),
        "pyproject.toml" => python::pyproject(text),
        "setup.cfg" => python::setup_cfg(text),
        "package.json" => npm::npm(text, file.folder()),
        "go.mod" => go::go(text),
        "pom.xml" => java::maven(text),
        "build.gradle" | "build.gradle.kts" => java::gradle(text),
        _ => Some(python::requirements(text, file.name())),
    }
}

fn dependency(name: &str, requirement: &str, kind: DependencyKind) -> Dependency {
    Dependency {
        name: name.to_owned(),
        requirement: requirement.to_owned(),
        kind,
        is_local: false,
    }
}

fn text_of<'a>(table: &'a Table, path: &[&str]) -> Option<&'a str> {
    at(table, path)?.as_str()
}

fn at<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Toml> {
    let (first, rest) = path.split_first()?;
    rest.iter()
        .try_fold(table.get(*first)?, |value, key| value.get(*key))
}
