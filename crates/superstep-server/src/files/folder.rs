//! Files of threads in a folder: one subfolder for each tenant, and in it one for each thread.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use superstep::__private::lock;
use superstep::checkpoint::BoxFuture;
use superstep::{ThreadId, Timestamp};
use uuid::Uuid;

use crate::files::{ThreadFile, ThreadFileError, ThreadFilePath, ThreadFileResult, ThreadFiles};

/// Files of threads in a folder of this machine, readable by their owner only.
///
/// A file is written under a temporary name, synced and renamed, so a crash leaves the old file or the new one. Links are neither
/// followed nor listed, and files whose names begin with a dot are not reachable.
#[derive(Debug, Clone)]
pub struct FolderFiles {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    bytes_max: u64,
    files_max: usize,
    /// Held while the files of a thread are counted and changed, so that two uploads cannot pass the limit together.
    locks: [Mutex<()>; LOCKS],
}

impl FolderFiles {
    /// Uses a folder, which need not exist. A thread may have up to 10,000 files with 256 MiB in all.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self::with_limits(folder, BYTES_MAX, FILES_MAX)
    }

    /// Uses a folder, with limits on the bytes and the files of each thread.
    pub fn with_limits(folder: impl Into<PathBuf>, bytes_max: u64, files_max: usize) -> Self {
        let inner = Inner {
            folder: folder.into(),
            bytes_max,
            files_max,
            locks: std::array::from_fn(|_| Mutex::default()),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns the folder of a thread's files, for programs that work on the files themselves. It need not exist.
    pub fn folder_of(&self, thread: &ThreadId) -> PathBuf {
        self.inner.folder_of(thread)
    }

    /// Runs work on the files of a thread where it may block, alone.
    async fn alone<T: Send + 'static>(
        &self,
        thread: &ThreadId,
        work: impl FnOnce(&Inner, &ThreadId) -> ThreadFileResult<T> + Send + 'static,
    ) -> ThreadFileResult<T> {
        let (inner, thread) = (self.inner.clone(), thread.clone());
        let done = tokio::task::spawn_blocking(move || {
            let _alone = lock(inner.lock_of(&thread));
            work(&inner, &thread)
        });
        done.await.map_err(io::Error::other)?
    }
}

impl ThreadFiles for FolderFiles {
    fn write<'a>(
        &'a self,
        thread: &'a ThreadId,
        path: &'a ThreadFilePath,
        bytes: Bytes,
    ) -> BoxFuture<'a, ThreadFileResult<ThreadFile>> {
        let path = path.clone();
        Box::pin(self.alone(thread, move |inner, thread| {
            inner.write(thread, &path, &bytes)
        }))
    }

    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        path: &'a ThreadFilePath,
    ) -> BoxFuture<'a, ThreadFileResult<Option<Bytes>>> {
        let path = path.clone();
        Box::pin(self.alone(thread, move |inner, thread| inner.read(thread, &path)))
    }

    fn list<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, ThreadFileResult<Vec<ThreadFile>>> {
        Box::pin(self.alone(thread, |inner, thread| inner.list(thread)))
    }

    fn delete<'a>(
        &'a self,
        thread: &'a ThreadId,
        path: &'a ThreadFilePath,
    ) -> BoxFuture<'a, ThreadFileResult<bool>> {
        let path = path.clone();
        Box::pin(self.alone(thread, move |inner, thread| inner.delete(thread, &path)))
    }

    fn delete_all<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, ThreadFileResult<()>> {
        Box::pin(self.alone(thread, |inner, thread| {
            match fs::remove_dir_all(inner.folder_of(thread)) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
                _ => Ok(()),
            }
        }))
    }

    fn delete_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, ThreadFileResult<u64>> {
        let folder = self.inner.folder_of_tenant(tenant);
        // Any other text could lead out of the folder, and no thread has it for a tenant.
        let is_tenant = ThreadId::of_tenant(tenant, "any").is_ok();
        Box::pin(async move {
            if !is_tenant {
                return Ok(0);
            }
            let deleted = tokio::task::spawn_blocking(move || delete_folder(&folder)).await;
            Ok(deleted.map_err(io::Error::other)??)
        })
    }

    fn copy_all<'a>(
        &'a self,
        from: &'a ThreadId,
        to: &'a ThreadId,
    ) -> BoxFuture<'a, ThreadFileResult<()>> {
        Box::pin(async move {
            for file in self.list(from).await? {
                // What was listed has a path that can be read again.
                let Ok(path) = ThreadFilePath::parse(&file.path) else {
                    continue;
                };
                if let Some(bytes) = self.read(from, &path).await? {
                    self.write(to, &path, bytes).await?;
                }
            }
            Ok(())
        })
    }
}

