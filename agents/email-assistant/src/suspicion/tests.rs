use super::*;

fn email(from: &str, subject: &str, body: &str) -> Email {
    Email {
        from: from.to_owned(),
        subject: subject.to_owned(),
        body: body.to_owned(),
        account: "ada@parcelo.example".to_owned(),
        ..Email::default()
    }
}

fn score(from: &str) -> u32 {
    suspicion(&email(from, "Hello", "How are you?")).score
}

#[test]
fn honest_mail_has_no_signs() {
    for from in [
        "Bob <bob@parcelo.example>",
        "Bob <bob@mail.parcelo.example>",
        "\"Bob Miller (bob@customer.example)\" <bob@customer.example>",
        "PayPal <service@paypal.com>",
        "Amazon <shipment-tracking@amazon.co.uk>",
        "Google <no-reply@accounts.google.com>",
        "Carol <carol@grapple.example>",
        "Dan <dan@amazing.example>",
    ] {
        assert_eq!(score(from), 0, "{from}");
    }
    let invoice = email(
        "Bob <bob@customer.example>",
        "Invoice 12",
        "The invoice is due on Friday. Is that fine?",
    );
    assert_eq!(suspicion(&invoice), Suspicion::default());
}

#[test]
fn a_name_that_is_another_address_is_suspicious() {
    let found = suspicion(&email(
        "\"boss@parcelo.example\" <x@evil.example>",
        "Hello",
        "Are you there?",
    ));
    assert!(found.is_suspicious());
    assert_eq!(
        found.reasons,
        ["the sender's name is `boss@parcelo.example`, and the address is `x@evil.example`"]
    );
}

#[test]
fn a_name_that_belongs_to_others_is_a_sign() {
    assert_eq!(score("PayPal Service <service@pay-service.example>"), 2);
    assert_eq!(score("The CEO <me@evil.example>"), 1);
    assert_eq!(score("The CEO <ceo@parcelo.example>"), 0);
}

#[test]
fn domains_that_look_like_others_are_suspicious() {
    for from in [
        "x@parce1o.example",
        "x@parcello.example",
        "x@pracelo.example",
        "x@pаrcelo.example", // a Cyrillic letter
        "x@paypa1.example",
        "x@rnicrosoft.example",
    ] {
        assert!(score(from) >= 3, "{from}");
    }
    assert_eq!(score("x@parcelo-mail.example"), 2);
    assert_eq!(score("x@secure-paypal.example"), 2);
    assert_eq!(score("x@xn--mller-kva.example"), 1);
}

#[test]
fn a_free_mail_provider_is_not_the_own_domain_that_others_imitate() {
    let to = |account: &str, from: &str| {
        suspicion(&Email {
            account: account.to_owned(),
            ..email(from, "Hello", "How are you?")
        })
    };
    for (account, from) in [
        ("ada@gmail.com", "bob@email.com"),
        ("ada@orange.fr", "bob@orange-blue.example"),
    ] {
        assert_eq!(to(account, from).score, 0, "{account} {from}");
    }
    assert!(to("ada@gmail.com", "x@paypa1.example").is_suspicious());
}

#[test]
fn answers_to_another_domain_are_a_sign_and_to_free_mail_suspicious() {
    let to = |reply_to: &str| {
        suspicion(&Email {
            reply_to: reply_to.to_owned(),
            ..email("Bob <bob@customer.example>", "Hello", "How are you?")
        })
    };
    assert_eq!(to("bob@customer.example").score, 0);
    assert_eq!(to("bob@desk.customer.example").score, 0);
    assert_eq!(to("x@evil.example").score, 2);
    assert!(to("bob.miller77@gmail.com").is_suspicious());
}

#[test]
fn failed_checks_of_the_sender_count_and_passed_ones_prove_nothing() {
    let with = |name: &str, value: &str| {
        let mut email = email("Bob <bob@customer.example>", "Hello", "How are you?");
        email.headers.insert(name.to_owned(), value.to_owned());
        email
    };
    let of = |value: &str| suspicion(&with("authentication-results", value)).score;
    assert_eq!(of("mx.example; spf=pass; dkim=pass; dmarc=pass"), 0);
    assert_eq!(of("mx.example; spf=fail; dkim=fail; dmarc=FAIL"), 3);
    assert_eq!(of("mx.example; spf=fail smtp.mailfrom=x"), 2);
    assert_eq!(of("mx.example; spf=softfail"), 1);
    assert_eq!(suspicion(&with("received-spf", "Fail (mx)")).score, 2);
    let mut list = with("authentication-results", "mx.example; dmarc=fail");
    list.headers
        .insert("list-id".to_owned(), "<dev.example>".to_owned());
    assert_eq!(suspicion(&list).score, 3, "anyone can claim to be a list");
    for results in ["dkim=fail", "spf=fail", "spf=softfail"] {
        list.headers
            .insert("authentication-results".to_owned(), results.to_owned());
        assert_eq!(suspicion(&list).score, 1, "{results}");
    }
    let fraud = Email {
        headers: [(
            "authentication-results".to_owned(),
            "spf=pass; dkim=pass; dmarc=pass".to_owned(),
        )]
        .into(),
        ..email("x@evil.example", "URGENT", "Buy gift cards.")
    };
    assert!(suspicion(&fraud).is_suspicious());
}

#[test]
fn haste_and_what_fraud_asks_for_are_suspicious_together_in_three_languages() {
    for (subject, body) in [
        ("URGENT gift cards", "I need you to buy five gift cards."),
        ("Account", "Verify your account within 24 hours."),
        (
            "Dringend",
            "Bitte kauf sofort drei Geschenkkarten, ich bin im Termin.",
        ),
        (
            "Ihr Konto",
            "Ihr Konto wurde gesperrt. Handeln Sie umgehend.",
        ),
        ("Urgent", "Achetez des cartes cadeaux au plus vite."),
        ("Votre compte", "Votre compte sera suspendu sous 24 heures."),
    ] {
        let found = suspicion(&email("Bob <bob@customer.example>", subject, body));
        assert!(found.is_suspicious(), "{subject}: {found:?}");
    }
    let urgent = suspicion(&email(
        "bob@customer.example",
        "Urgent",
        "Please review the invoice right away.",
    ));
    assert_eq!(urgent.score, 2, "{urgent:?}");
}

#[test]
fn links_to_bare_addresses_and_imitations_and_programs_are_signs() {
    let body = |body: &str| suspicion(&email("bob@customer.example", "Hello", body)).score;
    assert_eq!(body("See https://parcelo.example/a and http://docs.rs."), 0);
    assert_eq!(body("See http://192.0.2.7/login"), 2);
    assert_eq!(body("See https://www.paypal.com@evil.example/"), 0);
    assert_eq!(body("See https://paypa1.example/login"), 2);
    let attached = Email {
        attachments: vec!["invoice.pdf.exe".to_owned()],
        ..email("bob@customer.example", "Hello", "See this.")
    };
    assert_eq!(suspicion(&attached).score, 2);
}
