//! Reads a line that a person types at the terminal, which Ctrl-C ends.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::ctrl_c;
use crate::secret::read_line;

/// Returns the line, or `None` after Ctrl-C or Ctrl-D at the prompt.
///
/// A signal does not end a read from the terminal, because the standard library repeats the system call. So a thread reads, and this
/// one waits for the line or the signal.
pub(crate) fn read_typed_line() -> io::Result<Option<String>> {
    let watch = ctrl_c::Watch::start();
    let mut unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
    let line = match unfinished.take() {
        Some(line) => line,
        None => start_reading()?,
    };
    loop {
        match line.recv_timeout(LOOK) {
            Ok(read) => return read,
            Err(RecvTimeoutError::Timeout) if watch.is_pressed() => {
                *unfinished = Some(line);
                return Ok(None);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("the reader of the terminal stopped"));
            }
        }
    }
}

fn start_reading() -> io::Result<TypedLine> {
    let (sender, line) = sync_channel(1);
    std::thread::Builder::new()
        .name("typed-line".to_owned())
        .spawn(move || {
            // The receiver lives in a static until it has the line.
            let _ = sender.send(read_line());
        })?;
    Ok(line)
}

type TypedLine = Receiver<io::Result<Option<String>>>;

/// The read that Ctrl-C left behind. It cannot be ended, so it returns the next line that is typed.
static UNFINISHED: Mutex<Option<TypedLine>> = Mutex::new(None);
/// How soon Ctrl-C is noticed.
const LOOK: Duration = Duration::from_millis(50);
