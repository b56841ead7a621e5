//! Reads the files of a commit with git, without letting the repository run anything.
//!
//! An untrusted repository has its own `.git/config`, which can name programs: filters, hooks, a file system monitor, remotes
//! whose transport is a command. This module uses only commands that read stored objects (`ls-tree`, `cat-file`), turns off
//! everything that could start a program or fetch something, and limits their time.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, bail};
use archie_agent::user_folder::{Access, RelativePath, UserFolder};

use super::scan::LIMITS;

/// Writes the files of a commit into an empty folder. If `root` is a subfolder of the repository, only the files below it.
pub(super) fn unpack(root: &str, commit: &str, folder: &UserFolder) -> anyhow::Result<()> {
    let mut stored = listed(root, commit)?;
    let sizes = sizes(root, &stored)?;
    let mut total = 0;
    stored.retain(|file| {
        let bytes = sizes.get(&file.object).copied();
        // git would have to fetch a missing object from a remote that the repository names.
        let Some(bytes) = bytes else {
            return false;
        };
        let is_read = bytes <= LIMITS.file_bytes_max && total + bytes <= LIMITS.total_bytes_max;
        if is_read {
            total += bytes;
        } else {
            // The scan identifies a file over the limits by its size, so a sparse file of that size is enough.
            let _ =
                above(folder, &file.path).and_then(|_| Ok(folder.write_hole(&file.path, bytes)?));
        }
        is_read
    });
    let objects: Vec<&str> = stored.iter().map(|file| &*file.object).collect();
    let mut contents = GitProcess::new(root, &["cat-file", "--batch", "--buffer"], &objects)?;
    for file in &stored {
        let (object, bytes) = header(&contents.line()?)
            .with_context(|| format!("git gives no content for `{}`", file.path))?;
        anyhow::ensure!(object == file.object, "git answers out of order");
        let content = contents.bytes(bytes)?;
        // A hand-made commit can name a path twice, or a file below a file. The first one wins.
        let Ok(()) = above(folder, &file.path) else {
            continue;
        };
        let _ = match file.is_link {
            true => folder.write_link(&file.path, &content),
            false => folder.write_scratch(&file.path, &content),
        };
    }
    contents.end()
}

fn above(folder: &UserFolder, path: &RelativePath) -> anyhow::Result<()> {
    if let Some((above, _)) = path.split_last() {
        folder.create_folder(&above, Access::Private)?;
    }
    Ok(())
}

/// One file of a commit.
struct CommittedFile {
    path: RelativePath,
    object: String,
    is_link: bool,
}

fn listed(root: &str, commit: &str) -> anyhow::Result<Vec<CommittedFile>> {
    let mut asked = GitProcess::new(root, &["ls-tree", "-r", "-z", commit], &[])?;
    let mut stored = Vec::new();
    while let Some(line) = asked.until(0)? {
        let line = String::from_utf8_lossy(&line).into_owned();
        let Some((about, path)) = line.split_once('\t') else {
            bail!(
                "git says `{}`, which is not understood",
                line.escape_debug()
            );
        };
        let mut about = about.split(' ');
        let (mode, _, object) = (about.next(), about.next(), about.next());
        let is_link = match mode {
            Some("120000") => true,
            Some("100644" | "100755" | "100664") => false,
            // A submodule has no content in this repository.
            _ => continue,
        };
        if stored.len() as u64 >= LIMITS.entries_max {
            asked.stop();
            return Ok(stored);
        }
        // A path that leads out of the folder is skipped.
        if let (Ok(path), Some(object)) = (RelativePath::parse(path), object) {
            stored.push(CommittedFile {
                path,
                object: object.to_owned(),
                is_link,
            });
        }
    }
    asked
        .end()
        .with_context(|| format!("git knows no `{commit}`"))?;
    Ok(stored)
}

fn sizes(
    root: &str,
    stored: &[CommittedFile],
) -> anyhow::Result<std::collections::HashMap<String, u64>> {
    let objects: Vec<&str> = stored.iter().map(|file| &*file.object).collect();
    let mut asked = GitProcess::new(root, &["cat-file", "--batch-check", "--buffer"], &objects)?;
    let mut sizes = std::collections::HashMap::new();
    for _ in stored {
        if let Some((object, bytes)) = header(&asked.line()?) {
            sizes.insert(object, bytes);
        }
    }
    asked.end()?;
    Ok(sizes)
}

/// Parses `OBJECT blob SIZE`. `None` for other objects, and for `OBJECT missing`.
fn header(line: &str) -> Option<(String, u64)> {
    let mut parts = line.trim_end().split(' ');
    let (object, kind, size) = (parts.next()?, parts.next()?, parts.next()?);
    (kind == "blob").then_some(())?;
    Some((object.to_owned(), size.parse().ok()?))
}

