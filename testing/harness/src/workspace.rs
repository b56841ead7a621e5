//! Where the workspace is, and how a program is started in it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use anyhow::{Context, bail};

/// The folder of the workspace's `Cargo.toml`.
pub fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        // Asked of cargo when it runs us, not when it built us: two checkouts that share a target folder share our binary.
        let ours = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let mut folders = ours.ancestors();
        let root = folders.find(|folder| folder.join("Cargo.lock").is_file());
        root.expect("a package of this workspace is in its folder")
            .to_owned()
    });
    &ROOT
}

/// Our folder in the user's cache, where what is installed beside us goes.
pub fn cache() -> anyhow::Result<PathBuf> {
    let cache = match std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cache"),
    };
    Ok(cache.join("superstep"))
}

/// The cargo that runs us, in the root of the workspace.
pub fn cargo() -> Command {
    program(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
}

/// A program in the root of the workspace.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// What a program prints, or why there is nothing.
pub fn output_of(command: &mut Command) -> anyhow::Result<String> {
    let output = command
        .output()
        .with_context(|| format!("`{}` cannot be started", in_words(command)))?;
    if !output.status.success() {
        bail!(
            "`{}` failed: {}",
            in_words(command),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command as one would type it, without the folders of this machine: it ends up in results that are shared.
pub fn in_words(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the paths, from the root, of the files that git tracks or would track, each once and in order. One that was deleted
/// and not yet committed as such is among them.
pub fn files() -> anyhow::Result<Vec<String>> {
    let listing = output_of(program("git").args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "-z",
    ]))?;
    let paths = listing.split('\0').filter(|path| !path.is_empty());
    let mut paths: Vec<String> = paths.map(str::to_owned).collect();
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

/// Returns the commit that is checked out; none outside a repository.
pub fn commit() -> Option<String> {
    let text = output_of(program("git").args(["rev-parse", "--verify", "--quiet", "HEAD"])).ok()?;
    Some(text.trim().to_owned())
}

/// Whether the commit alone does not say what was checked. Records of earlier runs do not count, so that one run after another can
/// be recorded.
pub fn is_dirty() -> bool {
    let status = ["status", "--porcelain", "--", ".", ":!results"];
    output_of(program("git").args(status)).map_or(true, |text| !text.is_empty())
}

#[test]
fn a_command_is_told_without_the_folders_of_a_machine() {
    let mut command = Command::new("/opt/rust/bin/cargo");
    assert_eq!(
        in_words(command.args(["fmt", "--check"]).current_dir(root())),
        "cargo fmt --check"
    );
}
