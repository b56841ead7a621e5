//! Every line of the checklist, by its number.

use archie_email_assistant::memory::{Preferences, get_memory};
use archie_email_assistant::proposals::{accept as accept_proposal, proposals};
use archie_email_assistant::state::{Classification, Ended};
use archie_email_assistant::{NAME, parse_gmail};
use serde_json::{Value as Json, json};
use superstep::Outcome;
use superstep::graph::Drawing;
use superstep::label::Label;

use super::kit::*;

fn edges(drawing: &Drawing) -> Vec<String> {
    let mut edges: Vec<_> = drawing
        .edges
        .iter()
        .map(|edge| format!("{} -> {}", edge.source, edge.target))
        .collect();
    edges.sort();
    edges.dedup();
    edges
}

fn request() -> String {
    mail(
        "q4@x",
        "Bob <bob@example.com>",
        "Q4 report?",
        "When is the report ready?",
    )
}

#[tokio::test]
async fn e1_the_outer_graph_sorts_and_marks() {
    let world = World::new(&json!([]));
    let drawing = world.home().agent(NAME).unwrap().drawing();
    assert_eq!(drawing.name, "email_assistant");
    assert_eq!(
        edges(&drawing),
        [
            "__start__ -> triage_router",
            "mark_as_read_node -> __end__",
            "response_agent -> mark_as_read_node",
            "triage_interrupt_handler -> __end__",
            "triage_interrupt_handler -> response_agent",
            "triage_router -> __end__",
            "triage_router -> response_agent",
            "triage_router -> triage_interrupt_handler",
        ]
    );
}

#[tokio::test]
async fn e2_the_inner_graph_asks_acts_and_marks() {
    let world = World::new(&json!([]));
    let drawing = world.home().agent(NAME).unwrap().drawing();
    let inner = drawing
        .nodes
        .iter()
        .find(|node| node.id == "response_agent")
        .unwrap();
    assert_eq!(
        edges(inner.subgraph.as_ref().unwrap()),
        [
            "__start__ -> llm_call",
            "interrupt_handler -> __end__",
            "interrupt_handler -> llm_call",
            "llm_call -> interrupt_handler",
            "llm_call -> mark_as_read_node",
            "mark_as_read_node -> __end__",
        ]
    );
}

#[tokio::test]
async fn e3_triage_sends_each_mail_its_way() {
    let mails =
        ["One", "Two", "Three"].map(|subject| mail(subject, "bob@example.com", subject, "Words."));
    let world = World::new(&json!([
        triage("ignore"),
        triage("notify"),
        triage("respond"),
        wants(json!([sends("Friday.")]))
    ]))
    .with_mails(&mails);
    let home = world.home();
    let came = world.ingest(&home).await;
    let decisions: Vec<_> = came.iter().map(|came| came.decision.unwrap()).collect();
    assert_eq!(
        decisions,
        [
            Classification::Ignore,
            Classification::Notify,
            Classification::Respond
        ]
    );
    let ignored = state(&home, &came[0].thread).await;
    assert_eq!(
        (ignored.ended, ignored.messages.len()),
        (Some(Ended::Ignored), 0)
    );
    let stored = serde_json::to_value(ignored.classification_decision).unwrap();
    assert_eq!(stored, "ignore");
    let answered = state(&home, &came[2].thread).await;
    assert!(
        answered.messages[0]
            .text()
            .starts_with("Respond to the email: ")
    );
    assert!(answered.messages[0].labels.has(&Label::UNTRUSTED));
    let asks = |at: usize| came[at].asks.iter().map(|ask| ask.action.as_str());
    assert!(asks(1).eq(["Email Assistant: notify"]));
    assert!(asks(2).eq(["send_email_tool"]));
    assert!(came[2].asks[0].id.starts_with(&came[2].asks[0].short_id));
}

#[tokio::test]
async fn e3_a_model_that_cannot_sort_leaves_it_to_the_person() {
    let bad = json!({ "at": "triage_router", "text": "perhaps" });
    let world = World::new(&json!([bad, bad])).with_mails(&[request()]);
    let home = world.home();
    let came = world.ingest(&home).await;
    let state = state(&home, &came[0].thread).await;
    assert_eq!(state.classification_decision, Some(Classification::Notify));
    assert!(state.degraded.is_some());
}

