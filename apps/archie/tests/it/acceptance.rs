//! The acceptance of `analyze`, with the real program and a script: killed, resumed, forked, written.

use std::fs;

use serde_json::{Value as Json, json};

use crate::kit::Workdir;

fn claims() -> Json {
    json!({
        "assumptions": [{"claim": "Ten thousand orders a day is the load.", "file": "a.md", "line": 3, "quote": "Ten thousand orders a day"}],
        "components": [{"claim": "A queue."}],
        "alternatives": [{"claim": "Kafka.", "file": "b.txt", "line": 1, "quote": "nobody has run Kafka"}],
        "decisions": [{"claim": "One machine is enough.", "file": "b.txt", "line": 9, "quote": "We have one machine"}],
        "open_questions": []
    })
}

fn replies() -> Json {
    json!([
        {"at": "initial", "text": "Is ordering required?"},
        {"at": "followup", "expect": "yes, per customer", "text": "May it be delivered twice?"},
        {"at": "followup", "expect": "not done yet", "text": "I propose one queue. Approved?"},
        {"at": "final", "json": claims()}
    ])
}

const ANALYZE: [&str; 5] = [
    "analyze",
    "--query",
    "Choose a queue",
    "--inputs",
    "./notes",
];

#[test]
fn a4_the_interview_goes_to_its_end_and_the_file_is_written() {
    let workdir = Workdir::scripted(&replies());
    let ran = workdir.run(
        &ANALYZE,
        "yes, per customer\nnot done yet\nSOLUTION APPROVED\n",
    );
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let out = ran.out();
    assert!(out.contains("read a.md, b.txt (skipped c.png)"), "{out}");
    assert!(out.contains("Agent: Is ordering required?"), "{out}");
    assert!(out.contains("--- Final Analysis Output ---"), "{out}");
    let result = workdir.result();
    for heading in [
        "Assumptions",
        "Main components",
        "Alternatives and trade-offs",
        "Decisions and why",
        "Open questions",
    ] {
        assert!(result.contains(&format!("## {heading}\n")), "{result}");
    }
    assert!(
        result.contains("  - supported: `a.md:3` says \"Ten thousand orders a day\"\n"),
        "{result}"
    );
    assert!(result.contains("**unsupported**: `b.txt:1`"), "{result}");
    assert!(
        result.contains("  - supported: `b.txt:1` says \"We have one machine\"\n"),
        "the line is mended: {result}"
    );
    let shown = workdir.json(&["show", &workdir.thread(), "--json"]);
    let history = shown["values"]["analysisHistory"].as_array().unwrap();
    let said: Vec<_> = history
        .iter()
        .map(|turn| turn["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        said,
        ["user", "agent", "user", "agent", "user", "agent", "user"]
    );
    assert_eq!(shown["values"]["userInput"], "SOLUTION APPROVED");
    assert_eq!(
        (
            workdir.asked("initial"),
            workdir.asked("followup"),
            workdir.asked("final")
        ),
        (1, 2, 1)
    );
    let entries = workdir.json(&["history", &workdir.thread(), "--json"]);
    assert!(entries.as_array().unwrap().len() >= 8, "{entries}");
}

#[test]
fn a8_whoever_leaves_at_a_question_finds_it_again_and_pays_nothing_twice() {
    let workdir = Workdir::scripted(&replies());
    let ran = workdir.run(&ANALYZE, "");
    assert_eq!(ran.code(), Some(3), "{ran:?}");
    assert!(ran.err().contains("archie resume"), "{ran:?}");
    let id = workdir.thread();
    let ran = workdir.run(
        &["resume", &id[..23]],
        "yes, per customer\nnot done yet\nSOLUTION APPROVED\n",
    );
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(
        ran.out().contains("Agent: Is ordering required?"),
        "{ran:?}"
    );
    assert_eq!(
        (
            workdir.asked("initial"),
            workdir.asked("followup"),
            workdir.asked("final")
        ),
        (1, 2, 1)
    );
}

#[test]
fn a_program_that_is_killed_in_a_model_call_pays_for_one_more_call_and_no_other() {
    let calm = Workdir::scripted(&replies());
    calm.run(
        &ANALYZE,
        "yes, per customer\nnot done yet\nSOLUTION APPROVED\n",
    );
    for killed in ["initial", "followup", "final"] {
        let mut with_death = replies();
        let deadly = json!({"at": killed, "kill": true});
        let at = with_death
            .as_array()
            .unwrap()
            .iter()
            .position(|reply| reply["at"] == killed)
            .unwrap();
        with_death.as_array_mut().unwrap().insert(at, deadly);
        let workdir = Workdir::scripted(&with_death);
        let answers = "yes, per customer\nnot done yet\nSOLUTION APPROVED\n";
        let ran = workdir.run(&ANALYZE, answers);
        assert_eq!(ran.code(), None, "killed in {killed}: {ran:?}");
        let left = match killed {
            "initial" => answers,
            "followup" => "not done yet\nSOLUTION APPROVED\n",
            _ => "",
        };
        let ran = workdir.run(&["resume", &workdir.thread()], left);
        assert_eq!(ran.code(), Some(0), "killed in {killed}: {ran:?}");
        assert_eq!(workdir.result(), calm.result(), "killed in {killed}");
        let asked = ["initial", "followup", "final"].map(|label| workdir.asked(label));
        let mut wanted = [1, 2, 1];
        wanted[["initial", "followup", "final"]
            .iter()
            .position(|label| *label == killed)
            .unwrap()] += 1;
        assert_eq!(asked, wanted, "killed in {killed}");
    }
}

#[test]
fn a_result_is_not_read_as_a_note_and_the_one_before_is_kept() {
    let twice = json!([
        {"at": "initial", "text": "First?"}, {"at": "final", "json": claims()},
        {"at": "initial", "text": "Second?"}, {"at": "final", "json": claims()}
    ]);
    let workdir = Workdir::scripted(&twice);
    assert_eq!(workdir.run(&ANALYZE, "DONE\n").code(), Some(0));
    let other = [
        "analyze",
        "--query",
        "Choose another queue",
        "--inputs",
        "./notes",
    ];
    let ran = workdir.run(&other, "DONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(
        ran.out().contains("skipped analysis_result.md, c.png"),
        "{ran:?}"
    );
    let ledger = fs::read_to_string(workdir.path("ledger")).unwrap();
    assert!(
        !ledger.contains("=== analysis_result"),
        "the model saw the result of before"
    );
    assert!(workdir.notes().join("analysis_result.1.md").exists());
}

#[test]
fn a_fork_leaves_the_original_as_it_was() {
    let mut more = replies();
    more.as_array_mut().unwrap().push(json!({"at": "followup", "expect": "no, any order", "text": "Then any queue will do. Approved?"}));
    let workdir = Workdir::scripted(&more);
    workdir.run(&ANALYZE, "yes, per customer\n");
    let id = workdir.thread();
    let before = workdir.json(&["show", &id, "--json"]);
    let entries = workdir.json(&["history", &id, "--json"]);
    let first = entries
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["stop"] == "asks")
        .unwrap();
    let at = first["entry"].to_string();
    let fork = workdir.json(&[
        "fork",
        &id,
        "--at",
        &at,
        "--answer",
        "no, any order",
        "--json",
    ]);
    let copy = fork["thread"].as_str().unwrap();
    assert_eq!(
        workdir.json(&["show", &id, "--json"])["values"],
        before["values"]
    );
    let other = workdir.json(&["show", copy, "--json"]);
    assert_eq!(
        other["values"]["currentAnalysisQuery"],
        "Then any queue will do. Approved?"
    );
    let diff = workdir.json(&["diff", &id, copy, "--json"]);
    assert!(diff.get("analysisHistory").is_some(), "{diff}");
    assert!(diff.get("fileContents").is_none(), "{diff}");
}

