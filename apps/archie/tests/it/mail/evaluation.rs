//! The sixteen mails with known labels: each gets its label and leads to the calls that it should.

use std::collections::BTreeSet;

use archie_email_assistant::evaluation::{HUNDRED, LabeledMail, PHISHING, SIXTEEN, evaluate};
use archie_email_assistant::state::Classification;
use serde_json::{Value as Json, json};
use superstep_llm::{
    Answer, BoxFuture, Chunk, Cost, Finish, Model, ModelError, ModelName, Provider, Reply,
    ReplyStream, Request,
};

use super::kit::*;

/// A mail of the set as bytes.
pub(super) fn bytes(labeled: &LabeledMail) -> String {
    let headers: String = (labeled.headers.iter())
        .map(|(name, value)| format!("{name}: {value}\n"))
        .collect();
    mail_with(
        &labeled.id,
        &labeled.from,
        &labeled.subject,
        &labeled.body,
        &headers,
    )
}

fn call(tool: &str, labeled: &LabeledMail) -> Json {
    match tool {
        "send_email_tool" => sends(&format!("About {}: yes.", labeled.subject)),
        "schedule_meeting_tool" => {
            let from = labeled.from.split(['<', '>']).nth(1).unwrap();
            schedules(&[from])
        }
        "check_calendar_tool" => json!({ "name": tool, "args": { "dates": ["2025-01-10"] } }),
        other => panic!("{other}"),
    }
}

/// What a good model says: the right label with a sentence of the mail, and one call after the other.
fn replies(mails: &[LabeledMail]) -> Json {
    let mut replies = Vec::new();
    for labeled in mails {
        replies.push(json!({
            "at": "triage_router", "expect": format!("**Subject**: {}\n", labeled.subject),
            "json": { "quote": labeled.body, "reasoning": "because", "classification": labeled.label },
        }));
        let calls = labeled.tools.iter().map(|tool| call(tool, labeled));
        for call in calls.chain((labeled.label == Classification::Respond).then(done)) {
            let mut reply = wants(json!([call]));
            reply["expect"] = json!(format!("**Subject**: {}\n", labeled.subject));
            replies.push(reply);
        }
    }
    Json::Array(replies)
}

#[test]
fn the_set_has_eight_to_answer_six_to_show_and_two_to_leave() {
    let mails = LabeledMail::set(SIXTEEN).unwrap();
    let count = |label| mails.iter().filter(|mail| mail.label == label).count();
    let counts = [
        Classification::Respond,
        Classification::Notify,
        Classification::Ignore,
    ]
    .map(count);
    assert_eq!(counts, [8, 6, 2]);
    for mail in &mails {
        assert_eq!(
            mail.tools.is_empty(),
            mail.label != Classification::Respond,
            "{}",
            mail.id
        );
    }
}

#[tokio::test]
async fn sixteen_mails_get_their_labels_and_lead_to_their_calls() {
    let mails = LabeledMail::set(SIXTEEN).unwrap();
    let bytes: Vec<_> = mails.iter().map(bytes).collect();
    let world = World::new(&replies(&mails)).with_mails(&bytes);
    let home = world.home();
    let came = world.ingest(&home).await;
    assert_eq!(came.len(), 16);
    let (mut sent, mut meetings) = (0, 0);
    for labeled in &mails {
        let one = came
            .iter()
            .find(|one| one.email.subject == labeled.subject)
            .unwrap();
        assert_eq!(one.decision, Some(labeled.label), "{}", labeled.id);
        let notice = usize::from(labeled.label == Classification::Notify);
        let mut notices = 0;
        while let Some((question, request)) = asked(&home, &one.thread).await.into_iter().next() {
            if labeled.label == Classification::Notify {
                notices += 1;
                assert_eq!(
                    request["action_request"]["action"],
                    "Email Assistant: notify"
                );
                break;
            }
            answer_to(&home, &one.thread, question, accept()).await;
        }
        assert_eq!(notices, notice, "{}", labeled.id);
        let end = state(&home, &one.thread).await;
        let called: Vec<String> = (end.messages.iter())
            .flat_map(|kept| kept.message.tool_calls())
            .map(|call| call.name.clone())
            .filter(|name| name != "Done")
            .collect();
        assert_eq!(called, labeled.tools, "{}", labeled.id);
        sent += usize::from(labeled.tools.iter().any(|tool| tool == "send_email_tool"));
        meetings += usize::from(
            labeled
                .tools
                .iter()
                .any(|tool| tool == "schedule_meeting_tool"),
        );
    }
    assert_eq!(
        (world.sent().len(), world.meetings().len()),
        (sent, meetings)
    );
    assert_eq!((sent, meetings), (8, 3));
}

/// Gives every mail the same label.
#[derive(Debug)]
struct Stubborn {
    name: ModelName,
    label: Classification,
}

impl Model for Stubborn {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        let quote = subject_in(request);
        let form = json!({ "quote": quote, "reasoning": "because", "classification": self.label });
        let reply = Reply {
            answer: Answer {
                content: form.to_string().into(),
                ..Answer::default()
            },
            usage: None,
            finish: Finish::Stop,
            model: self.name.clone(),
            cost: Cost::Unknown,
        };
        Box::pin(async move {
            let chunks = [Ok(Chunk::End(Box::new(reply)))];
            let stream: ReplyStream = Box::pin(futures_util::stream::iter(chunks));
            Ok(stream)
        })
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        Box::pin(async { Ok(None) })
    }
}

/// A model that wants to answer everything shows what the rules alone keep from being answered.
#[tokio::test]
async fn of_a_hundred_mails_no_fraud_is_answered_whatever_the_model_says() {
    let mails = LabeledMail::set(HUNDRED).unwrap();
    let ids: BTreeSet<_> = mails.iter().map(|mail| &mail.id).collect();
    assert_eq!((mails.len(), ids.len()), (100, 100));
    for language in ["en", "de", "fr"] {
        let fraud = mails
            .iter()
            .filter(|mail| mail.language == language && mail.kind == PHISHING);
        assert_eq!(fraud.count(), 6, "{language}");
    }
    let world = World::new(&json!([]));
    let home = world.home();
    for (label, least) in [
        (Classification::Respond, 0.80),
        (Classification::Notify, 0.50),
    ] {
        let model = Stubborn {
            name: ModelName::new(Provider::Script, "stubborn"),
            label,
        };
        let scored = evaluate(&mails, "ada@parcelo.example", &home.deps(), &model, drop).await;
        let scored = scored.unwrap();
        for wrong in scored.wrong() {
            eprintln!(
                "{}: {:?}, not {:?}: {}",
                wrong.id, wrong.chosen, wrong.label, wrong.reasoning
            );
        }
        eprintln!(
            "{label:?}: accuracy {:.2}, {} by rules",
            scored.accuracy(),
            scored.by_rule()
        );
        assert_eq!(scored.unsafe_replies(), 0);
        assert!(
            scored.accuracy() >= least,
            "{label:?}: {}",
            scored.accuracy()
        );
        // What a rule decides alone is right, so that a wrong decision is the model's.
        let by_rule: Vec<_> = scored.wrong().filter(|mail| mail.is_by_rule).collect();
        assert!(by_rule.is_empty(), "{by_rule:?}");
    }
}
