//! How the program ends, for whoever called it.

use std::process::ExitCode;

/// How a command went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All is done.
    Done,
    /// Something failed; it was said what.
    Failed,
    /// The command was refused as it was typed; the message says what to type.
    Refused,
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
            // Also the code of a command line that cannot be read; there the parser ends the program itself.
            Exit::Refused => 2,
            Exit::Paused => 3,
            Exit::Budget => 4,
        })
    }
}
