//! The checks, as a table. A new check is a new row; how a row is run is `verify.rs`.

/// Which rows are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Profile {
    /// What CI runs: all of it within a quarter of an hour on two cores.
    Short,
    /// What does not fit CI. A long run does the short rows first.
    Long,
}

impl Profile {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Profile::Short => "short",
            Profile::Long => "long",
        }
    }
}

/// One check.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// The shortest profile it belongs to.
    pub(crate) profile: Profile,
    pub(crate) action: Action,
}

/// What a check does.
#[derive(Debug)]
pub(crate) enum Action {
    /// Runs cargo. `{seed}` in an argument becomes the seed of the run. If the last line that is
    /// printed is a JSON object, it is kept in the results.
    Cargo {
        args: &'static [&'static str],
        env: &'static [(&'static str, &'static str)],
    },
    /// All tests but doctests: with nextest where it is installed, else with `cargo test`.
    Tests,
    /// `cargo check` of every crate that has features: without any, then with each one alone.
    EachFeature,
    /// `cargo check` of every library with the oldest Rust that it says it needs.
    MinimumRust,
    /// `cargo check` of the core for a target that has no clock, no threads and no files.
    Wasm,
}

const fn short(name: &'static str, action: Action) -> Step {
    Step {
        name,
        profile: Profile::Short,
        action,
    }
}

const fn long(name: &'static str, action: Action) -> Step {
    Step {
        name,
        profile: Profile::Long,
        action,
    }
}

const fn cargo(args: &'static [&'static str]) -> Action {
    Action::Cargo { args, env: &[] }
}

