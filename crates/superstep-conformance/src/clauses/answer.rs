//! Questions and answers: the first valid answer is stored once, however many callers try.

use serde_json::{Value as Json, json};
use superstep_core::checkpoint::{
    Answer, AnswerBody, Checkpointer, Commit, Head, InterruptQuery, InterruptRow, Status,
    UnseenAnswers,
};
use superstep_core::error::CheckpointError::{NoThread, NotOpen};
use superstep_core::{Seq, ThreadId, Timestamp};

use crate::poll::{join, join_all};
use crate::report::{Fault, Verdict, ensure, ensure_eq, ensure_refused};
use crate::sample::{ALL, Owner, answer, asked, dump, interrupt_id, thread, unfinished, value};

pub(super) async fn answer_is_stored_as_given(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let pause = owner.pause(&[1]);
    owner.save(db, pause.clone()).await?;
    let wanted = InterruptRow {
        thread: owner.thread.clone(),
        id: interrupt_id(1),
        seq: Seq(2),
        asked_at: pause.at,
        body: pause.asked[0].body.clone(),
        answer: None,
        answered_by: String::new(),
        answered_at: None,
        closed: None,
    };
    ensure_eq!(
        questions(db, &owner.thread).await?,
        vec![wanted.clone()],
        "the open question"
    );

    let given = Answer {
        by: "Zoë \"'; --%".into(),
        ..answer(1, json!({ "ok": [1, "é"] }))
    };
    db.answer(&owner.thread, std::slice::from_ref(&given))
        .await?;
    let wanted = InterruptRow {
        answer: Some(given.body),
        answered_by: given.by,
        answered_at: Some(given.at),
        ..wanted
    };
    ensure_eq!(
        questions(db, &owner.thread).await?,
        vec![wanted],
        "the answered question"
    );
    Ok(())
}

pub(super) async fn answer_is_counted_and_no_more(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.ask(&[1, 2, 3])).await?;
    for (given, answers) in [(2, vec![1, 3]), (2, vec![1]), (2, vec![2, 3]), (3, vec![2])] {
        let answers: Vec<_> = answers.into_iter().map(|n| answer(n, json!(n))).collect();
        // Some of them are late or were given before; only those that are stored count.
        let _ = db.answer(&owner.thread, &answers).await;
        let head = db.load(&owner.thread).await?.unwrap_or_default().head;
        ensure_eq!(
            head,
            Head {
                answers: given,
                ..owner.head
            },
            "the head after an answer"
        );
    }
    owner.save(db, owner.step()).await?;
    let head = db.load(&owner.thread).await?.unwrap_or_default().head;
    ensure_eq!(head.answers, 3, "answers after a commit that has seen none");
    Ok(())
}

pub(super) async fn first_answer_wins(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.pause(&[1])).await?;
    let first = answer(1, json!("first"));
    db.answer(&owner.thread, std::slice::from_ref(&first))
        .await?;
    let other = answer(1, json!("second"));
    let of_somebody_else = Answer {
        by: "somebody else".into(),
        ..first.clone()
    };
    let later = Answer {
        at: Timestamp(first.at.0 + 1),
        ..first.clone()
    };
    let expired = Answer {
        body: AnswerBody::Expired,
        ..first
    };
    for late in [other, of_somebody_else, later, expired] {
        refused_without_a_trace(db, &owner.thread, &[late], "a second answer").await?;
    }
    Ok(())
}

pub(super) async fn same_answers_twice_are_stored_once(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.pause(&[1, 2, 3])).await?;
    let expired = Answer {
        body: AnswerBody::Expired,
        by: String::new(),
        ..answer(3, json!(0))
    };
    for given in [
        vec![answer(1, json!(null)), answer(2, json!("yes"))],
        vec![expired],
    ] {
        db.answer(&owner.thread, &given).await?;
        accepted_without_a_trace(db, &owner.thread, &given, "the same answers again").await?;
    }
    Ok(())
}

