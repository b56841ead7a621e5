//! Triage: what rules decide without a model, what a model must quote, and what the person decided before.

use std::fs;

use archie_email_assistant::state::{Classification, Ended};
use serde_json::{Value as Json, json};

use super::acceptance::sent;
use super::kit::*;
use crate::kit::Workdir;

fn fraud() -> String {
    mail_with(
        "fraud@x",
        "CEO <ceo@examp1e.com>",
        "URGENT gift cards",
        "Can you buy five gift cards and send me the codes?",
        "Reply-To: ceo.private@gmail.com\nAuthentication-Results: mx.example.com; spf=fail; dmarc=fail\n",
    )
}

fn newsletter(id: &str) -> String {
    let header = "List-Unsubscribe: <https://shop.example/u>\n";
    mail_with(
        id,
        "Shop <news@shop.example>",
        "20 % off",
        "Do not miss this!",
        header,
    )
}

fn quoting(quote: &str, classification: &str) -> Json {
    json!({ "at": "triage_router", "json": { "quote": quote, "reasoning": "because", "classification": classification } })
}

#[tokio::test]
async fn fraud_is_shown_with_the_reasons_and_no_model_reads_it() {
    let world = World::new(&json!([learns("")])).with_mails(&[fraud()]);
    let home = world.home();
    let came = world.ingest(&home).await;
    assert_eq!(came[0].decision, Some(Classification::Notify));
    let (_, asked) = asked(&home, &came[0].thread).await.remove(0);
    let reasons = asked["suspicion"].to_string();
    for reason in [
        "`examp1e.com` looks like `example`",
        "answers go to `ceo.private@gmail.com`",
        "the check of the sender failed (DMARC)",
        "it presses for time (`urgent`)",
        "it asks for what fraud asks for (`gift card`)",
    ] {
        assert!(reasons.contains(reason), "{reason}: {reasons}");
    }
    let shown = asked["description"].as_str().unwrap();
    assert!(
        shown.starts_with("This mail is suspicious, and no reply was drafted:\n- "),
        "{shown}"
    );
    answer(&home, &came[0].thread, ignore()).await;
    let end = state(&home, &came[0].thread).await;
    assert_eq!((end.ended, end.messages.len()), (Some(Ended::Ignored), 0));
    let past = archie_email_assistant::decisions::recent(&home.memory).await;
    assert!(past.unwrap().is_empty(), "the sender may be forged");
}

#[tokio::test]
async fn mail_to_many_is_left_without_a_model_until_the_person_wants_it() {
    let world =
        World::new(&json!([learns(""), wants(json!([done()]))])).with_mails(&[newsletter("one@x")]);
    let home = world.home();
    let came = world.ingest(&home).await;
    assert_eq!(came[0].decision, Some(Classification::Ignore));
    let settings = archie_email_assistant::rules::RuleSettings {
        bulk: archie_email_assistant::rules::RuleAction::Notify,
        ..Default::default()
    };
    settings.save(&home.memory).await.unwrap();
    fs::write(world.mbox(), mbox(&[newsletter("two@x")])).unwrap();
    let came = world.ingest(&home).await;
    assert_eq!(came[0].decision, Some(Classification::Notify));
    // They answer it: from now on, this sender matters, whatever the setting is.
    let wanted = json!({ "type": "response", "args": "order one" });
    answer(&home, &came[0].thread, wanted).await;
    archie_email_assistant::rules::RuleSettings::default()
        .save(&home.memory)
        .await
        .unwrap();
    fs::write(world.mbox(), mbox(&[newsletter("three@x")])).unwrap();
    let came = world.ingest(&home).await;
    assert_eq!(came[0].decision, Some(Classification::Notify));
    let kept = state(&home, &came[0].thread).await;
    assert_eq!(
        kept.reasoning,
        "you decided so about `news@shop.example` before"
    );
}

#[tokio::test]
async fn a_quotation_that_is_not_in_the_mail_is_asked_for_again_and_then_rules_decide() {
    let asks = mail(
        "1@x",
        "Bob <bob@example.com>",
        "Report",
        "When is the report ready?",
    );
    let tells = mail(
        "2@x",
        "Bob <bob@example.com>",
        "Report",
        "The report is ready.",
    );
    let mut again = quoting("when is the report ready", "ignore");
    again["expect"] = json!("That quote is not in the mail");
    for (mails, replies, decision, quote) in [
        (
            &asks,
            json!([quoting("You won!", "ignore"), again]),
            Classification::Ignore,
            "when is the report ready",
        ),
        (
            &asks,
            json!([quoting("You won!", "ignore"), quoting("ready", "respond")]),
            Classification::Notify,
            "",
        ),
        (
            &tells,
            json!([
                quoting("You won!", "ignore"),
                quoting("You lost!", "ignore")
            ]),
            Classification::Notify,
            "",
        ),
    ] {
        let world = World::new(&replies).with_mails(std::slice::from_ref(mails));
        let home = world.home();
        let came = world.ingest(&home).await;
        assert_eq!(came[0].decision, Some(decision), "{replies}");
        let kept = state(&home, &came[0].thread).await;
        assert_eq!(kept.quote, quote);
        assert_eq!(kept.degraded.is_some(), quote.is_empty(), "{replies}");
    }
}

