//! The program that people start, `archie serve`: how soon it answers, and what it has in memory while nobody asks.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use tokio::runtime::Runtime;

use super::peer_servers::PeerServers;
use super::server_process::{SpawnedServer, free_address};
use crate::contest::quantile;
use crate::findings::Findings;
use crate::lab::Lab;
use crate::report::{Goal, Row};
use crate::side::AGENT_SERVER;
use harness::workspace::{cargo, output_of};

pub(super) fn run(
    lab: &Lab,
    tokio: &Runtime,
    peer_servers: Option<&PeerServers>,
    found: &mut Findings,
) -> anyhow::Result<()> {
    let archie = ArchieProgram::build()?;
    let (mut first, mut again, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..lab.size(STARTS, 3) {
        let home = lab.fresh_folder()?;
        first.push(archie.serve(tokio, &home)?.started_in.as_secs_f64() * 1e3);
        let server = archie.serve(tokio, &home)?;
        again.push(server.started_in.as_secs_f64() * 1e3);
        std::thread::sleep(REST);
        memory.push(server.resident()? / 1e6);
    }
    let mut cold = Row::new("archie serve: first start, p50", "ms", median(&first));
    let mut idle = Row::new("archie serve: idle memory", "MB", median(&memory));
    if let Some(peer_servers) = peer_servers {
        let other = peer_servers.spawn_agent_server(lab, tokio)?;
        cold = cold.against(AGENT_SERVER.label, other.started_in.as_secs_f64() * 1e3);
        std::thread::sleep(REST);
        idle = idle.against(AGENT_SERVER.label, other.resident()? / 1e6);
    }
    found.push(cold, Goal::AtMost(100.0));
    found.rows.push(Row::new(
        "archie serve: start over its own file, p50",
        "ms",
        median(&again),
    ));
    found.push(idle, Goal::AtMost(30.0));
    Ok(())
}

fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The program, built as `cargo install` builds it.
struct ArchieProgram {
    program: PathBuf,
}

impl ArchieProgram {
    fn build() -> anyhow::Result<Self> {
        let mut build = cargo();
        build.args(["build", "--quiet", "--release"]);
        output_of(build.args(["--package", "superstep-archie"]))?;
        let us = std::env::current_exe()?;
        let profiles = us.parent().and_then(Path::parent);
        let profiles = profiles.context("this program lies in no folder")?;
        Ok(Self {
            program: profiles.join("release/archie"),
        })
    }

    /// Starts a server with a home of its own, and waits for its first reply.
    fn serve(&self, tokio: &Runtime, home: &Path) -> anyhow::Result<SpawnedServer> {
        let address = free_address();
        let mut command = Command::new(&self.program);
        command.args(["serve", "--listen", &address.to_string()]);
        command.env("ARCHIE_HOME", home);
        SpawnedServer::start(tokio, command, address, "/ok", home).context("archie serve")
    }
}

const STARTS: usize = 20;
/// How long a server is left alone before its memory counts.
const REST: Duration = Duration::from_secs(1);
