//! Copies, deletion, pruning, expiry.

use serde_json::json;
use superstep_core::checkpoint::format::{Body, Entry, Snapshot};
use superstep_core::checkpoint::{
    Checkpointer, Commit, Head, History, InterruptQuery, Listing, Status, ThreadQuery,
};
use superstep_core::error::CheckpointError::{
    Fenced, NoCheckpoint, NoThread, NotOpen, ThreadExists,
};
use superstep_core::{Epoch, Seq, ThreadId, Timestamp};

use crate::poll::join;
use crate::report::{Fault, Verdict, ensure, ensure_eq, ensure_refused};
use crate::sample::{
    ALL, Owner, answer, dump, interrupt_id, listing, thread, thread_of, unfinished,
};

pub(super) async fn copy_is_idle_and_has_the_same_history(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "from").await?;
    owner.save_steps(db, 10).await?;
    let before = dump(db, &owner.thread).await?;
    for to in [thread("to"), thread_of("acme", "from")] {
        db.copy(&owner.thread, None, &to).await?;
        let wanted = Head {
            epoch: Epoch(1),
            seq: Seq(11),
            status: Status::Idle,
            ..Head::default()
        };
        ensure_eq!(head(db, &to).await?, wanted, "the head of a copy");
        for seq in (1..=11).map(Seq) {
            let found = unsealed(&to, db.load_at(&to, seq).await?)?;
            ensure_eq!(
                found,
                unsealed(&owner.thread, owner.history_at(seq))?,
                "it at {seq}"
            );
        }
        let entries = db.entries(&to, Seq(0), 100).await?;
        ensure_eq!(entries.len(), 11, "entries of a copy");
    }
    ensure_eq!(
        dump(db, &owner.thread).await?,
        before,
        "the thread that was copied"
    );
    Ok(())
}

pub(super) async fn copy_up_to_an_entry(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "from").await?;
    owner.save_steps(db, 10).await?;
    for upto in [1, 2, 3, 4, 8, 11].map(Seq) {
        let to = thread(&format!("to-{upto}"));
        db.copy(&owner.thread, Some(upto), &to).await?;
        ensure_eq!(
            head(db, &to).await?.seq,
            upto,
            "the head of a copy up to {upto}"
        );
        let history = db.load(&to).await?.unwrap_or_default().history;
        let wanted = unsealed(&owner.thread, owner.history_at(upto))?;
        ensure_eq!(
            unsealed(&to, history)?,
            wanted,
            "the history of a copy up to {upto}"
        );
        let result = db.load_at(&to, upto.next()).await;
        ensure_refused!(result, NoCheckpoint { .. }, "a load beyond the copy");
    }
    Ok(())
}

pub(super) async fn copy_takes_the_listing_only(db: &dyn Checkpointer) -> Verdict {
    let mut owner = furnished(db, "from").await?;
    let to = thread("to");
    db.copy(&owner.thread, None, &to).await?;
    let loaded = db.load(&to).await?.unwrap_or_default();
    ensure_eq!(loaded.records, vec![], "the records of a copy");
    ensure_eq!(loaded.interrupts, vec![], "the questions of a copy");
    let rows = db.threads(&ThreadQuery::default()).await?;
    let row = |thread: &ThreadId| rows.iter().find(|row| row.thread == *thread);
    let (Some(from), Some(copy)) = (row(&owner.thread), row(&to)) else {
        return Err(Fault::new(format!("not both are listed: {rows:?}")));
    };
    ensure_eq!(copy.graph, from.graph, "the graph of a copy");
    ensure_eq!(copy.metadata, from.metadata, "the metadata of a copy");
    ensure_eq!(copy.values, from.values, "the values of a copy");
    ensure!(
        !unfinished(db, 100).await?.contains(&to),
        "a copy is unfinished"
    );
    owner.save(db, owner.step()).await?;
    Ok(())
}

pub(super) async fn copy_outside_the_history_is_refused(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "from").await?;
    owner.save_steps(db, 9).await?;
    db.prune(&owner.thread, 1).await?;
    for upto in [Seq(0), Seq(2), Seq(11)] {
        let to = thread("to");
        let result = db.copy(&owner.thread, Some(upto), &to).await;
        ensure_refused!(result, NoCheckpoint { .. }, "a copy up to {upto}");
        ensure!(
            db.load(&to).await?.is_none(),
            "a refused copy made a thread"
        );
    }
    Ok(())
}

