//! Which ports the servers of tests and trials get: free ones, below those that the system hands out by itself. While a
//! server is stopped, nobody shall get its port by chance, least of all a client that tries to reach it.
//!
//! Many processes choose at once, and a server takes a while until it listens. So whoever chooses a port also locks a
//! file of its number among the temporary files, and others pass over what is locked. The system lets go of a lock when
//! its process ends, however it does, so nothing has to be tidied up.
//!
//! [`free_port`] is for a server that only one process knows of, [`free_ports`] for those that want their neighbours. Nothing
//! here starts a server, and nobody is stopped from listening at a port that they did not ask for.

use std::fs::{self, File, TryLockError};
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::process::getuid;

/// A port for a server that only this process knows of.
///
/// # Panics
///
/// If there is none, or nothing can be written among the temporary files.
pub fn free_port() -> u16 {
    match free_ports(of_this_process(PRIVATE), 1).as_deref() {
        Ok([port, ..]) => *port,
        other => panic!("there is no port for a server of this test: {other:?}"),
    }
}

/// So many that are free now, the nearest from this one on. As long as this process lives nobody else is given them,
/// for a server takes a while until it listens, and others choose meanwhile.
///
/// # Errors
///
/// If there are not as many, or nothing can be written among the temporary files.
pub fn free_ports(first: u16, count: usize) -> io::Result<Vec<u16>> {
    let folder = std::env::temp_dir().join(format!("superstep-ports-{}", getuid().as_raw()));
    fs::create_dir_all(&folder)?;
    let mut ports = Vec::with_capacity(count);
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    for port in first..END {
        if ports.len() == count {
            return Ok(ports);
        }
        if let Some(lock) = reserve(&folder, port)?
            && is_free(port)
        {
            reserved.push(lock);
            ports.push(port);
        }
    }
    Err(io::Error::other(format!(
        "there are not {count} free ports from {first} to {END}"
    )))
}

/// Nothing if somebody has reserved it, this process among them.
fn reserve(folder: &Path, port: u16) -> io::Result<Option<File>> {
    let file = File::create(folder.join(port.to_string()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The system lets go of them when the process ends, however it does.
static RESERVED: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// Whether nobody listens there.
pub fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// Where a server that only this process knows of looks first, so that two processes seldom look at the same ports.
pub fn of_this_process(start: u16) -> u16 {
    start + (std::process::id() % 1_000) as u16
}

const PRIVATE: u16 = 25_000;
const END: u16 = 32_000;

#[test]
fn ports_that_somebody_is_about_to_use_are_passed_over() {
    let first = of_this_process(30_000);
    let mine = free_ports(first, 2).unwrap();
    let others = free_ports(first, 2).unwrap();
    assert!(others.iter().all(|port| !mine.contains(port)));
    assert_ne!(free_port(), free_port());
}

#[test]
fn ports_that_are_taken_are_passed_over() {
    let first = of_this_process(30_000);
    let taken = (first..).find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok());
    let taken = taken.unwrap();
    let free = free_ports(first, 20).unwrap();
    assert!(!free.contains(&taken.local_addr().unwrap().port()));
}
