//! `cargo xtask capacity`: what a load needs, computed from what was measured.
//!
//! Every constant is read from `results/`, so a new measurement changes the answer. As on the page `docs/scale.md`, half of a measured
//! rate is the working load, and the machines are those that were measured: two shared virtual cores.

use std::fs;

use anyhow::{Context, ensure};
use serde_json::{Value as Json, json};

use harness::workspace::root;

/// A load. The default is that of `docs/scale.md`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CapacityArgs {
    pub(crate) threads: f64,
    /// The share of the threads that runs on a given day.
    pub(crate) active: f64,
    /// Of an active thread on that day.
    pub(crate) runs: f64,
    /// Of a run.
    pub(crate) supersteps: f64,
    /// How many times the average the busiest second has.
    pub(crate) peak: f64,
    /// How long entries are kept.
    pub(crate) days: f64,
    pub(crate) json: bool,
}

impl Default for CapacityArgs {
    fn default() -> Self {
        Self {
            threads: 1e6,
            active: 0.01,
            runs: 10.0,
            supersteps: 20.0,
            peak: 10.0,
            days: 30.0,
            json: false,
        }
    }
}

/// Reads `1000`, `50k`, `10m`, `1b` or `1%`.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    let (digits, unit) = match text.to_lowercase().chars().last() {
        Some('k') => (&text[..text.len() - 1], 1e3),
        Some('m') => (&text[..text.len() - 1], 1e6),
        Some('b') => (&text[..text.len() - 1], 1e9),
        Some('%') => (&text[..text.len() - 1], 0.01),
        _ => (text, 1.0),
    };
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number * unit),
        _ => Err(format!(
            "`{text}` is not a number such as 1000, 50k, 10m or 1%"
        )),
    }
}

pub(crate) fn run(args: &CapacityArgs) -> anyhow::Result<()> {
    ensure!(
        args.active <= 1.0,
        "--active is a share, such as 1% or 0.01"
    );
    let needs = Needs::of(args, &Measured::read()?);
    match args.json {
        true => print(&format!("{:#}", needs.json())),
        false => print(&needs.table()),
    }
    Ok(())
}

/// The constants, each with where it is in `results/`.
#[derive(Debug, Clone, PartialEq)]
struct Measured {
    bytes_of_waiting_thread: f64,
    bytes_of_superstep: f64,
    supersteps_per_second: f64,
    restate_ms_of_run: f64,
    worker_ms_of_run: f64,
}

impl Measured {
    fn read() -> anyhow::Result<Self> {
        let read = |name: &str| -> anyhow::Result<Json> {
            let text = fs::read_to_string(root().join("results").join(name))?;
            Ok(serde_json::from_str(&text)?)
        };
        Self::of(&read("bench.json")?, &read("bench-restate.json")?)
    }

    fn of(bench: &Json, restate: &Json) -> anyhow::Result<Self> {
        let postgres = |work, figure| median(bench, work, "postgres", figure);
        let of_run = |figure| median(restate, "20 steps, 128 clients", "restate", figure);
        Ok(Self {
            bytes_of_waiting_thread: postgres("10000 parked threads", "bytes/thread")?,
            bytes_of_superstep: postgres("loop of 200 turns", "bytes")? / 400.0,
            supersteps_per_second: postgres("64 threads at once", "supersteps/s")?,
            restate_ms_of_run: of_run("Restate CPU us/run")? / 1e3,
            worker_ms_of_run: of_run("worker CPU us/run")? / 1e3,
        })
    }
}

fn median(results: &Json, work: &str, store: &str, figure: &str) -> anyhow::Result<f64> {
    let benches = results["benches"].as_array().into_iter().flatten();
    let mut rows = benches.flat_map(|bench| bench["measured"].as_array().into_iter().flatten());
    let row = rows.find(|row| {
        row["side"] == "Superstep"
            && row["work"] == work
            && row["store"] == store
            && row["figure"] == figure
    });
    let median = row.and_then(|row| row["median"].as_f64());
    median.with_context(|| format!("results/ has no `{figure}` of `{work}` on {store}"))
}

/// What the load needs.
#[derive(Debug)]
struct Needs {
    supersteps_per_day: f64,
    supersteps_at_peak: f64,
    runs_at_peak: f64,
    postgres_servers: f64,
    restate_cores: f64,
    worker_cores: f64,
    waiting_bytes: f64,
    kept_bytes: f64,
}

