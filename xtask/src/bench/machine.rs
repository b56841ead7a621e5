//! What the figures were taken on, and with which versions. Nothing that tells whose machine it is.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value as Json, json};

use super::database::ask;
use super::findings::Findings;
use crate::services;
use crate::workspace::output_of;

/// Processor, memory, kernel, and the file system that the folder is on.
pub(super) fn described(folder: &Path) -> Json {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    json!({
        "processor": field(&read("/proc/cpuinfo"), "model name"),
        "cores": cores,
        "memory": field(&read("/proc/meminfo"), "MemTotal"),
        "file system": file_system(&read("/proc/self/mounts"), folder),
        "kernel": format!("Linux {}", release(&read("/proc/sys/kernel/osrelease"))),
        "system": field(&read("/etc/os-release").replace('=', ":"), "PRETTY_NAME"),
    })
}

/// The numbers of a kernel, without what its builder appended.
fn release(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    text[..end.unwrap_or(text.len())].trim_end_matches('.')
}

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    let (_, value) = line.split_once(':')?;
    Some(value.trim().trim_matches('"').to_owned())
}

/// The kind of the mount that is nearest above a folder.
fn file_system(mounts: &str, folder: &Path) -> Option<String> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let above = mounts.filter(|(place, _)| folder.starts_with(place));
    let (_, kind) = above.max_by_key(|(place, _)| place.len())?;
    Some(kind.to_owned())
}

/// Of everybody who took part, and of what they ran on.
pub(super) fn versions(found: &[Findings]) -> anyhow::Result<Json> {
    let mut versions = Map::new();
    for measured in found.iter().flat_map(|found| &found.measured) {
        let is_variant = measured.side.contains(',');
        if !is_variant {
            versions.insert(measured.side.to_owned(), json!(measured.version));
        }
    }
    versions.insert(
        "SQLite of ours and the floor".to_owned(),
        json!(rusqlite::version()),
    );
    let server = ask(&services::address("postgres")?, "SHOW server_version")?;
    versions.insert("PostgreSQL".to_owned(), json!(server));
    for program in ["rustc", "python3", "node"] {
        if let Ok(said) = output_of(Command::new(program).arg("--version")) {
            versions.insert(program.to_owned(), json!(said.trim()));
        }
    }
    Ok(Json::Object(versions))
}

#[test]
fn a_machine_is_told_without_its_name() {
    assert_eq!(release("6.1.0-18-cloud-of-somebody\n"), "6.1.0");
    assert_eq!(
        field("model name\t: A CPU\n", "model name").as_deref(),
        Some("A CPU")
    );
    let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n";
    assert_eq!(
        file_system(mounts, Path::new("/tmp/x")).as_deref(),
        Some("tmpfs")
    );
    assert_eq!(
        file_system(mounts, Path::new("/var")).as_deref(),
        Some("ext4")
    );
}
