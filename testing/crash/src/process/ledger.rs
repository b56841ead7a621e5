//! The reader's side of the ledger: what the workers reported, in the order it came.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use super::child::Process;

/// The ledger's process and a way to it.
#[derive(Debug)]
pub(super) struct Ledger {
    address: String,
    stream: BufReader<TcpStream>,
    read: u64,
    _process: Process,
}

/// A line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// In milliseconds since 1970.
    pub(super) at: u64,
    pub(super) thread: String,
    pub(super) pid: u32,
    pub(super) phase: String,
    pub(super) key: String,
    pub(super) detail: u64,
}

impl Ledger {
    pub(super) fn start(worker: &Path) -> anyhow::Result<Self> {
        let process = Process::spawn(Command::new(worker).arg("ledger"))?;
        let address = process.line().context("the ledger did not start")?;
        let stream = TcpStream::connect(&address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            address,
            stream: BufReader::new(stream),
            read: 0,
            _process: process,
        })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// What came since the last call.
    pub(super) fn news(&mut self) -> anyhow::Result<Vec<Line>> {
        let lines = self.ask(&format!("read {}", self.read))?;
        self.read += lines.len() as u64;
        lines.iter().map(|line| Line::parse(line)).collect()
    }

    /// Waits until no worker is connected, so that nothing of a killed one is still on its way.
    pub(super) fn settle(&mut self) -> anyhow::Result<()> {
        self.ask("settle").map(drop)
    }

    fn ask(&mut self, question: &str) -> anyhow::Result<Vec<String>> {
        self.stream
            .get_mut()
            .write_all(format!("{question}\n").as_bytes())?;
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                bail!("the ledger is gone");
            }
            match line.trim_end() {
                "." => return Ok(lines),
                text => lines.push(text.to_owned()),
            }
        }
    }
}

impl Line {
    fn parse(line: &str) -> anyhow::Result<Self> {
        let words: Vec<&str> = line.splitn(7, ' ').collect();
        let [_, at, thread, pid, phase, detail, key] = words.as_slice() else {
            bail!("`{line}` is not a line of the ledger");
        };
        Ok(Self {
            at: at.parse()?,
            thread: (*thread).to_owned(),
            pid: pid.parse()?,
            phase: (*phase).to_owned(),
            key: (*key).to_owned(),
            detail: detail.parse()?,
        })
    }
}

impl Line {
    /// Whether a node of the thread reported it, which only an owner of the thread runs.
    pub(super) fn is_of_a_node(&self) -> bool {
        ["held", "body", "start", "start-after-told", "acked"].contains(&self.phase.as_str())
    }
}

/// Effects that were started although they had been acknowledged before.
pub(super) fn acknowledged_again(lines: &[Line]) -> Vec<String> {
    let mut acked = BTreeSet::new();
    let mut again = Vec::new();
    for line in lines {
        match line.phase.as_str() {
            "acked" => drop(acked.insert(line.key.as_str())),
            "start" if acked.contains(line.key.as_str()) => again.push(line.key.clone()),
            _ => {}
        }
    }
    again
}

#[test]
fn only_what_was_acknowledged_before_counts_as_again() {
    let line = |phase: &str, key: &str| Line {
        at: 0,
        thread: "t".to_owned(),
        pid: 1,
        phase: phase.to_owned(),
        key: key.to_owned(),
        detail: 0,
    };
    let lines = [
        line("start", "a"),
        line("start", "a"),
        line("acked", "a"),
        line("start", "b"),
    ];
    assert!(acknowledged_again(&lines).is_empty());
    let again = [lines.as_slice(), &[line("start", "a")]].concat();
    assert_eq!(acknowledged_again(&again), ["a"]);
}
