//! The figures of `docs/scale.md` are those in `results/`, and what the page computes from them is computed here again.

use std::fs;

use serde_json::Value as Json;

use super::assert_tidy;
use harness::workspace::root;

/// What was measured, and how much of each the page plans with.
struct Constants {
    bytes_waiting: f64,
    bytes_of_400_supersteps: f64,
    supersteps_per_second: f64,
    worker_mb: f64,
    restate_cpu_ms: f64,
    postgres_cpu_ms: f64,
    worker_cpu_ms: f64,
    recovery_seconds: f64,
}

impl Constants {
    fn read() -> Self {
        let read = |name: &str| -> Json {
            let text = fs::read_to_string(root().join("results").join(name)).unwrap();
            serde_json::from_str(&text).unwrap()
        };
        let (bench, restate) = (read("bench.json"), read("bench-restate.json"));
        let of_run = |figure| measured(&restate, "20 steps, 128 clients", "restate", figure) / 1e3;
        let memory = "10000 parked threads: memory of the worker";
        let memory = rows(&restate, "rows").find(|row| row["work"] == memory);
        Self {
            bytes_waiting: measured(&bench, "10000 parked threads", "postgres", "bytes/thread"),
            bytes_of_400_supersteps: measured(&bench, "loop of 200 turns", "postgres", "bytes"),
            supersteps_per_second: measured(
                &bench,
                "64 threads at once",
                "postgres",
                "supersteps/s",
            ),
            worker_mb: memory.and_then(|row| row["ours"].as_f64()).unwrap(),
            restate_cpu_ms: of_run("Restate CPU us/run"),
            postgres_cpu_ms: of_run("PostgreSQL CPU us/run"),
            worker_cpu_ms: of_run("worker CPU us/run"),
            recovery_seconds: read("crash-cluster.json")["detail"]["recovery_ms_p99"]
                .as_f64()
                .unwrap()
                / 1e3,
        }
    }

    /// What the page must say.
    fn in_words(&self) -> Vec<String> {
        let per_superstep = self.bytes_of_400_supersteps / 400.0;
        vec![
            format!(
                "| a thread that waits for an answer, on disk | {:.1} KB |",
                self.bytes_waiting / 1e3
            ),
            format!(
                "| a superstep on disk, with 200 bytes of message | {:.1} KB |",
                per_superstep / 1e3
            ),
            format!(
                "200 turns are 400 supersteps: {:.0} KB",
                self.bytes_of_400_supersteps / 1e3
            ),
            format!(
                "| durable supersteps per second, one PostgreSQL, 64 concurrent threads | {} |",
                with_commas(self.supersteps_per_second)
            ),
            format!(
                "| memory of 10,000 waiting threads in a worker | none: {:.1} MB before and after |",
                self.worker_mb
            ),
            format!(
                "| CPU of one Restate node for a run of 20 supersteps, 128 clients | {:.1} ms |",
                self.restate_cpu_ms
            ),
            format!(
                "| CPU of PostgreSQL and of a worker for the same run | {:.1} ms and {:.1} ms |",
                self.postgres_cpu_ms, self.worker_cpu_ms
            ),
            format!(
                "| recovery after workers and nodes are killed, p99 | {:.2} s |",
                self.recovery_seconds
            ),
            format!(
                "did {} supersteps per second",
                with_commas(self.supersteps_per_second)
            ),
            format!(
                "which is {} runs per second on a core",
                two_digits(1e3 / self.restate_cpu_ms)
            ),
        ]
    }

    /// The rows that the page computes, for 1 million, 100 million and 1 billion threads.
    fn computed(&self) -> Vec<String> {
        let loads = [1e6, 1e8, 1e9].map(|threads| Load {
            threads,
            constants: self,
        });
        let row = |name: &str, cell: fn(&Load<'_>) -> String| {
            let [a, b, c] = loads.each_ref().map(cell);
            format!("| {name} | {a} | {b} | {c} |")
        };
        vec![
            row(
                "servers with two cores (with sixteen, if it scaled by cores)",
                |load| match (load.servers(), load.large_servers()) {
                    (few, many) if few == many => with_commas(few),
                    (small, large) => format!("{} ({})", with_commas(small), with_commas(large)),
                },
            ),
            row("waiting threads on disk", |load| {
                gigabytes(load.waiting_gb())
            }),
            row("kept for 30 days", |load| gigabytes(load.kept_gb())),
            row("PostgreSQL, with a replica", |load| {
                two_digits(load.postgres_dollars())
            }),
        ]
    }
}

