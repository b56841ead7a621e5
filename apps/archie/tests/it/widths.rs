//! What commands show in terminals of 80 and 120 columns, with their colours. Without colours they show the same text.

use serde_json::json;

use crate::kit::{Workdir, same};
use crate::snapshots::{on_screen, settings, threads, workdir, written_to_terminal};

/// Shows a command in a terminal of both widths, with and without colours, each in a folder that nobody used before.
fn shows(name: &str, folder: impl Fn() -> Workdir, args: impl Fn(&Workdir) -> Vec<String>) {
    for columns in [80, 120] {
        let [coloured, plain] = [None, Some(("NO_COLOR", "1"))].map(|colour| {
            let mut workdir = folder();
            if let Some((name, value)) = colour {
                workdir = workdir.with_environment(name, value);
            }
            let args = args(&workdir);
            let args: Vec<_> = args.iter().map(String::as_str).collect();
            let written = written_to_terminal(&workdir, &args, columns);
            same(
                &with_short_ids(&without_sizes(&marked(&written))),
                &workdir.path("home"),
            )
        });
        assert!(!plain.contains('‹'), "{name} without colours: {plain}");
        assert_eq!(without_marks(&coloured), plain, "{name}");
        settings().bind(|| insta::assert_snapshot!(format!("{columns}-{name}"), coloured));
    }
}

/// What is on the screen, with a mark where a colour begins and ends.
fn marked(written: &str) -> String {
    on_screen(written, |sequence| match sequence {
        "[0m" => "‹/›",
        "[1m" => "‹bold›",
        "[2m" => "‹dim›",
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
    let parts = text.split(" bytes");
    let parts = parts.map(|part| part.trim_end_matches(|c: char| c.is_ascii_digit()));
    parts.collect::<Vec<_>>().join("N bytes")
}

/// Short ids are as long as they must be, which differs each time.
fn with_short_ids(text: &str) -> String {
    let is_id_char = |c: char| c == '-' || c.is_ascii_hexdigit();
    let mut named = String::new();
    let mut left = text;
    while let Some(start) = left.find(is_id_char) {
        let rest = &left[start..];
        let run = &rest[..rest.find(|c| !is_id_char(c)).unwrap_or(rest.len())];
        let is_short = (9..36).contains(&run.len()) && run.find('-') == Some(8);
        named.push_str(&left[..start]);
        named.push_str(if is_short { "SHORT" } else { run });
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
        ("backup", "backup copy.db"),
    ] {
        shows_threads(name, line);
    }
    let exported = || {
        let workdir = workdir();
        let (_, done) = threads(&workdir);
        for line in [
            format!("export {done} thread.archive"),
            format!("delete {done}"),
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
    let nobody = || {
        let workdir = Workdir::scripted(&json!([]));
        // No server of this machine.
        let workdir = workdir.with_environment("OLLAMA_HOST", "127.0.0.1:9");
        workdir.with_environment("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    };
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
