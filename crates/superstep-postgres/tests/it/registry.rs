//! The registry, as two processes have it at once.

use std::collections::BTreeSet;

use serde_json::json;
use superstep_core::registry::{
    AssistantChange, CreatedRun, CronTick, FiredTick, NewAssistant, NewCron, NewRun, Registry,
    RunEnd, RunStatus, TickRun, WhenBusy,
};
use superstep_core::{AssistantId, CronId, RunId, ThreadId, Timestamp};
use superstep_postgres::Postgres;
use tokio::task::JoinSet;

use crate::kit::{Db, db, wait_for_waiting};

fn id(round: u8, n: u8) -> RunId {
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&[round, n]);
    RunId::from_bytes(bytes)
}

fn assistant_id() -> AssistantId {
    AssistantId::from_bytes([7; 16])
}

fn thread(name: &str) -> ThreadId {
    ThreadId::of_tenant("acme", name).unwrap()
}

fn new_run(id: RunId, thread: &ThreadId, when_busy: WhenBusy) -> NewRun {
    NewRun {
        id,
        thread: thread.clone(),
        assistant: assistant_id(),
        principal: "ann".to_owned(),
        request: id.to_bytes().to_vec(),
        arguments: json!({ "input": "\0" }),
        metadata: json!({ "by": "test" }),
        when_busy,
        at: Timestamp(1),
        due: Timestamp(1),
    }
}

/// Two processes, of which each racer gets one.
struct TwoProcesses {
    db: Db,
    other: Postgres,
}

impl TwoProcesses {
    async fn start() -> Self {
        let db = db().await;
        let other = db.schema.connect().await;
        Self { db, other }
    }

    fn of(&self, racer: u8) -> Postgres {
        match racer % 2 {
            0 => self.db.postgres.clone(),
            _ => self.other.clone(),
        }
    }

    /// Creates runs at once, each from one of the processes.
    fn create(&self, runs: Vec<NewRun>) -> JoinSet<(RunId, CreatedRun)> {
        let mut racers = JoinSet::new();
        for (racer, run) in (0..).zip(runs) {
            let postgres = self.of(racer);
            racers.spawn(async move { (run.id, postgres.create_run(&run).await.unwrap()) });
        }
        racers
    }
}

