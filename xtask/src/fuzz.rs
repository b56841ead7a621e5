//! `cargo xtask fuzz`: runs the fuzz targets of `testing/fuzz`, and says what they found.
//!
//! Without `--guided` it is a seeded mutator in an ordinary build: seconds, on any toolchain. With `--guided` everything is
//! built again with coverage counters, into a folder of its own, and libFuzzer looks for inputs that reach new code. Both
//! start from the kept corpus.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, thread};

use anyhow::{Context, bail};
use serde_json::{Value as Json, json};

use harness::workspace::{cache, cargo, in_words, output_of, program, root};

/// What was typed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FuzzArgs {
    /// All if there are none.
    pub(crate) targets: Vec<String>,
    /// For each target. Default: 2, guided 60.
    pub(crate) seconds: Option<u64>,
    pub(crate) seed: Option<u64>,
    pub(crate) guided: bool,
    /// How many targets are run at once. Default: 1.
    pub(crate) jobs: Option<usize>,
    /// Whether what was found goes into `results/fuzz.json`, in place of what is there for the same targets.
    pub(crate) record: bool,
    pub(crate) json: bool,
}

pub(crate) fn run(args: &FuzzArgs) -> anyhow::Result<()> {
    let fuzzer = build(args)?;
    let targets = fuzzer.targets(&args.targets)?;
    let mut results = Vec::new();
    for some in targets.chunks(args.jobs.unwrap_or(1).max(1)) {
        let fuzzer = &fuzzer;
        let run = |target| move || fuzzer.run(target, args);
        let ran: Vec<_> = thread::scope(|scope| {
            let running: Vec<_> = some.iter().map(|target| scope.spawn(run(target))).collect();
            running.into_iter().map(|one| one.join()).collect()
        });
        for one in ran {
            let one = one.map_err(|_| anyhow::anyhow!("a fuzzer's thread panicked"))??;
            eprintln!("{}", one.in_words());
            results.push(one);
        }
    }
    let violations: u64 = results.iter().map(|one| one.crashes).sum();
    let report = json!({
        "test": "fuzz",
        "engine": fuzzer.engine(),
        "targets": results.iter().map(TargetResult::to_json).collect::<Vec<_>>(),
        "violations": violations,
    });
    if args.record {
        record(&report)?;
    }
    if args.json {
        print(&report);
    }
    match violations {
        0 => Ok(()),
        _ => bail!("{violations} input(s) broke a promise; their files are named above"),
    }
}

/// A program that was built to fuzz.
#[derive(Debug)]
struct Fuzzer {
    /// With coverage counters, if it has them.
    guided: Option<PathBuf>,
    plain: PathBuf,
}

#[derive(Debug)]
struct FuzzTarget {
    name: String,
    bytes_max: u64,
}

/// What came of one target.
#[derive(Debug, Default)]
struct TargetResult {
    name: String,
    executions: u64,
    seconds: f64,
    crashes: u64,
    /// How many inputs are kept in the repository.
    corpus: u64,
    slowest_ms: u64,
    /// Of a guided run: counters that were reached, inputs that were found on the way, and the most memory.
    guided: Option<Json>,
}

fn build(args: &FuzzArgs) -> anyhow::Result<Fuzzer> {
    // With the tests' own choice of features, so that what they built is used.
    let mut command = cargo();
    command.args(["build", "--workspace", "--test", "corpus", "--bin", PACKAGE]);
    let plain = artifact(&mut command)?;
    let guided = match args.guided {
        true => Some(build_guided()?),
        false => None,
    };
    Ok(Fuzzer { guided, plain })
}

/// Coverage counters are a flag of the stable compiler. A target is named so that build scripts and macros have none.
fn build_guided() -> anyhow::Result<PathBuf> {
    let mut command = cargo();
    command
        .args(["build", "--package", PACKAGE, "--bin", PACKAGE])
        .args(["--profile", "fuzz", "--target", &host()?])
        .env("CARGO_INCREMENTAL", "0")
        .env("RUSTFLAGS", GUIDED_FLAGS.join(" "));
    artifact(&mut command).context(
        "the guided fuzzers cannot be built; libFuzzer needs a C++ compiler (Debian: `apt-get install g++`)",
    )
}