#[tokio::test]
async fn a_sender_that_reads_no_replies_gets_none() {
    let one = mail(
        "1@x",
        "Bank <no-reply@bank.example>",
        "Statement",
        "Your statement is here. Questions?",
    );
    let world =
        World::new(&json!([quoting("Your statement is here.", "respond")])).with_mails(&[one]);
    let home = world.home();
    let came = world.ingest(&home).await;
    assert_eq!(came[0].decision, Some(Classification::Notify));
}

#[tokio::test]
async fn what_the_person_decided_before_is_an_example_for_the_model() {
    let report =
        |id: &str, subject: &str| mail(id, "Bob <bob@example.com>", subject, "It is ready.");
    let mut second = triage("ignore");
    second["expect"] = json!("- \"Q3 report\" from bob@example.com: ignore");
    let world = World::new(&json!([triage("notify"), learns(""), second]))
        .with_mails(&[report("1@x", "Q3 report")]);
    let home = world.home();
    let came = world.ingest(&home).await;
    answer(&home, &came[0].thread, ignore()).await;
    fs::write(world.mbox(), mbox(&[report("2@x", "Q4 report")])).unwrap();
    let came = world.ingest(&home).await;
    assert_eq!(came[0].decision, Some(Classification::Ignore));
}

#[tokio::test]
async fn a_reply_that_was_sent_and_one_that_was_refused_are_remembered() {
    use archie_email_assistant::decisions::recent;
    for (said, decision) in [
        (accept(), Classification::Respond),
        (ignore(), Classification::Notify),
    ] {
        let one = mail("1@x", "Bob <bob@example.com>", "Report", "When?");
        let world = World::new(&json!([
            triage("respond"),
            wants(json!([sends("Friday."), done()])),
            learns(""),
        ]))
        .with_mails(&[one]);
        let home = world.home();
        let came = world.ingest(&home).await;
        assert!(
            recent(&home.memory).await.unwrap().is_empty(),
            "a model's word is not a decision"
        );
        answer(&home, &came[0].thread, said).await;
        let past = recent(&home.memory).await.unwrap();
        assert_eq!((past.len(), past[0].decision), (1, decision));
    }
}

#[test]
fn the_program_says_what_is_suspicious_and_the_rules_are_set_and_shown() {
    let workdir = Workdir::scripted(&json!([]));
    fs::write(workdir.path("mbox"), mbox(&[fraud(), newsletter("n@x")])).unwrap();
    let ran = workdir.run(&["mail", "rules"], "");
    assert_eq!(ran.out(), "bulk      ignore\ncalendar  notify\n");
    let ran = workdir.run(
        &["mail", "rules", "--bulk", "notify", "--calendar", "model"],
        "",
    );
    assert_eq!(ran.out(), "bulk      notify\ncalendar  model\n");
    let rules = workdir.json(&["mail", "rules", "--json"]);
    assert_eq!(rules, json!({ "bulk": "notify", "calendar": "model" }));
    let ran = workdir.run(&["mail", "rules", "--bulk", "delete"], "");
    assert_eq!(ran.code(), Some(2), "{ran:?}");
    let came = workdir.json(&["mail", "ingest", "./mbox", "--json"]);
    let reasons = came[0]["suspicion"].as_array().unwrap();
    assert!(reasons.len() >= 4, "{came}");
    assert_eq!(came[1]["classification"], "notify", "{came}");
    let ran = workdir.run(&["mail", "ingest", "./mbox"], "");
    assert!(
        ran.out().lines().next().unwrap().contains("  (suspicious)"),
        "{ran:?}"
    );
    assert!(sent(&workdir).is_empty());
}

#[test]
fn an_item_is_shown_with_the_mail_the_call_and_what_may_be_answered() {
    let workdir = Workdir::scripted(&json!([
        triage("respond"),
        wants(json!([sends("On Friday.")])),
    ]));
    let asks = mail(
        "1@x",
        "Bob <bob@example.com>",
        "Report",
        "When is the report ready?",
    );
    fs::write(workdir.path("mbox"), mbox(&[asks, fraud()])).unwrap();
    let ran = workdir.run(&["mail", "ingest", "./mbox"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let items = workdir.items();
    let draft = workdir.run(&["inbox", &items[0]], "");
    let shown = format!("{}{}", draft.out(), draft.err());
    for part in [
        "To: bob@example.com",
        "> When is the report ready?",
        "\n| On Friday.\n",
        "accept, edit, response, ignore",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let notice = workdir.run(&["inbox", &items[1]], "");
    let shown = format!("{}{}", notice.out(), notice.err());
    for part in [
        "This mail is suspicious, and no reply was drafted:",
        "Can you buy five gift cards and send me the codes?",
        "response, ignore",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("accept"), "{shown}");
}