/// The load that the page assumes for so many threads.
struct Load<'a> {
    threads: f64,
    constants: &'a Constants,
}

impl Load<'_> {
    /// One thread in a hundred makes ten runs of twenty supersteps.
    fn supersteps_per_day(&self) -> f64 {
        self.threads / 100.0 * 10.0 * 20.0
    }

    fn in_busiest_second(&self) -> f64 {
        self.supersteps_per_day() / 86_400.0 * 10.0
    }

    /// At half of what was measured.
    fn servers(&self) -> f64 {
        (self.in_busiest_second() / (self.constants.supersteps_per_second / 2.0)).ceil()
    }

    fn large_servers(&self) -> f64 {
        (self.in_busiest_second() / (self.constants.supersteps_per_second / 2.0) / 8.0).ceil()
    }

    fn waiting_gb(&self) -> f64 {
        self.threads * self.constants.bytes_waiting / 1e9
    }

    fn kept_gb(&self) -> f64 {
        let per_superstep = self.constants.bytes_of_400_supersteps / 400.0;
        self.supersteps_per_day() * 30.0 * per_superstep / 1e9
    }

    /// 30 dollars a core and 0.10 a gigabyte, twice.
    fn postgres_dollars(&self) -> f64 {
        let disk = (self.waiting_gb() + self.kept_gb()) * 0.1;
        2.0 * (self.servers() * 2.0 * 30.0 + disk)
    }
}

fn rows<'a>(results: &'a Json, list: &'a str) -> impl Iterator<Item = &'a Json> {
    let benches = results["benches"].as_array().into_iter().flatten();
    benches.flat_map(move |bench| bench[list].as_array().into_iter().flatten())
}

fn measured(results: &Json, work: &str, store: &str, figure: &str) -> f64 {
    let is = |row: &&Json| {
        row["side"] == "Superstep"
            && row["work"] == work
            && row["store"] == store
            && row["figure"] == figure
    };
    let found = rows(results, "measured").find(is);
    let median = found.and_then(|row| row["median"].as_f64());
    median.unwrap_or_else(|| panic!("no {figure} of {work}, {store} in results/"))
}

fn gigabytes(gb: f64) -> String {
    match gb < 1e3 {
        true => format!("{} GB", two_digits(gb)),
        false => format!("{} TB", two_digits(gb / 1e3)),
    }
}

/// Rounded to two digits that count: 3.2, 63, 320, 21,000.
fn two_digits(value: f64) -> String {
    if value < 10.0 {
        return format!("{value:.1}");
    }
    let unit = 10_f64.powf(value.log10().floor() - 1.0);
    with_commas((value / unit).round() * unit)
}

fn with_commas(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[test]
fn the_figures_of_the_scale_page_are_those_that_were_measured() {
    let page = fs::read_to_string(root().join("docs/scale.md")).unwrap();
    let constants = Constants::read();
    let wanted = [constants.in_words(), constants.computed()].concat();
    // A sentence may go over the end of a line.
    let page = page.replace('\n', " ");
    let missing = wanted.iter().filter(|text| !page.contains(*text));
    let faults = missing.map(|text| format!("docs/scale.md does not say `{text}`"));
    assert_tidy(&faults.collect::<Vec<_>>());
}

#[test]
fn figures_are_rounded_as_the_page_does() {
    let figures = [3.214, 62.7, 321.4, 21_140.0, 133.0].map(two_digits);
    assert_eq!(figures, ["3.2", "63", "320", "21,000", "130"]);
    assert_eq!(gigabytes(6_267.0), "6.3 TB");
    assert_eq!(with_commas(7_116.0), "7,116");
}
