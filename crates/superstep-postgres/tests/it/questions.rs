//! Questions and their answers.

use superstep_core::checkpoint::{
    Answer, AnswerBody, AskedRow, Checkpointer, Commit, InterruptQuery, Status,
};
use superstep_core::error::CheckpointError;
use superstep_core::{Seq, Timestamp};
use tokio::task::JoinSet;

use crate::kit::{Owner, answer, asked, db, question, thread};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_racing_answers_one_wins() {
    let db = db().await;
    for round in 0..10 {
        let name = format!("t{round}");
        let mut owner = Owner::started(&db, &name).await;
        owner.save(&db, owner.pause(&[1, 2])).await.unwrap();
        let mut racers = JoinSet::new();
        for n in 0..8 {
            // Each a process of its own.
            let (postgres, name) = (db.schema.connect().await, name.clone());
            racers.spawn(async move {
                let by = n.to_string();
                let both = [answer(1, &by), answer(2, &by)];
                (n, postgres.answer(&thread(&name), &both).await)
            });
        }
        let ends = racers.join_all().await;
        let winners: Vec<_> = ends.iter().filter(|(_, end)| end.is_ok()).collect();
        assert_eq!(winners.len(), 1, "{ends:?}");
        let refused = |end: &Result<_, _>| matches!(end, Err(CheckpointError::NotOpen { .. }));
        assert_eq!(ends.iter().filter(|(_, end)| refused(end)).count(), 7);
        let loaded = db.load(&owner.thread).await.unwrap().unwrap();
        let by = winners[0].0.to_string();
        assert!(loaded.interrupts.iter().all(|row| row.answered_by == by));
        assert_eq!(loaded.head.answers, 2);
    }
}

#[tokio::test]
async fn answers_are_stored_all_or_none() {
    let db = db().await;
    let mut owner = Owner::started(&db, "a").await;
    owner.save(&db, owner.pause(&[1, 2])).await.unwrap();
    db.answer(&owner.thread, &[answer(2, "me")]).await.unwrap();

    let refused = db
        .answer(&owner.thread, &[answer(1, "you"), answer(2, "you")])
        .await;
    assert!(
        matches!(refused, Err(CheckpointError::NotOpen { interrupt, .. }) if interrupt == question(2))
    );
    let twice = db
        .answer(&owner.thread, &[answer(1, "you"), answer(1, "you")])
        .await;
    assert!(twice.is_err());
    let loaded = db.load(&owner.thread).await.unwrap().unwrap();
    assert_eq!(loaded.interrupts[0].answer, None);
    assert_eq!(loaded.head.answers, 1);
    let nobody = db.answer(&thread("b"), &[answer(1, "me")]).await;
    assert!(matches!(nobody, Err(CheckpointError::NoThread { .. })));
}

#[tokio::test]
async fn a_closed_question_takes_no_answer_and_is_not_asked_again() {
    let db = db().await;
    let mut owner = Owner::started(&db, "a").await;
    owner.save(&db, owner.pause(&[1])).await.unwrap();
    let close = Commit {
        closed: vec![question(1)],
        ..owner.step()
    };
    owner.save(&db, close).await.unwrap();
    assert!(
        db.answer(&owner.thread, &[answer(1, "late")])
            .await
            .is_err()
    );

    owner.save(&db, owner.pause(&[1])).await.unwrap();
    assert!(
        db.load(&owner.thread)
            .await
            .unwrap()
            .unwrap()
            .interrupts
            .is_empty()
    );
    let all = db.interrupts(&InterruptQuery::default()).await.unwrap();
    assert_eq!((all[0].seq, all[0].closed), (Seq(2), Some(Seq(3))));
}

#[tokio::test]
async fn an_expired_answer_is_not_a_value() {
    let db = db().await;
    let mut owner = Owner::started(&db, "a").await;
    owner.save(&db, owner.pause(&[1])).await.unwrap();
    let expired = Answer {
        body: AnswerBody::Expired,
        by: String::new(),
        ..answer(1, "")
    };
    db.answer(&owner.thread, &[expired]).await.unwrap();
    let loaded = db.load(&owner.thread).await.unwrap().unwrap();
    assert_eq!(loaded.interrupts[0].answer, Some(AnswerBody::Expired));
}

