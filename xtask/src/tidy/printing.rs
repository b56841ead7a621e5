//! The program prints through its sink only: there a stranger's text is made printable.

use super::assert_tidy;
use super::files::{self, File};
use super::rust_code::{code_only, line_of, words};

/// The sink.
const SINK: &str = "apps/archie/src/terminal.rs";

/// The program and its agents.
const PLACES: &[&str] = &["apps/archie/src/", "agents/"];

const MACROS: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];

/// Functions of `std::io` and `tokio::io`, and types that open the terminal.
const STREAMS: &[&str] = &["stdout", "stderr", "Stdout", "Stderr", "Term"];

fn faults_of(file: &File) -> Vec<String> {
    let code = code_only(&file.text);
    let mut faults = Vec::new();
    for (place, word) in words(&code) {
        let (before, after) = (&code[..place], &code[place + word.len()..]);
        let is_macro = MACROS.contains(&word) && after.starts_with('!');
        // `command.stdout(…)` is where a child writes; `io::stdout` and what `use` brings in is where we do.
        let is_ours = !before.trim_end().ends_with(['.', '"']);
        let is_stream = STREAMS.contains(&word) && is_ours && !is_field(before, after);
        if is_macro || is_stream {
            faults.push(format!(
                "{}:{}: `{word}` prints past the sink; use `Terminal` or a function of `terminal.rs`",
                file.path,
                line_of(&code, place)
            ));
        }
    }
    if file.text.contains("/dev/tty") {
        faults.push(format!("{}: `/dev/tty` is past the sink", file.path));
    }
    faults
}

/// Whether this is a name of our own: a field, a binding or an argument.
fn is_field(before: &str, after: &str) -> bool {
    let is_path = before.trim_end().ends_with("::") || before.trim_end().ends_with(['{', ',']);
    let is_called = after.trim_start().starts_with('(');
    !is_path && !is_called || after.starts_with(':') && !after.starts_with("::")
}

#[test]
fn the_program_prints_through_its_sink() {
    let files = files::all();
    let program: Vec<_> = files
        .iter()
        .filter(|file| PLACES.iter().any(|place| file.path.starts_with(place)))
        .filter(|file| file.is_rust() && !file.path.contains("/tests/"))
        .collect();
    assert!(program.iter().any(|file| file.path == SINK), "no sink");
    // What a test prints, only the person who runs it reads.
    let is_test = |file: &&&files::File| file.path.ends_with("/tests.rs");
    let others = program
        .into_iter()
        .filter(|file| file.path != SINK && !is_test(&file));
    assert_tidy(&others.flat_map(faults_of).collect::<Vec<_>>());
}

#[test]
fn whatever_prints_is_found() {
    for text in [
        "println!(\"{x}\");",
        "eprint! (x)",
        "dbg!(x)",
        "let out = std::io::stdout().lock();",
        "use std::io::{stderr, Write};",
        "use std::io::{Write, stdout};",
        "writeln!(io::stderr(), \"x\")",
        "let all = tokio::io::stdout();",
        "fn f() { stdout().flush() }",
    ] {
        let text = text.replace("! (", "!(");
        assert_eq!(faults_of(&File::new("a.rs", &text)).len(), 1, "{text}");
    }
}

#[test]
fn the_streams_of_a_child_are_fine() {
    let text = "command.stdout(Stdio::piped()).stderr(Stdio::null());\nlet text = output.stdout;\nself.print(text);\n// println!\nlet stderr = child.stderr.take();\nsend(\"stdout\");\nstruct Ran { stdout: String }";
    assert_eq!(faults_of(&File::new("a.rs", text)), Vec::<String>::new());
}
