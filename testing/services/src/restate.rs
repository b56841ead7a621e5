//! A Restate with a folder of its own: one node, or a cluster of three whose nodes may be killed one by one.
//!
//! It listens on loopback, sends no telemetry, and keeps the durability that it comes with. (1.7.12 tries to reach GitHub
//! once when it starts, whatever it is told; we found no switch for that. Without a network it logs one error and goes on.)
//! Its data stays when it is stopped and may be deleted at any time. A folder that was never whole is made anew.
//!
//! Leaders are transferred by pinning them: `restatectl partitions leadership pin` moves one to another replica within a
//! second or two. A pin stays until it is taken back, and gives way while its node is gone.

mod config;
mod health;
mod programs;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use free_ports::{free_ports, is_free, of_this_process};
use serde_json::Value as Json;

use super::daemon::{Daemon, Life};
use super::{Member, Places, Service, Status, http};
use config::{NodePorts, node_name, read_ports, render, write_ports};
use harness::folder::remove_folder;
use harness::workspace::output_of;
pub use health::{Health, Partition};
use health::{NODES, PARTITIONS, View};
use programs::{Programs, SERVER};

/// How many nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    Single,
    Cluster,
}

/// What is special about a private one.
#[derive(Debug, Clone)]
pub struct Setup {
    pub layout: Layout,
    /// Settings by environment, such as `RESTATE_WORKER__INVOKER__HTTP2_STREAMS_PER_CONNECTION_LIMIT`. Those of whoever
    /// starts us are not handed on.
    pub env: Vec<(String, String)>,
}

/// Where clients reach one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    pub ingress: String,
    pub admin: String,
}

/// A Restate: its nodes, their ports and their folder.
#[derive(Debug)]
pub struct Restate {
    name: String,
    folder: PathBuf,
    setup: Setup,
    life: Life,
}

impl Restate {
    /// The one that tests share.
    pub(super) fn shared(places: &Places, layout: Layout) -> Self {
        let name = layout.service_name();
        Self {
            name: name.to_owned(),
            folder: places.addresses.join(name),
            setup: Setup {
                layout,
                env: Vec::new(),
            },
            life: Life::Own,
        }
    }

    /// In a new folder among the temporary files, and whole. It goes with the value that is returned.
    pub fn private(name: &str, setup: Setup) -> anyhow::Result<PrivateRestate> {
        let name = format!("superstep-{name}-{}", std::process::id());
        let restate = PrivateRestate(Self {
            folder: std::env::temp_dir().join(&name),
            name,
            setup,
            life: Life::WithUs,
        });
        restate.start()?;
        Ok(restate)
    }

    /// Where clients reach it, node by node. Their order is that of the indexes that [`Self::kill`] and others take.
    pub fn nodes(&self) -> anyhow::Result<Vec<Node>> {
        let ports = self.ports().context("it was never started")?;
        let node = |(index, ports): (usize, &NodePorts)| Node {
            name: node_name(index),
            ingress: format!("http://127.0.0.1:{}", ports.ingress),
            admin: format!("http://127.0.0.1:{}", ports.admin),
        };
        Ok(ports.iter().enumerate().map(node).collect())
    }

    /// Where its nodes keep what they have.
    pub fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// Installs, makes and starts what is missing, and waits until it is whole.
    pub fn start(&self) -> anyhow::Result<()> {
        let programs = Programs::find()?;
        self.make()?;
        if self.missing().is_empty() && self.health()?.is_whole() {
            return Ok(());
        }
        for index in self.missing() {
            self.start_with(&programs, index)?;
        }
        self.wait_until_whole()?;
        fs::write(self.whole_file(), "")?;
        Ok(())
    }

    /// Starts one node, at the ports and with the data it had, unless it runs. Does not wait.
    pub fn start_node(&self, index: usize) -> anyhow::Result<()> {
        self.start_with(&Programs::find()?, index)
    }

    /// Kills one node, as a crash would. Says whether it ran.
    pub fn kill(&self, index: usize) -> anyhow::Result<bool> {
        self.daemon(index).kill()
    }

    /// Stops every node. Says whether any ran.
    pub fn stop(&self) -> anyhow::Result<bool> {
        // All at once: those that are left would start to elect new leaders.
        for daemon in self.daemons() {
            daemon.ask_to_stop();
        }
        let mut ran = false;
        for daemon in self.daemons() {
            ran |= daemon.stop()?;
        }
        Ok(ran)
    }

