//! The command line.

pub mod args;
pub mod settings;
