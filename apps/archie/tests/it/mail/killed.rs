//! The real program against a real server, killed with `kill -9` at moments spread over its whole life.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use super::kit::{ACCOUNT, done, sends, triage, wants};
use super::servers::Emulated;
use crate::kit::Workdir;

/// A mailbox at Gmail, signed in.
fn workdir(emulated: &Emulated, mails: usize) -> Workdir {
    let mut replies = Vec::new();
    replies.extend((0..mails).map(|_| triage("respond")));
    replies.extend((0..mails).map(|_| wants(json!([sends("Friday."), done()]))));
    let workdir = Workdir::scripted(&Json::Array(replies))
        .with_environment("ARCHIE_GOOGLE_URL", emulated.url());
    fs::create_dir_all(workdir.path("home/mail")).unwrap();
    sign_in(&workdir, emulated);
    workdir
}

fn sign_in(workdir: &Workdir, emulated: &Emulated) {
    let file = workdir.path(&format!("home/mail/google-{ACCOUNT}.json"));
    let token = json!({ "access_token": emulated.token(), "expires_at": u64::MAX });
    fs::write(&file, token.to_string()).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

fn ingest(workdir: &Workdir) {
    let source = format!("gmail:{ACCOUNT}");
    let ran = workdir.run(&["mail", "ingest", &source], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
}

fn open(workdir: &Workdir) -> Vec<String> {
    let open = workdir.json(&["inbox", "--limit", "1000", "--json"]);
    let ids = open.as_array().unwrap().iter();
    ids.map(|question| question["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Says yes to a question, and kills the program after a while. Says whether it was killed.
fn accept_and_kill(workdir: &Workdir, question: &str, after: Duration) -> bool {
    let accept = ["inbox", "--limit", "1000", question, "accept"];
    workdir.run_and_kill(&accept, "", after)
}

#[tokio::test]
async fn kill_9_at_any_moment_one_mail_for_each_yes() {
    let emulated = Emulated::with_mails(TRIALS);
    let workdir = workdir(&emulated, TRIALS);
    ingest(&workdir);
    let questions = open(&workdir);
    assert_eq!(questions.len(), TRIALS);
    let begun = Instant::now();
    assert!(!accept_and_kill(&workdir, &questions[0], Duration::MAX));
    let whole = begun.elapsed();
    let mut killed = 0;
    for (trial, question) in questions[1..].iter().enumerate() {
        sign_in(&workdir, &emulated);
        let after = whole.mul_f64((trial % 60) as f64 / 70.0);
        killed += usize::from(accept_and_kill(&workdir, question, after));
    }
    // Whoever comes next goes on with what was begun, and asks about what was not.
    for _ in 0..3 {
        sign_in(&workdir, &emulated);
        ingest(&workdir);
        for question in open(&workdir) {
            sign_in(&workdir, &emulated);
            accept_and_kill(&workdir, &question, Duration::MAX);
        }
    }
    assert!(open(&workdir).is_empty());
    let mut counts = BTreeMap::new();
    for at in 0..TRIALS {
        *counts
            .entry(emulated.sent_in(&format!("t{at}")).await)
            .or_insert(0) += 1;
    }
    eprintln!("gmail: {killed} of {TRIALS} programs killed with kill -9, mails per yes {counts:?}");
    assert_eq!(counts, BTreeMap::from([(1, TRIALS)]));
    assert!(killed > TRIALS / 2, "{killed}");
}

/// How many programs.
const TRIALS: usize = 300;
