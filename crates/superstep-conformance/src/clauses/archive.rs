//! Whole threads out of a store and into another. The other one is the reference checkpointer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use superstep_core::checkpoint::format::EntryKind;
use superstep_core::checkpoint::{
    Answer, AnswerBody, Archive, Checkpointer, Commit, Filter, FilterValue, InterruptQuery, Memory,
    RESULT_KEY, Status, ThreadQuery,
};
use superstep_core::driver::ThreadRequest;
use superstep_core::error::CheckpointError::{
    Fenced, Format, NoThread, NotOpen, OtherThread, ThreadExists,
};
use superstep_core::run::read_state;
use superstep_core::{Epoch, Outcome, Seq, ThreadId, Timestamp};

use crate::errand::{Errand, Pen, drive, errand};
use crate::poll::join;
use crate::report::{Fault, Verdict, ensure, ensure_eq, ensure_refused};
use crate::sample::{
    ALL, Owner, answer, dump, entry, interrupt_id, listing, thread, thread_of, unfinished, value,
};

pub(super) async fn archive_is_the_same_in_every_store(db: &dyn Checkpointer) -> Verdict {
    for status in [Status::Paused, Status::Running, Status::Idle] {
        let (from, to) = (Memory::new(), Memory::new());
        let id = thread_of("acme", &format!("there-{}", status.as_str()));
        furnish(&from, &id, status).await?;
        let archive = from.export(&id).await?;
        db.import(&id, &archive).await?;
        ensure_eq!(dump(db, &id).await?, dump(&from, &id).await?, "what came");
        is_exported_as(db, &archive).await?;

        let id = thread(&format!("back-{}", status.as_str()));
        furnish(db, &id, status).await?;
        let archive = db.export(&id).await?;
        to.import(&id, &archive).await?;
        ensure_eq!(dump(&to, &id).await?, dump(db, &id).await?, "what went");
        is_exported_as(&to, &archive).await?;
        is_exported_as(db, &archive).await?;
    }
    Ok(())
}

pub(super) async fn thread_that_was_only_claimed_is_moved(db: &dyn Checkpointer) -> Verdict {
    let (other, mut owner) = (Memory::new(), Owner::new(&thread("t")));
    owner.save(db, owner.claim()).await?;
    let archive = db.export(&owner.thread).await?;
    other.import(&owner.thread, &archive).await?;
    is_exported_as(&other, &archive).await?;
    db.delete(&owner.thread).await?;
    db.import(&owner.thread, &archive).await?;
    ensure!(
        archive.is_same_thread(&db.export(&owner.thread).await?),
        "it came back as another"
    );
    Ok(())
}

pub(super) async fn pruned_thread_is_moved(db: &dyn Checkpointer) -> Verdict {
    let from = Memory::new();
    let mut owner = Owner::started(&from, "t").await?;
    owner.save_steps(&from, 10).await?;
    from.prune(&owner.thread, 2).await?;
    let archive = moved(&from, db, &owner.thread).await?;
    is_exported_as(db, &archive).await?;
    let (found, wanted) = (
        db.load(&owner.thread).await?.unwrap_or_default().history,
        owner.history_at(owner.head.seq),
    );
    ensure_eq!(found.snapshot, wanted.snapshot, "its snapshot");
    ensure_eq!(found.entries, wanted.entries, "its entries");
    Ok(())
}

pub(super) async fn large_thread_is_moved_whole(db: &dyn Checkpointer) -> Verdict {
    let from = Memory::new();
    let mut owner = Owner::started(&from, "large").await?;
    owner.save_steps(&from, 1_200).await?;
    let step = owner.step();
    let text = json!({ "text": "x".repeat(1_000_000) });
    let seq = step.head.seq;
    let large = Some(entry(&owner.thread, seq, EntryKind::Step, owner.at, text));
    owner
        .save(
            &from,
            Commit {
                entry: large,
                ..step
            },
        )
        .await?;
    let questions: Vec<u8> = (0..=255).collect();
    owner.save(&from, owner.pause(&questions)).await?;
    for n in 0..=255 {
        for key in ["a", "b", RESULT_KEY] {
            from.record(&owner.record(n, key, json!(n))).await?;
        }
    }
    let archive = moved(&from, db, &owner.thread).await?;
    ensure_eq!(archive.entries.len(), 1_203, "entries in the archive");
    is_exported_as(db, &archive).await
}

