//! Manifests of projects that `docs` describes. The first byte chooses the kind.

use archie::fuzzing::read_package;

pub(super) fn run(bytes: &[u8]) {
    let (kind, bytes) = super::choice(bytes);
    let Some(text) = super::text(bytes) else {
        return;
    };
    let name = NAMES[usize::from(kind) % NAMES.len()];
    let package = read_package(name, text);
    assert_eq!(read_package(name, text), package, "it is read in two ways");
}

const NAMES: [&str; 8] = [
    "Cargo.toml",
    "pyproject.toml",
    "setup.cfg",
    "package.json",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "requirements.txt",
];
