//! `cargo metadata`, reduced to what the checks ask: members, features, and who depends on whom.

#![cfg_attr(
    not(test),
    expect(dead_code, reason = "only the tidy rules ask who depends on whom")
)]

use anyhow::Context;
use serde_json::Value as Json;

use harness::workspace::{cargo, output_of};

/// The workspace and everything it is built from.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
}

/// A package, ours or not.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    /// Whether it is one of ours.
    pub(crate) member: bool,
    /// Path of its `Cargo.toml`.
    pub(crate) manifest: String,
    /// Whether it may be published.
    pub(crate) published: bool,
    /// What a registry shows of it: the whole entry of cargo's output.
    pub(crate) about: Json,
    /// The oldest Rust that it says it needs.
    pub(crate) rust_version: Option<String>,
    pub(crate) proc_macro: bool,
    pub(crate) features: Vec<String>,
    /// As declared in its `Cargo.toml`.
    pub(crate) declared: Vec<Declared>,
    /// Ids of the packages it is linked with, with all features on: normal dependencies only.
    pub(crate) linked: Vec<String>,
    /// Ids of the packages that its build script is linked with.
    pub(crate) build_linked: Vec<String>,
}

/// A line of a dependency table.
#[derive(Debug, Clone)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) optional: bool,
}

/// Which dependency table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Build,
    Dev,
}

impl Metadata {
    /// Asks cargo.
    pub(crate) fn read() -> anyhow::Result<Self> {
        let text =
            output_of(cargo().args(["metadata", "--format-version", "1", "--all-features"]))?;
        let json: Json = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
        Ok(Self::from_json(&json))
    }

    pub(crate) fn from_json(json: &Json) -> Self {
        let members: Vec<&str> = list(&json["workspace_members"])
            .filter_map(Json::as_str)
            .collect();
        let packages = list(&json["packages"])
            .map(|package| {
                let id = text(&package["id"]);
                Package {
                    member: members.contains(&id.as_str()),
                    name: text(&package["name"]),
                    version: text(&package["version"]),
                    manifest: text(&package["manifest_path"]),
                    // A list of the registries it may go to; none is any.
                    published: package["publish"].is_null(),
                    about: package.clone(),
                    rust_version: package["rust_version"].as_str().map(str::to_owned),
                    proc_macro: list(&package["targets"])
                        .flat_map(|t| list(&t["kind"]))
                        .any(|kind| kind == "proc-macro"),
                    features: package["features"]
                        .as_object()
                        .map(|f| f.keys().cloned().collect())
                        .unwrap_or_default(),
                    declared: list(&package["dependencies"])
                        .map(Declared::from_json)
                        .collect(),
                    linked: linked(json, &id, &Json::Null),
                    build_linked: linked(json, &id, &"build".into()),
                    id,
                }
            })
            .collect();
        Self { packages }
    }

    /// What goes to the registry.
    pub(crate) fn published(&self) -> impl Iterator<Item = &Package> {
        self.members().filter(|package| package.published)
    }

    /// The crates that others build on: those below `crates/`.
    pub(crate) fn libraries(&self) -> impl Iterator<Item = &Package> {
        self.members()
            .filter(|package| package.manifest.contains("/crates/"))
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.member)
    }
}

impl Package {
    /// The name of its library in code; none if it has only programs.
    pub(crate) fn library(&self) -> Option<String> {
        let mut targets = self.about["targets"].as_array()?.iter();
        let is_library = |target: &&Json| {
            let mut kinds = target["kind"].as_array().into_iter().flatten();
            kinds.any(|kind| kind == "lib" || kind == "proc-macro")
        };
        let library = targets.find(is_library)?;
        Some(library["name"].as_str()?.replace('-', "_"))
    }
}

impl Declared {
    fn from_json(json: &Json) -> Self {
        let kind = match json["kind"].as_str() {
            None => Kind::Normal,
            Some("build") => Kind::Build,
            Some(_) => Kind::Dev,
        };
        Self {
            name: text(&json["name"]),
            kind,
            optional: json["optional"] == true,
        }
    }
}

fn linked(json: &Json, id: &str, table: &Json) -> Vec<String> {
    list(&json["resolve"]["nodes"])
        .filter(|node| node["id"] == id)
        .flat_map(|node| list(&node["deps"]))
        .filter(|dep| list(&dep["dep_kinds"]).any(|kind| kind["kind"] == *table))
        .map(|dep| text(&dep["pkg"]))
        .collect()
}

fn list(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_array().into_iter().flatten()
}

fn text(json: &Json) -> String {
    json.as_str().unwrap_or_default().to_owned()
}
