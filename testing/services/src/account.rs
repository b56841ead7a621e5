//! Who the servers run as: whoever asks, unless that is root, whom PostgreSQL refuses to serve.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use harness::workspace::output_of;

/// Who asks, and who servers run as.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    caller: u32,
}

/// A user and its group, as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ids {
    user: u32,
    group: u32,
}

impl Account {
    pub(super) fn find() -> Self {
        Self {
            caller: rustix::process::getuid().as_raw(),
        }
    }

    pub(super) fn caller(self) -> u32 {
        self.caller
    }

    pub(super) fn is_root(self) -> bool {
        self.caller == 0
    }

    /// A program that runs as the servers do, in a folder that they may enter.
    pub(super) fn command(self, program: &Path, folder: &Path) -> anyhow::Result<Command> {
        let mut command = Command::new(program);
        command.current_dir(folder).env_remove("PGDATA");
        if let Some(ids) = self.servant()? {
            command.gid(ids.group).uid(ids.user);
        }
        Ok(command)
    }

    /// Makes a folder that belongs to the servers, or checks that it does: others can write to its parent.
    pub(super) fn make_folder(self, folder: &Path) -> anyhow::Result<()> {
        let owner = self.servant()?.map_or(self.caller, |servant| servant.user);
        if !folder.exists() {
            std::fs::create_dir(folder)?;
            if let Some(ids) = self.servant()? {
                std::os::unix::fs::chown(folder, Some(ids.user), Some(ids.group))?;
            }
            std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        }
        let found = folder.symlink_metadata()?;
        if !found.is_dir() || found.uid() != owner {
            bail!(
                "{} is there and not ours; remove it or set TMPDIR",
                folder.display()
            );
        }
        Ok(())
    }

    /// Whom root lets the servers run as.
    fn servant(self) -> anyhow::Result<Option<Ids>> {
        if !self.is_root() {
            return Ok(None);
        }
        if let Ok(ids) = ids_of("postgres") {
            return Ok(Some(ids));
        }
        // The packages make `postgres`; this is for a machine that has the programs from elsewhere.
        if ids_of(SERVANT).is_err() {
            let make = ["--system", "--no-create-home", "--user-group", SERVANT];
            output_of(Command::new("useradd").args(make))?;
        }
        ids_of(SERVANT).map(Some)
    }
}

fn ids_of(name: &str) -> anyhow::Result<Ids> {
    let number = |option| -> anyhow::Result<u32> {
        let text = output_of(Command::new("id").args([option, name]))?;
        text.trim().parse().context("`id` did not print a number")
    };
    Ok(Ids {
        user: number("-u")?,
        group: number("-g")?,
    })
}

const SERVANT: &str = "superstep-services";
