//! Command line: arguments and settings.

pub mod args;
pub mod interval;
pub mod settings;