pub(super) async fn copy_of_no_thread_is_refused(db: &dyn Checkpointer) -> Verdict {
    let deleted = Owner::started(db, "deleted").await?.thread;
    db.delete(&deleted).await?;
    for from in [thread("missing"), deleted] {
        let result = db.copy(&from, None, &thread("to")).await;
        ensure_refused!(result, NoThread { .. }, "a copy of {from}");
    }
    ensure!(
        db.load(&thread("to")).await?.is_none(),
        "a refused copy made a thread"
    );
    Ok(())
}

pub(super) async fn copy_onto_a_thread_is_refused(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "from").await?;
    let target = Owner::started(db, "to").await?;
    for to in [&target.thread, &owner.thread] {
        let before = dump(db, to).await?;
        let result = db.copy(&owner.thread, None, to).await;
        ensure_refused!(result, ThreadExists { .. }, "a copy onto {to}");
        ensure_eq!(
            dump(db, to).await?,
            before,
            "the thread that was in the way"
        );
    }
    Ok(())
}

pub(super) async fn copy_onto_a_deleted_thread_keeps_its_epoch(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "from").await?;
    let mut former = Owner::started(db, "to").await?;
    former.save(db, former.claim()).await?;
    db.delete(&former.thread).await?;
    db.copy(&owner.thread, None, &former.thread).await?;
    let copied = head(db, &former.thread).await?;
    ensure!(
        copied.epoch > former.head.epoch,
        "the copy has an epoch that a former owner held"
    );
    ensure_eq!(
        (copied.seq, copied.status),
        (Seq(1), Status::Idle),
        "the head of the copy"
    );
    ensure_refused!(
        db.save(&former.step()).await,
        Fenced { .. },
        "a step of the former owner"
    );
    Ok(())
}

pub(super) async fn large_thread_is_copied_whole(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "from").await?;
    owner.save_steps(db, 299).await?;
    let to = thread("to");
    db.copy(&owner.thread, Some(Seq(200)), &to).await?;
    let entries = db.entries(&to, Seq(0), 1_000).await?;
    ensure_eq!(entries.len(), 200, "entries of a copy up to 200");
    let wanted = owner.entries();
    for (copy, original) in entries.iter().zip(&wanted) {
        ensure_eq!(
            Entry::unseal(&copy.body, &to, copy.seq)?,
            Entry::unseal(&original.body, &owner.thread, original.seq)?,
            "entry {} of the copy",
            copy.seq
        );
    }
    let history = db.load(&to).await?.unwrap_or_default().history;
    let wanted = owner.history_at(Seq(200));
    ensure_eq!(
        unsealed(&to, history)?,
        unsealed(&owner.thread, wanted)?,
        "the copy as it is loaded"
    );
    Ok(())
}

pub(super) async fn start_is_not_taken_for_a_copy(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "from").await?;
    let to = thread("to");
    db.copy(&owner.thread, None, &to).await?;
    // The copy's first entry is what this start would write, and yet it must not believe that it did.
    let start = Owner::new(&to).start();
    let stored = db.entries(&to, Seq(0), 10).await?;
    ensure_eq!(
        stored.iter().map(|entry| &entry.body).collect::<Vec<_>>(),
        start.entry.iter().collect::<Vec<_>>(),
        "the entries of the copy"
    );
    ensure_refused!(
        db.save(&start).await,
        Fenced { .. },
        "a start under a copy's name"
    );
    Ok(())
}

pub(super) async fn copy_goes_its_own_way(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "from").await?;
    owner.save_steps(db, 4).await?;
    let mut copy = Owner::new(&thread("to"));
    db.copy(&owner.thread, Some(Seq(3)), &copy.thread).await?;
    copy.head = head(db, &copy.thread).await?;
    let before = dump(db, &owner.thread).await?;
    copy.save(db, copy.start()).await?;
    copy.save_steps(db, 5).await?;
    ensure_eq!(
        dump(db, &owner.thread).await?,
        before,
        "the thread that was copied"
    );
    let before = dump(db, &copy.thread).await?;
    db.delete(&owner.thread).await?;
    ensure_eq!(
        dump(db, &copy.thread).await?,
        before,
        "the copy after its source was deleted"
    );
    Ok(())
}