/// Quick ones first, so that a slip is told within seconds.
pub(crate) const STEPS: &[Step] = &[
    short("format", cargo(&["fmt", "--all", "--check"])),
    short(
        "clippy",
        cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--",
            "-D",
            "warnings",
        ]),
    ),
    short(
        "docs",
        Action::Cargo {
            args: &["doc", "--workspace", "--no-deps"],
            env: &[("RUSTDOCFLAGS", "-D warnings")],
        },
    ),
    short("book", cargo(&["xtask", "book"])),
    short("prose", cargo(&["xtask", "prose"])),
    short("features", Action::EachFeature),
    short("minimum rust", Action::MinimumRust),
    short("wasm", Action::Wasm),
    short("deny", cargo(&["xtask", "deny", "--json"])),
    // Debian has an old kubectl, with which this was never tried.
    long("deploy", cargo(&["xtask", "deploy"])),
    short("studio", cargo(&["xtask", "studio", "check"])),
    short("tests", Action::Tests),
    short(
        "instructions",
        cargo(&["xtask", "bench", "instructions", "--strict", "--json"]),
    ),
    long(
        "instructions, server",
        cargo(&[
            "xtask",
            "bench",
            "instructions-server",
            "--strict",
            "--json",
        ]),
    ),
    short("studio browser", cargo(&["xtask", "studio", "browser"])),
    short("book in a browser", cargo(&["xtask", "book", "--browser"])),
    short("doctests", cargo(&["test", "--workspace", "--doc"])),
    // The seed stays the same, so that a change is judged by what it changed. New seeds are for the long profile.
    short(
        "fuzz",
        cargo(&["xtask", "fuzz", "--seconds", "2", "--seed", "1", "--json"]),
    ),
    // Each crash test notices its mutants among the tests above; here are the trials.
    // Programs by seed, so the same is true here.
    short(
        "crash sim",
        cargo(&[
            "xtask", "crash", "sim", "--trials", "2000", "--seed", "1", "--json",
        ]),
    ),
    short("crash kill", cargo(&crash("kill", "80"))),
    short("crash race", cargo(&crash("race", "300"))),
    short("crash zombie", cargo(&crash("zombie", "30"))),
    short(
        "crash race, postgres",
        cargo(&crash_on("postgres", "race", "100")),
    ),
    short(
        "crash kill, postgres",
        cargo(&crash_on("postgres", "kill", "20")),
    ),
    short(
        "crash zombie, postgres",
        cargo(&crash_on("postgres", "zombie", "10")),
    ),
    short("crash chain", cargo(&chain_on("sqlite", "3"))),
    short("crash chain, postgres", cargo(&chain_on("postgres", "3"))),
    short("crash restarts", cargo(&restarts("60", "1-3"))),
    short("crash recover", cargo(&recover_on("sqlite", "200"))),
    short(
        "crash recover, postgres",
        cargo(&recover_on("postgres", "200")),
    ),
    short("crash cluster", cargo(&crash("cluster", "50"))),
    short(
        "crash race, cluster",
        cargo(&crash_on("cluster", "race", "30")),
    ),
    short("crash leaders", cargo(&crash("leaders", "2"))),
    short("crash upgrade", cargo(&crash("upgrade", "1"))),
    short("crash fanout", cargo(&crash("fanout", "2"))),
    short("crash server", cargo(&crash("server", "10"))),
    short(
        "crash server, postgres",
        cargo(&crash_on("postgres", "server", "5")),
    ),
    short(
        "crash server, cluster",
        cargo(&crash_on("cluster", "server", "5")),
    ),
    short("crash streams", cargo(&crash("streams", "60"))),
    short("crash outages", cargo(&outages("200", "1-3"))),
    short(
        "crash outages, cluster",
        cargo(&redis_outages("100", "1-3")),
    ),
    // Longer than every lease, timeout and interval between the server and PostgreSQL.
    short(
        "crash slow",
        cargo(&slow_on("postgres", ["--seconds", "40"])),
    ),
    long(
        "fuzz, a new seed",
        cargo(&[
            "xtask",
            "fuzz",
            "--seconds",
            "30",
            "--seed",
            "{seed}",
            "--json",
        ]),
    ),
    long(
        "fuzz, guided",
        cargo(&[
            "xtask",
            "fuzz",
            "--guided",
            "--seconds",
            "120",
            "--jobs",
            "2",
            "--seed",
            "{seed}",
            "--json",
        ]),
    ),
    long("protocols", cargo(&suite("protocols"))),
    long("mcp conformance", cargo(&suite("mcp-conformance"))),
    long("oidc", cargo(&suite("oidc"))),
    long(
        "schemathesis, our document",
        cargo(&[
            "run",
            "--package",
            "server-suites",
            "--",
            "schemathesis",
            "--schemas",
            "--json",
        ]),
    ),
    long(
        "schemathesis, langgraph's document",
        cargo(&[
            "run",
            "--package",
            "server-suites",
            "--",
            "schemathesis",
            "--reference",
            "--schemas",
            "--json",
        ]),
    ),
    long("package", cargo(&["xtask", "package", "--json"])),
    // Builds twice with optimisation across crates.
    long("dist", cargo(&["xtask", "dist", "--check", "--json"])),
    long("template", cargo(&["xtask", "template"])),
    long(
        "services that are heavy",
        cargo(&["xtask", "services", "up", "model-large", "phoenix"]),
    ),
    long(
        "tests with a large model and a trace backend",
        Action::Cargo {
            args: &[
                "test",
                "-p",
                "superstep-llm",
                "-p",
                "superstep-agent",
                "--all-features",
                "--test",
                "it",
            ],
            env: &[("SUPERSTEP_LONG", "1")],
        },
    ),
    long(
        "traces of agents in a backend",
        Action::Cargo {
            args: &["test", "-p", "superstep-archie", "--test", "it", "otlp::"],
            env: &[("SUPERSTEP_LONG", "1")],
        },
    ),
    long(
        "agents scored with a large model",
        Action::Cargo {
            args: &[
                "test",
                "-p",
                "superstep-archie",
                "--test",
                "it",
                "evaluation::",
            ],
            env: &[("SUPERSTEP_LONG", "1")],
        },
    ),
    // The other files have the same size as among the short steps.
    long("studio browser, agents", cargo(&studio("agents"))),
    long("studio browser, two people", cargo(&studio("two_people"))),
    long("studio browser, networks", cargo(&studio("networks"))),
    long("studio browser, truth", cargo(&studio("truth"))),
    long("studio browser, forks", cargo(&studio("truth_forks"))),
    long("studio browser, security", cargo(&studio("security"))),
    long("studio browser, accessible", cargo(&studio("accessible"))),
    long("studio browser, large", cargo(&studio("large"))),
    long("studio browser, memory", cargo(&studio("live_memory"))),
    long("studio browser, speed", cargo(&studio("speed"))),
    long("studio browser, pictures", cargo(&studio("pictures"))),
    long("crash sim, all", cargo(&crash("sim", "10000"))),
    long("crash kill, all", cargo(&crash("kill", "300"))),
    long("crash race, all", cargo(&crash("race", "1000"))),
    long("crash zombie, all", cargo(&crash("zombie", "300"))),
    long("crash chain, all", cargo(&chain_on("sqlite", "60"))),
    long(
        "crash kill, postgres, all",
        cargo(&crash_on("postgres", "kill", "300")),
    ),
    long(
        "crash race, postgres, all",
        cargo(&crash_on("postgres", "race", "1000")),
    ),
    long(
        "crash zombie, postgres, all",
        cargo(&crash_on("postgres", "zombie", "300")),
    ),
    long(
        "crash chain, postgres, all",
        cargo(&chain_on("postgres", "60")),
    ),
    long("crash restarts, all", cargo(&restarts("5000", "5-40"))),
    long("crash recover, all", cargo(&recover_on("sqlite", "1000"))),
    long(
        "crash recover, postgres, all",
        cargo(&recover_on("postgres", "1000")),
    ),
    long("crash cluster, all", cargo(&crash("cluster", "1000"))),
    long(
        "crash race, cluster, all",
        cargo(&crash_on("cluster", "race", "1000")),
    ),
    long("crash leaders, all", cargo(&crash("leaders", "20"))),
    long("crash upgrade, all", cargo(&crash("upgrade", "10"))),
    long("crash fanout, all", cargo(&crash("fanout", "10"))),
    long("crash server, all", cargo(&crash("server", "300"))),
    long(
        "crash server, postgres, all",
        cargo(&crash_on("postgres", "server", "300")),
    ),
    long(
        "crash server, cluster, all",
        cargo(&crash_on("cluster", "server", "300")),
    ),
    long(
        "canaries of two tenants, 10,000 sequences",
        ten_thousand_sequences(&canaries(
            "tenants::random_calls_show_nothing_of_another_tenant",
        )),
    ),
    long(
        "canaries of two tenants, 10,000 sequences, sqlite",
        ten_thousand_sequences(&canaries(
            "tenants::random_calls_show_nothing_of_another_tenant_in_sqlite",
        )),
    ),
    long(
        "canaries of two tenants, 10,000 sequences, postgres",
        ten_thousand_sequences(&canaries(
            "tenants::random_calls_show_nothing_of_another_tenant_in_postgres",
        )),
    ),
    long("crash streams, all", cargo(&crash("streams", "1000"))),
    long(
        "crash streams, postgres, all",
        cargo(&crash_on("postgres", "streams", "1000")),
    ),
    long("crash outages, all", cargo(&outages("5000", "5-40"))),
    long(
        "crash outages, cluster, all",
        cargo(&redis_outages("5000", "5-40")),
    ),
    long(
        "crash slow, all",
        cargo(&slow_on("sqlite", ["--minutes", "10"])),
    ),
    long(
        "crash slow, postgres, all",
        cargo(&slow_on("postgres", ["--minutes", "10"])),
    ),
    long("bench chain", cargo(&bench("chain"))),
    long("bench loop, all", cargo(&bench("loop"))),
    long("bench fanout", cargo(&bench("fanout"))),
    long("bench resume", cargo(&bench("resume"))),
    long("bench parked, all", cargo(&bench("parked"))),
];

