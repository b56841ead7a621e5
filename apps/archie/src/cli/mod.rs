//! The command line.

pub mod args;
pub mod interval;
pub mod settings;