#[tokio::test]
async fn e4_a_mail_that_was_shown_is_answered_or_left_and_triage_learns() {
    let mails = ["One", "Two"].map(|subject| mail(subject, "bob@example.com", subject, "Words."));
    let world = World::new(&json!([
        triage("notify"),
        triage("notify"),
        learns("Leave notices of builds."),
        learns("Answer Bob."),
        wants(json!([sends("Thanks.")]))
    ]))
    .with_mails(&mails);
    let home = world.home();
    let came = world.ingest(&home).await;
    let (_, question) = asked(&home, &came[0].thread).await.remove(0);
    assert_eq!(
        question["config"],
        json!({ "allow_ignore": true, "allow_respond": true, "allow_edit": false, "allow_accept": false })
    );
    assert_eq!(question["classification_decision"], "notify");
    assert!(
        question["description"]
            .as_str()
            .unwrap()
            .contains("**Subject**: One")
    );
    assert_eq!(
        answer(&home, &came[0].thread, ignore()).await,
        Outcome::Finished
    );
    let left = state(&home, &came[0].thread).await;
    assert_eq!(left.ended, Some(Ended::Ignored));
    assert_eq!(left.learned[0].diff, ["+ Leave notices of builds."]);
    assert!(!left.marked_as_read);
    answer(
        &home,
        &came[1].thread,
        json!({ "type": "response", "args": "say thanks" }),
    )
    .await;
    let answered = state(&home, &came[1].thread).await;
    assert_eq!(kinds(&answered), ["human", "human"]);
    assert!(answered.messages[1].text().ends_with("say thanks"));
    assert_eq!(answered.learned[0].memory, "triage_preferences");
}

#[tokio::test]
async fn e5_the_model_is_told_both_memories_and_all_tools() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let replies = json!({ "replies": [triage("respond"), wants(json!([sends("Friday.")]))] });
    let script = superstep_llm::Script::parse("mail", &replies.to_string()).unwrap();
    let script = script.with_ledger(&ledger).unwrap();
    let world = World::with_model(std::sync::Arc::new(script)).with_mails(&[request()]);
    let home = world.home();
    world.ingest(&home).await;
    let text = std::fs::read_to_string(ledger).unwrap();
    let asked: Json = text
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).unwrap())
        .find(|line| line["request"]["label"] == "llm_call")
        .unwrap();
    let said = asked["request"].to_string();
    for which in [Preferences::Response, Preferences::Calendar] {
        let first = which
            .default_lines()
            .lines()
            .next()
            .unwrap()
            .trim_start_matches("- ");
        assert!(said.contains(first), "{first}");
    }
    for tool in [
        "send_email_tool",
        "schedule_meeting_tool",
        "check_calendar_tool",
        "Question",
        "Done",
    ] {
        assert!(
            asked["request"]["tools"]
                .as_array()
                .unwrap()
                .iter()
                .any(|known| known["name"] == tool),
            "{tool}"
        );
    }
}

#[tokio::test]
async fn e6_tools_that_only_read_run_and_others_are_asked_about() {
    let world = World::new(&json!([
        triage("respond"),
        wants(json!([{ "name": "check_calendar_tool", "args": { "dates": ["2025-01-10"] } }])),
        wants(json!([schedules(&["bob@example.com"])])),
        wants(json!([{ "name": "Question", "args": { "content": "Which room?" } }])),
        wants(json!([sends("Friday at ten, room 3."), done()])),
    ]))
    .with_mails(&[request()]);
    let home = world.home();
    let came = world.ingest(&home).await;
    let id = &came[0].thread;
    let (_, meeting) = asked(&home, id).await.remove(0);
    assert_eq!(meeting["action_request"]["action"], "schedule_meeting_tool");
    assert_eq!(
        meeting["config"],
        json!({ "allow_ignore": true, "allow_respond": true, "allow_edit": true, "allow_accept": true })
    );
    answer(&home, id, accept()).await;
    assert_eq!(world.meetings().len(), 1);
    let (_, question) = asked(&home, id).await.remove(0);
    assert_eq!(
        question["action_request"],
        json!({ "action": "Question", "args": { "content": "Which room?" } })
    );
    assert_eq!(question["config"]["allow_accept"], false);
    answer(&home, id, json!({ "type": "response", "args": "room 3" })).await;
    assert_eq!(answer(&home, id, accept()).await, Outcome::Finished);
    let end = state(&home, id).await;
    assert_eq!(end.ended, Some(Ended::Done));
    assert_eq!(world.sent().len(), 1);
    assert_eq!(end.done.len(), 2);
    assert!(
        end.messages
            .iter()
            .any(|kept| kept.text().contains("2025-01-10: nothing"))
    );
}

