//! Where the workspace is, and how a program is started in it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use anyhow::{Context, bail};

/// The folder of the workspace's `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        // Asked of cargo when it runs us, not when it built us: two checkouts that share a target folder share our binary.
        let ours = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = ours.parent().expect("xtask is a folder of the workspace");
        root.to_owned()
    });
    &ROOT
}

/// Our folder in the user's cache, where what is installed beside us goes.
pub(crate) fn cache() -> anyhow::Result<PathBuf> {
    let cache = match std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cache"),
    };
    Ok(cache.join("superstep"))
}

/// The cargo that runs us, in the root of the workspace.
pub(crate) fn cargo() -> Command {
    program(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
}

/// A program in the root of the workspace.
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// What a program prints, or why there is nothing.
pub(crate) fn output_of(command: &mut Command) -> anyhow::Result<String> {
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
pub(crate) fn in_words(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn a_command_is_told_without_the_folders_of_a_machine() {
    let mut command = Command::new("/opt/rust/bin/cargo");
    assert_eq!(
        in_words(command.args(["fmt", "--check"]).current_dir(root())),
        "cargo fmt --check"
    );
}
