//! What commands show in terminals of 80 and 120 columns, with their colours. Without colours they show the same text.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use serde_json::{Value as Json, json};

use crate::atris::acceptance::point;
use crate::atris::{Server, server};
use crate::docs::{replies as pages, repository};
use crate::encryption::interview;
use crate::kit::{Workdir, same};
use crate::mail::{
    mail, mbox, sends, triage, wants, with_draft, with_one_approval, with_proposals,
};
use crate::model_server::{Fault, ModelServer};
use crate::serve::ServeProcess;
use crate::sheet::kit::{code, says};
use crate::sheet::with_sales;
use crate::snapshots::{on_screen, settings, threads, workdir, written_until, written_with};
use crate::test_cases::answered_mail;
use crate::tmux::{LOOK, PATIENCE};

/// Variables that are set besides those of the folder.
type Environment<'a> = &'a [(&'a str, &'a str)];

const NO_COLOURS: Environment<'_> = &[("NO_COLOR", "1")];

/// Shows a command in a terminal of both widths, with and without colours, each in a folder that nobody used before.
fn shows(name: &str, folder: impl Fn() -> Workdir, args: impl Fn(&Workdir) -> Vec<String>) {
    shows_by(name, |columns, environment| {
        let workdir = folder();
        let args = args(&workdir);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        shown(&workdir, &args, columns, environment)
    });
}

/// Shows a command that changes nothing in a terminal of both widths, with and without colours, in the same folder.
fn shows_in(workdir: &Workdir, name: &str, args: &[&str]) {
    shows_by(name, |columns, environment| {
        shown(workdir, args, columns, environment)
    });
}

