//! Fencing, idempotence, claims, the request to cancel.

use serde_json::json;
use superstep_core::checkpoint::{
    Checkpointer, Commit, Head, Released, ReleasedRecords, Saved, Status,
};
use superstep_core::error::CheckpointError::{Fenced, NoThread};
use superstep_core::{Epoch, Seq, Timestamp};

use crate::poll::{join, join_all};
use crate::report::{Fault, Verdict, ensure, ensure_eq, ensure_refused};
use crate::sample::{Owner, answer, dump, interrupt_id, listing, noted, task_id, thread};

pub(super) async fn first_commit_makes_the_thread(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let loaded = loaded_head(db, &owner).await?;
    let wanted = Head {
        epoch: Epoch(1),
        seq: Seq(1),
        status: Status::Running,
        ..Head::default()
    };
    ensure_eq!(loaded, wanted, "the head of a new thread");
    Ok(())
}

pub(super) async fn head_is_stored_as_given(db: &dyn Checkpointer) -> Verdict {
    use Status::{Cancelled, Failed, Idle, Paused, Running, StepLimit};
    let mut owner = Owner::started(db, "t").await?;
    for (recoveries, status) in (0..).zip([Running, Idle, Paused, Failed, Cancelled, StepLimit]) {
        let commit = owner.step();
        let head = Head {
            status,
            recoveries,
            ..commit.head
        };
        owner.save(db, Commit { head, ..commit }).await?;
        ensure_eq!(
            loaded_head(db, &owner).await?,
            head,
            "the head after a commit"
        );
    }
    Ok(())
}

pub(super) async fn steps_follow_each_other(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    for _ in 0..20 {
        let saved = owner.save(db, owner.step()).await?;
        ensure_eq!(saved, Saved::default(), "the answer to a step");
    }
    ensure_eq!(
        loaded_head(db, &owner).await?,
        owner.head,
        "the head after 20 steps"
    );
    Ok(())
}

pub(super) async fn start_of_an_existing_thread_is_fenced(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.step()).await?;
    let mut newcomer = Owner::new(&owner.thread);
    newcomer.at = Timestamp(5_000);
    refused_without_a_trace(db, &newcomer.start(), "a start that expects no thread").await
}

pub(super) async fn late_copy_of_a_pruned_step_is_fenced(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let late = owner.step();
    owner.save_steps(db, 8).await?;
    db.prune(&owner.thread, 1).await?;
    let before = dump(db, &owner.thread).await?;
    ensure_refused!(db.save(&late).await, Fenced { .. }, "a late copy");
    ensure_eq!(dump(db, &owner.thread).await?, before, "the thread");
    owner.save(db, owner.step()).await?;
    Ok(())
}

pub(super) async fn stale_epoch_is_fenced(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let former = owner.clone();
    owner.save(db, owner.claim()).await?;
    refused_without_a_trace(db, &former.step(), "a step under the former epoch").await
}

pub(super) async fn stale_sequence_is_fenced(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let behind = owner.clone();
    owner.save(db, owner.step()).await?;
    refused_without_a_trace(
        db,
        &behind.start(),
        "a claim that has not seen the last step",
    )
    .await
}

pub(super) async fn stale_epoch_and_sequence_are_fenced(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let former = owner.clone();
    owner.save(db, owner.claim()).await?;
    owner.save(db, owner.step()).await?;
    refused_without_a_trace(db, &former.step(), "a step of a former owner").await
}

pub(super) async fn sequence_ahead_is_fenced(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let mut ahead = owner.clone();
    ahead.head.seq = Seq(7);
    refused_without_a_trace(db, &ahead.step(), "a step that would leave a gap").await
}

pub(super) async fn epoch_ahead_is_fenced(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let mut ahead = owner.clone();
    ahead.head.epoch = Epoch(7);
    refused_without_a_trace(db, &ahead.step(), "a step under an epoch nobody claimed").await
}

pub(super) async fn commit_to_no_thread_is_fenced(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::new(&thread("t"));
    owner.head = Head {
        epoch: Epoch(3),
        seq: Seq(4),
        ..Head::default()
    };
    ensure_refused!(
        db.save(&owner.step()).await,
        Fenced { .. },
        "a step of no thread"
    );
    ensure_refused!(
        db.save(&owner.claim()).await,
        Fenced { .. },
        "a claim of no thread"
    );
    ensure!(
        db.load(&owner.thread).await?.is_none(),
        "a refused commit made a thread"
    );
    Ok(())
}

