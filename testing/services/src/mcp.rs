//! An MCP server that we have not written: the protocol's own reference server, from npm. One listens for HTTP; tests that
//! speak over pipes start their own from the same program.
//!
//! What it says of its tools depends on the packages it is made of, and a test pins that. So all of them are pinned.

use std::time::Duration;

use free_ports::free_ports;

use super::daemon::{Daemon, Life};
use super::npm::Package;
use super::single::Server;
use super::{Places, http};

#[derive(Debug)]
pub(super) struct Mcp {
    daemon: Daemon,
}

impl Mcp {
    pub(super) fn new(places: &Places) -> Self {
        let daemon = Daemon {
            program: "mcp-everything",
            folder: places.addresses.join(PACKAGE.name),
        };
        Self { daemon }
    }
}

impl Server for Mcp {
    fn name(&self) -> &'static str {
        PACKAGE.name
    }

    fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    fn prepare(&self) -> anyhow::Result<()> {
        PACKAGE.prepare(&self.daemon)
    }

    fn start(&self) -> anyhow::Result<()> {
        let mut command = PACKAGE.command(&self.daemon)?;
        let port = free_ports(PORT, 1)?[0];
        self.daemon.keep_port(port)?;
        command.arg("streamableHttp").env("PORT", port.to_string());
        self.daemon.start(&mut command, Life::Own)
    }

    fn is_well(&self, port: u16) -> bool {
        http::answers(port, PATH)
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn url(&self, port: u16) -> String {
        format!("http://127.0.0.1:{port}{PATH}")
    }

    fn more(&self) -> anyhow::Result<Vec<(&'static str, String)>> {
        Ok(vec![("program", PACKAGE.program()?.display().to_string())])
    }
}

const PATH: &str = "/mcp";
const PORT: u16 = 28_300;
pub(super) const PACKAGE: Package = Package {
    name: "mcp",
    package: include_str!("mcp/package.json"),
    lock: include_str!("mcp/package-lock.json"),
    program: "node_modules/@modelcontextprotocol/server-everything/dist/index.js",
    about: "the reference server (30 MB, about 10 s)",
};