/// A running git command, and its output.
struct GitProcess {
    answers: BufReader<std::process::ChildStdout>,
    errors: std::thread::JoinHandle<String>,
    git: Git,
}

impl GitProcess {
    fn new(root: &str, args: &[&str], objects: &[&str]) -> anyhow::Result<Self> {
        let mut command = command(Path::new(root));
        let spawned = command.args(args).spawn();
        let mut child = spawned.context("git cannot be started, which --since needs")?;
        let stdout = child.stdout.take().context("git gives nothing")?;
        let stderr = child.stderr.take().context("git gives nothing")?;
        let mut stdin = child.stdin.take().context("git takes nothing")?;
        let questions: String = objects.iter().map(|object| format!("{object}\n")).collect();
        // Writes on its own thread, because git answers while it reads. If git stops early, reading its output fails.
        std::thread::spawn(move || stdin.write_all(questions.as_bytes()));
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.take(ERROR_BYTES_MAX).read_to_end(&mut text);
            String::from_utf8_lossy(&text).trim().to_owned()
        });
        Ok(Self {
            answers: BufReader::new(stdout),
            errors,
            git: Git::watch(child),
        })
    }

    /// Reads up to this byte and returns what comes before it. `None` at the end of the output.
    fn until(&mut self, end: u8) -> anyhow::Result<Option<Vec<u8>>> {
        let mut answer = Vec::new();
        let mut limited = (&mut self.answers).take(LINE_BYTES_MAX);
        limited.read_until(end, &mut answer)?;
        Ok(match answer.pop() {
            Some(last) if last == end => Some(answer),
            Some(_) => bail!("git stopped within an answer"),
            None => None,
        })
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let line = self.until(b'\n')?;
        let line = line.with_context(|| "git stopped before its last answer")?;
        Ok(String::from_utf8_lossy(&line).into_owned())
    }

    /// Reads this many bytes and the newline after them.
    fn bytes(&mut self, count: u64) -> anyhow::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(count)? + 1];
        self.answers.read_exact(&mut bytes)?;
        bytes.pop();
        Ok(bytes)
    }

    /// Waits until git exits. Returns an error unless it succeeded.
    fn end(self) -> anyhow::Result<()> {
        drop(self.answers);
        let is_good = self.git.wait()?;
        let said = self.errors.join().unwrap_or_default();
        match is_good {
            true => Ok(()),
            false => bail!(
                "{}",
                if said.is_empty() {
                    "git failed or took too long"
                } else {
                    &said
                }
            ),
        }
    }

    fn stop(self) {
        drop(self.answers);
        let _ = self.git.wait();
    }
}

/// A process that is killed if it takes too long: the repository may hold a pipe where git expects a file.
struct Git {
    ended: mpsc::Receiver<std::io::Result<std::process::ExitStatus>>,
    is_wanted: mpsc::Sender<()>,
}

impl Git {
    fn watch(mut child: Child) -> Self {
        let (is_wanted, until) = mpsc::channel::<()>();
        let (tell, ended) = mpsc::channel();
        std::thread::spawn(move || {
            let begun = std::time::Instant::now();
            let status = loop {
                match child.try_wait() {
                    Ok(None) if begun.elapsed() < TIME_MAX => {
                        // `wait` wakes this thread early. If the handle was dropped without waiting, kills the process.
                        if let Err(mpsc::RecvTimeoutError::Disconnected) = until.recv_timeout(LOOK)
                        {
                            let _ = child.kill();
                        }
                    }
                    Ok(None) => {
                        let _ = child.kill();
                        break child.wait();
                    }
                    Ok(Some(status)) => break Ok(status),
                    Err(error) => break Err(error),
                }
            };
            let _ = tell.send(status);
        });
        Self { ended, is_wanted }
    }

    fn wait(self) -> anyhow::Result<bool> {
        let _ = self.is_wanted.send(());
        Ok(self.ended.recv()??.success())
    }
}

fn command(root: &Path) -> Command {
    let mut command = Command::new("git");
    // Passes on only what git needs to find its programs and the user's configuration; nothing about the caller's repository.
    command.env_clear();
    for name in ["PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .env("LC_ALL", "C")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        // Fetches no missing objects and allows no transport, whatever the repository configures.
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .arg("--no-pager")
        .arg("--no-replace-objects")
        .arg("--literal-pathspecs");
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command
        .arg("-C")
        .arg(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Settings by which a repository could name a program. The command line takes precedence over the repository's configuration.
const SETTINGS: [&str; 8] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.sshCommand=false",
    "core.gitProxy=none",
    "core.askPass=false",
    "credential.helper=",
    "protocol.allow=never",
];

/// Maximum time for one git command.
const TIME_MAX: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);
const LINE_BYTES_MAX: u64 = 64 << 10;
const ERROR_BYTES_MAX: u64 = 4 << 10;