/// Writes a capital as `=` and the small letter: on some file systems `Acme` and `acme` would be one folder.
fn without_capitals(tenant: &str) -> String {
    let mut name = String::with_capacity(tenant.len());
    for letter in tenant.chars() {
        if letter.is_ascii_uppercase() {
            name.push('=');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

impl Inner {
    // The names of tenants and threads have letters, digits, `_`, `-` and `.` only. The prefixes keep them from being empty or hidden.
    fn folder_of_tenant(&self, tenant: &str) -> PathBuf {
        self.folder
            .join(format!("tenant-{}", without_capitals(tenant)))
    }

    fn folder_of(&self, thread: &ThreadId) -> PathBuf {
        self.folder_of_tenant(thread.tenant())
            .join(format!("thread-{}", thread.name()))
    }

    fn lock_of(&self, thread: &ThreadId) -> &Mutex<()> {
        let hash = xxhash_rust::xxh3::xxh3_64(thread.to_string().as_bytes());
        &self.locks[hash as usize % LOCKS]
    }

    fn write(
        &self,
        thread: &ThreadId,
        path: &ThreadFilePath,
        bytes: &[u8],
    ) -> ThreadFileResult<ThreadFile> {
        let conflict = || ThreadFileError::Conflict {
            path: path.to_string(),
        };
        let others = self.list(thread)?;
        let others = || others.iter().filter(|file| file.path != path.as_str());
        let taken = others().map(|file| file.bytes).sum::<u64>();
        if taken.saturating_add(bytes.len() as u64) > self.bytes_max {
            let bytes_max = self.bytes_max;
            return Err(ThreadFileError::TooLarge { bytes_max });
        }
        if others().count() >= self.files_max {
            let files_max = self.files_max;
            return Err(ThreadFileError::TooMany { files_max });
        }
        let mut place = self.folder_of(thread);
        private_folders().recursive(true).create(&place)?;
        let mut parts = path.parts().peekable();
        while let Some(part) = parts.next() {
            place.push(part);
            let found = metadata_of(&place)?;
            let is_last = parts.peek().is_none();
            match found {
                None if is_last => {}
                None => private_folders().create(&place)?,
                Some(found) if is_last && found.is_file() => {}
                Some(found) if !is_last && found.is_dir() => {}
                Some(_) => return Err(conflict()),
            }
        }
        replace(&place, bytes)?;
        let written = fs::symlink_metadata(&place)?;
        Ok(file_of(path.to_string(), &written))
    }

    fn read(&self, thread: &ThreadId, path: &ThreadFilePath) -> ThreadFileResult<Option<Bytes>> {
        match self.find(thread, path)? {
            Some(place) => Ok(Some(fs::read(place)?.into())),
            None => Ok(None),
        }
    }

    fn delete(&self, thread: &ThreadId, path: &ThreadFilePath) -> ThreadFileResult<bool> {
        let Some(place) = self.find(thread, path)? else {
            return Ok(false);
        };
        fs::remove_file(&place)?;
        let root = self.folder_of(thread);
        let parents = place.ancestors().skip(1);
        for parent in parents.take_while(|parent| *parent != root) {
            // Fails for the first folder that still has files.
            if fs::remove_dir(parent).is_err() {
                break;
            }
        }
        Ok(true)
    }

    /// Returns where a file is; `None` if there is none, or if a link is on the way to it.
    fn find(&self, thread: &ThreadId, path: &ThreadFilePath) -> io::Result<Option<PathBuf>> {
        let mut place = self.folder_of(thread);
        let mut parts = path.parts().peekable();
        while let Some(part) = parts.next() {
            place.push(part);
            let is_last = parts.peek().is_none();
            let found = metadata_of(&place)?;
            let fits = |found: &Metadata| match is_last {
                true => found.is_file(),
                false => found.is_dir(),
            };
            if !found.as_ref().is_some_and(fits) {
                return Ok(None);
            }
        }
        Ok(Some(place))
    }

    fn list(&self, thread: &ThreadId) -> ThreadFileResult<Vec<ThreadFile>> {
        let mut files = Vec::new();
        let mut folders = vec![(self.folder_of(thread), String::new())];
        while let Some((folder, prefix)) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            for entry in entries {
                let entry = entry?;
                let name = entry.file_name();
                let path = name.to_str().map(|name| format!("{prefix}{name}"));
                // What has no path that callers could name is not theirs.
                let path = path.filter(|path| ThreadFilePath::parse(path).is_ok());
                // Gone since it was listed: another process may delete the thread.
                let Some(found) = metadata_of(&entry.path())? else {
                    continue;
                };
                match path {
                    Some(path) if found.is_dir() => {
                        folders.push((entry.path(), format!("{path}/")));
                    }
                    Some(path) if found.is_file() => files.push(file_of(path, &found)),
                    _ if is_abandoned(&entry.path(), &found) => fs::remove_file(entry.path())?,
                    _ => {}
                }
            }
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(files)
    }
}

/// Deletes a folder with everything in it, and returns how many files that were: none if there is no such folder. Follows no link. For
/// implementations of [`ThreadFiles::delete_tenant`].
pub fn delete_folder(folder: &Path) -> io::Result<u64> {
    let mut files = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => folders.push(entry.path()),
                false => files += 1,
            }
        }
    }
    match fs::remove_dir_all(folder) {
        // Another process wrote a file meanwhile. The caller looks again as long as there was something.
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(files.max(1)),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(files),
    }
}

