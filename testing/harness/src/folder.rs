//! Folders that are whole or not there.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context;

/// Replaces a folder by what `fill` puts into an empty one. It gets its name when it is whole, so an interrupted installation is
/// never used.
pub fn replace_folder(
    folder: &Path,
    fill: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let unfinished = folder.with_extension("unfinished");
    remove_folder(&unfinished)?;
    fs::create_dir_all(&unfinished)
        .with_context(|| format!("{} cannot be made", unfinished.display()))?;
    fill(&unfinished)?;
    remove_folder(folder)?;
    fs::rename(&unfinished, folder)?;
    Ok(())
}

/// Removes a folder if it is there.
pub fn remove_folder(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} cannot be removed", folder.display()))
        }
        _ => Ok(()),
    }
}