#[tokio::test]
async fn e6_two_calls_are_two_questions_and_nothing_happens_before_both_are_answered() {
    let world = World::new(&json!([
        triage("respond"),
        wants(json!([
            sends("Friday at ten."),
            schedules(&["bob@example.com"])
        ])),
        wants(json!([done()])),
    ]))
    .with_mails(&[request()]);
    let home = world.home();
    let came = world.ingest(&home).await;
    let id = &came[0].thread;
    let open = asked(&home, id).await;
    assert_eq!(open.len(), 2);
    answer_to(&home, id, open[0].0, accept()).await;
    assert_eq!(
        (world.sent().len(), world.meetings().len()),
        (0, 0),
        "one answer is missing"
    );
    let left = asked(&home, id).await;
    assert_eq!(left.len(), 1);
    assert_eq!(
        answer_to(&home, id, left[0].0, accept()).await,
        Outcome::Finished
    );
    assert_eq!((world.sent().len(), world.meetings().len()), (1, 1));
}

#[tokio::test]
async fn e6_done_next_to_a_send_sends_first() {
    for calls in [
        json!([sends("Friday at ten."), done()]),
        json!([done(), sends("Friday at ten.")]),
    ] {
        let world = World::new(&json!([triage("respond"), wants(calls)])).with_mails(&[request()]);
        let home = world.home();
        let came = world.ingest(&home).await;
        let id = &came[0].thread;
        let open = asked(&home, id).await;
        assert_eq!((open.len(), world.sent().len()), (1, 0));
        let end = answer_to(&home, id, open[0].0, accept()).await;
        assert_eq!((end, world.sent().len()), (Outcome::Finished, 1));
    }
}

#[tokio::test]
async fn e6_edits_keep_their_types_and_must_fit_the_tool() {
    let world = World::new(&json!([
        triage("respond"),
        wants(json!([sends("Friday.")])),
        learns("Name a time."),
        wants(json!([done()])),
    ]))
    .with_mails(&[request()]);
    let home = world.home();
    let came = world.ingest(&home).await;
    let id = &came[0].thread;
    let wrong = json!({ "type": "edit", "args": { "response_text": "Noon.", "forward": "false" } });
    answer(&home, id, wrong).await;
    let (_, again) = asked(&home, id).await.remove(0);
    assert!(
        again["description"]
            .as_str()
            .unwrap()
            .contains("was not taken"),
        "{again}"
    );
    let other_tool = json!({ "type": "edit", "args": { "action": "schedule_meeting_tool", "args": { "response_text": "x" } } });
    answer(&home, id, other_tool).await;
    assert_eq!(world.sent().len(), 0);
    let right =
        json!({ "type": "edit", "args": { "response_text": "Friday noon.", "forward": false } });
    assert_eq!(answer(&home, id, right).await, Outcome::Finished);
    let sent = world.sent();
    assert_eq!(sent.len(), 1);
    assert!(sent.values().next().unwrap().contains("Friday noon."));
    assert_eq!(
        state(&home, id).await.learned[0].memory,
        "response_preferences"
    );
}

#[tokio::test]
async fn e6_a_refused_draft_ends_it_and_marks_nothing() {
    let world = World::new(&json!([
        triage("respond"),
        wants(json!([sends("Friday."), done()])),
        learns("Leave Bob's reports."),
    ]))
    .with_mails(&[request()]);
    let home = world.home();
    let came = world.ingest(&home).await;
    assert_eq!(
        answer(&home, &came[0].thread, ignore()).await,
        Outcome::Finished
    );
    let end = state(&home, &came[0].thread).await;
    assert_eq!(
        (end.ended, end.marked_as_read),
        (Some(Ended::Ignored), false)
    );
    assert_eq!(world.sent().len(), 0);
    assert_eq!(end.learned[0].memory, "triage_preferences");
    assert!(!world.folder.path().join("mbox.seen").exists());
}

#[tokio::test]
async fn e6_a_response_goes_back_to_the_model_and_is_learned_from() {
    let world = World::new(&json!([
        triage("respond"),
        wants(json!([sends("Dear Sir,"), done()])),
        learns("Be informal."),
        json!({ "at": "llm_call", "expect": "less formal", "tool_calls": [sends("Hi Bob,")] }),
        wants(json!([done()])),
    ]))
    .with_mails(&[request()]);
    let home = world.home();
    let came = world.ingest(&home).await;
    let id = &came[0].thread;
    answer(
        &home,
        id,
        json!({ "type": "response", "args": "less formal" }),
    )
    .await;
    assert_eq!(world.sent().len(), 0);
    assert_eq!(answer(&home, id, accept()).await, Outcome::Finished);
    assert!(world.sent().values().next().unwrap().contains("Hi Bob,"));
    assert_eq!(state(&home, id).await.learned[0].diff, ["+ Be informal."]);
}

