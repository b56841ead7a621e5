//! What somebody would try who wants out of the sandbox, each alone, against the real walls.

use std::fs;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use archie_sheet::sandbox::{Bubblewrap, End, Job, Limits, Python, Sandbox};

use super::kit::python;

/// One attempt.
struct Payload {
    name: String,
    code: String,
    /// What is to stop it.
    limit: Option<String>,
}

fn payloads() -> Vec<Payload> {
    let mut found: Vec<Payload> = Vec::new();
    for line in include_str!("payloads.py").lines() {
        match (line.strip_prefix("#: "), found.last_mut()) {
            (Some(head), _) => {
                let (name, limit) = match head.split_once(" [") {
                    Some((name, limit)) => (name, Some(limit.trim_end_matches(']').to_owned())),
                    None => (head, None),
                };
                found.push(Payload {
                    name: name.to_owned(),
                    code: String::new(),
                    limit,
                });
            }
            (None, Some(payload)) => payload.code.push_str(&format!("    {line}\n")),
            (None, None) => {}
        }
    }
    found
}

/// Before each: what it may use, and how it says that it got out.
const BEFORE: &str = "
import ctypes, json, mmap, os, re, resource, signal, socket, stat, sys, threading, time
CANARY = json.load(open('/in/canary.json'))
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def syscall(number, *args):
    if os.uname().machine != 'x86_64': return -1
    return libc.syscall(ctypes.c_long(number), *args)
def put(path, text):
    with open(path, 'w') as file: file.write(text)
def won(what):
    with open('/data/escaped', 'a') as file: file.write(f'{what}\\n')
try:
";

const AFTER: &str = "
except BaseException as error:
    with open('/data/held', 'w') as file: file.write(repr(error))
";

/// What is on the host that nobody may see, touch or reach.
struct Host {
    folder: tempfile::TempDir,
    listener: TcpListener,
}

impl Host {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("canary"), "the canary").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self { folder, listener }
    }

    fn given(&self) -> String {
        serde_json::json!({
            "file": self.folder.path().join("canary"),
            "port": self.listener.local_addr().unwrap().port(),
            "secret": secret(),
        })
        .to_string()
    }

    fn is_untouched(&self) -> bool {
        let names = fs::read_dir(self.folder.path()).unwrap().count();
        let text = fs::read_to_string(self.folder.path().join("canary")).unwrap();
        let places = ["/usr/bin", "/etc", "", "/dev", "/dev/shm"]
            .map(|folder| format!("{folder}/archie-was-here"));
        let is_clean = places.iter().all(|place| !fs::exists(place).unwrap());
        names == 1 && text == "the canary" && is_clean && self.listener.accept().is_err()
    }
}

#[tokio::test]
async fn eighty_payloads_and_no_escape() {
    let host = Host::new();
    let sandbox = Bubblewrap::new(Python::find(Some(&python())).unwrap()).unwrap();
    let payloads = payloads();
    assert!(payloads.len() >= 80, "{}", payloads.len());
    let (mut slowest, mut stopped) = (Duration::ZERO, 0);
    for payload in &payloads {
        let limits = limits(payload);
        let job = Job::new(limits).unwrap();
        job.give("canary.json", host.given().as_bytes()).unwrap();
        job.give(
            "runner.py",
            format!("{BEFORE}{}{AFTER}", payload.code).as_bytes(),
        )
        .unwrap();
        let begun = Instant::now();
        let outcome = sandbox.run(&job).await.unwrap();
        let took = begun.elapsed();
        let name = &payload.name;
        let escaped = job
            .left("escaped")
            .unwrap()
            .map(|what| String::from_utf8_lossy(&what).into_owned());
        // A shell that finds nothing to read is still behind the walls.
        let escaped = escaped.filter(|what| !what.is_empty() && !what.starts_with("uid=1000"));
        assert_eq!(escaped, None, "{name} got out: {outcome:?}");
        assert!(host.is_untouched(), "{name} touched the host");
        for left in ["workbook.xlsx", "result.json", "folder"] {
            assert_eq!(
                job.left(left).unwrap(),
                None,
                "{name}: the host would have followed `{left}`"
            );
        }
        if let Some(limit) = &payload.limit {
            let late = took.saturating_sub(Duration::from_millis(limits.time_ms));
            assert!(late < Duration::from_secs(1), "{name} went on for {took:?}");
            let held = job
                .left("held")
                .unwrap()
                .map(|held| String::from_utf8_lossy(&held).into_owned());
            let by = format!("{:?} {}", outcome.end, held.unwrap_or_default());
            assert!(
                is_stopped_by(limit, outcome.end, &by),
                "{name} was not stopped by {limit}: {by}"
            );
            slowest = slowest.max(late);
            stopped += 1;
        }
        // Nothing of it lives on.
        assert!(!is_alive(&job), "{name} is still there");
    }
    eprintln!(
        "{} payloads, 0 escapes; {stopped} stopped by a limit, at most {slowest:?} after it",
        payloads.len()
    );
}

fn limits(payload: &Payload) -> Limits {
    let base = Limits {
        time_ms: 20_000,
        cpu_s: 20,
        memory_bytes: 1 << 30,
        file_bytes: 32 << 20,
        folder_bytes: 64 << 20,
        threads: 32,
    };
    match payload.limit.as_deref() {
        Some("time") => Limits {
            time_ms: 1_500,
            ..base
        },
        _ => base,
    }
}

fn is_stopped_by(limit: &str, end: End, by: &str) -> bool {
    match limit {
        "time" => matches!(end, End::Time | End::Cpu),
        "memory" => {
            by.contains("MemoryError") || by.contains("Cannot allocate") || end == End::Killed
        }
        "disk" => end == End::Disk || by.contains("OSError"),
        other => panic!("there is no limit `{other}`"),
    }
}

/// Whether a process still has the folder of the job as its own.
fn is_alive(job: &Job) -> bool {
    let folder = job.writable.display().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| fs::read(process.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(&folder))
}

#[tokio::test]
async fn a_limit_of_the_processor_stops_what_the_clock_does_not() {
    let sandbox = Bubblewrap::new(Python::find(Some(&python())).unwrap()).unwrap();
    let job = Job::new(Limits {
        cpu_s: 1,
        ..Limits::default()
    })
    .unwrap();
    job.give("runner.py", b"while True: pass").unwrap();
    let outcome = sandbox.run(&job).await.unwrap();
    // The first process of its namespace hears only the last signal.
    assert!(matches!(outcome.end, End::Cpu | End::Killed), "{outcome:?}");
    assert!(outcome.took < Duration::from_secs(10), "{outcome:?}");
}

#[tokio::test]
async fn a_job_that_is_dropped_is_killed() {
    let sandbox = Bubblewrap::new(Python::find(Some(&python())).unwrap()).unwrap();
    let job = Job::new(Limits::default()).unwrap();
    job.give(
        "runner.py",
        b"import time\nopen('/data/begun', 'w')\ntime.sleep(1000)",
    )
    .unwrap();
    let begun = async {
        while !job.writable.join("begun").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        outcome = sandbox.run(&job) => panic!("{outcome:?}"),
        () = begun => {}
    }
    let gone = Instant::now();
    while is_alive(&job) {
        assert!(gone.elapsed() < Duration::from_secs(1), "it lives on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Something that is in the environment of whoever runs this, and in nobody else's.
fn secret() -> String {
    std::env::var("CARGO_MANIFEST_DIR").unwrap()
}