pub(super) async fn imported_thread_is_listed_and_found(db: &dyn Checkpointer) -> Verdict {
    let from = Memory::new();
    let id = thread_of("acme", "t");
    furnish(&from, &id, Status::Paused).await?;
    moved(&from, db, &id).await?;
    Owner::started_at(db, &thread_of("acme", "another")).await?;
    let text = |field: &str, text: &str| Filter {
        field: field.to_owned(),
        equals: FilterValue::Text(text.to_owned()),
    };
    let all = ThreadQuery {
        tenant: "acme".to_owned(),
        ..ThreadQuery::default()
    };
    for (query, what) in [
        (
            ThreadQuery {
                metadata: vec![text("user", "ada")],
                ..all.clone()
            },
            "its metadata",
        ),
        (
            ThreadQuery {
                values: vec![text("topic", "boats")],
                ..all.clone()
            },
            "its values",
        ),
        (
            ThreadQuery {
                statuses: vec![Status::Paused],
                ..all.clone()
            },
            "its status",
        ),
        (
            ThreadQuery {
                graph: Some("errands".to_owned()),
                ..all.clone()
            },
            "its graph",
        ),
    ] {
        let (found, wanted) = (db.threads(&query).await?, from.threads(&query).await?);
        ensure_eq!(found, wanted, "threads by {what}");
        ensure_eq!(found.len(), 1, "threads by {what}");
    }
    ensure_eq!(db.threads(&all).await?.len(), 2, "threads of the tenant");
    let others = db.threads(&ThreadQuery::default()).await?;
    ensure_eq!(others, vec![], "threads of another tenant");
    Ok(())
}

pub(super) async fn found_no_longer_by_what_has_changed(db: &dyn Checkpointer) -> Verdict {
    let from = Memory::new();
    let mut owner = furnish(&from, &thread("t"), Status::Paused).await?;
    moved(&from, db, &owner.thread).await?;
    let mut resume = owner.start();
    resume.listing = Some(listing("errands", json!({}), json!({ "topic": "trains" })));
    owner.save(db, resume).await?;
    for (field, wanted) in [("boats", 0), ("trains", 1)] {
        let query = ThreadQuery {
            values: vec![Filter {
                field: "topic".to_owned(),
                equals: FilterValue::Text(field.to_owned()),
            }],
            ..ThreadQuery::default()
        };
        let found = db.threads(&query).await?;
        ensure_eq!(found.len(), wanted, "threads about {field}");
    }
    let paused = ThreadQuery {
        statuses: vec![Status::Paused],
        ..ThreadQuery::default()
    };
    ensure_eq!(
        db.threads(&paused).await?,
        vec![],
        "threads that are paused"
    );
    db.delete(&owner.thread).await?;
    let all = db.threads(&ThreadQuery::default()).await?;
    ensure_eq!(all, vec![], "threads after it was deleted");
    Ok(())
}

