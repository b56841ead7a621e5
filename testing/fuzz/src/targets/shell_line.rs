//! A line that is typed in the shell.

use archie::shell::parse_command;

pub(super) fn run(bytes: &[u8]) {
    if let Some(line) = super::text(bytes) {
        parse_command(line);
    }
}
