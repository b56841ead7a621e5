//! The machine, through its public API and without a runtime.

#![cfg(feature = "derive")]

mod simulate;
mod supersteps;
