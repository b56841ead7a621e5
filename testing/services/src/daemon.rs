//! A server as a process: one program in a folder of its own.
//!
//! It is found by looking for the program among the processes that work in that folder. There is no file with a number
//! in it that could be stale, and a stranger is never taken for ours.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

#[derive(Debug, Clone)]
pub(super) struct Daemon {
    /// The name that the system knows the process by.
    pub(super) program: &'static str,
    pub(super) folder: PathBuf,
}

/// What becomes of a server when the one that started it goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// It stays.
    Own,
    /// Control-C in the terminal stops both.
    WithUs,
}

impl Daemon {
    pub(super) fn process(&self) -> Option<Pid> {
        let folder = fs::canonicalize(&self.folder).unwrap_or_else(|_| self.folder.clone());
        // So the system calls it when somebody has removed it under a server that runs.
        let removed = PathBuf::from(format!("{} (deleted)", folder.display()));
        let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
        let ours = |process: &PathBuf| {
            // Not readable of processes that are not ours, or that have ended and are not yet collected.
            fs::read_link(process.join("cwd"))
                .is_ok_and(|found| found == folder || found == removed)
                && fs::read_to_string(process.join("comm"))
                    .is_ok_and(|name| name.trim_end() == self.program)
        };
        let found = processes.map(|entry| entry.path()).find(ours)?;
        Pid::from_raw(found.file_name()?.to_str()?.parse().ok()?)
    }

    pub(super) fn runs(&self) -> bool {
        self.process().is_some()
    }

    /// Starts it. Whether it then stays is for whoever waits for it to see.
    pub(super) fn start(&self, command: &mut Command, life: Life) -> anyhow::Result<()> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log())?;
        command.current_dir(&self.folder).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        if life == Life::Own {
            command.process_group(0);
        }
        command
            .spawn()
            .map(drop)
            .with_context(|| format!("{} cannot be started", self.program))
    }

    /// Asks it to end, and insists after a while. Says whether it ran.
    pub(super) fn stop(&self) -> anyhow::Result<bool> {
        let Some(process) = self.ask_to_stop() else {
            return Ok(false);
        };
        if self.wait_until_gone(process, PATIENCE).is_err() {
            self.kill()?;
        }
        Ok(true)
    }

    /// Asks it to end, and does not wait.
    pub(super) fn ask_to_stop(&self) -> Option<Pid> {
        let process = self.process()?;
        // If it ended meanwhile, all the better.
        let _ = kill_process(process, Signal::TERM);
        Some(process)
    }

    /// It is gone at once, as after a crash. Says whether it ran.
    pub(super) fn kill(&self) -> anyhow::Result<bool> {
        let Some(process) = self.process() else {
            return Ok(false);
        };
        kill_process(process, Signal::KILL)
            .with_context(|| format!("{} cannot be killed", self.program))?;
        self.wait_until_gone(process, PATIENCE)?;
        Ok(true)
    }

    fn wait_until_gone(&self, process: Pid, patience: Duration) -> anyhow::Result<()> {
        let asked = Instant::now();
        loop {
            // Collects it if we have started it; somebody else's is nobody to wait for.
            let _ = waitpid(Some(process), WaitOptions::NOHANG);
            if !self.runs() {
                return Ok(());
            }
            if asked.elapsed() > patience {
                bail!("{} does not end", self.program);
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// Writes down where it listens, for those who ask later.
    pub(super) fn keep_port(&self, port: u16) -> anyhow::Result<()> {
        fs::write(self.folder.join(PORT_FILE), port.to_string())?;
        Ok(())
    }

    /// Where it listens, if it was ever started.
    pub(super) fn port(&self) -> anyhow::Result<u16> {
        let text = fs::read_to_string(self.folder.join(PORT_FILE))?;
        text.trim().parse().context("the port is not a number")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Where to look when it does not work, and the last it said.
    pub(super) fn last_words(&self) -> String {
        let log = self.log();
        let end = end_of(&log).unwrap_or_default();
        let lines: Vec<&str> = end.lines().collect();
        let last = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
        format!("see {}\n{}", log.display(), last.join("\n"))
    }
}

fn end_of(path: &Path) -> std::io::Result<String> {
    let mut file = fs::File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(END_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

const PORT_FILE: &str = "port";
const PATIENCE: Duration = Duration::from_secs(20);
const LINES_SHOWN: usize = 8;
const END_BYTES: u64 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(folder: &Path) -> (Daemon, Command) {
        let daemon = Daemon {
            program: "sleep",
            folder: folder.to_owned(),
        };
        let mut command = Command::new("sleep");
        command.arg("60");
        (daemon, command)
    }

    #[test]
    fn a_server_is_found_by_its_folder_and_stopped() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (daemon, mut command) = sleeper(here.path());
        let (stranger, _) = sleeper(there.path());
        assert!(!daemon.stop().unwrap());
        daemon.start(&mut command, Life::WithUs).unwrap();
        assert!(daemon.runs());
        assert!(!stranger.runs());
        assert!(daemon.stop().unwrap());
        assert!(!daemon.runs());
    }

    #[test]
    fn a_server_whose_folder_is_gone_can_still_be_stopped() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("server");
        fs::create_dir(&folder).unwrap();
        let (daemon, mut command) = sleeper(&folder);
        daemon.start(&mut command, Life::WithUs).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert!(daemon.stop().unwrap());
        assert!(!daemon.runs());
    }

    #[test]
    fn a_server_that_was_killed_can_be_started_again() {
        let folder = tempfile::tempdir().unwrap();
        let (daemon, mut command) = sleeper(folder.path());
        for _ in 0..2 {
            daemon.start(&mut command, Life::WithUs).unwrap();
            assert!(daemon.kill().unwrap());
            assert!(!daemon.runs());
        }
    }
}