#[tokio::test]
async fn e6_a_model_that_calls_nothing_is_nudged_once_and_then_the_person_is_asked() {
    let silent = json!({ "at": "llm_call", "text": "I think Friday." });
    let empty = json!({ "at": "nudge", "json": { "tool": "Question", "text": "" } });
    let slots =
        json!({ "at": "nudge", "json": { "tool": "send_email_tool", "text": "On Friday." } });
    let world = World::new(&json!([
        triage("respond"),
        silent,
        empty,
        silent,
        slots,
        wants(json!([done()]))
    ]))
    .with_mails(&[request()]);
    let home = world.home();
    let came = world.ingest(&home).await;
    let id = &came[0].thread;
    let (_, what) = asked(&home, id).await.remove(0);
    assert!(
        what["description"]
            .as_str()
            .unwrap()
            .contains("I think Friday."),
        "{what}"
    );
    answer(
        &home,
        id,
        json!({ "type": "response", "args": "tell him Friday" }),
    )
    .await;
    let (_, draft) = asked(&home, id).await.remove(0);
    assert_eq!(
        draft["action_request"]["args"]["response_text"],
        "On Friday."
    );
    assert_eq!(answer(&home, id, accept()).await, Outcome::Finished);
    assert_eq!(world.sent().len(), 1);
}

#[tokio::test]
async fn e7_marks_only_what_has_an_id_and_only_once() {
    let world = World::new(&json!([
        triage("respond"),
        wants(json!([done()])),
        triage("respond"),
        wants(json!([done()])),
    ]))
    .with_mails(&[request()]);
    let home = world.home();
    let came = world.ingest(&home).await;
    assert!(state(&home, &came[0].thread).await.marked_as_read);
    let seen = std::fs::read_to_string(world.folder.path().join("mbox.seen")).unwrap();
    assert!(
        seen.starts_with("q4@x#") && seen.lines().count() == 1,
        "{seen}"
    );
    let studio = thread(&home, "00000000-0000-4000-8000-000000000001");
    let input = json!({ "email_input": { "author": "bob@example.com", "to": ACCOUNT, "subject": "Hi", "email_thread": "Hello." } });
    assert_eq!(
        studio.start_or_recover(input).await.unwrap().outcome,
        Outcome::Finished
    );
    let end = state(&home, &studio.id().to_string()).await;
    assert_eq!((end.ended, end.marked_as_read), (Some(Ended::Done), false));
}

#[tokio::test]
async fn e8_the_state_has_the_names_of_the_brief() {
    let world = World::new(&json!([triage("notify")])).with_mails(&[request()]);
    let home = world.home();
    let came = world.ingest(&home).await;
    let stored: Json = thread(&home, &came[0].thread)
        .state(None)
        .await
        .unwrap()
        .unwrap()
        .values
        .decode()
        .unwrap();
    assert_eq!(stored["classification_decision"], "notify");
    assert_eq!(stored["messages"], json!([]));
    assert_eq!(parse_gmail(&stored["email_input"]).subject, "Q4 report?");
}

#[tokio::test]
async fn e9_memory_is_in_the_store_under_the_names_of_the_brief() {
    use superstep::store::Namespace;
    let world =
        World::new(&json!([triage("notify"), learns("Leave notices.")])).with_mails(&[request()]);
    let home = world.home();
    let came = world.ingest(&home).await;
    answer(&home, &came[0].thread, ignore()).await;
    let (open, _) = proposals(&home.memory).await.unwrap();
    let (id, proposal) = open.iter().next().unwrap();
    accept_proposal(&home.memory, id, proposal, "ada")
        .await
        .unwrap();
    let namespace = Namespace::new(["email_assistant", "triage_preferences"]).unwrap();
    let item = home
        .memory
        .get(&namespace, "user_preferences", superstep::Timestamp(0))
        .await
        .unwrap();
    assert!(item.unwrap().value.to_string().contains("Leave notices."));
    let which = Preferences::Triage;
    let (lines, labels) = get_memory(&home.memory, which, which.default_lines())
        .await
        .unwrap();
    assert_eq!(lines.len(), which.default_lines().lines().count() + 1);
    assert!(
        labels.has(&Label::UNTRUSTED),
        "what was learned from a mail remembers it"
    );
}