/// A file of tests in the browser, in full size.
const fn studio(name: &'static str) -> [&'static str; 5] {
    ["xtask", "studio", "browser", name, "--long"]
}

const fn crash(test: &'static str, trials: &'static str) -> [&'static str; 8] {
    [
        "xtask", "crash", test, "--trials", trials, "--seed", "{seed}", "--json",
    ]
}

const fn crash_on(
    backend: &'static str,
    test: &'static str,
    trials: &'static str,
) -> [&'static str; 10] {
    crash_with(test, ["--backend", backend, "--trials", trials])
}

const fn chain_on(backend: &'static str, seconds: &'static str) -> [&'static str; 10] {
    crash_with("chain", ["--backend", backend, "--seconds", seconds])
}

const fn restarts(runs: &'static str, every: &'static str) -> [&'static str; 10] {
    crash_with("restarts", ["--runs", runs, "--every", every])
}

const fn outages(runs: &'static str, every: &'static str) -> [&'static str; 10] {
    crash_with("outages", ["--runs", runs, "--every", every])
}

const fn redis_outages(runs: &'static str, every: &'static str) -> [&'static str; 12] {
    [
        "xtask",
        "crash",
        "outages",
        "--backend",
        "cluster",
        "--runs",
        runs,
        "--every",
        every,
        "--seed",
        "{seed}",
        "--json",
    ]
}

const fn slow_on(backend: &'static str, time: [&'static str; 2]) -> [&'static str; 10] {
    let [unit, length] = time;
    crash_with("slow", ["--backend", backend, unit, length])
}

const fn recover_on(backend: &'static str, threads: &'static str) -> [&'static str; 10] {
    crash_with("recover", ["--backend", backend, "--runs", threads])
}

const fn crash_with(test: &'static str, options: [&'static str; 4]) -> [&'static str; 10] {
    let [a, b, c, d] = options;
    [
        "xtask", "crash", test, a, b, c, d, "--seed", "{seed}", "--json",
    ]
}

const fn ten_thousand_sequences(args: &'static [&'static str]) -> Action {
    Action::Cargo {
        args,
        env: &[("SUPERSTEP_TENANT_SEQUENCES", "10000")],
    }
}

/// One test of the server. Without nextest, which would stop it after some minutes.
const fn canaries(test: &'static str) -> [&'static str; 8] {
    [
        "test",
        "--package",
        "superstep-server",
        "--test",
        "it",
        "--",
        "--exact",
        test,
    ]
}

/// A suite that needs nothing but registries of packages.
const fn suite(name: &'static str) -> [&'static str; 6] {
    ["run", "--package", "server-suites", "--", name, "--json"]
}

const fn bench(name: &'static str) -> [&'static str; 4] {
    ["xtask", "bench", name, "--json"]
}

/// Cargo finds nothing wrong with a filter that matches no test.
#[test]
fn a_row_of_one_test_names_one_that_exists() {
    let source = |path: &str| std::fs::read_to_string(harness::workspace::root().join(path)).ok();
    let mut found = 0;
    for step in STEPS {
        let Action::Cargo { args, .. } = step.action else {
            continue;
        };
        let [.., "--exact", test] = args else {
            continue;
        };
        let (module, name) = test.split_once("::").unwrap();
        let path = format!("crates/superstep-server/tests/it/{module}.rs::{name}");
        assert_eq!(crate::coverage::fault_of_test(&path, source), None);
        found += 1;
    }
    assert_eq!(found, 3);
}