pub(super) async fn imported_questions_wait_and_are_due(db: &dyn Checkpointer) -> Verdict {
    let from = Memory::new();
    let id = thread_of("acme", "t");
    furnish(&from, &id, Status::Paused).await?;
    moved(&from, db, &id).await?;
    for (open_only, due) in [
        (false, None),
        (true, None),
        (true, Some(DEADLINE)),
        (true, Some(Timestamp(DEADLINE.0 - 1))),
    ] {
        let query = InterruptQuery {
            tenant: "acme".to_owned(),
            open_only,
            due,
            page: ALL,
            ..InterruptQuery::default()
        };
        let (found, wanted) = (db.interrupts(&query).await?, from.interrupts(&query).await?);
        ensure_eq!(found, wanted, "questions, open {open_only}, due {due:?}");
    }
    let overdue = db.overdue(DEADLINE, None, 10).await?;
    let ids: Vec<_> = overdue.iter().map(|row| (row.id, &row.thread)).collect();
    ensure_eq!(ids, vec![(interrupt_id(1), &id)], "overdue questions");
    db.answer(&id, &[answer(1, json!("late"))]).await?;
    ensure_eq!(
        db.overdue(DEADLINE, None, 10).await?,
        vec![],
        "overdue questions"
    );
    for n in [1, 2, 3, 4] {
        let result = db.answer(&id, &[answer(n, json!("again"))]).await;
        ensure_refused!(result, NotOpen { .. }, "a second answer to question {n}");
    }
    Ok(())
}

pub(super) async fn imported_thread_is_unfinished_as_before(db: &dyn Checkpointer) -> Verdict {
    let from = Memory::new();
    for (name, status) in [
        ("answered", Status::Paused),
        ("running", Status::Running),
        ("idle", Status::Idle),
    ] {
        furnish(&from, &thread(name), status).await?;
        moved(&from, db, &thread(name)).await?;
    }
    let mut waits = Owner::started(&from, "waits").await?;
    waits.save(&from, waits.pause(&[1])).await?;
    moved(&from, db, &waits.thread).await?;
    let wanted = vec![thread("answered"), thread("running")];
    ensure_eq!(unfinished(db, 10).await?, wanted, "what must be resumed");
    Ok(())
}

pub(super) async fn run_goes_on_after_an_import(db: &dyn Checkpointer) -> Verdict {
    let (from, id, paid) = (Memory::new(), thread("t"), Arc::new(AtomicU32::new(0)));
    let graph = errand(&paid)?;
    let start = ThreadRequest::Start {
        input: value(&json!({})),
        context: None,
        metadata: None,
    };
    let outcome = drive(&from, &graph, &id, start, Arc::new(Pen(Some(from.clone())))).await?;
    let Outcome::Paused(asked) = outcome else {
        return Err(Fault::new(format!("the run did not ask: {outcome:?}")));
    };
    moved(&from, db, &id).await?;
    let yes = Answer {
        interrupt: asked[0].id,
        ..answer(1, json!("yes"))
    };
    db.answer(&id, &[yes]).await?;
    // What was done before the move is not done again: nothing can be recorded here.
    let outcome = drive(db, &graph, &id, ThreadRequest::Resume, Arc::new(Pen(None))).await?;
    ensure_eq!(outcome, Outcome::Finished, "how the run ended");
    ensure_eq!(paid.load(Ordering::SeqCst), 1, "how often it paid");
    let loaded = db.load(&id).await?.unwrap_or_default();
    let state = read_state(graph.definition(), &id, &loaded.history)?;
    let values = state.map(|state| state.values.decode::<Errand>());
    let done = values.transpose()?.unwrap_or_default().done;
    ensure_eq!(done, vec!["paid 1: yes".to_owned()], "what it wrote");
    Ok(())
}

pub(super) async fn records_move_along(db: &dyn Checkpointer) -> Verdict {
    let from = Memory::new();
    let mut owner = furnish(&from, &thread("t"), Status::Running).await?;
    let wanted = from.load(&owner.thread).await?.unwrap_or_default().records;
    moved(&from, db, &owner.thread).await?;
    let claimed = owner.save(db, owner.claim()).await?;
    ensure_eq!(claimed.records, wanted, "records told to the next owner");
    let again = owner.record(1, "pay", json!("once more"));
    let stored = db.record(&again).await?;
    ensure!(stored != again.body, "a record was replaced after the move");
    Ok(())
}

pub(super) async fn cancel_request_moves_along(db: &dyn Checkpointer) -> Verdict {
    for cancel in [true, false] {
        let from = Memory::new();
        let mut owner = Owner::started(&from, &format!("t-{cancel}")).await?;
        if cancel {
            from.request_cancel(&owner.thread).await?;
        }
        moved(&from, db, &owner.thread).await?;
        let saved = owner.save(db, owner.step()).await?;
        ensure_eq!(saved.cancel, cancel, "whether it is asked to cancel");
    }
    Ok(())
}

