//! Every command: its help, its output for people, its JSON.

use serde_json::{Value as Json, json};
use superstep_conformance::services;

use crate::kit::{Desk, same};

fn paused() -> Desk {
    let desk = Desk::scripted(&json!([
        {"at": "initial", "text": "Is ordering required?"},
        {"at": "followup", "text": "Approved?"}
    ]));
    desk.run(
        &[
            "analyze",
            "--query",
            "Choose a queue",
            "--inputs",
            "./notes",
        ],
        "",
    );
    desk
}

#[test]
fn help_teaches() {
    let desk = paused();
    let out = desk.run(&["--help"], "").out();
    for command in [
        "analyze", "resume", "threads", "inbox", "fork", "diff", "trace", "graph", "doctor", "demo",
    ] {
        assert!(
            out.contains(&format!("  {command} ")),
            "{command} is missing:\n{out}"
        );
        let own = desk.run(&[command, "--help"], "");
        assert_eq!(own.code(), Some(0));
        assert!(own.out().contains("Usage: archie"), "{}", own.out());
    }
}

#[test]
fn a_wrong_command_line_is_2() {
    let desk = paused();
    assert_eq!(desk.run(&["analyse"], "").code(), Some(2));
    assert_eq!(desk.run(&["threads", "--status"], "").code(), Some(2));
}

#[test]
fn what_is_missing_is_said_with_what_to_do() {
    let desk = paused();
    let ran = desk.run(&["resume", "nothing"], "");
    assert_eq!(ran.code(), Some(1));
    assert!(
        ran.err()
            .contains("no thread begins with `nothing`; `archie threads` lists them"),
        "{ran:?}"
    );
    let ran = desk.run(&["analyze", "--query", "x", "--inputs", "nowhere"], "");
    assert!(
        ran.err().contains("there is no folder `nowhere`"),
        "{ran:?}"
    );
    let ran = desk.run(
        &[
            "--model", "gpt", "analyze", "--query", "x", "--inputs", "notes",
        ],
        "",
    );
    assert!(ran.err().contains("`gpt` is not a model"), "{ran:?}");
}

