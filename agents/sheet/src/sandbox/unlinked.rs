//! Files that a process has deleted and still writes to: no folder shows them, and they fill the disk all the same.
//!
//! The kernel lists them as what the process holds open or has mapped. A mapped file of which nothing is open any more does not
//! tell its size, so it counts as the largest that a file may be.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// What the deleted files of a process and of its children take, in bytes. None if the kernel does not tell.
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
            // Only what runs the code must be seen; what started it may belong to another user.
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
    // A thread may have a list of its own.
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let Ok(descriptors) = fs::read_dir(task.path().join("fd")) else {
            // It has ended meanwhile, or hides.
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

/// `fd:01` as one number.
fn number(device: &str) -> u64 {
    u64::from_str_radix(&device.replace(':', ""), 16).unwrap_or_default()
}

fn children(pid: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let listed = listed.unwrap_or_default();
    listed.split_whitespace().flat_map(str::parse).collect()
}

const PROCESSES_MAX: usize = 64;
