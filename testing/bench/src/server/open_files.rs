//! How many files a process may have open: a connection is one, here and in the servers that are started from here.

use anyhow::{Context, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process, and those that it starts from now on, have so many connections.
pub(super) fn allow(connections: usize) -> anyhow::Result<()> {
    let wanted = connections as u64 + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    let is_enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= wanted);
    if is_enough(limit.current) {
        return Ok(());
    }
    ensure!(
        is_enough(limit.maximum),
        "{connections} streams need {wanted} open files, and this user may have {}; raise the hard limit (`ulimit -Hn`)",
        limit.maximum.unwrap_or_default()
    );
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).context("the limit of open files cannot be raised")
}

/// Databases, logs, libraries, and the clients that are not streams.
const OTHERS: u64 = 256;
