//! Every example runs and prints what it promises.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

macro_rules! prints {
    ($($program:ident: $expected:expr;)*) => {
        $(
            #[test]
            fn $program() {
                let run = Command::new(env!(concat!("CARGO_BIN_EXE_", stringify!($program)))).output();
                let run = run.expect("the program starts");
                let printed = String::from_utf8_lossy(&run.stdout).into_owned();
                assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
                for line in $expected {
                    assert!(printed.lines().any(|printed| printed == line), "no line {line:?} in:\n{printed}");
                }
            }
        )*
    };
}

prints! {
    hello_graph: [
        "    write_n -.-> publish_n",
        "published after 3 rounds: A superstep is a thing. More precisely: it holds. More precisely: it holds.",
        "Finished at checkpoint 5",
    ];
    fan_out: [
        "99 chapters are counted and kept",
        "Finished: 50500 words, 100 chapters were counted in all",
        "in order: [10, 20, 30, 40, 50] …",
    ];
    stream_tokens: ["line 1 of a poem", "entry 2: Stopped(Finished)", "Finished"];
    retry_and_handle: [
        "  attempt 3 for Oslo",
        "Oslo: snow",
        "Atlantis: unknown (there is no city Atlantis)",
    ];
    nested_graphs: ["published: found a page about supersteps; summary of 1 note(s)", "Finished"];
    migrate_state: [
        "paused by the first version, with the price as text",
        r#"finished by the next version: Order { item: "a lamp", cents: 1990, approved: true }"#,
    ];
}

/// `pause_and_resume` in this folder, where its thread is.
fn pause_and_resume(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pause_and_resume"));
    command.current_dir(folder).stdout(Stdio::piped());
    command
}

#[test]
fn pause_and_resume_survives_a_kill_and_waits_for_the_answer() {
    let folder = tempfile::tempdir().unwrap();

    let mut killed = pause_and_resume(folder.path()).spawn().unwrap();
    let mut lines = BufReader::new(killed.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "packing box 3 …"));
    killed.kill().unwrap();
    killed.wait().unwrap();

    // Two boxes are packed. This process packs the others, and nobody answers it.
    let mut second = pause_and_resume(folder.path());
    let second = second.stdin(Stdio::null()).output().unwrap();
    let printed = String::from_utf8(second.stdout).unwrap();
    let packing = printed.lines().filter(|line| line.starts_with("packing"));
    assert_eq!(
        packing.collect::<Vec<_>>(),
        ["packing box 3 …", "packing box 4 …", "packing box 5 …"]
    );
    assert!(printed.contains("the question waits"), "{printed}");

    let answer = folder.path().join("answer");
    std::fs::write(&answer, "y\n").unwrap();
    let mut third = pause_and_resume(folder.path());
    let third = third.stdin(std::fs::File::open(answer).unwrap()).output();
    let printed = String::from_utf8(third.unwrap().stdout).unwrap();
    assert!(printed.starts_with("ship 5 boxes?"), "{printed}");
    assert!(printed.contains("shipped Some(true)"), "{printed}");
}
