//! Files that belong to a thread but are not in its log, such as workbooks. Copies and exports of a thread include them.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use archie_agent::user_folder::{Access, EntryKind, RelativePath, UserFolder};
use superstep::ThreadId;

use crate::app::App;

/// Returns the folder with a thread's files; `None` if the agent has no files or the folder does not exist.
pub(super) fn of(app: &App, agent: &str, thread: &ThreadId) -> anyhow::Result<Option<PathBuf>> {
    let folder = app.agent(agent)?.ui().files(thread);
    Ok(folder.filter(|folder| folder.is_dir()))
}

/// Returns the folder for a thread's files next to an exported thread: `FILE.files`.
pub(super) fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".files");
    name.into()
}

/// Copies the files of a folder, readable by their owner only. Skips links, pipes and subfolders: files that came with an
/// archive are not trusted.
pub(crate) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
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

/// Deletes a folder if it exists.
pub(crate) fn remove(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} cannot be deleted", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Maximum number of files per thread.
const FILES_MAX: usize = 100_000;

/// Maximum size of a file, in bytes.
const FILE_BYTES_MAX: u64 = 512 << 20;
