//! Which crate may know which, and what the core may be built from.

use crate::metadata::{Declared, Kind, Metadata, Package};

use super::assert_tidy;

/// The crates of ours that a crate may name in `[dependencies]` or `[build-dependencies]`.
/// Dev-dependencies may reach anything: they are not shipped.
const ARROWS: &[(&str, &[&str])] = &[
    ("superstep-core", &["superstep-macros"]),
    ("superstep-macros", &[]),
    ("superstep", &["superstep-core"]),
    // It spreads the runs of the local driver over processes, segment by segment.
    ("superstep-restate", &["superstep", "superstep-tls"]),
    // It knows no protocol but TLS, so that whatever connects to a server can use it.
    ("superstep-tls", &[]),
    // It knows no graphs, so that whatever calls an address that someone else chose can use it.
    ("superstep-http", &[]),
    ("superstep-studio", &[]),
    ("superstep-server", &["superstep", "superstep-http"]),
    ("superstep-sqlite", &["superstep-core"]),
    // It wraps the traits of core, and the live bus, so it knows no store and no server.
    ("superstep-encryption", &["superstep", "superstep-core"]),
    ("superstep-postgres", &["superstep-core", "superstep-tls"]),
    ("superstep-llm", &[]),
    (
        "superstep-agent",
        &["superstep-core", "superstep-llm", "superstep-macros"],
    ),
    ("superstep-conformance", &["superstep-core"]),
    // A floor that is built from ours would move with it.
    ("bench-floor", &["bench-rounds"]),
    ("bench-restate", &["bench-rounds"]),
    ("bench-rounds", &[]),
    // What xtask is built from: it must also build while a crate of ours does not compile.
    ("free-ports", &[]),
    ("certificates", &[]),
    // What an agent shares with its host. No agent knows another, or the program.
    (
        "archie-agent",
        &["superstep", "superstep-agent", "superstep-llm"],
    ),
    ("archie-analyze", AGENT),
    ("archie-sheet", AGENT),
    ("archie-docs", AGENT),
    ("archie-atris", AGENT),
    ("archie-email-assistant", AGENT),
    // As a user's program would.
    ("example-graphs", &["superstep", "superstep-sqlite"]),
    (
        "example-agents",
        &[
            "superstep",
            "superstep-agent",
            "superstep-llm",
            "superstep-sqlite",
        ],
    ),
    // The code of the book, which is also about writing a checkpointer and about the data of a server.
    (
        "example-book",
        &[
            "superstep",
            "superstep-agent",
            "superstep-conformance",
            "superstep-core",
            "superstep-llm",
            "superstep-server",
            "superstep-sqlite",
        ],
    ),
    (
        "example-approval-over-http",
        &["superstep", "superstep-sqlite"],
    ),
    ("example-service", &["superstep", "superstep-sqlite"]),
    (
        "example-migrate",
        &[
            "superstep",
            "superstep-agent",
            "superstep-llm",
            "superstep-sqlite",
        ],
    ),
    (
        "example-testing",
        &["superstep", "superstep-agent", "superstep-llm"],
    ),
    ("harness", &[]),
    ("services", &["free-ports", "harness"]),
    ("crash-trials", &["free-ports", "harness", "services"]),
    ("xtask", &["crash-trials", "harness", "services"]),
    (
        "superstep-archie",
        &[
            "archie-agent",
            "archie-analyze",
            "archie-sheet",
            "archie-docs",
            "archie-atris",
            "archie-email-assistant",
            "superstep",
            "superstep-core",
            "superstep-macros",
            "superstep-restate",
            "superstep-server",
            "superstep-studio",
            "superstep-sqlite",
            "superstep-postgres",
            "superstep-encryption",
            "superstep-tls",
            "superstep-llm",
            "superstep-agent",
        ],
    ),
];

/// What an agent may know.
const AGENT: &[&str] = &[
    "archie-agent",
    "superstep",
    "superstep-agent",
    "superstep-http",
    "superstep-llm",
];

/// Not shipped, so they may reach anything.
const UNBOUND: &[&str] = &[
    "benchmarks",
    "crash-workers",
    "fuzz-targets",
    "instruction-counts",
    "model-overhead",
    "server-suites",
    "simulator",
];

