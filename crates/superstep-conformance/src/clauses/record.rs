//! Records: the small door that a node writes through while it runs.

use serde_json::json;
use superstep_core::checkpoint::{
    Checkpointer, Commit, RESULT_KEY, RecordWrite, Released, ReleasedRecords,
};
use superstep_core::error::CheckpointError::Fenced;
use superstep_core::{Epoch, TaskId};

use crate::poll::join_all;
use crate::report::{Fault, Verdict, ensure, ensure_eq, ensure_refused};
use crate::sample::{Owner, task_id, thread};

pub(super) async fn first_record_is_given_back(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let record = owner.record(1, "search", json!({ "found": 3 }));
    ensure_eq!(db.record(&record).await?, record.body, "what is stored");
    ensure_eq!(
        stored(db, &owner).await?,
        vec![row(&record)],
        "the records that are loaded"
    );
    Ok(())
}

pub(super) async fn first_record_wins(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let first = owner.record(1, "search", json!("first"));
    let second = owner.record(1, "search", json!("second"));
    db.record(&first).await?;
    ensure_eq!(
        db.record(&second).await?,
        first.body,
        "what the second writer is given"
    );
    ensure_eq!(
        stored(db, &owner).await?,
        vec![row(&first)],
        "the records that are loaded"
    );
    Ok(())
}

pub(super) async fn racing_records_agree(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let writes: Vec<_> = (0..16)
        .map(|n| owner.record(1, "search", json!({ "n": n })))
        .collect();
    let results = join_all(writes.iter().map(|write| db.record(write))).await;
    let kept = stored(db, &owner).await?;
    ensure_eq!(kept.len(), 1, "records after the race");
    for given in results {
        ensure_eq!(given?, kept[0].2, "what a writer in the race was given");
    }
    Ok(())
}

pub(super) async fn record_of_a_former_owner_is_fenced(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let kept = owner.record(1, "early", json!(1));
    db.record(&kept).await?;
    let late = owner.record(1, "late", json!(1));
    owner.save(db, owner.claim()).await?;
    ensure_refused!(
        db.record(&late).await,
        Fenced { .. },
        "a record of a former owner"
    );
    ensure_refused!(
        db.record(&kept).await,
        Fenced { .. },
        "a repeat of a former owner"
    );
    ensure_eq!(
        stored(db, &owner).await?,
        vec![row(&kept)],
        "the records that are loaded"
    );
    Ok(())
}

pub(super) async fn record_at_a_later_epoch_is_fenced(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let record = RecordWrite {
        epoch: Epoch(2),
        ..owner.record(1, "key", json!(1))
    };
    ensure_refused!(
        db.record(&record).await,
        Fenced { .. },
        "a record under a later epoch"
    );
    ensure_eq!(
        stored(db, &owner).await?,
        vec![],
        "the records that are loaded"
    );
    Ok(())
}

pub(super) async fn record_of_no_thread_is_fenced(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::new(&thread("t"));
    for epoch in [Epoch(0), Epoch(1)] {
        owner.head.epoch = epoch;
        let record = owner.record(1, "key", json!(1));
        ensure_refused!(
            db.record(&record).await,
            Fenced { .. },
            "a record of no thread"
        );
    }
    ensure!(
        db.load(&owner.thread).await?.is_none(),
        "a refused record made a thread"
    );
    Ok(())
}

pub(super) async fn record_of_a_deleted_thread_is_fenced(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    db.delete(&owner.thread).await?;
    let record = owner.record(1, "key", json!(1));
    ensure_refused!(
        db.record(&record).await,
        Fenced { .. },
        "a record of a deleted thread"
    );
    ensure_eq!(
        stored(db, &owner).await?,
        vec![],
        "the records that are loaded"
    );
    Ok(())
}

pub(super) async fn tasks_and_keys_are_apart(db: &dyn Checkpointer) -> Verdict {
    let (one, two) = (
        Owner::started(db, "one").await?,
        Owner::started(db, "two").await?,
    );
    for owner in [&one, &two] {
        for (task, key) in [(1, "a"), (1, "b"), (2, "a")] {
            let record = owner.record(task, key, json!([owner.thread.name(), task, key]));
            ensure_eq!(
                db.record(&record).await?,
                record.body,
                "the record {task} {key}"
            );
        }
    }
    ensure_eq!(
        stored(db, &one).await?.len(),
        3,
        "records of the first thread"
    );
    ensure_eq!(
        stored(db, &two).await?.len(),
        3,
        "records of the second thread"
    );
    Ok(())
}

pub(super) async fn records_outlive_a_claim(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let record = owner.record(1, "search", json!("first"));
    db.record(&record).await?;
    owner.save(db, owner.claim()).await?;
    ensure_eq!(
        stored(db, &owner).await?,
        vec![row(&record)],
        "the records after a claim"
    );
    let again = owner.record(1, "search", json!("second"));
    ensure_eq!(
        db.record(&again).await?,
        record.body,
        "what the new owner is given"
    );
    Ok(())
}

