//! A limit is a question, not an end.

use serde_json::json;

use crate::kit::Desk;

const ANALYZE: [&str; 7] = [
    "--budget",
    "2c",
    "analyze",
    "--query",
    "Choose a queue",
    "--inputs",
    "./notes",
];

fn desk() -> Desk {
    Desk::scripted(&json!([
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
    let desk = desk();
    let ran = desk.run(&ANALYZE, "yes\nnever\nraise 5\nDONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let out = ran.out();
    assert!(out.contains("raise [BY] or stop: raise 5"), "{out}");
    assert!(out.contains("saved ./notes/analysis_result.md"), "{out}");
    assert_eq!(desk.asked("followup"), 2, "nothing was asked twice");
}

#[test]
fn whoever_stops_there_keeps_everything_and_can_raise_it_later() {
    let desk = desk();
    let ran = desk.run(&ANALYZE, "yes\nnever\nstop\n");
    assert_eq!(ran.code(), Some(4), "{ran:?}");
    assert!(ran.out().contains("stopped at the budget"), "{ran:?}");
    let id = desk.thread();
    let shown = desk.json(&["show", &id, "--json"]);
    assert_eq!(shown["values"]["currentAnalysisQuery"], "Twice?");
    // It asks again, and not the model.
    let ran = desk.run(&["--budget", "2c", "resume", &id], "");
    assert_eq!(ran.code(), Some(3), "{ran:?}");
    let inbox = desk.json(&["inbox", "--json"]);
    assert_eq!(inbox[0]["kind"], "budget", "{inbox}");
    let ran = desk.run(
        &["--budget", "2c", "inbox", &desk.items()[0], "raise 5"],
        "",
    );
    assert!(ran.out().contains("there is a new question"), "{ran:?}");
    let ran = desk.run(&["--budget", "2c", "resume", &id], "DONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(desk.asked("followup"), 2);
}
