//! `cargo xtask bench NAME`: how fast and how small, beside a bare floor that is measured in the same run.
//!
//! The machine may be busy and no two are alike, so what counts are ratios: rounds of ours and of the floor
//! alternate, and the quiet tenth of each is compared (`sides.rs`). What people read goes to stderr, and the last line of stdout is one JSON
//! object; the exit status says whether the goals were met. A debug build starts itself again in release.

#[cfg(feature = "bench")]
mod chain;
#[cfg(feature = "bench")]
mod fanout;
#[cfg(feature = "bench")]
mod fixture;
#[cfg(feature = "bench")]
mod floor;
#[cfg(feature = "bench")]
mod open;
#[cfg(feature = "bench")]
mod parked;
#[cfg(feature = "bench")]
mod report;
#[cfg(feature = "bench")]
mod resume;
#[cfg(feature = "bench")]
mod sides;
#[cfg(feature = "bench")]
mod turns;

use anyhow::bail;

use crate::workspace::cargo;

/// What was asked for, as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BenchArgs {
    pub(crate) name: String,
    pub(crate) json: bool,
    /// Smaller sizes, for CI: the same goals, noisier figures.
    pub(crate) quick: bool,
}

pub(crate) const NAMES: &[&str] = &["chain", "loop", "fanout", "resume", "parked"];

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    if !NAMES.contains(&args.name.as_str()) {
        bail!(
            "there is no bench `{}`: use {}",
            args.name,
            NAMES.join(", ")
        );
    }
    if cfg!(debug_assertions) || cfg!(not(feature = "bench")) {
        return run_in_release(args);
    }
    #[cfg(feature = "bench")]
    measure(args)?;
    Ok(())
}

/// A debug build is several times slower, and says nothing about what users get.
fn run_in_release(args: &BenchArgs) -> anyhow::Result<()> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--package", "xtask"]);
    command.args(["--features", "bench", "--", "bench", &args.name]);
    command.args(args.json.then_some("--json"));
    command.args(args.quick.then_some("--quick"));
    let status = command.status()?;
    if !status.success() {
        bail!("the bench `{}` in release: {status}", args.name);
    }
    Ok(())
}

#[cfg(feature = "bench")]
fn measure(args: &BenchArgs) -> anyhow::Result<()> {
    let fixture = fixture::Fixture::new(args.quick)?;
    let rows = match args.name.as_str() {
        "chain" => chain::run(&fixture)?,
        "loop" => [turns::run(&fixture)?, open::run(&fixture)?].concat(),
        "fanout" => fanout::run(&fixture)?,
        "resume" => resume::run(&fixture)?,
        _ => parked::run(&fixture)?,
    };
    report::publish(&args.name, &rows, args.json);
    let missed = rows.iter().filter(|row| row.met() == Some(false)).count();
    if missed > 0 {
        bail!("{missed} goals of the bench `{}` were missed", args.name);
    }
    Ok(())
}
