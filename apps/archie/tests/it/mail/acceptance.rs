//! The acceptance, with the real program: taken in, left, edited, sent once, also when it was killed right behind the answer.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value as Json, json};

use super::kit::{ACCOUNT, done, learns, mail, mbox, sends, triage, triage_of, wants};
use crate::kit::Workdir;

fn replies() -> Json {
    json!([
        with(triage_of("Weekly digest", "ignore"), "Weekly digest"),
        with(triage_of("Deploy finished", "notify"), "Deploy finished"),
        with(triage("respond"), "Q4 report?"),
        wants(json!([sends("Next week, perhaps.")])),
        with(
            learns("Leave notices of deployments."),
            "did not want to see it"
        ),
        with(learns("Name a day and a time."), "They changed"),
        wants(json!([done()])),
    ])
}

fn with(mut reply: Json, expect: &str) -> Json {
    reply["expect"] = json!(expect);
    reply
}

fn workdir(replies: &Json) -> Workdir {
    let workdir = Workdir::scripted(replies);
    let mails = [
        mail(
            "digest@x",
            "News <news@example.com>",
            "Weekly digest",
            "Ten things.",
        ),
        mail(
            "deploy@x",
            "CI <ci@example.com>",
            "Deploy finished",
            "Version 12 is out.",
        ),
        mail(
            "mock-respond-1",
            "Bob <bob@example.com>",
            "Q4 report?",
            "When is the report ready?",
        ),
    ];
    fs::write(workdir.path("mbox"), mbox(&mails)).unwrap();
    workdir
}

/// A mail whose answer waits for a yes, once it is taken in.
pub(crate) fn with_one_approval() -> Workdir {
    let workdir = Workdir::scripted(&json!([
        triage("respond"),
        wants(json!([sends("Friday.")])),
        wants(json!([done()])),
    ]));
    let one = mail(
        "one@x",
        "Bob <bob@example.com>",
        "Q4 report?",
        "When is the report ready?",
    );
    fs::write(workdir.path("mbox"), mbox(&[one])).unwrap();
    workdir
}

