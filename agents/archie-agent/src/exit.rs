//! Exit codes of the program.

use std::process::ExitCode;

/// Outcome of a command, converted to the exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The command succeeded. Exit code 0.
    Done,
    /// The command failed and has printed the error. Exit code 1.
    Failed,
    /// The command was refused as typed; the message says what to type instead. Exit code 2.
    Refused,
    /// A thread is waiting for a person. Exit code 3.
    Paused,
    /// A budget is used up. Exit code 4.
    Budget,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            // The argument parser uses the same code for a command line it cannot parse, and exits on its own.
            Exit::Refused => 2,
            Exit::Paused => 3,
            Exit::Budget => 4,
        })
    }
}