    /// Returns how many nodes and partitions are well.
    pub fn health(&self) -> anyhow::Result<Health> {
        let answering = self.answering()?;
        // It fails as long as no node answers, and that is an answer.
        let view = match answering.contains(&true) {
            true => self.view().unwrap_or_default(),
            false => View::default(),
        };
        Ok(view.health(&answering, self.setup.layout.partitions()))
    }

    /// Who leads what.
    pub fn partitions(&self) -> anyhow::Result<Vec<Partition>> {
        Ok(self.view()?.partitions)
    }

    /// What the nodes that run have for a setting, such as `default-retry-policy.max-attempts`: one value a node.
    pub fn setting(&self, key: &str) -> anyhow::Result<Vec<String>> {
        let rows = self.query("SELECT key, value FROM config")?;
        let rows = rows.as_array().context("restatectl did not print rows")?;
        let values = rows.iter().filter(|row| row["key"] == key);
        Ok(values
            .filter_map(|row| Some(row["value"].as_str()?.to_owned()))
            .collect())
    }

    /// Waits until every node is well and every partition has a leader, and stays so: leaders move once more when a node
    /// has come back. Says how long it took.
    pub fn wait_until_whole(&self) -> anyhow::Result<Duration> {
        let steady = match self.setup.layout {
            Layout::Single => Duration::ZERO,
            Layout::Cluster => STEADY,
        };
        let check = || match self.missing().first() {
            Some(index) => bail!(
                "{} has ended; {}",
                node_name(*index),
                self.daemon(*index).last_words()
            ),
            None => Ok(()),
        };
        self.wait_until("whole", steady, Health::is_whole, check)
    }

    /// Waits until every partition has a leader on the nodes that are left. Says how long it took.
    pub fn wait_until_led(&self) -> anyhow::Result<Duration> {
        self.wait_until("led", Duration::ZERO, Health::all_led, || Ok(()))
    }

    /// Gives every partition another leader, where another replica is well, and waits for it. Says how many moved.
    /// They stay there, as long as the node does, until [`Self::release_leaders`].
    pub fn transfer_leaders(&self) -> anyhow::Result<usize> {
        let answering = self.answering()?;
        let view = self.view()?;
        let mut wanted = Vec::new();
        for partition in &view.partitions {
            let leader = partition.leader;
            let mut others = partition.replicas.iter().copied();
            let other = others.find(|node| Some(*node) != leader && answering[*node]);
            wanted.extend(other.map(|other| (partition.number, other)));
        }
        for node in 0..self.count() {
            let moved = wanted.iter().filter(|(_, to)| *to == node);
            let numbers: Vec<String> = moved.map(|(number, _)| number.to_string()).collect();
            if let (Some(to), false) = (view.number_of(node), numbers.is_empty()) {
                let mut pin = self.control()?;
                pin.args(["--yes", "partitions", "leadership", "pin", "--node", to]);
                output_of(pin.args(numbers))?;
            }
        }
        self.wait_for_leaders(&wanted)?;
        Ok(wanted.len())
    }

    /// Lets leaders be where Restate would have them. It moves them back by itself, soon.
    pub fn release_leaders(&self) -> anyhow::Result<()> {
        let all = format!("0-{}", self.setup.layout.partitions() - 1);
        let mut unpin = self.control()?;
        unpin.args(["--yes", "partitions", "leadership", "unpin", &all]);
        output_of(&mut unpin).map(drop)
    }

    fn wait_for_leaders(&self, wanted: &[(u64, usize)]) -> anyhow::Result<()> {
        let asked = Instant::now();
        loop {
            let found = self.partitions()?;
            let leads = |(number, node): &(u64, usize)| {
                let mut found = found.iter();
                found.any(|found| found.number == *number && found.leader == Some(*node))
            };
            if wanted.iter().all(leads) {
                return Ok(());
            }
            if asked.elapsed() > PATIENCE {
                bail!("leaders are not where they were sent: {found:?}, not {wanted:?}");
            }
            sleep(PAUSE);
        }
    }

