//! An approval that is open in two shells and in a third process at once: one answer wins, and the others are told whose.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};

use crate::kit::Workdir;

/// A program that stands at the question, with a person before it.
struct Shell {
    person: &'static str,
    process: Child,
}

impl Shell {
    /// Comes back when the question is on the screen.
    fn open(workdir: &Workdir, before: &[&str], thread: &str, person: &'static str) -> Self {
        let mut command = workdir.command();
        command
            .env("ARCHIE_PERSON", person)
            .args(before)
            .args(["resume", thread]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let (mut seen, mut byte) = (String::new(), [0]);
        while !seen.ends_with("ignore: ") {
            assert_eq!(out.read(&mut byte).unwrap(), 1, "it ended: {seen}");
            seen.push(char::from(byte[0]));
        }
        // Read on, so that it is never held up.
        std::thread::spawn(move || out.lines().map_while(Result::ok).for_each(drop));
        Self { person, process }
    }

    fn says(&mut self, line: &str) {
        let mut input = self.process.stdin.take().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn end(self) -> (&'static str, bool, String) {
        let output = self.process.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        (self.person, output.status.success(), told)
    }
}

/// Two shells and a third process say yes to the one approval there is.
pub(crate) fn three_approve(workdir: &Workdir, before: &[&str]) {
    let mut listed = before.to_vec();
    listed.extend(["inbox", "--json"]);
    let inbox = workdir.json(&listed);
    assert_eq!(inbox.as_array().unwrap().len(), 1, "{inbox}");
    let thread = inbox[0]["thread"].as_str().unwrap();
    let mut shells = [
        Shell::open(workdir, before, thread, "ada"),
        Shell::open(workdir, before, thread, "bob"),
    ];
    let mut third = workdir.command();
    third.env("ARCHIE_PERSON", "cy").args(before);
    third.args(["inbox", inbox[0]["id"].as_str().unwrap(), "accept"]);
    third.stdout(Stdio::null()).stderr(Stdio::piped());
    let third = third.spawn().unwrap();
    shells.iter_mut().for_each(|shell| shell.says("accept"));
    let third = Shell {
        person: "cy",
        process: third,
    };
    let ends: Vec<_> = shells.into_iter().chain([third]).map(Shell::end).collect();
    let (won, lost): (Vec<_>, Vec<_>) = ends.iter().partition(|(_, won, _)| *won);
    assert_eq!(won.len(), 1, "{ends:?}");
    for (person, _, told) in lost {
        let first = format!("too late: {} answered first", won[0].0);
        // Whoever comes when all is over finds no question any more.
        let is_over = told.contains("there is no open question");
        assert!(told.contains(&first) || is_over, "{person} was told {told}");
    }
    assert_eq!(crate::mail::sent(workdir).len(), 1, "{ends:?}");
}

#[test]
fn of_three_who_approve_at_once_one_is_first() {
    let workdir = crate::mail::with_one_approval();
    let ran = workdir.run(&["mail", "ingest", "./mbox"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    three_approve(&workdir, &[]);
}

#[test]
fn of_three_who_approve_at_once_on_postgres_one_is_first() {
    let workdir = crate::mail::with_one_approval();
    let database = crate::cluster::Database::new();
    let store = database.store();
    let ran = workdir.run(&["--store", &store, "mail", "ingest", "./mbox"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    three_approve(&workdir, &["--store", &store]);
}
