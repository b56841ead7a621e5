//! How the program ends, for whoever called it.

use std::process::ExitCode;

/// How a command went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All is done.
    Done,
    /// Something failed; it was said what.
    Failed,
    /// A thread waits for a person.
    Paused,
    /// A budget is used up.
    Budget,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            // 2 is a command line that cannot be read; the parser ends the program itself.
            Exit::Paused => 3,
            Exit::Budget => 4,
        })
    }
}
