//! A service that is one server with one port. What differs is how it is installed, started and asked whether it is well.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::bail;

use super::daemon::Daemon;
use super::{Member, Service, Status};

pub(super) trait Server {
    fn name(&self) -> &'static str;

    fn daemon(&self) -> &Daemon;

    /// Installs what is missing. What runs of another version is stopped.
    fn prepare(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Starts it, and keeps its port.
    fn start(&self) -> anyhow::Result<()>;

    /// Whether what listens there answers as it should.
    fn is_well(&self, port: u16) -> bool;

    /// How long it may take until it is well.
    fn patience(&self) -> Duration;

    fn url(&self, port: u16) -> String;

    /// What else is told of it while it runs, each under a name.
    fn more(&self) -> anyhow::Result<Vec<(&'static str, String)>> {
        Ok(Vec::new())
    }

    fn remark(&self) -> Option<String> {
        None
    }
}

impl<T: Server> Service for T {
    fn name(&self) -> &'static str {
        Server::name(self)
    }

    fn up(&self) -> anyhow::Result<()> {
        self.prepare()?;
        let daemon = self.daemon();
        start_unless_it_runs(daemon, || self.start())?;
        wait_until(daemon, Duration::ZERO, self.patience(), |port| {
            self.is_well(port)
        })
    }

    fn down(&self) -> anyhow::Result<bool> {
        self.daemon().stop()
    }

    fn status(&self) -> anyhow::Result<Status> {
        let daemon = self.daemon();
        let port = daemon.port().ok().filter(|_| daemon.runs());
        let mut member = Member::with_url(Server::name(self), port.map(|port| self.url(port)));
        if member.runs {
            member.urls.extend(self.more()?);
        }
        Ok(Status {
            healthy: port.is_some_and(|port| self.is_well(port)),
            remark: self.remark().filter(|_| port.is_some()),
            members: vec![member],
        })
    }
}

/// Without its port nobody finds it, so that one that has none is started anew.
pub(super) fn start_unless_it_runs(
    daemon: &Daemon,
    start: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if daemon.port().is_err() {
        daemon.stop()?;
    }
    match daemon.runs() {
        true => Ok(()),
        false => start(),
    }
}

/// Until what listens at its port is well. For a moment, a process may not go by the name yet that it is looked for by.
pub(super) fn wait_until(
    daemon: &Daemon,
    moment: Duration,
    patience: Duration,
    is_well: impl Fn(u16) -> bool,
) -> anyhow::Result<()> {
    let asked = Instant::now();
    while !daemon.port().is_ok_and(&is_well) {
        let is_gone = asked.elapsed() > moment && !daemon.runs();
        if is_gone || asked.elapsed() > patience {
            bail!("it does not answer; {}", daemon.last_words());
        }
        sleep(LOOK_AGAIN);
    }
    Ok(())
}

const LOOK_AGAIN: Duration = Duration::from_millis(50);
