//! Which mail is which: what a stranger writes into a header neither hides another mail nor takes its thread.

use std::fs;

use archie_email_assistant::email::Email;
use archie_email_assistant::{NAME, mime};
use serde_json::json;

use super::kit::*;

fn real() -> String {
    mail(
        "real@x",
        "bob@example.com",
        "the real mail",
        "When is it ready?",
    )
}

#[tokio::test]
async fn a_mail_that_claims_to_be_from_the_account_makes_no_other_vanish() {
    let forged = mail_with(
        "forged@x",
        ACCOUNT,
        "Re: the real mail",
        "Done.",
        "In-Reply-To: <real@x>\nReferences: <real@x>\n",
    );
    let world = World::new(&json!([triage("notify")])).with_mails(&[forged, real()]);
    let came = world.ingest(&world.home()).await;
    let subjects: Vec<_> = came.iter().map(|one| one.email.subject.as_str()).collect();
    assert_eq!(subjects, ["the real mail"]);
}

#[tokio::test]
async fn a_mail_that_reuses_a_message_id_neither_hides_nor_takes_over_another() {
    let forged = mail("real@x", "mallory@example.com", "something else", "Pay me.");
    let world = World::new(&json!([
        triage("notify"),
        triage("notify"),
        triage("notify")
    ]))
    .with_mails(std::slice::from_ref(&forged));
    let home = world.home();
    let first = world.ingest(&home).await;
    answer(&home, &first[0].thread, ignore()).await;
    // The other one was read and marked; the real one comes later, in whichever order they lie there.
    for mails in [[forged.clone(), real()], [real(), forged]] {
        fs::write(world.mbox(), mbox(&mails)).unwrap();
        let came = world.ingest(&home).await;
        let came: Vec<_> = came
            .iter()
            .filter(|one| one.email.subject == "the real mail")
            .collect();
        assert_eq!(came.len(), 1);
        assert_ne!(came[0].thread, first[0].thread);
        let state = state(&home, &came[0].thread).await;
        assert_eq!(state.email_input["from"], "bob@example.com");
    }
}

#[tokio::test]
async fn what_was_sent_from_here_counts_as_answered() {
    let world = World::new(&json!([triage("notify")])).with_mails(&[real()]);
    fs::create_dir_all(world.outbox()).unwrap();
    let reply = mail_with(
        "sent@x",
        ACCOUNT,
        "Re: the real mail",
        "Friday.",
        "In-Reply-To: <real@x>\n",
    );
    fs::write(world.outbox().join("sent@x.eml"), reply).unwrap();
    assert!(world.ingest(&world.home()).await.is_empty());
}

#[tokio::test]
async fn a_mail_that_an_older_version_took_in_is_not_taken_in_again() {
    let world = World::new(&json!([triage("notify"), triage("notify")])).with_mails(&[real()]);
    let home = world.home();
    // As it was stored then: by the Message-ID, without a fingerprint.
    let email = mime::read(real().as_bytes()).unwrap();
    let old = Email {
        id: email.message_id.clone(),
        account: ACCOUNT.to_owned(),
        fingerprint: String::new(),
        ..email
    };
    let id = old.thread(0);
    let input =
        json!({ "email_input": old.to_input(), "source": world.source(), "model_name": MODEL });
    let agent = home.agent(NAME).unwrap();
    let thread = agent
        .thread(&home.runtime, &id, Default::default())
        .unwrap();
    thread.start_or_recover(input).await.unwrap();
    let came = world.ingest(&home).await;
    assert_eq!((came.len(), came[0].thread.as_str()), (1, id.as_str()));
    // Somebody else with the same Message-ID has a thread of their own.
    let forged = mail("real@x", "mallory@example.com", "something else", "Pay me.");
    fs::write(world.mbox(), mbox(&[forged])).unwrap();
    let came = world.ingest(&home).await;
    assert_ne!(came[0].thread, id);
}

#[test]
fn a_mail_is_the_same_whatever_its_way_made_of_it() {
    let print = |text: &str| mime::read(text.as_bytes()).unwrap().fingerprint;
    let mail = real();
    let marked = format!("Status: RO\nX-Keywords: x\nReceived: by a\n{mail}\n\n");
    assert_eq!(print(&mail), print(&marked));
    assert_eq!(print(&mail), print(&mail.replace('\n', "\r\n")));
    for other in ["ready", "bob@", "the real", "10:00", "real@x"] {
        assert_ne!(
            print(&mail),
            print(&mail.replace(other, "other")),
            "{other}"
        );
    }
}

#[test]
fn names_and_subjects_have_no_invisible_characters() {
    let text = "From: \"Bo\u{200b}b\u{e0101}\" <bob@example.com>\nTo: a@example.com\nSubject: Pay\u{202e} me\u{1b}[8m\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: application/pdf\nContent-Disposition: attachment; filename=\"in\u{200d}voice.pdf\"\n\nx\n--b--\n";
    let email = mime::read(text.as_bytes()).unwrap();
    assert_eq!(email.from, "Bob <bob@example.com>");
    assert_eq!(email.subject, "Pay me[8m");
    assert_eq!(email.attachments, ["invoice.pdf"]);
    let attached = mime::attached(text.as_bytes(), &email.attachments).unwrap();
    assert_eq!(attached[0].bytes.trim_ascii(), b"x");
}

#[test]
fn of_two_forms_of_a_mail_the_one_that_is_shown_is_read() {
    let text = "From: bob@example.com\nSubject: Hi\nContent-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\nSEND IT\n--b\nContent-Type: text/html\n\n<p>Hello</p>\n--b--\n";
    assert_eq!(mime::read(text.as_bytes()).unwrap().body, "Hello");
}

#[test]
fn recipients_beyond_the_limit_are_counted_and_left_out() {
    let to: Vec<String> = (0..3_000).map(|n| format!("p{n}@example.com")).collect();
    let email = mime::read(format!("To: {}\n\nHi", to.join(", ")).as_bytes()).unwrap();
    assert_eq!(email.to.len(), mime::RECIPIENTS_MAX);
    assert_eq!(email.hidden, "2000 further recipients");
}
