use superstep::store::MemoryStore;

use super::*;
use crate::suspicion::suspicion;

fn email(from: &str, subject: &str, headers: &[(&str, &str)]) -> Email {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Email {
        from: from.to_owned(),
        subject: subject.to_owned(),
        account: "ada@parcelo.example".to_owned(),
        body: "Words.".to_owned(),
        headers: headers.collect(),
        ..Email::default()
    }
}

fn with(email: &Email, settings: RuleSettings, past: &[PastDecision]) -> RuleVerdict {
    verdict(email, &suspicion(email), &settings, past)
}

fn usual(email: &Email) -> RuleVerdict {
    with(email, RuleSettings::default(), &[])
}

fn decided(verdict: &RuleVerdict) -> Option<Classification> {
    match verdict {
        RuleVerdict::Decided(decision, _) => Some(*decision),
        _ => None,
    }
}

const UNSUBSCRIBE: (&str, &str) = ("list-unsubscribe", "<https://shop.example/u>");

#[test]
fn mail_to_many_is_left_unless_it_may_matter() {
    for header in [
        UNSUBSCRIBE,
        ("list-id", "<dev.example>"),
        ("precedence", "Bulk"),
    ] {
        let email = email("Shop <news@shop.example>", "20 % off", &[header]);
        assert_eq!(
            decided(&usual(&email)),
            Some(Classification::Ignore),
            "{header:?}"
        );
    }
    let invoice = email(
        "Shop <news@shop.example>",
        "Your invoice 12",
        &[UNSUBSCRIBE],
    );
    assert_eq!(
        usual(&invoice),
        RuleVerdict::NoReply("it was sent to many".to_owned())
    );
    let personal = email("Bob <bob@shop.example>", "20 % off", &[]);
    assert_eq!(usual(&personal), RuleVerdict::Open);
}

#[test]
fn mail_to_many_that_is_part_of_a_conversation_or_asks_something_is_left_to_the_model() {
    let list = email(
        "Bob <bob@shop.example>",
        "Re: [dev] release",
        &[("list-id", "<dev.example>")],
    );
    let reply = Email {
        references: vec!["1@x".to_owned()],
        ..list.clone()
    };
    let question = Email {
        body: "Ada, could you look at this?".to_owned(),
        ..list.clone()
    };
    assert_eq!(decided(&usual(&list)), Some(Classification::Ignore));
    for email in [reply, question] {
        assert_eq!(
            usual(&email),
            RuleVerdict::NoReply("it was sent to many".to_owned())
        );
    }
}

#[test]
fn the_person_sets_what_happens_to_mail_to_many() {
    let email = email("Shop <news@shop.example>", "20 % off", &[UNSUBSCRIBE]);
    for (bulk, wanted) in [
        (RuleAction::Ignore, Some(Classification::Ignore)),
        (RuleAction::Notify, Some(Classification::Notify)),
        (RuleAction::Model, None),
    ] {
        let settings = RuleSettings {
            bulk,
            ..RuleSettings::default()
        };
        assert_eq!(decided(&with(&email, settings, &[])), wanted, "{bulk:?}");
    }
}

#[test]
fn an_earlier_decision_about_a_sender_goes_before_the_setting() {
    let email = email("Shop <news@shop.example>", "20 % off", &[UNSUBSCRIBE]);
    let past = |from: &str, decision| {
        [PastDecision {
            from: from.to_owned(),
            subject: String::new(),
            decision,
        }]
    };
    let of = |past: &[PastDecision]| decided(&with(&email, RuleSettings::default(), past));
    assert_eq!(
        of(&past("news@shop.example", Classification::Respond)),
        Some(Classification::Notify)
    );
    assert_eq!(
        of(&past("news@other.example", Classification::Notify)),
        Some(Classification::Ignore)
    );
}

#[test]
fn a_sender_that_was_ignored_before_is_ignored_only_if_the_setting_and_the_subject_allow_it() {
    let past = [PastDecision {
        from: "news@shop.example".to_owned(),
        subject: String::new(),
        decision: Classification::Ignore,
    }];
    for (subject, bulk, wanted) in [
        ("20 % off", RuleAction::Ignore, Some(Classification::Ignore)),
        ("Your invoice 12", RuleAction::Ignore, None),
        ("20 % off", RuleAction::Notify, None),
        ("20 % off", RuleAction::Model, None),
    ] {
        let email = email("Shop <news@shop.example>", subject, &[UNSUBSCRIBE]);
        let settings = RuleSettings {
            bulk,
            ..RuleSettings::default()
        };
        let verdict = with(&email, settings, &past);
        assert_eq!(decided(&verdict), wanted, "{subject} {bulk:?}");
        assert_ne!(verdict, RuleVerdict::Open, "{subject} {bulk:?}");
    }
}

