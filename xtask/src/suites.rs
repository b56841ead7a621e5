//! `cargo xtask suites NAME`: builds the program of `testing/server-suites` and starts it.
//!
//! It is a program and not a library of this one, because it is linked with the server and its stores, which `xtask` must build
//! without.

use anyhow::bail;
use harness::workspace::cargo;

/// What was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SuitesArgs {
    pub(crate) name: String,
    /// Only tests that match this expression.
    pub(crate) only: Option<String>,
    pub(crate) backend: Backend,
    pub(crate) json: bool,
}

/// What the server stores its data in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Backend {
    /// A file that is deleted afterwards.
    #[default]
    Sqlite,
    /// The service of `cargo xtask services`.
    Postgres,
}

impl Backend {
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        match name {
            "sqlite" => Ok(Self::Sqlite),
            "postgres" => Ok(Self::Postgres),
            unknown => Err(format!("use sqlite or postgres, not `{unknown}`")),
        }
    }
}

pub(crate) const NAMES: &[&str] = &["python"];

pub(crate) fn run(args: &SuitesArgs) -> anyhow::Result<()> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "server-suites", "--"]);
    command.arg(&args.name);
    if let Some(only) = &args.only {
        command.args(["--only", only]);
    }
    if args.backend == Backend::Postgres {
        command.args(["--store", &services::address("postgres")?]);
    }
    command.args(args.json.then_some("--json"));
    let status = command.status()?;
    if !status.success() {
        bail!("the suite `{}`: {status}", args.name);
    }
    Ok(())
}