#[test]
fn a_fork_asks_another_model() {
    let workdir = Workdir::scripted(&replies());
    assert_eq!(workdir.run(&ANALYZE, "").code(), Some(3));
    let other = json!({ "replies": [
        {"at": "followup", "expect": "no, any order", "text": "Then any queue will do. Approved?"}
    ] });
    fs::write(workdir.path("other.json"), other.to_string()).unwrap();
    let id = workdir.thread();
    let forked = workdir
        .command()
        .args(["fork", &id, "--with-model", "script:other.json"])
        .args(["--answer", "no, any order", "--json"])
        .env("SUPERSTEP_SCRIPT_LEDGER", workdir.path("other.ledger"))
        .output()
        .unwrap();
    assert!(forked.status.success(), "{forked:?}");
    let forked: Json = serde_json::from_slice(&forked.stdout).unwrap();
    let of = |thread: &str| workdir.json(&["show", thread, "--json"])["values"].clone();
    let copy = of(forked["thread"].as_str().unwrap());
    assert_eq!(
        (&copy["modelName"], &copy["currentAnalysisQuery"]),
        (
            &json!("script:other.json"),
            &json!("Then any queue will do. Approved?")
        )
    );
    assert_eq!(of(&id)["modelName"], "script:script.json");
}

#[test]
fn a_changed_note_reopens_what_it_supported() {
    let mut more = replies();
    more.as_array_mut().unwrap().extend([
        json!({"at": "followup", "expect": "no longer supported", "text": "There are more machines now. Still one queue?"}),
        json!({"at": "final", "json": claims()}),
    ]);
    let workdir = Workdir::scripted(&more);
    workdir.run(
        &ANALYZE,
        "yes, per customer\nnot done yet\nSOLUTION APPROVED\n",
    );
    let id = workdir.thread();
    let ran = workdir.run(&["analyze", "--recheck", &id], "");
    assert!(ran.out().contains("no note has changed"), "{ran:?}");
    fs::write(workdir.notes().join("b.txt"), "We have three machines.\n").unwrap();
    let ran = workdir.run(&["analyze", "--recheck", &id], "SOLUTION APPROVED\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(
        ran.out().contains("reopened: One machine is enough."),
        "{ran:?}"
    );
}

#[test]
fn a_failed_final_call_leaves_the_file_alone_and_the_thread_resumable() {
    let workdir = Workdir::scripted(&json!([
        {"at": "initial", "text": "First?"},
        {"at": "final", "error": {"status": 400, "why": "no credit"}},
        {"at": "final", "json": claims()}
    ]));
    let ran = workdir.run(&ANALYZE, "DONE\n");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert!(
        ran.err().contains("no credit") && ran.err().contains("archie resume"),
        "{ran:?}"
    );
    assert!(!workdir.notes().join("analysis_result.md").exists());
    let ran = workdir.run(&["resume", &workdir.thread()], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(workdir.result().contains("## Decisions and why"));
}

#[test]
fn the_shell_works_piped() {
    let workdir = Workdir::scripted(&replies());
    let typed = "help\nanalyze --query \"Choose a queue\" --inputs ./notes\nyes, per customer\nnot done yet\nSOLUTION APPROVED\nthreads\nexit\n";
    let ran = workdir.run(&[], typed);
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let out = ran.out();
    assert!(out.contains("archie> analyze --query"), "{out}");
    assert!(out.contains("saved ./notes/analysis_result.md"), "{out}");
    assert!(out.contains("finished"), "{out}");
}
