//! Parsers for `pom.xml` and `build.gradle`.

use super::{DependencyKind, Package, dependency};

pub(super) fn maven(text: &str) -> Option<Package> {
    let document = roxmltree::Document::parse(text).ok()?;
    let project = document.root_element();
    let child = |node: roxmltree::Node<'_, '_>, name: &str| -> Option<String> {
        let found = node
            .children()
            .find(|child| child.tag_name().name() == name)?;
        Some(found.text()?.trim().to_owned())
    };
    let mut package = Package {
        manager: "maven",
        name: child(project, "artifactId").unwrap_or_default(),
        version: child(project, "version"),
        is_workspace: project
            .children()
            .any(|child| child.tag_name().name() == "modules"),
        ..Package::default()
    };
    let lists = project
        .children()
        .filter(|child| child.tag_name().name() == "dependencies");
    for said in lists.flat_map(|list| list.children().filter(|child| child.is_element())) {
        let (Some(group), Some(artifact)) = (child(said, "groupId"), child(said, "artifactId"))
        else {
            continue;
        };
        let kind = match child(said, "scope").as_deref() {
            Some("test") => DependencyKind::Dev,
            Some("provided") => DependencyKind::Build,
            _ if child(said, "optional").as_deref() == Some("true") => DependencyKind::Optional,
            _ => DependencyKind::Normal,
        };
        let version = child(said, "version").unwrap_or_default();
        package
            .dependencies
            .push(dependency(&format!("{group}:{artifact}"), &version, kind));
    }
    Some(package)
}

/// Reads the dependencies of a Gradle file. Such files are programs, so only dependency lines in the usual form are recognized.
pub(super) fn gradle(text: &str) -> Option<Package> {
    let mut package = Package {
        manager: "gradle",
        ..Package::default()
    };
    for line in text.lines().map(str::trim) {
        let Some((word, rest)) = line.split_once([' ', '(']) else {
            continue;
        };
        let kind = match word {
            "implementation" | "api" | "compile" | "runtimeOnly" => DependencyKind::Normal,
            "testImplementation" | "testRuntimeOnly" | "testCompile" => DependencyKind::Dev,
            "annotationProcessor" | "compileOnly" | "kapt" => DependencyKind::Build,
            _ => continue,
        };
        let said = rest.trim_matches(['(', ')', ' ', '"', '\'']);
        let parts: Vec<_> = said.split(':').collect();
        if let [group, artifact, version @ ..] = parts.as_slice() {
            let version = version.first().copied().unwrap_or_default();
            let version = version.trim_matches(['"', '\'', ')']);
            package
                .dependencies
                .push(dependency(&format!("{group}:{artifact}"), version, kind));
        }
    }
    Some(package)
}
