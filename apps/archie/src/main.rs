//! The program with the built-in agents.

use std::process::ExitCode;

fn main() -> ExitCode {
    archie::run(&[])
}
