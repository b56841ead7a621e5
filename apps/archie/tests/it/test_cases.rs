//! `archie test`: a thread of the real server becomes a test case, which is played again without its model.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};

use crate::docs;
use crate::http_agents::Caller;
use crate::kit::{Ran, Workdir};
use crate::mail::{learns, sends, triage_of, wants};
use crate::serve::ServeProcess;

/// Plays a case in a folder of its own, where there is no script to ask.
fn play(case: &Json) -> Ran {
    let workdir = Workdir::with_model("script:none.json");
    fs::write(workdir.path("a.case.json"), case.to_string()).unwrap();
    workdir.run(&["test", "a.case.json"], "")
}

#[track_caller]
fn assert_passes(case: &Json) {
    assert_eq!(case["not_recovered"], json!([]), "{case}");
    let ran = play(case);
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(ran.out().starts_with("pass  a.case.json"), "{ran:?}");
}

/// Returns what is printed for a case that does not pass.
#[track_caller]
fn failure(case: &Json) -> String {
    let ran = play(case);
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert!(ran.out().starts_with("FAIL  a.case.json"), "{ran:?}");
    ran.out()
}

/// The case of a thread, with its files.
async fn case_of(caller: &Caller, files: &[(&str, &str)]) -> Json {
    let mut case = caller.get("/superstep", "/case").await;
    let files = files
        .iter()
        .map(|(path, text)| json!({ "path": path, "base64": STANDARD.encode(text) }));
    case["files"] = files.collect();
    case
}

fn mail() -> Json {
    json!({
        "id": "q4", "message_id": "q4@x", "from": "Bob <bob@example.com>", "to": "alice@example.com",
        "account": "alice@example.com", "subject": "Q4 report?", "page_content": "When is the report ready?",
    })
}