pub(super) async fn epoch_goes_on_after_an_import(db: &dyn Checkpointer) -> Verdict {
    let from = Memory::new();
    let mut owner = Owner::started(&from, "t").await?;
    owner.head.epoch = Epoch(41);
    let mut claim = owner.claim();
    claim.expect.epoch = Epoch(1);
    owner.save(&from, claim).await?;
    let last = owner.step();
    owner.save(&from, last.clone()).await?;
    moved(&from, db, &owner.thread).await?;

    // It was saved before the move, under the same epoch, and is in the archive.
    db.save(&last).await?;
    let mut nobody = Owner::new(&owner.thread);
    nobody.at = Timestamp(7_000);
    let result = db.save(&nobody.start()).await;
    ensure_refused!(result, Fenced { .. }, "a start that expects no thread");
    let mut next = owner.clone();
    next.save(db, next.claim()).await?;
    ensure!(
        next.head.epoch > owner.head.epoch,
        "the epoch began again at its start"
    );
    let result = db.save(&owner.step()).await;
    ensure_refused!(result, Fenced { .. }, "a step of the owner before the move");
    let result = db.record(&owner.record(1, "late", json!(1))).await;
    ensure_refused!(result, Fenced { .. }, "a record of that owner");
    next.save(db, next.step()).await?;
    Ok(())
}

pub(super) async fn import_onto_a_thread_is_refused(db: &dyn Checkpointer) -> Verdict {
    let from = Memory::new();
    let mut other = furnish(&from, &thread("t"), Status::Paused).await?;
    let archive = moved(&from, db, &other.thread).await?;
    other.save(db, other.start()).await?;
    let before = db.export(&other.thread).await?;
    let result = db.import(&other.thread, &archive).await;
    ensure_refused!(result, ThreadExists { .. }, "an import of what has gone on");
    is_exported_as(db, &before).await?;

    let stranger = Owner::started(db, "stranger").await?;
    let before = db.export(&stranger.thread).await?;
    furnish(&from, &stranger.thread, Status::Idle).await?;
    let archive = from.export(&stranger.thread).await?;
    let result = db.import(&stranger.thread, &archive).await;
    ensure_refused!(result, ThreadExists { .. }, "an import onto another thread");
    is_exported_as(db, &before).await
}

pub(super) async fn import_twice_is_done_once(db: &dyn Checkpointer) -> Verdict {
    let from = Memory::new();
    let owner = furnish(&from, &thread("t"), Status::Paused).await?;
    let archive = moved(&from, db, &owner.thread).await?;
    db.import(&owner.thread, &archive).await?;
    is_exported_as(db, &archive).await?;
    let results = join(
        db.import(&owner.thread, &archive),
        db.import(&owner.thread, &archive),
    );
    let (first, second) = results.await;
    first?;
    second?;
    is_exported_as(db, &archive).await
}

pub(super) async fn racing_imports_leave_one_whole_thread(db: &dyn Checkpointer) -> Verdict {
    for n in 0..4 {
        let id = thread(&format!("t{n}"));
        let (one, other) = (Memory::new(), Memory::new());
        furnish(&one, &id, Status::Paused).await?;
        Owner::started_at(&other, &id).await?;
        let archives = [one.export(&id).await?, other.export(&id).await?];
        let results = join(db.import(&id, &archives[0]), db.import(&id, &archives[1])).await;
        let winner = match results {
            (Ok(()), Err(ThreadExists { .. })) => &archives[0],
            (Err(ThreadExists { .. }), Ok(())) => &archives[1],
            results => return Err(Fault::new(format!("not one of them won: {results:?}"))),
        };
        is_exported_as(db, winner).await?;
    }
    Ok(())
}

