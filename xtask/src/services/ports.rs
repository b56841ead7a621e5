//! Which ports servers get: free ones, below those that the system hands out by itself. While a server is stopped, nobody
//! shall get its port by chance, least of all a client that tries to reach it.

use std::net::TcpListener;

use anyhow::Context;

/// So many that are free now, the nearest from this one on.
pub(super) fn free_ports(first: u16, count: usize) -> anyhow::Result<Vec<u16>> {
    let ports: Vec<u16> = (first..END)
        .filter(|port| is_free(*port))
        .take(count)
        .collect();
    (ports.len() == count)
        .then_some(ports)
        .with_context(|| format!("there are not {count} free ports from {first} to {END}"))
}

pub(super) fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// Where a server that only this process knows of looks first, so that two processes seldom look at the same.
pub(super) fn of_this_process(start: u16) -> u16 {
    start + (std::process::id() % 1_000) as u16
}

const END: u16 = 32_000;

#[test]
fn ports_that_are_taken_are_passed_over() {
    let first = of_this_process(30_000);
    let free = free_ports(first, 2).unwrap();
    let _taken = TcpListener::bind(("127.0.0.1", free[0])).unwrap();
    let others = free_ports(first, 2).unwrap();
    assert!(!others.contains(&free[0]));
    assert_ne!(others[0], others[1]);
}
