//! `crash kill|race|zombie`: real processes that are killed, raced and frozen.

use anyhow::bail;

use super::{CrashArgs, CrashReport};

pub(super) fn run(_args: &CrashArgs) -> anyhow::Result<CrashReport> {
    bail!("not built yet")
}