impl Needs {
    fn of(load: &CapacityArgs, measured: &Measured) -> Self {
        let runs_per_day = load.threads * load.active * load.runs;
        let runs_at_peak = runs_per_day / 86_400.0 * load.peak;
        let supersteps_per_day = runs_per_day * load.supersteps;
        let supersteps_at_peak = runs_at_peak * load.supersteps;
        // A measured run has 20 supersteps, and a core is loaded to a half.
        let cores = |ms: f64| 2.0 * supersteps_at_peak / 20.0 * ms / 1e3;
        Self {
            supersteps_per_day,
            supersteps_at_peak,
            runs_at_peak,
            postgres_servers: (2.0 * supersteps_at_peak / measured.supersteps_per_second)
                .ceil()
                .max(1.0),
            restate_cores: cores(measured.restate_ms_of_run),
            worker_cores: cores(measured.worker_ms_of_run),
            waiting_bytes: load.threads * measured.bytes_of_waiting_thread,
            kept_bytes: supersteps_per_day * load.days * measured.bytes_of_superstep,
        }
    }

    fn json(&self) -> Json {
        json!({
            "supersteps_per_day": self.supersteps_per_day,
            "supersteps_per_second_at_peak": self.supersteps_at_peak,
            "runs_per_second_at_peak": self.runs_at_peak,
            "postgres_servers_with_two_cores": self.postgres_servers,
            "restate_cores": self.restate_cores,
            "worker_cores_without_nodes": self.worker_cores,
            "waiting_threads_bytes": self.waiting_bytes,
            "kept_entries_bytes": self.kept_bytes,
        })
    }

    fn table(&self) -> String {
        let rows = [
            ("supersteps per day", count(self.supersteps_per_day)),
            (
                "supersteps in the busiest second",
                count(self.supersteps_at_peak),
            ),
            ("runs in the busiest second", count(self.runs_at_peak)),
            (
                "PostgreSQL servers with two cores",
                count(self.postgres_servers),
            ),
            (
                "cores of Restate in all, on a cluster",
                count(self.restate_cores),
            ),
            (
                "cores of workers, without your nodes",
                count(self.worker_cores),
            ),
            ("waiting threads on disk", bytes(self.waiting_bytes)),
            (
                "entries on disk, as long as they are kept",
                bytes(self.kept_bytes),
            ),
        ];
        let lines = rows.map(|(name, value)| format!("{name:<44}{value:>10}"));
        lines.join("\n")
    }
}

/// Two digits that count.
fn count(value: f64) -> String {
    match value {
        v if v < 1.0 => format!("{v:.2}"),
        v if v < 10.0 => format!("{v:.1}"),
        v if v < 1e3 => format!("{v:.0}"),
        v if v < 1e6 => format!("{:.1} k", v / 1e3),
        v if v < 1e9 => format!("{:.1} M", v / 1e6),
        v => format!("{:.1} G", v / 1e9),
    }
}

fn bytes(value: f64) -> String {
    count(value) + if value < 1e3 { " B" } else { "B" }
}

#[expect(clippy::print_stdout, reason = "the answer is what was asked for")]
fn print(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Measured {
        Measured {
            bytes_of_waiting_thread: 3_000.0,
            bytes_of_superstep: 1_000.0,
            supersteps_per_second: 4_000.0,
            restate_ms_of_run: 2.0,
            worker_ms_of_run: 1.0,
        }
    }

    #[test]
    fn needs_follow_from_load_and_constants() {
        let load = CapacityArgs {
            threads: 86_400_000.0,
            ..CapacityArgs::default()
        };
        let needs = Needs::of(&load, &measured());
        // 864,000 active threads, 10 runs each: 100 per second on average.
        assert_eq!(needs.runs_at_peak, 1_000.0);
        assert_eq!(needs.supersteps_at_peak, 20_000.0);
        assert_eq!(needs.postgres_servers, 10.0);
        assert_eq!(needs.restate_cores, 4.0);
        assert_eq!(needs.waiting_bytes, 259.2e9);
        assert_eq!(needs.kept_bytes, 172.8e6 * 30.0 * 1e3);
        let twice = Measured {
            supersteps_per_second: 8_000.0,
            ..measured()
        };
        assert_eq!(Needs::of(&load, &twice).postgres_servers, 5.0);
    }

    #[test]
    fn the_constants_are_in_the_results() {
        let found = Measured::read().unwrap();
        assert!(found.supersteps_per_second > 1_000.0, "{found:?}");
        assert!(found.bytes_of_superstep > 100.0, "{found:?}");
        let none = Measured::of(&Json::Null, &Json::Null).unwrap_err();
        assert!(none.to_string().contains("results/ has no"), "{none}");
    }

    #[test]
    fn numbers_have_units() {
        assert_eq!(number("10m"), Ok(1e7));
        assert_eq!(number("1%"), Ok(0.01));
        assert_eq!(number("250"), Ok(250.0));
        assert!(number("many").is_err() && number("-1").is_err() && number("").is_err());
    }
}
