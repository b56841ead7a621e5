//! A draft in several tones: each is a copy that can neither ask nor send, and one is picked.

use std::fs;

use archie_email_assistant::state::{Ended, Redraft};
use serde_json::{Value as Json, json};
use superstep::Outcome;

use super::acceptance::sent;
use super::kit::*;
use crate::kit::Workdir;

fn toned(tone: &str, text: &str) -> Json {
    let mut reply = wants(json!([sends(text)]));
    reply["expect"] = json!(format!("make it {tone}"));
    reply
}

fn replies() -> Json {
    json!([
        triage("respond"),
        wants(json!([sends("The report is ready on Friday.")])),
        toned("brief", "Friday."),
        toned("warm", "Dear Bob,\n\nyou have it on Friday!"),
        toned("formal", "The report will be available on Friday."),
        learns("Be warm."),
        wants(json!([done()])),
    ])
}

fn one_mail() -> String {
    let (from, words) = ("Bob <bob@example.com>", "When is the report ready?");
    mail("q4@x", from, "Q4 report?", words)
}

fn workdir(replies: &Json) -> Workdir {
    let workdir = Workdir::scripted(replies);
    fs::write(workdir.path("mbox"), mbox(&[one_mail()])).unwrap();
    let ran = workdir.run(&["mail", "ingest", "./mbox"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    workdir
}

/// A draft that waits, and what the model writes in other tones.
pub(crate) fn with_draft() -> Workdir {
    workdir(&replies())
}

fn threads(workdir: &Workdir) -> usize {
    workdir
        .json(&["threads", "--json"])
        .as_array()
        .unwrap()
        .len()
}

#[test]
fn three_tones_are_shown_and_the_picked_one_is_sent_and_learned_from() {
    let workdir = workdir(&replies());
    let id = workdir.items().remove(0);
    let ran = workdir.run(&["mail", "tones", &id], "2\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let out = ran.out();
    let shown = "0  as it is\n   The report is ready on Friday.\n1  brief\n   Friday.\n2  warm\n   Dear Bob,\n\n   you have it on \
                 Friday!\n3  formal\n   The report will be available on Friday.\n";
    let (item, drafts) = out.split_at(out.find("0  as it is").unwrap());
    assert!(item.contains("To: bob@example.com"), "{out}");
    assert!(drafts.starts_with(shown), "{out}");
    assert!(
        out.contains("response_preferences +1 line, proposed\n  + Be warm.\n"),
        "{out}"
    );
    assert!(ran.err().contains("3 model calls"), "{ran:?}");
    let sent = sent(&workdir);
    assert_eq!(sent.len(), 1);
    assert!(sent[0].contains("you have it on Friday!"), "{}", sent[0]);
    assert_eq!(threads(&workdir), 1, "the copies are gone");
    assert_eq!(workdir.run(&["inbox"], "").out(), "No open questions.\n");
}

#[test]
fn what_was_written_is_not_paid_for_again_and_nothing_goes_out_unpicked() {
    let workdir = workdir(&replies());
    let id = workdir.items().remove(0);
    let pick = |which| workdir.run(&["mail", "tones", &id, "--pick", which], "");
    let first = workdir.run(&["mail", "tones", &id, "--json"], "");
    let again = workdir.run(&["mail", "tones", &id, "--json"], "");
    assert_eq!(first.code(), Some(0), "{first:?}");
    assert_eq!(first.out(), again.out());
    assert!(!again.err().contains("model call"), "{again:?}");
    let drafts: Json = serde_json::from_str(&first.out()).unwrap();
    assert_eq!(drafts["tones"][0]["response_text"], "Friday.");
    // What a program was given nobody has read.
    let unseen = pick("brief");
    assert_eq!(unseen.code(), Some(2), "{unseen:?}");
    let left = workdir.run(&["mail", "tones", &id], "\n");
    assert!(left.err().contains("the question stays open"), "{left:?}");
    // One thread asks, however many copies there are.
    let inbox = workdir.json(&["inbox", "--json"]);
    assert_eq!(inbox.as_array().unwrap().len(), 1);
    assert!(sent(&workdir).is_empty());
    let none = pick("loud");
    assert_eq!(none.code(), Some(1));
    assert!(none.err().contains("no draft `loud`"), "{none:?}");
    let picked = pick("brief");
    assert_eq!(picked.code(), Some(0), "{picked:?}");
    assert_eq!(sent(&workdir).len(), 1);
}

#[test]
fn only_a_draft_has_tones() {
    let workdir = workdir(&json!([triage("notify")]));
    let ran = workdir.run(&["mail", "tones", &workdir.items()[0]], "");
    assert_eq!(ran.code(), Some(1));
    assert!(ran.err().contains("does not ask about a draft"), "{ran:?}");
}

#[tokio::test]
async fn a_copy_for_a_tone_does_nothing_whatever_the_model_wants() {
    for wish in [sends("Now!"), schedules(&["bob@example.com"]), done()] {
        let world = World::new(&json!([
            triage("respond"),
            wants(json!([sends("Friday."), schedules(&["bob@example.com"])])),
            wants(json!([wish])),
        ]))
        .with_mails(&[one_mail()]);
        let home = world.home();
        let came = world.ingest(&home).await;
        let original = thread(&home, &came[0].thread);
        let wanted = json!({ "redraft": Redraft::RequestedCall("brief".to_owned()) });
        let copied = original.copy_to("copy", None, Some(wanted));
        copied.await.unwrap();
        let rest = thread(&home, "copy").recover_or_resume().await.unwrap();
        assert_eq!(rest.outcome, Outcome::Finished);
        let copy = state(&home, "copy").await;
        assert!(matches!(copy.ended, Some(Ended::Drafted) | None));
        assert!(!copy.marked_as_read);
        assert!(copy.learned.is_empty());
        assert!(world.sent().is_empty() && world.meetings().is_empty());
        assert_eq!(asked(&home, &came[0].thread).await.len(), 2);
    }
}