/// Shows what this returns for both widths, with and without colours.
fn shows_by(name: &str, show: impl Fn(u32, Environment<'_>) -> String) {
    for columns in [80, 120] {
        let coloured = show(columns, &[]);
        assert_plain(name, &show(columns, NO_COLOURS), &coloured);
        settings().bind(|| insta::assert_snapshot!(format!("{columns}-{name}"), coloured));
    }
}

/// Fails if this has colours, or is another text than with colours.
fn assert_plain(name: &str, plain: &str, coloured: &str) {
    assert!(!plain.contains('‹'), "{name} without colours: {plain}");
    assert_eq!(without_marks(coloured), plain, "{name}");
}

/// Shows what this returns for both widths, with colours only.
fn shows_coloured(name: &str, show: impl Fn(u32) -> String) {
    for columns in [80, 120] {
        let coloured = show(columns);
        settings().bind(|| insta::assert_snapshot!(format!("{columns}-{name}"), coloured));
    }
}

/// What a command shows, without what differs each time.
fn shown(workdir: &Workdir, args: &[&str], columns: u32, environment: Environment<'_>) -> String {
    steady(&written_with(workdir, args, columns, environment), workdir)
}

/// What is on the screen, without what differs each time: ids, keys, times, ports, and where the test runs.
fn steady(written: &str, workdir: &Workdir) -> String {
    let text = with_short_ids(&without_sizes(&marked(written)));
    let text = same(&text, &workdir.path("home"));
    let folder = workdir.path("").display().to_string();
    let text = text.replace(folder.trim_end_matches('/'), "DIR");
    let text = text.replace(env!("CARGO_BIN_EXE_archie"), "ARCHIE");
    let version = concat!("archie ", env!("CARGO_PKG_VERSION"));
    let text = with_names(&text.replace(version, "archie VERSION"));
    [" ms", " s", " min", " KiB"]
        .iter()
        .fold(text, |text, unit| without_numbers_before(unit, &text))
}

/// Names the words that differ each time.
fn with_names(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    let mut named = String::new();
    let mut left = text;
    while let Some(start) = left.find(is_part) {
        let rest = &left[start..];
        let run = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        let word = run.trim_end_matches(['.', ':', '-']);
        named.push_str(&left[..start]);
        named.push_str(&name_of(word).unwrap_or_else(|| word.to_owned()));
        named.push_str(&run[word.len()..]);
        left = &rest[run.len()..];
    }
    named + left
}

fn name_of(word: &str) -> Option<String> {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_time = word.len() >= 20 && word.starts_with("20") && word.ends_with('Z');
    if word.starts_with("ssk_") {
        return Some("SECRET".to_owned());
    }
    if let Some(port) = word.strip_prefix("127.0.0.1:")
        && port.len() >= 4
    {
        return Some("127.0.0.1:PORT".to_owned());
    }
    if let Some((number, hash)) = word.split_once(':')
        && hash.len() == 64
        && is_hex(hash)
    {
        return Some(format!("{number}:HASH"));
    }
    for begin in ["archie-demo-", "archie-mail-"] {
        if let Some(rest) = word.strip_prefix(begin)
            && rest.get(..8).is_some_and(is_hex)
        {
            return Some(format!("{begin}ID{}", &rest[8..]));
        }
    }
    match word.len() {
        _ if is_time => Some("WHEN".to_owned()),
        12 if is_hex(word) => Some("PROPOSAL".to_owned()),
        24.. if is_hex(word) => Some("HASH".to_owned()),
        _ => None,
    }
}

/// Durations differ, and what threads take in the database.
fn without_numbers_before(unit: &str, text: &str) -> String {
    let mut parts = text.split(unit).peekable();
    let mut without = String::new();
    while let Some(part) = parts.next() {
        let Some(next) = parts.peek() else {
            without.push_str(part);
            break;
        };
        let is_unit = !next.starts_with(char::is_alphanumeric);
        let kept = part.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        match is_unit && kept.len() < part.len() {
            true => without.push_str(&format!("{kept}N")),
            false => without.push_str(part),
        }
        without.push_str(unit);
    }
    without
}

/// With one blank between words: columns that are as wide as numbers that differ.
fn squeezed(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let words: Vec<_> = line.split(' ').filter(|word| !word.is_empty()).collect();
        words.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What is on the screen, with a mark where a colour begins and ends.
fn marked(written: &str) -> String {
    on_screen(written, |sequence| match sequence {
        "[0m" => "‹/›",
        "[1m" => "‹bold›",
        "[2m" => "‹dim›",
        "[3m" => "‹italic›",
        "[4m" => "‹underlined›",
        "[31m" => "‹red›",
        "[32m" => "‹green›",
        "[33m" => "‹yellow›",
        "[34m" => "‹blue›",
        "[35m" => "‹magenta›",
        "[36m" => "‹cyan›",
        colour if colour.ends_with('m') => panic!("no name for the colour {colour}"),
        // A spinner erased its line.
        _ => "",
    })
}

/// Sizes of files differ with the times in them.
fn without_sizes(text: &str) -> String {
    let mut parts: Vec<&str> = text.split(" bytes").collect();
    let last = parts.pop().unwrap_or_default();
    let sizes = parts.into_iter();
    let sizes = sizes.map(|part| part.trim_end_matches(|c: char| c.is_ascii_digit()));
    sizes
        .map(|part| format!("{part}N bytes"))
        .collect::<String>()
        + last
}

/// Short ids are as long as they must be, which differs each time. Ids may have marks of colours around them.
fn with_short_ids(text: &str) -> String {
    let is_id_char = |c: char| c == '-' || c.is_ascii_hexdigit();
    let mut named = String::new();
    let mut left = text;
    while let Some(start) = left.find(is_id_char) {
        let rest = &left[start..];
        let run = &rest[..rest.find(|c| !is_id_char(c)).unwrap_or(rest.len())];
        let is_short = (9..36).contains(&run.len()) && run.find('-') == Some(8);
        named.push_str(&left[..start]);
        let is_id = run.len() == 36 && run.matches('-').count() == 4;
        named.push_str(match (is_id, is_short) {
            (true, _) => "ID",
            (false, true) => "SHORT",
            (false, false) => run,
        });
        left = &rest[run.len()..];
    }
    named + left
}

fn without_marks(text: &str) -> String {
    let mut plain = String::new();
    for part in text.split('‹') {
        match part.split_once('›') {
            Some((_, rest)) => plain.push_str(rest),
            None => plain.push_str(part),
        }
    }
    plain
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Shows a command, in whose words `WAITS` and `DONE` stand for the paused and the finished thread.
fn shows_threads(name: &str, line: &str) {
    shows(name, workdir, |workdir| {
        let (waits, done) = threads(workdir);
        words(&line.replace("WAITS", &waits).replace("DONE", &done))
    });
}

#[test]
fn commands_that_read() {
    for (name, line) in [
        ("threads", "threads"),
        ("show", "show WAITS"),
        ("show-finished", "show DONE"),
        ("history", "history DONE"),
        ("inbox", "inbox --plain"),
        ("inbox-all", "inbox --all"),
        ("diff", "diff WAITS DONE"),
        ("resume-finished", "resume DONE"),
        ("undo", "undo DONE"),
    ] {
        shows_threads(name, line);
    }
}

#[test]
fn commands_that_change_threads() {
    for (name, line) in [
        ("fork", "fork DONE --at 3"),
        ("fork-answer", "fork DONE --at 3 --answer DONE"),
        ("export", "export DONE thread.archive"),
        ("delete", "delete WAITS DONE"),
        ("delete-yes", "delete WAITS DONE --yes"),
        ("backup", "backup copy.db"),
    ] {
        shows_threads(name, line);
    }
    let exported = || {
        let workdir = workdir();
        let (_, done) = threads(&workdir);
        for line in [
            format!("export {done} thread.archive"),
            format!("delete {done} --yes"),
        ] {
            let line = words(&line);
            let line: Vec<_> = line.iter().map(String::as_str).collect();
            assert_eq!(workdir.run(&line, "").code(), Some(0));
        }
        workdir
    };
    shows("import", exported, |_| words("import thread.archive"));
}

#[test]
fn commands_about_the_program() {
    for (name, line) in [
        ("threads-none", "threads"),
        ("inbox-none", "inbox --plain"),
        ("graph", "graph analyze"),
        ("check", "check"),
        ("models", "models"),
        ("setup", "setup"),
        ("api-list", "api list"),
        ("mcp-list", "mcp list"),
        ("keys-list", "keys list"),
        ("audit-list", "audit list"),
        ("audit-verify", "audit verify"),
        ("mail-rules", "mail rules"),
        ("mail-memory", "mail memory"),
        ("new", "new hello"),
        ("unknown-thread", "show 01a1"),
        ("unknown-command", "analyse"),
        ("unknown-model", "ask --model gpt-4o why"),
        ("no-file", "import nothing.archive"),
    ] {
        shows(name, nobody, |_| words(line));
    }
}

#[test]
fn commands_that_ask_a_model() {
    let ask = || {
        Workdir::scripted(&json!([
            { "at": "ask", "text": "## Queues\n\nUse **one** queue, because one machine is enough for ten thousand orders a day; a second one adds a failure that nobody watches.\n\n- first\n- second\n", "usage": { "input_tokens": 100, "output_tokens": 30 } }
        ]))
    };
    shows("ask", ask, |_| words("ask which queue"));
    let analyze = || {
        Workdir::scripted(&json!([
            { "at": "initial", "text": "Is ordering required?", "usage": { "input_tokens": 100, "output_tokens": 5 } }
        ]))
    };
    shows("analyze", analyze, |_| {
        words("analyze --query orders --inputs ./notes")
    });
    let fails = || Workdir::scripted(&json!([]));
    shows("analyze-fails", fails, |_| {
        words("analyze --query orders --inputs ./notes")
    });
}

/// A folder where no server of this machine is found.
fn nobody() -> Workdir {
    let workdir = Workdir::scripted(&json!([]));
    workdir
        .with_environment("OLLAMA_HOST", "127.0.0.1:9")
        .with_environment("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
}

/// Shows a command where nothing is yet.
fn shows_at_first(name: &str, line: &str) {
    shows(name, nobody, |_| words(line));
}

#[test]
fn commands_of_operators() {
    shows_at_first("erase", "erase acme --yes");
    shows_at_first("erase-asks", "erase acme");
    shows_at_first("worker", "worker");
    shows_by("completions", |columns, environment| {
        let script = shown(&nobody(), &["completions", "bash"], columns, environment);
        script.lines().take(8).collect::<Vec<_>>().join("\n")
    });
    let create = "keys create --principal ada --permissions read,run --name laptop";
    shows_at_first("keys-create", create);
    let with_key = nobody();
    let json = words(&format!("{create} --expires 30d --json"));
    let json: Vec<_> = json.iter().map(String::as_str).collect();
    let created = with_key.json(&json);
    let key = created["key_id"].as_str().unwrap();
    shows_in(&with_key, "keys-list-one", &["keys", "list"]);
    for command in ["rotate", "revoke"] {
        shows(
            &format!("keys-{command}"),
            || with_key.copy(),
            |_| words(&format!("keys {command} {key}")),
        );
    }
    let create = "encryption create-key archie.key";
    shows_at_first("encryption-create-key", create);
    shows("encryption-add-key", interview, |_| {
        words("encryption add-key archie.key")
    });
    for command in ["list", "rewrap", "rotate"] {
        let name = format!("encryption-{command}");
        shows(&name, interview, |_| {
            words(&format!("encryption {command}"))
        });
    }
    let audited = nobody();
    let server = ServeProcess::with(audited.command(), &["--audit"]);
    let host = ("host", server.address.as_str());
    assert_eq!(server.status("POST /threads", &[host]), 200);
    // The outcome is stored after the reply.
    let begun = Instant::now();
    while !audited
        .run(&["audit", "list"], "")
        .out()
        .contains("outcome")
    {
        assert!(begun.elapsed() < PATIENCE, "the outcome is not stored");
        std::thread::sleep(LOOK);
    }
    drop(server);
    shows_in(&audited, "audit-list-some", &["audit", "list"]);
    shows_in(&audited, "audit-verify-some", &["audit", "verify"]);
    shows(
        "audit-prune",
        || audited.copy(),
        |_| words("audit prune --before 2020-01-01"),
    );
}

/// An API as a document.
fn with_shop() -> Workdir {
    let workdir = nobody();
    let call = |id: &str, what: &str| json!({ "operationId": id, "summary": what, "tags": ["orders"], "responses": {} });
    let document = json!({
        "openapi": "3.0.0",
        "info": { "title": "Shop", "version": "1" },
        "servers": [{ "url": "https://shop.example/v1" }],
        "paths": { "/orders": { "get": call("orders", "Lists orders"), "post": call("order", "Places an order") } }
    });
    fs::write(workdir.path("shop.json"), document.to_string()).unwrap();
    workdir
}

#[test]
fn commands_about_apis() {
    let add = "api add shop.json --name shop";
    shows("api-add-asks", with_shop, |_| words(add));
    let add = format!("{add} --allow-host shop.example");
    shows("api-add", with_shop, |_| words(&add));
    let added = with_shop();
    let line = words(&add);
    let line: Vec<_> = line.iter().map(String::as_str).collect();
    assert_eq!(added.run(&line, "").code(), Some(0));
    shows_in(&added, "api-list-one", &["api", "list"]);
    shows_in(&added, "api-show", &["api", "show", "shop"]);
    shows("api-remove", || added.copy(), |_| words("api remove shop"));
    let audius = Server::start(server::audius);
    let asks = nobody();
    point(&asks, &[&audius]);
    let trending = "What are the trending tracks on Audius?";
    shows_in(&asks, "atris", &["atris", trending]);
    shows_in(&asks, "atris-health", &["atris", "health"]);
    shows_in(
        &asks,
        "atris-watch",
        &["atris", "watch", trending, "--looks", "1"],
    );
}

/// An MCP server with one tool, as a shell script.
const NOTES_SERVER: &str = r#"#!/bin/sh
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    result=
    case "$line" in
    *'"method":"initialize"'*)
        result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"notes","version":"1"}}' ;;
    *'"method":"tools/list"'*)
        result='{"tools":[{"name":"search","description":"Searches the notes.","inputSchema":{"type":"object","properties":{"words":{"type":"string"}},"required":["words"]}}]}' ;;
    esac
    if [ -n "$result" ]; then echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$result}"; fi