#[tokio::test]
async fn a_thread_is_not_paused_over_an_answer_its_owner_has_not_seen() {
    let db = db().await;
    let mut owner = Owner::started(&db, "a").await;
    let ask = Commit {
        asked: vec![asked(1), asked(2)],
        ..owner.step()
    };
    owner.save(&db, ask).await.unwrap();
    db.answer(&owner.thread, &[answer(1, "early")])
        .await
        .unwrap();

    let pause = owner.pause(&[]);
    let saved = owner.save(&db, pause.clone()).await.unwrap();
    let unseen = saved.unseen.clone().unwrap();
    assert_eq!((unseen.answers, unseen.answered[0].0), (1, question(1)));
    assert_eq!(db.save(&pause).await.unwrap(), saved);
    let loaded = db.load(&owner.thread).await.unwrap().unwrap();
    assert_eq!(loaded.head.status, Status::Running);

    let pause = owner.pause(&[]);
    assert_eq!(owner.save(&db, pause.clone()).await.unwrap().unseen, None);
    assert!(db.unfinished(10).await.unwrap().is_empty());
    db.answer(&owner.thread, &[answer(2, "late")])
        .await
        .unwrap();
    assert_eq!(db.unfinished(10).await.unwrap(), [owner.thread.clone()]);
    // It did pause, so a second try of the same commit is told the same.
    assert_eq!(db.save(&pause).await.unwrap().unseen, None);
}

#[tokio::test]
async fn only_runs_that_did_not_stop_are_unfinished() {
    let db = db().await;
    for (name, status) in [
        ("idle", Status::Idle),
        ("paused", Status::Paused),
        ("failed", Status::Failed),
        ("cancelled", Status::Cancelled),
    ] {
        let mut owner = Owner::started(&db, name).await;
        owner.save(&db, owner.stop(status)).await.unwrap();
    }
    Owner::started(&db, "running").await;
    let deleted = Owner::started(&db, "deleted").await;
    db.delete(&deleted.thread).await.unwrap();
    assert_eq!(db.unfinished(10).await.unwrap(), [thread("running")]);
}

#[tokio::test]
async fn questions_are_listed_by_age_tenant_and_deadline() {
    let db = db().await;
    for (at, name) in [(3, "c"), (1, "a"), (2, "b"), (0, "other/z")] {
        let mut owner = Owner::started(&db, name).await;
        owner.at = Timestamp(at);
        let asked = AskedRow {
            deadline: Some(Timestamp(at * 10)),
            ..asked(1)
        };
        owner
            .save(
                &db,
                Commit {
                    asked: vec![asked],
                    ..owner.pause(&[])
                },
            )
            .await
            .unwrap();
    }
    db.answer(&thread("b"), &[answer(1, "me")]).await.unwrap();
    let names = async |query: InterruptQuery| -> Vec<String> {
        let rows = db.interrupts(&query).await.unwrap();
        rows.iter().map(|row| row.thread.to_string()).collect()
    };
    let open = InterruptQuery {
        open_only: true,
        ..InterruptQuery::default()
    };
    assert_eq!(names(InterruptQuery::default()).await, ["a", "b", "c"]);
    assert_eq!(names(open.clone()).await, ["a", "c"]);
    let due = Some(Timestamp(20));
    assert_eq!(
        names(InterruptQuery {
            due,
            ..open.clone()
        })
        .await,
        ["a"]
    );
    assert_eq!(
        names(InterruptQuery {
            due,
            ..InterruptQuery::default()
        })
        .await,
        ["a", "b"]
    );
    assert_eq!(
        names(InterruptQuery {
            thread: Some(thread("c")),
            ..open.clone()
        })
        .await,
        ["c"]
    );
    let elsewhere = InterruptQuery {
        thread: Some(thread("other/z")),
        ..open.clone()
    };
    assert!(names(elsewhere).await.is_empty());
    assert_eq!(
        names(InterruptQuery {
            tenant: "other".into(),
            ..open
        })
        .await,
        ["other/z"]
    );
}
