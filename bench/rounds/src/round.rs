//! A round: what was done, and what it took.

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value as Json, json};

use crate::Failure;

/// What one round did.
#[derive(Debug, Clone, Default)]
pub struct Round {
    /// How many were done of what is counted: supersteps, runs or threads.
    pub units: usize,
    /// How long the round took.
    pub wall: Duration,
    /// What it took of the processors, in user code and in the kernel, over all threads of this process.
    pub cpu: Duration,
    /// How long each single one took, where that is asked for.
    pub times: Vec<Duration>,
    /// By how much the store grew, or what memory there is, where that is asked for.
    pub bytes: Option<u64>,
}

impl Round {
    fn to_json(&self) -> Json {
        let times: Vec<f64> = self.times.iter().map(Duration::as_secs_f64).collect();
        json!({
            "units": self.units,
            "wall_s": self.wall.as_secs_f64(),
            "cpu_s": self.cpu.as_secs_f64(),
            "times_s": times,
            "bytes": self.bytes,
        })
    }
}

/// Both clocks of a round.
#[derive(Debug)]
pub struct Stopwatch {
    begun: Instant,
    cpu: Duration,
}

impl Stopwatch {
    /// Starts both clocks.
    pub fn start() -> Self {
        Self {
            cpu: cpu(),
            begun: Instant::now(),
        }
    }

    /// How long it runs already.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The round that so much was done in.
    pub fn stop(self, units: usize) -> Round {
        Round {
            units,
            wall: self.begun.elapsed(),
            cpu: cpu().saturating_sub(self.cpu),
            ..Round::default()
        }
    }
}

/// The same sum that `getrusage` gives, with a finer grain.
fn cpu() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(spent.tv_sec).unwrap_or(0),
        u32::try_from(spent.tv_nsec).unwrap_or(0),
    )
}

/// Says that the side is ready, and of which version; then does a round for every line that comes.
pub fn serve<E: Into<Failure>>(
    version: &str,
    mut round: impl FnMut() -> Result<Round, E>,
) -> Result<(), Failure> {
    say(&json!({ "version": version }))?;
    for line in std::io::stdin().lock().lines() {
        line?;
        say(&round().map_err(Into::into)?.to_json())?;
    }
    Ok(())
}

/// For a side that works when others call it, and not in rounds: each round tells what this process used since the one
/// before, and as bytes the memory that it has.
pub fn serve_used(version: &str) -> Result<(), Failure> {
    let mut watch = Stopwatch::start();
    serve(version, || {
        let mut round = std::mem::replace(&mut watch, Stopwatch::start()).stop(1);
        round.bytes = Some(resident()?);
        Ok::<_, Failure>(round)
    })
}

/// What of this process is in memory.
fn resident() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes: u64 = kilobytes.ok_or("the system does not say")?.parse()?;
    Ok(kilobytes * 1024)
}

fn say(json: &Json) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{json}")?;
    out.flush()
}

#[test]
fn a_round_counts_the_processor_as_well() {
    let watch = Stopwatch::start();
    while watch.elapsed() < Duration::from_millis(5) {
        std::hint::spin_loop();
    }
    let round = watch.stop(3);
    assert_eq!(round.units, 3);
    assert!(round.wall >= Duration::from_millis(5) && !round.cpu.is_zero());
}

#[test]
fn a_process_has_memory() {
    assert!(resident().unwrap() > 100_000);
}
