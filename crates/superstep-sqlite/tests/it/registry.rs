//! Runs and assistants beside the rules of a registry: what a file has when it is opened again, and rows that are damaged.

use rusqlite::Connection;
use serde_json::{Value as Json, json};
use superstep_core::checkpoint::{CheckpointResult, Page};
use superstep_core::error::CheckpointError;
use superstep_core::registry::{
    AssistantChange, CreatedRun, NewAssistant, NewRun, Registry, RunEnd, RunQuery, RunStatus,
    WhenBusy,
};
use superstep_core::{AssistantId, RunId, ThreadId, Timestamp};
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
