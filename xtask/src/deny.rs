//! `cargo xtask deny`: licences, bans and sources of all dependencies, and security advisories.
//!
//! cargo-deny is installed into the cache folder if it is missing. Advisories come from the public RustSec database where it
//! can be reached, or from a snapshot (`advisories.rs`), and never silently from nowhere: a run without a database says so.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, bail};
use serde_json::{Value as Json, json};

use crate::advisories::{self, Advisory};
use crate::programs::install_crate;
use harness::workspace::{cache, cargo, in_words, output_of, program, root};

/// What was typed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DenyArgs {
    /// Whether the public database is not even tried.
    pub(crate) offline: bool,
    pub(crate) json: bool,
}

pub(crate) fn run(args: &DenyArgs) -> anyhow::Result<()> {
    let deny = install_crate("cargo-deny", VERSION, &[])?;
    check_teeth(&deny)?;
    let database = find_database(args.offline)?;
    eprintln!("advisories: {}", database.in_words());
    let mut command = check(&deny, &database, &cache()?.join("deny"))?;
    command.args(["licenses", "bans", "sources"]);
    if database != Database::Missing {
        command.arg("advisories");
    }
    let status = command.status();
    let is_fine = status
        .with_context(|| format!("`{}` cannot be started", in_words(&command)))?
        .success();
    if args.json {
        let report = json!({
            "test": "deny",
            "advisories": database.in_words(),
            "violations": u8::from(!is_fine),
        });
        print(&report);
    }
    match is_fine {
        true => Ok(()),
        false => bail!("cargo-deny refuses a dependency; which and why stands above"),
    }
}

/// Where advisories come from.
#[derive(Debug, PartialEq, Eq)]
enum Database {
    /// cargo-deny fetches them.
    Public,
    /// A folder with records, and since when.
    Snapshot { folder: PathBuf, date: String },
    /// There are none.
    Missing,
}

impl Database {
    fn in_words(&self) -> String {
        match self {
            Self::Public => "the public RustSec database".to_owned(),
            Self::Snapshot { date, .. } => format!("a snapshot of {date}"),
            Self::Missing => {
                "SKIPPED, the public database cannot be reached and there is no snapshot \
                (`cargo xtask advisories --from PATH` makes one)"
                    .to_owned()
            }
        }
    }
}

/// The snapshot that a variable names, or the public database, or the snapshot in the repository or in the cache folder.
fn find_database(offline: bool) -> anyhow::Result<Database> {
    if let Some(folder) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        let folder = PathBuf::from(folder);
        let found = snapshot(&folder);
        return found.with_context(|| format!("`{}` holds no advisories", folder.display()));
    }
    if !offline && can_reach_public() {
        return Ok(Database::Public);
    }
    let places = [
        root().join("testing/advisories"),
        cache()?.join("advisories"),
    ];
    let found = places.iter().find_map(|folder| snapshot(folder));
    Ok(found.unwrap_or(Database::Missing))
}

fn snapshot(folder: &Path) -> Option<Database> {
    let date = fs::read_to_string(folder.join(advisories::DATE_FILE)).ok()?;
    folder.join("crates").is_dir().then(|| Database::Snapshot {
        folder: folder.to_owned(),
        date: date.trim().to_owned(),
    })
}

/// Asks once, and not for long: a machine without a way out must not wait for one.
fn can_reach_public() -> bool {
    let mut git = program("git");
    git.args(["ls-remote", PUBLIC, "HEAD"])
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    succeeds_within(&mut git, REACH_MAX)
}

fn succeeds_within(command: &mut Command, limit: Duration) -> bool {
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    let start = Instant::now();
    while start.elapsed() < limit {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => thread::sleep(Duration::from_millis(50)),
            Err(_) => break,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    false
}

/// A call of cargo-deny that lacks only what is to be checked. `folder` is for the files that it wants.
fn check(deny: &Path, database: &Database, folder: &Path) -> anyhow::Result<Command> {
    fs::create_dir_all(folder)?;
    let databases = folder.join("databases");
    if let Database::Snapshot { folder: from, .. } = database {
        copy_database(from, &databases)?;
    }
    let rules = fs::read_to_string(root().join("deny.toml"))?;
    let config = folder.join("deny.toml");
    fs::write(&config, with_database(&rules, &databases)?)?;
    let mut command = program(&deny.display().to_string());
    command
        .arg("--metadata-path")
        .arg(metadata(folder)?)
        .arg("--config")
        .arg(&config);
    if *database != Database::Public {
        command.arg("--offline");
    }
    // Two versions of one crate are many warnings and no error; `cargo deny check bans` lists them.
    command.args(["--log-level", "error", "check", "--hide-inclusion-graph"]);
    Ok(command)
}

/// Writes down what cargo knows of the tree. Cargo may ask the registry for packages of other platforms, whether or not
/// cargo-deny may ask for advisories.
fn metadata(folder: &Path) -> anyhow::Result<PathBuf> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1"]);
    let text = output_of(command.args(["--all-features", "--locked"]))?;
    let path = folder.join("metadata.json");
    fs::write(&path, text)?;
    Ok(path)
}

