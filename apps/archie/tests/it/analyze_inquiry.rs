//! The commands beside the interview: `ask`, `build-context` and the memory file.

use std::fs;

use serde_json::{Value as Json, json};

use crate::kit::Workdir;

fn facts() -> Json {
    json!({ "at": "context", "expect": "Ten thousand orders a day", "json": { "facts": [
        { "claim": "There are 10,000 orders a day.", "file": "a.md", "line": 3, "quote": "Ten thousand orders a day" },
        { "claim": "Kafka is in use.", "file": "b.txt", "line": 1, "quote": "We use Kafka" }
    ] } })
}

fn entities() -> Json {
    json!({ "at": "entities", "json": {
        "entities": [{ "name": "Orders", "type": "service", "description": "Takes orders." }, { "name": "machine" }],
        "relationships": [
            { "from": "Orders", "to": "machine", "type": "runs on" }, { "from": "Orders", "to": "Kafka", "type": "uses" }
        ]
    } })
}

const BUILD: [&str; 5] = ["build-context", "--inputs", "./notes", "--name", "orders"];

#[test]
fn ask_answers_from_the_notes_and_leaves_no_file() {
    let workdir = Workdir::scripted(&json!([
        { "at": "ask", "expect": ["How many machines", "1: We have one machine."], "text": "One (b.txt:1)." },
        { "at": "ask", "expect": ["What is a queue", "There are no notes"], "text": "A line." }
    ]));
    let ran = workdir.run(&["ask", "How many machines?", "--inputs", "./notes"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(ran.out().trim(), "One (b.txt:1).", "{ran:?}");
    let answer = workdir.json(&["ask", "What", "is", "a", "queue?", "--json"]);
    assert_eq!(answer["answer"], "A line.");
    assert_eq!(fs::read_dir(workdir.notes()).unwrap().count(), 3);
}

#[test]
fn build_context_writes_checked_facts_and_merges_the_memory_file() {
    let workdir = Workdir::scripted(&json!([facts(), entities()]));
    let memory = workdir.path("memory.json");
    let known = json!({ "entities": [{ "name": "orders", "type": "", "description": "" }, { "name": "Mara", "type": "person", "description": "Knows SQS." }], "relationships": [] });
    fs::write(&memory, known.to_string()).unwrap();
    let args = [&BUILD[..], &["--memory-file", "memory.json"]].concat();
    let ran = workdir.run(&args, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(
        ran.out().contains("saved ./notes/orders_context.md"),
        "{ran:?}"
    );
    let page = fs::read_to_string(workdir.notes().join("orders_context.md")).unwrap();
    assert!(page.starts_with("# Context: orders\n"), "{page}");
    assert!(page.contains("  - supported: `a.md:3` says"), "{page}");
    assert!(
        page.contains("**unsupported**: `b.txt:1` does not say"),
        "{page}"
    );
    assert!(page.contains("**Orders** (service)"), "{page}");
    assert!(
        !page.contains("uses Kafka"),
        "its end is not an entity: {page}"
    );
    let merged: Json = serde_json::from_str(&fs::read_to_string(&memory).unwrap()).unwrap();
    let names: Vec<_> = merged["entities"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entity| entity["name"].clone())
        .collect();
    assert_eq!(names, ["orders", "Mara", "machine"]);
    assert_eq!(merged["entities"][0]["type"], "service");
    assert_eq!(merged["relationships"].as_array().unwrap().len(), 1);
    // The model was told what was known, and a second run does not read what the first one wrote.
    let asked = workdir.requests("context")[0]["messages"].to_string();
    assert!(asked.contains("Knows SQS."), "{asked}");
}

#[test]
fn a_second_context_keeps_the_first_and_does_not_read_it() {
    let other = json!({ "at": "context", "json": { "facts": [{ "claim": "One machine.", "file": "b.txt", "line": 1, "quote": "We have one machine" }] } });
    let workdir = Workdir::scripted(&json!([facts(), entities(), other, entities()]));
    for note in [
        "We have one machine.\n",
        "We have one machine. It is old.\n",
    ] {
        fs::write(workdir.notes().join("b.txt"), note).unwrap();
        let ran = workdir.run(&BUILD, "");
        assert_eq!(ran.code(), Some(0), "{ran:?}");
    }
    let page = |name: &str| fs::read_to_string(workdir.notes().join(name)).unwrap();
    assert!(page("orders_context.1.md").contains("10,000 orders"));
    assert!(page("orders_context.md").contains("One machine."));
    let asked = workdir.requests("context")[1]["messages"].to_string();
    assert!(!asked.contains("orders_context"), "{asked}");
}

#[test]
fn an_answer_that_cannot_be_used_is_asked_for_again_and_then_said_to_be_missing() {
    let garbage = json!({ "at": "context", "text": "I will not." });
    let again = json!({ "at": "context", "expect": "could not be used", "text": "No." });
    let workdir = Workdir::scripted(&json!([garbage, again, entities()]));
    let ran = workdir.run(&BUILD, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let page = fs::read_to_string(workdir.notes().join("orders_context.md")).unwrap();
    assert!(page.contains("## Facts\n\nNot available: "), "{page}");
    assert!(page.contains("**Orders**"), "{page}");
}

#[test]
fn wrong_names_files_and_folders_are_refused_before_there_is_a_thread() {
    let workdir = Workdir::scripted(&json!([]));
    fs::write(
        workdir.path("bad.json"),
        "{\"relationships\": [{\"from\": \"a\", \"to\": \"b\"}]}",
    )
    .unwrap();
    fs::create_dir(workdir.path("empty")).unwrap();
    for (args, why) in [
        (
            vec!["build-context", "--inputs", "./notes", "--name", "../x"],
            "is not a name for a context",
        ),
        (
            vec!["build-context", "--inputs", "./empty", "--name", "x"],
            "there are no notes",
        ),
        (
            vec!["ask", "x", "--memory-file", "bad.json"],
            "not both entities",
        ),
        (vec!["ask", " "], "the question is empty"),
        (
            vec![
                "analyze",
                "--query",
                "x",
                "--inputs",
                "./notes",
                "--memory-file",
                "bad.json",
            ],
            "not both entities",
        ),
    ] {
        let ran = workdir.run(&args, "");
        assert_eq!(ran.code(), Some(1), "{ran:?}");
        assert!(ran.err().contains(why), "{ran:?}");
    }
    assert_eq!(workdir.json(&["threads", "--json"]), json!([]));
}

#[test]
fn the_memory_file_is_a_note_of_the_interview_and_can_be_cited() {
    let claim =
        json!({ "claim": "Mara knows SQS.", "file": "memory", "line": 1, "quote": "Knows SQS" });
    let workdir = Workdir::scripted(&json!([
        { "at": "initial", "expect": "=== memory\n1: Mara (person): Knows SQS.", "text": "Is ordering required?" },
        { "at": "final", "json": { "assumptions": [claim], "components": [], "alternatives": [], "decisions": [], "open_questions": [] } }
    ]));
    let known =
        json!({ "entities": [{ "name": "Mara", "type": "person", "description": "Knows SQS." }] });
    fs::write(workdir.path("memory.json"), known.to_string()).unwrap();
    let args = [
        "analyze",
        "--query",
        "Choose a queue",
        "--inputs",
        "./notes",
        "--memory-file",
        "memory.json",
    ];
    let ran = workdir.run(&args, "DONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(
        workdir
            .result()
            .contains("supported: `memory:1` says \"Knows SQS\""),
        "{ran:?}"
    );
    // The memory is not one of the notes, so a recheck finds nothing changed.
    let ran = workdir.run(&["analyze", "--recheck", &workdir.thread()], "");
    assert!(ran.out().contains("no note has changed"), "{ran:?}");
}

#[test]
fn a_fact_from_a_pdf_file_names_its_page() {
    let fact = json!({ "claim": "The contract ends in March 2027.", "file": "lease.pdf", "line": 1, "quote": "contract ends in March 2027" });
    let facts = json!({ "at": "context", "expect": "2: The contract ends in March 2027.", "json": { "facts": [fact] } });
    let workdir = Workdir::scripted(&json!([facts, entities()]));
    let pdf = "%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [3 0 R] /Resources << /Font << /F1 5 0 R >> >> >> endobj
3 0 obj << /Type /Page /Contents 4 0 R >> endobj
4 0 obj << >> stream
BT /F1 9 Tf (The contract ends in March 2027.) Tj ET
endstream endobj
5 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj
trailer << /Root 1 0 R >>
";
    fs::write(workdir.notes().join("lease.pdf"), pdf).unwrap();
    let ran = workdir.run(&BUILD, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let page = fs::read_to_string(workdir.notes().join("orders_context.md")).unwrap();
    assert!(
        page.contains("  - supported: `lease.pdf:2` (page 1) says"),
        "{page}"
    );
}