pub(super) async fn fenced_commit_changes_nothing(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.pause(&[1])).await?;
    db.record(&owner.record(9, "step", json!(1))).await?;
    let former = owner.clone();
    owner.save(db, owner.claim()).await?;

    let all = Commit {
        snapshot: former.step_with_snapshot().snapshot,
        closed: vec![interrupt_id(1)],
        released: vec![Released {
            task: task_id(9),
            which: ReleasedRecords::All,
        }],
        listing: Some(listing("other", json!({ "a": 1 }), json!({ "b": 2 }))),
        ..former.ask(&[2])
    };
    refused_without_a_trace(db, &all, "a commit of a former owner").await
}

pub(super) async fn claim_keeps_the_history(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save_steps(db, 4).await?;
    owner.save(db, owner.claim()).await?;
    ensure_eq!(
        loaded_head(db, &owner).await?,
        owner.head,
        "the head after a bare claim"
    );
    ensure_eq!(owner.head.recoveries, 1, "the recoveries after a claim");
    let entries = db.entries(&owner.thread, Seq(0), 100).await?;
    ensure_eq!(entries, owner.entries(), "the entries after a bare claim");
    Ok(())
}

pub(super) async fn claim_fences_the_former_owner(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let mut former = owner.clone();
    owner.save(db, owner.claim()).await?;
    former.at = Timestamp(9_000);
    refused_without_a_trace(db, &former.step(), "a later step of the former owner").await?;
    owner.save(db, owner.step()).await?;
    refused_without_a_trace(
        db,
        &former.stop(Status::Idle),
        "the end of the former owner's run",
    )
    .await
}

pub(super) async fn claim_from_a_stale_head_is_fenced(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let behind = owner.clone();
    owner.save(db, owner.claim()).await?;
    owner.save(db, owner.claim()).await?;
    refused_without_a_trace(db, &behind.claim(), "a claim of an epoch that is over").await
}

pub(super) async fn claim_with_an_entry_does_both(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.stop(Status::Idle)).await?;
    let former = owner.clone();
    owner.save(db, owner.start()).await?;
    let wanted = Head {
        epoch: Epoch(2),
        seq: Seq(3),
        status: Status::Running,
        ..Head::default()
    };
    ensure_eq!(
        loaded_head(db, &owner).await?,
        wanted,
        "the head after a second start"
    );
    let mut late = former.step();
    late.at = Timestamp(9_000);
    refused_without_a_trace(db, &late, "a step of the first run").await
}

pub(super) async fn racing_claims_have_one_winner(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let one = owner.claim();
    // A bare claim carries nothing to tell it by, so one for the same epoch would pass for a retry.
    let mut two = owner.claim();
    two.head.epoch = two.head.epoch.next();
    let (first, second) = join(db.save(&one), db.save(&two)).await;
    ensure!(
        first.is_ok() != second.is_ok(),
        "two claims raced: {first:?} and {second:?}"
    );
    let winner = if first.is_ok() { &one } else { &two };
    ensure_eq!(
        loaded_head(db, &owner).await?,
        winner.head,
        "the head after the race"
    );
    Ok(())
}

pub(super) async fn racing_starts_have_one_winner(db: &dyn Checkpointer) -> Verdict {
    let thread = thread("t");
    let starts: Vec<Commit> = (0..8)
        .map(|n| start_with_input(&Owner::new(&thread), n))
        .collect();
    let results = join_all(starts.iter().map(|start| db.save(start))).await;
    let winners: Vec<usize> = (0..8).filter(|&n| results[n].is_ok()).collect();
    ensure_eq!(
        winners.len(),
        1,
        "starts with different inputs that were acknowledged"
    );
    let stored = db.entries(&thread, Seq(0), 100).await?;
    ensure_eq!(stored.len(), 1, "entries after the race");
    ensure!(
        Some(&stored[0].body) == starts[winners[0]].entry.as_ref(),
        "the input that was acknowledged is not the one that is stored"
    );
    Ok(())
}

pub(super) async fn racing_steps_of_two_owners_have_one_winner(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let (step, takeover) = (owner.step(), start_with_input(&owner, 5));
    let (stepped, taken) = join(db.save(&step), db.save(&takeover)).await;
    ensure!(
        stepped.is_ok() != taken.is_ok(),
        "both or neither won: {stepped:?}, {taken:?}"
    );
    let winner = if stepped.is_ok() { step } else { takeover };
    let stored = db.entries(&owner.thread, Seq(1), 100).await?;
    ensure!(
        stored.len() == 1 && Some(&stored[0].body) == winner.entry.as_ref(),
        "the entry that is stored is not the winner's"
    );
    Ok(())
}

