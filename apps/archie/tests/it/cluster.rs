//! The same program with workers that a Restate cluster calls: one is killed in the middle, another goes on.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use free_ports::free_port;
use serde_json::json;
use superstep_conformance::services;

use crate::kit::{Desk, Ran};

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
struct Place {
    database: Database,
    _turn: File,
}

impl Place {
    fn new() -> Self {
        let turn = File::create(std::env::temp_dir().join("superstep-restate-tests.lock")).unwrap();
        turn.lock().unwrap();
        Self {
            database: Database::new(),
            _turn: turn,
        }
    }

    fn store(&self) -> String {
        self.database.store()
    }
}

struct Worker(Child);

impl Worker {
    fn start(desk: &Desk, place: &Place, listen: &str) -> Self {
        let admin = services::address("restate", "admin");
        let mut command = desk.command();
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
    desk: Desk,
    place: Place,
    listen: String,
}

impl Cluster {
    fn of(desk: Desk) -> Self {
        Self {
            desk,
            place: Place::new(),
            listen: format!("127.0.0.1:{}", free_port()),
        }
    }

    fn worker(&self) -> Worker {
        Worker::start(&self.desk, &self.place, &self.listen)
    }

    fn run(&self, args: &[&str], input: &str) -> Ran {
        let store = self.place.store();
        let engine = format!("restate:{}", services::address("restate", "ingress"));
        let mut all = vec!["--store", &store, "--engine", &engine];
        all.extend(args);
        self.desk.run(&all, input)
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
    let cluster = Cluster::of(Desk::scripted(&json!([
        {"at": "initial", "text": "Is ordering required?"},
        {"at": "followup", "expect": "yes, per customer", "timeout": true},
        {"at": "followup", "expect": "yes, per customer", "text": "I propose one queue. Approved?"},
        {"at": "final", "json": {
            "assumptions": [], "components": [{"claim": "A queue."}], "alternatives": [], "decisions": [], "open_questions": []
        }}
    ])));
    let desk = &cluster.desk;
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
        while desk.asked("followup") == 0 {
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
    assert!(desk.result().contains("A queue."));
    let asked = ["initial", "followup", "final"].map(|label| desk.asked(label));
    assert_eq!(
        asked,
        [1, 2, 1],
        "one call more, for the one that was killed"
    );
}

#[test]
fn docs_goes_on_when_its_worker_dies_in_a_refinement() {
    let (desk, args) = crate::docs::killed_in_a_refinement();
    let cluster = Cluster::of(desk);
    let ran = cluster.run_through_a_death(&args, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(ran.out().contains("62 → Q4 → 74 → Q3 → 85"), "{ran:?}");
    let asked = ["InitialAnalysis", "Refinement-1", "Refinement-2"];
    let asked = asked.map(|call| cluster.desk.asked(&format!("file-structure-{call}")));
    assert_eq!(
        asked,
        [1, 2, 1],
        "one call more, for the one that was killed"
    );
}

#[test]
fn sheet_goes_on_when_its_worker_dies_in_a_plan() {
    let (desk, args) = crate::sheet::killed_in_a_plan();
    let cluster = Cluster::of(desk);
    let ran = cluster.run_through_a_death(&args, "y\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(cluster.desk.path("out/workbook_new.xlsx").exists());
    assert_eq!(
        cluster.desk.asked("informer_node"),
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
    crate::at_once::three_approve(&cluster.desk, &["--store", &store, "--engine", &engine]);
}

const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);