pub(super) async fn same_answers_after_a_close_are_told_stored(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.ask(&[1, 2])).await?;
    let given = [answer(1, json!("yes")), answer(2, json!("no"))];
    db.answer(&owner.thread, &given).await?;
    let closed = vec![interrupt_id(1)];
    owner
        .save(
            db,
            Commit {
                closed,
                ..owner.step()
            },
        )
        .await?;
    accepted_without_a_trace(db, &owner.thread, &given, "answers of which one is closed").await
}

pub(super) async fn answers_of_which_some_are_stored_are_refused(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.pause(&[1, 2])).await?;
    let (one, two) = (answer(1, json!(1)), answer(2, json!(2)));
    db.answer(&owner.thread, std::slice::from_ref(&one)).await?;
    for more in [[one.clone(), two.clone()], [two, one]] {
        refused_without_a_trace(db, &owner.thread, &more, "a call that is not the same").await?;
    }
    Ok(())
}

pub(super) async fn racing_retries_of_an_answer_are_stored_once(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.pause(&[1, 2])).await?;
    let given = [answer(1, json!("yes")), answer(2, json!("no"))];
    for told in join_all((0..8).map(|_| db.answer(&owner.thread, &given))).await {
        told?;
    }
    let head = db.load(&owner.thread).await?.unwrap_or_default().head;
    ensure_eq!(head.answers, 2, "answers that are counted");
    Ok(())
}

pub(super) async fn racing_answers_have_one_winner(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.pause(&[1])).await?;
    let calls: Vec<_> = (0..16).map(|n| [answer(1, json!(n))]).collect();
    let results = join_all(calls.iter().map(|call| db.answer(&owner.thread, call))).await;
    let winners: Vec<usize> = (0..16).filter(|&n| results[n].is_ok()).collect();
    ensure_eq!(
        winners.len(),
        1,
        "answers of sixteen that were acknowledged"
    );
    for result in results {
        ensure!(
            matches!(result, Ok(()) | Err(NotOpen { .. })),
            "a loser was told {result:?}"
        );
    }
    let stored = questions(db, &owner.thread).await?.remove(0).answer;
    ensure_eq!(
        stored,
        Some(calls[winners[0]][0].body.clone()),
        "the answer that is stored"
    );
    Ok(())
}

pub(super) async fn racing_overlapping_answers_are_whole(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.pause(&[1, 2, 3])).await?;
    let one = [answer(1, json!("one")), answer(2, json!("one"))];
    let two = [answer(3, json!("two")), answer(2, json!("two"))];
    let (first, second) = join(
        db.answer(&owner.thread, &one),
        db.answer(&owner.thread, &two),
    )
    .await;
    ensure!(
        first.is_ok() != second.is_ok(),
        "both or neither won: {first:?}, {second:?}"
    );
    let winner = if first.is_ok() { &one } else { &two };
    for row in questions(db, &owner.thread).await? {
        let given = winner.iter().find(|answer| answer.interrupt == row.id);
        let wanted = given.map(|answer| answer.body.clone());
        ensure_eq!(row.answer, wanted, "the answer to {}", row.id);
    }
    Ok(())
}

pub(super) async fn answers_are_all_or_nothing(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.pause(&[1, 2, 3])).await?;
    db.answer(&owner.thread, &[answer(2, json!("first"))])
        .await?;
    let all = [1, 2, 3].map(|n| answer(n, json!("all")));
    refused_without_a_trace(db, &owner.thread, &all, "answers of which one was late").await?;
    let unknown = [
        answer(1, json!(1)),
        answer(3, json!(3)),
        answer(9, json!(9)),
    ];
    refused_without_a_trace(
        db,
        &owner.thread,
        &unknown,
        "answers of which one is unknown",
    )
    .await?;
    db.answer(&owner.thread, &[answer(3, json!(3)), answer(1, json!(1))])
        .await?;
    let rows = questions(db, &owner.thread).await?;
    ensure!(
        rows.iter().all(|row| row.answer.is_some()),
        "an acknowledged answer is missing"
    );
    Ok(())
}