/// An advisory against a package that we have must be refused, and one against other versions of it must not: a check that
/// looks in the wrong folder would find nothing, for ever.
fn check_teeth(deny: &Path) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    for (patched, is_fine) in [(None, false), (Some(">= 0.0.1"), true)] {
        let advisory = Advisory {
            id: "RUSTSEC-2099-0001".to_owned(),
            package: "serde_json".to_owned(),
            date: "2099-01-01".to_owned(),
            patched: patched.map(str::to_owned).into_iter().collect(),
            ..Advisory::default()
        };
        advisories::write(folder.path(), &[advisory], "2099-01-01")?;
        let database = snapshot(folder.path()).context("the sample was not written")?;
        let mut command = check(deny, &database, &folder.path().join("deny"))?;
        let output = command.arg("advisories").output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let is_found = said.contains("RUSTSEC-2099-0001");
        if output.status.success() != is_fine || is_found == is_fine {
            bail!("cargo-deny does not tell a sample advisory from one of other versions: {said}");
        }
    }
    Ok(())
}

/// Lays a snapshot where cargo-deny looks for the public database. It is told to fetch nothing, and asks only when that was
/// last done.
fn copy_database(from: &Path, databases: &Path) -> anyhow::Result<()> {
    let to = databases.join(PUBLIC_FOLDER);
    if to.exists() {
        fs::remove_dir_all(&to)?;
    }
    fs::create_dir_all(to.join(".git"))?;
    fs::write(to.join(".git/FETCH_HEAD"), "")?;
    for package in fs::read_dir(from.join("crates"))? {
        let package = package?;
        let folder = to.join("crates").join(package.file_name());
        fs::create_dir_all(&folder)?;
        for record in fs::read_dir(package.path())? {
            let record = record?;
            fs::copy(record.path(), folder.join(record.file_name()))?;
        }
    }
    Ok(())
}

/// Our rules, with the folder of databases in them.
fn with_database(rules: &str, databases: &Path) -> anyhow::Result<String> {
    let head = "[advisories]\n";
    let (before, after) = rules
        .split_once(head)
        .context("deny.toml has no table `[advisories]`")?;
    let path = Json::from(databases.display().to_string());
    Ok(format!(
        "{before}{head}db-path = {path}\ndb-urls = [\"{PUBLIC}\"]\n{after}"
    ))
}

#[expect(clippy::print_stdout, reason = "`verify` keeps the last line")]
fn print(report: &Json) {
    println!("{report}");
}

/// A newer one may judge otherwise, so it is chosen and not found.
const VERSION: &str = "0.20.2";
const PUBLIC: &str = "https://github.com/RustSec/advisory-db";
/// What cargo-deny calls the folder of that database: its last part, and a hash of all of it.
const PUBLIC_FOLDER: &str = "advisory-db-3157b0e258782691";
/// Names a folder with advisories, instead of the public database.
const VARIABLE: &str = "SUPERSTEP_ADVISORIES";
const REACH_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_never_answers_is_not_waited_for() {
        let start = Instant::now();
        let mut silent = Command::new("sleep");
        assert!(!succeeds_within(
            silent.arg("60"),
            Duration::from_millis(100)
        ));
        assert!(start.elapsed() < Duration::from_secs(30));
        assert!(succeeds_within(
            &mut Command::new("true"),
            Duration::from_secs(30)
        ));
    }

    #[test]
    fn the_rules_keep_what_they_say_and_get_a_database() {
        let rules = with_database("[advisories]\nignore = []\n[bans]\n", Path::new("x")).unwrap();
        assert!(rules.contains("db-path = \"x\"") && rules.contains("ignore = []"));
        assert!(with_database("[bans]\n", Path::new("x")).is_err());
    }
}
