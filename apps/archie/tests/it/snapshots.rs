//! What every command says: its help, its output into a pipe and in a terminal, its JSON. A change of any of them is seen.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use clap::CommandFactory;
use serde_json::json;

use crate::kit::{Workdir, same};

/// A finished and a paused analysis.
pub(crate) fn workdir() -> Workdir {
    let workdir = Workdir::scripted(&json!([
        {"at": "initial", "text": "Is ordering required?", "usage": {"input_tokens": 100, "output_tokens": 5}},
        {"at": "final", "usage": {"input_tokens": 120, "output_tokens": 40}, "json": {
            "assumptions": [], "components": [{"claim": "A queue."}], "alternatives": [],
            "decisions": [{"claim": "One machine is enough.", "file": "b.txt", "line": 1, "quote": "We have one machine"}],
            "open_questions": []
        }},
        {"at": "initial", "text": "How much may be lost?"}
    ]));
    let analyze = |query| ["analyze", "--query", query, "--inputs", "./notes"];
    assert_eq!(
        workdir.run(&analyze("Choose a queue"), "DONE\n").code(),
        Some(0)
    );
    assert_eq!(
        workdir.run(&analyze("Choose a database"), "").code(),
        Some(3)
    );
    workdir
}

/// The ids of the two: the one that waits, the one that is finished.
pub(crate) fn threads(workdir: &Workdir) -> (String, String) {
    let rows = workdir.json(&["threads", "--json"]);
    let id = |at: usize| rows[at]["thread"].as_str().unwrap().to_owned();
    (id(0), id(1))
}

/// In a terminal of eighty columns, without its control characters.
pub(crate) fn in_terminal(workdir: &Workdir, args: &[&str]) -> String {
    plain(&written_to_terminal(workdir, args, 80))
}

/// Every byte that is written to a terminal.
pub(crate) fn written_to_terminal(workdir: &Workdir, args: &[&str], columns: u32) -> String {
    written_with(workdir, args, columns, &[])
}

/// Every byte that is written to a terminal, with further variables in the environment.
pub(crate) fn written_with(
    workdir: &Workdir,
    args: &[&str],
    columns: u32,
    environment: &[(&str, &str)],
) -> String {
    let mut script = in_script(workdir, args, columns, environment);
    let shown = script.stdin(Stdio::null()).output();
    String::from_utf8_lossy(&shown.unwrap().stdout).into_owned()
}

/// The same for a command that goes on until Ctrl-C, which is pressed when this is on the screen.
pub(crate) fn written_until(
    text: &str,
    workdir: &Workdir,
    args: &[&str],
    columns: u32,
    environment: &[(&str, &str)],
) -> String {
    let mut script = in_script(workdir, args, columns, environment);
    script.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = script.spawn().unwrap();
    let mut keys = process.stdin.take().unwrap();
    let mut output = process.stdout.take().unwrap();
    let (mut written, mut is_pressed) = (Vec::new(), false);
    let mut bytes = [0; 4_096];
    loop {
        let count = output.read(&mut bytes).unwrap();
        if count == 0 {
            break;
        }
        written.extend_from_slice(&bytes[..count]);
        if !is_pressed && String::from_utf8_lossy(&written).contains(text) {
            keys.write_all(CTRL_C).unwrap();
            is_pressed = true;
        }
    }
    process.wait().unwrap();
    let written = String::from_utf8_lossy(&written).into_owned();
    assert!(is_pressed, "{text:?} never came: {written}");
    written
}

const CTRL_C: &[u8] = b"\x03";

/// The program in a terminal of so many columns.
fn in_script(
    workdir: &Workdir,
    args: &[&str],
    columns: u32,
    environment: &[(&str, &str)],
) -> Command {
    let program = workdir.command();
    let words = args.iter().map(|word| format!("'{word}'"));
    let words: Vec<_> = std::iter::once(program.get_program().to_str().unwrap().to_owned())
        .chain(words)
        .collect();
    let mut script = Command::new("script");
    script.args([
        "-q",
        "-e",
        "-c",
        &format!("stty cols {columns} rows 24; {}", words.join(" ")),
        "/dev/null",
    ]);
    script.current_dir(workdir.path("")).env_clear();
    script.env("TERM", "xterm").envs(
        program
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    script.envs(environment.iter().copied());
    script
}

/// Without colours, moves of the cursor and what a spinner drew.
fn plain(shown: &str) -> String {
    on_screen(shown, |_| "")
}

/// What is on the screen after all this was written, with a mark in the place of each control sequence.
pub(crate) fn on_screen(written: &str, mark: impl Fn(&str) -> &'static str) -> String {
    let mut text = String::new();
    let mut left = written;
    while let Some((before, rest)) = left.split_once('\u{1b}') {
        text.push_str(before);
        let end = rest.find(|c: char| c.is_ascii_alphabetic());
        let (sequence, rest) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        text.push_str(mark(sequence));
        left = rest;
    }
    text.push_str(left);
    // A line that was drawn over shows what was drawn last.
    let lines = text
        .lines()
        .map(|line| line.rsplit('\r').next().unwrap_or_default().trim_end());
    lines.collect::<Vec<_>>().join("\n")
}

pub(crate) fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}

