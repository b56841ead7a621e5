//! Parser for `Cargo.toml`.

use std::collections::BTreeSet;

use toml::{Table, Value as Toml};

use super::super::SourceFile;
use super::{Dependency, DependencyKind, Package, text_of};

pub(super) fn cargo(text: &str, folder: &str, files: &[SourceFile]) -> Option<Package> {
    let table: Table = text.parse().ok()?;
    let mut package = Package {
        manager: "cargo",
        name: text_of(&table, &["package", "name"])
            .unwrap_or_default()
            .to_owned(),
        version: text_of(&table, &["package", "version"]).map(str::to_owned),
        is_workspace: table.contains_key("workspace"),
        ..Package::default()
    };
    let mut tables = vec![&table];
    if let Some(targets) = table.get("target").and_then(Toml::as_table) {
        tables.extend(targets.values().filter_map(Toml::as_table));
    }
    for table in tables {
        for (key, kind) in [
            ("dependencies", DependencyKind::Normal),
            ("build-dependencies", DependencyKind::Build),
            ("dev-dependencies", DependencyKind::Dev),
        ] {
            for (name, said) in table
                .get(key)
                .and_then(Toml::as_table)
                .into_iter()
                .flatten()
            {
                package
                    .dependencies
                    .push(cargo_dependency(name, said, kind));
            }
        }
    }
    if !package.name.is_empty() {
        package.entries = cargo_entries(&table, folder, files);
    }
    Some(package)
}

fn cargo_dependency(name: &str, said: &Toml, kind: DependencyKind) -> Dependency {
    let field = |key: &str| said.get(key).and_then(Toml::as_str);
    let is_optional = said.get("optional").and_then(Toml::as_bool) == Some(true);
    let requirement = match said.as_str().or_else(|| field("version")) {
        Some(version) => version,
        None if said.get("workspace").is_some() => "workspace",
        None if field("git").is_some() => "git",
        None => "",
    };
    Dependency {
        // A renamed dependency is listed under its name in the registry.
        name: field("package").unwrap_or(name).to_owned(),
        requirement: requirement.to_owned(),
        kind: match is_optional {
            true => DependencyKind::Optional,
            false => kind,
        },
        is_local: field("path").is_some(),
    }
}

fn cargo_entries(table: &Table, folder: &str, files: &[SourceFile]) -> Vec<String> {
    let below = |path: &str| match folder {
        "" => path.to_owned(),
        folder => format!("{folder}/{path}"),
    };
    let there = |path: &String| {
        files
            .binary_search_by(|file| file.path.as_str().cmp(path))
            .is_ok()
    };
    let mut entries: BTreeSet<String> = BTreeSet::new();
    entries.extend([below("src/main.rs"), below("src/lib.rs")]);
    for kind in ["bin", "lib"] {
        let said = match table.get(kind) {
            Some(Toml::Array(all)) => all.iter().collect(),
            Some(one) => vec![one],
            None => Vec::new(),
        };
        entries.extend(
            said.into_iter()
                .filter_map(|one| Some(below(one.get("path")?.as_str()?))),
        );
    }
    let bins = below("src/bin/");
    let in_bins = files.iter().filter_map(|file| {
        let rest = file.path.strip_prefix(&bins)?;
        let is_program =
            (rest.ends_with(".rs") && !rest.contains('/')) || rest.ends_with("/main.rs");
        is_program.then(|| file.path.clone())
    });
    entries.extend(in_bins);
    entries.into_iter().filter(there).collect()
}