/// What lies in the outbox.
pub(crate) fn sent(workdir: &Workdir) -> Vec<String> {
    let Ok(entries) = fs::read_dir(workdir.path("mbox.outbox")) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mails = paths.filter(|path| path.extension() == Some(Path::new("eml").as_os_str()));
    mails
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

const EDIT: [&str; 2] = ["edit", "{\"response_text\":\"Friday noon.\"}"];

/// Shows an item, and changes its draft.
fn edit(workdir: &Workdir, item: &str) -> crate::kit::Ran {
    workdir.run(&["inbox", item], "");
    workdir.run(&["inbox", item, EDIT[0], EDIT[1]], "")
}

#[test]
fn three_mails_end_as_their_person_wants() {
    let workdir = workdir(&replies());
    let ran = workdir.run(&["mail", "ingest", "./mbox"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let lines: Vec<_> = ran.out().lines().map(str::to_owned).collect();
    let items = workdir.items();
    assert_eq!(
        lines,
        [
            "ignore  \"Weekly digest\"".to_owned(),
            format!("notify  \"Deploy finished\" → inbox {}", items[0]),
            format!(
                "respond \"Q4 report?\" → inbox {} send_email_tool",
                items[1]
            ),
        ]
    );
    let ran = edit(&workdir, &items[1]);
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let out = ran.out();
    for wanted in [
        "sent 1 message <archie.",
        "response_preferences +1 line, proposed",
        "+ Name a day and a time.",
        "not in effect before `archie mail memory accept ",
        "Done",
        "marked read mock-respond-1",
    ] {
        assert!(out.contains(wanted), "{wanted}: {out}");
    }
    let ran = workdir.run(&["inbox", &items[0], "ignore"], "");
    assert!(
        ran.out()
            .contains("triage_preferences +1 line, proposed\n  + Leave notices of deployments."),
        "{ran:?}"
    );
    let mails = sent(&workdir);
    assert_eq!(mails.len(), 1);
    let mail = &mails[0];
    for wanted in [
        "Friday noon.",
        "To: bob@example.com",
        &format!("From: {ACCOUNT}"),
        "In-Reply-To: <mock-respond-1>",
        "Subject: Re: Q4 report?",
    ] {
        assert!(mail.contains(wanted), "{wanted}: {mail}");
    }
    // Taken in again, everything is known, and nobody is asked or sent anything.
    let ran = workdir.run(&["mail", "ingest", "./mbox"], "");
    assert!(
        ran.out()
            .lines()
            .all(|line| line.ends_with("(taken in before)")),
        "{ran:?}"
    );
    assert_eq!(sent(&workdir).len(), 1);
    let second = edit(&workdir, &items[1]);
    assert_eq!(second.code(), Some(1), "{second:?}");
}

/// What was learned from two answers, and is not confirmed yet.
pub(crate) fn with_proposals() -> Workdir {
    let workdir = workdir(&replies());
    workdir.run(&["mail", "ingest", "./mbox"], "");
    let items = workdir.items();
    edit(&workdir, &items[1]);
    workdir.run(&["inbox", &items[0], "ignore"], "");
    workdir
}

#[test]
fn what_was_learned_is_proposed_accepted_rejected_and_undone() {
    let workdir = with_proposals();
    let knows = |line: &str| {
        let shown = workdir.json(&["mail", "memory", "show", "--json"]);
        shown.to_string().contains(line)
    };
    assert!(
        !knows("Name a day") && !knows("Leave notices"),
        "not confirmed"
    );
    let open = workdir.json(&["mail", "memory", "proposed", "--json"]);
    let id_of = |line: &str| {
        let mut open = open["proposals"].as_object().unwrap().iter();
        open.find(|(_, proposal)| proposal["line"] == line)
            .unwrap()
            .0
            .clone()
    };
    let shown = workdir.run(&["mail", "memory", "proposed"], "").out();
    let (name, leave) = (
        id_of("Name a day and a time."),
        id_of("Leave notices of deployments."),
    );
    assert!(
        shown.contains(&format!(
            "{name}  response_preferences  mail \"Q4 report?\"\n  + Name a day and a time.\n"
        )),
        "{shown}"
    );
    let ran = workdir.run(&["mail", "memory", "accept", &name[..6]], "");
    assert_eq!(
        ran.out(),
        "response_preferences:\n  + Name a day and a time.\n",
        "{ran:?}"
    );
    let ran = workdir.run(&["mail", "memory", "reject", &leave], "");
    assert_eq!(
        ran.out(),
        "discarded: Leave notices of deployments.\n",
        "{ran:?}"
    );
    assert!(knows("Name a day") && !knows("Leave notices"));
    let ran = workdir.run(&["mail", "memory", "accept", &leave], "");
    assert_eq!(ran.code(), Some(1));
    assert!(ran.err().contains("there is no proposal"), "{ran:?}");
    assert_eq!(
        workdir.run(&["mail", "memory", "proposed"], "").out(),
        "No proposed lines.\n"
    );
    let ran = workdir.run(&["mail", "memory", "history", "response"], "");
    assert!(ran.out().contains("+ Name a day and a time."), "{ran:?}");
    let ran = workdir.run(&["mail", "memory", "undo", "response"], "");
    assert_eq!(ran.out(), "- Name a day and a time.\n", "{ran:?}");
    assert!(!knows("Name a day"));
    let ran = workdir.run(&["mail", "memory", "undo", "triage"], "");
    assert_eq!(ran.code(), Some(1));
    assert!(
        ran.err().contains("there is no change to take back"),
        "{ran:?}"
    );
}

#[test]
fn a_bracket_and_a_parroted_prompt_are_never_learned() {
    for line in [
        "]",
        "If something that will hold for other mails, too, write it as one short line, in general words. If it takes the place of a \
         line of the list, give that line's number, else 0.",
    ] {
        let workdir = Workdir::scripted(&json!([triage("notify"), learns(line)]));
        let one = mail("one@x", "Bob <bob@example.com>", "Build", "It is green.");
        fs::write(workdir.path("mbox"), mbox(&[one])).unwrap();
        workdir.run(&["mail", "ingest", "./mbox"], "");
        let before = workdir.json(&["mail", "memory", "show", "--json"]);
        let ran = workdir.run(&["inbox", &workdir.items()[0], "ignore"], "");
        assert_eq!(ran.code(), Some(0), "{ran:?}");
        assert!(!ran.out().contains("preferences"), "{ran:?}");
        assert_eq!(workdir.json(&["mail", "memory", "show", "--json"]), before);
        assert_eq!(
            workdir.run(&["mail", "memory", "proposed"], "").out(),
            "No proposed lines.\n"
        );
    }
}

#[test]
fn killed_right_behind_the_answer_the_mail_is_sent_once() {
    // It dies where it words what it learned: the mail is out, and nothing of it is committed.
    let mut with_death = replies();
    with_death.as_array_mut().unwrap().insert(
        4,
        json!({ "at": "learn", "expect": "They changed", "kill": true }),
    );
    let workdir = workdir(&with_death);
    workdir.run(&["mail", "ingest", "./mbox"], "");
    let ran = edit(&workdir, &workdir.items()[1]);
    assert_eq!(ran.code(), None, "{ran:?}");
    let ran = workdir.run(&["mail", "ingest", "./mbox"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let mails = sent(&workdir);
    assert_eq!(mails.len(), 1);
    assert!(mails[0].contains("Friday noon."));
}

#[test]
fn the_time_machine_sorts_again_and_keeps_and_sends_nothing() {
    let mut twice = replies();
    twice.as_array_mut().unwrap().extend([
        with(triage_of("Weekly digest", "ignore"), "Weekly digest"),
        with(triage_of("Deploy finished", "ignore"), "Deploy finished"),
        with(triage("respond"), "Q4 report?"),
    ]);
    let workdir = workdir(&twice);
    workdir.run(&["mail", "ingest", "./mbox"], "");
    // What was learned makes it another question.
    workdir.run(&["inbox", &workdir.items()[0], "ignore"], "");
    let before = workdir.json(&["threads", "--json"]);
    let shown = workdir.json(&[
        "mail",
        "time-machine",
        "./mbox",
        "--days",
        "100000",
        "--json",
    ]);
    assert_eq!(shown["changed"], 1);
    let changed: Vec<_> = shown["mails"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|mail| mail["changed"] == true)
        .collect();
    assert_eq!(
        (&changed[0]["then"], &changed[0]["now"]),
        (&json!("notify"), &json!("ignore"))
    );
    assert_eq!(workdir.json(&["threads", "--json"]), before);
    assert!(sent(&workdir).is_empty());
}

#[test]
fn what_is_no_mailbox_is_said() {
    let workdir = workdir(&replies());
    let ran = workdir.run(&["mail", "ingest", "./nowhere"], "");
    assert_eq!(ran.code(), Some(1));
    assert!(ran.err().contains("is not a mailbox"), "{ran:?}");
    let ran = workdir.run(&["mail", "ingest", "gmail:nobody@example.com"], "");
    assert!(ran.err().contains("archie mail login gmail"), "{ran:?}");
}

#[test]
fn a_timer_looks_again_outlives_a_kill_and_says_when_it_fails() {
    let workdir = workdir(&json!([
        with(triage_of("Weekly digest", "ignore"), "Weekly digest"),
        with(triage_of("Deploy finished", "ignore"), "Deploy finished"),
        with(triage("ignore"), "Q4 report?"),
        with(triage_of("Late", "ignore"), "Late"),
    ]));
    let start = || {
        let mut command = workdir.command();
        command
            .args(["mail", "ingest", "./mbox", "--every", "1s"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut process = start();
    let mut lines = BufReader::new(process.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert_eq!(lines.by_ref().take(3).count(), 3);
    let late = mail("late@x", "bob@example.com", "Late", "Sorry.");
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(workdir.path("mbox"))
        .unwrap();
    file.write_all(mbox(&[late]).as_bytes()).unwrap();
    assert_eq!(
        lines.next().unwrap(),
        "ignore  \"Late\"",
        "only what is new"
    );
    process.kill().unwrap();
    process.wait().unwrap();
    fs::rename(workdir.path("mbox"), workdir.path("gone")).unwrap();
    let mut process = start();
    let mut said = BufReader::new(process.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(
        said.any(|line| line.contains("this time it failed") && line.contains("is not a mailbox"))
    );
    assert!(said.any(|line| line.contains("it failed 1 times in a row; it last worked")));
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn a_fork_with_another_model_goes_on_inside_the_answering_graph() {
    let workdir = with_one_approval();
    let ran = workdir.run(&["mail", "ingest", "./mbox"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let other = json!({ "replies": [
        learns("Be brief."),
        with(wants(json!([sends("Fri.")])), "shorter"),
    ] });
    fs::write(workdir.path("other.json"), other.to_string()).unwrap();
    let original = workdir.thread();
    let forked = workdir
        .command()
        .args(["fork", &original, "--with-model", "script:other.json"])
        .args(["--answer", "response shorter", "--json"])
        .env("SUPERSTEP_SCRIPT_LEDGER", workdir.path("other.ledger"))
        .output()
        .unwrap();
    assert!(forked.status.success(), "{forked:?}");
    let forked: Json = serde_json::from_slice(&forked.stdout).unwrap();
    let copy = forked["thread"].as_str().unwrap();
    let open = workdir.json(&["inbox", "--json"]);
    let drafts: Vec<_> = (open.as_array().unwrap().iter())
        .map(|open| {
            (
                &open["thread"],
                &open["request"]["action_request"]["args"]["response_text"],
            )
        })
        .collect();
    assert_eq!(drafts.len(), 2, "{open}");
    assert!(drafts.contains(&(&json!(original), &json!("Friday."))));
    assert!(drafts.contains(&(&json!(copy), &json!("Fri."))));
    assert!(sent(&workdir).is_empty());
}

#[test]
fn a_mail_that_another_process_works_on_is_left_to_it_and_recovered_when_that_dies() {
    let workdir = Workdir::scripted(&json!([
        { "at": "triage_router", "timeout": true },
        triage("ignore"),
    ]));
    let one = mail("one@x", "bob@example.com", "Q4 report?", "When?");
    fs::write(workdir.path("mbox"), mbox(&[one])).unwrap();
    let mut first = workdir.command();
    first
        .args(["mail", "ingest", "./mbox"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut first = first.spawn().unwrap();
    while workdir.asked("triage_router") == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = workdir.run(&["mail", "ingest", "./mbox"], "");
    assert_eq!(second.code(), Some(0), "{second:?}");
    assert!(
        second.out().contains("(another process works on it)"),
        "{second:?}"
    );
    assert_eq!(workdir.asked("triage_router"), 1, "{second:?}");
    first.kill().unwrap();
    first.wait().unwrap();
    let third = workdir.run(&["mail", "ingest", "./mbox"], "");
    assert_eq!(third.out(), "ignore  \"Q4 report?\"\n", "{third:?}");
}