#[tokio::test]
async fn what_leaves_the_conversation_needs_a_second_word() {
    for (confirm, mails) in [(accept(), 1), (ignore(), 0)] {
        let outsider = json!({ "name": "send_email_tool", "args": { "response_text": "Hi", "additional_recipients": ["x@evil.example"] } });
        let world = World::new(&json!([
            triage("respond"),
            wants(json!([outsider])),
            wants(json!([done()])),
            learns(""),
        ]))
        .with_mails(&[request()]);
        let home = world.home();
        let came = world.ingest(&home).await;
        let id = &came[0].thread;
        answer(&home, id, accept()).await;
        assert_eq!(world.sent().len(), 0);
        let (_, second) = asked(&home, id).await.remove(0);
        assert_eq!(
            second["beyond"],
            json!(["`x@evil.example` is not in the conversation"])
        );
        assert_eq!(answer(&home, id, confirm).await, Outcome::Finished);
        assert_eq!(world.sent().len(), mails);
    }
}

#[tokio::test]
async fn a_mail_is_answered_from_the_account_it_came_to() {
    let other = json!({ "name": "send_email_tool", "args": { "response_text": "Hi", "email_address": "boss@example.com" } });
    let world = World::new(&json!([
        triage("respond"),
        wants(json!([other])),
        wants(json!([done()]))
    ]))
    .with_mails(&[request()]);
    let home = world.home();
    let came = world.ingest(&home).await;
    answer(&home, &came[0].thread, accept()).await;
    assert_eq!(world.sent().len(), 0);
    let end = state(&home, &came[0].thread).await;
    assert!(
        end.messages
            .iter()
            .any(|kept| kept.text().contains("answered from there"))
    );
}

#[tokio::test]
async fn the_same_ingest_twice_is_one_thread_and_one_mail() {
    let world = World::new(&json!([
        triage("respond"),
        wants(json!([sends("Friday.")])),
        wants(json!([done()])),
        triage("ignore"),
    ]))
    .with_mails(&[request()]);
    let home = world.home();
    let first = world.ingest(&home).await;
    let second = world.ingest(&home).await;
    assert_eq!(first[0].thread, second[0].thread);
    answer(&home, &first[0].thread, accept()).await;
    assert!(world.ingest(&home).await.is_empty(), "it is read now");
    let mut again = world.ingest_of();
    again.which.include_read = true;
    let third = world.ingest_with(&home, again.clone()).await;
    assert_eq!(third[0].thread, first[0].thread);
    assert_eq!(world.sent().len(), 1);
    again.rerun = true;
    let anew = world.ingest_with(&home, again).await;
    assert_ne!(anew[0].thread, first[0].thread);
}

#[tokio::test]
async fn one_s_own_mails_are_left_out_unless_asked_for() {
    let own = mail_with(
        "own@x",
        ACCOUNT,
        "Re: Q4 report?",
        "Friday.",
        "In-Reply-To: <q4@x>\nReferences: <q4@x>\n",
    );
    let world =
        World::new(&json!([triage("ignore"), triage("ignore")])).with_mails(&[request(), own]);
    let home = world.home();
    // That it claims to answer the other proves nothing: see `identity`.
    let came = world.ingest(&home).await;
    assert_eq!(
        (came.len(), came[0].email.subject.as_str()),
        (1, "Q4 report?")
    );
    let mut all = world.ingest_of();
    all.skip_filters = true;
    assert_eq!(world.ingest_with(&home, all).await.len(), 2);
}

#[tokio::test]
async fn a_question_has_the_form_of_agent_inbox_and_takes_its_answers() {
    let world = World::new(&json!([
        triage("respond"),
        wants(json!([sends("Friday.")])),
        learns(""),
        wants(json!([done()])),
    ]))
    .with_mails(&[request()]);
    let home = world.home();
    let came = world.ingest(&home).await;
    let (_, question) = asked(&home, &came[0].thread).await.remove(0);
    assert_eq!(
        question["action_request"],
        json!({ "action": "send_email_tool", "args": { "response_text": "Friday." } })
    );
    let config = question["config"].as_object().unwrap();
    for flag in [
        "allow_ignore",
        "allow_respond",
        "allow_edit",
        "allow_accept",
    ] {
        assert!(config[flag].is_boolean(), "{flag}");
    }
    assert_eq!(config.len(), 4);
    let shown = question["description"].as_str().unwrap();
    assert!(
        shown.contains("To: bob@example.com") && shown.contains("When is the report ready?"),
        "{shown}"
    );
    // It sends the whole action back with an edit.
    let edit = json!({ "type": "edit", "args": { "action": "send_email_tool", "args": { "response_text": "Noon." } } });
    assert_eq!(
        answer(&home, &came[0].thread, edit).await,
        Outcome::Finished
    );
    assert!(world.sent().values().next().unwrap().contains("Noon."));
}
