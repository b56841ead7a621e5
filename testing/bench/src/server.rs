//! The server over HTTP: how fast it runs threads next to other servers and to the driver below it, and how many streams it
//! carries.
//!
//! Every server is a process of its own, and the load is in this one. All share the processors, so the load does as little as it
//! can (`connection.rs`).

mod connection;
mod load;
mod open_files;
mod peer_servers;
mod prepared;
mod search;
mod server_process;
mod speed;
mod start;
mod tenants;
mod width;

use super::BenchArgs;
use super::findings::Findings;
use super::lab::Lab;
use peer_servers::PeerServers;

pub(super) fn run(lab: &Lab, args: &BenchArgs) -> anyhow::Result<Findings> {
    let mut found = Findings::new("server", lab.quick);
    let tokio = tokio::runtime::Runtime::new()?;
    let peer_servers = match args.against_peers {
        true => Some(PeerServers::install(args.aegra.as_deref())?),
        false => None,
    };
    speed::run(lab, &tokio, peer_servers.as_ref(), &mut found)?;
    start::run(lab, &tokio, peer_servers.as_ref(), &mut found)?;
    width::run(lab, &tokio, &mut found)?;
    search::run(lab, &tokio, &mut found)?;
    Ok(found)
}

/// What the tenants of a server notice of one that sends too much.
pub(super) fn run_tenants(lab: &Lab) -> anyhow::Result<Findings> {
    let mut found = Findings::new("tenants", lab.quick);
    tenants::run(lab, &tokio::runtime::Runtime::new()?, &mut found)?;
    Ok(found)
}