/// Builds, and returns where the program is.
fn artifact(command: &mut Command) -> anyhow::Result<PathBuf> {
    command
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit());
    let output = command
        .output()
        .with_context(|| format!("`{}` cannot be started", in_words(command)))?;
    if !output.status.success() {
        bail!("`{}` failed", in_words(command));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut built = messages.lines().filter_map(|line| {
        let message: Json = serde_json::from_str(line).ok()?;
        let is_ours = message["target"]["name"] == PACKAGE && message["target"]["kind"][0] == "bin";
        let path = message["executable"].as_str().filter(|_| is_ours)?;
        Some(PathBuf::from(path))
    });
    built.next_back().context("cargo built no fuzzer")
}

impl Fuzzer {
    fn engine(&self) -> &'static str {
        match self.guided {
            Some(_) => "libfuzzer",
            None => "mutation",
        }
    }

    /// The targets of these names, or all.
    fn targets(&self, names: &[String]) -> anyhow::Result<Vec<FuzzTarget>> {
        let output = Command::new(&self.plain)
            .args(names)
            .arg("--list")
            .stderr(Stdio::inherit())
            .output()?;
        if !output.status.success() {
            bail!("see `cargo xtask fuzz --help` for how targets are named");
        }
        let lines = String::from_utf8_lossy(&output.stdout);
        let read = |line: &str| {
            let json: Json = serde_json::from_str(line)?;
            Ok(FuzzTarget {
                name: json["name"].as_str().unwrap_or_default().to_owned(),
                bytes_max: json["bytes_max"].as_u64().unwrap_or(4_096),
            })
        };
        lines.lines().map(read).collect()
    }

    fn run(&self, target: &FuzzTarget, args: &FuzzArgs) -> anyhow::Result<TargetResult> {
        let found = cache()?.join("fuzz").join(&target.name);
        match &self.guided {
            None => self.mutate(target, args, &found),
            Some(program) => guide(program, target, args, &found),
        }
    }

    fn mutate(
        &self,
        target: &FuzzTarget,
        args: &FuzzArgs,
        found: &Path,
    ) -> anyhow::Result<TargetResult> {
        let mut command = Command::new(&self.plain);
        command
            .env("CARGO_MANIFEST_DIR", root().join("testing/fuzz"))
            .arg(&target.name)
            .args(["--seconds", &args.seconds.unwrap_or(2).to_string()])
            .args(["--seed", &args.seed.unwrap_or(0).to_string()])
            .arg("--crashes")
            .arg(found)
            .stderr(Stdio::inherit());
        let output = command.output().context("the fuzzer cannot be started")?;
        let report = String::from_utf8_lossy(&output.stdout);
        // A stack that overflows ends the process, and so does a parser that asks for too much memory.
        let Ok(report) = serde_json::from_str::<Json>(report.trim()) else {
            eprintln!("`{}`: the fuzzer ended with {}", target.name, output.status);
            return Ok(TargetResult {
                name: target.name.clone(),
                crashes: 1,
                ..TargetResult::default()
            });
        };
        let number = |field: &str| report[field].as_u64().unwrap_or(0);
        Ok(TargetResult {
            name: target.name.clone(),
            executions: number("executions"),
            seconds: report["seconds"].as_f64().unwrap_or(0.0),
            crashes: number("crashes"),
            corpus: number("corpus"),
            slowest_ms: number("slowest_ms"),
            guided: None,
        })
    }
}

