//! What a refusal says: the caller learns from the error's fields what stood in the way.

use serde_json::json;
use superstep_core::Seq;
use superstep_core::checkpoint::Checkpointer;
use superstep_core::error::CheckpointError::{Fenced, NoCheckpoint, NoThread, NotOpen};

use crate::report::{Verdict, ensure};
use crate::sample::{Owner, answer, interrupt_id, thread};

pub(super) async fn fence_names_the_epoch_that_was_held(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let former = owner.clone();
    owner.save(db, owner.claim()).await?;
    let held = former.head.epoch;
    let saved = db.save(&former.step()).await;
    ensure!(
        matches!(&saved, Err(Fenced { thread, epoch }) if *thread == owner.thread && *epoch == held),
        "a step under {held:?} was told {saved:?}"
    );
    let recorded = db.record(&former.record(1, "key", json!(1))).await;
    ensure!(
        matches!(&recorded, Err(Fenced { thread, epoch }) if *thread == owner.thread && *epoch == held),
        "a record under {held:?} was told {recorded:?}"
    );
    Ok(())
}

pub(super) async fn conflict_names_the_question(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.pause(&[1, 2, 3])).await?;
    db.answer(&owner.thread, &[answer(2, json!("first"))])
        .await?;
    let late = [1, 2, 3].map(|n| answer(n, json!("late")));
    let told = db.answer(&owner.thread, &late).await;
    ensure!(
        matches!(&told, Err(NotOpen { thread, interrupt })
            if *thread == owner.thread && *interrupt == interrupt_id(2)),
        "of three questions the second has an answer, yet the call was told {told:?}"
    );
    Ok(())
}

pub(super) async fn missing_entry_is_named(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let loaded = db.load_at(&owner.thread, Seq(9)).await;
    ensure!(
        matches!(&loaded, Err(NoCheckpoint { thread, seq }) if *thread == owner.thread && *seq == Seq(9)),
        "a load at 9 was told {loaded:?}"
    );
    let copied = db.copy(&owner.thread, Some(Seq(9)), &thread("to")).await;
    ensure!(
        matches!(&copied, Err(NoCheckpoint { thread, seq }) if *thread == owner.thread && *seq == Seq(9)),
        "a copy up to 9 was told {copied:?}"
    );
    Ok(())
}

pub(super) async fn missing_thread_is_named(db: &dyn Checkpointer) -> Verdict {
    let gone = thread("gone");
    let cancelled = db.request_cancel(&gone).await;
    ensure!(
        matches!(&cancelled, Err(NoThread { thread }) if *thread == gone),
        "a cancel was told {cancelled:?}"
    );
    let copied = db.copy(&gone, None, &thread("to")).await;
    ensure!(
        matches!(&copied, Err(NoThread { thread }) if *thread == gone),
        "a copy was told {copied:?}"
    );
    Ok(())
}
