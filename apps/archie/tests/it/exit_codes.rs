//! Every ending of the program has one exit code, and the README lists them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value as Json, json};

use crate::atris::acceptance::point;
use crate::atris::{Server, server};
use crate::docs::{replies, repository};
use crate::kit::{Ran, Workdir};
use crate::mail::{mail, mbox};
use crate::model_server::{Fault, ModelServer};
use crate::tmux::{LOOK, PATIENCE, Terminal};

const ANALYZE: [&str; 5] = ["analyze", "--query", "x", "--inputs", "./notes"];

fn interview() -> Workdir {
    Workdir::scripted(&json!([
        { "at": "initial", "text": "Is ordering required?" },
        { "at": "final", "json": {
            "assumptions": [], "components": [{"claim": "A queue."}], "alternatives": [], "decisions": [], "open_questions": []
        }}
    ]))
}

/// What it was, how it ended, and the code that it should end with.
type Ending = (&'static str, Ran, i32);

fn check(endings: impl IntoIterator<Item = Ending>) {
    for (ending, ran, code) in endings {
        assert_eq!(ran.code(), Some(code), "{ending}: {ran:?}");
    }
}

#[test]
fn each_ending_of_a_run_has_its_exit_code() {
    let budget = [&["--budget", "1c"][..], &ANALYZE[..]].concat();
    let no_model = Workdir::with_model("").with_environment("OLLAMA_HOST", "127.0.0.1:9");
    let finished = interview();
    let done = finished.run(&ANALYZE, "DONE\n");
    let id = finished.thread();
    finished.run(&["delete", &id, "--yes"], "");
    check([
        ("a run that is done", done, 0),
        (
            "a run that failed",
            Workdir::scripted(&json!([])).run(&ANALYZE, ""),
            1,
        ),
        (
            "a run without a model",
            no_model.run(&["ask", "why"], ""),
            1,
        ),
        (
            "a thread that was deleted",
            finished.run(&["show", &id], ""),
            1,
        ),
        (
            "a thread that never was",
            finished.run(&["resume", "nothing"], ""),
            1,
        ),
        (
            "a thread that waits for a person",
            interview().run(&ANALYZE, ""),
            3,
        ),
        (
            "a budget that is used up",
            interview().run(&budget, "yes\nstop\n"),
            4,
        ),
    ]);
}

#[test]
fn what_is_typed_wrong_or_refused_ends_with_2() {
    let workdir = Workdir::scripted(&json!([]));
    let nothing_found = Workdir::with_model("")
        .with_environment("OLLAMA_HOST", "127.0.0.1:9")
        .with_environment("OPENAI_API_KEY", "")
        .with_environment("ANTHROPIC_API_KEY", "sk-x")
        .with_environment("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let draft = crate::mail::with_one_approval();
    draft.run(&["mail", "ingest", "./mbox"], "");
    let item = draft.items().remove(0);
    check([
        ("an unknown command", workdir.run(&["analyse"], ""), 2),
        (
            "an unknown option",
            workdir.run(&["threads", "--all"], ""),
            2,
        ),
        ("a missing argument", workdir.run(&["show"], ""), 2),
        (
            "a server that everybody could reach",
            workdir.run(&["serve", "--listen", "0.0.0.0:0"], ""),
            2,
        ),
        (
            "a model that did not pass its test",
            nothing_found.run(&["setup"], ""),
            2,
        ),
        (
            "a yes to what was not displayed",
            draft.run(&["inbox", &item, "accept"], ""),
            2,
        ),
    ]);
}

#[test]
fn a_store_that_is_not_there_is_a_failure() {
    let workdir = Workdir::scripted(&json!([]));
    check(
        [
            "sqlite:notes/a.md/threads.db",
            "postgres://127.0.0.1:9/threads",
        ]
        .map(|store| {
            let ran = workdir.run(&["--store", store, "threads"], "");
            (store, ran, 1)
        }),
    );
}

#[test]
fn pages_that_are_stale_are_a_failure_and_fresh_ones_are_not() {
    let workdir = Workdir::scripted(&Json::Array(replies("file-structure", &[90], &[])));
    let repo = repository(&workdir.path(""));
    let agents = ["--agents", "file-structure"];
    let docs = |more: &[&str]| {
        let args = [&["docs", "repo"][..], &agents[..], more].concat();
        workdir.run(&args, "")
    };
    let missing = docs(&["--check"]);
    let written = docs(&[]);
    let fresh = docs(&["--check"]);
    fs::write(repo.join("src/new.rs"), "pub fn new() {}\n").unwrap();
    check([
        ("no pages", missing, 1),
        ("pages that are written", written, 0),
        ("pages that are fresh", fresh, 0),
        ("pages that are stale", docs(&["--check"]), 1),
    ]);
}

#[test]
fn a_bad_score_is_no_failure() {
    let server = ModelServer::start(Fault::OneSlot);
    let workdir = Workdir::with_model("openai:m").with_environment("OPENAI_BASE_URL", &server.url);
    let scored = workdir.run(&["eval", "mail", "--plain", "--cases", "2"], "");
    let unscored = Workdir::with_model("").run(&["eval", "mail"], "");
    check([
        ("an evaluation with a bad score", scored, 0),
        ("an evaluation without a model", unscored, 1),
    ]);
}

/// A command that goes on until Ctrl-C.
struct RunningCommand {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl RunningCommand {
    fn start(workdir: &Workdir, args: &[&str]) -> Self {
        let mut command = workdir.command();
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// Waits for a line with this text.
    fn line(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).unwrap();
            assert!(read > 0, "it ended, and never printed {text:?}");
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Presses Ctrl-C, and returns the exit code.
    fn interrupt(&mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        let pressed = Command::new("kill").args(["-INT", &pid]).status();
        assert!(pressed.unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // It has ended, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until the model is asked. It never answers.
fn until_asked(workdir: &Workdir, label: &str) {
    let begun = Instant::now();
    while workdir.asked(label) == 0 {
        assert!(begun.elapsed() < PATIENCE, "`{label}` is never asked");
        std::thread::sleep(LOOK);
    }
}

#[test]
fn ctrl_c_ends_a_server_and_what_repeats_and_stops_a_run() {
    let silent = Workdir::scripted(&json!([{ "at": "initial", "timeout": true }]));
    let mut run = RunningCommand::start(&silent, &ANALYZE);
    until_asked(&silent, "initial");
    assert_eq!(run.interrupt(), Some(1), "a run");

    let silent = Workdir::scripted(&json!([{ "at": "triage_router", "timeout": true }]));
    let one = mail("one@x", "bob@example.com", "Q4 report?", "When?");
    fs::write(silent.path("mbox"), mbox(&[one])).unwrap();
    let every = ["mail", "ingest", "./mbox", "--every", "10m"];
    let mut ingest = RunningCommand::start(&silent, &every);
    until_asked(&silent, "triage_router");
    assert_eq!(ingest.interrupt(), Some(0), "a repeated ingest");

    let api = Server::start(server::audius);
    let workdir = Workdir::scripted(&json!([]));
    point(&workdir, &[&api]);
    let trending = "What are the trending tracks on Audius?";
    let mut watch = RunningCommand::start(&workdir, &["atris", "watch", trending]);
    // Its first answer.
    watch.line("");
    assert_eq!(watch.interrupt(), Some(3), "a watch");
}

#[test]
fn a_server_ends_with_0_and_one_that_cannot_serve_with_1() {
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let workdir = Workdir::scripted(&json!([]));
    let mut server = RunningCommand::start(&workdir, &serve);
    let line = server.line("Studio at http://");
    let (_, address) = line.trim().split_once("http://").unwrap();
    let address = address.trim_end_matches("/studio/");
    // Once it answers, it also waits for Ctrl-C.
    let mut client = TcpStream::connect(address).unwrap();
    let request = format!("GET /ok HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    client.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");

    let elsewhere = Workdir::scripted(&json!([]));
    check([
        ("a second server of a store", workdir.run(&serve, ""), 1),
        (
            "an address that is taken",
            elsewhere.run(&["serve", "--listen", address], ""),
            1,
        ),
    ]);
    assert_eq!(server.interrupt(), Some(0));
}

/// A shell ends as the last of its commands did.
#[test]
fn a_shell_ends_with_the_code_of_its_last_command() {
    let workdir = Workdir::scripted(&json!([{ "at": "initial", "timeout": true }]));
    let program = env!("CARGO_BIN_EXE_archie");
    let script = "trap : INT; \"$0\"; echo ended with $?; read wait";
    let shell = || Terminal::open_with(&workdir, &["sh", "-c", script, program]);
    let stopped = shell();
    stopped.shows("archie>");
    stopped.types(&ANALYZE.join(" "));
    until_asked(&workdir, "initial");
    stopped.presses("C-c");
    stopped.shows("archie>");
    stopped.types("exit");
    stopped.until("ended with 1");
    drop(stopped);

    let left = shell();
    left.shows("archie>");
    left.presses("C-c");
    left.until("Ctrl-D leaves");
    left.shows("archie>");
    left.presses("C-d");
    left.until("ended with 0");
}

/// A run of `sheet` that reaches its step limit without an answer and without a change has failed.
#[test]
fn a_run_that_ends_at_its_step_limit_without_a_result_failed() {
    let looks = json!({ "at": "planner_node", "tool_calls": [{ "name": "PythonInterpreter", "args": { "code": "print(1)" } }] });
    let other = json!({ "at": "planner_node", "tool_calls": [{ "name": "PythonInterpreter", "args": { "code": "print(2)" } }] });
    let workdir = crate::sheet::with_sales(&Json::Array(vec![looks, other]));
    let args = [
        "sheet",
        "sales.xlsx",
        "--instruction",
        "Count them",
        "--max-steps",
        "2",
        "--output",
        "results",
        "--yes",
    ];
    let ran = workdir.run(&args, "");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert!(ran.out().contains("No result"), "{ran:?}");
    assert!(workdir.path("results").is_dir(), "{ran:?}");
}

/// The endings above, as the README names them.
const DOCUMENTED: [(i32, &[&str]); 5] = [
    (0, &["done", "Ctrl-C", "`serve`", "--every`"]),
    (
        1,
        &[
            "failed",
            "step limit",
            "Ctrl-C",
            "stale",
            "`test`",
            "`eval`",
            "model",
            "store",
            "address",
            "thread",
        ],
    ),
    (2, &["not valid", "refused"]),
    (3, &["waits for a person", "`atris watch`"]),
    (4, &["budget"]),
];

#[test]
fn the_readme_lists_every_exit_code_and_ending() {
    let readme = include_str!("../../README.md");
    for (code, endings) in DOCUMENTED {
        let begin = format!("| {code} | ");
        let row = readme.lines().find(|line| line.starts_with(&begin));
        let row = row.unwrap_or_else(|| panic!("there is no row for {code}"));
        for ending in endings {
            assert!(row.contains(ending), "{code}, {ending}: {row}");
        }
    }
    let shell = "A shell ends with the code of its last command.";
    assert!(readme.contains(shell));
}

/// Readers such as `head` close the pipe before everything is written.
#[test]
fn a_closed_pipe_is_not_an_error() {
    let workdir = interview();
    workdir.run(&ANALYZE, "");
    let commands: [&[&str]; 5] = [
        &["completions", "bash"],
        &["--help"],
        &["threads"],
        &["doctor", "--verbose"],
        &["graph", "analyze"],
    ];
    for args in commands {
        let mut command = workdir.command();
        command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        drop(process.stdout.take());
        let output = process.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(!err.contains("panicked"), "{args:?}: {err}");
        assert!(output.status.code().is_some(), "{args:?} was killed");
    }
}