pub(super) async fn one_question_twice_in_a_call_is_refused(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.pause(&[1])).await?;
    let yes = answer(1, json!("yes"));
    let both = [yes.clone(), answer(1, json!("no"))];
    refused_without_a_trace(db, &owner.thread, &both, "two answers to one question").await?;
    let twice = [yes.clone(), yes.clone()];
    refused_without_a_trace(db, &owner.thread, &twice, "one answer twice").await?;
    db.answer(&owner.thread, &[yes]).await?;
    refused_without_a_trace(db, &owner.thread, &twice, "one answer twice, and again").await
}

pub(super) async fn unknown_question_is_refused(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.pause(&[1])).await?;
    refused_without_a_trace(
        db,
        &owner.thread,
        &[answer(9, json!(1))],
        "an unknown question",
    )
    .await
}

pub(super) async fn closed_question_is_refused(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.ask(&[1, 2])).await?;
    db.answer(&owner.thread, &[answer(1, json!(1))]).await?;
    let closed = vec![interrupt_id(1), interrupt_id(2)];
    owner
        .save(
            db,
            Commit {
                closed,
                ..owner.step()
            },
        )
        .await?;
    for n in [1, 2] {
        let late = [answer(n, json!("late"))];
        refused_without_a_trace(db, &owner.thread, &late, "an answer to a closed question").await?;
    }
    Ok(())
}

pub(super) async fn question_of_another_thread_is_refused(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "a").await?;
    owner.save(db, owner.pause(&[1])).await?;
    let mut other = Owner::started(db, "b").await?;
    other.save(db, other.pause(&[2])).await?;
    let before = dump(db, &owner.thread).await?;
    let foreign = [answer(1, json!(1))];
    refused_without_a_trace(db, &other.thread, &foreign, "a foreign question").await?;
    ensure_eq!(
        dump(db, &owner.thread).await?,
        before,
        "the thread whose question it is"
    );
    Ok(())
}

pub(super) async fn answer_to_no_thread_is_refused(db: &dyn Checkpointer) -> Verdict {
    let gone = thread("gone");
    let result = db.answer(&gone, &[answer(1, json!(1))]).await;
    ensure_refused!(
        result,
        NotOpen { .. } | NoThread { .. },
        "an answer to no thread"
    );
    ensure!(
        db.load(&gone).await?.is_none(),
        "a refused answer made a thread"
    );
    Ok(())
}

pub(super) async fn no_answers_are_no_error(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.pause(&[1])).await?;
    let before = dump(db, &owner.thread).await?;
    db.answer(&owner.thread, &[]).await?;
    ensure_eq!(
        dump(db, &owner.thread).await?,
        before,
        "the thread after no answers"
    );
    Ok(())
}

pub(super) async fn falsy_answers_are_answers(db: &dyn Checkpointer) -> Verdict {
    let falsy = [
        json!(false),
        json!(0),
        json!(""),
        json!([]),
        json!({}),
        Json::Null,
    ];
    let ids: Vec<u8> = (1..=falsy.len() as u8).collect();
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.pause(&ids)).await?;
    for (&n, given) in ids.iter().zip(&falsy) {
        db.answer(&owner.thread, &[answer(n, given.clone())])
            .await?;
        let second = [answer(n, json!("second"))];
        refused_without_a_trace(db, &owner.thread, &second, "an answer after a falsy one").await?;
    }
    let wanted: Vec<_> = falsy
        .iter()
        .map(|given| Some(AnswerBody::Value(value(given))))
        .collect();
    let stored: Vec<_> = questions(db, &owner.thread)
        .await?
        .into_iter()
        .map(|row| row.answer)
        .collect();
    ensure_eq!(stored, wanted, "the answers that are stored");
    ensure_eq!(
        unfinished(db, 10).await?,
        vec![owner.thread.clone()],
        "the unfinished threads"
    );
    Ok(())
}

