//! Parser for `go.mod`.

use super::{DependencyKind, Package, dependency};

pub(super) fn go(text: &str) -> Option<Package> {
    let mut package = Package {
        manager: "go",
        ..Package::default()
    };
    let mut in_require = false;
    for line in text.lines() {
        let is_indirect = line.contains("// indirect");
        let line = line.split("//").next().unwrap_or(line).trim();
        if let Some(name) = line.strip_prefix("module ") {
            package.name = name.trim().to_owned();
        }
        let said = match line.strip_prefix("require ") {
            Some("(") => {
                in_require = true;
                continue;
            }
            Some(said) => said,
            None if line == ")" => {
                in_require = false;
                continue;
            }
            None if in_require => line,
            None => continue,
        };
        if let Some((name, version)) = said.split_once(' ') {
            let kind = match is_indirect {
                true => DependencyKind::Optional,
                false => DependencyKind::Normal,
            };
            package
                .dependencies
                .push(dependency(name.trim(), version.trim(), kind));
        }
    }
    (!package.name.is_empty()).then_some(package)
}