pub(super) async fn import_that_races_a_start_has_one_winner(db: &dyn Checkpointer) -> Verdict {
    for n in 0..4 {
        let (id, from) = (thread(&format!("t{n}")), Memory::new());
        furnish(&from, &id, Status::Paused).await?;
        let archive = from.export(&id).await?;
        let mut owner = Owner::new(&id);
        owner.at = Timestamp(7_000);
        let start = owner.start();
        let (import, save) = (db.import(&id, &archive), db.save(&start));
        let results = match n % 2 {
            0 => join(import, save).await,
            _ => {
                let (saved, imported) = join(save, import).await;
                (imported, saved)
            }
        };
        match results {
            (Ok(()), Err(Fenced { .. })) => is_exported_as(db, &archive).await?,
            (Err(ThreadExists { .. }), Ok(_)) => {
                owner.went_on(start);
                let entries = db.entries(&id, Seq(0), 100).await?;
                ensure_eq!(entries, owner.entries(), "the entries of the winner");
            }
            results => return Err(Fault::new(format!("not one of them won: {results:?}"))),
        }
    }
    Ok(())
}

pub(super) async fn import_keeps_owners_of_a_deleted_thread_out(db: &dyn Checkpointer) -> Verdict {
    let former = furnish(db, &thread("t"), Status::Running).await?;
    let archive = db.export(&former.thread).await?;
    db.delete(&former.thread).await?;
    let deleted = db.load(&former.thread).await?.unwrap_or_default().head;
    for _ in 0..2 {
        db.import(&former.thread, &archive).await?;
    }
    let back = db.export(&former.thread).await?;
    ensure!(
        back.head.epoch > deleted.epoch,
        "a reader who saw that it is deleted does not see that it is back"
    );
    ensure!(archive.is_same_thread(&back), "another thread came back");
    let result = db.save(&former.step()).await;
    ensure_refused!(result, Fenced { .. }, "a step of the former owner");
    let result = db.record(&former.record(7, "late", json!(1))).await;
    ensure_refused!(result, Fenced { .. }, "a record of the former owner");
    let mut next = former.clone();
    next.head = back.head;
    next.save(db, next.claim()).await?;
    next.save(db, next.step()).await?;
    Ok(())
}

pub(super) async fn import_under_another_name_is_refused(db: &dyn Checkpointer) -> Verdict {
    let (from, id) = (Memory::new(), thread_of("acme", "t"));
    furnish(&from, &id, Status::Paused).await?;
    let archive = from.export(&id).await?;
    for other in [thread("t"), thread_of("evil", "t"), thread_of("acme", "u")] {
        let result = db.import(&other, &archive).await;
        ensure_refused!(result, OtherThread { .. }, "an import as {other}");
        // Not under a name that it gives itself either: its bodies are sealed for another.
        let renamed = Archive {
            thread: other.clone(),
            ..archive.clone()
        };
        let result = db.import(&other, &renamed).await;
        ensure_refused!(result, Format(_), "an import renamed to {other}");
        for thread in [&other, &id] {
            ensure!(db.load(thread).await?.is_none(), "{thread} was made");
        }
    }
    Ok(())
}

pub(super) async fn damaged_archive_is_refused(db: &dyn Checkpointer) -> Verdict {
    let (from, id) = (Memory::new(), thread("t"));
    furnish(&from, &id, Status::Paused).await?;
    let archive = from.export(&id).await?;
    let damage: [fn(&mut Archive); 5] = [
        |archive| archive.entries[1].body[9] ^= 1,
        |archive| archive.snapshots[0].body.truncate(9),
        |archive| archive.records[0].body.clear(),
        |archive| archive.interrupts[0].body.push(0),
        |archive| drop(archive.entries.pop()),
    ];
    for damage in damage {
        let mut damaged = archive.clone();
        damage(&mut damaged);
        let result = db.import(&id, &damaged).await;
        ensure_refused!(result, Format(_), "an import of a damaged archive");
        ensure!(db.load(&id).await?.is_none(), "a part of it was imported");
    }
    Ok(())
}

