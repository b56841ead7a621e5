//! The same program with workers that a Restate cluster calls: one is killed in the middle, another goes on.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use free_ports::free_port;
use serde_json::json;
use superstep_conformance::services;

use crate::kit::{Ran, Workdir};

/// A database of its own.
pub(crate) struct Database {
    name: String,
    server: String,
}

impl Database {
    pub(crate) fn new() -> Self {
        let database = Self {
            name: format!("archie_{}", uuid::Uuid::now_v7().simple()),
            server: services::url("postgres"),
        };
        database.psql(&format!("CREATE DATABASE {}", database.name));
        database
    }

    pub(crate) fn store(&self) -> String {
        let (server, _) = self.server.rsplit_once('/').unwrap();
        format!("{server}/{}", self.name)
    }

    fn psql(&self, statement: &str) {
        let told = Command::new("psql")
            .args([self.server.trim(), "--quiet", "--command", statement])
            .output()
            .unwrap();
        assert!(told.status.success(), "{told:?}");
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.psql(&format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

/// A database, and the turn of this test: Restate has one worker at a time under a service's name.
pub(crate) struct Place {
    database: Database,
    _turn: File,
}

impl Place {
    pub(crate) fn new() -> Self {
        let turn = File::create(std::env::temp_dir().join("superstep-restate-tests.lock")).unwrap();
        turn.lock().unwrap();
        Self {
            database: Database::new(),
            _turn: turn,
        }
    }

    pub(crate) fn store(&self) -> String {
        self.database.store()
    }
}

struct Worker(Child);

impl Worker {
    fn start(workdir: &Workdir, place: &Place, listen: &str) -> Self {
        let admin = services::address("restate", "admin");
        let mut command = workdir.command();
        command.args([
            "--store",
            &place.store(),
            "worker",
            "--listen",
            listen,
            "--register",
            &admin,
        ]);
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut worker = Self(child);
        let said = worker.0.stdout.take().unwrap();
        let known = std::io::BufRead::lines(std::io::BufReader::new(said))
            .map_while(Result::ok)
            .any(|line| line.ends_with("knows"));
        assert!(known, "Restate does not know the worker");
        worker
    }

    fn kill_9(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program with workers: a desk, a database, an address.
struct Cluster {
    workdir: Workdir,
    place: Place,
    listen: String,
}

impl Cluster {
    fn of(workdir: Workdir) -> Self {
        Self {
            workdir,
            place: Place::new(),
            listen: format!("127.0.0.1:{}", free_port()),
        }
    }

    fn worker(&self) -> Worker {
        Worker::start(&self.workdir, &self.place, &self.listen)
    }

    fn run(&self, args: &[&str], input: &str) -> Ran {
        let store = self.place.store();
        let engine = format!("restate:{}", services::address("restate", "ingress"));
        let mut all = vec!["--store", &store, "--engine", &engine];
        all.extend(args);
        self.workdir.run(&all, input)
    }

    /// Runs it with a worker that dies in it, and another that comes up then.
    fn run_through_a_death(&self, args: &[&str], input: &str) -> Ran {
        std::thread::scope(|scope| {
            let mut worker = self.worker();
            let running = scope.spawn(|| self.run(args, input));
            worker.0.wait().unwrap();
            let _other = self.worker();
            running.join().unwrap()
        })
    }
}

#[test]
fn a_worker_is_killed_in_a_model_call_and_another_goes_on() {
    let cluster = Cluster::of(Workdir::scripted(&json!([
        {"at": "initial", "text": "Is ordering required?"},
        {"at": "followup", "expect": "yes, per customer", "timeout": true},
        {"at": "followup", "expect": "yes, per customer", "text": "I propose one queue. Approved?"},
        {"at": "final", "json": {
            "assumptions": [], "components": [{"claim": "A queue."}], "alternatives": [], "decisions": [], "open_questions": []
        }}
    ])));
    let workdir = &cluster.workdir;
    let worker = cluster.worker();
    let analyze = [
        "analyze",
        "--query",
        "Choose a queue",
        "--inputs",
        "./notes",
    ];
    let ran = cluster.run(&analyze, "");
    assert_eq!(ran.code(), Some(3), "{ran:?}");
    assert!(
        ran.out().contains("Agent: Is ordering required?"),
        "{ran:?}"
    );
    let threads = cluster.run(&["threads", "--json"], "");
    let threads: serde_json::Value = serde_json::from_str(&threads.out()).unwrap();
    let id = threads[0]["thread"].as_str().unwrap();

    std::thread::scope(|scope| {
        let answering = scope.spawn(|| cluster.run(&["resume", id], "yes, per customer\n"));
        let begun = Instant::now();
        while workdir.asked("followup") == 0 {
            assert!(begun.elapsed() < PATIENCE, "the model is not asked");
            std::thread::sleep(LOOK);
        }
        worker.kill_9();
        let _other = cluster.worker();
        let ran = answering.join().unwrap();
        assert_eq!(ran.code(), Some(3), "{ran:?}");
        assert!(
            ran.out().contains("I propose one queue. Approved?"),
            "{ran:?}"
        );
        let ran = cluster.run(&["resume", id], "SOLUTION APPROVED\n");
        assert_eq!(ran.code(), Some(0), "{ran:?}");
    });
    assert!(workdir.result().contains("A queue."));
    let asked = ["initial", "followup", "final"].map(|label| workdir.asked(label));
    assert_eq!(
        asked,
        [1, 2, 1],
        "one call more, for the one that was killed"
    );
}

/// The queue of requests, the log and the answers: nothing of it is in the database in clear, and a worker needs the key.
#[test]
fn a_cluster_with_a_key_stores_no_request_and_no_answer_in_clear() {
    let workdir = Workdir::scripted(&json!([
        {"at": "initial", "text": "Is marker-initial required?"},
        {"at": "followup", "text": "I propose one marker-proposal."}
    ]));
    let created = workdir.run(&["encryption", "create-key", "archie.key"], "");
    assert_eq!(created.code(), Some(0), "{created:?}");
    let file = workdir.path("archie.key").display().to_string();
    let workdir = workdir.with_environment("ARCHIE_ENCRYPTION_KEY_FILE", &file);
    let cluster = Cluster::of(workdir);
    let worker = cluster.worker();
    let query = [
        "analyze",
        "--query",
        "Choose a marker-queue",
        "--inputs",
        "./notes",
    ];
    let ran = cluster.run(&query, "marker-answer\n");
    assert_eq!(ran.code(), Some(3), "{ran:?}");
    assert!(ran.out().contains("one marker-proposal"), "{ran:?}");
    let dump = Command::new("pg_dump")
        .arg(cluster.place.store())
        .output()
        .unwrap();
    assert!(dump.status.success(), "{dump:?}");
    let dump = String::from_utf8_lossy(&dump.stdout);
    let hex: String = "marker-"
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let listed = cluster.run(&["encryption", "list"], "");
    assert!(listed.out().contains("1 data key"), "{listed:?}");
    assert!(!dump.contains("marker-") && !dump.contains(&hex));
    drop(worker);
    let mut command = cluster.workdir.command();
    command.env_remove("ARCHIE_ENCRYPTION_KEY_FILE");
    command.args([
        "--store",
        &cluster.place.store(),
        "worker",
        "--listen",
        &cluster.listen,
    ]);
    let refused = Ran::of(command, "");
    assert_eq!(refused.code(), Some(1), "{refused:?}");
    assert!(
        refused.err().contains("this database is encrypted"),
        "{refused:?}"
    );
}

#[test]
fn docs_goes_on_when_its_worker_dies_in_a_refinement() {
    let (workdir, args) = crate::docs::killed_in_a_refinement();
    let cluster = Cluster::of(workdir);
    let ran = cluster.run_through_a_death(&args, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(ran.out().contains("62 → Q4 → 74 → Q3 → 85"), "{ran:?}");
    let asked = ["InitialAnalysis", "Refinement-1", "Refinement-2"];
    let asked = asked.map(|call| cluster.workdir.asked(&format!("file-structure-{call}")));
    assert_eq!(
        asked,
        [1, 2, 1],
        "one call more, for the one that was killed"
    );
}

#[test]
fn sheet_goes_on_when_its_worker_dies_in_a_plan() {
    let (workdir, args) = crate::sheet::killed_in_a_plan();
    let cluster = Cluster::of(workdir);
    let ran = cluster.run_through_a_death(&args, "y\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(cluster.workdir.path("out/workbook_new.xlsx").exists());
    assert_eq!(
        cluster.workdir.asked("informer_node"),
        1,
        "what was done is not done again"
    );
}

#[test]
fn of_three_who_approve_at_once_on_a_cluster_one_is_first() {
    let cluster = Cluster::of(crate::mail::with_one_approval());
    let _worker = cluster.worker();
    let (store, engine) = (
        cluster.place.store(),
        format!("restate:{}", services::address("restate", "ingress")),
    );
    let ran = cluster.run(&["mail", "ingest", "./mbox"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    crate::at_once::three_approve(&cluster.workdir, &["--store", &store, "--engine", &engine]);
}

/// Neither the database nor the cluster is asked for anything first: neither is there.
#[test]
fn a_worker_that_everybody_can_call_does_not_start() {
    let workdir = Workdir::scripted(&json!([]));
    let store = ["--store", "postgres://nobody@127.0.0.1:9/nothing"];
    let listen = format!("0.0.0.0:{}", free_port());
    let ran = workdir.run(&[&store[..], &["worker", "--listen", &listen]].concat(), "");
    assert_eq!(ran.code(), Some(2), "{ran:?}");
    assert!(
        ran.err().contains("--identity-key publickeyv1_") && ran.err().contains(&listen),
        "{ran:?}"
    );
    // With a word for it, the worker comes as far as the database.
    let anyway = ["worker", "--listen", &listen, "--insecure-no-identity-key"];
    let ran = workdir.run(&[&store[..], &anyway].concat(), "");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
}

/// With 128 descriptors and 140 connections that say nothing, whoever asks is still answered, and the processor is idle.
#[cfg(target_os = "linux")]
#[test]
fn the_operations_port_answers_while_others_hold_connections_open() {
    use std::net::{SocketAddr, TcpStream};

    let workdir = Workdir::scripted(&json!([]));
    let place = Place::new();
    let port = free_port();
    let (listen, operations) = (
        format!("127.0.0.1:{}", free_port()),
        format!("127.0.0.1:{port}"),
    );
    let archie = workdir.command();
    let mut command = Command::new("prlimit");
    command
        .args(["--nofile=128", "--"])
        .arg(archie.get_program());
    for (name, value) in archie.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(["--store", &place.store(), "worker", "--listen", &listen]);
    command.args(["--operations", &operations]);
    let worker = Worker(command.stdout(Stdio::null()).spawn().unwrap());
    let address: SocketAddr = operations.parse().unwrap();
    let begun = Instant::now();
    while get(address, "/ready").is_none() {
        assert!(begun.elapsed() < PATIENCE, "the worker does not come up");
        std::thread::sleep(LOOK);
    }

    let open: Vec<_> = (0..140)
        .map(|_| TcpStream::connect_timeout(&address, Duration::from_secs(1)).unwrap())
        .collect();
    let used_before = processor_time(worker.0.id());
    let watched = Instant::now();
    for _ in 0..10 {
        let said = get(address, "/ready");
        assert_eq!(said.as_deref(), Some("200"), "with {} open", open.len());
        std::thread::sleep(Duration::from_millis(100));
    }
    let used = processor_time(worker.0.id()) - used_before;
    assert!(
        used < watched.elapsed() / 2,
        "{used:?} of {:?} were spent",
        watched.elapsed()
    );
}

/// The status of a page, within a second.
#[cfg(target_os = "linux")]
fn get(address: std::net::SocketAddr, path: &str) -> Option<String> {
    use std::io::{Read, Write};
    let second = Duration::from_secs(1);
    let mut stream = std::net::TcpStream::connect_timeout(&address, second).ok()?;
    stream.set_read_timeout(Some(second)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").ok()?;
    let mut start = [0; 12];
    stream.read_exact(&mut start).ok()?;
    String::from_utf8(start[9..].to_vec()).ok()
}

/// What a process has used of the processor, in ticks of a hundredth of a second.
#[cfg(target_os = "linux")]
fn processor_time(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let ticks: u64 = fields
        .split(' ')
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().unwrap())
        .sum();
    Duration::from_millis(ticks * 10)
}

const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);