/// A mail that is answered after its draft was edited, from which the agent learns.
pub(crate) async fn answered_mail() -> Json {
    let workdir = Workdir::scripted(&json!([
        triage_of("bob@example.com", "respond"),
        wants(json!([sends("Friday.")])),
        learns("Name a time."),
        wants(json!([{ "name": "Done", "args": { "done": true } }])),
    ]));
    let server = ServeProcess::start(&workdir);
    let caller = Caller::new(&server, "email_assistant").await;
    let call = caller.begin(json!({ "email_input": mail() })).await;
    let mut args = call["action_request"].clone();
    args["args"]["response_text"] = json!("Friday at noon.");
    let values = caller
        .answer(json!([{ "type": "edit", "args": args }]))
        .await;
    assert_eq!(values["ended"], "done", "{values}");
    case_of(&caller, &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_case_of_a_mail_ends_in_the_same_state_and_with_another_reply_it_does_not() {
    let case = answered_mail().await;
    let replies = case["script"]["replies"].as_array().unwrap();
    let labels: Vec<_> = replies.iter().map(|reply| &reply["at"]).collect();
    assert_eq!(labels, ["triage_router", "llm_call", "learn", "llm_call"]);
    assert_eq!(case["acts"][1]["answers"].as_array().unwrap().len(), 1);
    assert_passes(&case);

    let mut other = case.clone();
    other["script"]["replies"][1]["tool_calls"][0]["args"]["response_text"] = json!("Monday.");
    let told = failure(&other);
    assert!(told.contains("/acts/1/asked/0/request"), "{told}");
    assert!(told.contains("Friday."), "{told}");

    let mut other = case.clone();
    other["script"]["replies"][2]["json"]["user_preferences"] = json!("Say nothing.");
    let told = failure(&other);
    assert!(told.contains("/learned/0"), "{told}");

    let mut other = case.clone();
    other["script"]["replies"].as_array_mut().unwrap().pop();
    let told = failure(&other);
    assert!(told.contains("no reply for `llm_call`"), "{told}");

    let mut other = case.clone();
    let again = replies[0].clone();
    let mut replies = replies.clone();
    replies.push(again);
    other["script"]["replies"] = replies.into();
    let told = failure(&other);
    assert!(told.contains("was never requested"), "{told}");

    let mut other = case;
    other["acts"][1]["answers"][0]["value"] = json!({ "type": "ignore", "args": null });
    failure(&other);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_case_of_a_thread_that_waits_ends_at_its_question() {
    let workdir = Workdir::scripted(&json!([
        { "at": "initial", "expect": "Ten thousand orders", "text": "Is ordering required?" },
        { "at": "followup", "expect": "Per customer.", "text": "Who pays for it?" },
    ]));
    let server = ServeProcess::start(&workdir);
    let caller = Caller::new(&server, "analyze").await;
    let notes = [("notes/a.md", "Ten thousand orders a day.\n")];
    caller.upload(notes[0].0, notes[0].1).await;
    let input = json!({ "userInput": "analyze: Choose a queue", "noteFiles": ["notes"] });
    caller.begin(input).await;
    caller.answer(json!("Per customer.")).await;
    let case = case_of(&caller, &notes).await;
    let asked = &case["expected"]["asked"][0]["request"]["query"];
    assert_eq!(asked, "Who pays for it?", "{case}");
    assert_passes(&case);
    let mut other = case.clone();
    other["script"]["replies"][1]["text"] = json!("Who runs it?");
    let told = failure(&other);
    assert!(told.contains("/asked/0/request/query"), "{told}");
    // Without its note.
    let mut other = case;
    other["files"] = json!([]);
    let told = failure(&other);
    assert!(told.contains("READ_NOTES"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_case_of_pages_has_the_scores_of_the_model() {
    let replies = docs::replies("file-structure", &[62, 85], &[3]);
    let workdir = Workdir::scripted(&replies.into());
    let server = ServeProcess::start(&workdir);
    let caller = Caller::new(&server, "docs").await;
    let files: Vec<(String, &str)> = docs::kit::FILES
        .iter()
        .filter(|(path, _)| !path.starts_with('.') && !path.starts_with("target"))
        .map(|(path, text)| (format!("shop/{path}"), *text))
        .collect();
    for (path, text) in &files {
        caller.upload(path, *text).await;
    }
    let task = json!({ "folder": "shop", "agents": ["file-structure"], "gate": true });
    caller.begin(json!({ "task": task })).await;
    caller.answer(json!({ "type": "accept" })).await;
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), *text))
        .collect();
    let case = case_of(&caller, &files).await;
    assert_passes(&case);
    let mut other = case;
    let replies = other["script"]["replies"].as_array_mut().unwrap();
    let score = replies
        .iter_mut()
        .rfind(|reply| reply["json"]["clarity"].is_number());
    score.unwrap()["json"]["clarity"] = json!(80);
    failure(&other);
}

/// A case may come from someone else.
#[tokio::test(flavor = "multi_thread")]
async fn a_case_writes_only_what_callers_of_a_server_write() {
    let case = answered_mail().await;
    for (channel, value) in [
        ("source", json!("/data/ada.mbox")),
        ("model_name", json!("script:/etc/passwd")),
        ("=messages", json!([])),
    ] {
        let mut other = case.clone();
        other["acts"][0]["input"][channel] = value;
        let told = failure(&other);
        let name = channel.trim_start_matches('=');
        assert!(
            told.contains(&format!("callers cannot write `{name}`")),
            "{told}"
        );
    }
    let mut other = case.clone();
    other["acts"][1]["write"] = json!({ "source": "/data/ada.mbox" });
    assert!(failure(&other).contains("callers cannot write `source`"));
    let mut other = case.clone();
    other["files"] = json!([{ "path": "../escaped", "base64": "" }]);
    assert!(failure(&other).contains("../escaped"));
    // A model that the context names is played like the others.
    let mut other = case;
    other["acts"][0]["context"] = json!({ "model": "script:/etc/passwd" });
    assert_eq!(play(&other).code(), Some(0));
}

#[test]
fn a_file_that_is_not_a_case_is_refused_with_the_reason() {
    let workdir = Workdir::with_model("");
    fs::write(workdir.path("a.json"), "{}").unwrap();
    let newer = json!({
        "format": 2, "graph_id": "atris", "thread_id": "t", "checkpoint_id": "c", "acts": [], "models": [],
        "script": { "replies": [] }, "expected": { "values": {} },
    });
    fs::write(workdir.path("b.json"), newer.to_string()).unwrap();
    for (file, why) in [
        ("a.json", "`a.json` is not a test case"),
        ("b.json", "`b.json` has the format 2"),
        ("c.json", "cannot read `c.json`"),
    ] {
        let ran = workdir.run(&["test", file], "");
        assert_eq!(ran.code(), Some(1), "{ran:?}");
        assert!(ran.err().contains(why), "{ran:?}");
    }
}
