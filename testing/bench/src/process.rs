//! What the system says of a process: how much of the processors it used, and how much memory it has.

use std::fs;
use std::time::Duration;

use anyhow::Context;

/// Returns the user and system time of a process, over all its threads.
pub(super) fn cpu_of(pid: u32) -> anyhow::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    cpu_in(&stat).with_context(|| format!("`{stat}` has no times"))
}

/// Returns the bytes of a process that are in memory.
pub(super) fn resident_of(pid: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    resident_in(&status).with_context(|| format!("process {pid} has no memory"))
}

/// Reads the 14th and the 15th field; the second one may have spaces in it, and ends with a bracket.
pub(super) fn cpu_in(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let (user, system) = (fields.next()?, fields.next()?);
    let ticks = user.parse::<u64>().ok()? + system.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * MS_PER_TICK))
}

fn resident_in(status: &str) -> Option<u64> {
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Of Linux, as programs see it, on every machine of today.
const MS_PER_TICK: u64 = 10;

#[test]
fn both_times_of_a_process_are_read() {
    let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 1 2 3 4 150 25 0 0 20 0 1 0 5 6 7";
    assert_eq!(cpu_in(stat), Some(Duration::from_millis(1_750)));
}

#[test]
fn the_memory_of_a_process_is_read() {
    let status = "Name:\tx\nVmHWM:\t  900 kB\nVmRSS:\t  512 kB\nThreads:\t1\n";
    assert_eq!(resident_in(status), Some(512 * 1024));
    assert!(resident_of(std::process::id()).unwrap() > 100_000);
}
