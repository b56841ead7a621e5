//! Files that a server stores for threads: what its callers upload, and what agents leave for them.
//!
//! A state names such files relative to the folder of its thread, as `files:results`. So neither a caller nor a state can name a
//! path of the machine, and callers do not learn where the folder is.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use superstep::ThreadId;

use crate::user_folder::{Access, RelativePath, UserFolder};

/// Finds the folder with the files of a thread.
#[derive(Clone)]
pub struct ThreadFolders {
    folder_of: Arc<dyn Fn(&ThreadId) -> PathBuf + Send + Sync>,
}

impl ThreadFolders {
    /// How a state names the folder of its thread's files.
    pub const ROOT: &'static str = "files:";
    /// How a state names the folder of its thread's results.
    pub const RESULTS: &'static str = "files:results";
    /// Folder for results in the folder of a thread.
    pub const RESULTS_NAME: &'static str = "results";

    /// Creates it from the host's function. The folders need not exist.
    pub fn new(folder_of: impl Fn(&ThreadId) -> PathBuf + Send + Sync + 'static) -> Self {
        Self {
            folder_of: Arc::new(folder_of),
        }
    }

    /// Returns whether a path in a state is one of the thread's files.
    pub fn has(path: &str) -> bool {
        path.starts_with(Self::ROOT)
    }

    /// Returns the path that a state means: below the folder of its thread, or as it is.
    pub fn resolve(
        folders: Option<&Self>,
        thread: &ThreadId,
        path: &str,
    ) -> anyhow::Result<PathBuf> {
        let Some(below) = path.strip_prefix(Self::ROOT) else {
            return Ok(PathBuf::from(path));
        };
        let folders = folders.context(NO_FILES)?;
        let folder = folders.open(thread)?.path().to_owned();
        match below.is_empty() {
            true => Ok(folder),
            false => Ok(folder.join(relative(below)?.to_string())),
        }
    }

    /// Opens the folder of a thread, and creates it if it is missing.
    pub fn open(&self, thread: &ThreadId) -> anyhow::Result<UserFolder> {
        let folder = UserFolder::create_unlinked(&(self.folder_of)(thread), Access::Private);
        // The path is the host's, which callers need not know.
        folder.map_err(|error| anyhow::anyhow!("the files of the thread: {}", error.reason()))
    }

    /// Opens the folder for the results of a thread, and creates it if it is missing.
    pub fn open_results(&self, thread: &ThreadId) -> anyhow::Result<UserFolder> {
        let name = relative(Self::RESULTS_NAME)?;
        let folder = self.open(thread)?.create_folder(&name, Access::Private);
        folder.map_err(|error| anyhow::anyhow!("the results of the thread: {}", error.reason()))
    }

    /// Reads a file that a caller named. Follows no link.
    pub fn read(&self, thread: &ThreadId, name: &str, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
        let path = relative(name)?;
        let read = self.open(thread)?.read_if_present(&path, bytes_max);
        match read {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => bail!("the thread has no file `{path}`; upload it first"),
            Err(error) => bail!("the file `{path}` of the thread: {}", error.reason()),
        }
    }

    /// Checks that a caller named a folder of the thread that has files.
    pub fn check_folder(&self, thread: &ThreadId, name: &str) -> anyhow::Result<()> {
        let path = relative(name)?;
        match self.open(thread)?.folder(&path) {
            Ok(_) => Ok(()),
            Err(error) if error.is_missing() => {
                bail!("the thread has no folder `{path}`; upload files below it first")
            }
            Err(error) => bail!("the folder `{path}` of the thread: {}", error.reason()),
        }
    }
}

impl fmt::Debug for ThreadFolders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ThreadFolders")
    }
}

/// Reads a name that a caller gave: relative, without `..`, and without hidden parts.
pub fn relative(name: &str) -> anyhow::Result<RelativePath> {
    let path = RelativePath::parse(name);
    let path = path.map_err(|error| {
        anyhow::anyhow!(
            "`{}` is not a file of the thread",
            error.name.escape_debug()
        )
    })?;
    let is_hidden = name.split('/').any(|part| part.starts_with('.'));
    ensure!(
        !is_hidden && path.as_line().is_some(),
        "`{path}` is not a file of the thread"
    );
    Ok(path)
}

/// Why a state that names files of its thread cannot be used.
pub const NO_FILES: &str =
    "this program stores no files of threads; start it with a folder for them";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_callers_stay_in_the_folder_of_the_thread() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().to_owned();
        std::fs::write(base.join("secret"), "canary").unwrap();
        let folders = ThreadFolders::new(move |thread| base.join(thread.name()));
        let thread = ThreadId::new("a").unwrap();
        std::os::unix::fs::symlink(
            folder.path(),
            folders.open(&thread).unwrap().path().join("up"),
        )
        .unwrap();
        for name in [
            "",
            "/",
            "../secret",
            "/etc/passwd",
            "x/../../secret",
            "./secret",
            ".hidden",
            "up/secret",
            "a\nb",
            "a\0b",
            "x//y",
        ] {
            assert!(folders.read(&thread, name, 100).is_err(), "{name:?}");
            assert!(folders.check_folder(&thread, name).is_err(), "{name:?}");
            let named = format!("files:{name}");
            let resolved = ThreadFolders::resolve(Some(&folders), &thread, &named);
            let is_inside = |path: PathBuf| path.starts_with(folder.path().join("a"));
            assert!(
                resolved.is_err() || resolved.is_ok_and(is_inside),
                "{name:?}"
            );
        }
        assert!(folders.check_folder(&thread, "up").is_err());
        let results = folders.open_results(&thread).unwrap();
        assert_eq!(results.path(), folder.path().join("a/results"));
        assert!(ThreadFolders::resolve(None, &thread, "files:x").is_err());
        let as_it_is = ThreadFolders::resolve(None, &thread, "/notes").unwrap();
        assert_eq!(as_it_is, PathBuf::from("/notes"));
        let why = folders
            .read(&thread, "missing", 100)
            .unwrap_err()
            .to_string();
        assert!(!why.contains(folder.path().to_str().unwrap()), "{why}");
    }
}