pub(super) async fn expiry_is_an_answer(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.pause(&[1])).await?;
    let expired = Answer {
        body: AnswerBody::Expired,
        by: String::new(),
        ..answer(1, json!(0))
    };
    db.answer(&owner.thread, &[expired]).await?;
    let stored = questions(db, &owner.thread).await?.remove(0).answer;
    ensure_eq!(
        stored,
        Some(AnswerBody::Expired),
        "the answer that is stored"
    );
    let late = [answer(1, json!("late"))];
    refused_without_a_trace(db, &owner.thread, &late, "an answer after the deadline").await?;
    let saved = owner.save(db, owner.pause(&[1])).await?;
    let answered = vec![(interrupt_id(1), AnswerBody::Expired)];
    let wanted = Some(UnseenAnswers {
        answers: 1,
        answered,
    });
    ensure_eq!(saved.unseen, wanted, "the answers that the pause was told");
    Ok(())
}

pub(super) async fn question_keeps_its_first_form(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.ask(&[1])).await?;
    let before = questions(db, &owner.thread).await?;
    owner.at = Timestamp(7_000);
    let mut again = asked(&owner.thread, Seq(3), 1);
    again.deadline = Some(Timestamp(1));
    owner
        .save(
            db,
            Commit {
                asked: vec![again],
                ..owner.step()
            },
        )
        .await?;
    ensure_eq!(
        questions(db, &owner.thread).await?,
        before,
        "a question that was asked again"
    );
    Ok(())
}

pub(super) async fn asking_again_keeps_the_answer(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.ask(&[1, 2])).await?;
    db.answer(&owner.thread, &[answer(1, json!("yes"))]).await?;
    let closed = vec![interrupt_id(2)];
    owner
        .save(
            db,
            Commit {
                closed,
                ..owner.step()
            },
        )
        .await?;
    owner.save(db, owner.ask(&[1, 2])).await?;
    let loaded = db.load(&owner.thread).await?.unwrap_or_default().interrupts;
    ensure_eq!(loaded.len(), 1, "questions that are loaded");
    let wanted = Some(AnswerBody::Value(value(&json!("yes"))));
    ensure_eq!(
        loaded[0].answer,
        wanted,
        "the answer to a question that was asked again"
    );
    Ok(())
}

pub(super) async fn closing_is_remembered_once(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.ask(&[1, 2])).await?;
    for _ in 0..2 {
        // The second time it is closed already; and question 9 was never asked.
        let closed = vec![interrupt_id(1), interrupt_id(9)];
        owner
            .save(
                db,
                Commit {
                    closed,
                    ..owner.step()
                },
            )
            .await?;
    }
    let closed: Vec<_> = questions(db, &owner.thread)
        .await?
        .iter()
        .map(|row| row.closed)
        .collect();
    ensure_eq!(
        closed,
        vec![Some(Seq(3)), None],
        "when the questions were closed"
    );
    let loaded = db.load(&owner.thread).await?.unwrap_or_default().interrupts;
    let ids: Vec<_> = loaded.iter().map(|row| row.id).collect();
    ensure_eq!(ids, vec![interrupt_id(2)], "the questions that are loaded");
    Ok(())
}

pub(super) async fn pause_that_overlooks_an_answer_goes_on(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.ask(&[1, 2, 3])).await?;
    db.answer(
        &owner.thread,
        &[answer(1, json!("one")), answer(3, json!(null))],
    )
    .await?;
    let saved = owner.save(db, owner.step()).await?;
    ensure_eq!(saved.unseen, None, "what a step that goes on was told");

    let mut saved = owner.save(db, owner.pause(&[1, 2, 3])).await?;
    if let Some(unseen) = &mut saved.unseen {
        unseen.answered.sort_by_key(|(id, _)| *id);
    }
    let answered = vec![
        (interrupt_id(1), AnswerBody::Value(value(&json!("one")))),
        (interrupt_id(3), AnswerBody::Value(value(&json!(null)))),
    ];
    let wanted = Some(UnseenAnswers {
        answers: 2,
        answered,
    });
    ensure_eq!(saved.unseen, wanted, "what the pause was told");
    let stored = db.load(&owner.thread).await?.unwrap_or_default();
    let wanted = Head {
        status: Status::Running,
        answers: 2,
        ..owner.head
    };
    ensure_eq!(
        stored.head,
        wanted,
        "the head after a pause that overlooked an answer"
    );
    let log = db.entries(&owner.thread, Seq(0), 100).await?;
    ensure_eq!(
        log,
        owner.entries(),
        "the entries: the rest of the commit was applied"
    );
    Ok(())
}

