//! What belongs to a thread and is not in its log, such as workbooks: it goes where the thread goes.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;
use superstep::ThreadId;

use crate::home::Home;
use crate::private;

/// Its folder, if the agent has one and something is there.
pub(super) fn of(home: &Home, agent: &str, thread: &ThreadId) -> anyhow::Result<Option<PathBuf>> {
    let folder = home.agent(agent)?.manner().files(thread);
    Ok(folder.filter(|folder| folder.is_dir()))
}

/// Beside an exported thread.
pub(super) fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".files");
    name.into()
}

/// Copies the files of a folder, for their owner only. A link is no file of ours.
pub(super) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let failed = || format!("{} cannot be copied to {}", from.display(), to.display());
    for entry in fs::read_dir(from).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        if entry.file_type().with_context(failed)?.is_file() {
            let bytes = fs::read(entry.path()).with_context(failed)?;
            private::write(&to.join(entry.file_name()), &bytes).with_context(failed)?;
        }
    }
    Ok(())
}

/// Deletes a folder, if it is there.
pub(super) fn remove(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} cannot be deleted", folder.display()))
        }
        _ => Ok(()),
    }
}