    fn wait_until(
        &self,
        what: &str,
        steady: Duration,
        enough: impl Fn(&Health) -> bool,
        check: impl Fn() -> anyhow::Result<()>,
    ) -> anyhow::Result<Duration> {
        let (asked, mut told) = (Instant::now(), Instant::now());
        let mut since = None;
        loop {
            let health = self.health()?;
            if enough(&health) {
                let since = *since.get_or_insert_with(Instant::now);
                if since.elapsed() >= steady {
                    return Ok(since - asked);
                }
            } else {
                since = None;
            }
            check()?;
            if asked.elapsed() > PATIENCE {
                bail!(
                    "it is not {what} after {} s: {health}; {}",
                    PATIENCE.as_secs(),
                    self.daemon(0).last_words()
                );
            }
            if told.elapsed() > TELL {
                told = Instant::now();
                eprintln!("{}: {health}", self.name);
            }
            sleep(PAUSE);
        }
    }

    /// Folders and ports. What runs is left alone; what was never whole, or lost a port to somebody, begins anew.
    fn make(&self) -> anyhow::Result<()> {
        let ports = self.ports();
        if self.daemons().any(|daemon| daemon.runs()) {
            if ports.is_some() {
                return Ok(());
            }
            // Without its ports nobody finds it.
            self.stop()?;
        }
        let free = |ports: &Vec<NodePorts>| {
            ports
                .iter()
                .all(|node| node.all().map(is_free) == [true; 3])
        };
        if !(self.whole_file().exists() && ports.is_some_and(|ports| free(&ports))) {
            remove_folder(&self.folder)?;
        }
        for index in 0..self.count() {
            fs::create_dir_all(&self.daemon(index).folder)?;
        }
        if self.ports().is_none() {
            fs::write(self.ports_file(), write_ports(&self.choose_ports()?))?;
        }
        Ok(())
    }

    fn choose_ports(&self) -> anyhow::Result<Vec<NodePorts>> {
        let count = self.count();
        let ports = match self.life {
            Life::Own => {
                let [fabric, ingress, admin] = self.setup.layout.first_ports();
                [
                    free_ports(fabric, count)?,
                    free_ports(ingress, count)?,
                    free_ports(admin, count)?,
                ]
            }
            Life::WithUs => {
                let ports = free_ports(of_this_process(PRIVATE_PORTS), 3 * count)?;
                [0, 1, 2].map(|kind| ports[kind * count..][..count].to_vec())
            }
        };
        let node = |index: usize| NodePorts {
            fabric: ports[0][index],
            ingress: ports[1][index],
            admin: ports[2][index],
        };
        Ok((0..count).map(node).collect())
    }

    fn start_with(&self, programs: &Programs, index: usize) -> anyhow::Result<()> {
        let daemon = self.daemon(index);
        if daemon.runs() {
            return Ok(());
        }
        let ports = self.ports().context("it was never made")?;
        let file = daemon.folder.join("restate.toml");
        let text = render(&self.name, self.setup.layout, &ports, index);
        fs::write(&file, text)?;
        let mut command = programs.server();
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("RESTATE_") || name == "RUST_LOG" {
                command.env_remove(name);
            }
        }
        command.envs(self.setup.env.iter().cloned());
        command.arg("--no-logo").arg("--config-file").arg(&file);
        command.arg("--base-dir").arg(daemon.folder.join("data"));
        daemon.start(&mut command, self.life)
    }

    fn answering(&self) -> anyhow::Result<Vec<bool>> {
        let ports = self.ports().context("it was never started")?;
        let answers = |(index, ports): (usize, &NodePorts)| {
            self.daemon(index).runs()
                && http::is_ok(ports.admin, "/health")
                && http::is_ok(ports.ingress, "/restate/health")
        };
        Ok(ports.iter().enumerate().map(answers).collect())
    }

    fn view(&self) -> anyhow::Result<View> {
        View::new(&self.query(NODES)?, &self.query(PARTITIONS)?)
    }

    fn query(&self, query: &str) -> anyhow::Result<Json> {
        let mut command = self.control()?;
        let rows = output_of(command.args(["sql", "--json", query]))?;
        serde_json::from_str(&rows).context("restatectl did not print JSON")
    }

    /// The tool that administers nodes, which asks the nodes that run.
    fn control(&self) -> anyhow::Result<Command> {
        let programs = Programs::installed()?.context("restatectl is not installed")?;
        let ports = self.ports().context("it was never started")?;
        let addresses = ports.iter().map(|node| node.fabric_url());
        let addresses: Vec<String> = self
            .daemons()
            .zip(addresses)
            .filter_map(|(daemon, address)| daemon.runs().then_some(address))
            .collect();
        let mut command = programs.control();
        command.args(["--connect-timeout", "1000", "--request-timeout", "5000"]);
        command.arg("--address").arg(addresses.join(","));
        Ok(command)
    }

    fn count(&self) -> usize {
        self.setup.layout.nodes()
    }

    /// The nodes that do not run.
    fn missing(&self) -> Vec<usize> {
        let runs = |index: &usize| self.daemon(*index).runs();
        (0..self.count()).filter(|index| !runs(index)).collect()
    }

    fn daemons(&self) -> impl Iterator<Item = Daemon> {
        (0..self.count()).map(|index| self.daemon(index))
    }

    fn daemon(&self, index: usize) -> Daemon {
        Daemon {
            program: SERVER,
            folder: self.folder.join(node_name(index)),
        }
    }

    fn ports_file(&self) -> PathBuf {
        self.folder.join("ports")
    }

    fn ports(&self) -> Option<Vec<NodePorts>> {
        read_ports(&fs::read_to_string(self.ports_file()).ok()?, self.count())
    }

    /// Is there once everything has been well for the first time.
    fn whole_file(&self) -> PathBuf {
        self.folder.join("whole")
    }
}

