//! `cargo xtask bench NAME`: how fast and how small, beside bare floors and, if asked, beside the peers.
//!
//! The machine may be busy and no two are alike, so what counts are ratios: rounds of all sides alternate within one
//! run. What people read goes to stderr, and the last line of stdout is one JSON object; the exit status says whether
//! the goals were met. A debug build starts itself again in release. `bench all` keeps what it found in
//! `results/bench.json`, `bench restate` in `results/bench-restate.json`, and `bench page` writes `docs/benchmarks.md` from
//! those alone.

mod page;
mod plot;

#[cfg(feature = "bench")]
mod archie;
#[cfg(feature = "bench")]
mod chain;
#[cfg(feature = "bench")]
mod contest;
#[cfg(feature = "bench")]
mod database;
#[cfg(feature = "bench")]
mod fanout;
#[cfg(feature = "bench")]
mod findings;
#[cfg(feature = "bench")]
mod fixture;
#[cfg(feature = "bench")]
mod lab;
#[cfg(feature = "bench")]
mod machine;
#[cfg(feature = "bench")]
mod measure;
#[cfg(feature = "bench")]
mod open;
#[cfg(feature = "bench")]
mod ours;
#[cfg(feature = "bench")]
mod parked;
#[cfg(feature = "bench")]
mod peers;
#[cfg(feature = "bench")]
mod recorder;
#[cfg(feature = "bench")]
mod report;
#[cfg(feature = "bench")]
mod restate;
#[cfg(feature = "bench")]
mod resume;
#[cfg(feature = "bench")]
mod side;
#[cfg(feature = "bench")]
mod threads;
#[cfg(feature = "bench")]
mod timing;
#[cfg(feature = "bench")]
mod turns;
#[cfg(feature = "bench")]
mod weight;

use anyhow::bail;

use crate::workspace::cargo;

/// What was asked for, as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BenchArgs {
    pub(crate) name: String,
    pub(crate) json: bool,
    /// Smaller sizes, for CI and for a look: noisier figures, and speed is not judged.
    pub(crate) quick: bool,
    /// Whether the peers take part, and are installed if they are missing.
    pub(crate) against_peers: bool,
}

pub(crate) const NAMES: &[&str] = &[
    "chain", "loop", "fanout", "resume", "parked", "threads", "restate", "archie", "all", "page",
];

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    if !NAMES.contains(&args.name.as_str()) {
        bail!(
            "there is no bench `{}`: use {}",
            args.name,
            NAMES.join(", ")
        );
    }
    if args.name == "page" {
        return page::write();
    }
    if cfg!(debug_assertions) || cfg!(not(feature = "bench")) {
        return run_in_release(args);
    }
    #[cfg(feature = "bench")]
    measure::run(args)?;
    Ok(())
}

/// Our own side of a bench, started by the bench itself: it does rounds of `words` until nobody asks for more.
pub(crate) fn serve_side(words: Vec<String>) -> anyhow::Result<()> {
    #[cfg(feature = "bench")]
    return ours::serve(words);
    #[cfg(not(feature = "bench"))]
    bail!("`{}` needs the feature `bench`", words.join(" "));
}

/// A debug build is several times slower, and says nothing about what users get.
fn run_in_release(args: &BenchArgs) -> anyhow::Result<()> {
    let profile = if args.quick { "release" } else { "measured" };
    let mut command = cargo();
    command.args(["run", "--quiet", "--profile", profile, "--package", "xtask"]);
    command.args(["--features", "bench", "--", "bench", &args.name]);
    command.args(args.json.then_some("--json"));
    command.args(args.quick.then_some("--quick"));
    command.args(args.against_peers.then_some("--against=peers"));
    let status = command.status()?;
    if !status.success() {
        bail!("the bench `{}` in release: {status}", args.name);
    }
    Ok(())
}