/// What the core is never built from: runtimes, clocks, dice, sockets, databases.
const KEPT_OUT_OF_CORE: &[&str] = &[
    "tokio",
    "mio",
    "rand",
    "rand_core",
    "getrandom",
    "fastrand",
    "chrono",
    "time",
    "reqwest",
    "hyper",
    "rusqlite",
];

fn arrow_faults(metadata: &Metadata) -> Vec<String> {
    let ours: Vec<&str> = metadata
        .members()
        .map(|package| package.name.as_str())
        .collect();
    let mut faults = Vec::new();
    for package in metadata
        .members()
        .filter(|package| !UNBOUND.contains(&package.name.as_str()))
    {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == package.name) else {
            faults.push(format!(
                "`{}` has no line in ARROWS; say what it may know",
                package.name
            ));
            continue;
        };
        for arrow in shipped(package).filter(|dependency| ours.contains(&dependency.name.as_str()))
        {
            if !allowed.contains(&arrow.name.as_str()) {
                faults.push(format!(
                    "`{}` may not depend on `{}`",
                    package.name, arrow.name
                ));
            } else if arrow.name == "superstep-macros" && !arrow.optional {
                faults.push(format!(
                    "`{}` must take `superstep-macros` only with a feature",
                    package.name
                ));
            }
        }
    }
    faults
}

fn core_faults(metadata: &Metadata) -> Vec<String> {
    let core = metadata
        .members()
        .find(|package| package.name == "superstep-core")
        .expect("there is a core");
    let refused = |name: &str| KEPT_OUT_OF_CORE.contains(&name);
    // What is declared, because a feature that is off today is on tomorrow.
    let mut faults: Vec<String> = shipped(core)
        .filter(|dependency| refused(&dependency.name))
        .map(|dependency| format!("`superstep-core` names `{}`", dependency.name))
        .collect();
    faults.extend(
        paths_from(metadata, core)
            .into_iter()
            .filter(|path| path.last().is_some_and(|name| refused(name)))
            .map(|path| format!("the core is built from `{}`", path.join("` → `"))),
    );
    faults
}

/// Every package the core is linked with, each with one way to it. What runs at compile time only is passed over.
fn paths_from<'a>(metadata: &'a Metadata, from: &'a Package) -> Vec<Vec<&'a str>> {
    let mut paths = vec![(from, vec![from.name.as_str()])];
    let mut next = 0;
    while let Some((package, path)) = paths.get(next).cloned() {
        next += 1;
        for id in &package.linked {
            let Some(dependency) = metadata.packages.iter().find(|package| package.id == *id)
            else {
                continue;
            };
            if !dependency.proc_macro && !paths.iter().any(|(seen, _)| seen.id == *id) {
                paths.push((
                    dependency,
                    [path.clone(), vec![dependency.name.as_str()]].concat(),
                ));
            }
        }
    }
    paths.into_iter().map(|(_, path)| path).collect()
}

fn shipped(package: &Package) -> impl Iterator<Item = &Declared> {
    package
        .declared
        .iter()
        .filter(|dependency| dependency.kind != Kind::Dev)
}

#[test]
fn no_arrow_between_crates_but_the_declared_ones() {
    assert_tidy(&arrow_faults(&Metadata::read().unwrap()));
}

#[test]
fn the_core_is_built_without_runtime_clock_dice_or_sockets() {
    let metadata = Metadata::read().unwrap();
    assert_tidy(&core_faults(&metadata));
    let core = metadata
        .members()
        .find(|package| package.name == "superstep-core")
        .unwrap();
    let tree = paths_from(&metadata, core);
    assert!(
        tree.iter().any(|path| path.last() == Some(&"serde_json")),
        "the walk found too little: {tree:?}"
    );
}

#[cfg(test)]
mod samples {
    use super::*;

    fn declared(name: &str, kind: Kind) -> Declared {
        Declared {
            name: name.to_owned(),
            kind,
            optional: false,
        }
    }

