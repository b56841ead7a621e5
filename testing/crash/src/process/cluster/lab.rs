//! What trials on a cluster are made with: three nodes, a schema, the ledger, the worker's binary, an address that workers share.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use free_ports::free_port;
use serde_json::Value as Json;

use super::super::child::Process;
use super::super::database::{Address, Database};
use super::super::lab::build_worker;
use super::super::ledger::Ledger;
use super::super::{Backend, Plan};
use super::clients::Clients;
use super::fleet::Fleet;
use harness::workspace::output_of;
use services::restate::{Layout, PrivateRestate, Restate, Setup};

#[derive(Debug)]
pub(super) struct Lab {
    pub(super) restate: PrivateRestate,
    ledger: Ledger,
    worker: PathBuf,
    store: Address,
    /// Where the workers listen, all of them.
    address: String,
    seed: u64,
    _database: Database,
}

impl Lab {
    pub(super) fn new(name: &str, plan: &Plan) -> anyhow::Result<Self> {
        let worker = build_worker()?;
        let database = Database::new(Backend::Postgres)?;
        let store = database.fresh(1)?;
        if plan.layout == Layout::Cluster {
            eprintln!("{name}: three nodes start (6 to 30 s)");
        }
        let setup = Setup {
            layout: plan.layout,
            // So few that several connections are made, which go to both workers.
            env: vec![(
                "RESTATE_WORKER__INVOKER__HTTP2_STREAMS_PER_CONNECTION_LIMIT".to_owned(),
                "4".to_owned(),
            )],
        };
        let restate = Restate::private(name, setup)?;
        let lab = Self {
            restate,
            ledger: Ledger::start(&worker)?,
            worker,
            store,
            address: format!("127.0.0.1:{}", free_port()),
            seed: plan.seed,
            _database: database,
        };
        output_of(&mut lab.command("prepare"))?;
        Ok(lab)
    }

    /// Two workers that Restate knows of.
    pub(super) fn fleet(&self, mutant: Option<&str>) -> anyhow::Result<Fleet> {
        let mut fleet = Fleet::new(mutant.map(str::to_owned));
        fleet.start_all(self)?;
        let node = self.restate.nodes()?.remove(0);
        let worker = format!("http://{}", self.address);
        let mut register = Command::new(&self.worker);
        register.args(["register", "--admin", &node.admin, "--worker", &worker]);
        output_of(&mut register).context("Restate does not take the workers")?;
        Ok(fleet)
    }

    /// A process that speaks for many clients.
    pub(super) fn clients(&self) -> anyhow::Result<Clients> {
        let nodes = self.restate.nodes()?;
        let ingress: Vec<String> = nodes.into_iter().map(|node| node.ingress).collect();
        let mut command = self.command("clients");
        command.args(["--ingress", &ingress.join(",")]);
        Clients::spawn(&mut command)
    }

    pub(super) fn worker(&self, name: &str, version: &str, mutant: &str) -> Command {
        let mut command = self.command("worker");
        command.args(["--listen", &self.address, "--name", name]);
        command.args(["--version", version, "--mutant", mutant]);
        command
    }

    /// What the ledger and the store say of this many programs.
    pub(super) fn judge(&self, programs: u64, kills: &[String]) -> anyhow::Result<Json> {
        let mut command = self.command("judge");
        command.args(["--programs", &programs.to_string()]);
        let mut judge = Process::spawn(&mut command)?;
        for kill in kills {
            judge.tell(kill)?;
        }
        judge.tell(".")?;
        serde_json::from_str(&judge.line()?).context("the judge did not say JSON")
    }

    fn command(&self, mode: &str) -> Command {
        let mut command = Command::new(&self.worker);
        command.args([mode, "--store", self.store.as_str()]);
        command.args(["--ledger", self.ledger.address()]);
        command.args(["--seed", &self.seed.to_string()]);
        command
    }
}
