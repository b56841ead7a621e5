//! Runs, assistants and crons beside the rules of a registry: what a file has when it is opened again, and rows that are damaged.

use rusqlite::Connection;
use serde_json::{Value as Json, json};
use superstep_core::checkpoint::{CheckpointResult, Page};
use superstep_core::error::CheckpointError;
use superstep_core::registry::{
    AssistantChange, CreatedRun, CronTick, FiredTick, NewAssistant, NewCron, NewRun, Registry,
    RunEnd, RunQuery, RunStatus, TickRun, WhenBusy,
};
use superstep_core::{AssistantId, CronId, RunId, ThreadId, Timestamp};
use superstep_sqlite::Sqlite;

use crate::kit::db;

fn run_id(n: u8) -> RunId {
    RunId::from_bytes([n; 16])
}

fn new_run(n: u8, thread: &str) -> NewRun {
    NewRun {
        id: run_id(n),
        thread: ThreadId::of_tenant("acme", thread).unwrap(),
        assistant: AssistantId::from_bytes([7; 16]),
        principal: "ann".to_owned(),
        request: vec![n, 0, 255],
        arguments: json!({ "input": { "n": n, "half": 0.5, "text": "ä\u{0}" } }),
        metadata: json!({ "n": n }),
        when_busy: WhenBusy::Enqueue,
        at: Timestamp(10),
        due: Timestamp(10),
    }
}

async fn listed(db: &Sqlite) -> Vec<RunId> {
    let query = RunQuery {
        tenant: "acme".to_owned(),
        ..RunQuery::default()
    };
    let rows = db.runs(&query).await.unwrap();
    rows.into_iter().map(|row| row.id).collect()
}

#[tokio::test]
async fn runs_are_there_when_the_file_is_opened_again() {
    let db = db();
    for (n, thread) in [(1, "a"), (2, "a"), (3, "b"), (4, "c")] {
        let created = db.create_run(&new_run(n, thread)).await.unwrap();
        assert!(matches!(created, CreatedRun::Stored(_)));
    }
    let taken = db.take_runs(Timestamp(20), 2).await.unwrap();
    assert_eq!(taken.len(), 2);
    let end = RunEnd {
        status: RunStatus::Error,
        error: json!({ "code": "boom" }),
        at: Timestamp(30),
        deliveries: Vec::new(),
    };
    assert!(db.end_run("acme", run_id(3), &end).await.unwrap());
    // Its number is not given to another run, so the order stays.
    assert!(db.delete_run("acme", run_id(4)).await.unwrap());
    let mut before = Vec::new();
    for n in 1..=3 {
        before.push(db.run("acme", run_id(n)).await.unwrap().unwrap());
    }

    let path = db.path();
    drop(db.sqlite);
    let again = Sqlite::open(path).unwrap();
    for row in &before {
        assert_eq!(again.run("acme", row.id).await.unwrap().as_ref(), Some(row));
    }
    assert_eq!(before[0].arguments, new_run(1, "a").arguments);
    assert_eq!(before[0].attempts, 1);
    assert_eq!(before[2].status, RunStatus::Error);
    assert_eq!(before[2].error, json!({ "code": "boom" }));
    assert_eq!(again.next_due().await.unwrap(), Some(Timestamp(10)));
    again.create_run(&new_run(5, "c")).await.unwrap();
    assert_eq!(listed(&again).await, [5, 3, 2, 1].map(run_id));

    // What was running is taken again, before what was created after it.
    assert_eq!(again.release_runs(&[], Timestamp(40)).await.unwrap(), 1);
    let taken = again.take_runs(Timestamp(40), 10).await.unwrap();
    let taken: Vec<_> = taken
        .into_iter()
        .map(|taken| (taken.row.id, taken.row.attempts, taken.request))
        .collect();
    assert_eq!(
        taken,
        [
            (run_id(1), 2, vec![1, 0, 255]),
            (run_id(5), 1, vec![5, 0, 255])
        ]
    );
}