pub(super) async fn delete_leaves_nothing(db: &dyn Checkpointer) -> Verdict {
    let owner = furnished(db, "t").await?;
    db.delete(&owner.thread).await?;
    is_gone(db, &owner.thread, owner.head.epoch).await?;
    let result = db.request_cancel(&owner.thread).await;
    ensure_refused!(result, NoThread { .. }, "a cancel of a deleted thread");
    let result = db.answer(&owner.thread, &[answer(2, json!(2))]).await;
    ensure_refused!(
        result,
        NotOpen { .. } | NoThread { .. },
        "an answer to a deleted thread"
    );
    is_gone(db, &owner.thread, owner.head.epoch).await
}

pub(super) async fn delete_twice_is_no_error(db: &dyn Checkpointer) -> Verdict {
    let owner = furnished(db, "t").await?;
    db.delete(&owner.thread).await?;
    db.delete(&owner.thread).await?;
    is_gone(db, &owner.thread, owner.head.epoch).await
}

pub(super) async fn delete_fences_the_owner(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let last = owner.step();
    owner.save(db, last.clone()).await?;
    db.delete(&owner.thread).await?;
    for (commit, what) in [
        (owner.step(), "a step"),
        (last, "a retry of the last step"),
        (owner.claim(), "a claim"),
        (owner.start(), "a start"),
    ] {
        ensure_refused!(
            db.save(&commit).await,
            Fenced { .. },
            "{what} after the delete"
        );
    }
    is_gone(db, &owner.thread, owner.head.epoch).await
}

pub(super) async fn start_from_nothing_after_delete_is_fenced(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    db.delete(&owner.thread).await?;
    let start = Owner::new(&owner.thread).start();
    ensure_refused!(
        db.save(&start).await,
        Fenced { .. },
        "a start that expects no thread"
    );
    is_gone(db, &owner.thread, owner.head.epoch).await
}

pub(super) async fn start_after_delete_takes_the_next_epoch(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.claim()).await?;
    db.delete(&owner.thread).await?;
    let mut next = successor(db, &owner.thread).await?;
    next.save(db, next.start()).await?;
    let made = head(db, &owner.thread).await?;
    ensure_eq!(made, next.head, "the head of a thread made again");
    ensure!(
        made.epoch > owner.head.epoch,
        "a former owner's epoch is used again"
    );
    next.save(db, next.step()).await?;
    Ok(())
}

pub(super) async fn only_a_claim_makes_a_deleted_thread_anew(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    db.delete(&owner.thread).await?;
    let next = successor(db, &owner.thread).await?;
    // The epoch that the deletion left, and the one before it, which the owner held.
    for epoch in [next.head.epoch, owner.head.epoch] {
        let step = next.step();
        let head = Head { epoch, ..step.head };
        ensure_refused!(
            db.save(&Commit { head, ..step }).await,
            Fenced { .. },
            "a step under {epoch:?} that knows of the deletion"
        );
    }
    is_gone(db, &owner.thread, owner.head.epoch).await
}

pub(super) async fn bare_claim_makes_a_thread(db: &dyn Checkpointer) -> Verdict {
    let mut new = Owner::new(&thread("new"));
    new.save(db, new.claim()).await?;
    let loaded = db.load(&new.thread).await?.unwrap_or_default();
    ensure_eq!(
        loaded.head,
        new.head,
        "the head of a thread that was only claimed"
    );
    ensure_eq!(
        loaded.history.entries,
        vec![],
        "the entries of a thread that was only claimed"
    );
    new.save(db, new.step()).await?;
    let owner = Owner::started(db, "deleted").await?;
    db.delete(&owner.thread).await?;
    ensure_refused!(
        db.save(&owner.claim()).await,
        Fenced { .. },
        "a claim by somebody who has not seen that it was deleted"
    );
    let mut next = successor(db, &owner.thread).await?;
    next.save(db, next.claim()).await?;
    ensure_eq!(
        head(db, &owner.thread).await?,
        next.head,
        "the head of a deleted thread that was claimed again"
    );
    Ok(())
}