/// The words of a command's own commands, and of theirs.
fn words_of(command: &clap::Command, before: &[String]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for command in command.get_subcommands() {
        let mut words = before.to_vec();
        words.push(command.get_name().to_owned());
        all.push(words.clone());
        all.extend(words_of(command, &words));
    }
    all
}

#[test]
fn every_help() {
    let workdir = Workdir::with_model("");
    settings().bind(|| {
        insta::assert_snapshot!("help", workdir.run(&["--help"], "").out());
        for words in words_of(&archie::cli::args::Args::command(), &[]) {
            let mut args: Vec<&str> = words.iter().map(String::as_str).collect();
            args.push("--help");
            let help = workdir.run(&args, "");
            let name = words.join("-");
            assert_eq!(help.code(), Some(0), "{name}");
            insta::assert_snapshot!(format!("help-{name}"), help.out());
        }
    });
}

fn snapshot_names() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots");
    let files = std::fs::read_dir(folder).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let names = names.filter_map(|name| Some(name.strip_suffix(".snap")?.to_owned()));
    names.collect()
}

#[test]
fn every_command_has_a_help_snapshot_and_every_snapshot_a_command() {
    let mut snapshots = snapshot_names();
    snapshots.retain(|name| name == "help" || name.starts_with("help-"));
    let commands = words_of(&archie::cli::args::Args::command(), &[]);
    let commands = commands
        .iter()
        .map(|words| format!("help-{}", words.join("-")));
    let expected: BTreeSet<String> = commands.chain(["help".to_owned()]).collect();
    // `docs/cli.md` is made of the files, so one too many is as wrong as one too few.
    let missing: Vec<_> = expected.difference(&snapshots).collect();
    let left_over: Vec<_> = snapshots.difference(&expected).collect();
    assert!(
        missing.is_empty() && left_over.is_empty(),
        "`every_help` has not written {missing:?} yet; delete {left_over:?}"
    );
}

/// The command that this is a snapshot of: the one with the longest name that it begins with, so that `docs-stale` is of `docs`, and
/// `docs-versions` is not.
fn command_of<'c>(snapshot: &str, commands: &'c BTreeSet<String>) -> Option<&'c str> {
    let is_of = |command: &&String| {
        let rest = snapshot.strip_prefix(command.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let fitting = commands.iter().filter(is_of);
    fitting
        .max_by_key(|command| command.len())
        .map(String::as_str)
}

/// The commands that no snapshot shows in a terminal of so many columns.
fn without_snapshot<'c>(
    columns: u32,
    commands: &'c BTreeSet<String>,
    snapshots: &BTreeSet<String>,
) -> Vec<&'c str> {
    let begin = format!("{columns}-");
    let names = snapshots
        .iter()
        .filter_map(|name| name.strip_prefix(&begin));
    let shown: BTreeSet<_> = names
        .filter_map(|name| command_of(name, commands))
        .collect();
    let commands = commands.iter().map(String::as_str);
    commands.filter(|name| !shown.contains(name)).collect()
}

#[test]
fn every_command_is_shown_in_terminals_of_both_widths() {
    let root = archie::cli::args::Args::command();
    // One that needs a further command, such as `mail`, prints its help.
    let does_something = |words: &Vec<String>| {
        let mut words = words.iter();
        let command = words.try_fold(&root, |above, word| above.find_subcommand(word));
        !command.unwrap().is_subcommand_required_set()
    };
    let words = words_of(&root, &[]).into_iter().filter(does_something);
    let commands: BTreeSet<String> = words.map(|words| words.join("-")).collect();
    let snapshots = snapshot_names();
    for columns in [80, 120] {
        let missing = without_snapshot(columns, &commands, &snapshots);
        assert!(
            missing.is_empty(),
            "nothing in `widths.rs` shows {missing:?} in {columns} columns"
        );
    }
}

