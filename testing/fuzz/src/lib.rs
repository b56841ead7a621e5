//! Fuzz targets: one function for each parser of foreign bytes.
//!
//! A target takes any bytes and panics if a promise is broken: a parser that panics, a value that does not survive being
//! written and read again, a limit that does not hold, a checksum that is not checked. Three things call it:
//!
//! - `tests/corpus.rs` replays the kept corpus and every past crash, on every run of the tests;
//! - `cargo xtask fuzz` mutates the corpus for a few seconds, with a seed, on any toolchain;
//! - `cargo xtask fuzz --guided` builds the same functions with coverage instrumentation and runs them under libFuzzer.
//!
//! The corpus of a target is the folder `corpus/<target>`; an input that once broke a promise is a file of it whose name
//! begins with `crash-`. Words that a format is made of are in `dictionaries/<target>.dict`.

pub mod campaign;
pub mod corpus;
mod mutation;
mod targets;

pub use targets::TARGETS;

/// A function that takes foreign bytes.
#[derive(Debug)]
pub struct Target {
    /// The name of its corpus, too.
    pub name: &'static str,
    /// Panics if these bytes break a promise.
    pub run: fn(&[u8]),
    /// Longer inputs find nothing that shorter ones do not, and slow the search down.
    pub bytes_max: usize,
}

/// Returns the target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
