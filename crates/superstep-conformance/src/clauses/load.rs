//! Reading a thread: at its head, as of any entry, and as a log.

use serde_json::json;
use superstep_core::checkpoint::format::EntryKind;
use superstep_core::checkpoint::{Checkpointer, Commit, History, Status, StoredBody};
use superstep_core::error::CheckpointError::{NoCheckpoint, NoThread};
use superstep_core::{Seq, Timestamp};

use crate::report::{Verdict, ensure, ensure_eq, ensure_refused};
use crate::sample::{Owner, entry, thread};

pub(super) async fn missing_thread_is_none(db: &dyn Checkpointer) -> Verdict {
    Owner::started(db, "there").await?;
    ensure!(
        db.load(&thread("missing")).await?.is_none(),
        "a thread that never was is loaded"
    );
    Ok(())
}

pub(super) async fn load_begins_at_the_newest_snapshot(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    for _ in 0..10 {
        owner.save_steps(db, 1).await?;
        let loaded = db.load(&owner.thread).await?.unwrap_or_default();
        is_history_at(&owner, owner.head.seq, &loaded.history)?;
    }
    Ok(())
}

pub(super) async fn load_without_a_snapshot_is_everything(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    for _ in 0..10 {
        owner.save(db, owner.step()).await?;
    }
    let history = db.load(&owner.thread).await?.unwrap_or_default().history;
    ensure!(history.snapshot.is_none(), "a snapshot that nobody took");
    ensure_eq!(
        history.entries,
        owner.entries(),
        "the entries that are loaded"
    );
    Ok(())
}

pub(super) async fn load_at_every_sequence(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save_steps(db, 12).await?;
    owner.save(db, owner.stop(Status::Idle)).await?;
    owner.save(db, owner.start()).await?;
    owner.save_steps(db, 3).await?;
    for seq in (1..=owner.head.seq.0).map(Seq) {
        is_history_at(&owner, seq, &db.load_at(&owner.thread, seq).await?)?;
    }
    Ok(())
}

pub(super) async fn load_at_outside_the_history_is_refused(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save_steps(db, 3).await?;
    for seq in [Seq(0), owner.head.seq.next(), Seq(1 << 40), Seq(u64::MAX)] {
        let result = db.load_at(&owner.thread, seq).await;
        ensure_refused!(result, NoCheckpoint { .. }, "a load at {seq}");
    }
    Ok(())
}

pub(super) async fn load_at_no_thread_is_refused(db: &dyn Checkpointer) -> Verdict {
    let result = db.load_at(&thread("missing"), Seq(1)).await;
    ensure_refused!(
        result,
        NoThread { .. } | NoCheckpoint { .. },
        "a load of no thread"
    );
    Ok(())
}

pub(super) async fn entries_from_any_point(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save_steps(db, 9).await?;
    let all = owner.entries();
    for after in 0..=all.len() {
        let entries = db.entries(&owner.thread, Seq(after as u64), 100).await?;
        ensure_eq!(entries, all[after..], "the entries after {after}");
    }
    for after in [1 << 40, u64::MAX].map(Seq) {
        let beyond = db.entries(&owner.thread, after, 100).await?;
        ensure_eq!(beyond, vec![], "the entries after {after}");
    }
    Ok(())
}

pub(super) async fn entries_stop_at_the_limit(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save_steps(db, 9).await?;
    let (all, mut read) = (owner.entries(), Vec::new());
    loop {
        let after = read.last().map_or(Seq(0), |body: &StoredBody| body.seq);
        let part = db.entries(&owner.thread, after, 4).await?;
        ensure!(
            part.len() <= 4,
            "{} entries where four were asked for",
            part.len()
        );
        if part.is_empty() {
            break;
        }
        read.extend(part);
    }
    ensure_eq!(read, all, "the entries that were read four by four");
    ensure_eq!(
        db.entries(&owner.thread, Seq(0), 0).await?,
        vec![],
        "no entries"
    );
    Ok(())
}

pub(super) async fn order_is_the_sequence_not_the_clock(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    for at in [5_000, 5_000, 4_000, -1, i64::MIN, i64::MAX, 0, 0] {
        owner.at = Timestamp(at);
        owner.save_steps(db, 1).await?;
    }
    let entries = db.entries(&owner.thread, Seq(0), 100).await?;
    ensure_eq!(
        entries,
        owner.entries(),
        "the entries of a clock that jumped"
    );
    for seq in (1..=owner.head.seq.0).map(Seq) {
        is_history_at(&owner, seq, &db.load_at(&owner.thread, seq).await?)?;
    }
    let loaded = db.load(&owner.thread).await?.unwrap_or_default();
    is_history_at(&owner, owner.head.seq, &loaded.history)
}

pub(super) async fn large_bodies_are_kept_whole(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let step = owner.step();
    let note = json!({ "large": "é\u{0}\u{7f}".repeat(1 << 18) });
    let entry = entry(&owner.thread, step.head.seq, EntryKind::Step, step.at, note);
    owner
        .save(
            db,
            Commit {
                entry: Some(entry),
                ..step
            },
        )
        .await?;
    let entries = db.entries(&owner.thread, Seq(0), 100).await?;
    ensure!(
        entries == owner.entries(),
        "an entry of a megabyte came back changed"
    );
    Ok(())
}

fn is_history_at(owner: &Owner, seq: Seq, found: &History) -> Verdict {
    let wanted = owner.history_at(seq);
    ensure_eq!(found.snapshot, wanted.snapshot, "the snapshot as of {seq}");
    ensure_eq!(found.entries, wanted.entries, "the entries as of {seq}");
    Ok(())
}
