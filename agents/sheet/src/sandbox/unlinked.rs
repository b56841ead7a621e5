//! Counts files that a process has deleted but still holds open: no folder lists them, but they fill the disk.
//!
//! The kernel lists such files among the open or mapped files of the process. It does not report the size of a file that is
//! mapped but no longer open, so such a file counts with the maximum file size.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Returns the size in bytes of the deleted files that a process and its children hold, or `None` if the kernel does not show
/// them.
pub(super) fn bytes(pid: u32, file_bytes_max: u64) -> Option<u64> {
    let mut files = BTreeSet::new();
    let mut total = 0;
    let mut open = vec![pid];
    let mut looked_at = 0;
    while let Some(pid) = open.pop() {
        looked_at += 1;
        let children = children(pid);
        let found = of_process(pid, file_bytes_max, &mut files);
        match (found, children.is_empty()) {
            (Some(bytes), _) => total += bytes,
            // Only the process that runs the code must be visible; its parents may belong to another user.
            (None, true) => return None,
            (None, false) => {}
        }
        if looked_at < PROCESSES_MAX {
            open.extend(children);
        }
    }
    Some(total)
}

fn of_process(pid: u32, file_bytes_max: u64, files: &mut BTreeSet<(u64, u64)>) -> Option<u64> {
    let mut total = 0;
    // A thread may have its own table of open files.
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let Ok(descriptors) = fs::read_dir(task.path().join("fd")) else {
            // The thread has ended meanwhile, or hides its files.
            match task.path().exists() {
                true => return None,
                false => continue,
            }
        };
        for descriptor in descriptors.flatten() {
            let Ok(file) = fs::metadata(descriptor.path()) else {
                continue;
            };
            let is_deleted = file.is_file() && file.nlink() == 0;
            if is_deleted && files.insert((file.dev(), file.ino())) {
                total += file.len().max(file.blocks() * 512);
            }
        }
    }
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    for line in maps.lines().filter(|line| line.ends_with(" (deleted)")) {
        let mut fields = line.split_whitespace().skip(3);
        let (device, inode) = (fields.next().unwrap_or_default(), fields.next());
        let inode: u64 = inode
            .and_then(|inode| inode.parse().ok())
            .unwrap_or_default();
        let is_memory = line.contains(" /dev/zero (deleted)");
        let is_open = files.iter().any(|(_, known)| *known == inode);
        if !is_memory && !is_open && files.insert((number(device), inode)) {
            total += file_bytes_max;
        }
    }
    Some(total)
}

/// Returns a device such as `fd:01` as one number.
fn number(device: &str) -> u64 {
    u64::from_str_radix(&device.replace(':', ""), 16).unwrap_or_default()
}

fn children(pid: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let listed = listed.unwrap_or_default();
    listed.split_whitespace().flat_map(str::parse).collect()
}

const PROCESSES_MAX: usize = 64;
