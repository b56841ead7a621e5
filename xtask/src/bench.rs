//! `cargo xtask bench NAME`: builds the program of `testing/bench` and starts it.
//!
//! It is a program and not a library of this one, because it is linked with all that it measures: `cargo xtask verify` must
//! build quickly, and also while one of our crates does not compile.

use anyhow::bail;
use harness::workspace::cargo;

/// What was asked for, as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BenchArgs {
    pub(crate) name: String,
    pub(crate) json: bool,
    /// Smaller sizes, for CI and for a quick look: noisier figures, and speed is not judged.
    pub(crate) quick: bool,
    /// Whether the peers take part, and are installed if they are missing.
    pub(crate) against_peers: bool,
    /// A Python that is new enough for Aegra, which takes part in `server` if one is named.
    pub(crate) aegra: Option<String>,
    /// Whether counted instructions become the committed figures.
    pub(crate) record: bool,
    /// Whether committed figures of another compiler are an error.
    pub(crate) strict: bool,
}

pub(crate) const NAMES: &[&str] = &[
    "chain",
    "loop",
    "fanout",
    "resume",
    "parked",
    "threads",
    "restate",
    "server",
    "tenants",
    "scale",
    "archie",
    "all",
    "page",
    "instructions",
    "instructions-server",
];

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    let name = args.name.as_str();
    if !NAMES.contains(&name) {
        bail!("there is no bench `{name}`: use {}", NAMES.join(", "));
    }
    let is_count = name.starts_with("instructions");
    if is_count && (args.quick || args.against_peers) {
        bail!("`bench {name}` takes no option but `--json`, `--record` and `--strict`");
    }
    if !is_count && (args.record || args.strict) {
        bail!("`--record` and `--strict` belong to `bench instructions`");
    }
    // The page is written from figures that are there already; a quick look does without the optimisations that take minutes.
    let profile = match (name, args.quick) {
        ("page", _) => "dev",
        (_, true) => "release",
        (_, false) => "measured",
    };
    let mut command = cargo();
    command.args(["run", "--quiet", "--profile", profile, "--package"]);
    match name {
        // A program of its own: it needs little, and callgrind starts it many times.
        "instructions" => command.args(["instruction-counts", "--"]),
        // Apart, because a server's crates take minutes to build, and turn on features of others that change their counts.
        "instructions-server" => command.args([
            "instruction-counts",
            "--features",
            "server",
            "--",
            "--server",
        ]),
        _ => command.args(["benchmarks", "--", name]),
    };
    command.args(args.json.then_some("--json"));
    command.args(args.quick.then_some("--quick"));
    command.args(args.record.then_some("--record"));
    command.args(args.strict.then_some("--strict"));
    command.args(args.against_peers.then_some("--peers"));
    if let Some(python) = &args.aegra {
        command.args(["--aegra", python]);
    }
    let status = command.status()?;
    if !status.success() {
        bail!("the bench `{name}`: {status}");
    }
    Ok(())
}
