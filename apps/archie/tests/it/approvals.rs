//! What is approved is what was shown: items have ids that stay, an item is displayed whole, and a yes to something unseen is
//! refused.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use archie::inbox::{self, Naming, Refusal, approval};
use archie::terminal::Console;
use serde_json::{Value as Json, json};

use crate::atris::server::{Server, ServerReply};
use crate::kit::{Ran, Workdir};
use crate::mail::kit::{
    World, done, learns, mail, mail_with, mbox, schedules, sends, triage, triage_of, wants,
};
use crate::mail::sent;

fn with(mut reply: Json, expect: &str) -> Json {
    reply["expect"] = json!(expect);
    reply
}

/// A mailbox with these mails, taken in.
pub(crate) fn ingested(mails: &[String], replies: &Json) -> (Workdir, Ran) {
    let workdir = Workdir::scripted(replies);
    fs::write(workdir.path("mbox"), mbox(mails)).unwrap();
    let ran = workdir.run(&["mail", "ingest", "./mbox"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    (workdir, ran)
}

/// The ids that an ingest announced, in its order.
pub(crate) fn announced(ran: &Ran) -> Vec<String> {
    let out = ran.out();
    let ids = out.split("→ inbox ").skip(1);
    ids.map(|rest| rest.split_whitespace().next().unwrap().to_owned())
        .collect()
}

fn refused(ran: &Ran, why: &str) {
    assert_eq!(ran.code(), Some(2), "{ran:?}");
    assert!(ran.err().contains(why), "{why}: {ran:?}");
}

#[test]
fn an_item_keeps_its_id_when_others_are_answered_and_numbers_name_nothing() {
    let people = ["ann", "bob", "cy"];
    let mails = people.map(|who| {
        let from = format!("{who}@example.com");
        mail(
            &format!("{who}@x"),
            &from,
            &format!("Question of {who}"),
            "When?",
        )
    });
    let mut replies = Vec::new();
    for who in people {
        let subject = format!("Question of {who}");
        replies.push(with(triage_of(&subject, "respond"), &subject));
        let answer = sends(&format!("Dear {who}."));
        replies.push(with(wants(json!([answer])), &format!("Question of {who}")));
    }
    replies.extend([learns("Leave it."), wants(json!([done()]))]);
    let (workdir, ran) = ingested(&mails, &json!(replies));
    let ids = announced(&ran);
    assert_eq!(ids.len(), 3, "{ran:?}");
    assert!(ids.iter().all(|id| id.len() >= 6), "{ids:?}");
    for number in ["1", "2", "3"] {
        refused(
            &workdir.run(&["inbox", number, "accept"], ""),
            "is not an item id",
        );
    }
    let first = workdir.run(&["inbox", &ids[0], "ignore"], "");
    assert_eq!(first.code(), Some(0), "{first:?}");
    // What was announced as the second is the second still.
    let listed = workdir.json(&["inbox", "--json"]);
    let known = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["short_id"]);
    assert_eq!(known.collect::<Vec<_>>(), [&json!(ids[1]), &json!(ids[2])]);
    for number in ["1", "2"] {
        refused(&workdir.run(&["inbox", number, "accept"], ""), &ids[1]);
    }
    assert!(sent(&workdir).is_empty());
    let shown = workdir.run(&["inbox", &ids[1]], "");
    assert!(shown.out().contains("Dear bob."), "{shown:?}");
    let accepted = workdir.run(&["inbox", &ids[1], "accept"], "");
    assert_eq!(accepted.code(), Some(0), "{accepted:?}");
    let mails = sent(&workdir);
    assert_eq!(mails.len(), 1);
    assert!(mails[0].contains("To: bob@example.com") && mails[0].contains("Dear bob."));
    // Answered, it names nothing any more, and the third is as it was.
    let again = workdir.run(&["inbox", &ids[1], "accept"], "");
    assert_eq!(again.code(), Some(1), "{again:?}");
    let out = workdir.run(&["inbox"], "").out();
    assert!(
        out.contains(&ids[2]) && out.contains("Summaries only"),
        "{out}"
    );
}

/// A mail with forty copies and an answer of a hundred lines.
pub(crate) fn with_many_recipients() -> (Workdir, String, Vec<String>, String) {
    let copies: Vec<_> = (1..40).map(|at| format!("p{at}@example.com")).collect();
    let mut everybody = vec!["bob@example.com".to_owned()];
    everybody.extend(copies.clone());
    everybody.push("mallory@evil.example".to_owned());
    let header = format!("Cc: {}, mallory@evil.example\n", copies.join(", "));
    let asks = mail_with(
        "q4@x",
        "Bob <bob@example.com>",
        "Q4 report?",
        "When?",
        &header,
    );
    let draft: Vec<_> = (0..100)
        .map(|at| format!("Line {at} of the draft."))
        .collect();
    let draft = draft.join("\n");
    let replies = json!([
        triage("respond"),
        wants(json!([sends(&draft)])),
        wants(json!([done()])),
    ]);
    let (workdir, ran) = ingested(&[asks], &replies);
    let id = announced(&ran).remove(0);
    (workdir, id, everybody, draft)
}

#[test]
fn every_recipient_and_every_line_is_displayed_before_a_mail_can_be_accepted() {
    let (workdir, id, everybody, draft) = with_many_recipients();
    // The list is a summary; nothing in it can be accepted.
    let accepted = workdir.run(&["inbox", &id, "accept"], "");
    refused(&accepted, "was not displayed to you in full");
    assert!(
        accepted.err().contains(&format!("archie inbox {id}")),
        "{accepted:?}"
    );
    let edited = workdir.run(&["inbox", &id, "edit", "{\"response_text\":\"x\"}"], "");
    refused(&edited, "was not displayed to you in full");
    assert!(sent(&workdir).is_empty());

    let shown = workdir.run(&["inbox", &id], "");
    assert_eq!(shown.code(), Some(0), "{shown:?}");
    let out = shown.out();
    for who in &everybody {
        assert!(out.contains(who), "{who}: {out}");
    }
    for line in draft.lines() {
        assert!(out.contains(line), "{line}: {out}");
    }
    assert!(
        out.contains("41 recipients") && out.contains("digest "),
        "{out}"
    );
    let item = workdir.json(&["inbox", &id, "--json"]);
    let digest = item["digest"].as_str().unwrap();
    assert!(out.contains(&format!("digest {}", &digest[..16])), "{out}");
    // All of it is in a file that its owner may read.
    let file = out
        .split("also in ")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap();
    assert_eq!(
        fs::metadata(file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let kept = fs::read_to_string(file).unwrap();
    assert!(everybody.iter().all(|who| kept.contains(who)) && kept.contains("Line 99"));

    // Another person has not seen it.
    let other = workdir
        .command()
        .env("ARCHIE_PERSON", "eve")
        .args(["inbox", &id, "accept"])
        .output();
    assert_eq!(other.unwrap().status.code(), Some(2));
    let accepted = workdir.run(&["inbox", &id, "accept"], "");
    assert_eq!(accepted.code(), Some(0), "{accepted:?}");
    assert!(!std::path::Path::new(file).exists(), "it is answered");
    let mails = sent(&workdir);
    assert_eq!(mails.len(), 1);
    let unfolded = mails[0].replace("\r\n ", " ").replace("\n ", " ");
    let head = unfolded.split("\r\n\r\n").next().unwrap().to_owned();
    let went: BTreeSet<_> = head
        .lines()
        .filter_map(|line| {
            line.strip_prefix("To: ")
                .or_else(|| line.strip_prefix("Cc: "))
        })
        .flat_map(|who| who.split(", ").map(|who| who.trim().to_owned()))
        .collect();
    assert_eq!(went, everybody.into_iter().collect());
    assert!(mails[0].contains("Line 99 of the draft."));
}

#[test]
fn who_names_an_item_exactly_needs_no_display() {
    let (workdir, id, ..) = with_many_recipients();
    let item = workdir.json(&["inbox", "--json"])[0].clone();
    let digest = item["digest"].as_str().unwrap();
    let wrong = format!("{}0000", &digest[..60]);
    for wrong in [wrong.as_str(), "", &digest[..15]] {
        let ran = workdir.run(&["inbox", &id, "accept", "--digest", wrong], "");
        refused(&ran, "does not have the digest");
    }
    assert!(sent(&workdir).is_empty());
    let ran = workdir.run(&["inbox", &id, "accept", "--digest", digest], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(sent(&workdir).len(), 1);

    let (workdir, ..) = with_many_recipients();
    let item = workdir.json(&["inbox", "--json"])[0].clone();
    let ran = workdir.run(&["inbox", item["id"].as_str().unwrap(), "accept"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(sent(&workdir).len(), 1);
}

#[test]
fn what_is_asked_in_a_conversation_counts_as_displayed() {
    let (workdir, id, everybody, draft) = with_many_recipients();
    let left = workdir.run(&["resume", &workdir.thread()], "");
    assert_eq!(left.code(), Some(3), "{left:?}");
    let out = left.out();
    assert!(everybody.iter().all(|who| out.contains(who)), "{out}");
    assert!(draft.lines().all(|line| out.contains(line)), "{out}");
    assert!(
        left.err().contains(&format!("`archie inbox {id}`")),
        "{left:?}"
    );
    let ran = workdir.run(&["inbox", &id, "accept"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(sent(&workdir).len(), 1);
}

#[test]
fn refusing_and_answering_need_no_display() {
    let replies = json!([
        triage("respond"),
        wants(json!([sends("Friday.")])),
        learns("Leave it."),
    ]);
    let one = mail("q4@x", "bob@example.com", "Q4 report?", "When?");
    let (workdir, ran) = ingested(&[one], &replies);
    let ran = workdir.run(&["inbox", &announced(&ran)[0], "ignore"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(sent(&workdir).is_empty());
    assert_eq!(workdir.run(&["inbox"], "").out(), "No open questions.\n");
}

#[test]
fn every_attendee_of_a_meeting_is_displayed_and_gets_it() {
    let attendees: Vec<_> = (0..40).map(|at| format!("p{at}@example.com")).collect();
    let names: Vec<_> = attendees.iter().map(String::as_str).collect();
    let header = format!("Cc: {}\n", attendees.join(", "));
    let asks = mail_with("m@x", "Bob <bob@example.com>", "Meet?", "When?", &header);
    let replies = json!([
        triage("respond"),
        wants(json!([schedules(&names)])),
        wants(json!([done()])),
    ]);
    let (workdir, ran) = ingested(&[asks], &replies);
    let id = announced(&ran).remove(0);
    refused(&workdir.run(&["inbox", &id, "accept"], ""), "not displayed");
    let out = workdir.run(&["inbox", &id], "").out();
    assert!(out.contains("40 attendees"), "{out}");
    for shown in [
        "Title: Sync",
        "Begins: 2025-01-10T10:00:00Z",
        "Ends: 2025-01-10T10:30:00Z",
    ] {
        assert!(out.contains(shown), "{shown}: {out}");
    }
    for who in &attendees {
        assert!(out.contains(&format!("\n  {who}\n")), "{who}: {out}");
    }
    let ran = workdir.run(&["inbox", &id, "accept"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let mut made = fs::read_dir(workdir.path("mbox.calendar")).unwrap();
    let event = fs::read_to_string(made.next().unwrap().unwrap().path()).unwrap();
    let invited = event
        .lines()
        .filter_map(|line| line.strip_prefix("ATTENDEE:mailto:"));
    assert_eq!(invited.map(str::trim_end).collect::<Vec<_>>(), names);
}

#[test]
fn a_call_of_an_api_is_displayed_with_every_byte_that_goes_out() {
    let server = Server::start(|_| ServerReply::Json(201, json!({ "id": 7 })));
    let workdir = Workdir::scripted(&json!([]));
    let document = json!({
        "openapi": "3.0.0",
        "info": { "title": "Notes", "version": "1" },
        "paths": { "/notes": { "post": {
            "operationId": "createNote",
            "summary": "Create a note",
            "requestBody": { "required": true, "content": { "application/json": { "schema": {
                "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } }
            } } } },
            "responses": { "201": { "description": "Made" } }
        } } }
    });
    fs::write(workdir.path("notes.json"), document.to_string()).unwrap();
    let host = server.host();
    let add = [
        "api",
        "add",
        "notes.json",
        "--name",
        "notes",
        "--allow-host",
        &host,
    ];
    let ran = workdir.run(&add, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let words: Vec<_> = (0..350).map(|at| format!("w{at}")).collect();
    let text = words.join("-");
    // Asked for what is missing, the person says it.
    let left = workdir.run(&["atris", "@notes create a note"], &format!("{text}\n"));
    assert_eq!((left.code(), server.writes()), (Some(3), 0), "{left:?}");
    // Displayed by the conversation; somebody else has to look first.
    let item = workdir.json(&["inbox", "--json"])[0].clone();
    let id = item["short_id"].as_str().unwrap();
    let eve = |args: &[&str]| {
        workdir
            .command()
            .env("ARCHIE_PERSON", "eve")
            .args(args)
            .output()
            .unwrap()
    };
    assert_eq!(eve(&["inbox", id, "accept"]).status.code(), Some(2));
    let out = String::from_utf8(eve(&["inbox", id]).stdout).unwrap();
    for shown in [
        format!("POST {}/notes", server.url()),
        "accept: application/json".to_owned(),
        "content-type: application/json".to_owned(),
        "idempotency-key: ".to_owned(),
        text.clone(),
    ] {
        assert!(out.contains(&shown), "{shown}: {out}");
    }
    let accepted = eve(&["inbox", id, "accept"]);
    assert!(accepted.status.success(), "{accepted:?}");
    let got = server.got();
    assert_eq!(got.len(), 1);
    assert_eq!(got[0].body, json!({ "text": text }).to_string());
    assert!(
        out.contains(&format!("{} bytes of body", grouped(got[0].body.len()))),
        "{out}"
    );
    for name in ["accept", "content-type", "idempotency-key"] {
        assert!(got[0].header(name).is_some(), "{name}: {got:?}");
    }
}

fn grouped(count: usize) -> String {
    let digits = count.to_string();
    match digits.len() > 3 {
        true => format!(
            "{},{}",
            &digits[..digits.len() - 3],
            &digits[digits.len() - 3..]
        ),
        false => digits,
    }
}

#[tokio::test]
async fn a_request_that_changed_since_it_was_displayed_is_refused() {
    let world = World::new(&json!([
        triage("respond"),
        wants(json!([sends("Friday.")])),
        wants(json!([done()])),
    ]));
    let world = world.with_mails(&[mail("q4@x", "bob@example.com", "Q4 report?", "When?")]);
    let home = world.home();
    let came = world.ingest(&home).await;
    let (item, naming) = inbox::find(&home, &came[0].asks[0].short_id).await.unwrap();
    assert_eq!(naming, Naming::ShortId);
    // What they saw had other recipients.
    let mut other = item.asked.clone();
    let described = other.request["description"].as_str().unwrap();
    other.request["description"] = json!(described.replace("bob@", "ann@"));
    approval::record_display(&home, &other).await.unwrap();
    let terminal = Console::new();
    for naming in [
        Naming::ShortId,
        Naming::FullId,
        Naming::Digest(other.digest()),
    ] {
        let done = inbox::answer(&item, &naming, "accept", &home, &terminal).await;
        assert!(done.unwrap_err().is::<Refusal>(), "{naming:?}");
    }
    assert!(world.sent().is_empty());
    // A call that is not the one that the agent's digest is of is refused, whatever names it.
    let mut forged = item.clone();
    forged.asked.request["action_request"]["args"]["response_text"] = json!("Never.");
    approval::record_display(&home, &forged.asked)
        .await
        .unwrap();
    for naming in [
        Naming::ShortId,
        Naming::FullId,
        Naming::Digest(forged.asked.digest()),
    ] {
        let done = inbox::answer(&forged, &naming, "accept", &home, &terminal).await;
        assert!(done.unwrap_err().is::<Refusal>(), "{naming:?}");
    }
    assert!(world.sent().is_empty());
    approval::record_display(&home, &item.asked).await.unwrap();
    inbox::answer(&item, &Naming::ShortId, "accept", &home, &terminal)
        .await
        .unwrap();
    assert_eq!(world.sent().len(), 1);
}

#[test]
fn a_copy_of_a_thread_cannot_be_made_to_agree_unseen() {
    let workdir = crate::mail::with_one_approval();
    workdir.run(&["mail", "ingest", "./mbox"], "");
    let ran = workdir.run(&["fork", &workdir.thread(), "--answer", "accept"], "");
    refused(&ran, "was not displayed to you in full");
    assert!(sent(&workdir).is_empty());
}