done
"#;

fn with_notes_server() -> Workdir {
    let workdir = nobody();
    let program = workdir.path("notes.sh");
    fs::write(&program, NOTES_SERVER).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    workdir
}

fn mcp_add(workdir: &Workdir, option: &[&str]) -> Vec<String> {
    let program = workdir.path("notes.sh").display().to_string();
    let args = [&["mcp", "add", "notes"][..], option, &["--", &program]].concat();
    args.into_iter().map(str::to_owned).collect()
}

/// The server is in the settings, and its tool is not accepted.
fn with_added_server() -> Workdir {
    let workdir = with_notes_server();
    let args = mcp_add(&workdir, &[]);
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let ran = workdir.run(&args, "");
    assert_eq!(ran.code(), Some(2), "{ran:?}");
    workdir
}

#[test]
fn commands_about_mcp_servers() {
    shows("mcp-add", with_notes_server, |workdir| {
        mcp_add(workdir, &["--yes"])
    });
    shows("mcp-add-asks", with_notes_server, |workdir| {
        mcp_add(workdir, &[])
    });
    for (name, line) in [
        ("mcp-list-one", "mcp list"),
        ("mcp-check", "mcp check notes"),
        ("mcp-accept", "mcp accept notes"),
        ("mcp-remove", "mcp remove notes"),
    ] {
        shows(name, with_added_server, |_| words(line));
    }
}

