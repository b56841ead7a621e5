//! The PostgreSQL server that tests share, from Debian's packages. Its data stays when it is stopped, and may be deleted
//! at any time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;

use super::account::Account;
use super::cluster::{Cluster, Stop, VERSION, programs};
use super::{Member, Places, Service, Status};
use harness::workspace::output_of;

#[derive(Debug)]
pub(super) struct Postgres {
    folder: PathBuf,
    parent: PathBuf,
    account: Account,
    cluster: Cluster,
}

impl Postgres {
    pub(super) fn new(places: &Places) -> Self {
        let folder = places.data.join("postgres");
        Self {
            cluster: Cluster::new(folder.clone(), places.account),
            folder,
            parent: places.data.clone(),
            account: places.account,
        }
    }
}

impl Service for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn up(&self) -> anyhow::Result<()> {
        if programs().is_none() {
            install(self.account)?;
        }
        self.account.make_folder(&self.parent)?;
        self.account.make_folder(&self.folder)?;
        self.cluster.make()?;
        if self.cluster.process().is_none() {
            self.cluster.start()?;
        }
        self.cluster.make_database()
    }

    fn down(&self) -> anyhow::Result<bool> {
        self.cluster.stop(Stop::Fast)
    }

    fn status(&self) -> anyhow::Result<Status> {
        let url = self.cluster.process().map(|_| self.cluster.url());
        let url = url.transpose()?;
        Ok(Status {
            healthy: url.is_some(),
            remark: None,
            members: vec![Member::with_url(self.name(), url)],
        })
    }
}

/// Installs the packages, without the cluster that they would make and start for the whole machine.
fn install(account: Account) -> anyhow::Result<()> {
    let package = format!("postgresql-{VERSION}");
    if !account.is_root() {
        bail!("install the package {package} first, or run this as root once");
    }
    eprintln!("postgres: installing {package}");
    apt(&["update", "-qq"])?;
    apt(&[
        "install",
        "-y",
        "-qq",
        "--no-install-recommends",
        "postgresql-common",
    ])?;
    let settings = Path::new(CLUSTER_SETTINGS);
    let off = settings.join("superstep.conf");
    if settings.is_dir() {
        fs::write(&off, "create_main_cluster = false\nstart_conf = 'manual'\n")?;
    }
    let installed = apt(&["install", "-y", "-qq", "--no-install-recommends", &package]);
    // Only this one installation was to go without.
    let _ = fs::remove_file(&off);
    installed
}

fn apt(args: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new("apt-get");
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    output_of(&mut command).map(drop)
}

const CLUSTER_SETTINGS: &str = "/etc/postgresql-common/createcluster.d";
