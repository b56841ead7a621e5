//! The two workers: killed, started again, replaced by another version.

use anyhow::Context;

use super::super::child::Process;
use super::lab::Lab;

#[derive(Debug)]
pub(super) struct Fleet {
    workers: Vec<Worker>,
    mutant: Option<String>,
    started: u64,
}

#[derive(Debug)]
struct Worker {
    /// Its place and how many processes there were before it: `w0.3`.
    name: String,
    process: Process,
    says_ready: bool,
}

impl Fleet {
    pub(super) fn new(mutant: Option<String>) -> Self {
        Self {
            workers: Vec::new(),
            mutant,
            started: 0,
        }
    }

    pub(super) fn start_all(&mut self, lab: &Lab) -> anyhow::Result<()> {
        for place in 0..WORKERS {
            let worker = self.started(lab, place, OLD)?;
            self.workers.push(worker);
        }
        for place in 0..WORKERS {
            self.wait_until_ready(place)?;
        }
        Ok(())
    }

    /// SIGKILL, and another process in its place. Says who it was.
    pub(super) fn kill_and_start(&mut self, lab: &Lab, place: usize) -> anyhow::Result<String> {
        let name = self.kill(place)?;
        self.workers[place] = self.started(lab, place, OLD)?;
        Ok(name)
    }

    /// SIGKILL, and nobody in its place yet.
    pub(super) fn kill(&mut self, place: usize) -> anyhow::Result<String> {
        let worker = &mut self.workers[place];
        worker.process.kill()?;
        Ok(worker.name.clone())
    }

    /// A process where one was killed.
    pub(super) fn start_again(&mut self, lab: &Lab, place: usize) -> anyhow::Result<()> {
        self.workers[place] = self.started(lab, place, OLD)?;
        Ok(())
    }

    /// Each is told to stop, ends when it has put down what it was doing, and is replaced by this version.
    pub(super) fn roll(&mut self, lab: &Lab, version: &'static str) -> anyhow::Result<()> {
        for place in 0..WORKERS {
            self.wait_until_ready(place)?;
            let old = &mut self.workers[place];
            old.process.ask_to_end()?;
            let ended = old.process.ended_within(DRAIN_MAX)?;
            ended.context("a worker that was told to stop does not")?;
            self.workers[place] = self.started(lab, place, version)?;
            self.wait_until_ready(place)?;
        }
        Ok(())
    }

    fn started(&mut self, lab: &Lab, place: usize, version: &str) -> anyhow::Result<Worker> {
        let name = format!("w{place}.{}", self.started);
        self.started += 1;
        let mutant = self.mutant.as_deref().unwrap_or("none");
        let process = Process::spawn(&mut lab.worker(&name, version, mutant))?;
        Ok(Worker {
            name,
            process,
            says_ready: false,
        })
    }

    fn wait_until_ready(&mut self, place: usize) -> anyhow::Result<()> {
        let worker = &mut self.workers[place];
        if !worker.says_ready {
            worker.process.line().context("a worker did not start")?;
            worker.says_ready = true;
        }
        Ok(())
    }
}

pub(super) const WORKERS: usize = 2;
pub(super) const OLD: &str = "old";
pub(super) const NEW: &str = "new";
/// Longer than a worker gives what is under way.
const DRAIN_MAX: std::time::Duration = std::time::Duration::from_secs(30);
