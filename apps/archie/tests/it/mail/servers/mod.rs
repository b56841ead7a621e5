//! Real servers: one that speaks Gmail and Calendar, and Dovecot with an SMTP server. What went out is counted there.

mod emulated;
mod gmail;
mod imap;

use std::collections::BTreeMap;
use std::sync::Arc;

use archie::app::App;
use archie_email_assistant::email::Email;
use archie_email_assistant::mailbox::Mailbox;
use archie_email_assistant::state::Ended;
use futures_util::{StreamExt, stream};
use serde_json::{Value as Json, json};
use superstep::Outcome;
use superstep_conformance::mortal::Fate;

use super::deadly;
use super::kit::*;
pub(crate) use emulated::Emulated;

/// How often each proof is tried.
const TRIALS: usize = 300;
const AT_ONCE: usize = 4;

/// What the model says for one mail that is answered.
fn answered() -> Json {
    json!({ "replies": [triage("respond"), wants(json!([sends("Friday.")])), wants(json!([done()]))] })
}

/// One process: works on this mail to its end, says yes, and where nobody knows looks at the server. None if it died.
async fn live(
    world: &World,
    mailbox: &Arc<dyn Mailbox>,
    email: &Email,
    fate: &Arc<Fate>,
    is_there: &impl AsyncFn() -> bool,
) -> Option<usize> {
    let home = deadly::home(world, mailbox.clone(), fate, &answered());
    let life = async {
        let thread = thread(&home, &email.thread(0));
        let input = json!({ "email_input": email.to_input(), "source": world.source(), "model_name": MODEL });
        let known = home
            .store()
            .glance(&superstep::ThreadId::new(&email.thread(0)).unwrap(), None)
            .await
            .unwrap();
        let mut doubts = 0;
        match known {
            None => drop(thread.start_or_recover(input).await.unwrap()),
            Some(_) if thread.interrupts().await.unwrap().is_empty() => {
                drop(thread.recover_or_resume().await)
            }
            Some(_) => {}
        }
        loop {
            let open = asked(&home, &email.thread(0)).await;
            let Some((question, request)) = open.into_iter().next() else {
                return doubts;
            };
            let said = match request.get("choices").is_some() {
                true => {
                    doubts += 1;
                    match is_there().await {
                        true => json!({ "type": "happened" }),
                        false => json!({ "type": "call" }),
                    }
                }
                false => accept(),
            };
            let rest = answer_to(&home, &email.thread(0), question, said).await;
            assert!(!matches!(rest, Outcome::Failed(_)), "{rest:?}");
        }
    };
    Box::pin(fate.lives(life)).await
}

/// A mail worked on by processes that die here, and then by one that does not. Gives how often a person had to look.
async fn worked_on(
    mailbox: &Arc<dyn Mailbox>,
    email: &Email,
    deaths: &[u64],
    is_there: impl AsyncFn() -> bool,
) -> (u64, usize) {
    let world = World::new(&json!([]));
    for death in deaths {
        let fate = Fate::at(*death);
        live(&world, mailbox, email, &fate, &is_there).await;
        crate::deaths::gone(&fate).await;
    }
    let fate = Fate::never();
    let doubts = live(&world, mailbox, email, &fate, &is_there)
        .await
        .unwrap();
    let home = deadly::home(&world, mailbox.clone(), &Fate::never(), &answered());
    assert_eq!(
        state(&home, &email.thread(0)).await.ended,
        Some(Ended::Done)
    );
    (fate.points(), doubts)
}

/// Mails that are worked on by one process, or by two of which the first dies: at the first of these points for the first mail, at the
/// next for the next. At the server there is one mail for each yes, or it fails. Gives how often a person had to look.
async fn one_mail_for_each_yes(
    mailbox: impl Fn() -> Arc<dyn Mailbox>,
    mails: &[Email],
    points: Option<u64>,
    sent: impl AsyncFn(&Email) -> usize,
) -> usize {
    let works = mails.iter().enumerate().map(async |(trial, email)| {
        let death = points.map(|points| 1 + trial as u64 % points);
        let is_there = async || sent(email).await > 0;
        let (_, doubts) = worked_on(&mailbox(), email, death.as_slice(), is_there).await;
        (sent(email).await, doubts)
    });
    let mut counts = BTreeMap::new();
    let mut doubts = 0;
    // Much of it is waiting for a server.
    let mut works = stream::iter(works).buffer_unordered(AT_ONCE);
    while let Some((count, asked)) = works.next().await {
        *counts.entry(count).or_insert(0) += 1;
        doubts += asked;
    }
    eprintln!("mails per yes {counts:?}, {doubts} questions");
    assert_eq!(counts, BTreeMap::from([(1, mails.len())]));
    doubts
}

/// Eight mails to answer, six to tell of, two to leave alone, known by their subjects; and what the model says of them.
fn sixteen(subject: impl Fn(usize) -> String, first: Vec<Json>) -> Json {
    let mut replies = Vec::new();
    for at in 0..16 {
        let decision = match at {
            0..8 => "respond",
            8..14 => "notify",
            _ => "ignore",
        };
        let mut sorted = triage_of(&subject(at), decision);
        sorted["expect"] = json!(format!("{}\n", subject(at)));
        replies.push(sorted);
    }
    replies.extend(first);
    replies.extend((1..8).map(|_| wants(json!([sends("Friday."), done()]))));
    replies.extend((0..6).map(|_| learns("")));
    Json::Array(replies)
}

/// Takes sixteen mails in and answers every question: yes where that can be said.
async fn taken_in_and_answered(world: &World, home: &App) {
    let came = world.ingest(home).await;
    assert_eq!(came.len(), 16);
    for mail in &came {
        while let Some((question, request)) = asked(home, &mail.thread).await.into_iter().next() {
            let said = match request["config"]["allow_accept"] == true {
                true => accept(),
                false => ignore(),
            };
            let rest = answer_to(home, &mail.thread, question, said).await;
            assert!(!matches!(rest, Outcome::Failed(_)), "{rest:?}");
        }
    }
}
