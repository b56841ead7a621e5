//! Where the server of a trial is: one process, or two in front of a cluster with two workers.

use anyhow::Context;
use free_ports::free_port;
use services::PrivateRedis;
use services::restate::{Layout, PrivateRestate, Restate, Setup};

use super::host::{Host, HostSettings};
use crate::process::database::Address;
use crate::process::lab::Lab;
use crate::process::{Backend, Plan};
use harness::workspace::output_of;

/// The addresses of all trials, and the services behind them.
#[derive(Debug)]
pub(super) struct Site {
    /// Where servers listen.
    pub(super) ports: Vec<u16>,
    pub(super) cluster: Option<ClusterSite>,
}

/// A cluster of these trials alone.
#[derive(Debug)]
pub(super) struct ClusterSite {
    restate: PrivateRestate,
    pub(super) redis: PrivateRedis,
    /// Where the workers listen, all of them.
    worker_port: u16,
    is_registered: bool,
}

/// The processes of a trial.
#[derive(Debug)]
pub(super) struct Deployment {
    hosts: Vec<Host>,
}

impl Site {
    /// Starts what the processes of these trials need.
    pub(super) fn new(name: &str, plan: &Plan) -> anyhow::Result<Self> {
        if plan.backend != Backend::Cluster {
            return Ok(Self {
                ports: vec![free_port()],
                cluster: None,
            });
        }
        let setup = Setup {
            // Nodes are not killed here.
            layout: Layout::Single,
            // So few that several connections are made, which go to both workers.
            env: vec![(
                "RESTATE_WORKER__INVOKER__HTTP2_STREAMS_PER_CONNECTION_LIMIT".to_owned(),
                "4".to_owned(),
            )],
        };
        Ok(Self {
            ports: (0..SERVERS).map(|_| free_port()).collect(),
            cluster: Some(ClusterSite {
                restate: Restate::private(name, setup)?,
                redis: PrivateRedis::start(name)?,
                worker_port: free_port(),
                is_registered: false,
            }),
        })
    }

    /// Starts all processes, and waits until they listen.
    pub(super) fn start(
        &mut self,
        lab: &Lab,
        store: &Address,
        mutant: Option<&str>,
    ) -> anyhow::Result<Deployment> {
        let servers = self.ports.iter();
        let mut settings: Vec<HostSettings> = servers
            .map(|port| HostSettings::of_server(store, *port, mutant))
            .collect();
        if let Some(cluster) = &self.cluster {
            for server in &mut settings {
                server.is_alone = false;
                server.options.extend(cluster.options_of_server()?);
            }
            let worker = cluster.worker(store, mutant);
            settings.extend((0..WORKERS).map(|_| worker.clone()));
        }
        let hosts = settings
            .into_iter()
            .map(|settings| Host::start_with(lab, settings))
            .collect::<anyhow::Result<_>>()?;
        let mut deployment = Deployment { hosts };
        deployment.wait_until_ready()?;
        if let Some(cluster) = &mut self.cluster {
            cluster.register(lab)?;
        }
        Ok(deployment)
    }
}

impl ClusterSite {
    fn options_of_server(&self) -> anyhow::Result<Vec<String>> {
        let nodes = self.restate.nodes()?;
        let ingress: Vec<String> = nodes.into_iter().map(|node| node.ingress).collect();
        let (ingress, redis) = (ingress.join(","), self.redis.url());
        Ok(["--ingress", &ingress, "--redis", &redis]
            .map(str::to_owned)
            .to_vec())
    }

    fn worker(&self, store: &Address, mutant: Option<&str>) -> HostSettings {
        let (listen, redis) = (self.worker_address(), self.redis.url());
        HostSettings {
            mode: "http-worker",
            store: store.clone(),
            mutant: mutant.map(str::to_owned),
            options: ["--listen", &listen, "--redis", &redis]
                .map(str::to_owned)
                .to_vec(),
            is_alone: false,
        }
    }

    fn worker_address(&self) -> String {
        format!("127.0.0.1:{}", self.worker_port)
    }

    /// Tells Restate of the workers, which have the same address in every trial.
    fn register(&mut self, lab: &Lab) -> anyhow::Result<()> {
        if self.is_registered {
            return Ok(());
        }
        let node = self.restate.nodes()?.remove(0);
        let worker = format!("http://{}", self.worker_address());
        let mut register = lab.program("register");
        register.args(["--admin", &node.admin, "--worker", &worker]);
        output_of(&mut register).context("Restate does not take the workers")?;
        self.is_registered = true;
        Ok(())
    }
}

impl Deployment {
    pub(super) fn hosts(&mut self) -> &mut [Host] {
        &mut self.hosts
    }

    pub(super) fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        self.hosts.iter_mut().try_for_each(Host::wait_until_ready)
    }

    /// Kills all processes. Returns those that had ended by themselves.
    pub(super) fn kill_all(&mut self) -> anyhow::Result<Vec<String>> {
        let mut ended = Vec::new();
        for host in &mut self.hosts {
            ended.extend(host.kill()?.map(|status| status.to_string()));
        }
        Ok(ended)
    }
}

const SERVERS: usize = 2;
const WORKERS: usize = 2;
