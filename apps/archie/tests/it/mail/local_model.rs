//! Sixteen mails and a real small model on this machine: it proves the plumbing, not the wit.

use std::fs;

use serde_json::Value as Json;
use superstep_conformance::services;

use super::kit::{mail, mbox};
use crate::kit::Workdir;

/// Eight that want an answer, six to know of, two to ignore.
const MAILS: [(&str, &str); 16] = [
    (
        "Quick question about the API",
        "Are the /v2 endpoints missing from the documentation on purpose?",
    ),
    (
        "Tax season: let us schedule a call",
        "Can we talk 45 minutes next week about taxes?",
    ),
    (
        "Conference in May",
        "Will you come, and is there a rate for groups?",
    ),
    (
        "Please review the documents",
        "Could you review the design until Friday?",
    ),
    (
        "Swimming class",
        "Registration is open. Does your daughter take part?",
    ),
    (
        "Lunch with the customer",
        "Is Tuesday at noon possible for you?",
    ),
    (
        "Annual check-up reminder",
        "Please call to make your appointment.",
    ),
    (
        "Joint presentation",
        "Shall we meet 60 minutes to prepare the slides?",
    ),
    ("Maintenance on Saturday", "The system is down from 2 to 4."),
    (
        "Security policy",
        "Everybody changes the password until Friday.",
    ),
    ("Deploy finished", "Version 12 is out."),
    ("Your subscription ends", "It ends in seven days."),
    ("Out of office", "I am back on Monday."),
    (
        "Security alert",
        "Your account was signed in to from a new device.",
    ),
    ("Weekly digest", "Ten things you should read."),
    ("Limited offer", "20 % off everything until midnight."),
];

#[test]
fn sixteen_mails_and_no_stuck_thread() {
    let workdir = Workdir::with_model("openai:smollm2-135m")
        .with_environment("OPENAI_BASE_URL", &services::url("model"));
    let mails = MAILS.iter().enumerate().map(|(at, (subject, body))| {
        mail(&format!("{at}@x"), "Bob <bob@example.com>", subject, body)
    });
    let mails: Vec<_> = mails.collect();
    fs::write(workdir.path("mbox"), mbox(&mails)).unwrap();
    let ran = workdir.run(&["mail", "ingest", "./mbox", "--json"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let came: Json = serde_json::from_str(&ran.out()).unwrap();
    let came = came.as_array().unwrap();
    assert_eq!(came.len(), 16);
    for mail in came {
        let decision = mail["classification"].as_str().unwrap();
        assert!(
            ["ignore", "notify", "respond"].contains(&decision),
            "{mail}"
        );
        let asks = mail["asks"].as_array().unwrap().len();
        let shown = workdir.json(&["show", mail["thread"].as_str().unwrap(), "--json"]);
        let ended = &shown["values"]["ended"];
        assert!(asks > 0 || ended.is_string(), "stuck: {mail} {shown}");
    }
    assert!(
        !workdir.path("mbox.outbox").exists(),
        "nothing leaves without a yes"
    );
}
