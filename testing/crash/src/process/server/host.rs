//! The process of the server: started on a store, killed, started again at the same address.

use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::process::child::Process;
use crate::process::database::Address;
use crate::process::lab::Lab;

#[derive(Debug)]
pub(super) struct Host {
    process: Process,
    store: Address,
    port: u16,
    mutant: Option<String>,
}

impl Host {
    /// Starts a server, and does not wait until it listens.
    pub(super) fn start(
        lab: &Lab,
        store: &Address,
        port: u16,
        mutant: Option<&str>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            process: spawn(lab, store, port, mutant)?,
            store: store.clone(),
            port,
            mutant: mutant.map(str::to_owned),
        })
    }

    /// Waits until it listens.
    pub(super) fn wait_until_ready(&self) -> anyhow::Result<()> {
        match self.process.line().context("the server did not start")? {
            line if line == "ready" => Ok(()),
            other => bail!("the server said `{other}`"),
        }
    }

    /// Whether it listens by now. Says so once.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.process.line_within(Duration::ZERO), Ok(Some(_)))
    }

    /// SIGKILL. Returns how the server had ended, if it had by itself.
    pub(super) fn kill(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        let ended = self.process.ended_within(Duration::ZERO)?;
        self.process.kill()?;
        Ok(ended)
    }

    /// Starts it again, after everything that the last one reported has arrived, and does not wait until it listens.
    pub(super) fn start_again(&mut self, lab: &mut Lab) -> anyhow::Result<()> {
        lab.ledger.settle()?;
        self.process = spawn(lab, &self.store, self.port, self.mutant.as_deref())?;
        Ok(())
    }
}

fn spawn(lab: &Lab, store: &Address, port: u16, mutant: Option<&str>) -> anyhow::Result<Process> {
    let mut command = lab.command("http", store, mutant);
    command.args(["--listen", &format!("127.0.0.1:{port}")]);
    command.args(["--runs", RUNS_AT_ONCE]);
    Process::spawn(&mut command)
}

/// So few that runs wait for their turn: what a kill left running is pending for a while after a restart.
const RUNS_AT_ONCE: &str = "4";