impl Service for Restate {
    fn name(&self) -> &'static str {
        self.setup.layout.service_name()
    }

    fn up(&self) -> anyhow::Result<()> {
        let missing: Vec<String> = self.missing().into_iter().map(node_name).collect();
        if self.setup.layout == Layout::Cluster && !missing.is_empty() {
            let missing = missing.join(", ");
            eprintln!("{}: starting {missing} (8 to 20 s)", self.name);
        }
        self.start()
    }

    fn down(&self) -> anyhow::Result<bool> {
        self.stop()
    }

    fn status(&self) -> anyhow::Result<Status> {
        let nodes = self.nodes().unwrap_or_default();
        let member = |(daemon, node): (Daemon, Node)| Member {
            runs: daemon.runs(),
            name: node.name,
            urls: vec![("ingress", node.ingress), ("admin", node.admin)],
        };
        let members: Vec<Member> = self.daemons().zip(nodes).map(member).collect();
        let health = match members.iter().any(|member| member.runs) {
            true => Some(self.health()?),
            false => None,
        };
        Ok(Status {
            healthy: health.is_some_and(|health| health.is_whole()),
            remark: health.map(|health| health.to_string()),
            members,
        })
    }
}

impl Layout {
    fn nodes(self) -> usize {
        match self {
            Layout::Single => 1,
            Layout::Cluster => 3,
        }
    }

    /// As few as fit the cores of a small machine: each costs the server work.
    fn partitions(self) -> usize {
        match self {
            Layout::Single => 4,
            Layout::Cluster => 8,
        }
    }

    fn replication(self) -> usize {
        match self {
            Layout::Single => 1,
            Layout::Cluster => 2,
        }
    }

    fn service_name(self) -> &'static str {
        match self {
            Layout::Single => "restate",
            Layout::Cluster => "restate-cluster",
        }
    }

    /// Of fabric, ingress and admin, if they are free.
    fn first_ports(self) -> [u16; 3] {
        match self {
            Layout::Single => [25_120, 28_080, 29_070],
            Layout::Cluster => [25_121, 28_081, 29_071],
        }
    }
}

/// One that nobody else knows of, and that nothing is left of.
#[derive(Debug)]
pub struct PrivateRestate(Restate);

impl std::ops::Deref for PrivateRestate {
    type Target = Restate;

    fn deref(&self) -> &Restate {
        &self.0
    }
}

impl Drop for PrivateRestate {
    fn drop(&mut self) {
        for daemon in self.0.daemons() {
            // If it does not run there is nothing to stop.
            let _ = daemon.kill();
        }
        // What cannot be removed is among the temporary files.
        let _ = fs::remove_dir_all(&self.0.folder);
    }
}

const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(100);
/// Longer than it takes a node to hear of the others.
const STEADY: Duration = Duration::from_secs(2);
const TELL: Duration = Duration::from_secs(5);
const PRIVATE_PORTS: u16 = 23_000;