pub(super) async fn release_of_the_result_keeps_the_steps(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    for key in ["=", "=resul", RESULT_KEY, "=results", "step"] {
        db.record(&owner.record(1, key, json!(key))).await?;
    }
    db.record(&owner.record(2, RESULT_KEY, json!(2))).await?;
    release(db, &mut owner, 1, ReleasedRecords::Result).await?;
    let kept: Vec<_> = stored(db, &owner)
        .await?
        .into_iter()
        .map(|row| (row.0, row.1))
        .collect();
    let wanted: Vec<_> = [
        (1, "="),
        (1, "=resul"),
        (1, "=results"),
        (1, "step"),
        (2, RESULT_KEY),
    ]
    .map(|(task, key)| (task_id(task), key.to_owned()))
    .into();
    ensure_eq!(kept, wanted, "the records after the result was released");
    Ok(())
}

pub(super) async fn release_of_all_keeps_other_tasks(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let other = Owner::started(db, "other").await?;
    db.record(&other.record(1, "step", json!(1))).await?;
    for task in 0..3 {
        for key in ["step", RESULT_KEY, "\u{10ffff}"] {
            db.record(&owner.record(task, key, json!(key))).await?;
        }
    }
    release(db, &mut owner, 1, ReleasedRecords::All).await?;
    let kept = stored(db, &owner).await?;
    ensure_eq!(
        kept.len(),
        6,
        "records after one of three tasks was released"
    );
    ensure!(
        kept.iter().all(|row| row.0 != task_id(1)),
        "a record of the released task is left"
    );
    ensure_eq!(
        stored(db, &other).await?.len(),
        1,
        "records of another thread's task"
    );
    release(db, &mut owner, 7, ReleasedRecords::All).await?;
    ensure_eq!(
        stored(db, &owner).await?.len(),
        6,
        "records after nothing was released"
    );
    Ok(())
}

pub(super) async fn release_of_many_tasks_keeps_the_others(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    for task in 0..40 {
        db.record(&owner.record(task, RESULT_KEY, json!(task)))
            .await?;
    }
    for (released, left) in [(0..30, 30..40), (30..40, 40..40)] {
        let all = |task| Released {
            task: task_id(task),
            which: ReleasedRecords::All,
        };
        let commit = Commit {
            released: released.map(all).collect(),
            ..owner.step()
        };
        owner.save(db, commit).await?;
        let kept: Vec<_> = stored(db, &owner)
            .await?
            .into_iter()
            .map(|row| row.0)
            .collect();
        let wanted: Vec<_> = left.map(task_id).collect();
        ensure_eq!(
            kept,
            wanted,
            "the tasks with records after many were released"
        );
    }
    Ok(())
}

pub(super) async fn crowd_of_records_keeps_the_fenced_apart(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let mut records: Vec<_> = (0..200)
        .map(|n| owner.record(1, &format!("step {n}"), json!(n)))
        .collect();
    for stale in records.iter_mut().step_by(3) {
        stale.epoch = Epoch(9);
    }
    let told = join_all(records.iter().map(|record| db.record(record))).await;
    for (record, told) in records.iter().zip(told) {
        if record.epoch == Epoch(9) {
            ensure_refused!(told, Fenced { .. }, "a stale record in a crowd");
        } else {
            ensure_eq!(told?, record.body, "what a sound record's writer was given");
        }
    }
    ensure_eq!(
        stored(db, &owner).await?.len(),
        133,
        "records of 200, every third of them stale"
    );
    Ok(())
}

pub(super) async fn released_record_can_be_written_anew(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    db.record(&owner.record(1, RESULT_KEY, json!("old")))
        .await?;
    release(db, &mut owner, 1, ReleasedRecords::Result).await?;
    let new = owner.record(1, RESULT_KEY, json!("new"));
    ensure_eq!(
        db.record(&new).await?,
        new.body,
        "what is stored after a release"
    );
    Ok(())
}

pub(super) async fn large_records_are_kept_whole(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let record = owner.record(1, &"k".repeat(500), json!("x".repeat(1 << 20)));
    ensure!(
        db.record(&record).await? == record.body,
        "a record of a megabyte came back changed"
    );
    ensure!(
        stored(db, &owner).await? == vec![row(&record)],
        "it was loaded changed"
    );
    Ok(())
}

type Row = (TaskId, String, Vec<u8>);

fn row(record: &RecordWrite) -> Row {
    (record.task, record.key.clone(), record.body.clone())
}

async fn stored(db: &dyn Checkpointer, owner: &Owner) -> Result<Vec<Row>, Fault> {
    let loaded = db.load(&owner.thread).await?.unwrap_or_default();
    let mut rows: Vec<_> = loaded
        .records
        .into_iter()
        .map(|row| (row.task, row.key, row.body))
        .collect();
    rows.sort();
    Ok(rows)
}

async fn release(
    db: &dyn Checkpointer,
    owner: &mut Owner,
    task: u8,
    which: ReleasedRecords,
) -> Verdict {
    let released = vec![Released {
        task: task_id(task),
        which,
    }];
    let commit = Commit {
        released,
        ..owner.step()
    };
    owner.save(db, commit).await?;
    Ok(())
}
