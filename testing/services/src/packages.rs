//! Installs Debian's packages by name, without starting the servers that are in them.

use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::account::Account;
use harness::workspace::output_of;

/// As root, or as whoever may become root without being asked.
pub(super) fn install(packages: &[&str]) -> anyhow::Result<()> {
    let names = packages.join(" ");
    if find_program("apt-get").is_none() {
        bail!("this needs {names}, and there is no apt-get; install it by hand");
    }
    let mut command = if Account::find().is_root() {
        Command::new("sh")
    } else if may_become_root() {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "sh"]);
        sudo
    } else {
        bail!("run `sudo apt-get install {names}` first, or run this as root once");
    };
    // The name that the script has in its own messages comes before what it installs.
    command.args(["-c", SCRIPT, "install"]).args(packages);
    output_of(&mut command)
        .map(drop)
        .with_context(|| format!("{names} cannot be installed"))
}

/// Returns where a program is, after installing the package that has it if it is missing.
pub fn require_program(name: &str, package: &str) -> anyhow::Result<std::path::PathBuf> {
    if find_program(name).is_none() {
        eprintln!("installing {package}, which has `{name}`");
        install(&[package])?;
    }
    find_program(name).with_context(|| format!("{package} has no `{name}`"))
}

/// Where a program is, among the folders of `PATH` and where Debian puts servers.
pub(super) fn find_program(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/bin".into(), "/usr/sbin".into()]);
    folders
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

fn may_become_root() -> bool {
    let mut sudo = Command::new("sudo");
    sudo.args(["-n", "true"]).stderr(Stdio::null());
    sudo.status().is_ok_and(|status| status.success())
}

/// Packages of servers start them at their default port; `policy-rc.d` is Debian's way to say no. One that is there
/// already is the machine's own.
const SCRIPT: &str = r#"
set -e
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 1' INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
apt-get update -qq
apt-get install -y -qq --no-install-recommends "$@"
"#;

#[test]
fn a_program_is_found_where_it_is() {
    assert!(find_program("sh").is_some());
    assert_eq!(find_program("no-such-program"), None);
}