pub(super) async fn former_owner_cannot_write_what_was_made_again(
    db: &dyn Checkpointer,
) -> Verdict {
    let mut former = Owner::started(db, "t").await?;
    let last = former.step();
    former.save(db, last.clone()).await?;
    db.delete(&former.thread).await?;
    let mut next = successor(db, &former.thread).await?;
    next.save(db, next.start()).await?;
    next.save(db, next.step()).await?;
    ensure_eq!(next.head.seq, former.head.seq, "the sequence of both");

    let before = dump(db, &next.thread).await?;
    ensure_refused!(
        db.save(&former.step()).await,
        Fenced { .. },
        "a step of the former owner"
    );
    ensure_refused!(
        db.save(&last).await,
        Fenced { .. },
        "a retry of the former owner"
    );
    let record = former.record(1, "key", json!(1));
    ensure_refused!(
        db.record(&record).await,
        Fenced { .. },
        "a record of the former owner"
    );
    ensure_eq!(
        dump(db, &next.thread).await?,
        before,
        "the thread that was made again"
    );
    Ok(())
}

pub(super) async fn recreated_thread_begins_empty(db: &dyn Checkpointer) -> Verdict {
    let former = furnished(db, "t").await?;
    db.request_cancel(&former.thread).await?;
    db.delete(&former.thread).await?;
    let mut next = successor(db, &former.thread).await?;
    next.at = Timestamp(8_000);
    let listing = Some(Listing {
        metadata: None,
        ..listing("new", json!(null), json!({}))
    });
    let saved = next
        .save(
            db,
            Commit {
                listing,
                ..next.start()
            },
        )
        .await?;
    ensure!(!saved.cancel, "a request to cancel outlived its thread");
    let loaded = db.load(&next.thread).await?.unwrap_or_default();
    ensure_eq!(
        loaded.history.entries,
        next.entries(),
        "the history of a thread made again"
    );
    ensure_eq!(loaded.history.snapshot, None, "its snapshot");
    ensure_eq!(loaded.records, vec![], "its records");
    ensure_eq!(loaded.interrupts, vec![], "its questions");
    let rows = db.threads(&ThreadQuery::default()).await?;
    ensure_eq!(rows.len(), 1, "threads that are listed");
    ensure!(
        rows[0].metadata.is_empty(),
        "metadata outlived its thread: {:?}",
        rows[0].metadata
    );
    ensure_eq!(rows[0].created, next.at, "when it was made");

    // The same task asks again under the same id: it is another question now.
    next.save(db, next.pause(&[1])).await?;
    db.answer(&next.thread, &[answer(1, json!("new"))]).await?;
    Ok(())
}

pub(super) async fn delete_and_save_race_to_one_end(db: &dyn Checkpointer) -> Verdict {
    for n in 0..8 {
        let owner = furnished(db, &format!("t{n}")).await?;
        let claim = owner.start();
        let commit = if n % 2 == 0 { owner.step() } else { claim };
        let (deleted, saved) = match n / 4 {
            0 => join(db.delete(&owner.thread), db.save(&commit)).await,
            _ => {
                let (saved, deleted) = join(db.save(&commit), db.delete(&owner.thread)).await;
                (deleted, saved)
            }
        };
        deleted?;
        let epoch = match saved {
            Ok(_) => commit.head.epoch,
            Err(Fenced { .. }) => owner.head.epoch,
            Err(other) => return Err(other.into()),
        };
        is_gone(db, &owner.thread, epoch).await?;
    }
    Ok(())
}

pub(super) async fn prune_keeps_survivors_as_they_were(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save_steps(db, 20).await?;
    let other = Owner::started(db, "other").await?;
    for (keep, base) in [(19, 3), (9, 12), (5, 15), (1, 21)] {
        let before = db.entries(&owner.thread, Seq(0), 100).await?;
        let dropped = db.prune(&owner.thread, keep).await?;
        let after = db.entries(&owner.thread, Seq(0), 100).await?;
        ensure_eq!(
            before.len() - after.len(),
            dropped as usize,
            "how many entries were dropped"
        );
        ensure!(
            after.len() >= keep as usize,
            "{} of {keep} entries are left",
            after.len()
        );
        ensure!(
            owner.entries().ends_with(&after),
            "an entry that was kept changed"
        );
        for seq in after.iter().map(|body| body.seq) {
            let (found, wanted) = (db.load_at(&owner.thread, seq).await?, owner.history_at(seq));
            ensure_eq!(found.snapshot, wanted.snapshot, "the snapshot as of {seq}");
            ensure_eq!(found.entries, wanted.entries, "the entries as of {seq}");
        }
        // What lies before the snapshot that the oldest kept entry is read from.
        let result = db.load_at(&owner.thread, Seq(base - 1)).await;
        ensure_refused!(
            result,
            NoCheckpoint { .. },
            "a load of an entry that no kept one needs"
        );
        ensure!(
            after[0].seq >= Seq(base),
            "entry {} is needed by none",
            after[0].seq
        );
    }
    ensure_eq!(
        db.entries(&other.thread, Seq(0), 9).await?,
        other.entries(),
        "another thread"
    );
    Ok(())
}

