//! Leases: set by claims, renewed by owners, listed for those who recover.

use serde_json::json;
use superstep_core::checkpoint::{Checkpointer, Commit, Status};
use superstep_core::{Epoch, Timestamp};

use crate::report::{Fault, Verdict, ensure, ensure_eq};
use crate::sample::{Owner, answer, thread};

/// What `unfinished` says of a thread: the epoch and the lease; `None` if it is not among them.
async fn listed(
    db: &dyn Checkpointer,
    owner: &Owner,
) -> Result<Option<(Epoch, Option<Timestamp>)>, Fault> {
    let found = db.unfinished(None, 100).await?.into_iter();
    let mut own = found.filter(|found| found.thread == owner.thread);
    let listed = own.next().map(|found| (found.epoch, found.lease));
    let glance = db.glance(&owner.thread, None).await?;
    let seen = glance.map(|glance| glance.lease);
    ensure_eq!(
        seen.flatten(),
        listed.and_then(|(_, lease)| lease),
        "the lease at a glance"
    );
    Ok(listed)
}

fn leased(commit: Commit, lease: i64) -> Commit {
    let lease = Some(Timestamp(lease));
    Commit { lease, ..commit }
}

pub(super) async fn claim_sets_the_lease(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::new(&thread("t"));
    owner.save(db, leased(owner.start(), 5_000)).await?;
    let wanted = |lease| Some((owner.head.epoch, lease));
    ensure_eq!(
        listed(db, &owner).await?,
        wanted(Some(Timestamp(5_000))),
        "a start's lease"
    );
    owner.save(db, leased(owner.claim(), 6_000)).await?;
    let wanted = |lease| Some((owner.head.epoch, lease));
    ensure_eq!(
        listed(db, &owner).await?,
        wanted(Some(Timestamp(6_000))),
        "the lease of the next owner"
    );
    owner.save(db, owner.claim()).await?;
    let wanted = |lease| Some((owner.head.epoch, lease));
    ensure_eq!(
        listed(db, &owner).await?,
        wanted(None),
        "the lease of an owner that has none"
    );
    Ok(())
}

pub(super) async fn superstep_keeps_the_lease(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::new(&thread("t"));
    owner.save(db, leased(owner.start(), 5_000)).await?;
    for commit in [Owner::step, Owner::step_with_snapshot] {
        owner.save(db, leased(commit(&owner), 9_000)).await?;
        let wanted = Some((owner.head.epoch, Some(Timestamp(5_000))));
        ensure_eq!(
            listed(db, &owner).await?,
            wanted,
            "the lease after a superstep"
        );
    }
    Ok(())
}

pub(super) async fn owner_renews_its_leases(db: &dyn Checkpointer) -> Verdict {
    let (mut a, mut b) = (Owner::new(&thread("a")), Owner::new(&thread("b")));
    let mut other = Owner::new(&thread("other"));
    for owner in [&mut a, &mut b, &mut other] {
        owner.save(db, leased(owner.start(), 5_000)).await?;
    }
    let owned = [&a, &b].map(|owner| (owner.thread.clone(), owner.head.epoch));
    db.renew(&owned, Timestamp(8_000)).await?;
    for owner in [&a, &b] {
        let wanted = Some((owner.head.epoch, Some(Timestamp(8_000))));
        ensure_eq!(listed(db, owner).await?, wanted, "a renewed lease");
    }
    let wanted = Some((other.head.epoch, Some(Timestamp(5_000))));
    ensure_eq!(
        listed(db, &other).await?,
        wanted,
        "a lease that was not named"
    );
    db.renew(&owned[..1], Timestamp(0)).await?;
    let wanted = Some((a.head.epoch, Some(Timestamp(0))));
    ensure_eq!(listed(db, &a).await?, wanted, "a lease that was ended");
    db.renew(&[], Timestamp(9_000)).await?;
    Ok(())
}

pub(super) async fn former_owner_renews_nothing(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::new(&thread("t"));
    owner.save(db, leased(owner.start(), 5_000)).await?;
    let former = (owner.thread.clone(), owner.head.epoch);
    owner.save(db, leased(owner.claim(), 6_000)).await?;
    let later = (owner.thread.clone(), owner.head.epoch.next());
    let missing = (thread("missing"), Epoch(1));
    db.renew(&[former, later, missing], Timestamp(9_000))
        .await?;
    let wanted = Some((owner.head.epoch, Some(Timestamp(6_000))));
    ensure_eq!(
        listed(db, &owner).await?,
        wanted,
        "the lease of another owner"
    );
    ensure!(
        db.load(&thread("missing")).await?.is_none(),
        "a renewal made a thread"
    );
    Ok(())
}

pub(super) async fn thread_that_rests_has_no_lease(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::new(&thread("t"));
    owner.save(db, leased(owner.start(), 5_000)).await?;
    owner.save(db, owner.stop(Status::Idle)).await?;
    let owned = [(owner.thread.clone(), owner.head.epoch)];
    db.renew(&owned, Timestamp(9_000)).await?;
    ensure_eq!(listed(db, &owner).await?, None, "a thread that finished");
    let head = db.load(&owner.thread).await?.unwrap_or_default().head;
    ensure_eq!(head, owner.head, "the head after a renewal");

    let mut paused = Owner::new(&thread("paused"));
    paused.save(db, leased(paused.start(), 5_000)).await?;
    paused.save(db, paused.pause(&[1])).await?;
    db.answer(&paused.thread, &[answer(1, json!(1))]).await?;
    let wanted = Some((paused.head.epoch, None));
    ensure_eq!(
        listed(db, &paused).await?,
        wanted,
        "a paused thread with an answer"
    );
    Ok(())
}
