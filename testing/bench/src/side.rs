//! Who takes part, and how each is started and asked for a round.
//!
//! Every side is a process that speaks the lines of `bench/rounds`: ours, the floor's and the peers' alike.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context;
use serde_json::Value as Json;

/// Somebody who takes part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side {
    pub(super) label: &'static str,
    pub(super) program: Program,
    /// What it is told besides what all are told.
    pub(super) settings: &'static [&'static str],
}

/// What is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    Ours,
    Floor,
    /// The worker of `bench/restate`.
    Bare,
    Python,
    JavaScript,
    AdkGraph,
    GraphFlow,
    /// LangGraph's server, which is called over HTTP and does no rounds.
    AgentServer,
    /// Aegra, called over HTTP as well.
    Aegra,
}

const fn side(label: &'static str, program: Program, settings: &'static [&'static str]) -> Side {
    Side {
        label,
        program,
        settings,
    }
}

/// Ours, measured under circumstances that the label names.
pub(super) const fn ours_with(label: &'static str) -> Side {
    side(label, Program::Ours, &[])
}

pub(super) const OURS: Side = side("Superstep", Program::Ours, &[]);

pub(super) const ONE_ROW: Side = side(
    "floor, one row",
    Program::Floor,
    &["rows=one", "connections=1"],
);
pub(super) const SAME_ROWS: Side = side(
    "floor, same rows",
    Program::Floor,
    &["rows=same", "connections=1"],
);
pub(super) const ONE_ROW_64: Side = side(
    "floor, one row, 64 connections",
    Program::Floor,
    &["rows=one", "connections=64"],
);
pub(super) const SAME_ROWS_64: Side = side(
    "floor, same rows, 64 connections",
    Program::Floor,
    &["rows=same", "connections=64"],
);
pub(super) const ONE_ROW_16: Side = side(
    "floor, one row, 16 connections",
    Program::Floor,
    &["rows=one", "connections=16"],
);
pub(super) const SAME_ROWS_16: Side = side(
    "floor, same rows, 16 connections",
    Program::Floor,
    &["rows=same", "connections=16"],
);

pub(super) const BARE_SEGMENT: Side = side("bare, one durable run", Program::Bare, &[]);
pub(super) const BARE_STEPS: Side = side("bare, a durable run a step", Program::Bare, &[]);
pub(super) const BARE_CALLS: Side = side("bare, calls between two runs", Program::Bare, &[]);

pub(super) const PYTHON: Side = side("LangGraph Python", Program::Python, &[]);
pub(super) const PYTHON_SYNC: Side = side(
    "LangGraph Python, sync",
    Program::Python,
    &["durability=sync"],
);
pub(super) const PYTHON_DELTA: Side = side(
    "LangGraph Python, DeltaChannel",
    Program::Python,
    &["channel=delta"],
);
pub(super) const JAVASCRIPT: Side = side("LangGraph JS", Program::JavaScript, &[]);
pub(super) const JAVASCRIPT_SYNC: Side = side(
    "LangGraph JS, sync",
    Program::JavaScript,
    &["durability=sync"],
);
pub(super) const ADK_GRAPH: Side = side("adk-graph", Program::AdkGraph, &[]);
pub(super) const GRAPH_FLOW: Side = side("graph-flow", Program::GraphFlow, &[]);

/// The driver below our server, called in the process that runs it.
pub(super) const BARE_DRIVER: Side = side("bare driver, in process", Program::Ours, &[]);
pub(super) const AGENT_SERVER: Side = side(
    "LangGraph Agent Server (in memory)",
    Program::AgentServer,
    &[],
);
pub(super) const AEGRA: Side = side("Aegra", Program::Aegra, &[]);

impl Side {
    /// Whether it writes the rows that ours writes, and so needs our tables.
    pub(super) fn writes_same_rows(self) -> bool {
        self.settings.contains(&"rows=same")
    }

    /// Whether it is somebody else's work.
    pub(super) fn is_peer(self) -> bool {
        !matches!(self.program, Program::Ours | Program::Floor | Program::Bare)
    }
}

/// What one round of a side took.
#[derive(Debug, Clone)]
pub(super) struct Round {
    pub(super) units: f64,
    pub(super) wall_s: f64,
    pub(super) cpu_s: f64,
    pub(super) times_s: Vec<f64>,
    pub(super) bytes: Option<f64>,
}

/// A side that is ready. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    pub(super) version: String,
}

impl Running {
    pub(super) fn start(mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let stdin = child.stdin.take().context("it was asked for")?;
        let stdout = child.stdout.take().context("it was asked for")?;
        let mut running = Self {
            child,
            stdin,
            lines: BufReader::new(stdout).lines(),
            version: String::new(),
        };
        let ready = running.answer()?;
        running.version = ready["version"].as_str().unwrap_or_default().to_owned();
        Ok(running)
    }

    pub(super) fn round(&mut self) -> anyhow::Result<Round> {
        self.stdin.write_all(b"go\n")?;
        let answer = self.answer()?;
        let number = |name: &str| answer[name].as_f64();
        let times = answer["times_s"].as_array();
        Ok(Round {
            units: number("units").context("a round counts something")?,
            wall_s: number("wall_s").context("a round takes time")?,
            cpu_s: number("cpu_s").context("a round takes a processor")?,
            times_s: times
                .into_iter()
                .flatten()
                .filter_map(Json::as_f64)
                .collect(),
            bytes: number("bytes"),
        })
    }

    fn answer(&mut self) -> anyhow::Result<Json> {
        let line = self.lines.next().context("it ended without an answer")??;
        serde_json::from_str(&line).with_context(|| format!("it said `{line}`"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