pub(super) async fn prune_without_a_snapshot_drops_nothing(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    for _ in 0..5 {
        owner.save(db, owner.step()).await?;
    }
    ensure_eq!(
        db.prune(&owner.thread, 1).await?,
        0,
        "entries dropped without a snapshot"
    );
    owner.save(db, owner.step_with_snapshot()).await?;
    // Entries 4 to 7 are kept, and can only be read from the first one on.
    ensure_eq!(
        db.prune(&owner.thread, 4).await?,
        0,
        "entries dropped before a late snapshot"
    );
    ensure_eq!(
        db.entries(&owner.thread, Seq(0), 9).await?,
        owner.entries(),
        "the entries"
    );
    Ok(())
}

pub(super) async fn prune_is_repeatable(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save_steps(db, 9).await?;
    ensure_eq!(
        db.prune(&owner.thread, 100).await?,
        0,
        "entries dropped where all are kept"
    );
    ensure!(db.prune(&owner.thread, 2).await? > 0, "nothing was dropped");
    ensure_eq!(
        db.prune(&owner.thread, 2).await?,
        0,
        "entries dropped the second time"
    );
    Ok(())
}

pub(super) async fn pruned_thread_goes_on(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save_steps(db, 8).await?;
    let last = owner.step();
    owner.save(db, last.clone()).await?;
    let before = db.load(&owner.thread).await?;
    db.prune(&owner.thread, 1).await?;
    let after = db.load(&owner.thread).await?;
    ensure_eq!(
        format!("{after:?}"),
        format!("{before:?}"),
        "the thread as it is loaded"
    );
    db.save(&last).await?;
    owner.save_steps(db, 4).await?;
    let history = db.load(&owner.thread).await?.unwrap_or_default().history;
    ensure_eq!(
        history.entries,
        owner.history_at(owner.head.seq).entries,
        "the entries after it"
    );
    Ok(())
}

pub(super) async fn expire_deletes_old_threads_that_rest(db: &dyn Checkpointer) -> Verdict {
    use Status::{Failed, Idle, Paused, Running};
    let cases = [
        (thread("old-idle"), 100, Idle),
        (thread("old-failed"), 200, Failed),
        (thread("old-paused"), 300, Paused),
        (thread_of("acme", "old-idle"), 100, Idle),
        (thread("old-running"), 100, Running),
        (thread("new-idle"), 9_000, Idle),
    ];
    let mut owners = Vec::new();
    for (thread, at, status) in cases {
        let mut owner = Owner::new(&thread);
        owner.at = Timestamp(at);
        owner.save(db, owner.start()).await?;
        owner.save(db, owner.stop(status)).await?;
        owners.push(owner);
    }
    let living: Vec<_> = owners.split_off(4);
    let mut before = Vec::new();
    for owner in &living {
        before.push(dump(db, &owner.thread).await?);
    }
    ensure_eq!(
        db.expire(Timestamp(5_000), 100).await?,
        4,
        "threads that expired"
    );
    for owner in &owners {
        is_gone(db, &owner.thread, owner.head.epoch).await?;
    }
    for (owner, before) in living.iter().zip(before) {
        ensure_eq!(
            dump(db, &owner.thread).await?,
            before,
            "the thread {}",
            owner.thread
        );
    }
    ensure_eq!(
        db.expire(Timestamp(5_000), 100).await?,
        0,
        "threads that expired again"
    );
    Ok(())
}

pub(super) async fn expire_stops_at_the_limit(db: &dyn Checkpointer) -> Verdict {
    for n in 0..5 {
        let mut owner = Owner::started(db, &format!("t{n}")).await?;
        owner.save(db, owner.stop(Status::Idle)).await?;
    }
    for (expired, left) in [(2, 3), (2, 1), (1, 0)] {
        ensure_eq!(
            db.expire(Timestamp(5_000), 2).await?,
            expired,
            "threads that expired"
        );
        let rows = db.threads(&ThreadQuery::default()).await?;
        ensure_eq!(rows.len(), left, "threads that are left");
    }
    Ok(())
}

