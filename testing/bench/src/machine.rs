//! What the figures were taken on, and with which versions. Nothing that tells whose machine it is.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value as Json, json};
use services::database::ask;

use super::findings::Findings;
use harness::workspace::{output_of, root};

/// Processor, memory, kernel, and the file system that the folder is on.
pub(super) fn described(folder: &Path) -> Json {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    json!({
        "processor": field(&read("/proc/cpuinfo"), "model name"),
        "cores": cores,
        "memory": field(&read("/proc/meminfo"), "MemTotal").and_then(|memory| gigabytes(&memory)),
        "file system": file_system(&read("/proc/self/mounts"), folder),
        "kernel": format!("Linux {}", release(&read("/proc/sys/kernel/osrelease"))),
        "system": field(&read("/etc/os-release").replace('=', ":"), "PRETTY_NAME"),
    })
}

fn gigabytes(memory: &str) -> Option<String> {
    let kilobytes: f64 = memory.strip_suffix(" kB")?.parse().ok()?;
    Some(format!("{:.0} GB", kilobytes / 1e6))
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
    versions.extend(savers()?);
    let mut note = |what: &str, version: String| versions.insert(what.to_owned(), json!(version));
    note(
        "SQLite of ours and the floor",
        rusqlite::version().to_owned(),
    );
    let server = services::address("postgres")?;
    note("PostgreSQL", ask(&server, "SHOW server_version")?);
    for program in ["rustc", "python3", "node"] {
        if let Ok(said) = output_of(Command::new(program).arg("--version")) {
            note(program, said.trim().to_owned());
        }
    }
    Ok(Json::Object(versions))
}

/// What LangGraph reaches its stores with, as the lock files have it.
fn savers() -> anyhow::Result<Map<String, Json>> {
    let read = |path: &str| fs::read_to_string(root().join("bench").join(path));
    let python = read("langgraph-python/requirements.txt")?;
    let pinned = python.lines().filter_map(|line| line.split_once("=="));
    let is_saver = |name: &str| name.contains("checkpoint-") || name == "psycopg";
    let mut savers: Map<String, Json> = pinned
        .filter(|(name, _)| is_saver(name))
        .map(|(name, version)| (name.to_owned(), json!(version)))
        .collect();
    let javascript: Json = serde_json::from_str(&read("langgraph-js/package.json")?)?;
    let wanted = javascript["dependencies"].as_object().cloned();
    savers.extend(wanted.unwrap_or_default());
    Ok(savers)
}

#[test]
fn a_machine_is_told_without_its_name() {
    assert_eq!(release("6.1.0-18-cloud-of-somebody\n"), "6.1.0");
    assert_eq!(
        field("model name\t: A CPU\n", "model name").as_deref(),
        Some("A CPU")
    );
    assert_eq!(gigabytes("24682740 kB").as_deref(), Some("25 GB"));
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