fn assert_one_stored(created: &[(RunId, CreatedRun)]) {
    let stored = created
        .iter()
        .filter(|(_, created)| *created == CreatedRun::Stored(Vec::new()));
    assert_eq!(stored.count(), 1, "{created:?}");
    let busy = created
        .iter()
        .filter(|(_, created)| *created == CreatedRun::Busy);
    assert_eq!(busy.count(), created.len() - 1, "{created:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_racing_runs_that_want_an_idle_thread_one_is_stored() {
    let processes = TwoProcesses::start().await;
    for round in 0..20 {
        let thread = thread(&format!("t{round}"));
        let runs = (0..8).map(|n| new_run(id(round, n), &thread, WhenBusy::Reject));
        let created = processes.create(runs.collect()).join_all().await;
        assert_one_stored(&created);
    }
}

/// All of them have begun before the first one is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_waited_for_another_sees_it() {
    let processes = TwoProcesses::start().await;
    let client = processes.db.schema.client().await;
    let lock = "BEGIN;
        SELECT pg_advisory_xact_lock(hashtextextended(current_schema()::text || '/run/acme/a', 0))";
    client.batch_execute(lock).await.unwrap();
    let runs = (0..4).map(|n| new_run(id(0, n), &thread("a"), WhenBusy::Reject));
    let racers = processes.create(runs.collect());
    wait_for_waiting(&processes.db, 4).await;
    // A run of another thread does not wait.
    let elsewhere = new_run(id(1, 0), &thread("b"), WhenBusy::Reject);
    let created = processes.db.create_run(&elsewhere).await.unwrap();
    assert_eq!(created, CreatedRun::Stored(Vec::new()));
    client.batch_execute("COMMIT").await.unwrap();
    assert_one_stored(&racers.join_all().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_runs_with_one_id_are_stored_once() {
    let processes = TwoProcesses::start().await;
    for round in 0..20 {
        // On different threads, so that nothing but the id keeps them apart.
        let runs = (0..6).map(|n| {
            let thread = thread(&format!("t{round}-{n}"));
            new_run(id(round, 0), &thread, WhenBusy::Enqueue)
        });
        let created = processes.create(runs.collect()).join_all().await;
        let stored = created
            .iter()
            .filter(|(_, created)| *created == CreatedRun::Stored(Vec::new()));
        assert_eq!(stored.count(), 1, "{created:?}");
        let row = processes.db.run("acme", id(round, 0)).await.unwrap();
        let row = row.unwrap();
        for (_, created) in &created {
            if let CreatedRun::Exists(found, request) = created {
                assert_eq!(**found, row);
                assert_eq!(*request, row.id.to_bytes());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_runs_are_taken_in_the_order_that_their_callers_were_told() {
    let processes = TwoProcesses::start().await;
    let runs = (0..12).map(|n| new_run(id(0, n), &thread("a"), WhenBusy::Enqueue));
    let created = processes.create(runs.collect()).join_all().await;
    let mut ahead: Vec<(Vec<RunId>, RunId)> = Vec::new();
    for (id, created) in created {
        let CreatedRun::Stored(before) = created else {
            panic!("{id} was not stored: {created:?}");
        };
        ahead.push((before, id));
    }
    ahead.sort_by_key(|(before, _)| before.len());
    let order: Vec<RunId> = ahead.iter().map(|(_, id)| *id).collect();
    for (n, (before, _)) in ahead.iter().enumerate() {
        assert_eq!(*before, order[..n]);
    }
    for expected in order {
        let taken = processes.db.take_runs(Timestamp(2), 10).await.unwrap();
        let taken: Vec<RunId> = taken.iter().map(|taken| taken.row.id).collect();
        assert_eq!(taken, [expected]);
        let end = RunEnd {
            status: RunStatus::Success,
            error: json!(null),
            at: Timestamp(3),
            deliveries: Vec::new(),
        };
        assert!(
            processes
                .other
                .end_run("acme", expected, &end)
                .await
                .unwrap()
        );
    }
}

/// Takes runs until there are none, a few at a time.
async fn take_all(postgres: Postgres, now: Timestamp) -> Vec<ThreadId> {
    let mut threads = Vec::new();
    loop {
        let taken = postgres.take_runs(now, 7).await.unwrap();
        if taken.is_empty() {
            return threads;
        }
        threads.extend(taken.into_iter().map(|taken| taken.row.thread));
    }
}

/// The older run of each thread is due later, so that takers with different clocks want different runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_takers_take_one_run_of_each_thread() {
    let processes = TwoProcesses::start().await;
    for round in 0..5 {
        for n in 0..40 {
            let thread = thread(&format!("t{round}-{n}"));
            for (run, due) in [(n, Timestamp(20)), (n + 100, Timestamp(5))] {
                let mut run = new_run(id(round, run), &thread, WhenBusy::Enqueue);
                run.due = due;
                processes.db.create_run(&run).await.unwrap();
            }
        }
        let mut takers = JoinSet::new();
        for taker in 0..6 {
            let now = if taker < 3 {
                Timestamp(10)
            } else {
                Timestamp(30)
            };
            takers.spawn(take_all(processes.of(taker), now));
        }
        let taken = takers.join_all().await.concat();
        let threads: BTreeSet<&ThreadId> = taken.iter().collect();
        assert_eq!((taken.len(), threads.len()), (40, 40));
        for thread in threads {
            assert_eq!(processes.db.delete_runs(thread).await.unwrap(), 2);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_changes_of_an_assistant_have_versions_of_their_own() {
    let processes = TwoProcesses::start().await;
    let assistant = NewAssistant {
        tenant: "acme".to_owned(),
        id: assistant_id(),
        graph: "review".to_owned(),
        name: "Reviewer".to_owned(),
        description: String::new(),
        config: json!({}),
        context: json!({}),
        metadata: json!({}),
        at: Timestamp(1),
    };
    processes.db.create_assistant(&assistant).await.unwrap();
    let mut racers = JoinSet::new();
    for racer in 0..8 {
        let postgres = processes.of(racer);
        let field = format!("racer-{racer}");
        let change = AssistantChange {
            metadata: Some(json!({ field: true })),
            ..AssistantChange::default()
        };
        racers.spawn(async move {
            let now = Timestamp(2);
            let changed = postgres.change_assistant("acme", assistant_id(), &change, now);
            changed.await.unwrap().unwrap().version
        });
    }
    let mut versions = racers.join_all().await;
    versions.sort_unstable();
    assert_eq!(versions, (2..=9).collect::<Vec<u32>>());
    // Each change was applied to the version before it, so none is lost.
    let current = processes
        .db
        .assistant("acme", assistant_id())
        .await
        .unwrap();
    let metadata = current.unwrap().metadata;
    assert_eq!(metadata.as_object().unwrap().len(), 8, "{metadata}");
}

/// Each racer has a run of its own on a thread of its own, so nothing but the row of the cron keeps them apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tick_that_two_processes_fire_is_one_run() {
    let processes = TwoProcesses::start().await;
    let cron = CronId::from_bytes([3; 16]);
    let new = NewCron {
        tenant: "acme".to_owned(),
        id: cron,
        assistant: assistant_id(),
        thread: None,
        principal: "ann".to_owned(),
        schedule: "* * * * *".to_owned(),
        zone: None,
        end: None,
        is_enabled: true,
        next: Some(Timestamp(0)),
        arguments: json!({}),
        metadata: json!({}),
        at: Timestamp(1),
    };
    processes.db.create_cron(&new).await.unwrap();
    for round in 0..20 {
        let mut racers = JoinSet::new();
        for racer in 0..8 {
            let postgres = processes.of(racer);
            let thread = thread(&format!("t{round}-{racer}"));
            let run = new_run(id(round, racer), &thread, WhenBusy::Enqueue);
            let tick = CronTick {
                tenant: "acme".to_owned(),
                cron,
                due: Timestamp(i64::from(round)),
                seen: Timestamp(1),
                next: Some(Timestamp(i64::from(round) + 1)),
                run: TickRun::Run(Box::new(run)),
            };
            racers.spawn(async move { postgres.fire_cron(&tick).await.unwrap() });
        }
        let fired = racers.join_all().await;
        let stored = FiredTick::Run(CreatedRun::Stored(Vec::new()));
        let winners = fired.iter().filter(|fired| **fired == stored).count();
        let passed = fired.iter().filter(|fired| **fired == FiredTick::Passed);
        assert_eq!((winners, passed.count()), (1, 7), "{fired:?}");
        let taken = processes.db.take_runs(Timestamp(100), 100).await.unwrap();
        assert_eq!(taken.len(), 1, "{taken:?}");
        let row = processes.db.cron("acme", cron).await.unwrap().unwrap();
        assert_eq!(row.next, Some(Timestamp(i64::from(round) + 1)));
    }
}

/// Each batch is a statement of its own, within the time limit. What a batch has deleted stays deleted if a later one fails.
#[tokio::test]
async fn a_tenant_is_erased_in_batches() {
    let db = db().await;
    let client = db.schema.client().await;
    client
        .batch_execute(
            "INSERT INTO delivery (at, updated, due, attempts, status, id, run, tenant, name, address, event, error, body)
                 SELECT i, i, i, 1, 1, gen_random_uuid(), gen_random_uuid(), 'acme', 'a', '', '', '', ''
                 FROM generate_series(1, 2500) i;
             CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN RAISE EXCEPTION 'stop'; END $$;
             CREATE TRIGGER stop BEFORE DELETE ON delivery FOR EACH ROW
                 WHEN (OLD.number = 1500) EXECUTE FUNCTION stop()",
        )
        .await
        .unwrap();
    let stopped = Registry::erase_tenant(&db.postgres, "acme").await;
    assert!(stopped.is_err());
    client
        .batch_execute("DROP TRIGGER stop ON delivery")
        .await
        .unwrap();
    let rest = Registry::erase_tenant(&db.postgres, "acme").await.unwrap();
    assert_eq!(rest.deliveries, 1_500);
    let again = Registry::erase_tenant(&db.postgres, "acme").await.unwrap();
    assert_eq!(again.deliveries, 0);
}