#[test]
fn a_paused_thread_is_listed_shown_and_answered_from_the_inbox() {
    let desk = paused();
    let home = desk.path("home");
    insta::assert_snapshot!(same(&desk.run(&["threads"], "").out(), &home), @"ID  analyze  paused    DATE TIME  Choose a queue");
    insta::assert_snapshot!(same(&desk.run(&["inbox"], "").out(), &home), @r"
    ITEM  DATE TIME  thread ID
            Is ordering required?
    Summaries only; `archie inbox ID` shows an item in full and takes the answer.
    ");
    let inbox = desk.json(&["inbox", "--json"]);
    assert_eq!(
        inbox[0]["request"],
        json!({"query": "Is ordering required?"})
    );
    let ran = desk.run(&["inbox", &desk.items()[0], "yes"], "");
    let next = format!(
        "answered, and there is a new question: `archie inbox {}`\n",
        desk.items()[0]
    );
    assert_eq!(ran.out(), next, "{ran:?}");
    let all = desk.json(&["inbox", "--all", "--json"]);
    let first = all
        .as_array()
        .unwrap()
        .iter()
        .find(|question| question["answer"] == "yes")
        .unwrap();
    assert_eq!(first["answeredBy"], "ada");
    let late = desk.run(&["inbox", first["id"].as_str().unwrap(), "no"], "");
    assert_eq!(late.code(), Some(1), "{late:?}");
}

#[test]
fn a_graph_is_drawn_in_three_ways() {
    let desk = paused();
    insta::assert_snapshot!(desk.run(&["graph", "analyze"], "").out(), @r"
    analyze
      [__start__] ─▶ __end__ │ ANALYSIS_PREPARE
      [ANALYSIS_INTERRUPT] ─▶ ANALYSIS_PREPARE
      [ANALYSIS_PREPARE] ─▶ __end__ │ ANALYSIS_INTERRUPT
      [__end__]
    ");
    assert!(
        desk.run(&["graph", "analyze", "--mermaid"], "")
            .out()
            .contains("ANALYSIS_PREPARE")
    );
    let drawn = desk.json(&["graph", "analyze", "--json"]);
    assert_eq!(drawn["name"], "analyze");
}

#[test]
fn a_thread_moves_to_another_home() {
    let desk = paused();
    let id = desk.thread();
    let file = desk.path("thread.bin");
    let file = file.to_str().unwrap();
    assert_eq!(desk.run(&["export", &id, file], "").code(), Some(0));
    let ran = desk.run(&["delete", &id], "n\n");
    assert!(ran.out().contains("nothing was deleted"), "{ran:?}");
    assert_eq!(desk.run(&["delete", &id, "--yes"], "").code(), Some(0));
    assert_eq!(desk.json(&["threads", "--json"]), json!([]));
    let other = paused().with_environment("ARCHIE_HOME", desk.path("other").to_str().unwrap());
    let ran = other.run(&["import", file], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(other.thread(), id);
    assert_eq!(
        other.json(&["check", "--json"]),
        json!({"opened": 1, "bad": []})
    );
}

#[test]
fn the_database_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let desk = paused();
    let mode = |path: &str| {
        std::fs::metadata(desk.path(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode("home"), 0o700);
    assert_eq!(mode("home/threads.db"), 0o600);
}

#[test]
fn the_demo_passes_offline() {
    let desk = paused();
    let demo = desk.json(&["demo", "--json"]);
    assert_eq!(demo["passed"], true, "{demo}");
}

#[test]
fn the_doctor_tells_what_is_set_and_never_to_what() {
    let desk = paused().with_environment("OPENAI_API_KEY", "sk-planted-secret");
    let ran = desk.run(&["doctor", "--bundle", "bundle.json", "--json"], "");
    let bundle = std::fs::read_to_string(desk.path("bundle.json")).unwrap();
    assert!(!bundle.contains("planted") && !ran.out().contains("planted"));
    let report: Json = serde_json::from_str(&bundle).unwrap();
    assert_eq!(report["model"]["ok"], true, "{report}");
    let key = report["environment"]
        .as_array()
        .unwrap()
        .iter()
        .find(|variable| variable["name"] == "OPENAI_API_KEY");
    assert_eq!(key.unwrap()["set"], true);
    let none = Desk::with_model("").run(&["doctor"], "");
    assert_eq!(none.code(), Some(1));
    assert!(none.out().contains("no model is chosen"), "{none:?}");
}

#[test]
fn without_a_model_the_doctor_says_which_answer_here() {
    let desk = Desk::with_model("")
        .with_environment("OPENAI_BASE_URL", &services::url("model"))
        .with_environment("OLLAMA_HOST", "127.0.0.1:9");
    let ran = desk.run(&["doctor"], "");
    assert!(
        ran.out()
            .contains("here answer openai:smollm2-135m: `archie --model openai:smollm2-135m`"),
        "{ran:?}"
    );
    let nobody = Desk::with_model("").with_environment("OLLAMA_HOST", "127.0.0.1:9");
    let ran = nobody.run(&["doctor"], "");
    assert!(ran.out().contains("none answers here"), "{ran:?}");
}

#[test]
fn a_backup_is_a_store_of_its_own() {
    let desk = paused();
    let ran = desk.run(&["backup", "copy.db"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let copied = desk.json(&["--store", "sqlite:copy.db", "threads", "--json"]);
    assert_eq!(copied[0]["thread"], desk.thread());
    let again = desk.run(&["backup", "copy.db"], "");
    assert_eq!(again.code(), Some(1));
    assert!(
        again.err().contains("`copy.db` already exists"),
        "{again:?}"
    );
}

#[test]
fn any_agent_is_started_with_json() {
    let desk = Desk::scripted(&json!([{"at": "initial", "text": "Is ordering required?"}]));
    let input = json!({ "userInput": "analyze: x", "modelName": "script:script.json" }).to_string();
    let ran = desk.run(&["run", "analyze", "--input", &input], "");
    assert_eq!(ran.code(), Some(3), "{ran:?}");
    let ran = desk.run(&["run", "analyze", "--input", "{\"userInptu\": 1}"], "");
    assert!(ran.err().contains("userInptu"), "{ran:?}");
    let ran = desk.run(&["run", "nobody"], "");
    assert!(
        ran.err()
            .contains("there is no agent `nobody`; there are analyze"),
        "{ran:?}"
    );
}

#[test]
fn a_new_project_says_what_to_type() {
    let desk = paused();
    let checkout = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let ran = desk.run(&["new", "greeter", "--from", checkout], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(
        ran.out()
            .contains("cargo run -- --model script:hello.json run greeter"),
        "{ran:?}"
    );
    let manifest = std::fs::read_to_string(desk.path("greeter/Cargo.toml")).unwrap();
    assert!(manifest.contains("apps/archie"), "{manifest}");
    for wrong in ["greeter", "Greeter", "../x", "1st"] {
        assert_eq!(desk.run(&["new", wrong], "").code(), Some(1), "{wrong}");
    }
}
