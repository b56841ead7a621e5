//! Runs a target from its corpus: first every kept input, then mutations of them until the time is up.

use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use std::{io, thread};

use harness::prng::Prng;

use crate::mutation::Material;
use crate::{Target, corpus};

/// What came of it.
#[derive(Debug, Default)]
pub struct Report {
    /// How many inputs were tried.
    pub executions: u64,
    /// How long it took.
    pub took: Duration,
    /// How many inputs are kept.
    pub corpus: usize,
    /// The longest that one input took.
    pub slowest: Duration,
    /// Inputs that broke a promise, with what was said.
    pub crashes: Vec<Crash>,
}

/// An input that broke a promise.
#[derive(Debug)]
pub struct Crash {
    /// The input.
    pub bytes: Vec<u8>,
    /// The file in the corpus, if it is a kept one.
    pub name: Option<String>,
    /// What the panic said, or how long it took.
    pub why: String,
}

/// Keeps panics from being printed. Those that break a promise are in the report; parsers that catch the panics of a library
/// would hide them among hundreds of backtraces.
pub fn silence_panics() {
    panic::set_hook(Box::new(|_| {}));
}

/// Replays the corpus of a target, then mutates it until `time` is up. Stops at the third crash: the ones after it are
/// mostly the same.
pub fn run(target: &'static Target, time: Duration, seed: u64) -> io::Result<Report> {
    let kept = corpus::read(target.name)?;
    let words = corpus::words(target.name)?;
    let work = move || attack(target, kept, words, time, seed);
    // As deep a stack as the main thread of a program has, so that a recursion that fits there fits here.
    let worker = thread::Builder::new().stack_size(STACK_BYTES);
    match worker.spawn(work)?.join() {
        Ok(report) => Ok(report),
        Err(_) => Err(io::Error::other("the fuzzer itself panicked")),
    }
}

fn attack(
    target: &Target,
    kept: Vec<corpus::Input>,
    words: Vec<Vec<u8>>,
    time: Duration,
    seed: u64,
) -> Report {
    let start = Instant::now();
    let mut report = Report {
        corpus: kept.len(),
        ..Report::default()
    };
    for input in &kept {
        report.attempt(target, &input.bytes, Some(&input.name));
    }
    let material = Material {
        inputs: kept.into_iter().map(|input| input.bytes).collect(),
        words,
        bytes_max: target.bytes_max,
    };
    let mut prng = Prng::new(seed);
    while start.elapsed() < time && report.crashes.len() < CRASHES_MAX {
        report.attempt(target, &material.draw(&mut prng), None);
    }
    report.took = start.elapsed();
    report
}

impl Report {
    fn attempt(&mut self, target: &Target, bytes: &[u8], name: Option<&str>) {
        let start = Instant::now();
        let ended = catch_unwind(AssertUnwindSafe(|| (target.run)(bytes)));
        let took = start.elapsed();
        self.executions += 1;
        self.slowest = self.slowest.max(took);
        let why = match ended {
            Err(panic) => words_of(&*panic),
            Ok(()) if took > SLOW => format!("it took {} s", took.as_secs()),
            Ok(()) => return,
        };
        self.crashes.push(Crash {
            bytes: bytes.to_vec(),
            name: name.map(str::to_owned),
            why,
        });
    }
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}

const CRASHES_MAX: usize = 3;
/// No input of a target is so large that a parser that grows with it takes this long, in a debug build on a busy machine.
const SLOW: Duration = Duration::from_secs(10);
const STACK_BYTES: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks on what the dictionary-free mutator finds within a second.
    fn fragile(bytes: &[u8]) {
        assert!(!bytes.contains(&0xff), "it cannot take 0xff");
    }

    static FRAGILE: Target = Target {
        name: "fragile",
        run: fragile,
        bytes_max: 64,
    };

    #[test]
    fn a_target_that_breaks_is_reported_with_its_input() {
        let attacked = || attack(&FRAGILE, vec![], vec![], Duration::from_secs(20), 1);
        let report = attacked();
        let crash = report.crashes.first().expect("it was found");
        assert!(crash.bytes.contains(&0xff));
        assert_eq!(crash.why, "it cannot take 0xff");
        let again = attacked();
        assert_eq!(again.crashes[0].bytes, crash.bytes);
    }
}