pub(super) async fn pause_that_has_seen_every_answer_is_one(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.ask(&[1, 2])).await?;
    db.answer(&owner.thread, &[answer(1, json!(1))]).await?;
    owner.head.answers = 1;
    let saved = owner.save(db, owner.pause(&[1, 2])).await?;
    ensure_eq!(
        saved.unseen,
        None,
        "what a pause that has seen all was told"
    );
    let head = db.load(&owner.thread).await?.unwrap_or_default().head;
    ensure_eq!(head, owner.head, "the head after the pause");
    ensure_eq!(unfinished(db, 10).await?, vec![], "the unfinished threads");
    db.answer(&owner.thread, &[answer(2, json!(2))]).await?;
    let head = db.load(&owner.thread).await?.unwrap_or_default().head;
    ensure_eq!(head.status, Status::Paused, "the status after an answer");
    ensure_eq!(
        unfinished(db, 10).await?,
        vec![owner.thread.clone()],
        "the unfinished threads"
    );
    Ok(())
}

pub(super) async fn run_that_ends_is_told_no_answers(db: &dyn Checkpointer) -> Verdict {
    use Status::{Cancelled, Failed, Idle, StepLimit};
    for status in [Idle, Failed, Cancelled, StepLimit] {
        let mut owner = Owner::started(db, status.as_str()).await?;
        owner.save(db, owner.ask(&[1])).await?;
        db.answer(&owner.thread, &[answer(1, json!(1))]).await?;
        let saved = owner.save(db, owner.stop(status)).await?;
        ensure_eq!(saved.unseen, None, "what a run that ended was told");
        let head = db.load(&owner.thread).await?.unwrap_or_default().head;
        ensure_eq!(head.status, status, "the status of a run that ended");
    }
    ensure_eq!(unfinished(db, 10).await?, vec![], "the unfinished threads");
    Ok(())
}

pub(super) async fn retry_of_a_pause_is_told_as_before(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.ask(&[1, 2])).await?;
    let pause = owner.pause(&[1, 2]);
    owner.save(db, pause.clone()).await?;
    db.answer(&owner.thread, &[answer(1, json!(1))]).await?;
    // It is a pause, and the answer came after it: the driver finds it among the unfinished.
    ensure_eq!(
        db.save(&pause).await?.unseen,
        None,
        "what a pause that held was told again"
    );
    let head = db.load(&owner.thread).await?.unwrap_or_default().head;
    ensure_eq!(head.status, Status::Paused, "the status after the retry");
    ensure_eq!(
        unfinished(db, 10).await?,
        vec![owner.thread.clone()],
        "the unfinished threads"
    );

    owner.save(db, owner.claim()).await?;
    let overlooks = owner.pause(&[1, 2]);
    let saved = owner.save(db, overlooks.clone()).await?;
    ensure!(saved.unseen.is_some(), "a pause overlooked an answer");
    ensure_eq!(
        db.save(&overlooks).await?,
        saved,
        "what a pause that did not hold was told again"
    );
    Ok(())
}

pub(super) async fn closed_answers_are_not_told(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.ask(&[1, 2, 3])).await?;
    db.answer(&owner.thread, &[answer(1, json!(1)), answer(2, json!(2))])
        .await?;
    owner.head.answers = 1;
    let closed = vec![interrupt_id(1)];
    let saved = owner
        .save(
            db,
            Commit {
                closed,
                ..owner.stop(Status::Paused)
            },
        )
        .await?;
    let answered = vec![(interrupt_id(2), AnswerBody::Value(value(&json!(2))))];
    let wanted = Some(UnseenAnswers {
        answers: 2,
        answered,
    });
    ensure_eq!(saved.unseen, wanted, "what was told beside a close");
    Ok(())
}