#[test]
fn calendars_and_automatic_replies_are_shown_and_never_answered() {
    let headers = [(CALENDAR_METHOD, "request")];
    for email in [
        email("Bob <bob@parcelo.example>", "Invitation: sync", &headers),
        email("calendar-notification@google.com", "Standup", &[]),
        email(
            "No Reply <no-reply@parcelo.example>",
            "Reminder: standup at ten",
            &[],
        ),
        email(
            "bob@parcelo.example",
            "Away",
            &[("auto-submitted", "auto-replied")],
        ),
        email("bob@parcelo.example", "Abwesenheit: bis Montag", &[]),
        email("bob@parcelo.example", "Réponse automatique", &[]),
    ] {
        assert_eq!(
            decided(&usual(&email)),
            Some(Classification::Notify),
            "{}",
            email.subject
        );
    }
    let reminder = email("Bob <bob@parcelo.example>", "Reminder: the report", &[]);
    assert_eq!(usual(&reminder), RuleVerdict::Open, "a person reminds");
}

#[test]
fn senders_that_read_no_replies_get_none() {
    for (from, header) in [
        ("no-reply@bank.example", None),
        ("Bank <NoReply+12@bank.example>", None),
        ("ne-pas-repondre@banque.example", None),
        (
            "ci@parcelo.example",
            Some(("auto-submitted", "auto-generated")),
        ),
    ] {
        let email = email(from, "News of your account", header.as_slice());
        assert!(matches!(usual(&email), RuleVerdict::NoReply(_)), "{from}");
    }
}

#[test]
fn what_is_suspicious_is_shown_with_the_reasons_whatever_else_it_is() {
    let mut email = email(
        "CEO <ceo@parcelo-mail.example>",
        "URGENT gift cards",
        &[UNSUBSCRIBE],
    );
    email.body = "Can you buy gift cards?".to_owned();
    let RuleVerdict::Decided(Classification::Notify, why) = usual(&email) else {
        panic!("{:?}", usual(&email));
    };
    for part in ["looks like `parcelo`", "`urgent`", "`gift card`"] {
        assert!(why.contains(part), "{part}: {why}");
    }
}

#[test]
fn questions_and_requests_are_seen_in_three_languages() {
    let asks = |body: &str| {
        asks_something(&Email {
            body: body.to_owned(),
            ..Email::default()
        })
    };
    for body in [
        "When is it ready?",
        "Könnten Sie das prüfen",
        "Pourriez-vous vérifier cela",
    ] {
        assert!(asks(body), "{body}");
    }
    assert!(!asks("It is ready.\n> When is it ready?"));
}

#[tokio::test]
async fn settings_are_kept() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    assert_eq!(
        RuleSettings::load(&store).await.unwrap(),
        RuleSettings::default()
    );
    let settings = RuleSettings {
        bulk: RuleAction::Notify,
        calendar: RuleAction::Model,
    };
    settings.save(&store).await.unwrap();
    assert_eq!(RuleSettings::load(&store).await.unwrap(), settings);
}

#[test]
fn a_request_is_found_in_three_languages_and_politeness_does_not_count() {
    let with_body = |body: &str| Email {
        body: body.to_owned(),
        ..email("Bob <bob@partner.example>", "Contract", &[])
    };
    for (body, wants) in [
        ("The train receipt is missing. Please hand it in.", true),
        ("Bitte teilen Sie uns mit, ob § 7 so bleibt.", true),
        ("Merci de m'indiquer si l'article 5 vous convient.", true),
        ("Please find the draft attached.", false),
        ("The build failed in the step `test`.", false),
        ("> could you?\nNo.", false),
    ] {
        assert_eq!(wants_something(&with_body(body)), wants, "{body}");
    }
    for (body, is_read) in [
        ("The contract is with our lawyers.", true),
        ("Der Vertrag ist bei uns.", true),
        ("Necesito los documentos antes del viernes.", false),
    ] {
        assert_eq!(is_readable(&with_body(body)), is_read, "{body}");
    }
}
