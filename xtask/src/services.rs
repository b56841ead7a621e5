//! The servers that tests need. There are none yet: every test runs in its own process, with SQLite.

/// What to do with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Up,
    Down,
    Status,
}

pub(crate) fn run(action: Action) {
    let what = match action {
        Action::Up => "nothing was started",
        Action::Down => "nothing was stopped",
        Action::Status => "nothing runs",
    };
    eprintln!("no services are needed yet; {what}");
}
