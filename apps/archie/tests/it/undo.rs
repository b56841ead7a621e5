//! An answer is taken back as long as nothing has left because of it.

use serde_json::json;

use crate::approvals::{announced, ingested};
use crate::kit::Workdir;
use crate::mail::kit::{done, mail, sends, triage, wants};
use crate::mail::sent;

#[test]
fn an_answer_is_taken_back_and_the_question_is_asked_again() {
    let workdir = Workdir::scripted(&json!([
        {"at": "initial", "text": "How much may be lost?"},
        {"at": "followup", "text": "And how fast must it be?"},
        {"at": "followup", "text": "How many people work on it?"},
    ]));
    let analyze = [
        "analyze",
        "--query",
        "Choose a database",
        "--inputs",
        "./notes",
    ];
    assert_eq!(workdir.run(&analyze, "").code(), Some(3));
    let thread = workdir.thread();
    let early = workdir.run(&["undo", &thread], "");
    assert_eq!(early.code(), Some(1), "{early:?}");
    assert!(early.err().contains("no answer to take back"), "{early:?}");
    let first = workdir.items().remove(0);
    assert_eq!(
        workdir.run(&["inbox", &first, "Nothing at all"], "").code(),
        Some(0)
    );
    let undone = workdir.run(&["undo", &thread], "");
    assert_eq!(undone.code(), Some(0), "{undone:?}");
    let out = undone.out();
    assert!(
        out.contains("Nothing at all") && out.contains("How much may be lost?"),
        "{out}"
    );
    let items = workdir.json(&["inbox", "--json"]);
    assert_eq!(items.as_array().unwrap().len(), 1, "{items}");
    assert!(
        items[0]["subject"]
            .as_str()
            .unwrap()
            .contains("How much may be lost?"),
        "{items}"
    );
    let again = workdir.items().remove(0);
    let answered = workdir.run(&["inbox", &again, "An hour of work"], "");
    assert_eq!(answered.code(), Some(0), "{answered:?}");
    let shown = workdir.json(&["show", &thread, "--json"]).to_string();
    assert!(
        shown.contains("An hour of work") && !shown.contains("Nothing at all"),
        "{shown}"
    );
}

#[test]
fn an_answer_that_sent_a_mail_cannot_be_taken_back() {
    let asks = mail("q4@x", "Bob <bob@example.com>", "Q4 report?", "When?");
    let replies = json!([
        triage("respond"),
        wants(json!([sends("On Friday.")])),
        wants(json!([done()]))
    ]);
    let (workdir, ran) = ingested(&[asks], &replies);
    let id = announced(&ran).remove(0);
    workdir.run(&["inbox", &id], "");
    let accepted = workdir.run(&["inbox", &id, "accept"], "");
    assert_eq!(accepted.code(), Some(0), "{accepted:?}");
    assert_eq!(sent(&workdir).len(), 1);
    let undone = workdir.run(&["undo", &workdir.thread()], "");
    assert_eq!(undone.code(), Some(1), "{undone:?}");
    assert!(undone.err().contains("send_email_tool"), "{undone:?}");
    assert_eq!(sent(&workdir).len(), 1);
}