pub(super) async fn same_commit_twice_is_applied_once(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let step = owner.step_with_snapshot();
    let saved = owner.save(db, step.clone()).await?;
    told_saved_without_a_trace(db, &step, &saved).await
}

pub(super) async fn same_start_twice_is_applied_once(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::new(&thread("t"));
    let start = owner.start();
    let saved = owner.save(db, start.clone()).await?;
    told_saved_without_a_trace(db, &start, &saved).await
}

pub(super) async fn same_claim_twice_is_applied_once(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let claim = owner.claim();
    let saved = owner.save(db, claim.clone()).await?;
    told_saved_without_a_trace(db, &claim, &saved).await
}

pub(super) async fn racing_retries_are_applied_once(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let step = owner.step();
    for result in join_all((0..8).map(|_| db.save(&step))).await {
        result?;
    }
    owner.went_on(step);
    let entries = db.entries(&owner.thread, Seq(0), 100).await?;
    ensure_eq!(
        entries,
        owner.entries(),
        "the entries after eight tries of one commit"
    );
    owner.save(db, owner.step()).await?;
    Ok(())
}

pub(super) async fn retry_after_later_commits_is_told_saved(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let step = owner.step();
    let saved = owner.save(db, step.clone()).await?;
    owner.save_steps(db, 5).await?;
    told_saved_without_a_trace(db, &step, &saved).await
}

pub(super) async fn retry_after_a_takeover_is_told_saved(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let step = owner.step();
    let saved = owner.save(db, step.clone()).await?;
    owner.save(db, owner.claim()).await?;
    owner.save(db, owner.step()).await?;
    told_saved_without_a_trace(db, &step, &saved).await
}

pub(super) async fn retry_undoes_nothing(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let asks = Commit {
        released: vec![Released {
            task: task_id(9),
            which: ReleasedRecords::All,
        }],
        listing: Some(listing(
            "old",
            json!({ "old": true }),
            json!({ "old": true }),
        )),
        ..owner.ask(&[1])
    };
    let saved = owner.save(db, asks.clone()).await?;
    db.record(&owner.record(9, "step", json!("kept"))).await?;
    db.answer(&owner.thread, &[answer(1, json!("yes"))]).await?;
    let closes = Commit {
        closed: vec![interrupt_id(1)],
        listing: Some(listing(
            "new",
            json!({ "new": true }),
            json!({ "new": true }),
        )),
        ..owner.step()
    };
    owner.save(db, closes).await?;
    told_saved_without_a_trace(db, &asks, &saved).await
}

pub(super) async fn retry_tells_the_same_answers(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.ask(&[1])).await?;
    db.answer(&owner.thread, &[answer(1, json!("yes"))]).await?;
    db.request_cancel(&owner.thread).await?;
    let pause = owner.pause(&[1]);
    let saved = owner.save(db, pause.clone()).await?;
    ensure!(
        saved.cancel && saved.unseen.is_some(),
        "the pause was told {saved:?}"
    );
    told_saved_without_a_trace(db, &pause, &saved).await
}

pub(super) async fn other_epoch_at_the_same_sequence_is_fenced(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let former = owner.clone();
    owner.save(db, owner.claim()).await?;
    owner.save(db, owner.step()).await?;
    // Equal bytes, equal sequence: only the epoch says that it was not this one's work.
    let step = former.step();
    ensure_eq!(step.head.seq, owner.head.seq, "the sequence of both steps");
    refused_without_a_trace(db, &step, "a step that another owner made").await
}

pub(super) async fn other_entry_under_the_same_epoch_is_fenced(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.stop(Status::Idle)).await?;
    let (one, two) = (start_with_input(&owner, 1), start_with_input(&owner, 2));
    owner.save(db, one).await?;
    refused_without_a_trace(db, &two, "another start for the same epoch").await
}

pub(super) async fn crowd_of_commits_keeps_the_fenced_apart(db: &dyn Checkpointer) -> Verdict {
    let mut commits = Vec::new();
    for n in 0..200 {
        let mut owner = Owner::started(db, &format!("t{n}")).await?;
        if n % 3 == 0 {
            owner.head.epoch = Epoch(9);
        }
        commits.push(owner.step());
    }
    // All are sent before the first is answered, so that they meet wherever the store gathers them.
    let saved = join_all(commits.iter().map(|commit| db.save(commit))).await;
    for (n, (commit, saved)) in commits.iter().zip(saved).enumerate() {
        let entries = db.entries(&commit.thread, Seq(0), 10).await?.len();
        if n % 3 == 0 {
            ensure_refused!(saved, Fenced { .. }, "a stale commit in a crowd");
            ensure_eq!(entries, 1, "entries after a stale commit in a crowd");
        } else {
            ensure!(
                saved.is_ok(),
                "a sound commit in a crowd was told {saved:?}"
            );
            ensure_eq!(entries, 2, "entries after a sound commit in a crowd");
        }
    }
    Ok(())
}

