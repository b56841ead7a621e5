//! How many files the server may have open: every connection is one, and so every stream.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process have as many files open as its user may. Returns what an operator should know if those are few.
pub(super) fn raise_limit() -> Option<String> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        // macOS has a limit even where it reports none.
        Err(_) => limit.current,
    };
    warning(files)
}

/// Returns a warning if so many files are too few for many streams; `None` is no limit.
fn warning(files: Option<u64>) -> Option<String> {
    let files = files.filter(|files| *files < STREAMS + OTHERS)?;
    Some(format!(
        "the server can have {files} files open, and every stream is one; raise the hard limit (`ulimit -Hn`) to {} to serve {STREAMS} streams",
        STREAMS + OTHERS
    ))
}

/// How many streams a server should carry.
const STREAMS: u64 = 10_000;
/// Databases, logs, and requests that are not streams.
const OTHERS: u64 = 256;

#[test]
fn a_low_limit_is_reported() {
    assert_eq!(warning(None), None);
    assert_eq!(warning(Some(10_256)), None);
    let low = warning(Some(1_024)).unwrap();
    assert!(
        low.contains("1024 files") && low.contains("to 10256"),
        "{low}"
    );
}