pub(super) async fn export_of_no_thread_is_refused(db: &dyn Checkpointer) -> Verdict {
    let deleted = Owner::started(db, "deleted").await?.thread;
    db.delete(&deleted).await?;
    for id in [thread("missing"), deleted] {
        let result = db.export(&id).await;
        ensure_refused!(result, NoThread { .. }, "an export of {id}");
    }
    Ok(())
}

pub(super) async fn export_keeps_tenants_apart(db: &dyn Checkpointer) -> Verdict {
    furnish(db, &thread_of("acme", "t"), Status::Paused).await?;
    for id in [thread("t"), thread_of("evil", "t"), thread_of("ACME", "t")] {
        let result = db.export(&id).await;
        ensure_refused!(result, NoThread { .. }, "an export of {id}");
    }
    let own = furnish(db, &thread_of("evil", "t"), Status::Idle).await?;
    let archive = db.export(&own.thread).await?;
    ensure_eq!(archive.thread, own.thread, "whose thread was exported");
    ensure_eq!(archive.head.status, Status::Idle, "what it is doing");
    Ok(())
}

pub(super) async fn export_is_of_one_moment(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    for n in 0..16 {
        let ask = owner.ask(&[n]);
        owner.save(db, ask).await?;
        let (step, given) = (owner.step(), [answer(n, json!(n))]);
        let writes = join(db.save(&step), db.answer(&owner.thread, &given));
        let (exported, (saved, answered)) = join(db.export(&owner.thread), writes).await;
        saved?;
        answered?;
        owner.went_on(step);
        let archive = exported?;
        let answers = archive.interrupts.iter();
        let answers = answers.filter(|asked| asked.answer.is_some()).count() as u64;
        ensure_eq!(archive.head.answers, answers, "answers counted and there");
        Archive::from_bytes(&archive.to_bytes())?;
    }
    Ok(())
}

const DEADLINE: Timestamp = Timestamp(5_000);

/// A thread with something of every kind: history with snapshots, records, questions that are open, answered, expired
/// and closed, a request to cancel, and a line that it is found by. One that pauses has an answer nobody has seen.
async fn furnish(db: &dyn Checkpointer, thread: &ThreadId, status: Status) -> Result<Owner, Fault> {
    let mut owner = Owner::started_at(db, thread).await?;
    owner.save_steps(db, 7).await?;
    let mut ask = owner.ask(&[1, 2, 3, 4]);
    ask.asked[0].deadline = Some(DEADLINE);
    owner.save(db, ask).await?;
    let expired = Answer {
        body: AnswerBody::Expired,
        by: String::new(),
        ..answer(3, json!(null))
    };
    db.answer(thread, &[expired]).await?;
    owner.head.answers = 1;
    for (task, key) in [(1, "pay"), (1, RESULT_KEY), (2, "")] {
        db.record(&owner.record(task, key, json!(key))).await?;
    }
    owner.at = Timestamp(3_000);
    let mut last = match status {
        Status::Running => owner.step(),
        status => owner.stop(status),
    };
    last.closed = vec![interrupt_id(4)];
    let values = json!({ "topic": "boats", "n": 1.5 });
    last.listing = Some(listing("errands", json!({ "user": "ada" }), values));
    owner.save(db, last).await?;
    db.answer(thread, &[answer(2, json!({ "yes": [1, null] }))])
        .await?;
    db.request_cancel(thread).await?;
    Ok(owner)
}

async fn moved(
    from: &dyn Checkpointer,
    to: &dyn Checkpointer,
    thread: &ThreadId,
) -> Result<Archive, Fault> {
    let archive = from.export(thread).await?;
    to.import(thread, &archive).await?;
    Ok(archive)
}

async fn is_exported_as(db: &dyn Checkpointer, archive: &Archive) -> Verdict {
    let exported = db.export(&archive.thread).await?;
    let is_same = exported.to_bytes() == archive.to_bytes();
    ensure!(
        is_same,
        "it is exported as {exported:?}, not as {archive:?}"
    );
    Ok(())
}