pub(super) async fn answer_that_races_a_pause_is_not_lost(db: &dyn Checkpointer) -> Verdict {
    for n in 0..8 {
        let mut owner = Owner::started(db, &format!("t{n}")).await?;
        owner.save(db, owner.ask(&[1])).await?;
        let (pause, given) = (owner.pause(&[1]), [answer(1, json!("now"))]);
        let (save, answer) = (db.save(&pause), db.answer(&owner.thread, &given));
        let (saved, answered) = match n % 2 {
            0 => join(save, answer).await,
            _ => {
                let (answered, saved) = join(answer, save).await;
                (saved, answered)
            }
        };
        answered?;
        let status = db
            .load(&owner.thread)
            .await?
            .unwrap_or_default()
            .head
            .status;
        match saved?.unseen {
            Some(_) => ensure_eq!(status, Status::Running, "the status after a pause was held"),
            None => ensure_eq!(status, Status::Paused, "the status after a pause"),
        }
        let found = unfinished(db, 100).await?.contains(&owner.thread);
        ensure!(found, "a thread has an answer that no driver resumes");
    }
    Ok(())
}

async fn questions(db: &dyn Checkpointer, thread: &ThreadId) -> Result<Vec<InterruptRow>, Fault> {
    let query = InterruptQuery {
        tenant: thread.tenant().to_owned(),
        thread: Some(thread.clone()),
        page: ALL,
        ..Default::default()
    };
    Ok(db.interrupts(&query).await?)
}

async fn accepted_without_a_trace(
    db: &dyn Checkpointer,
    thread: &ThreadId,
    answers: &[Answer],
    what: &str,
) -> Verdict {
    let before = dump(db, thread).await?;
    let told = db.answer(thread, answers).await;
    ensure!(told.is_ok(), "{what} were refused: {told:?}");
    ensure_eq!(dump(db, thread).await?, before, "the thread after {what}");
    Ok(())
}

pub(super) async fn answers_are_in_what_is_loaded_with_them(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.pause(&[1, 2])).await?;
    let given = [answer(1, json!("yes"))];
    // The second time they are stored already, and the third time there is nothing to store.
    let calls: [&[Answer]; 3] = [&given, &given, &[]];
    for answers in calls {
        let loaded = db.answer_and_load(&owner.thread, answers).await?;
        let shown = loaded.clone().unwrap_or_default();
        ensure_eq!(shown.head.answers, 1, "answers in the head that was loaded");
        let stored = shown.interrupts.into_iter().map(|row| row.answer);
        ensure_eq!(
            stored.collect::<Vec<_>>(),
            vec![Some(given[0].body.clone()), None],
            "the answers that were loaded"
        );
        let alone = db.load(&owner.thread).await?;
        ensure_eq!(
            format!("{loaded:?}"),
            format!("{alone:?}"),
            "the thread that was loaded with its answers"
        );
    }
    Ok(())
}

pub(super) async fn refused_answers_load_nothing(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.pause(&[1, 2])).await?;
    db.answer(&owner.thread, &[answer(1, json!("first"))])
        .await?;
    let before = dump(db, &owner.thread).await?;
    let late = [answer(2, json!("yes")), answer(1, json!("second"))];
    ensure_refused!(
        db.answer_and_load(&owner.thread, &late).await,
        NotOpen { .. },
        "answers of which one is late"
    );
    let twice = [answer(2, json!("yes")), answer(2, json!("yes"))];
    ensure_refused!(
        db.answer_and_load(&owner.thread, &twice).await,
        NotOpen { .. },
        "one question twice in a call"
    );
    ensure_eq!(
        dump(db, &owner.thread).await?,
        before,
        "the thread after refused answers"
    );
    let gone = thread("gone");
    ensure_refused!(
        db.answer_and_load(&gone, &[answer(1, json!(1))]).await,
        NotOpen { .. } | NoThread { .. },
        "an answer to no thread"
    );
    Ok(())
}

async fn refused_without_a_trace(
    db: &dyn Checkpointer,
    thread: &ThreadId,
    answers: &[Answer],
    what: &str,
) -> Verdict {
    let before = dump(db, thread).await?;
    ensure_refused!(db.answer(thread, answers).await, NotOpen { .. }, "{what}");
    ensure_eq!(
        dump(db, thread).await?,
        before,
        "the thread after {what} was refused"
    );
    Ok(())
}
