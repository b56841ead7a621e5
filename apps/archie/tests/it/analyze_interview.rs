//! The interview of `analyze` with a model that parrots, asks nothing or has a small context; and how an interview starts, is
//! watched and ends elsewhere.

use std::fs;

use archie::agents::AGENTS;
use archie::app::App;
use archie::cli::settings::Settings;
use serde_json::{Value as Json, json};
use superstep::Memory;
use superstep::store::MemoryStore;
use superstep::{Event, Seq};
use superstep_llm::Script;

use crate::deaths::MODEL;
use crate::kit::{Workdir, settings, with_context};

const ANALYZE: [&str; 5] = [
    "analyze",
    "--query",
    "Choose a queue",
    "--inputs",
    "./notes",
];

fn result() -> Json {
    json!({ "at": "final", "json": {
        "assumptions": [], "components": [{ "claim": "A queue." }], "alternatives": [], "decisions": [], "open_questions": []
    } })
}

fn agent_turns(workdir: &Workdir) -> Vec<String> {
    let shown = workdir.json(&["show", &workdir.thread(), "--json"]);
    let turns = shown["values"]["analysisHistory"]
        .as_array()
        .unwrap()
        .clone();
    let turns = turns.iter().filter(|turn| turn["role"] == "agent");
    turns
        .map(|turn| turn["content"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a3_each_analysis_has_a_thread_of_its_own_and_starts_with_the_fields_of_the_brief() {
    let asks = json!({ "at": "initial", "text": "Is ordering required?" });
    let workdir = Workdir::scripted(&json!([asks, asks]));
    for _ in 0..2 {
        let ran = workdir.run(&ANALYZE, "");
        assert_eq!(ran.code(), Some(3), "{ran:?}");
    }
    let threads = workdir.json(&["threads", "--json"]);
    assert_eq!(threads.as_array().unwrap().len(), 2, "{threads}");
    assert_ne!(threads[0]["thread"], threads[1]["thread"]);
    let id = workdir.thread();
    let shown = workdir.json(&["show", &id, "--json"]);
    let values = &shown["values"];
    assert_eq!(values["userInput"], "analyze: Choose a queue");
    assert_eq!(values["modelName"], "script:script.json");
    assert_eq!(values["fileContents"]["b.txt"], "We have one machine.\n");
    assert_eq!(values["analysisOutput"], "");
    // Entry 1 is the input; these four fields have not changed since.
    let changed = workdir.json(&["diff", &format!("{id}@1"), &id, "--json"]);
    for field in ["userInput", "modelName", "fileContents", "analysisOutput"] {
        assert!(changed.get(field).is_none(), "{field}: {changed}");
    }
    assert_eq!(changed["analysisHistory"]["one"], json!([]), "{changed}");
    assert_eq!(changed["currentAnalysisQuery"]["one"], "", "{changed}");
}

#[test]
fn a_missing_query_is_asked_for() {
    let replies = json!([
        { "at": "initial", "expect": "Choose a queue", "text": "Is ordering required?" },
        result()
    ]);
    let asks = ["analyze", "--inputs", "./notes"];
    let ran = Workdir::scripted(&replies).run(&asks, "Choose a queue\nDONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(ran.out().contains("> Choose a queue"), "{ran:?}");
    let empty = Workdir::scripted(&replies).run(&asks, "\n");
    assert_eq!(empty.code(), Some(1), "{empty:?}");
    assert!(empty.err().contains("--query"), "{empty:?}");
}

#[test]
fn a_prompt_of_ones_own_replaces_ours() {
    let workdir = Workdir::scripted(&json!([
        { "at": "initial", "expect": ["Be brief about: Choose a queue"], "text": "Is ordering required?" },
        result()
    ]));
    let workdir = workdir.with_environment("ARCHIE_PROMPTS", "./prompts");
    fs::create_dir_all(workdir.path("prompts/analyze")).unwrap();
    let own = "Be brief about: {{query}}\n";
    fs::write(workdir.path("prompts/analyze/initial.md"), own).unwrap();
    let ran = workdir.run(&ANALYZE, "DONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
}

#[test]
fn a_parroted_approval_ends_nothing_and_is_not_shown_as_an_answer() {
    let parrot = json!({ "at": "followup", "text": "Solution APPROVED." });
    let workdir = Workdir::scripted(&json!([
        { "at": "initial", "text": "Is ordering required?" },
        parrot,
        { "at": "followup", "expect": "Write only the question", "text": "How many orders a day?" },
        { "at": "followup", "expect": "ten thousand", "text": "One queue is enough. Solution APPROVED." },
        parrot,
        parrot,
        result()
    ]));
    let ran = workdir.run(&ANALYZE, "yes\nten thousand\nand now?\nDONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(!ran.out().contains("APPROVED"), "{ran:?}");
    let turns = agent_turns(&workdir);
    assert_eq!(
        turns[..3],
        [
            "Is ordering required?",
            "How many orders a day?",
            "One queue is enough."
        ]
    );
    assert!(
        turns[3].contains("only repeated a closing phrase") && turns[3].contains('?'),
        "{turns:?}"
    );
    // Neither a prompt nor what the model is shown of the interview has the words for it to repeat.
    for label in ["initial", "followup", "final"] {
        for request in workdir.requests(label) {
            let read = request["messages"].to_string().to_uppercase();
            assert!(!read.contains("APPROVED"), "{read}");
        }
    }
    assert_eq!(workdir.asked("followup"), 5);
}

#[test]
fn the_person_is_told_how_to_end_and_the_model_is_not() {
    let workdir = Workdir::scripted(&json!([{ "at": "initial", "text": "Is ordering required?" }]));
    let ran = workdir.run(&ANALYZE, "");
    let told = "SOLUTION APPROVED or DONE ends the interview";
    assert!(ran.err().contains(told), "{ran:?}");
}

#[test]
fn the_first_turn_ends_in_a_question_whatever_the_model_says() {
    let says = |text: &str| json!({ "at": "initial", "text": text });
    let asked = json!({ "at": "initial", "expect": "Write only the question", "text": "Who runs the queue?" });
    for (replies, turn, calls) in [
        (
            vec![says("Is ordering required?")],
            "Is ordering required?",
            1,
        ),
        (
            vec![says("Nothing needs Kafka."), asked],
            "Nothing needs Kafka.\n\nWho runs the queue?",
            2,
        ),
        (
            vec![says("Nothing needs Kafka."), says("Done.")],
            "Nothing needs Kafka.\n\nWhat matters most to you in this decision, and what must not happen?",
            2,
        ),
    ] {
        let workdir = Workdir::scripted(&json!(replies));
        let ran = workdir.run(&ANALYZE, "");
        assert_eq!(ran.code(), Some(3), "{ran:?}");
        assert_eq!(agent_turns(&workdir), [turn]);
        assert_eq!(workdir.asked("initial"), calls);
    }
}

#[test]
fn notes_that_do_not_fit_are_named_before_the_first_question_and_used_anyway() {
    let parts = [
        "assumptions",
        "components",
        "alternatives",
        "decisions",
        "open_questions",
    ];
    let cited = json!({ "claim": "RabbitMQ lost three messages.", "file": "log.md", "line": 1, "quote": "lost three messages" });
    let mut replies = vec![
        json!({ "at": "initial", "text": "Is ordering required?" }),
        json!({ "at": "followup", "expect": "RabbitMQ lost three messages when the disk was full", "text": "May it lose messages?" }),
    ];
    replies.extend(parts.map(|field| {
        let claims = match field {
            "decisions" => json!([cited]),
            _ => json!([]),
        };
        json!({ "at": "final", "json": { field: claims } })
    }));
    let workdir = with_context(4_096, &json!(replies));
    let mut log = String::from("# Log\n\n");
    for day in 1..400 {
        log.push_str(&format!(
            "## Day {day}\n\nThe team looked at dashboards and wrote reports.\n\n"
        ));
        if day == 300 {
            log.push_str("RabbitMQ lost three messages when the disk was full.\n\n");
        }
    }
    fs::write(workdir.notes().join("log.md"), &log).unwrap();
    let ran = workdir.run(&ANALYZE, "Did RabbitMQ ever lose messages?\nDONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let out = ran.out();
    let notice =
        "the notes do not fit the model's context of 4096 tokens; it sees parts of log.md (";
    let at = out.find(notice).unwrap_or_else(|| panic!("{out}"));
    assert!(
        at < out.find("Agent: Is ordering required?").unwrap(),
        "{out}"
    );
    assert_eq!(
        out.matches("do not fit the model's context").count(),
        1,
        "{out}"
    );
    // Not in the first request, where nobody had asked about it; with its line as soon as somebody does.
    let first = workdir.requests("initial")[0]["messages"].to_string();
    assert!(!first.contains("RabbitMQ lost"), "{first}");
    assert!(first.contains("Ten thousand orders a day"), "{first}");
    let line = log
        .lines()
        .position(|line| line.starts_with("RabbitMQ"))
        .unwrap()
        + 1;
    let second = workdir.requests("followup")[0]["messages"].to_string();
    assert!(
        second.contains(&format!("{line}: RabbitMQ lost")),
        "{second}"
    );
    // The fixed part is the same in every request, so a server can reuse it.
    let system = |label: &str| workdir.requests(label)[0]["messages"][0].clone();
    assert_eq!(system("initial"), system("final"));
    let shown = workdir.json(&["show", &workdir.thread(), "--json"]);
    let partly = &shown["values"]["notesShown"]["partly"][0];
    assert_eq!(partly["name"], "log.md", "{shown}");
    let page = workdir.result();
    assert!(
        page.contains("did not fit the model's context of 4096 tokens"),
        "{page}"
    );
    assert!(
        page.contains(&format!("supported: `log.md:{line}` says")),
        "{page}"
    );
}

#[test]
fn a10_an_approval_from_the_inbox_writes_the_result_at_once() {
    let workdir = Workdir::scripted(&json!([
        { "at": "initial", "text": "Is ordering required?" },
        { "at": "followup", "text": "One queue. Does that fit?" },
        result()
    ]));
    assert_eq!(workdir.run(&ANALYZE, "").code(), Some(3));
    let ran = workdir.run(&["inbox", &workdir.items()[0], "yes"], "");
    assert!(ran.out().contains("there is a new question"), "{ran:?}");
    // From another folder: the thread knows where its notes are.
    let mut elsewhere = workdir.command();
    elsewhere
        .current_dir(workdir.path("home"))
        .env("ARCHIE_MODEL", "")
        .args(["inbox", &workdir.items()[0], "SOLUTION APPROVED"]);
    fs::copy(
        workdir.path("script.json"),
        workdir.path("home/script.json"),
    )
    .unwrap();
    let ran = crate::kit::Ran::of(elsewhere, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(
        ran.out().contains("--- Final Analysis Output ---"),
        "{ran:?}"
    );
    assert!(
        ran.out().contains("saved ./notes/analysis_result.md"),
        "{ran:?}"
    );
    assert!(workdir.result().contains("- A queue."));
    assert_eq!(workdir.asked("final"), 1);
}

#[test]
fn a5_echo_and_plain_words_reach_no_model() {
    let workdir = Workdir::scripted(&json!([]));
    let run = |input: &str| {
        let input = json!({ "userInput": input, "modelName": "script:script.json" }).to_string();
        workdir.run(&["run", "analyze", "--input", &input], "")
    };
    let ran = run("echo hello");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(ran.out().ends_with("\nhello\n"), "{ran:?}");
    let ran = run("what is Kafka?");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(
        ran.out().contains("begin the input with `analyze:`"),
        "{ran:?}"
    );
    assert!(!workdir.notes().join("analysis_result.md").exists());
}

#[test]
fn a_bare_model_name_is_completed_or_refused_before_there_is_a_thread() {
    let workdir =
        Workdir::with_model("").with_environment("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let ran = workdir.run(&[&["--model", "qwen3"][..], &ANALYZE].concat(), "");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert!(
        ran.err()
            .contains("`qwen3` is not a model: write PROVIDER:NAME"),
        "{ran:?}"
    );
    assert_eq!(
        workdir.json(&["threads", "--json"]),
        json!([]),
        "no thread is left"
    );
    let ran = workdir.run(&[&["--model", "gpt-4o"][..], &ANALYZE].concat(), "");
    assert!(ran.err().contains("`openai:gpt-4o`"), "{ran:?}");
    let shown = workdir.json(&["show", &workdir.thread(), "--json"]);
    assert_eq!(shown["values"]["modelName"], "openai:gpt-4o");
    for (typed, full) in [
        ("claude-sonnet-4", "anthropic:claude-sonnet-4"),
        ("gemini-2.5-pro", "gemini:gemini-2.5-pro"),
    ] {
        let ran = workdir.run(&[], &format!("model {typed}\nexit\n"));
        assert!(ran.out().contains(&format!("model: {full}")), "{ran:?}");
    }
}

#[tokio::test]
async fn a9_the_interrupt_and_its_resume_are_on_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        model: Some(MODEL.to_owned()),
        ..settings(folder.path())
    };
    let app = App::over(
        settings,
        Memory::default(),
        std::sync::Arc::new(MemoryStore::default()),
        AGENTS,
    )
    .unwrap();
    let replies = json!({ "replies": [
        { "at": "initial", "text": "Is ordering required?" }, { "at": "followup", "text": "Twice?" }
    ] });
    let script = Script::parse("test", &replies.to_string()).unwrap();
    app.models.put(MODEL, std::sync::Arc::new(script));
    let agent = app.agent("analyze").unwrap();
    let thread = agent.thread(&app.runtime, "t", Default::default()).unwrap();
    let input = json!({ "userInput": "analyze: Choose a queue", "modelName": MODEL });
    thread.start_or_recover(input).await.unwrap();
    let open = thread.interrupts().await.unwrap().remove(0);
    thread
        .answer_as("ada", vec![(open.interrupt.id, json!("yes, per customer"))])
        .await
        .unwrap();
    let mut events = thread.events(Seq(0));
    let mut seen: Vec<Json> = Vec::new();
    while seen
        .iter()
        .filter(|event| event["type"] == "stopped")
        .count()
        < 2
    {
        let event = events.next().await.unwrap();
        if let Event::Logged(_) = &event {
            seen.push(serde_json::to_value(&event).unwrap());
        }
    }
    let at = |is: &dyn Fn(&Json) -> bool| {
        seen.iter()
            .position(is)
            .unwrap_or_else(|| panic!("{seen:#?}"))
    };
    // The model's turn is committed before the question is asked, and the answer is an update of the node that asked.
    let turn = at(&|event| event["type"] == "update" && event["node"] == "ANALYSIS_PREPARE");
    let paused = at(&|event| event["type"] == "stopped" && event["outcome"] == "paused");
    let resumed = at(&|event| event["type"] == "update" && event["node"] == "ANALYSIS_INTERRUPT");
    assert!(turn < paused && paused < resumed, "{seen:#?}");
    let interrupt = &seen[paused]["interrupts"][0];
    assert_eq!(*interrupt, json!(open.interrupt.id.to_string()));
    let request: Json = open.interrupt.request.decode().unwrap();
    assert_eq!(request, json!({ "query": "Is ordering required?" }));
    assert_eq!(
        seen[resumed]["updates"],
        json!([{ "userInput": "yes, per customer" }])
    );
}

#[test]
fn images_are_shown_to_the_model_if_the_person_asks_for_it() {
    let first = json!({ "at": "initial", "expect": "=== plan.png (an image)", "text": "Two boxes. Which one is yours?" });
    let workdir = Workdir::scripted(&json!([first]));
    fs::write(workdir.notes().join("plan.png"), b"\x89PNG\r\n\x1A\nrest").unwrap();
    let ran = workdir.run(&[&ANALYZE[..], &["--images"]].concat(), "");
    let out = ran.out();
    assert!(
        out.contains("read a.md, b.txt, plan.png (skipped c.png)"),
        "{ran:?}"
    );
    assert!(out.contains("Which one is yours?"), "{ran:?}");
    // Without the option, no request has the text that the script waits for.
    let ran = workdir.run(&ANALYZE, "");
    assert!(
        ran.out()
            .contains("read a.md, b.txt (skipped c.png, plan.png)"),
        "{ran:?}"
    );
}
