//! A glance at a thread: where it stands, without its history.

use serde_json::json;
use superstep_core::checkpoint::{Checkpointer, Glance, RecordRow, Status};

use crate::report::{Fault, Verdict, ensure, ensure_eq};
use crate::sample::{Owner, answer, task_id, thread};

pub(super) async fn glance_at_no_thread_is_none(db: &dyn Checkpointer) -> Verdict {
    Owner::started(db, "there").await?;
    let glance = db.glance(&thread("missing"), None).await?;
    ensure!(glance.is_none(), "a thread that never was is seen");
    Ok(())
}

pub(super) async fn glance_shows_where_a_thread_stands(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    stands(db, &owner).await?;
    owner.save_steps(db, 3).await?;
    stands(db, &owner).await?;
    owner.save(db, owner.claim()).await?;
    stands(db, &owner).await?;
    owner.save(db, owner.stop(Status::Failed)).await?;
    stands(db, &owner).await?;
    db.delete(&owner.thread).await?;
    let glance = seen(db, &owner, None).await?;
    ensure_eq!(glance.status, Status::Deleted, "what a deleted thread does");
    ensure!(
        glance.epoch > owner.head.epoch,
        "a deleted thread is at the epoch of its last owner"
    );
    Ok(())
}

pub(super) async fn glance_shows_the_records_of_one_task(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let of_task = [
        owner.record(1, "a", json!("first")),
        owner.record(1, "b", json!({ "n": 2 })),
    ];
    for record in of_task.iter().rev() {
        db.record(record).await?;
    }
    db.record(&owner.record(2, "a", json!("another task's")))
        .await?;
    let other = Owner::started(db, "another").await?;
    db.record(&other.record(1, "a", json!("another thread's")))
        .await?;
    let wanted: Vec<RecordRow> = of_task
        .iter()
        .map(|write| RecordRow {
            task: write.task,
            key: write.key.clone(),
            body: write.body.clone(),
        })
        .collect();
    let glance = seen(db, &owner, Some(1)).await?;
    ensure_eq!(glance.records, wanted, "the records of the task");
    let glance = seen(db, &owner, Some(3)).await?;
    ensure!(glance.records.is_empty(), "records of a task that has none");
    let glance = seen(db, &owner, None).await?;
    ensure!(glance.records.is_empty(), "records that nobody asked for");
    Ok(())
}

pub(super) async fn glance_shows_a_wish_to_cancel(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    ensure!(!seen(db, &owner, None).await?.cancel, "nobody wishes it");
    db.request_cancel(&owner.thread).await?;
    ensure!(seen(db, &owner, None).await?.cancel, "a wish is not seen");
    owner.save_steps(db, 1).await?;
    ensure!(
        seen(db, &owner, None).await?.cancel,
        "a step took the wish back"
    );
    owner.save(db, owner.claim()).await?;
    ensure!(
        !seen(db, &owner, None).await?.cancel,
        "a claim kept the wish"
    );
    Ok(())
}

pub(super) async fn glance_shows_answers_that_nobody_has_seen(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.pause(&[1, 2])).await?;
    ensure!(!seen(db, &owner, None).await?.unseen, "there is no answer");
    db.answer(&owner.thread, &[answer(1, json!(true))]).await?;
    ensure!(
        seen(db, &owner, None).await?.unseen,
        "an answer is overlooked"
    );
    owner.head.answers = 1;
    owner.save(db, owner.claim()).await?;
    ensure!(
        !seen(db, &owner, None).await?.unseen,
        "an answer that the owner has seen"
    );
    Ok(())
}

async fn stands(db: &dyn Checkpointer, owner: &Owner) -> Verdict {
    let glance = seen(db, owner, None).await?;
    ensure_eq!(glance.epoch, owner.head.epoch, "the epoch");
    ensure_eq!(glance.status, owner.head.status, "the status");
    Ok(())
}

async fn seen(db: &dyn Checkpointer, owner: &Owner, task: Option<u8>) -> Result<Glance, Fault> {
    let glance = db.glance(&owner.thread, task.map(task_id)).await?;
    glance.ok_or_else(|| Fault::new("the thread is not seen".to_owned()))
}
