//! A limit is a question, not an end.

use serde_json::json;

use crate::kit::Workdir;

const ANALYZE: [&str; 7] = [
    "--budget",
    "2c",
    "analyze",
    "--query",
    "Choose a queue",
    "--inputs",
    "./notes",
];

fn workdir() -> Workdir {
    Workdir::scripted(&json!([
        {"at": "initial", "text": "Is ordering required?"},
        {"at": "followup", "expect": "yes", "text": "Twice?"},
        {"at": "followup", "expect": "never", "text": "One queue?"},
        {"at": "final", "json": {
            "assumptions": [], "components": [{"claim": "A queue."}], "alternatives": [], "decisions": [], "open_questions": []
        }}
    ]))
}

#[test]
fn at_the_limit_the_person_raises_it_and_the_interview_goes_on() {
    let workdir = workdir();
    let ran = workdir.run(&ANALYZE, "yes\nnever\nraise 5\nDONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let out = ran.out();
    assert!(out.contains("raise [BY] or stop: raise 5"), "{out}");
    assert!(out.contains("saved ./notes/analysis_result.md"), "{out}");
    assert_eq!(workdir.asked("followup"), 2, "nothing was asked twice");
}

#[test]
fn whoever_stops_there_keeps_everything_and_can_raise_it_later() {
    let workdir = workdir();
    let ran = workdir.run(&ANALYZE, "yes\nnever\nstop\n");
    assert_eq!(ran.code(), Some(4), "{ran:?}");
    assert!(ran.out().contains("stopped at the budget"), "{ran:?}");
    let id = workdir.thread();
    let shown = workdir.json(&["show", &id, "--json"]);
    assert_eq!(shown["values"]["currentAnalysisQuery"], "Twice?");
    // It asks again, and not the model.
    let ran = workdir.run(&["--budget", "2c", "resume", &id], "");
    assert_eq!(ran.code(), Some(3), "{ran:?}");
    let inbox = workdir.json(&["inbox", "--json"]);
    assert_eq!(inbox[0]["kind"], "budget", "{inbox}");
    let ran = workdir.run(
        &["--budget", "2c", "inbox", &workdir.items()[0], "raise 5"],
        "",
    );
    assert!(ran.out().contains("there is a new question"), "{ran:?}");
    let ran = workdir.run(&["--budget", "2c", "resume", &id], "DONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(workdir.asked("followup"), 2);
}
