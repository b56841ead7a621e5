//! The assistant killed everywhere: before and after every call of the store, of the model and of the mailbox. What goes on after it
//! is a new process over the same database and the same mailbox, and comes to the same, with each effect once.

use std::sync::Arc;

use archie::app::App;
use archie_email_assistant::get_memory;
use archie_email_assistant::mailbox::LocalMailbox;
use archie_email_assistant::memory::Preferences;
use archie_email_assistant::state::MailState;
use serde_json::{Value as Json, json};
use superstep::checkpoint::{Status, ThreadQuery};
use superstep_conformance::mortal::{Fate, KillSweep, Trial};

use super::deadly;
use super::kit::*;
use crate::deaths;

fn replies() -> Json {
    json!({ "replies": [
        triage("respond"),
        wants(json!([sends("Friday."), schedules(&["bob@example.com"])])),
        learns("Name a time."),
        wants(json!([done()])),
    ] })
}

fn home(world: &World, fate: &Arc<Fate>) -> App {
    let mailbox = Arc::new(LocalMailbox::open(&world.mbox()));
    deadly::home(world, mailbox, fate, &replies())
}

fn world() -> World {
    World::new(&json!([])).with_mails(&[mail(
        "q4@x",
        "Bob <bob@example.com>",
        "Q4 report?",
        "When?",
    )])
}

/// One process: takes the mail in, and answers whatever it asks. None if it died.
async fn live(world: &World, fate: &Arc<Fate>) -> Option<()> {
    let home = home(world, fate);
    let life = async {
        let mut ingest = world.ingest_of();
        // A mail that was marked right before a crash is still ours to finish.
        ingest.which.include_read = true;
        let came = world.ingest_with(&home, ingest).await;
        let id = came[0].thread.clone();
        loop {
            let open = asked(&home, &id).await;
            let Some((question, request)) = open.into_iter().next() else {
                return;
            };
            let said = match request["action_request"]["action"].as_str().unwrap() {
                "send_email_tool" => {
                    json!({ "type": "edit", "args": { "response_text": "Friday noon." } })
                }
                _ => accept(),
            };
            answer_to(&home, &id, question, said).await;
        }
    };
    Box::pin(fate.lives(life)).await
}

async fn lives(world: &World, deaths: &[u64]) -> u64 {
    deaths::lives(deaths, async |fate| live(world, fate).await, ()).await
}

/// What is the same whoever died: the state without what differs by nature, and what the world has seen.
async fn end(world: &World) -> (Json, usize, usize, String) {
    let home = home(world, &Fate::never());
    let mut ingest = world.ingest_of();
    ingest.which.include_read = true;
    let came = world.ingest_with(&home, ingest).await;
    let state: MailState = state(&home, &came[0].thread).await;
    let told = json!({
        "messages": state.messages.iter().map(|kept| kept.text().replace(|c: char| c.is_ascii_hexdigit(), "")).collect::<Vec<_>>(),
        "ended": state.ended, "marked": state.marked_as_read, "learned": state.learned, "done": state.done.len(),
    });
    let sent = world.sent();
    assert!(
        sent.values().all(|mail| mail.contains("Friday noon.")),
        "{sent:?}"
    );
    let memory = get_memory(&home.memory, Preferences::Response, "");
    let lines = memory.await.unwrap().0.join("\n");
    (told, sent.len(), world.meetings().len(), lines)
}

#[tokio::test]
async fn killed_at_every_point_every_effect_happens_once() {
    let report = sweep().run(same_end().await).await.unwrap();
    let (points, kills) = (report.points, report.kills);
    // A process whose tasks take turns in another order has a few points fewer, and ends before its kill.
    assert!(points > 60 && kills + 8 > points, "{kills} of {points}");
    eprintln!("{kills} deaths, 1 mail and 1 meeting each");
}

/// Processes that are killed, each over what the one before left.
fn sweep() -> KillSweep<impl Fn() -> World, impl AsyncFn(&World, &Arc<Fate>) -> Option<()>> {
    KillSweep::new(world, async |world: &World, fate: &Arc<Fate>| {
        live(world, fate).await
    })
}

/// Asserts that a trial ended as the one without a kill did, with one mail and one meeting.
async fn same_end() -> impl AsyncFnMut(&Trial<'_, World, Option<()>>) {
    let calm = world();
    lives(&calm, &[]).await;
    let wanted = end(&calm).await;
    assert_eq!((wanted.1, wanted.2), (1, 1));
    async move |trial| assert_eq!(end(trial.world).await, wanted)
}

#[tokio::test]
async fn killed_between_marking_a_mail_and_committing_that_the_next_ingest_finishes_it() {
    let calm = world();
    let points = lives(&calm, &[]).await;
    let mut recovered = 0;
    // The mail is marked near the end.
    for death in points.saturating_sub(24)..=points {
        let world = world();
        let fate = Fate::at(death);
        live(&world, &fate).await;
        deaths::gone(&fate).await;
        // A new process that lists unread mails only.
        let home = home(&world, &Fate::never());
        let came = world.ingest(&home).await;
        let left = home.rows(running(), 10).await.unwrap();
        assert!(left.is_empty(), "death at {death} of {points}: {left:?}");
        recovered += came.len();
        assert!(world.sent().len() <= 1, "death at {death}");
    }
    assert!(recovered > 0, "no death left a mail to recover");
}

fn running() -> ThreadQuery {
    ThreadQuery {
        statuses: vec![Status::Running],
        ..ThreadQuery::default()
    }
}

#[tokio::test]
async fn killed_again_and_again_every_effect_happens_once() {
    let report = sweep().repeated(12, 1).run(same_end().await).await;
    let kills = report.unwrap().kills;
    assert!(kills > 12, "{kills}");
}
