//! The machine, through its public API and without a runtime.

#![cfg(feature = "derive")]

mod format;
mod protocol;
mod simulate;
mod supersteps;
