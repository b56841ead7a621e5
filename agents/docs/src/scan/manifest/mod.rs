//! Packages and their dependencies, read from manifests: Cargo, pip, npm, Go, Maven and Gradle.

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
    /// Path of the manifest, relative to the root of the tree.
    pub manifest: String,
    /// Package manager: `cargo`, `pip`, `npm`, `go`, `maven` or `gradle`.
    pub manager: &'static str,
    /// Name of the package. Empty if the manifest has none, as in a workspace.
    pub name: String,
    /// Version. Absent if the manifest does not state it.
    pub version: Option<String>,
    /// Dependencies, sorted by name, without duplicates.
    pub dependencies: Vec<Dependency>,
    /// Entry points of the package's programs and library: paths from the root or, for Python, `name = module:function`.
    pub entries: Vec<String>,
    /// Whether the package is a workspace that groups others.
    pub is_workspace: bool,
}

/// One dependency of a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependency {
    /// Name of the dependency. A renamed Cargo dependency has its name in the registry.
    pub name: String,
    /// Version requirement as written in the manifest. Empty for any version; `workspace` or `git` where a `Cargo.toml` says so
    /// instead of a version.
    pub requirement: String,
    /// What the dependency is needed for.
    pub kind: DependencyKind,
    /// Whether the dependency is another package of the same tree.
    pub is_local: bool,
}

/// What a dependency is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DependencyKind {
    /// Needed at run time.
    Normal,
    /// Needed to build the package.
    Build,
    /// Needed for tests and development.
    Dev,
    /// Optional, for example behind a feature or an extra; also the indirect dependencies of a `go.mod`.
    Optional,
}

impl Package {
    /// Returns the folder of the manifest; empty for the root.
    pub fn folder(&self) -> &str {
        self.manifest
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder)
    }
}

impl DependencyKind {
    /// Returns the name of the kind in lower case.
    pub fn word(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Build => "build",
            Self::Dev => "dev",
            Self::Optional => "optional",
        }
    }
}

/// Returns whether a file is a package manifest, judged by its name.
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

/// Reads all packages of a tree, sorted by the path of the manifest.
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

/// Parses the manifest `file`, whose content is `text`. `None` if it describes no package.
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
