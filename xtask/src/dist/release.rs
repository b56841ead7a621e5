//! Which release is packed: its version, its date, and the machines that it is for.

use std::path::Path;

use anyhow::{Context, bail};

use harness::workspace::{output_of, program};

/// What every package of a release shares.
#[derive(Debug, Clone)]
pub(super) struct Release {
    pub(super) version: String,
    /// That of the commit, in seconds since 1970. Every file of a package has it, so that two builds are equal.
    pub(super) date: u64,
    pub(super) platform: Platform,
}

/// A kind of machine, by the names that others have for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Platform {
    /// What `uname -m` prints.
    pub(super) machine: &'static str,
    pub(super) rust: &'static str,
    pub(super) debian: &'static str,
    pub(super) oci: &'static str,
}

const PLATFORMS: [Platform; 2] = [
    Platform {
        machine: "x86_64",
        rust: "x86_64-unknown-linux-gnu",
        debian: "amd64",
        oci: "amd64",
    },
    Platform {
        machine: "aarch64",
        rust: "aarch64-unknown-linux-gnu",
        debian: "arm64",
        oci: "arm64",
    },
];

impl Release {
    /// Returns the release of this commit for machines like this one.
    pub(super) fn of_this_commit(workspace: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            version: version(workspace)?,
            date: date()?,
            platform: Platform::of_this_machine()?,
        })
    }

    /// Returns the name without an ending that files of this release have.
    pub(super) fn name(&self) -> String {
        format!("archie-{}-linux-{}", self.version, self.platform.machine)
    }

    /// Returns the date as RFC 3339 has it.
    pub(super) fn timestamp(&self) -> String {
        let (year, month, day) = civil(self.date / 86_400);
        let second = self.date % 86_400;
        let (hour, minute) = (second / 3600, second / 60 % 60);
        let second = second % 60;
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

impl Platform {
    fn of_this_machine() -> anyhow::Result<Self> {
        let machine = std::env::consts::ARCH;
        let ours = PLATFORMS.iter().find(|one| one.machine == machine);
        match (std::env::consts::OS, ours) {
            ("linux", Some(platform)) => Ok(*platform),
            (os, _) => bail!(
                "releases are built on Linux for {PLATFORM_NAMES}, not on {machine} with {os}"
            ),
        }
    }
}

const PLATFORM_NAMES: &str = "x86_64 and aarch64";

/// The version that all crates share.
fn version(workspace: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(workspace.join("Cargo.toml"))?;
    let manifest: toml::Table = toml::from_str(&text)?;
    let version = manifest["workspace"]["package"]["version"].as_str();
    Ok(version.context("the workspace has no version")?.to_owned())
}

/// `SOURCE_DATE_EPOCH`, as <https://reproducible-builds.org> defines it, or the date of the commit.
fn date() -> anyhow::Result<u64> {
    let date = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(date) => date,
        Err(_) => output_of(program("git").args(["log", "-1", "--format=%ct"]))
            .context("outside a repository, set SOURCE_DATE_EPOCH")?,
    };
    let date = date.trim();
    date.parse()
        .with_context(|| format!("`{date}` is not a number of seconds"))
}

/// The date that is so many days after 1970-01-01, by the algorithm of Howard Hinnant: years begin in March, so that the day
/// that comes and goes is the last one.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
pub(super) fn example() -> Release {
    Release {
        version: "1.2.3".to_owned(),
        date: 1_700_000_000,
        platform: PLATFORMS[0],
    }
}

#[test]
fn dates_are_written_as_rfc_3339_has_them() {
    let at = |date| {
        let release = Release { date, ..example() };
        release.timestamp()
    };
    assert_eq!(at(0), "1970-01-01T00:00:00Z");
    assert_eq!(at(951_868_799), "2000-02-29T23:59:59Z");
    assert_eq!(at(1_700_000_000), "2023-11-14T22:13:20Z");
    assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
}
