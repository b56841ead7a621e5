//! What the servers used of the processors, which no side tells of itself.

use std::fs;
use std::time::Duration;

/// User and system time of every process whose command line has this in it. PostgreSQL names the database there,
/// Restate its folder.
pub(super) fn cpu_of(mark: &str) -> Duration {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let spent = processes.filter_map(|process| {
        let line = fs::read(process.path().join("cmdline")).ok()?;
        let is_meant = String::from_utf8_lossy(&line).contains(mark);
        let stat = fs::read_to_string(process.path().join("stat")).ok()?;
        is_meant.then(|| ticks(&stat)).flatten()
    });
    Duration::from_millis(spent.sum::<u64>() * MS_PER_TICK)
}

/// The 14th and the 15th field; the second one may have spaces in it, and ends with a bracket.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let (user, system) = (fields.next()?, fields.next()?);
    Some(user.parse::<u64>().ok()? + system.parse::<u64>().ok()?)
}

/// Of Linux, as programs see it, on every machine of today.
const MS_PER_TICK: u64 = 10;

#[test]
fn both_times_of_a_process_are_read() {
    let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 1 2 3 4 150 25 0 0 20 0 1 0 5 6 7";
    assert_eq!(ticks(stat), Some(175));
}
