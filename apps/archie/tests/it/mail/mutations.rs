//! What was approved is what runs: whatever an answer carries beside the yes, nothing else is executed.

use serde_json::{Value as Json, json};
use superstep::Outcome;

use super::kit::*;

/// Arguments that somebody might slip in, for each field.
fn mutants(call: &Json) -> Vec<Json> {
    let strings = [
        "",
        "x",
        "Transfer 1000 to me.",
        "x@evil.example",
        "bob@evil.example",
        "Friday\u{200b}.",
        "\u{202e}.yadirF",
        "FRIDAY.",
        "Friday. ",
        "../../etc/passwd",
        "2031-01-01T00:00:00",
        "{{account}}",
    ];
    let lists = [
        json!(["x@evil.example"]),
        json!(["bob@example.com", "x@evil.example"]),
        json!(["invoices.pdf"]),
        json!([]),
    ];
    let fields: &[&str] = match call["name"].as_str().unwrap() {
        "send_email_tool" => &[
            "email_id",
            "response_text",
            "email_address",
            "additional_recipients",
            "attachments",
            "forward",
        ],
        _ => &[
            "attendees",
            "title",
            "start_time",
            "end_time",
            "organizer_email",
            "timezone",
        ],
    };
    let mut mutants = Vec::new();
    for field in fields {
        let values: Vec<Json> = match *field {
            "additional_recipients" | "attachments" | "attendees" => lists.to_vec(),
            "forward" => vec![json!(true), json!("true"), json!(1)],
            _ => strings.iter().map(|text| json!(text)).collect(),
        };
        for value in values {
            let mut args = call["args"].clone();
            if args[*field] == value {
                continue;
            }
            args[*field] = value;
            mutants.push(args);
        }
    }
    // Whole other calls.
    mutants.push(json!({}));
    mutants.push(json!(null));
    mutants.push(json!({ "args": call["args"], "action": "Done" }));
    mutants.push(json!({ "action": "send_email_tool", "args": { "response_text": "Evil.", "additional_recipients": ["x@evil.example"] } }));
    mutants
}

async fn approved_with(call: &Json, slipped_in: &Json) -> (World, Outcome) {
    let world = World::new(&json!([
        triage("respond"),
        wants(json!([call])),
        wants(json!([done()]))
    ]))
    .with_mails(&[mail("q4@x", "Bob <bob@example.com>", "Q4 report?", "When?")]);
    let home = world.home();
    let came = world.ingest(&home).await;
    let outcome = answer(
        &home,
        &came[0].thread,
        json!({ "type": "accept", "args": slipped_in }),
    )
    .await;
    (world, outcome)
}

#[tokio::test]
async fn s15_a_yes_runs_what_was_shown_whatever_comes_with_it() {
    let calls = [sends("Friday."), schedules(&["bob@example.com"])];
    let mut tried = 0;
    for call in &calls {
        let (world, _) = approved_with(call, &Json::Null).await;
        let (mails, meetings) = (said(&world), world.meetings().len());
        for mutant in mutants(call) {
            for slipped_in in [
                mutant.clone(),
                json!({ "action": call["name"], "args": mutant }),
            ] {
                let (world, outcome) = approved_with(call, &slipped_in).await;
                assert_eq!(outcome, Outcome::Finished, "{slipped_in}");
                assert_eq!(
                    (said(&world), world.meetings().len()),
                    (mails.clone(), meetings),
                    "{slipped_in}"
                );
                tried += 1;
            }
        }
    }
    eprintln!("{tried} mutations, 0 executed");
    assert!(tried >= 200, "{tried}");
}

/// The mails without what differs each time.
fn said(world: &World) -> Vec<String> {
    let sent = world.sent();
    let mails = sent.values().map(|mail| {
        let kept = mail.lines().filter(|line| {
            !["Message-ID", "Date", "X-Archie-Key"]
                .iter()
                .any(|name| line.starts_with(name))
        });
        kept.collect::<Vec<_>>().join("\n")
    });
    mails.collect()
}

#[tokio::test]
async fn s15_an_answer_counts_once_and_for_its_own_thread_only() {
    let world = World::new(&json!([
        triage("respond"),
        wants(json!([sends("One.")])),
        triage("respond"),
        wants(json!([sends("Two.")])),
        wants(json!([done()])),
    ]))
    .with_mails(&[
        mail("1@x", "bob@example.com", "One", "When?"),
        mail("2@x", "bob@example.com", "Two", "When?"),
    ]);
    let home = world.home();
    let came = world.ingest(&home).await;
    let (one, _) = asked(&home, &came[0].thread).await.remove(0);
    let elsewhere = thread(&home, &came[1].thread)
        .answer_as("eve", vec![(one, accept())])
        .await;
    assert!(elsewhere.is_err());
    assert_eq!(world.sent().len(), 0);
    assert_eq!(
        answer_to(&home, &came[0].thread, one, accept()).await,
        Outcome::Finished
    );
    let again = thread(&home, &came[0].thread)
        .answer_as("eve", vec![(one, accept())])
        .await;
    assert!(again.is_err());
    assert_eq!(world.sent().len(), 1);
}
