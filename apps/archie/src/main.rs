//! The program with the agents that come with it.

use std::process::ExitCode;

fn main() -> ExitCode {
    archie::run(&[])
}
