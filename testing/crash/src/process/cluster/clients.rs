//! A process that speaks for many clients: commands go in under a tag, and what became of them comes out under it.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value as Json;

use super::super::child::Process;

#[derive(Debug)]
pub(super) struct Clients {
    process: Process,
    /// What was told of others while one was waited for.
    early: Vec<(String, Json)>,
    asked: u64,
}

impl Clients {
    pub(super) fn spawn(command: &mut Command) -> anyhow::Result<Self> {
        let process = Process::spawn(command)?;
        process.line().context("the clients did not start")?;
        Ok(Self {
            process,
            early: Vec::new(),
            asked: 0,
        })
    }

    pub(super) fn tell(&mut self, tag: &str, command: &str) -> anyhow::Result<()> {
        self.process.tell(&format!("{tag} {command}"))
    }

    /// What became of a command, if anything is known within this time.
    pub(super) fn next_within(&mut self, time: Duration) -> anyhow::Result<Option<(String, Json)>> {
        if let Some(early) = self.early.pop() {
            return Ok(Some(early));
        }
        let Some(line) = self.process.line_within(time)? else {
            return Ok(None);
        };
        let (tag, told) = line.split_once(' ').context("a client said half a line")?;
        Ok(Some((tag.to_owned(), serde_json::from_str(told)?)))
    }

    /// Gives a command and waits for what becomes of it.
    pub(super) fn ask(&mut self, command: &str) -> anyhow::Result<Json> {
        self.asked += 1;
        let tag = format!("asked{}", self.asked);
        self.tell(&tag, command)?;
        self.wait_for(&tag)
    }

    pub(super) fn wait_for(&mut self, wanted: &str) -> anyhow::Result<Json> {
        if let Some(at) = self.early.iter().position(|(tag, _)| tag == wanted) {
            return Ok(self.early.swap_remove(at).1);
        }
        let (begun, early) = (Instant::now(), std::mem::take(&mut self.early));
        let mut others = early;
        let told = loop {
            if begun.elapsed() > TOLD_MAX {
                bail!("a client waits for more than {TOLD_MAX:?}");
            }
            match self.next_within(TICK)? {
                Some((tag, told)) if tag == wanted => break told,
                Some(other) => others.push(other),
                None => {}
            }
        };
        self.early = others;
        Ok(told)
    }

    /// SIGKILL: nobody hears any more what becomes of the orders that were given.
    pub(super) fn kill(mut self) -> anyhow::Result<()> {
        self.process.kill()
    }
}

const TICK: Duration = Duration::from_millis(50);
/// Longer than a client gives an order before it says that it is stuck.
const TOLD_MAX: Duration = Duration::from_secs(200);
