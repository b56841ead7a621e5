//! What belongs to a thread and is not in its log, such as workbooks: it goes where the thread goes.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use archie_agent::user_folder::{Access, EntryKind, RelativePath, UserFolder};
use superstep::ThreadId;

use crate::app::App;

/// Its folder, if the agent has one and something is there.
pub(super) fn of(app: &App, agent: &str, thread: &ThreadId) -> anyhow::Result<Option<PathBuf>> {
    let folder = app.agent(agent)?.ui().files(thread);
    Ok(folder.filter(|folder| folder.is_dir()))
}

/// Beside an exported thread.
pub(super) fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".files");
    name.into()
}

/// Copies the files of a folder, for their owner only. What came with an archive may hold anything: a link or a pipe is no file of
/// ours.
pub(super) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let failed = || format!("{} cannot be copied to {}", from.display(), to.display());
    let Some(folder) = UserFolder::open_unlinked(from).with_context(failed)? else {
        return Ok(());
    };
    let copied = UserFolder::create_unlinked(to, Access::Private).with_context(failed)?;
    let listing = folder.entries(FILES_MAX).with_context(failed)?;
    ensure!(
        !listing.is_cut,
        "{} holds more than {FILES_MAX} files",
        from.display()
    );
    for entry in listing.entries {
        if entry.kind == EntryKind::File {
            let name = RelativePath::from(entry.name);
            let bytes = folder.read(&name, FILE_BYTES_MAX).with_context(failed)?;
            let written = copied.write(&name, &bytes, Access::Private);
            written.with_context(failed)?;
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

/// How many files a thread may have.
const FILES_MAX: usize = 100_000;

/// How large each may be.
const FILE_BYTES_MAX: u64 = 512 << 20;