/// Runs libFuzzer on one target. What it finds on the way stays in the cache folder, so that the next run goes on from there.
fn guide(
    fuzzer: &Path,
    target: &FuzzTarget,
    args: &FuzzArgs,
    found: &Path,
) -> anyhow::Result<TargetResult> {
    let fuzz = root().join("testing/fuzz");
    let kept = fuzz.join("corpus").join(&target.name);
    let (grown, crashes) = (found.join("grown"), found.join("crashes"));
    fs::create_dir_all(&grown)?;
    fs::create_dir_all(&crashes)?;
    let mut command = Command::new("nice");
    command
        .args(["-n", "19"])
        .arg(fuzzer)
        .arg(&grown)
        .arg(&kept)
        .arg(format!("-max_total_time={}", args.seconds.unwrap_or(60)))
        .arg(format!("-max_len={}", target.bytes_max))
        .arg(format!("-artifact_prefix={}/", crashes.display()))
        .args(["-rss_limit_mb=2048", "-timeout=10", "-print_final_stats=1"])
        .env("FUZZ_TARGET", &target.name)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    if let Some(seed) = args.seed {
        command.arg(format!("-seed={}", seed % (1 << 31)));
    }
    let words = fuzz
        .join("dictionaries")
        .join(format!("{}.dict", target.name));
    if words.is_file() {
        command.arg(format!("-dict={}", words.display()));
    }
    let start = std::time::Instant::now();
    let mut child = command
        .spawn()
        .context("the guided fuzzer cannot be started")?;
    let mut log = Vec::new();
    let mut stderr = child.stderr.take().context("it was piped")?;
    stderr.read_to_end(&mut log)?;
    let status = child.wait()?;
    let log = String::from_utf8_lossy(&log);
    if !status.success() {
        eprintln!("`{}` broke; what libFuzzer said last:", target.name);
        let lines: Vec<_> = log.lines().collect();
        for line in &lines[lines.len().saturating_sub(40)..] {
            eprintln!("    {line}");
        }
        eprintln!(
            "the input is in {}; put it into testing/fuzz/corpus/{} as `crash-…`",
            crashes.display(),
            target.name
        );
    }
    Ok(TargetResult {
        name: target.name.clone(),
        seconds: start.elapsed().as_secs_f64(),
        crashes: u64::from(!status.success()),
        corpus: fs::read_dir(&kept).map_or(0, |inputs| inputs.count() as u64),
        ..TargetResult::from_log(&log)
    })
}

impl TargetResult {
    /// What libFuzzer tells at its end, and in its last line before that.
    fn from_log(log: &str) -> Self {
        let stat = |name: &str| {
            let lines = log.lines().rev();
            let mut found = lines.filter_map(|line| line.strip_prefix(name));
            found.find_map(|rest| rest.trim_start_matches(':').trim().parse().ok())
        };
        let last = |name: &str| {
            let mut lines = log.lines().rev();
            lines.find_map(|line| {
                let after = line.split(name).nth(1)?.trim_start();
                let number: String = after.chars().take_while(char::is_ascii_digit).collect();
                number.parse::<u64>().ok()
            })
        };
        let seconds: Option<u64> = stat("stat::slowest_unit_time_sec");
        Self {
            executions: stat("stat::number_of_executed_units").unwrap_or(0),
            slowest_ms: seconds.unwrap_or(0) * 1_000,
            guided: Some(json!({
                "coverage": last(" cov: "),
                "features": last(" ft: "),
                "found_inputs": stat("stat::new_units_added"),
                "peak_memory_mb": stat("stat::peak_rss_mb"),
            })),
            ..Self::default()
        }
    }

    fn to_json(&self) -> Json {
        let mut json = json!({
            "name": self.name,
            "executions": self.executions,
            "seconds": (self.seconds * 10.0).round() / 10.0,
            "crashes": self.crashes,
            "corpus": self.corpus,
            "slowest_ms": self.slowest_ms,
        });
        if let (Some(json), Some(Json::Object(guided))) = (json.as_object_mut(), &self.guided) {
            json.extend(guided.clone());
        }
        json
    }

