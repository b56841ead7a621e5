//! A worker process: its lines, its signals, its end. None outlives the value that holds it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
}

impl Process {
    pub(super) fn spawn(command: &mut Command) -> anyhow::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("a worker cannot be started")?;
        let stdin = child.stdin.take().context("it was piped")?;
        let stdout = child.stdout.take().context("it was piped")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            child,
            stdin,
            lines,
        })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn tell(&mut self, line: &str) -> anyhow::Result<()> {
        Ok(self.stdin.write_all(format!("{line}\n").as_bytes())?)
    }

    /// The next line it prints.
    pub(super) fn line(&self) -> anyhow::Result<String> {
        match self.lines.recv_timeout(LINE_MAX) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Disconnected) => bail!("a worker ended without a word"),
            Err(RecvTimeoutError::Timeout) => bail!("a worker said nothing for {LINE_MAX:?}"),
        }
    }

    /// The next line it prints, if it does before the time is over.
    pub(super) fn line_within(&self, time: Duration) -> anyhow::Result<Option<String>> {
        match self.lines.recv_timeout(time) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => bail!("a worker ended without a word"),
            Err(RecvTimeoutError::Timeout) => Ok(None),
        }
    }

    /// SIGTERM, and does not wait.
    pub(super) fn ask_to_end(&self) -> anyhow::Result<()> {
        self.signal(Signal::TERM)
    }

    /// How it ended, if it does before the time is over.
    pub(super) fn ended_within(&mut self, time: Duration) -> anyhow::Result<Option<ExitStatus>> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            let left = time.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(left.min(POLL));
        }
    }

    /// SIGKILL, and waits until it is gone.
    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// SIGSTOP, and waits until it stands still; false if it had ended.
    pub(super) fn freeze(&mut self) -> anyhow::Result<bool> {
        self.signal(Signal::STOP)?;
        loop {
            if self.child.try_wait()?.is_some() {
                return Ok(false);
            }
            if self.is_frozen() {
                return Ok(true);
            }
            std::thread::sleep(POLL);
        }
    }

    /// The state stands after the name, which may hold anything but is in brackets.
    fn is_frozen(&self) -> bool {
        std::fs::read_to_string(format!("/proc/{}/stat", self.id()))
            .ok()
            .and_then(|stat| {
                Some(
                    stat.rsplit_once(')')?
                        .1
                        .trim_start()
                        .starts_with(['T', 't']),
                )
            })
            .unwrap_or(false)
    }

    /// SIGCONT.
    pub(super) fn thaw(&self) -> anyhow::Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = i32::try_from(self.id())
            .ok()
            .and_then(Pid::from_raw)
            .context("a process has a number")?;
        Ok(kill_process(pid, signal)?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const POLL: Duration = Duration::from_micros(500);
/// Longer than the patience of a worker's store.
const LINE_MAX: Duration = Duration::from_secs(60);