#[tokio::test]
async fn assistants_are_there_when_the_file_is_opened_again() {
    let db = db();
    let id = AssistantId::from_bytes([7; 16]);
    let new = NewAssistant {
        tenant: "acme".to_owned(),
        id,
        graph: "graph".to_owned(),
        name: "one".to_owned(),
        description: String::new(),
        config: json!({ "temperature": 0.1 }),
        context: json!({}),
        metadata: json!({ "team": "blue" }),
        at: Timestamp(10),
    };
    db.create_assistant(&new).await.unwrap();
    let change = AssistantChange {
        name: Some("two".to_owned()),
        metadata: Some(json!({ "stage": "new" })),
        ..AssistantChange::default()
    };
    let changed = db.change_assistant("acme", id, &change, Timestamp(20));
    let second = changed.await.unwrap().unwrap();
    let page = Page::default();
    let versions = db.assistant_versions("acme", id, page).await.unwrap();

    let path = db.path();
    drop(db.sqlite);
    let again = Sqlite::open(path).unwrap();
    let found = again.assistant("acme", id).await.unwrap();
    assert_eq!(found.as_ref(), Some(&second));
    assert_eq!(second.metadata, json!({ "team": "blue", "stage": "new" }));
    assert_eq!((second.version, second.created), (2, Timestamp(10)));
    let found = again.assistant_versions("acme", id, page).await.unwrap();
    assert_eq!(found, versions);

    // The number of a version is not given again, whichever version is the current one.
    let used = again.use_assistant_version("acme", id, 1, Timestamp(30));
    assert_eq!(used.await.unwrap().unwrap().name, "one");
    let changed = again.change_assistant("acme", id, &change, Timestamp(40));
    assert_eq!(changed.await.unwrap().unwrap().version, 3);
}

fn new_cron() -> NewCron {
    NewCron {
        tenant: "acme".to_owned(),
        id: CronId::from_bytes([3; 16]),
        assistant: AssistantId::from_bytes([7; 16]),
        thread: Some(ThreadId::of_tenant("acme", "a").unwrap()),
        principal: "ann".to_owned(),
        schedule: "30 4 * * *".to_owned(),
        zone: Some("Europe/Berlin".to_owned()),
        end: Some(Timestamp(900)),
        is_enabled: true,
        next: Some(Timestamp(20)),
        arguments: json!({ "input": { "text": "ä\u{0}" } }),
        metadata: json!({ "team": "blue" }),
        at: Timestamp(10),
    }
}

#[tokio::test]
async fn crons_are_there_when_the_file_is_opened_again() {
    let db = db();
    let new = new_cron();
    db.create_cron(&new).await.unwrap();
    let tick = CronTick {
        tenant: "acme".to_owned(),
        cron: new.id,
        due: Timestamp(20),
        seen: Timestamp(10),
        next: Some(Timestamp(80)),
        run: TickRun::Run(Box::new(new_run(1, "a"))),
    };
    let fired = db.fire_cron(&tick).await.unwrap();
    assert_eq!(fired, FiredTick::Run(CreatedRun::Stored(Vec::new())));
    let before = db.cron("acme", new.id).await.unwrap().unwrap();

    let path = db.path();
    drop(db.sqlite);
    let again = Sqlite::open(path).unwrap();
    let found = again.cron("acme", new.id).await.unwrap();
    assert_eq!(found.as_ref(), Some(&before));
    assert_eq!(before.next, Some(Timestamp(80)));
    assert_eq!(again.next_cron_due().await.unwrap(), before.next);
    assert_eq!(listed(&again).await, [run_id(1)]);
    // The tick is in the file, so it is not fired by the next process.
    assert_eq!(again.fire_cron(&tick).await.unwrap(), FiredTick::Passed);
    let due = again.due_crons(Timestamp(80), 10).await.unwrap();
    assert_eq!(due, [before]);
}

