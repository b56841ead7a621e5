//! `cargo xtask bench NAME`: how fast and how small, beside bare floors and, if asked, beside the peers.
//!
//! The machine may be busy and no two are alike, so what counts are ratios: rounds of all sides alternate within one
//! run. What people read goes to stderr, and the last line of stdout is one JSON object; the exit status says whether
//! the goals were met. `cargo xtask bench` builds
//! this program in release and starts it. `bench all` keeps what it found in
//! `results/bench.json`, `bench restate` in `results/bench-restate.json`, `bench server` and
//! `bench tenants` in `results/bench-server.json`, `bench scale` in `results/bench-scale.json`, and
//! `bench page` writes `docs/benchmarks.md` from those alone.

mod archie;
mod chain;
mod contest;
mod fanout;
mod findings;
mod fixture;
mod lab;
mod machine;
mod measure;
mod open;
mod orders;
mod ours;
mod page;
mod parked;
mod peers;
mod plot;
mod process;
mod recorder;
mod report;
mod restate;
mod resume;
mod scale;
mod server;
mod side;
mod threads;
mod timing;
mod turns;
mod weight;

use std::process::ExitCode;

use anyhow::bail;
use lexopt::prelude::*;

/// What was asked for, as `cargo xtask bench` passes it on.
#[derive(Debug, Default)]
struct BenchArgs {
    name: String,
    json: bool,
    /// Smaller sizes, for CI and for a quick look: noisier figures, and speed is not judged.
    quick: bool,
    /// Whether the peers take part, and are installed if they are missing.
    against_peers: bool,
    /// A Python that is new enough for Aegra, which takes part in `server` if there is one.
    aegra: Option<String>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("page") => page::write(),
        // Our own side of a bench, started by the bench itself: it does rounds until nobody asks for more.
        Some("side") => ours::serve(words.split_off(1)),
        // A debug build is several times slower, and says nothing about what users get.
        _ if cfg!(debug_assertions) => {
            bail!("this is a debug build: use `cargo xtask bench`, which builds for release")
        }
        _ => measure::run(&parse(lexopt::Parser::from_args(words))?),
    }
}

fn parse(mut parser: lexopt::Parser) -> Result<BenchArgs, lexopt::Error> {
    let mut args = BenchArgs::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Value(name) if args.name.is_empty() => args.name = name.string()?,
            Long("quick") => args.quick = true,
            Long("peers") => args.against_peers = true,
            Long("aegra") => args.aegra = Some(parser.value()?.string()?),
            Long("json") => args.json = true,
            other => return Err(other.unexpected()),
        }
    }
    Ok(args)
}