    fn package(name: &str, member: bool, declared: Vec<Declared>, linked: &[&str]) -> Package {
        let linked = linked.iter().map(|id| (*id).to_owned()).collect();
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            member,
            declared,
            linked,
            ..Package::default()
        }
    }

    #[test]
    fn an_arrow_between_stores_is_refused_and_one_in_tests_is_not() {
        let metadata = Metadata {
            packages: vec![
                package(
                    "superstep-core",
                    true,
                    vec![declared("superstep-conformance", Kind::Dev)],
                    &[],
                ),
                package(
                    "superstep-sqlite",
                    true,
                    vec![declared("superstep", Kind::Normal)],
                    &[],
                ),
                package(
                    "superstep",
                    true,
                    vec![declared("superstep-conformance", Kind::Build)],
                    &[],
                ),
                package(
                    "superstep-conformance",
                    true,
                    vec![declared("superstep-core", Kind::Normal)],
                    &[],
                ),
                package("superstep-helpers", true, vec![], &[]),
                package(
                    "xtask",
                    true,
                    vec![declared("superstep-sqlite", Kind::Normal)],
                    &[],
                ),
                package(
                    "fuzz-targets",
                    true,
                    vec![declared("superstep-sqlite", Kind::Normal)],
                    &[],
                ),
            ],
        };
        assert_eq!(
            arrow_faults(&metadata),
            [
                "`superstep-sqlite` may not depend on `superstep`",
                "`superstep` may not depend on `superstep-conformance`",
                "`superstep-helpers` has no line in ARROWS; say what it may know",
                "`xtask` may not depend on `superstep-sqlite`",
            ]
        );
    }

    #[test]
    fn macros_behind_no_feature_are_refused() {
        let core = package(
            "superstep-core",
            true,
            vec![declared("superstep-macros", Kind::Normal)],
            &[],
        );
        let macros = package("superstep-macros", true, vec![], &[]);
        let faults = arrow_faults(&Metadata {
            packages: vec![core, macros],
        });
        assert_eq!(
            faults,
            ["`superstep-core` must take `superstep-macros` only with a feature"]
        );
    }

    #[test]
    fn a_runtime_deep_under_the_core_is_found_and_one_under_a_macro_is_not() {
        let metadata = Metadata {
            packages: vec![
                package(
                    "superstep-core",
                    true,
                    vec![declared("fastrand", Kind::Normal)],
                    &["codec", "derive"],
                ),
                package("codec", false, vec![], &["socket"]),
                package("socket", false, vec![], &["mio"]),
                package("mio", false, vec![], &[]),
                Package {
                    proc_macro: true,
                    ..package("derive", false, vec![], &["getrandom"])
                },
                package("getrandom", false, vec![], &[]),
            ],
        };
        assert_eq!(
            core_faults(&metadata),
            [
                "`superstep-core` names `fastrand`",
                "the core is built from `superstep-core` → `codec` → `socket` → `mio`",
            ]
        );
    }

    #[test]
    fn cargo_metadata_is_read() {
        let json = serde_json::json!({
            "workspace_members": ["core"],
            "packages": [
                { "id": "core", "name": "superstep-core", "features": { "derive": [] }, "targets": [{ "kind": ["lib"] }],
                  "dependencies": [
                      { "name": "serde", "kind": null, "optional": false },
                      { "name": "cc", "kind": "build", "optional": true },
                      { "name": "insta", "kind": "dev", "optional": false },
                  ] },
                { "id": "macros", "name": "m", "features": {}, "targets": [{ "kind": ["proc-macro"] }], "dependencies": [] },
            ],
            "resolve": { "nodes": [{ "id": "core", "deps": [
                { "pkg": "serde", "dep_kinds": [{ "kind": null }] },
                { "pkg": "insta", "dep_kinds": [{ "kind": "dev" }] },
            ] }] },
        });
        let metadata = Metadata::from_json(&json);
        let core = &metadata.packages[0];
        assert!(core.member && !core.proc_macro && metadata.packages[1].proc_macro);
        assert_eq!(core.linked, ["serde"]);
        assert_eq!(core.features, ["derive"]);
        assert_eq!(
            core.declared.iter().map(|d| d.kind).collect::<Vec<_>>(),
            [Kind::Normal, Kind::Build, Kind::Dev]
        );
        assert!(core.declared[1].optional);
    }
}