#[test]
fn a_command_that_is_shown_in_one_width_or_not_at_all_is_found() {
    let set = |names: &[&str]| -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    };
    let commands = set(&["docs", "docs-versions", "show", "size"]);
    let snapshots = set(&[
        "80-docs-versions",
        "80-show-finished",
        "80-sizes",
        "120-size",
    ]);
    assert_eq!(
        without_snapshot(80, &commands, &snapshots),
        ["docs", "size"]
    );
}

#[test]
fn every_output_and_its_json() {
    let workdir = workdir();
    let (waits, done) = threads(&workdir);
    let (waits, done) = (waits.as_str(), done.as_str());
    let commands: &[(&str, &[&str])] = &[
        ("threads", &["threads"]),
        ("show", &["show", waits]),
        ("history", &["history", done]),
        ("inbox", &["inbox", "--plain"]),
        ("inbox-all", &["inbox", "--all"]),
        ("diff", &["diff", waits, done]),
        ("graph", &["graph", "analyze"]),
        ("check", &["check"]),
        ("resume-finished", &["resume", done]),
    ];
    let home = workdir.path("home");
    settings().bind(|| {
        for (name, args) in commands {
            let ran = workdir.run(args, "");
            insta::assert_snapshot!(format!("piped-{name}"), same(&ran.out(), &home));
            let shown = in_terminal(&workdir, args);
            insta::assert_snapshot!(format!("terminal-{name}"), same(&shown, &home));
            let mut with_json = args.to_vec();
            with_json.push("--json");
            let told = told(workdir.json(&with_json));
            insta::assert_snapshot!(format!("json-{name}"), told);
        }
    });
}

#[test]
fn no_line_is_wider_than_the_terminal_and_no_word_is_broken() {
    let workdir = workdir();
    let (waits, done) = threads(&workdir);
    let (waits, done) = (waits.as_str(), done.as_str());
    let commands: [&[&str]; 6] = [
        &["threads"],
        &["show", done],
        &["history", done],
        &["diff", waits, done],
        &["resume", done],
        &["doctor"],
    ];
    for columns in [80, 120] {
        for args in commands {
            let shown = plain(&written_to_terminal(&workdir, args, columns));
            for line in shown.lines() {
                let width = line.chars().count();
                // A path or an id is one word, which may be longer than a line.
                let is_one_word = line.split_whitespace().count() == 1;
                assert!(
                    width <= columns as usize || is_one_word,
                    "{args:?}: {line:?}\n{shown}"
                );
            }
        }
    }
}

#[test]
fn colours_have_a_meaning_and_can_be_turned_off() {
    let threads = |workdir: &Workdir| written_to_terminal(workdir, &["threads"], 80);
    let coloured = threads(&workdir());
    assert!(
        coloured.contains("\u{1b}[33mwaiting for you"),
        "{coloured:?}"
    );
    for (name, value) in [("NO_COLOR", "1"), ("ARCHIE_PLAIN", "1"), ("TERM", "dumb")] {
        let plain = threads(&workdir().with_environment(name, value));
        assert!(plain.contains("waiting for you"), "{plain:?}");
        assert!(!plain.contains('\u{1b}'), "{name}: {plain:?}");
    }
    let piped = workdir().run(&["threads"], "").out();
    assert!(!piped.contains('\u{1b}'), "{piped:?}");
}

/// JSON with its fields in order and without what differs each time.
fn told(json: serde_json::Value) -> String {
    fn clean(json: serde_json::Value) -> serde_json::Value {
        use serde_json::Value as Json;
        match json {
            Json::Object(fields) => {
                let fields: std::collections::BTreeMap<_, _> = fields.into_iter().collect();
                let fields = fields.into_iter().map(|(name, value)| {
                    let is_time = name == "at" || name.ends_with("At");
                    let is_id = matches!(
                        name.as_str(),
                        "id" | "short_id" | "digest" | "thread" | "folder" | "root"
                    );
                    let value = match value {
                        Json::Number(_) if is_time => json!("TIME"),
                        Json::String(_) if is_id => json!("ID"),
                        other => clean(other),
                    };
                    (name, value)
                });
                Json::Object(fields.collect())
            }
            Json::Array(items) => items.into_iter().map(clean).collect(),
            other => other,
        }
    }
    serde_json::to_string_pretty(&clean(json)).unwrap()
}
