//! Records: the small door that a node writes through while it runs.

use serde_json::json;
use superstep_core::checkpoint::{
    Checkpointer, Commit, RESULT_KEY, RecordBatch, RecordRow, RecordWrite, Released,
    ReleasedRecords,
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

pub(super) async fn batch_is_stored(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let other = Owner::started(db, "other").await?;
    let records: Vec<_> = (0..3)
        .map(|n| owner.record(n, RESULT_KEY, json!(n)))
        .collect();
    let told = db.record_all(&batch_of(&records)).await?;
    ensure_eq!(told, vec![None; 3], "what a batch that is new is given");
    let mut empty = batch_of(&records);
    empty.records.clear();
    let nothing = db.record_all(&empty).await?;
    ensure_eq!(nothing, Vec::new(), "what an empty batch is given");
    ensure_eq!(
        stored(db, &owner).await?,
        sorted(&records),
        "the records that are loaded"
    );
    ensure_eq!(
        stored(db, &other).await?,
        Vec::new(),
        "the records of another thread"
    );
    Ok(())
}

pub(super) async fn batch_keeps_the_first_records(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let first = owner.record(5, RESULT_KEY, json!("first"));
    let same = owner.record(1, "step", json!("same"));
    db.record(&first).await?;
    db.record(&same).await?;
    let second = owner.record(5, RESULT_KEY, json!("second"));
    let new = owner.record(3, RESULT_KEY, json!("new"));
    let again = owner.record(3, RESULT_KEY, json!("again"));
    // In an order that is not that of the keys, so that what is given back belongs to the right record.
    let records = [&again, &second, &new, &same].map(RecordWrite::clone);
    let told = db.record_all(&batch_of(&records)).await?;
    let wanted = vec![
        None,
        Some(first.body.clone()),
        Some(again.body.clone()),
        None,
    ];
    ensure_eq!(told, wanted, "what the writer of a batch is given");
    ensure_eq!(
        stored(db, &owner).await?,
        sorted(&[first, same, again]),
        "the records that are loaded"
    );
    Ok(())
}

pub(super) async fn batch_can_be_repeated(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let records: Vec<_> = (0..4)
        .map(|n| owner.record(n, RESULT_KEY, json!(n)))
        .collect();
    db.record_all(&batch_of(&records[..2])).await?;
    for _ in 0..2 {
        let told = db.record_all(&batch_of(&records)).await?;
        ensure_eq!(told, vec![None; 4], "what a repeated batch is given");
    }
    ensure_eq!(
        stored(db, &owner).await?,
        sorted(&records),
        "the records that are loaded"
    );
    Ok(())
}

pub(super) async fn batch_of_a_former_owner_is_fenced(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let kept = owner.record(1, "early", json!(1));
    db.record(&kept).await?;
    let late = owner.record(2, "late", json!(1));
    owner.save(db, owner.claim()).await?;
    for records in [&[late.clone(), kept.clone()], &[kept.clone(), late]] {
        ensure_refused!(
            db.record_all(&batch_of(records)).await,
            Fenced { .. },
            "a batch of a former owner"
        );
    }
    let mut later = batch_of(&[owner.record(3, "key", json!(1))]);
    later.epoch = Epoch(9);
    ensure_refused!(
        db.record_all(&later).await,
        Fenced { .. },
        "a batch under a later epoch"
    );
    ensure_eq!(
        stored(db, &owner).await?,
        vec![row(&kept)],
        "the records that are loaded"
    );
    Ok(())
}

pub(super) async fn batch_of_no_living_thread_is_fenced(db: &dyn Checkpointer) -> Verdict {
    let mut nobody = Owner::new(&thread("nobody"));
    nobody.head.epoch = Epoch(1);
    let deleted = Owner::started(db, "deleted").await?;
    db.delete(&deleted.thread).await?;
    for owner in [&nobody, &deleted] {
        let records = [1, 2].map(|task| owner.record(task, RESULT_KEY, json!(task)));
        ensure_refused!(
            db.record_all(&batch_of(&records)).await,
            Fenced { .. },
            "a batch of a thread that is not there"
        );
    }
    ensure!(
        db.load(&nobody.thread).await?.is_none(),
        "a refused batch made a thread"
    );
    Ok(())
}

pub(super) async fn large_batches_are_kept_whole(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let body = |n: u64| match n % 100 {
        0 => json!("x".repeat(200_000)),
        _ => json!(n),
    };
    let records: Vec<_> = (0..700)
        .map(|n| owner.record((n % 7) as u8, &format!("step {n}"), body(n)))
        .collect();
    let taken = owner.record(3, "step 500", json!("taken"));
    ensure_eq!(taken.task, records[500].task, "the task of the record");
    db.record(&taken).await?;
    let told = db.record_all(&batch_of(&records)).await?;
    ensure_eq!(told.len(), 700, "replies to a batch of 700 records");
    let others: Vec<_> = (told.into_iter().enumerate())
        .filter_map(|(n, other)| Some((n, other?)))
        .collect();
    ensure!(
        others == vec![(500, taken.body.clone())],
        "a large batch was given back another record than the one that was there"
    );
    let mut wanted = records;
    wanted[500] = taken;
    ensure!(
        stored(db, &owner).await? == sorted(&wanted),
        "a large batch was loaded changed"
    );
    Ok(())
}

pub(super) async fn racing_batches_agree(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let batches: Vec<Vec<_>> = (0..8)
        .map(|n| {
            let record = |task| owner.record(task, RESULT_KEY, json!({ "n": n }));
            // Each starts with another task.
            (0..8).map(|task| record((task + n) % 8)).collect()
        })
        .collect();
    let writes: Vec<_> = batches.iter().map(|records| batch_of(records)).collect();
    let results = join_all(writes.iter().map(|batch| db.record_all(batch))).await;
    let kept = stored(db, &owner).await?;
    ensure_eq!(kept.len(), 8, "records after the race");
    for (records, told) in batches.iter().zip(results) {
        for (record, other) in records.iter().zip(told?) {
            let given = other.unwrap_or_else(|| record.body.clone());
            ensure!(
                kept.contains(&(record.task, record.key.clone(), given)),
                "a writer in the race was given a record that is not stored"
            );
        }
    }
    Ok(())
}

pub(super) async fn crowd_of_batches_keeps_the_fenced_apart(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let batches: Vec<_> = (0..30)
        .map(|n| {
            let record = |task| owner.record(task, &format!("step {n}"), json!(n));
            let mut batch = batch_of(&(0..5).map(record).collect::<Vec<_>>());
            if n % 3 == 0 {
                batch.epoch = Epoch(9);
            }
            batch
        })
        .collect();
    let told = join_all(batches.iter().map(|batch| db.record_all(batch))).await;
    for (batch, told) in batches.iter().zip(told) {
        if batch.epoch == Epoch(9) {
            ensure_refused!(told, Fenced { .. }, "a stale batch in a crowd");
        } else {
            ensure_eq!(
                told?,
                vec![None; 5],
                "what a sound batch's writer was given"
            );
        }
    }
    ensure_eq!(
        stored(db, &owner).await?.len(),
        100,
        "records of 30 batches of 5, every third of them stale"
    );
    Ok(())
}

fn batch_of(records: &[RecordWrite]) -> RecordBatch {
    let row = |record: &RecordWrite| RecordRow {
        task: record.task,
        key: record.key.clone(),
        body: record.body.clone(),
    };
    RecordBatch {
        thread: records[0].thread.clone(),
        epoch: records[0].epoch,
        records: records.iter().map(row).collect(),
    }
}

fn sorted(records: &[RecordWrite]) -> Vec<Row> {
    let mut rows: Vec<_> = records.iter().map(row).collect();
    rows.sort();
    rows
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