/// A mail that was sorted in one way, and would be sorted in another.
fn with_second_thoughts() -> Workdir {
    let workdir = Workdir::scripted(&json!([
        triage("respond"),
        wants(json!([sends("On Friday.")])),
        triage("notify"),
    ]));
    let one = mail("q4@x", "Bob <bob@example.com>", "Q4 report?", "When?");
    fs::write(workdir.path("mbox"), mbox(&[one])).unwrap();
    let ran = workdir.run(&["mail", "ingest", "./mbox"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    workdir
}

#[test]
fn commands_about_mail() {
    shows("mail-ingest", with_one_approval, |_| {
        words("mail ingest ./mbox")
    });
    shows("mail-time-machine", with_second_thoughts, |_| {
        words("mail time-machine ./mbox --days 100000")
    });
    shows("mail-tones", with_draft, |workdir| {
        let item = workdir.items().remove(0);
        words(&format!("mail tones {item} --tone brief --tone warm"))
    });
    shows("mail-login", nobody, |_| {
        words("mail login imaps://ada@mail.example")
    });
    // It names the program, whose path is longer on some machines, so lines end elsewhere.
    shows_by("mail-schedule", |columns, environment| {
        let workdir = nobody();
        let config = workdir.path("config").display().to_string();
        let environment = [environment, &[("XDG_CONFIG_HOME", config.as_str())]].concat();
        let timer = shown(
            &workdir,
            &["mail", "schedule", "./mbox"],
            columns,
            &environment,
        );
        let timer = without_marks(&timer);
        timer.split_whitespace().collect::<Vec<_>>().join("\n")
    });
}

#[test]
fn commands_about_what_was_learned_from_mail() {
    let proposed = with_proposals();
    let memory = |command: &str| words(&format!("mail memory {command}"));
    for (name, command) in [
        ("mail-memory-show", "show"),
        ("mail-memory-proposed", "proposed"),
        ("mail-memory-accept", "accept all"),
        ("mail-memory-reject", "reject all"),
    ] {
        shows(name, || proposed.copy(), |_| memory(command));
    }
    let ran = proposed.run(&["mail", "memory", "accept", "all"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    for (name, command) in [
        ("mail-memory-history", "history response"),
        ("mail-memory-revert", "revert response 1"),
        ("mail-memory-undo", "undo response"),
        ("mail-memory-forget", "forget response"),
    ] {
        shows(name, || proposed.copy(), |_| memory(command));
    }
}

/// A repository, and an agent that writes one page about it.
fn with_repository() -> Workdir {
    let workdir = Workdir::scripted(&Json::Array(pages("file-structure", &[90], &[])));
    repository(&workdir.path(""));
    workdir
}

#[test]
fn commands_about_documents() {
    let docs = "docs repo --agents file-structure";
    shows("docs", with_repository, |_| words(docs));
    let check = format!("{docs} --check");
    shows("docs-stale", with_repository, |_| words(&check));
    let documented = with_repository();
    let line = words(docs);
    let line: Vec<_> = line.iter().map(String::as_str).collect();
    assert_eq!(documented.run(&line, "").code(), Some(0));
    let line = words(&check);
    let line: Vec<_> = line.iter().map(String::as_str).collect();
    shows_in(&documented, "docs-fresh", &line);
    let thread = documented.thread();
    shows_in(&documented, "docs-versions", &["docs", "versions", &thread]);
    let context = || {
        Workdir::scripted(&json!([
            { "at": "context", "json": { "facts": [
                { "claim": "There are 10,000 orders a day.", "file": "a.md", "line": 3, "quote": "Ten thousand orders a day" }
            ] } },
            { "at": "entities", "json": {
                "entities": [{ "name": "Orders", "type": "service", "description": "Takes orders." }], "relationships": []
            } }
        ]))
    };
    shows("build-context", context, |_| {
        words("build-context --inputs ./notes --name orders")
    });
}

#[test]
fn commands_about_models_and_runs() {
    let server = ModelServer::start(Fault::OneSlot);
    let with_model = Workdir::with_model("openai:m")
        .with_environment("OLLAMA_HOST", "127.0.0.1:9")
        .with_environment("OPENAI_BASE_URL", &server.url);
    shows_in(&with_model, "models-some", &["models"]);
    let without_model = Workdir::with_model("")
        .with_environment("OLLAMA_HOST", "127.0.0.1:9")
        .with_environment("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        .with_environment("ARCHIE_PYTHON", "/nowhere/python");
    shows_coloured("doctor", |columns| {
        let coloured = shown(&without_model, &["doctor"], columns, &[]);
        let plain = shown(&without_model, &["doctor"], columns, NO_COLOURS);
        // Behind the rest, it lists the variables that are set.
        let rest = |text: &str| text.split_once("environment:").unwrap().0.to_owned();
        assert!(plain.contains("NO_COLOR"), "{plain}");
        assert_plain("doctor", &rest(&plain), &rest(&coloured));
        coloured
    });
    shows_in(&without_model, "eval", &["eval", "atris", "--cases", "5"]);
    shows("run", nobody, |_| {
        words("run analyze --input {\"userInput\":\"hello\"}")
    });
    let workdir = workdir();
    let (_, done) = threads(&workdir);
    shows_by("trace", |columns, environment| {
        squeezed(&shown(&workdir, &["trace", &done], columns, environment))
    });
    shows_in(&workdir, "inbox-item", &["inbox", &workdir.items()[0]]);
    shows_in(&workdir, "size", &["size"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_about_test_cases() {
    let case = answered_mail().await;
    let workdir = nobody();
    fs::write(workdir.path("a.case.json"), case.to_string()).unwrap();
    shows_in(&workdir, "test", &["test", "a.case.json"]);
    shows_in(&workdir, "test-no-case", &["test", "notes/b.txt"]);
}

/// Counts the products of a workbook in a new sheet.
fn with_counts() -> Workdir {
    let counts =
        "new_sheet('Counts', table('Sales').groupby('Product').size().reset_index(name='n'))";
    with_sales(&json!([code(counts), says("Finish: Four products.")]))
}

const COUNT: [&str; 5] = [
    "sheet",
    "sales.xlsx",
    "--instruction",
    "Count each product in a new sheet",
    "--yes",
];

#[test]
fn commands_about_workbooks() {
    shows("sheet", with_counts, |_| COUNT.map(str::to_owned).to_vec());
    let counted = with_counts();
    let ran = counted.run(&COUNT, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let thread = counted.thread();
    let at = ["sheet", "at", &thread, "1", "--output", "step1.xlsx"];
    shows_in(&counted, "sheet-at", &at);
    let diff = ["sheet", "diff", "sales.xlsx", "step1.xlsx"];
    shows_in(&counted, "sheet-diff", &diff);
    let wrong_day = ["sheet", "open-posts", "sales.xlsx", "--as-of", "tomorrow"];
    shows_in(&counted, "sheet-open-posts", &wrong_day);
    let replay = [
        "sheet",
        "replay",
        "out/code.py",
        "--on",
        "sales.xlsx",
        "--yes",
        "--output",
        "again",
    ];
    shows(
        "sheet-replay",
        || counted.copy(),
        |_| replay.map(str::to_owned).to_vec(),
    );
}

#[test]
fn commands_that_serve_until_ctrl_c() {
    for (name, line) in [
        ("serve", "serve --listen 127.0.0.1:0"),
        ("studio", "studio --no-browser --listen 127.0.0.1:0"),
    ] {
        shows_by(name, |columns, environment| {
            let workdir = nobody();
            let args = words(line);
            let args: Vec<_> = args.iter().map(String::as_str).collect();
            let written = written_until("/studio/", &workdir, &args, columns, environment);
            steady(&written, &workdir)
        });
    }
}

#[test]
fn the_demo() {
    // It takes long, and prints what the commands of the other tests print.
    shows_coloured("demo", |columns| {
        let workdir = nobody();
        let temporary = workdir.path("temporary");
        fs::create_dir(&temporary).unwrap();
        let python = superstep_conformance::services::program("sandbox");
        let environment = [
            ("TMPDIR", temporary.to_str().unwrap()),
            ("ARCHIE_PYTHON", python.as_str()),
        ];
        let args = ["demo", "--no-pause"];
        let written = written_until("/studio/", &workdir, &args, columns, &environment);
        let shown = steady(&written, &workdir);
        // The writers of documents are at work at once, so the order of their lines differs.
        let (before, rest) = shown.split_once("2 of 5").unwrap();
        let (_, after) = rest.split_once("3 of 5").unwrap();
        format!("{before}2 of 5: left out here\n3 of 5{after}")
    });
}
