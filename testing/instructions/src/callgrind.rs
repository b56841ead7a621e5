//! Starts this program under callgrind, and reads what was counted.
//!
//! Each workload runs in two processes: one does its rounds, the other does twice as many. The difference is what a round costs,
//! on every OS thread of the process; what starts and ends a process, and fills caches, is in both and cancels out.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::workload::Workload;

/// What one unit of a workload costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figures {
    pub(crate) instructions: u64,
    /// Calls of the allocator, to one decimal.
    pub(crate) allocations: f64,
}

/// What one process did.
struct Process {
    units: u64,
    counted: Counted,
}

#[derive(Debug, PartialEq, Eq)]
struct Counted {
    instructions: u64,
    allocations: u64,
}

pub(crate) fn count(workload: &Workload) -> anyhow::Result<Figures> {
    let once = start(workload.unit, workload.rounds)?;
    let twice = start(workload.unit, 2 * workload.rounds)?;
    let units = twice.units.saturating_sub(once.units);
    ensure!(units > 0, "`{}` did not do more rounds", workload.unit);
    let (once, twice) = (once.counted, twice.counted);
    let instructions = twice.instructions.saturating_sub(once.instructions) / units;
    let tenths = 10 * twice.allocations.saturating_sub(once.allocations) / units;
    Ok(Figures {
        instructions,
        allocations: tenths as f64 / 10.0,
    })
}

fn start(unit: &str, rounds: u64) -> anyhow::Result<Process> {
    let folder = tempfile::tempdir()?;
    let profile = folder.path().join("profile");
    let mut command = Command::new("valgrind");
    command.arg("--tool=callgrind");
    command.arg(format!("--callgrind-out-file={}", profile.display()));
    command.arg(std::env::current_exe()?).args(["--run", unit]);
    let output = command
        .arg(rounds.to_string())
        .output()
        .context("`valgrind` cannot be started; install it (`apt-get install valgrind`)")?;
    if !output.status.success() {
        bail!(
            "`{unit}` failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(Process {
        units: String::from_utf8_lossy(&output.stdout).trim().parse()?,
        counted: read(&std::fs::read_to_string(&profile)?)?,
    })
}

/// Reads a profile in callgrind's format: the sum of instructions, and how often an allocator was called.
fn read(profile: &str) -> anyhow::Result<Counted> {
    let sum = profile
        .lines()
        .find_map(|line| line.strip_prefix("summary: "));
    let sum = sum.context("callgrind wrote no sum")?;
    // A function has its name where it is first mentioned, and is `(number)` from then on.
    let mut allocators = BTreeSet::new();
    let mut is_allocator = |function: &'_ str| {
        let (number, name) = function.split_once(' ').unwrap_or((function, ""));
        if ALLOCATORS.contains(&name) {
            allocators.insert(number.to_owned());
        }
        allocators.contains(number)
    };
    let (mut allocations, mut calls_allocator) = (0, false);
    for line in profile.lines() {
        if let Some(function) = line.strip_prefix("fn=") {
            is_allocator(function);
        } else if let Some(function) = line.strip_prefix("cfn=") {
            calls_allocator = is_allocator(function);
        } else if let (Some(calls), true) = (line.strip_prefix("calls="), calls_allocator) {
            let (calls, _) = calls.split_once(' ').unwrap_or((calls, ""));
            allocations += calls.parse::<u64>()?;
        }
    }
    Ok(Counted {
        instructions: sum.trim().parse()?,
        allocations,
    })
}

const ALLOCATORS: &[&str] = &[
    "malloc",
    "calloc",
    "realloc",
    "posix_memalign",
    "aligned_alloc",
];

#[test]
fn calls_of_the_allocator_are_counted_under_its_name_and_its_number() {
    let profile = "
version: 1
events: Ir
summary: 3905

fn=(1) main
0 12
cfn=(2) malloc
calls=3 10
0 30
cfn=(3) malloc_usable_size
calls=9 10
0 9
fn=(4) grow
cob=(7)
cfn=(2)
calls=2 10
0 20
cfn=(5) realloc
calls=4 1
0 4
";
    let counted = Counted {
        instructions: 3905,
        allocations: 9,
    };
    assert_eq!(read(profile).unwrap(), counted);
}