    fn in_words(&self) -> String {
        format!(
            "{:<14} {:>9} executions in {:>5.0} s, {} kept inputs, {} crash(es)",
            self.name, self.executions, self.seconds, self.corpus, self.crashes
        )
    }
}

/// Puts results into `results/fuzz.json`: those of other targets stay.
fn record(report: &Json) -> anyhow::Result<()> {
    let path = root().join("results/fuzz.json");
    let old = fs::read_to_string(&path).unwrap_or_default();
    let old = serde_json::from_str(&old).unwrap_or_default();
    let mut new = merged(&old, report);
    new["commit"] = json!(harness::workspace::commit());
    new["dirty"] = json!(harness::workspace::is_dirty());
    let text = serde_json::to_string_pretty(&new)?;
    fs::write(&path, text + "\n").with_context(|| format!("{} cannot be written", path.display()))
}

fn merged(old: &Json, report: &Json) -> Json {
    let list = |json: &Json| json["targets"].as_array().cloned().unwrap_or_default();
    let mut targets = list(report);
    let is_new = |name: &Json| targets.iter().any(|target| target["name"] == *name);
    let stays: Vec<_> = list(old)
        .into_iter()
        .filter(|target| !is_new(&target["name"]))
        .collect();
    targets.extend(stays);
    targets.sort_by_key(|target| target["name"].to_string());
    let crashes = targets
        .iter()
        .filter_map(|target| target["crashes"].as_u64());
    let violations: u64 = crashes.sum();
    json!({ "test": "fuzz", "engine": report["engine"], "targets": targets, "violations": violations })
}

#[expect(clippy::print_stdout, reason = "`verify` keeps the last line")]
fn print(report: &Json) {
    println!("{report}");
}

/// What this machine is called by the compiler.
fn host() -> anyhow::Result<String> {
    let version = output_of(program("rustc").arg("-vV"))?;
    let mut lines = version.lines();
    let host = lines.find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say its host")?.to_owned())
}

const PACKAGE: &str = "fuzz-targets";

/// What `cargo fuzz` gives the compiler. Our own name for the build, so that no dependency switches its checks off.
const GUIDED_FLAGS: &[&str] = &[
    "--cfg=guided_fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_libfuzzer_says_at_its_end_is_read() {
        let log = "#2\tINITED cov: 10 ft: 12 corp: 1/1b exec/s: 0 rss: 30Mb\n\
            #900\tNEW    cov: 55 ft: 70 corp: 9/90b lim: 4 exec/s: 300 rss: 31Mb\n\
            stat::number_of_executed_units: 1234\n\
            stat::new_units_added:          17\n\
            stat::slowest_unit_time_sec:    2\n\
            stat::peak_rss_mb:              64\n";
        let read = TargetResult::from_log(log).to_json();
        assert_eq!(read["executions"], 1234);
        assert_eq!(read["coverage"], 55);
        assert_eq!(read["features"], 70);
        assert_eq!(read["found_inputs"], 17);
        assert_eq!(read["slowest_ms"], 2000);
        assert_eq!(read["peak_memory_mb"], 64);
    }

    #[test]
    fn a_new_result_replaces_the_old_one_of_its_target() {
        let old =
            json!({ "targets": [{ "name": "a", "crashes": 1 }, { "name": "b", "crashes": 0 }] });
        let new = json!({ "engine": "libfuzzer", "targets": [{ "name": "a", "crashes": 0 }] });
        let merged = merged(&old, &new);
        assert_eq!(merged["violations"], 0);
        assert_eq!(merged["targets"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn the_compiler_knows_the_flags_of_a_guided_build() {
        // A whole build takes minutes; what rustc does not know it refuses at once.
        let mut rustc = program("rustc");
        rustc.args(GUIDED_FLAGS).args(["--print", "cfg"]);
        let cfg = output_of(&mut rustc).unwrap();
        assert!(cfg.contains("guided_fuzzing"), "{cfg}");
    }
}
