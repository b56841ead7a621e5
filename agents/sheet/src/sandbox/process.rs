//! Runs one process from start to end and enforces its limits.

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::{Duration, interval_at};

use super::{End, Job, Outcome, unlinked};

/// Starts the process with an empty environment, and kills it at a limit or when the future is dropped.
pub(super) async fn watch(mut command: Command, job: &Job) -> std::io::Result<Outcome> {
    command
        .env_clear()
        .kill_on_drop(true)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let begun = Instant::now();
    let mut child = command.spawn()?;
    let stderr = child.stderr.take();
    let reading = async {
        match stderr {
            Some(stderr) => read_all(stderr).await,
            None => String::new(),
        }
    };
    let waiting = wait(&mut child, job, begun);
    let (said, end) = tokio::join!(reading, waiting);
    Ok(Outcome {
        end: end?,
        said,
        took: begun.elapsed(),
    })
}

async fn wait(child: &mut Child, job: &Job, begun: Instant) -> std::io::Result<End> {
    let deadline = tokio::time::Instant::from_std(begun + job.limits.time());
    let mut looks = interval_at(tokio::time::Instant::now() + LOOK, LOOK);
    let mut unseen = 0;
    let end = loop {
        tokio::select! {
            status = child.wait() => return Ok(end_of(status?)),
            () = tokio::time::sleep_until(deadline) => break End::Time,
            _ = looks.tick() => {
                let unlinked = child.id().and_then(|pid| unlinked::bytes(pid, job.limits.file_bytes));
                // Kill a process that keeps hiding its open files, but not one that is just starting or ending.
                unseen = if unlinked.is_none() { unseen + 1 } else { 0 };
                let room = job.limits.folder_bytes.checked_sub(unlinked.unwrap_or_default());
                if unseen > UNSEEN_MAX || room.is_none_or(|room| exceeds(&job.writable, room)) {
                    break End::Disk;
                }
            }
        }
    };
    child.kill().await?;
    Ok(end)
}

fn end_of(status: std::process::ExitStatus) -> End {
    use std::os::unix::process::ExitStatusExt;
    // bubblewrap reports the signal that ended its child as 128 plus the signal number.
    let signal = status.signal().or(status
        .code()
        .filter(|code| *code > 128)
        .map(|code| code - 128));
    match signal {
        Some(libc::SIGXCPU) => End::Cpu,
        Some(_) => End::Killed,
        None => End::Exited(status.code().unwrap_or_default()),
    }
}

/// Returns whether a folder holds more than `bytes_max` bytes, or too many files, which take space as well.
fn exceeds(folder: &Path, bytes_max: u64) -> bool {
    let mut folders = vec![folder.to_owned()];
    let mut bytes = 0;
    let mut files = 0_u64;
    while let Some(folder) = folders.pop() {
        // Entries that have disappeared meanwhile take no space.
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        for entry in entries.flatten() {
            files += 1;
            let Ok(found) = entry.path().symlink_metadata() else {
                continue;
            };
            match found.is_dir() {
                true => folders.push(entry.path()),
                false => bytes += found.len(),
            }
            if bytes > bytes_max || files > FILES_MAX {
                return true;
            }
        }
    }
    false
}

/// Reads everything, so that the process never blocks on a full pipe, but keeps only the beginning.
async fn read_all(mut from: impl tokio::io::AsyncRead + Unpin) -> String {
    let mut kept = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match from.read(&mut piece).await {
            Ok(0) | Err(_) => return String::from_utf8_lossy(&kept).into_owned(),
            Ok(read) if kept.len() < SAID_MAX => kept.extend_from_slice(&piece[..read]),
            Ok(_) => {}
        }
    }
}

/// Interval between two checks. Short, because what is written in between can exceed the limit.
const LOOK: Duration = Duration::from_millis(20);
const UNSEEN_MAX: u32 = 50;
const SAID_MAX: usize = 16_384;
const FILES_MAX: u64 = 10_000;
