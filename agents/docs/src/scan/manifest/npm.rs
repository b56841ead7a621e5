//! Parser for `package.json`.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::{DependencyKind, Package, dependency};

pub(super) fn npm(text: &str, folder: &str) -> Option<Package> {
    let json: Json = serde_json::from_str(text).ok()?;
    let word = |key: &str| json[key].as_str().map(str::to_owned);
    let mut package = Package {
        manager: "npm",
        name: word("name").unwrap_or_default(),
        version: word("version"),
        is_workspace: !json["workspaces"].is_null(),
        ..Package::default()
    };
    for (key, kind) in [
        ("dependencies", DependencyKind::Normal),
        ("peerDependencies", DependencyKind::Normal),
        ("optionalDependencies", DependencyKind::Optional),
        ("devDependencies", DependencyKind::Dev),
    ] {
        for (name, said) in json[key].as_object().into_iter().flatten() {
            let requirement = said.as_str().unwrap_or_default();
            package
                .dependencies
                .push(dependency(name, requirement, kind));
        }
    }
    let mut paths: Vec<&str> = Vec::new();
    paths.extend(
        ["main", "module"]
            .iter()
            .filter_map(|key| json[*key].as_str()),
    );
    match &json["bin"] {
        Json::String(path) => paths.push(path),
        Json::Object(bins) => paths.extend(bins.values().filter_map(Json::as_str)),
        _ => {}
    }
    let below = |path: &str| {
        let path = path.trim_start_matches("./");
        match folder {
            "" => path.to_owned(),
            folder => format!("{folder}/{path}"),
        }
    };
    let entries: BTreeSet<String> = paths.into_iter().map(below).collect();
    package.entries = entries.into_iter().collect();
    Some(package)
}
