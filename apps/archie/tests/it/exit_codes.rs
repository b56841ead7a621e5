//! Every ending of the program has one exit code, and the README lists them.

use std::process::Stdio;

use serde_json::{Value as Json, json};

use crate::kit::{Ran, Workdir};

const ANALYZE: [&str; 5] = ["analyze", "--query", "x", "--inputs", "./notes"];

fn interview() -> Workdir {
    Workdir::scripted(&json!([
        { "at": "initial", "text": "Is ordering required?" },
        { "at": "final", "json": {
            "assumptions": [], "components": [{"claim": "A queue."}], "alternatives": [], "decisions": [], "open_questions": []
        }}
    ]))
}

#[test]
fn each_ending_has_its_exit_code() {
    let done = interview().run(&ANALYZE, "DONE\n");
    let paused = interview().run(&ANALYZE, "");
    let budget = {
        let args = [&["--budget", "1c"][..], &ANALYZE[..]].concat();
        interview().run(&args, "yes\nstop\n")
    };
    let failed = Workdir::scripted(&json!([])).run(&ANALYZE, "");
    let unknown = Workdir::scripted(&json!([])).run(&["resume", "nothing"], "");
    let mistyped = Workdir::scripted(&json!([])).run(&["analyse"], "");
    let refused = Workdir::with_model("")
        .with_environment("OLLAMA_HOST", "127.0.0.1:9")
        .with_environment("OPENAI_API_KEY", "")
        .with_environment("ANTHROPIC_API_KEY", "sk-x")
        .with_environment("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        .run(&["setup"], "");
    let endings: [(&str, &Ran, i32); 7] = [
        ("a command that is done", &done, 0),
        ("a run that failed", &failed, 1),
        ("a thread that does not exist", &unknown, 1),
        ("a command line that is not valid", &mistyped, 2),
        ("a command that was refused", &refused, 2),
        ("a thread that waits for a person", &paused, 3),
        ("a budget that is used up", &budget, 4),
    ];
    for (ending, ran, code) in endings {
        assert_eq!(ran.code(), Some(code), "{ending}: {ran:?}");
    }
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

#[test]
fn the_readme_lists_every_exit_code() {
    let readme = include_str!("../../README.md");
    for code in 0..=4 {
        assert!(readme.contains(&format!("\n| {code} | ")), "{code}");
    }
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