/// A running thread with something in every table.
async fn furnished(db: &dyn Checkpointer, name: &str) -> Result<Owner, Fault> {
    let mut owner = Owner::started(db, name).await?;
    owner.save_steps(db, 3).await?;
    db.record(&owner.record(1, "step", json!(1))).await?;
    owner.save(db, owner.ask(&[1, 2, 3])).await?;
    db.answer(&owner.thread, &[answer(1, json!(1))]).await?;
    let listing = Some(listing(
        "graph",
        json!({ "user": "ann" }),
        json!({ "n": 5 }),
    ));
    let closed = vec![interrupt_id(3)];
    owner
        .save(
            db,
            Commit {
                listing,
                closed,
                ..owner.step()
            },
        )
        .await?;
    Ok(owner)
}

/// Nothing of a deleted thread can be seen but its epoch.
async fn is_gone(db: &dyn Checkpointer, thread: &ThreadId, epoch: Epoch) -> Verdict {
    let Some(loaded) = db.load(thread).await? else {
        return Err(Fault::new(
            "the epoch of a deleted thread is forgotten".to_owned(),
        ));
    };
    ensure!(
        loaded.head.epoch > epoch,
        "the epoch of its last owner still holds"
    );
    ensure_eq!(
        (loaded.head.seq, loaded.head.status),
        (Seq(0), Status::Deleted),
        "the head of a deleted thread"
    );
    ensure!(loaded.history.snapshot.is_none(), "a snapshot is left");
    ensure_eq!(loaded.history.entries, vec![], "its entries");
    ensure_eq!(loaded.records, vec![], "its records");
    ensure_eq!(loaded.interrupts, vec![], "its questions");
    let entries = db.entries(thread, Seq(0), 100).await;
    let none =
        matches!(&entries, Err(NoThread { .. })) || entries.as_ref().is_ok_and(Vec::is_empty);
    ensure!(none, "its event log has {entries:?}");
    for seq in (0..10).map(Seq) {
        let result = db.load_at(thread, seq).await;
        ensure_refused!(
            result,
            NoThread { .. } | NoCheckpoint { .. },
            "a load at {seq}"
        );
    }
    let tenant = thread.tenant().to_owned();
    for statuses in [vec![], vec![Status::Deleted], vec![loaded.head.status]] {
        let query = ThreadQuery {
            tenant: tenant.clone(),
            statuses,
            page: ALL,
            ..Default::default()
        };
        let rows = db.threads(&query).await?;
        ensure!(
            rows.iter().all(|row| row.thread != *thread),
            "a deleted thread is listed"
        );
    }
    let query = InterruptQuery {
        tenant,
        page: ALL,
        ..InterruptQuery::default()
    };
    let rows = db.interrupts(&query).await?;
    ensure!(
        rows.iter().all(|row| row.thread != *thread),
        "its questions are listed"
    );
    ensure!(
        !unfinished(db, 10_000).await?.contains(thread),
        "a deleted thread is unfinished"
    );
    Ok(())
}

/// One who would make a deleted thread again, as a driver does: from the head that it loads.
async fn successor(db: &dyn Checkpointer, thread: &ThreadId) -> Result<Owner, Fault> {
    let mut owner = Owner::new(thread);
    owner.head = head(db, thread).await?;
    Ok(owner)
}

async fn head(db: &dyn Checkpointer, thread: &ThreadId) -> Result<Head, Fault> {
    Ok(db
        .load(thread)
        .await?
        .map(|loaded| loaded.head)
        .unwrap_or_default())
}

type Unsealed = (Option<(Seq, Snapshot)>, Vec<(Seq, Entry)>);

fn unsealed(thread: &ThreadId, history: History) -> Result<Unsealed, Fault> {
    let snapshot = match history.snapshot {
        Some(stored) => Some((
            stored.seq,
            Snapshot::unseal(&stored.body, thread, stored.seq)?,
        )),
        None => None,
    };
    let mut entries = Vec::new();
    for stored in history.entries {
        entries.push((stored.seq, Entry::unseal(&stored.body, thread, stored.seq)?));
    }
    Ok((snapshot, entries))
}