/// Writes a file under a temporary name, syncs it, and renames it.
fn replace(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = place.parent().unwrap_or(Path::new("."));
    let temporary = folder.join(format!("{TEMPORARY}{}", Uuid::new_v4()));
    let written = write_synced(&temporary, bytes).and_then(|()| fs::rename(&temporary, place));
    if let Err(error) = written {
        // The error of the write counts; what cannot be removed now is removed later as abandoned.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    sync_folder(folder)
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Syncs the names in a folder. Only Unix can open a folder for it.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match cfg!(unix) {
        true => File::open(folder)?.sync_all(),
        false => Ok(()),
    }
}

fn private_folders() -> DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Returns what is at a place, without following a link; `None` if nothing is.
fn metadata_of(place: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(place) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a file is what a process that died had begun to write.
fn is_abandoned(place: &Path, found: &Metadata) -> bool {
    let name = place.file_name().and_then(|name| name.to_str());
    let is_temporary = name.is_some_and(|name| name.starts_with(TEMPORARY));
    let age = found.modified().ok().and_then(|at| at.elapsed().ok());
    is_temporary && found.is_file() && age.is_some_and(|age| age > ABANDONED_AFTER)
}

fn file_of(path: String, found: &Metadata) -> ThreadFile {
    let modified = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    ThreadFile {
        path,
        bytes: found.len(),
        modified: Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
    }
}

const BYTES_MAX: u64 = 256 << 20;
const FILES_MAX: usize = 10_000;
/// Number of locks, which threads share.
const LOCKS: usize = 64;
/// How the names of files begin that are being written. Callers cannot name them.
const TEMPORARY: &str = ".upload-";
const ABANDONED_AFTER: Duration = Duration::from_secs(60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tenant: &str, name: &str) -> ThreadId {
        ThreadId::of_tenant(tenant, name).unwrap()
    }

    fn path(text: &str) -> ThreadFilePath {
        ThreadFilePath::parse(text).unwrap()
    }

    fn names(files: &[ThreadFile]) -> Vec<&str> {
        files.iter().map(|file| file.path.as_str()).collect()
    }

    #[tokio::test]
    async fn files_belong_to_one_thread_of_one_tenant() {
        let folder = tempfile::tempdir().unwrap();
        let files = FolderFiles::new(folder.path().join("files"));
        let (own, other) = (thread("acme", "a"), thread("", "a"));
        assert_eq!(files.list(&own).await.unwrap(), []);
        for at in ["b.md", "src/a.rs", "b.md"] {
            let written = files.write(&own, &path(at), Bytes::from("one")).await;
            assert_eq!(written.unwrap().bytes, 3);
        }
        let listed = files.list(&own).await.unwrap();
        assert_eq!(names(&listed), ["b.md", "src/a.rs"]);
        assert_eq!(files.list(&other).await.unwrap(), []);
        assert_eq!(files.read(&other, &path("b.md")).await.unwrap(), None);
        files.copy_all(&own, &other).await.unwrap();
        assert!(files.delete(&own, &path("src/a.rs")).await.unwrap());
        assert!(!files.delete(&own, &path("src/a.rs")).await.unwrap());
        assert!(!files.folder_of(&own).join("src").exists());
        files.delete_all(&own).await.unwrap();
        files.delete_all(&own).await.unwrap();
        let copied = files.read(&other, &path("src/a.rs")).await.unwrap();
        assert_eq!(copied, Some(Bytes::from("one")));
    }

    #[tokio::test]
    async fn a_thread_has_a_quota() {
        let folder = tempfile::tempdir().unwrap();
        let files = FolderFiles::with_limits(folder.path(), 10, 2);
        let own = thread("", "a");
        let write = |at: &str, bytes: &str| {
            let (files, own, at) = (files.clone(), own.clone(), path(at));
            let bytes = Bytes::copy_from_slice(bytes.as_bytes());
            async move { files.write(&own, &at, bytes).await }
        };
        write("a", "12345678").await.unwrap();
        let large = write("b", "123").await.unwrap_err();
        assert!(matches!(large, ThreadFileError::TooLarge { bytes_max: 10 }));
        // The file that is replaced does not count.
        write("a", "1234567890").await.unwrap();
        write("a", "").await.unwrap();
        write("b", "1").await.unwrap();
        let many = write("c", "1").await.unwrap_err();
        assert!(matches!(many, ThreadFileError::TooMany { files_max: 2 }));
        let conflict = write("a/b", "").await;
        assert!(conflict.is_err());
        assert_eq!(names(&files.list(&own).await.unwrap()), ["a", "b"]);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn links_and_hidden_files_are_not_files_of_a_thread() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        fs::create_dir(&secret).unwrap();
        fs::write(secret.join("key"), "canary").unwrap();
        let files = FolderFiles::new(folder.path().join("files"));
        let own = thread("", "a");
        files
            .write(&own, &path("a"), Bytes::from("one"))
            .await
            .unwrap();
        let root = files.folder_of(&own);
        std::os::unix::fs::symlink(&secret, root.join("way")).unwrap();
        std::os::unix::fs::symlink(secret.join("key"), root.join("key")).unwrap();
        fs::write(root.join(".hidden"), "canary").unwrap();
        fs::write(root.join(".upload-left"), "canary").unwrap();
        assert_eq!(names(&files.list(&own).await.unwrap()), ["a"]);
        for at in ["way/key", "key"] {
            assert_eq!(files.read(&own, &path(at)).await.unwrap(), None, "{at}");
            assert!(!files.delete(&own, &path(at)).await.unwrap(), "{at}");
            let written = files.write(&own, &path(at), Bytes::from("gone")).await;
            let refused = matches!(written, Err(ThreadFileError::Conflict { .. }));
            assert!(refused, "{at}");
        }
        files.delete_all(&own).await.unwrap();
        assert_eq!(fs::read(secret.join("key")).unwrap(), b"canary");
        use std::os::unix::fs::PermissionsExt;
        files.write(&own, &path("b/c"), Bytes::new()).await.unwrap();
        let mode = |at: &str| fs::metadata(root.join(at)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("b"), mode("b/c")), (0o700, 0o600));
    }
}