pub(super) async fn threads_do_not_mix(db: &dyn Checkpointer) -> Verdict {
    let mut owners = Vec::new();
    for name in ["a", "b", "c"] {
        owners.push(Owner::started(db, name).await?);
    }
    for round in 0..6 {
        for (n, owner) in owners.iter_mut().enumerate() {
            owner.save_steps(db, 1 + (round + n as u64) % 2).await?;
        }
    }
    for owner in &owners {
        ensure_eq!(
            loaded_head(db, owner).await?,
            owner.head,
            "the head of {}",
            owner.thread
        );
        let entries = db.entries(&owner.thread, Seq(0), 100).await?;
        ensure_eq!(entries, owner.entries(), "the entries of {}", owner.thread);
    }
    Ok(())
}

pub(super) async fn cancel_is_told_with_each_commit(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    ensure!(
        !owner.save(db, owner.step()).await?.cancel,
        "a cancel that nobody asked for"
    );
    db.request_cancel(&owner.thread).await?;
    db.request_cancel(&owner.thread).await?;
    ensure!(
        owner.save(db, owner.step()).await?.cancel,
        "the request was not told"
    );
    ensure!(
        owner.save(db, owner.step()).await?.cancel,
        "the request was forgotten"
    );
    ensure!(
        owner.save(db, owner.stop(Status::Cancelled)).await?.cancel,
        "not told at the end"
    );
    Ok(())
}

pub(super) async fn cancel_is_cleared_by_a_claim(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    db.request_cancel(&owner.thread).await?;
    ensure!(
        !owner.save(db, owner.claim()).await?.cancel,
        "a bare claim was told an old request"
    );
    ensure!(
        !owner.save(db, owner.step()).await?.cancel,
        "an old request outlived a claim"
    );
    owner.save(db, owner.stop(Status::Idle)).await?;
    db.request_cancel(&owner.thread).await?;
    ensure!(
        !owner.save(db, owner.start()).await?.cancel,
        "a start was told an old request"
    );
    ensure!(
        !owner.save(db, owner.step()).await?.cancel,
        "an old request outlived a start"
    );
    Ok(())
}

pub(super) async fn cancel_of_no_thread_is_refused(db: &dyn Checkpointer) -> Verdict {
    let gone = thread("gone");
    ensure_refused!(
        db.request_cancel(&gone).await,
        NoThread { .. },
        "a cancel of no thread"
    );
    ensure!(
        db.load(&gone).await?.is_none(),
        "a refused cancel made a thread"
    );
    Ok(())
}

pub(super) async fn cancel_reaches_one_thread_only(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "a").await?;
    let other = Owner::started(db, "b").await?;
    db.request_cancel(&other.thread).await?;
    ensure!(
        !owner.save(db, owner.step()).await?.cancel,
        "told the request of another thread"
    );
    Ok(())
}

async fn loaded_head(db: &dyn Checkpointer, owner: &Owner) -> Result<Head, Fault> {
    let loaded = db.load(&owner.thread).await?;
    Ok(loaded.map(|loaded| loaded.head).unwrap_or_default())
}

fn start_with_input(owner: &Owner, input: u64) -> Commit {
    noted(owner.start(), json!({ "input": input }))
}

async fn refused_without_a_trace(db: &dyn Checkpointer, commit: &Commit, what: &str) -> Verdict {
    let before = dump(db, &commit.thread).await?;
    ensure_refused!(db.save(commit).await, Fenced { .. }, "{what}");
    ensure_eq!(
        dump(db, &commit.thread).await?,
        before,
        "the thread after {what} was refused"
    );
    Ok(())
}

async fn told_saved_without_a_trace(
    db: &dyn Checkpointer,
    commit: &Commit,
    saved: &Saved,
) -> Verdict {
    let before = dump(db, &commit.thread).await?;
    ensure_eq!(
        db.save(commit).await?,
        *saved,
        "the answer to the same commit again"
    );
    ensure_eq!(
        dump(db, &commit.thread).await?,
        before,
        "the thread after the same commit again"
    );
    Ok(())
}
