//! `crash sim`: the seeded simulator.

use anyhow::bail;

use super::{CrashArgs, CrashReport};

pub(super) fn run(_args: &CrashArgs) -> anyhow::Result<CrashReport> {
    bail!("not built yet")
}
