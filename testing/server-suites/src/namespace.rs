//! Suites with the address of the server built in run in a network namespace of their own, where that address is free.
//!
//! The server stays outside, where it reaches its database and its cluster. Connections to the built-in address are passed on to it
//! through a Unix socket: namespaces of networks share their files.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, ensure};
use free_ports::{free_port, is_free};
use harness::workspace::{in_words, output_of};

use crate::graphs::GraphSet;
use crate::server_process::ServerProcess;

/// A server for a suite with a built-in address.
pub(crate) struct BuiltInAddress<'a> {
    pub(crate) store: &'a str,
    pub(crate) graphs: GraphSet,
    /// Port of the built-in address.
    pub(crate) port: u16,
    /// The policy file of a server that authenticates its callers.
    pub(crate) policy: Option<&'a Path>,
    /// Where the server writes what it reports.
    pub(crate) log: &'a Path,
    /// Where the socket goes.
    pub(crate) folder: &'a Path,
}

impl BuiltInAddress<'_> {
    /// Starts the server, runs this program with `inside` in a namespace, and stops the server. If there can be no namespaces and the
    /// port is free, runs `here` instead.
    pub(crate) fn run(
        &self,
        inside: impl FnOnce(&mut Command),
        here: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let is_namespaced = output_of(Command::new("unshare").args(["-rn", "true"])).is_ok();
        let address = match is_namespaced {
            true => format!("127.0.0.1:{}", free_port()),
            false => address_of(self.port),
        };
        ensure!(
            is_namespaced || is_free(self.port),
            "port {}, which the suite has built in, is in use, and there can be no network namespace",
            self.port
        );
        let server = ServerProcess::start_with_policy(
            &address,
            self.store,
            self.graphs,
            self.log,
            self.policy,
        )?;
        let tested = match is_namespaced {
            true => self.run_inside(address, inside),
            false => here(),
        };
        let stopped = server.stop();
        tested?;
        stopped.with_context(|| std::fs::read_to_string(self.log).unwrap_or_default())
    }

    fn run_inside(
        &self,
        address: String,
        arguments: impl FnOnce(&mut Command),
    ) -> anyhow::Result<()> {
        let socket = self.folder.join("server.sock");
        let listener = UnixListener::bind(&socket)?;
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if let Ok(server) = TcpStream::connect(&address) {
                    relay(server, stream);
                }
            }
        });
        let mut command = Command::new("unshare");
        command.arg("-rn").arg(std::env::current_exe()?);
        arguments(&mut command);
        command.arg("--socket").arg(&socket);
        let status = command.status()?;
        ensure!(status.success(), "`{}`: {status}", in_words(&command));
        Ok(())
    }
}

/// Called inside of a namespace, which has no network yet, not even loopback: lets the built-in address lead to the server.
pub(crate) fn open_built_in_address(socket: PathBuf, port: u16) -> anyhow::Result<()> {
    output_of(Command::new("python3").args(["-c", LOOPBACK_UP]))?;
    let listener = TcpListener::bind(address_of(port))?;
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            if let Ok(server) = UnixStream::connect(&socket) {
                relay(stream, server);
            }
        }
    });
    Ok(())
}

/// Passes on what either side sends, until both have ended.
fn relay(tcp: TcpStream, unix: UnixStream) {
    let (Ok(from_tcp), Ok(from_unix)) = (tcp.try_clone(), unix.try_clone()) else {
        return;
    };
    thread::spawn(move || {
        // A side that breaks the connection ends this direction, and what it waits for the other.
        let _ = io::copy(&mut &from_tcp, &mut &unix);
        let _ = unix.shutdown(Shutdown::Write);
    });
    thread::spawn(move || {
        let _ = io::copy(&mut &from_unix, &mut &tcp);
        let _ = tcp.shutdown(Shutdown::Write);
    });
}

pub(crate) fn fixed_address() -> String {
    address_of(FIXED_PORT)
}

fn address_of(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// Port that most suites have built in.
pub(crate) const FIXED_PORT: u16 = 2024;

/// What `ip link set lo up` does, which is not installed everywhere: `SIOCSIFFLAGS` with `IFF_UP | IFF_RUNNING`.
const LOOPBACK_UP: &str = "\
import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh22x', b'lo', 0x41))";
