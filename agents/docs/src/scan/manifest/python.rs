//! Parsers for `pyproject.toml`, `setup.cfg` and requirements files.

use toml::{Table, Value as Toml};

use super::{Dependency, DependencyKind, Package, at, dependency, text_of};

pub(super) fn pyproject(text: &str) -> Option<Package> {
    let table: Table = text.parse().ok()?;
    let name = text_of(&table, &["project", "name"])
        .or_else(|| text_of(&table, &["tool", "poetry", "name"]));
    let mut package = Package {
        manager: "pip",
        name: name.unwrap_or_default().to_owned(),
        version: text_of(&table, &["project", "version"])
            .or_else(|| text_of(&table, &["tool", "poetry", "version"]))
            .map(str::to_owned),
        ..Package::default()
    };
    let mut add = |said: Option<&Toml>, kind: DependencyKind| {
        let all = said.and_then(Toml::as_array).into_iter().flatten();
        let all = all
            .filter_map(Toml::as_str)
            .filter_map(|line| pip_line(line, kind));
        package.dependencies.extend(all);
    };
    add(
        at(&table, &["project", "dependencies"]),
        DependencyKind::Normal,
    );
    add(
        at(&table, &["build-system", "requires"]),
        DependencyKind::Build,
    );
    for (path, kind) in [
        (
            vec!["project", "optional-dependencies"],
            DependencyKind::Optional,
        ),
        (vec!["dependency-groups"], DependencyKind::Dev),
    ] {
        for (_, group) in at(&table, &path)
            .and_then(Toml::as_table)
            .into_iter()
            .flatten()
        {
            add(Some(group), kind);
        }
    }
    for (path, kind) in [
        (
            vec!["tool", "poetry", "dependencies"],
            DependencyKind::Normal,
        ),
        (
            vec!["tool", "poetry", "dev-dependencies"],
            DependencyKind::Dev,
        ),
        (
            vec!["tool", "poetry", "group", "dev", "dependencies"],
            DependencyKind::Dev,
        ),
    ] {
        for (name, said) in at(&table, &path)
            .and_then(Toml::as_table)
            .into_iter()
            .flatten()
        {
            let version = said.as_str().or_else(|| said.get("version")?.as_str());
            if name != "python" {
                package
                    .dependencies
                    .push(dependency(name, version.unwrap_or(""), kind));
            }
        }
    }
    for path in [["project", "scripts"], ["project", "gui-scripts"]] {
        let scripts = at(&table, &path)
            .and_then(Toml::as_table)
            .into_iter()
            .flatten();
        let scripts = scripts.filter_map(|(name, to)| Some(format!("{name} = {}", to.as_str()?)));
        package.entries.extend(scripts);
    }
    Some(package)
}

/// Parses one requirement, for example `name[extra]>=1.0; python_version < "3.11"`.
fn pip_line(line: &str, kind: DependencyKind) -> Option<Dependency> {
    let line = line.split('#').next()?.split(';').next()?.trim();
    if line.is_empty() || line.starts_with('-') || line.contains("://") {
        return None;
    }
    let end = line.find(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.')));
    let (name, rest) = line.split_at(end.unwrap_or(line.len()));
    if name.is_empty() {
        return None;
    }
    let rest = match rest.trim_start().strip_prefix('[') {
        Some(extras) => extras.split_once(']').map_or("", |(_, rest)| rest),
        None => rest,
    };
    Some(dependency(name, rest.trim().trim_matches(['(', ')']), kind))
}

pub(super) fn requirements(text: &str, name: &str) -> Package {
    let is_dev = ["dev", "test", "doc", "lint", "typing"]
        .iter()
        .any(|word| name.contains(word));
    let kind = match is_dev {
        true => DependencyKind::Dev,
        false => DependencyKind::Normal,
    };
    Package {
        manager: "pip",
        dependencies: text
            .lines()
            .filter_map(|line| pip_line(line, kind))
            .collect(),
        ..Package::default()
    }
}

/// Parses a `setup.cfg`. `None` if it names no package.
pub(super) fn setup_cfg(text: &str) -> Option<Package> {
    let mut package = Package {
        manager: "pip",
        ..Package::default()
    };
    let (mut section, mut key) = (String::new(), String::new());
    for line in text.lines() {
        let line = line.trim_end();
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            section = name.to_owned();
            key.clear();
            continue;
        }
        let is_further = line.starts_with([' ', '\t']);
        let mut value = line.trim();
        if !is_further && let Some((name, first)) = line.split_once('=') {
            key = name.trim().to_owned();
            value = first.trim();
        }
        match (section.as_str(), key.as_str()) {
            _ if value.is_empty() => {}
            ("metadata", "name") => package.name = value.to_owned(),
            ("metadata", "version") if !value.starts_with("attr:") => {
                package.version = Some(value.to_owned());
            }
            ("options", "install_requires") => {
                package
                    .dependencies
                    .extend(pip_line(value, DependencyKind::Normal));
            }
            ("options.extras_require", _) if is_further => {
                package
                    .dependencies
                    .extend(pip_line(value, DependencyKind::Optional));
            }
            ("options.entry_points", _) if is_further => package.entries.push(value.to_owned()),
            _ => {}
        }
    }
    (!package.name.is_empty()).then_some(package)
}
