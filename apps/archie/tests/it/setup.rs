//! The first minutes: `setup` and `doctor` without a model, and the first errors.

use std::fs;

use serde_json::{Value as Json, json};

use crate::atris::{Server, ServerReply};
use crate::kit::{Ran, Workdir};
use crate::model_server::{Fault, ModelServer};
use crate::snapshots::in_terminal;

/// Nothing listens there. With this address, no other server of this machine is asked either.
const NOWHERE: &str = "http://127.0.0.1:9/v1";

/// A folder without a chosen model, where this is the only server.
fn with_server(url: &str) -> Workdir {
    Workdir::with_model("")
        .with_environment("OLLAMA_HOST", "127.0.0.1:9")
        .with_environment("OPENAI_BASE_URL", url)
}

fn settings_of(workdir: &Workdir) -> Json {
    let text = fs::read_to_string(workdir.path("home/settings.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Runs it as `workdir` does, without the address of the server.
fn run_without_address(workdir: &Workdir, args: &[&str]) -> Ran {
    let mut command = workdir.command();
    command.env_remove("OPENAI_BASE_URL").args(args);
    Ran::of(command, "")
}

#[test]
fn setup_lists_what_it_finds_tests_the_choice_and_saves_it() {
    let server = ModelServer::start(Fault::OneSlot);
    let workdir = with_server(&server.url);
    fs::create_dir(workdir.path("home")).unwrap();
    fs::write(
        workdir.path("home/settings.json"),
        r#"{"budget": "3c", "model": "ollama:old"}"#,
    )
    .unwrap();
    let ran = workdir.run(&["setup"], "7\n1\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let found = format!("   1  openai:m  OPENAI_BASE_URL at {}\n", server.url);
    assert!(ran.out().contains(&found), "{ran:?}");
    assert!(ran.err().contains("type a number from 1 to 1"), "{ran:?}");
    assert!(ran.out().contains("openai:m answered after "), "{ran:?}");
    assert_eq!(server.answers(), 1, "one short request");
    assert_eq!(
        settings_of(&workdir),
        json!({ "budget": "3c", "model": "openai:m", "openai_base_url": server.url })
    );
    // The next command needs neither the variable nor an option.
    let ran = run_without_address(&workdir, &["ask", "What is a queue?"]);
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(server.answers(), 2);
    // A variable takes precedence over what was saved.
    let elsewhere = workdir.with_environment("OPENAI_BASE_URL", NOWHERE);
    let ran = elsewhere.run(&["doctor"], "");
    assert!(ran.out().contains("`openai:m` was not reached"), "{ran:?}");
}

#[test]
fn setup_for_scripts_takes_the_first_or_the_named_model() {
    let server = ModelServer::start(Fault::OneSlot);
    let workdir = with_server(&server.url);
    let found = workdir.json(&["setup", "--json"]);
    assert_eq!(found["found"][0]["model"], "openai:m");
    assert_eq!(found["saved"], Json::Null);
    assert!(!workdir.path("home/settings.json").exists());
    let saved = workdir.json(&["setup", "--yes", "--json"]);
    assert_eq!(saved["model"], "openai:m", "{saved}");
    assert_eq!(saved["openai_base_url"], json!(server.url));
    let ran = workdir.run(&["setup", "--model", "openai:other"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(settings_of(&workdir)["model"], "openai:other");
    let ran = workdir.run(&["setup"], "");
    assert_eq!(ran.code(), Some(2), "{ran:?}");
    assert!(ran.out().contains("Nothing was saved."), "{ran:?}");
    assert_eq!(settings_of(&workdir)["model"], "openai:other");
    let workdir = workdir.with_environment("ARCHIE_MODEL", "ollama:mine");
    let ran = workdir.run(&["setup", "--yes"], "");
    assert!(
        ran.err()
            .contains("ARCHIE_MODEL is set to `ollama:mine` and takes precedence"),
        "{ran:?}"
    );
}

#[test]
fn a_model_that_does_not_answer_is_not_saved() {
    let server = Server::start(|got| match got.path.as_str() {
        "/models" => ServerReply::Json(200, json!({ "data": [{ "id": "m" }] })),
        _ => ServerReply::Json(401, json!({ "error": { "message": "no" } })),
    });
    let workdir = with_server(&server.url());
    let ran = workdir.run(&["setup", "--yes"], "");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert!(
        ran.err().contains("refused the key in OPENAI_API_KEY"),
        "{ran:?}"
    );
    // A person may choose another one.
    let ran = workdir.run(&["setup"], "1\n");
    assert!(ran.err().contains("Choose another one."), "{ran:?}");
    assert_eq!(ran.code(), Some(2), "{ran:?}");
    assert!(!workdir.path("home/settings.json").exists());
}

#[test]
fn without_any_model_setup_says_how_to_get_one() {
    let workdir = with_server(NOWHERE);
    let ran = workdir.run(&["setup"], "");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    for words in ["ollama pull", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"] {
        assert!(ran.out().contains(words), "{words}: {ran:?}");
    }
}

#[test]
fn models_are_listed_with_prices_and_context() {
    let server = Server::start(|got| match got.path.as_str() {
        "/models" => ServerReply::Json(
            200,
            json!({ "data": [{ "id": "gpt-5-mini", "max_model_len": 4096 }] }),
        ),
        _ => ServerReply::Json(404, json!({})),
    });
    let workdir =
        with_server(&server.url()).with_environment("ANTHROPIC_API_KEY", "sk-planted-secret");
    let models = workdir.json(&["models", "--json"]);
    let find = |name: &str| {
        let models = models.as_array().unwrap();
        models.iter().find(|model| model["model"] == name).cloned()
    };
    let local = find("openai:gpt-5-mini").unwrap();
    assert_eq!(local["context_size"], 4096, "{models}");
    // A model on a server of one's own has no price, whatever its name.
    assert_eq!(local["input_dollars_per_million"], Json::Null);
    let hosted = find("anthropic:claude-sonnet-4-5").unwrap();
    assert_eq!(hosted["output_dollars_per_million"], 15.0);
    assert!(find("gemini:gemini-2.5-flash").is_none(), "{models}");
    let ran = workdir.run(&["models"], "");
    assert!(ran.out().contains("$15.00"), "{ran:?}");
    assert!(ran.out().contains("4,096"), "{ran:?}");
    assert!(!ran.out().contains("planted"));
    let none = with_server(NOWHERE).run(&["models"], "");
    assert_eq!(none.code(), Some(1), "{none:?}");
}

#[test]
fn doctor_shows_problems_first_on_one_screen() {
    let server = ModelServer::start(Fault::OneSlot);
    let workdir = with_server(&server.url)
        .with_environment("OPENAI_API_KEY", "sk-planted-secret")
        .with_environment("ARCHIE_PYTHON", "/nowhere/python");
    let shown = in_terminal(&workdir, &["doctor"]);
    let lines: Vec<_> = shown.trim_end().lines().collect();
    assert!(lines.len() <= 24, "{shown}");
    assert!(
        lines.iter().all(|line| line.chars().count() <= 80),
        "{shown}"
    );
    let marks: Vec<_> = lines
        .iter()
        .filter_map(|line| line.get(..2))
        .filter(|mark| ["ok", "!!"].contains(mark))
        .collect();
    assert_eq!(marks, ["!!", "!!", "ok"], "{shown}");
    assert!(shown.contains("run `archie setup`"), "{shown}");
    assert!(shown.contains("OPENAI_API_KEY"), "{shown}");
    assert!(!shown.contains("GEMINI_API_KEY"), "not set: {shown}");
    let all = workdir.run(&["doctor", "--verbose"], "").out();
    assert!(all.contains("GEMINI_API_KEY"), "{all}");
    assert!(!(shown + &all).contains("planted"));
}

#[test]
fn colours_say_what_is_wrong_unless_they_are_not_wanted() {
    let workdir = with_server(NOWHERE).with_environment("ARCHIE_PYTHON", "/nowhere/python");
    let recording = crate::tmux::record(
        &workdir,
        "archie doctor\necho between\nNO_COLOR=1 archie doctor\narchie doctor | cat",
    );
    let (coloured, plain) = recording.raw.split_once("between").unwrap();
    assert!(coloured.contains("\u{1b}[31m!!"), "{coloured:?}");
    assert!(coloured.contains("\u{1b}[32mok"), "{coloured:?}");
    assert!(plain.contains("!!  model"), "{plain:?}");
    assert!(!plain.contains("\u{1b}[3"), "{plain:?}");
}

#[test]
fn a_missing_key_is_named_and_leaves_no_thread_behind() {
    let workdir = Workdir::with_model("openai:gpt-4.1-mini");
    fs::write(workdir.path("mbox"), "").unwrap();
    let commands: [&[&str]; 7] = [
        &["sheet", "sales.xlsx", "--instruction", "Count them"],
        &["analyze", "--query", "x", "--inputs", "./notes"],
        &["ask", "What is a queue?"],
        &["build-context", "--inputs", "./notes", "--name", "orders"],
        &["docs", "./notes"],
        &["mail", "ingest", "./mbox"],
        &["atris", "--extract", "model", "What is new?"],
    ];
    for args in commands {
        let ran = workdir.run(args, "");
        assert_eq!(ran.code(), Some(1), "{args:?}: {ran:?}");
        assert!(
            ran.err()
                .contains("`openai:gpt-4.1-mini` needs a key: OPENAI_API_KEY is not set"),
            "{args:?}: {ran:?}"
        );
    }
    assert_eq!(workdir.json(&["threads", "--json"]), json!([]));
}

#[test]
fn a_bare_name_of_a_local_model_is_suggested_with_its_provider() {
    let server = Server::start(|_| {
        let models = json!([{ "name": "qwen3:8b" }, { "name": "nomic-embed-text" }]);
        ServerReply::Json(200, json!({ "models": models }))
    });
    let workdir = Workdir::with_model("qwen3")
        .with_environment("OLLAMA_HOST", &server.url())
        .with_environment("OPENAI_BASE_URL", NOWHERE);
    let ran = workdir.run(&["ask", "What is a queue?"], "");
    assert!(
        ran.err()
            .contains("`qwen3` is not a model; did you mean `ollama:qwen3:8b`?"),
        "{ran:?}"
    );
    let ran = workdir.run(&["doctor"], "");
    assert!(ran.out().contains("`qwen3` is not a model"), "{ran:?}");
    assert!(!ran.out().contains("script:qwen3"), "{ran:?}");
}
