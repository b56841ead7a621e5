//! A process of the server or of its cluster: started on a store, killed, started again at the same address.

use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::process::child::Process;
use crate::process::database::Address;
use crate::process::lab::Lab;

#[derive(Debug)]
pub(super) struct Host {
    process: Process,
    settings: HostSettings,
    says_ready: bool,
}

/// What a process is started with, every time.
#[derive(Debug, Clone)]
pub(super) struct HostSettings {
    /// The mode of the program.
    pub(super) mode: &'static str,
    pub(super) store: Address,
    pub(super) mutant: Option<String>,
    pub(super) options: Vec<String>,
    /// Whether no other process reports to the ledger.
    pub(super) is_alone: bool,
}

impl HostSettings {
    /// Returns those of a server at this port.
    pub(super) fn of_server(store: &Address, port: u16, mutant: Option<&str>) -> Self {
        let listen = format!("127.0.0.1:{port}");
        Self {
            mode: "http",
            store: store.clone(),
            mutant: mutant.map(str::to_owned),
            options: ["--listen", &listen, "--runs", RUNS_AT_ONCE]
                .map(str::to_owned)
                .to_vec(),
            is_alone: true,
        }
    }

    fn spawn(&self, lab: &Lab) -> anyhow::Result<Process> {
        let mut command = lab.command(self.mode, &self.store, self.mutant.as_deref());
        Process::spawn(command.args(&self.options))
    }
}

impl Host {
    /// Starts a server, and does not wait until it listens.
    pub(super) fn start(
        lab: &Lab,
        store: &Address,
        port: u16,
        mutant: Option<&str>,
    ) -> anyhow::Result<Self> {
        Self::start_with(lab, HostSettings::of_server(store, port, mutant))
    }

    /// Starts a process, and does not wait until it listens.
    pub(super) fn start_with(lab: &Lab, settings: HostSettings) -> anyhow::Result<Self> {
        Ok(Self {
            process: settings.spawn(lab)?,
            settings,
            says_ready: false,
        })
    }

    /// Waits until it listens.
    pub(super) fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        if self.says_ready {
            return Ok(());
        }
        let mode = self.settings.mode;
        let line = self.process.line();
        match line.with_context(|| format!("`{mode}` did not start"))? {
            line if line == "ready" => self.says_ready = true,
            other => bail!("`{mode}` said `{other}`"),
        }
        Ok(())
    }

    /// Whether it listens by now.
    pub(super) fn is_ready(&mut self) -> bool {
        self.says_ready |= matches!(self.process.line_within(Duration::ZERO), Ok(Some(_)));
        self.says_ready
    }

    /// SIGKILL. Returns how the process had ended, if it had by itself.
    pub(super) fn kill(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        let ended = self.process.ended_within(Duration::ZERO)?;
        self.process.kill()?;
        Ok(ended)
    }

    /// Starts it again, and does not wait until it listens. What the last one reported has arrived before, unless others report,
    /// too: then it takes them longer to do anything about the end of the last one than a report takes.
    pub(super) fn start_again(&mut self, lab: &mut Lab) -> anyhow::Result<()> {
        if self.settings.is_alone {
            lab.ledger.settle()?;
        }
        self.process = self.settings.spawn(lab)?;
        self.says_ready = false;
        Ok(())
    }
}

/// So few that runs wait for their turn: what a kill left running is pending for a while after a restart.
const RUNS_AT_ONCE: &str = "4";