/// The row of the cron and that of the run are written in one transaction: if the second is refused, the first is not changed.
#[tokio::test]
async fn a_tick_whose_run_is_refused_does_not_move_the_cron() {
    let db = db();
    let new = new_cron();
    db.create_cron(&new).await.unwrap();
    let deep = (0..128).fold(Json::Null, |inner, _| json!([inner]));
    let run = NewRun {
        arguments: deep,
        ..new_run(1, "a")
    };
    let tick = CronTick {
        tenant: "acme".to_owned(),
        cron: new.id,
        due: Timestamp(20),
        seen: Timestamp(10),
        next: None,
        run: TickRun::Run(Box::new(run)),
    };
    let refused = db.fire_cron(&tick).await.unwrap_err();
    assert!(!refused.is_transient(), "{refused:?}");
    let found = db.cron("acme", new.id).await.unwrap();
    assert_eq!(found, Some(new.row()));
    assert!(listed(&db).await.is_empty());
}

#[tokio::test]
async fn a_damaged_row_is_named_and_not_read() {
    for damage in [
        "UPDATE run SET arguments = '{'",
        "UPDATE run SET metadata = ''",
        "UPDATE run SET status = 9",
        "UPDATE run SET id = x'00'",
        "UPDATE run SET thread = '../a'",
    ] {
        let db = db();
        db.create_run(&new_run(1, "a")).await.unwrap();
        let file = Connection::open(db.path()).unwrap();
        assert_eq!(file.execute(damage, []).unwrap(), 1);
        let query = RunQuery {
            tenant: "acme".to_owned(),
            ..RunQuery::default()
        };
        let error = db.runs(&query).await.unwrap_err();
        assert!(
            matches!(error, CheckpointError::DatabaseDamaged { .. }),
            "{damage}: {error:?}"
        );
        assert!(error.to_string().contains("test.db"), "{damage}: {error}");
    }
}

/// A row that cannot be read again would keep every other run in the queue.
#[tokio::test]
async fn json_that_could_not_be_read_again_is_refused() {
    let db = db();
    let nested = |levels: usize| (0..levels).fold(Json::Null, |inner, _| json!([inner]));
    let create = async |levels: usize| -> CheckpointResult<CreatedRun> {
        let run = NewRun {
            arguments: nested(levels),
            ..new_run(1, "a")
        };
        db.create_run(&run).await
    };
    let refused = create(128).await.unwrap_err();
    assert!(!refused.is_transient(), "{refused:?}");
    create(127).await.unwrap();
    let taken = db.take_runs(Timestamp(20), 1).await.unwrap();
    assert_eq!(taken[0].row.arguments, nested(127));
}

/// Each batch is a transaction of its own, so that others can write in between. What a batch has deleted stays deleted if a later one fails.
#[tokio::test]
async fn a_tenant_is_erased_in_batches() {
    let db = db();
    let file = Connection::open(db.path()).unwrap();
    file.execute_batch(
        "INSERT INTO tenant (id, name) VALUES (7, 'acme');
         INSERT INTO delivery (tenant, id, run, thread, status, attempts, due, at, updated, address, event, error, body)
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2500)
             SELECT 7, randomblob(16), randomblob(16), 'a', 1, 1, i, i, i, '', '', '', '{}' FROM n;
         CREATE TRIGGER stop BEFORE DELETE ON delivery WHEN old.number = 1500
             BEGIN SELECT RAISE(ABORT, 'stop'); END;",
    )
    .unwrap();
    assert!(db.erase_tenant("acme").await.is_err());
    file.execute_batch("DROP TRIGGER stop").unwrap();
    let rest = db.erase_tenant("acme").await.unwrap();
    assert_eq!(rest.deliveries, 1_500);
    let again = db.erase_tenant("acme").await.unwrap();
    assert_eq!(again.deliveries, 0);
}
