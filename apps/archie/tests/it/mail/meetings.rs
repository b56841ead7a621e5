//! Meetings: when they are, in which zone, and who invites.

use serde_json::{Value as Json, json};
use superstep::Outcome;

use super::kit::*;

fn request() -> String {
    let words = "Can we meet on 10 July at 10 in Berlin?";
    mail("meet@x", "Bob <bob@example.com>", "Meeting?", words)
}

fn meeting(timezone: &str, organizer: &str) -> Json {
    json!({ "name": "schedule_meeting_tool", "args": {
        "attendees": ["bob@example.com"], "title": "Sync", "start_time": "2025-07-10T10:00:00",
        "end_time": "2025-07-10T10:30:00", "timezone": timezone, "organizer_email": organizer
    } })
}

#[tokio::test]
async fn ten_in_berlin_is_shown_and_made_at_ten_in_berlin() {
    let world = World::new(&json!([
        triage("respond"),
        wants(json!([meeting("Europe/Berlin", "")])),
        wants(json!([{ "name": "check_calendar_tool", "args": { "dates": ["2025-07-10"] } }])),
        wants(json!([done()])),
    ]))
    .with_mails(&[request()]);
    let home = world.home();
    let came = world.ingest(&home).await;
    let id = &came[0].thread;
    let (_, asked) = asked(&home, id).await.remove(0);
    let shown = asked["description"].as_str().unwrap();
    for line in [
        "Begins: 2025-07-10 10:00:00 Europe/Berlin (2025-07-10T08:00:00Z)\n",
        "Ends: 2025-07-10 10:30:00 Europe/Berlin (2025-07-10T08:30:00Z)\n",
        "Organizer: alice@example.com\n",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert_eq!(answer(&home, id, accept()).await, Outcome::Finished);
    let event = world.meetings().into_values().next().unwrap();
    for line in [
        "DTSTART;TZID=Europe/Berlin:20250710T100000\r\n",
        "DTEND;TZID=Europe/Berlin:20250710T103000\r\n",
        "TZOFFSETTO:+0200\r\n",
        "ORGANIZER:mailto:alice@example.com\r\n",
    ] {
        assert!(event.contains(line), "{line}: {event}");
    }
    let end = state(&home, id).await;
    let agenda = "2025-07-10 10:00:00 Europe/Berlin (2025-07-10T08:00:00Z)";
    let told = |what: &str| end.messages.iter().any(|kept| kept.text().contains(what));
    assert!(
        told(&format!("2025-07-10:\n  {agenda} to ")),
        "the model reads the zone"
    );
}

#[tokio::test]
async fn an_unknown_zone_is_refused_with_a_sentence_for_the_person_and_the_model() {
    let world = World::new(&json!([
        triage("respond"),
        wants(json!([meeting("Berlin time", "")])),
        { "at": "llm_call", "expect": "such as `Europe/Berlin`", "tool_calls": [meeting("Europe/Berlin", "")] },
        wants(json!([done()])),
    ]))
    .with_mails(&[request()]);
    let home = world.home();
    let came = world.ingest(&home).await;
    let id = &came[0].thread;
    let (_, first) = asked(&home, id).await.remove(0);
    let shown = first["description"].as_str().unwrap();
    assert!(
        shown.contains("This cannot be scheduled: `Berlin time` is not a time zone; write a name of the IANA database, such as `Europe/Berlin`\n"),
        "{shown}"
    );
    answer(&home, id, accept()).await;
    assert!(world.meetings().is_empty());
    assert_eq!(answer(&home, id, accept()).await, Outcome::Finished);
    assert_eq!(world.meetings().len(), 1);
}

#[tokio::test]
async fn a_meeting_that_ends_before_it_begins_is_refused() {
    let mut backwards = meeting("", "");
    backwards["args"]["end_time"] = json!("2025-07-10T09:00:00");
    let world = World::new(&json!([
        triage("respond"),
        wants(json!([backwards])),
        { "at": "llm_call", "expect": "write a later `end_time`", "tool_calls": [done()] },
    ]))
    .with_mails(&[request()]);
    let home = world.home();
    let came = world.ingest(&home).await;
    assert_eq!(
        answer(&home, &came[0].thread, accept()).await,
        Outcome::Finished
    );
    assert!(world.meetings().is_empty());
}

#[tokio::test]
async fn another_organizer_needs_a_second_word_and_is_in_the_calendar() {
    let world = World::new(&json!([
        triage("respond"),
        wants(json!([meeting("", "Carol <carol@example.com>")])),
        wants(json!([done()])),
    ]))
    .with_mails(&[request()]);
    let home = world.home();
    let came = world.ingest(&home).await;
    let id = &came[0].thread;
    let (_, first) = asked(&home, id).await.remove(0);
    let shown = first["description"].as_str().unwrap();
    assert!(shown.contains("Organizer: carol@example.com\n"), "{shown}");
    answer(&home, id, accept()).await;
    assert!(world.meetings().is_empty(), "one word is not enough");
    let (_, second) = asked(&home, id).await.remove(0);
    assert_eq!(
        second["beyond"],
        json!(["`carol@example.com` is shown as the organizer, not you"])
    );
    assert_eq!(answer(&home, id, accept()).await, Outcome::Finished);
    let event = world.meetings().into_values().next().unwrap();
    assert!(
        event.contains("ORGANIZER:mailto:carol@example.com\r\n"),
        "{event}"
    );
    assert!(event.contains("DTSTART:20250710T100000Z\r\n"), "{event}");
}
