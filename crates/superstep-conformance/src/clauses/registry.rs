//! The registry: the queue of runs, their rows, and assistants with their versions.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use superstep_core::checkpoint::Page;
use superstep_core::registry::{
    ActiveRun, Assistant, AssistantChange, AssistantQuery, AssistantSort, CancelledRun,
    CreatedAssistant, CreatedRun, NewAssistant, NewRun, Registry, RunEnd, RunQuery, RunRow,
    RunStatus, TakenRun, WhenBusy, json_contains,
};
use superstep_core::{AssistantId, RunId, ThreadId, Timestamp};

use super::security::hostile_texts;
use crate::poll::{join, join_all};
use crate::report::{Fault, Verdict, ensure, ensure_eq};
use crate::sample::{ALL, thread, thread_of};

pub(super) async fn empty_registry_has_no_rows(db: &dyn Registry) -> Verdict {
    ensure_eq!(db.run("", run_id(1)).await?, None, "a run");
    ensure_eq!(listed(db, all_runs("")).await?, NONE, "the runs");
    ensure_eq!(take(db, NOW, 10).await?, NONE, "the runs taken");
    ensure_eq!(db.next_due().await?, None, "when the next run is due");
    ensure_eq!(db.release_runs(&[], NOW).await?, 0, "runs released");
    ensure_eq!(db.delete_runs(&thread("a")).await?, 0, "runs deleted");
    let assistant = assistant_id(1);
    ensure_eq!(db.assistant("", assistant).await?, None, "an assistant");
    ensure_eq!(
        db.count_assistants(&all_assistants("")).await?,
        0,
        "assistants"
    );
    Ok(())
}

pub(super) async fn created_run_is_read_as_given(db: &dyn Registry) -> Verdict {
    let new = NewRun {
        assistant: assistant_id(7),
        principal: "bob@example.org".into(),
        arguments: json!({ "input": { "messages": ["hi", null, 1.5] } }),
        metadata: json!({ "team": { "name": "ops" }, "tags": ["a", "b"] }),
        at: later(3),
        due: later(900),
        ..new_run(&thread_of("acme", "a"), 1)
    };
    ensure_eq!(
        db.create_run(&new).await?,
        CreatedRun::Stored(vec![]),
        "what the call did"
    );
    ensure_eq!(
        db.run("acme", new.id).await?,
        Some(new.pending_row()),
        "the run that was created"
    );
    ensure_eq!(db.run("acme", run_id(2)).await?, None, "another run");
    let found = db.take_runs(later(900), 1).await?;
    let requests: Vec<_> = found.into_iter().map(|run| run.request).collect();
    ensure_eq!(requests, [new.request], "the request that was stored");
    Ok(())
}

pub(super) async fn same_id_twice_is_stored_once(db: &dyn Registry) -> Verdict {
    let first = new_run(&thread("a"), 1);
    create(db, &first).await?;
    let second = NewRun {
        principal: "eve".into(),
        request: b"other".to_vec(),
        arguments: json!("other"),
        metadata: json!({ "other": true }),
        at: later(9),
        due: later(9),
        ..new_run(&thread("b"), 1)
    };
    let rejecting = rejecting_run(&thread("a"), 1);
    for again in [&first, &second, &rejecting] {
        let wanted = CreatedRun::Exists(Box::new(first.pending_row()), first.request.clone());
        ensure_eq!(db.create_run(again).await?, wanted, "the run created again");
    }
    ensure_eq!(listed(db, all_runs("")).await?, [1], "the runs");
    ensure_eq!(take(db, NOW, 10).await?, [1], "the runs taken");
    let wanted = CreatedRun::Exists(Box::new(row(db, "", 1).await?), first.request);
    ensure_eq!(
        db.create_run(&second).await?,
        wanted,
        "the run created again while it is running"
    );
    Ok(())
}

pub(super) async fn ids_of_tenants_are_apart(db: &dyn Registry) -> Verdict {
    let runs = TENANTS.map(|tenant| NewRun {
        request: tenant.as_bytes().to_vec(),
        principal: tenant.to_owned(),
        ..new_run(&thread_of(tenant, "x"), 1)
    });
    for run in &runs {
        ensure_eq!(create(db, run).await?, NONE, "the runs before it");
    }
    for run in &runs {
        let found = db.run(run.thread.tenant(), run.id).await?;
        ensure_eq!(found, Some(run.pending_row()), "the run of {}", run.thread);
        let found = db.runs(&all_runs(run.thread.tenant())).await?;
        ensure_eq!(found, [run.pending_row()], "the runs of {}", run.thread);
    }
    let taken = db.take_runs(NOW, 10).await?;
    let requests: Vec<_> = taken.into_iter().map(|run| run.request).collect();
    let wanted = runs.map(|run| run.request);
    ensure_eq!(requests, wanted, "the requests of all tenants");
    Ok(())
}

pub(super) async fn take_skips_tenants_and_takes_the_rest(db: &dyn Registry) -> Verdict {
    let runs = TENANTS.map(|tenant| new_run(&thread_of(tenant, "x"), 1));
    for run in &runs {
        ensure_eq!(create(db, run).await?, NONE, "the runs before it");
    }
    let skipped = [TENANTS[0].to_owned(), "nobody\0".to_owned()];
    let taken = db.take_runs_except(NOW, 10, &skipped).await?;
    let tenants: Vec<_> = taken.iter().map(|run| run.row.thread.tenant()).collect();
    ensure_eq!(tenants, TENANTS[1..], "the tenants whose runs were taken");
    let rest = db.take_runs(NOW, 10).await?;
    let tenants: Vec<_> = rest.iter().map(|run| run.row.thread.tenant()).collect();
    ensure_eq!(tenants, TENANTS[..1], "the tenants of the rest");
    Ok(())
}

pub(super) async fn racing_creates_of_one_id_store_one(db: &dyn Registry) -> Verdict {
    for round in 1..=8u8 {
        let runs: Vec<_> = (0..16u8)
            .map(|n| NewRun {
                request: vec![round, n],
                ..new_run(&thread(&format!("t{n}")), round)
            })
            .collect();
        let results = join_all(runs.iter().map(|run| db.create_run(run))).await;
        let (mut stored, mut found) = (Vec::new(), Vec::new());
        for (run, result) in runs.iter().zip(results) {
            match result? {
                CreatedRun::Stored(_) => stored.push(&run.request),
                CreatedRun::Exists(_, request) => found.push(request),
                other => return Err(Fault::new(format!("{} was not stored: {other:?}", run.id))),
            }
        }
        ensure_eq!(stored.len(), 1, "runs stored in round {round}");
        ensure!(
            found.iter().all(|request| request == stored[0]),
            "the losers of round {round} found {found:?}, the winner stored {stored:?}"
        );
        let all = listed(db, all_runs("")).await?;
        ensure_eq!(all.len(), usize::from(round), "runs after round {round}");
    }
    Ok(())
}

pub(super) async fn reject_stores_nothing_if_the_thread_is_busy(db: &dyn Registry) -> Verdict {
    let (thread, others) = (thread("a"), [thread_of("acme", "a"), thread("b")]);
    create(db, &rejecting_run(&thread, 1)).await?;
    is_rejected(db, &thread, "a pending run").await?;
    for (n, other) in (2..).zip(&others) {
        create(db, &rejecting_run(other, n)).await?;
    }
    ensure_eq!(take(db, NOW, 10).await?, [1, 2, 3], "the runs taken");
    is_rejected(db, &thread, "a running run").await?;
    finish(db, 1).await?;
    create(db, &rejecting_run(&thread, 4)).await?;
    let cancelled = db.cancel_run("", run_id(4), NOW).await?;
    ensure_eq!(cancelled, CancelledRun::Withdrawn, "the cancelled run");
    let future = NewRun {
        due: later(1_000),
        ..rejecting_run(&thread, 5)
    };
    create(db, &future).await?;
    is_rejected(db, &thread, "a run that is not due yet").await?;
    ensure!(db.delete_run("", run_id(5)).await?, "there is no run 5");
    create(db, &rejecting_run(&thread, 6)).await?;
    Ok(())
}

pub(super) async fn racing_rejects_have_one_winner(db: &dyn Registry) -> Verdict {
    for round in 0..8u8 {
        let runs: Vec<_> = (1..=16u8)
            .map(|n| rejecting_run(&thread("a"), round * 16 + n))
            .collect();
        let results = join_all(runs.iter().map(|run| db.create_run(run))).await;
        let mut won = Vec::new();
        for (run, result) in runs.iter().zip(results) {
            match result? {
                CreatedRun::Stored(before) => {
                    ensure_eq!(before, vec![], "the runs before the winner");
                    won.push(number(run.id));
                }
                CreatedRun::Busy => {}
                other => return Err(Fault::new(format!("{} was created: {other:?}", run.id))),
            }
        }
        ensure_eq!(won.len(), 1, "winners of round {round}");
        finish(db, won[0]).await?;
    }
    ensure_eq!(listed(db, all_runs("")).await?.len(), 8, "runs");
    Ok(())
}

pub(super) async fn begun_run_is_running_as_if_taken(db: &dyn Registry) -> Verdict {
    let run = NewRun {
        metadata: json!({ "n": 1 }),
        ..new_run(&thread_of("acme", "a"), 1)
    };
    let created = db.begin_run(&run).await?;
    ensure_eq!(created, CreatedRun::Begun, "a run of a free thread");
    let begun = run.begun();
    let found = db.run("acme", run.id).await?;
    ensure_eq!(found, Some(begun.row.clone()), "the run that began");
    ensure_eq!(db.take_runs(NOW, 10).await?, [], "the runs taken");
    ensure_eq!(db.next_due().await?, None, "the time of the next run");
    let wanted = CreatedRun::Exists(Box::new(begun.row.clone()), run.request.clone());
    ensure_eq!(db.begin_run(&run).await?, wanted, "the run begun again");
    // As a crash would leave it.
    db.release_runs(&[], later(1)).await?;
    let again = TakenRun {
        row: RunRow {
            attempts: 2,
            updated: later(2),
            ..begun.row
        },
        request: begun.request,
    };
    ensure_eq!(
        db.take_runs(later(2), 10).await?,
        [again],
        "the released run"
    );
    Ok(())
}

pub(super) async fn run_does_not_begin_on_a_busy_thread(db: &dyn Registry) -> Verdict {
    enqueue(db, "a", 1).await?;
    let (a, b) = (thread("a"), thread("b"));
    let behind = |before: &[u8]| {
        let before = before.iter().map(|n| run_id(*n));
        CreatedRun::Stored(before.collect())
    };
    let created = db.begin_run(&new_run(&a, 2)).await?;
    ensure_eq!(created, behind(&[1]), "a run behind a pending one");
    let created = db.begin_run(&new_run(&b, 3)).await?;
    ensure_eq!(created, CreatedRun::Begun, "a run of another thread");
    let created = db.begin_run(&rejecting_run(&b, 4)).await?;
    ensure_eq!(created, CreatedRun::Busy, "a run that does not wait");
    let created = db.begin_run(&new_run(&b, 5)).await?;
    ensure_eq!(created, behind(&[3]), "a run behind a running one");
    ensure_eq!(take(db, NOW, 10).await?, [1], "the runs taken");
    finish(db, 3).await?;
    ensure_eq!(take(db, NOW, 10).await?, [5], "the run behind it");
    finish(db, 5).await?;
    let created = db.begin_run(&new_run(&b, 6)).await?;
    ensure_eq!(created, CreatedRun::Begun, "a run behind runs that ended");
    Ok(())
}

pub(super) async fn racing_begins_of_a_thread_have_one_winner(db: &dyn Registry) -> Verdict {
    for round in 0..8u8 {
        let runs: Vec<_> = (1..=16u8)
            .map(|n| new_run(&thread("a"), round * 16 + n))
            .collect();
        let results = join_all(runs.iter().map(|run| db.begin_run(run))).await;
        let mut won = Vec::new();
        for (run, result) in runs.iter().zip(results) {
            match result? {
                CreatedRun::Begun => won.push(number(run.id)),
                CreatedRun::Stored(before) if !before.is_empty() => {}
                other => return Err(Fault::new(format!("{} was created: {other:?}", run.id))),
            }
        }
        ensure_eq!(won.len(), 1, "winners of round {round}");
        ensure_eq!(take(db, NOW, 10).await?, NONE, "the runs taken");
        for run in &runs {
            finish(db, number(run.id)).await?;
        }
    }
    Ok(())
}

pub(super) async fn enqueued_run_names_the_runs_before_it(db: &dyn Registry) -> Verdict {
    enqueue(db, "b", 9).await?;
    for (n, before) in [(3, &[] as &[u8]), (1, &[3]), (2, &[3, 1])] {
        ensure_eq!(enqueue(db, "a", n).await?, before, "the runs before {n}");
    }
    ensure_eq!(take(db, NOW, 10).await?, [9, 3], "the runs taken");
    ensure_eq!(
        enqueue(db, "a", 4).await?,
        [3, 1, 2],
        "the runs before it, of which one is running"
    );
    finish(db, 3).await?;
    db.cancel_run("", run_id(2), NOW).await?;
    ensure_eq!(
        enqueue(db, "a", 5).await?,
        [1, 4],
        "the runs before it that are still active"
    );
    Ok(())
}

pub(super) async fn take_gives_the_oldest_of_each_thread(db: &dyn Registry) -> Verdict {
    for (thread, n) in [("a", 5), ("b", 4), ("a", 1), ("c", 3), ("b", 2)] {
        enqueue(db, thread, n).await?;
    }
    ensure_eq!(take(db, NOW, 10).await?, [5, 4, 3], "the runs taken");
    ensure_eq!(take(db, NOW, 10).await?, NONE, "the runs taken again");
    for n in [4, 5, 3] {
        finish(db, n).await?;
    }
    ensure_eq!(take(db, NOW, 10).await?, [1, 2], "the runs taken next");
    Ok(())
}

pub(super) async fn take_marks_the_run_and_counts_the_attempt(db: &dyn Registry) -> Verdict {
    let new = NewRun {
        due: later(10),
        ..new_run(&thread_of("acme", "a"), 1)
    };
    create(db, &new).await?;
    for attempt in 1..=3u32 {
        let now = later(20 + u64::from(attempt));
        let taken = TakenRun {
            row: RunRow {
                status: RunStatus::Running,
                attempts: attempt,
                updated: now,
                ..new.pending_row()
            },
            request: new.request.clone(),
        };
        let found = db.take_runs(now, 10).await?;
        ensure_eq!(
            found,
            std::slice::from_ref(&taken),
            "the runs of attempt {attempt}"
        );
        let found = db.run("acme", new.id).await?;
        ensure_eq!(found, Some(taken.row), "the row of attempt {attempt}");
        db.release_runs(&[], now).await?;
    }
    Ok(())
}

pub(super) async fn take_leaves_a_thread_with_a_running_run_alone(db: &dyn Registry) -> Verdict {
    for n in [2, 1, 3] {
        enqueue(db, "a", n).await?;
    }
    for n in [2, 1, 3] {
        ensure_eq!(take(db, NOW, 10).await?, [n], "the runs taken");
        ensure_eq!(
            take(db, later(1_000), 10).await?,
            NONE,
            "the runs taken while {n} is running"
        );
        finish(db, n).await?;
    }
    ensure_eq!(take(db, NOW, 10).await?, NONE, "the runs taken at the end");
    Ok(())
}

pub(super) async fn take_stops_at_the_limit(db: &dyn Registry) -> Verdict {
    // Two runs of each thread, so that a limit on rows would give too few threads.
    for n in 1..=5u8 {
        let name = format!("t{n}");
        enqueue(db, &name, n).await?;
        enqueue(db, &name, n + 10).await?;
    }
    ensure_eq!(take(db, NOW, 0).await?, NONE, "none taken");
    for wanted in [&[1u8, 2] as &[u8], &[3, 4], &[5], &[]] {
        ensure_eq!(take(db, NOW, 2).await?, wanted, "two taken at most");
    }
    Ok(())
}

pub(super) async fn take_waits_until_a_run_is_due(db: &dyn Registry) -> Verdict {
    let future = NewRun {
        due: later(100),
        ..new_run(&thread("a"), 1)
    };
    create(db, &future).await?;
    for (ms, wanted) in [(0, &[] as &[u8]), (99, &[]), (100, &[1]), (101, &[])] {
        let found = take(db, later(ms), 10).await?;
        ensure_eq!(found, wanted, "the runs taken after {ms} ms");
    }
    Ok(())
}

pub(super) async fn future_run_does_not_block_later_ones(db: &dyn Registry) -> Verdict {
    let future = NewRun {
        due: later(1_000),
        ..new_run(&thread("a"), 1)
    };
    create(db, &future).await?;
    enqueue(db, "a", 2).await?;
    enqueue(db, "a", 3).await?;
    ensure_eq!(take(db, later(999), 10).await?, [2], "the run that is due");
    ensure_eq!(
        take(db, later(1_000), 10).await?,
        NONE,
        "the runs taken while another is running"
    );
    finish(db, 2).await?;
    for n in [1, 3] {
        let found = take(db, later(1_000), 10).await?;
        ensure_eq!(found, [n], "the oldest of those that are due");
        finish(db, n).await?;
    }
    Ok(())
}

pub(super) async fn take_spans_tenants_and_threads(db: &dyn Registry) -> Verdict {
    let threads = [
        thread_of("b", "x"),
        thread("x"),
        thread_of("a", "y"),
        thread_of("a", "x"),
        thread_of("B", "x"),
        thread_of("b", "X"),
    ];
    for (n, thread) in (1..).zip(&threads) {
        create(db, &new_run(thread, n)).await?;
    }
    let taken = db.take_runs(NOW, 10).await?;
    let found: Vec<_> = taken.into_iter().map(|run| run.row.thread).collect();
    ensure_eq!(found, threads, "the threads of the runs taken");
    Ok(())
}

pub(super) async fn order_is_the_creation_not_the_clock(db: &dyn Registry) -> Verdict {
    let order = [3u8, 1, 4, 2];
    for (n, ms) in order.into_iter().zip([40, 30, 20, 10]) {
        let run = NewRun {
            at: later(ms),
            due: later(ms),
            ..new_run(&thread(&format!("t{n}")), n)
        };
        create(db, &run).await?;
    }
    let found = listed(db, all_runs("")).await?;
    ensure_eq!(found, [2, 4, 1, 3], "the runs, newest first");
    let found = take(db, later(1_000), 10).await?;
    ensure_eq!(found, order, "the runs taken, oldest first");
    Ok(())
}

pub(super) async fn racing_takes_give_each_run_once(db: &dyn Registry) -> Verdict {
    for n in 0..32u8 {
        enqueue(db, &format!("t{}", n % 8), n + 1).await?;
    }
    let mut taken = BTreeSet::new();
    for _ in 0..32 {
        let (mut threads, mut round) = (BTreeSet::new(), Vec::new());
        for runs in join_all((0..8).map(|_| db.take_runs(NOW, 3))).await {
            let runs = runs?;
            ensure!(runs.len() <= 3, "{} runs were taken at once", runs.len());
            for TakenRun { row, .. } in runs {
                let n = number(row.id);
                ensure!(taken.insert(n), "the run {n} was taken twice");
                ensure!(
                    threads.insert(row.thread.clone()),
                    "two runs of {} were taken at once",
                    row.thread
                );
                round.push(n);
            }
        }
        if round.is_empty() {
            break;
        }
        for n in round {
            finish(db, n).await?;
        }
    }
    ensure_eq!(taken.len(), 32, "runs taken");
    Ok(())
}

pub(super) async fn first_end_stays(db: &dyn Registry) -> Verdict {
    for (n, status) in (1..).zip(ENDS) {
        enqueue(db, "a", n).await?;
        ensure_eq!(take(db, NOW, 1).await?, [n], "the runs taken");
        let first = run_end(status, later(10));
        ensure!(
            db.end_run("", run_id(n), &first).await?,
            "a running run was not ended"
        );
        let ended = row(db, "", n).await?;
        ensure_eq!(
            (ended.status, &ended.error, ended.updated, ended.attempts),
            (status, &first.error, later(10), 1),
            "the end of the run"
        );
        for other in ENDS {
            let second = run_end(other, later(20));
            ensure!(
                !db.end_run("", run_id(n), &second).await?,
                "a run that ended as {status:?} was ended again as {other:?}"
            );
        }
        let found = row(db, "", n).await?;
        ensure_eq!(found, ended, "the run after a second end");
    }
    Ok(())
}

pub(super) async fn racing_ends_have_one_winner(db: &dyn Registry) -> Verdict {
    for n in 1..=8u8 {
        enqueue(db, "a", n).await?;
        let ends: Vec<_> = (0..16u64)
            .map(|ms| run_end(RunStatus::Success, later(ms)))
            .collect();
        let results = join_all(ends.iter().map(|end| db.end_run("", run_id(n), end))).await;
        let mut won = Vec::new();
        for (end, result) in ends.iter().zip(results) {
            if result? {
                won.push(end.at);
            }
        }
        let ended = row(db, "", n).await?;
        ensure_eq!(won, [ended.updated], "the winners of round {n}");
    }
    Ok(())
}

pub(super) async fn ended_run_is_never_taken(db: &dyn Registry) -> Verdict {
    for (n, status) in (1..).zip(ENDS) {
        enqueue(db, "a", n).await?;
        let end = run_end(status, later(1));
        ensure!(
            db.end_run("", run_id(n), &end).await?,
            "a pending run was not ended"
        );
    }
    ensure_eq!(take(db, later(10), 10).await?, NONE, "the runs taken");
    ensure_eq!(db.next_due().await?, None, "when the next run is due");
    ensure_eq!(enqueue(db, "a", 9).await?, NONE, "the runs before the next");
    ensure_eq!(take(db, later(10), 10).await?, [9], "the next run");
    Ok(())
}

pub(super) async fn end_of_no_run_is_false(db: &dyn Registry) -> Verdict {
    enqueue(db, "a", 1).await?;
    enqueue(db, "a", 2).await?;
    ensure!(db.delete_run("", run_id(2)).await?, "there is no run 2");
    let end = run_end(RunStatus::Success, later(1));
    for (tenant, n) in [("", 2), ("", 3), ("acme", 1)] {
        ensure!(
            !db.end_run(tenant, run_id(n), &end).await?,
            "the run {n} of tenant `{tenant}` was ended"
        );
    }
    ensure_eq!(listed(db, all_runs("")).await?, [1], "the runs");
    Ok(())
}

pub(super) async fn next_due_is_the_earliest_of_the_pending(db: &dyn Registry) -> Verdict {
    let runs = [
        (thread("a"), 50),
        (thread_of("acme", "a"), 20),
        (thread("b"), 90),
    ];
    for (n, (thread, ms)) in (1..).zip(&runs) {
        let run = NewRun {
            due: later(*ms),
            ..new_run(thread, n)
        };
        create(db, &run).await?;
    }
    ensure_eq!(db.next_due().await?, Some(later(20)), "the first");
    ensure_eq!(take(db, later(30), 10).await?, [2], "the runs taken");
    ensure_eq!(db.next_due().await?, Some(later(50)), "after a take");
    db.cancel_run("", run_id(1), later(30)).await?;
    ensure_eq!(db.next_due().await?, Some(later(90)), "after a cancel");
    // Waits for the running run of its thread, and is due all the same.
    create(db, &new_run(&thread_of("acme", "a"), 4)).await?;
    ensure_eq!(db.next_due().await?, Some(NOW), "while its thread is busy");
    ensure!(db.delete_run("acme", run_id(4)).await?, "there is no run 4");
    finish(db, 3).await?;
    ensure_eq!(db.next_due().await?, None, "with no pending run");
    Ok(())
}

pub(super) async fn release_makes_running_runs_pending(db: &dyn Registry) -> Verdict {
    for (thread, n) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
        enqueue(db, thread, n).await?;
    }
    ensure_eq!(take(db, later(5), 3).await?, [1, 2, 3], "the runs taken");
    finish(db, 3).await?;
    let (ended, waiting) = (row(db, "", 3).await?, row(db, "", 4).await?);
    ensure_eq!(db.release_runs(&[], later(9)).await?, 2, "runs released");
    for (name, n) in [("a", 1), ("b", 2)] {
        let wanted = RunRow {
            attempts: 1,
            updated: later(9),
            ..new_run(&thread(name), n).pending_row()
        };
        ensure_eq!(row(db, "", n).await?, wanted, "the released run {n}");
    }
    ensure_eq!(row(db, "", 3).await?, ended, "the run that ended before");
    ensure_eq!(row(db, "", 4).await?, waiting, "the run that was pending");
    ensure_eq!(
        db.release_runs(&[], later(10)).await?,
        0,
        "runs released again"
    );
    Ok(())
}

pub(super) async fn released_runs_keep_their_order(db: &dyn Registry) -> Verdict {
    for (thread, n) in [("b", 3), ("a", 2), ("a", 1), ("b", 4), ("c", 5)] {
        enqueue(db, thread, n).await?;
    }
    for _ in 0..3 {
        ensure_eq!(take(db, NOW, 2).await?, [3, 2], "the runs taken");
        ensure_eq!(db.release_runs(&[], later(9)).await?, 2, "runs released");
    }
    let found = listed(db, all_runs("")).await?;
    ensure_eq!(found, [5, 4, 1, 2, 3], "the runs, newest first");
    Ok(())
}

pub(super) async fn cancel_withdraws_a_pending_run(db: &dyn Registry) -> Verdict {
    let new = new_run(&thread("a"), 1);
    create(db, &new).await?;
    enqueue(db, "a", 2).await?;
    let cancelled = db.cancel_run("", new.id, later(5)).await?;
    ensure_eq!(cancelled, CancelledRun::Withdrawn, "a pending run");
    let withdrawn = RunRow {
        status: RunStatus::Interrupted,
        updated: later(5),
        ..new.pending_row()
    };
    ensure_eq!(row(db, "", 1).await?, withdrawn, "the withdrawn run");
    let cancelled = db.cancel_run("", new.id, later(6)).await?;
    ensure_eq!(cancelled, CancelledRun::Ended, "a withdrawn run");
    let end = run_end(RunStatus::Success, later(7));
    ensure!(
        !db.end_run("", new.id, &end).await?,
        "a withdrawn run was ended again"
    );
    ensure_eq!(take(db, later(8), 10).await?, [2], "the runs taken");
    ensure_eq!(db.release_runs(&[], later(9)).await?, 1, "runs released");
    let found = row(db, "", 1).await?;
    ensure_eq!(found, withdrawn, "the withdrawn run in the end");
    Ok(())
}

pub(super) async fn idle_runs_are_released_and_touched_ones_are_not(db: &dyn Registry) -> Verdict {
    for (thread, id) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
        enqueue(db, thread, id).await?;
    }
    ensure_eq!(take(db, later(1), 3).await?, [1, 2, 3], "the runs taken");
    let end = run_end(RunStatus::Success, later(2));
    ensure!(
        db.end_run("", run_id(3), &end).await?,
        "run 3 was not ended"
    );
    let ended = row(db, "", 3).await?;
    let pending = row(db, "", 4).await?;
    let touched = [run_id(2), run_id(3), run_id(4), run_id(9)];
    db.touch_runs(&touched, later(5)).await?;
    ensure_eq!(
        row(db, "", 2).await?.updated,
        later(5),
        "the time of the touched run"
    );
    ensure_eq!(
        row(db, "", 1).await?.updated,
        later(1),
        "the time of another run"
    );
    let released = db.release_idle_runs(later(4), later(6)).await?;
    ensure_eq!(released, 1, "runs released");
    let found = row(db, "", 1).await?;
    ensure_eq!(
        found.status,
        RunStatus::Pending,
        "the status of the idle run"
    );
    ensure_eq!(found.updated, later(6), "the time of the idle run");
    let status = row(db, "", 2).await?.status;
    ensure_eq!(status, RunStatus::Running, "the status of the touched run");
    ensure_eq!(row(db, "", 3).await?, ended, "a run that has ended");
    ensure_eq!(row(db, "", 4).await?, pending, "a run that is pending");
    ensure_eq!(
        db.release_idle_runs(later(5), later(7)).await?,
        1,
        "runs released whose last change was at that time"
    );
    ensure_eq!(
        take(db, later(8), 10).await?,
        [1, 2, 4],
        "the runs taken again"
    );
    Ok(())
}

pub(super) async fn release_leaves_what_is_held(db: &dyn Registry) -> Verdict {
    for (thread, id) in [("a", 1), ("b", 2), ("c", 3)] {
        enqueue(db, thread, id).await?;
    }
    ensure_eq!(take(db, later(1), 2).await?, [1, 2], "the runs taken");
    let held = [run_id(2), run_id(9)];
    ensure_eq!(db.release_runs(&held, later(2)).await?, 1, "runs released");
    let status = row(db, "", 2).await?.status;
    ensure_eq!(status, RunStatus::Running, "the status of the held run");
    ensure_eq!(
        take(db, later(3), 10).await?,
        [1, 3],
        "the runs taken again"
    );
    Ok(())
}

pub(super) async fn cancel_changes_only_pending_runs(db: &dyn Registry) -> Verdict {
    enqueue(db, "a", 1).await?;
    ensure_eq!(take(db, later(1), 10).await?, [1], "the runs taken");
    let running = row(db, "", 1).await?;
    let cancelled = db.cancel_run("", run_id(1), later(2)).await?;
    ensure_eq!(cancelled, CancelledRun::Running, "a running run");
    let found = row(db, "", 1).await?;
    ensure_eq!(found, running, "the running run after the cancel");
    finish(db, 1).await?;
    let ended = row(db, "", 1).await?;
    let cancelled = db.cancel_run("", run_id(1), later(9)).await?;
    ensure_eq!(cancelled, CancelledRun::Ended, "a run that ended");
    let found = row(db, "", 1).await?;
    ensure_eq!(found, ended, "the ended run after the cancel");
    let cancelled = db.cancel_run("", run_id(2), later(9)).await?;
    ensure_eq!(cancelled, CancelledRun::Missing, "no run");
    Ok(())
}

pub(super) async fn released_run_is_not_withdrawn(db: &dyn Registry) -> Verdict {
    enqueue(db, "a", 1).await?;
    ensure_eq!(take(db, later(1), 10).await?, [1], "the runs taken");
    ensure_eq!(db.release_runs(&[], later(2)).await?, 1, "runs released");
    let released = row(db, "", 1).await?;
    let cancelled = db.cancel_run("", run_id(1), later(3)).await?;
    ensure_eq!(cancelled, CancelledRun::Running, "a released run");
    let found = row(db, "", 1).await?;
    ensure_eq!(found, released, "the released run after the cancel");
    ensure_eq!(take(db, later(4), 10).await?, [1], "the runs taken again");
    Ok(())
}

pub(super) async fn racing_cancel_and_take_agree(db: &dyn Registry) -> Verdict {
    for n in 1..=16u8 {
        enqueue(db, "a", n).await?;
        let cancel = db.cancel_run("", run_id(n), later(1));
        let take = db.take_runs(later(1), 1);
        let (cancelled, taken) = if n % 2 == 0 {
            join(cancel, take).await
        } else {
            let (taken, cancelled) = join(take, cancel).await;
            (cancelled, taken)
        };
        let taken: Vec<_> = taken?.iter().map(|run| number(run.row.id)).collect();
        match cancelled? {
            CancelledRun::Withdrawn => {
                ensure_eq!(taken, NONE, "the runs taken although withdrawn");
            }
            CancelledRun::Running => {
                ensure_eq!(taken, [n], "the run that was taken first");
                finish(db, n).await?;
            }
            other => return Err(Fault::new(format!("the cancel found {other:?}"))),
        }
    }
    Ok(())
}

pub(super) async fn deleted_run_leaves_nothing(db: &dyn Registry) -> Verdict {
    for n in 1..=3u8 {
        enqueue(db, "a", n).await?;
    }
    ensure_eq!(take(db, NOW, 10).await?, [1], "the runs taken");
    for n in [1, 2] {
        ensure!(db.delete_run("", run_id(n)).await?, "there is no run {n}");
        ensure!(
            !db.delete_run("", run_id(n)).await?,
            "the run {n} was deleted twice"
        );
        let found = db.run("", run_id(n)).await?;
        ensure_eq!(found, None, "the deleted run");
    }
    ensure_eq!(listed(db, all_runs("")).await?, [3], "the runs left");
    ensure_eq!(take(db, NOW, 10).await?, [3], "the runs taken next");
    let again = NewRun {
        request: b"again".to_vec(),
        ..new_run(&thread("b"), 1)
    };
    ensure_eq!(create(db, &again).await?, NONE, "the runs before it");
    let found = row(db, "", 1).await?;
    ensure_eq!(
        found,
        again.pending_row(),
        "a run with the id of a deleted one"
    );
    Ok(())
}

pub(super) async fn delete_of_a_thread_keeps_other_threads(db: &dyn Registry) -> Verdict {
    let others = [
        thread_of("acme", "a"),
        thread_of("Acme", "a"),
        thread("A"),
        thread("ab"),
        thread("a-"),
    ];
    for (n, other) in (1..).zip(&others) {
        create(db, &new_run(other, n)).await?;
    }
    for n in 10..=13u8 {
        enqueue(db, "a", n).await?;
    }
    finish(db, 10).await?;
    db.cancel_run("", run_id(11), NOW).await?;
    let taken = take(db, NOW, 10).await?;
    ensure!(taken.contains(&12), "the run 12 was not taken");
    ensure_eq!(db.delete_runs(&thread("a")).await?, 4, "runs deleted");
    ensure_eq!(db.delete_runs(&thread("a")).await?, 0, "runs deleted again");
    for (n, other) in (1..).zip(&others) {
        let found = listed(db, all_runs(other.tenant())).await?;
        ensure!(found.contains(&n), "the run of {other} was deleted");
        ensure!(!found.contains(&12), "a run was not deleted");
    }
    Ok(())
}

pub(super) async fn runs_are_listed_newest_first(db: &dyn Registry) -> Verdict {
    for (thread, n) in [("a", 2), ("b", 3), ("a", 1)] {
        enqueue(db, thread, n).await?;
    }
    let found = listed(db, all_runs("")).await?;
    ensure_eq!(found, [1, 3, 2], "the runs");
    ensure_eq!(take(db, later(5), 1).await?, [2], "the runs taken");
    let found = listed(db, all_runs("")).await?;
    ensure_eq!(found, [1, 3, 2], "the runs after one of them was changed");
    Ok(())
}

pub(super) async fn runs_by_thread_and_status(db: &dyn Registry) -> Verdict {
    use RunStatus::{Error, Pending, Running, Success};
    for (thread, n) in [("a", 1), ("a", 2), ("a", 3), ("ab", 4), ("b", 5)] {
        enqueue(db, thread, n).await?;
    }
    finish(db, 1).await?;
    ensure_eq!(take(db, NOW, 1).await?, [2], "the runs taken");
    let query = |name: Option<&str>, statuses: &[RunStatus]| RunQuery {
        thread: name.map(thread),
        statuses: statuses.to_vec(),
        ..all_runs("")
    };
    for (thread, statuses, wanted) in [
        (None, &[] as &[RunStatus], &[5u8, 4, 3, 2, 1] as &[u8]),
        (Some("a"), &[], &[3, 2, 1]),
        (Some("A"), &[], &[]),
        (None, &[Pending], &[5, 4, 3]),
        (None, &[Running], &[2]),
        (None, &[Error], &[]),
        (None, &[Success, Running], &[2, 1]),
        (Some("a"), &[Pending, Success], &[3, 1]),
        (Some("b"), &[Running], &[]),
    ] {
        let found = listed(db, query(thread, statuses)).await?;
        ensure_eq!(
            found,
            wanted,
            "the runs of {thread:?} that are {statuses:?}"
        );
    }
    Ok(())
}

pub(super) async fn active_runs_of_a_tenant(db: &dyn Registry) -> Verdict {
    for (thread, n) in [("a", 1), ("a", 2), ("a", 3), ("b", 4)] {
        enqueue(db, thread, n).await?;
    }
    finish(db, 1).await?;
    ensure_eq!(take(db, NOW, 1).await?, [2], "the runs taken");
    let run = |name: &str, is_running: bool| ActiveRun {
        thread: thread(name),
        is_running,
    };
    let mut found = db.active_runs("", 10).await?;
    found.sort();
    let wanted = [run("a", false), run("a", true), run("b", false)];
    ensure_eq!(found, wanted, "the active runs");
    ensure_eq!(db.active_runs("", 2).await?.len(), 2, "two active runs");
    let elsewhere = db.active_runs("elsewhere", 10).await?.len();
    ensure_eq!(elsewhere, 0, "active runs of another tenant");
    Ok(())
}

pub(super) async fn runs_by_ids(db: &dyn Registry) -> Verdict {
    for n in 1..=20u8 {
        enqueue(db, "a", n).await?;
    }
    let every: Vec<u8> = (1..=20u8).collect();
    let newest_first: Vec<u8> = (1..=20u8).rev().collect();
    for (ids, wanted) in [
        (&[3u8, 1, 2] as &[u8], &[3u8, 2, 1] as &[u8]),
        (&[7, 7], &[7]),
        (&[99, 5], &[5]),
        (&[99], &[]),
        (&[], &[]),
        (every.as_slice(), newest_first.as_slice()),
    ] {
        let query = RunQuery {
            ids: Some(ids.iter().map(|n| run_id(*n)).collect()),
            ..all_runs("")
        };
        let found = listed(db, query).await?;
        ensure_eq!(found, wanted, "the runs with the ids {ids:?}");
    }
    Ok(())
}

pub(super) async fn runs_by_metadata_as_the_model(db: &dyn Registry) -> Verdict {
    let wholes = [
        json!({}),
        json!({ "a": 1 }),
        json!({ "a": 1.0 }),
        json!({ "a": 1.5 }),
        json!({ "a": "1" }),
        json!({ "a": null }),
        json!({ "a": true }),
        json!({ "a": [1, 2] }),
        json!({ "a": [[1], { "b": 2 }] }),
        json!({ "a": { "b": 1, "c": 2 } }),
        json!({ "a": { "b": [{ "c": 1, "d": 2 }, 3] } }),
        json!({ "a": 1, "b": "x" }),
        json!({ "A": 1 }),
        json!({ "a.b": 1 }),
    ];
    for (n, metadata) in (1..).zip(&wholes) {
        let run = NewRun {
            metadata: metadata.clone(),
            ..new_run(&thread("a"), n)
        };
        create(db, &run).await?;
    }
    let parts = [
        json!({ "a": [] }),
        json!({ "a": {} }),
        json!({ "a": [2] }),
        json!({ "a": [2, 1, 1] }),
        json!({ "a": [3] }),
        json!({ "a": [[]] }),
        json!({ "a": { "b": 1 } }),
        json!({ "a": { "b": [3, { "d": 2 }] } }),
        json!({ "a": { "b": [{}] } }),
        json!({ "b": "x" }),
        json!({ "b": "X" }),
        json!({ "b": null }),
        json!({ "a": false }),
    ];
    for part in wholes.iter().chain(&parts) {
        let query = RunQuery {
            metadata: Some(part.clone()),
            ..all_runs("")
        };
        let mut wanted: Vec<u8> = (1..)
            .zip(&wholes)
            .filter(|(_, whole)| json_contains(whole, part))
            .map(|(n, _)| n)
            .collect();
        wanted.reverse();
        let found = listed(db, query).await?;
        ensure_eq!(found, wanted, "the runs whose metadata contains {part}");
    }
    Ok(())
}

pub(super) async fn runs_are_filtered_before_they_are_paged(db: &dyn Registry) -> Verdict {
    for n in 1..=30u8 {
        let run = NewRun {
            metadata: json!({ "even": n % 2 == 0 }),
            ..new_run(&thread("a"), n)
        };
        create(db, &run).await?;
    }
    let found = listed(db, RunQuery::default()).await?;
    let newest: Vec<u8> = (21..=30u8).rev().collect();
    ensure_eq!(found, newest, "the first page");
    for (limit, offset, wanted) in [
        (3, 0, &[30u8, 28, 26] as &[u8]),
        (3, 3, &[24, 22, 20]),
        (5, 13, &[4, 2]),
        (5, 15, &[]),
        (0, 0, &[]),
    ] {
        let query = RunQuery {
            metadata: Some(json!({ "even": true })),
            statuses: vec![RunStatus::Pending],
            thread: Some(thread("a")),
            page: Page { limit, offset },
            ..RunQuery::default()
        };
        let found = listed(db, query).await?;
        ensure_eq!(found, wanted, "{limit} runs after {offset}");
    }
    Ok(())
}

pub(super) async fn tenants_are_apart_in_runs(db: &dyn Registry) -> Verdict {
    let own = NewRun {
        metadata: json!({ "user": "ann" }),
        ..new_run(&thread_of("acme", "x"), 1)
    };
    create(db, &own).await?;
    for tenant in STRANGERS {
        let found = db.run(tenant, own.id).await?;
        ensure_eq!(found, None, "the run, read by tenant `{tenant}`");
        let by_thread = RunQuery {
            thread: Some(own.thread.clone()),
            ..all_runs(tenant)
        };
        let by_id = RunQuery {
            ids: Some(vec![own.id]),
            ..all_runs(tenant)
        };
        let by_metadata = RunQuery {
            metadata: Some(own.metadata.clone()),
            ..all_runs(tenant)
        };
        for query in [all_runs(tenant), by_thread, by_id, by_metadata] {
            let found = listed(db, query).await?;
            ensure_eq!(found, NONE, "the runs of tenant `{tenant}`");
        }
        let end = run_end(RunStatus::Error, later(9));
        ensure!(
            !db.end_run(tenant, own.id, &end).await?,
            "tenant `{tenant}` ended the run"
        );
        ensure_eq!(
            db.cancel_run(tenant, own.id, later(9)).await?,
            CancelledRun::Missing,
            "the cancel of tenant `{tenant}`"
        );
        ensure!(
            !db.delete_run(tenant, own.id).await?,
            "tenant `{tenant}` deleted the run"
        );
        if let Ok(other) = ThreadId::of_tenant(tenant, "x") {
            ensure_eq!(db.delete_runs(&other).await?, 0, "runs of {other} deleted");
        }
    }
    let found = row(db, "acme", 1).await?;
    ensure_eq!(found, own.pending_row(), "the run after all of that");
    Ok(())
}

pub(super) async fn hostile_texts_of_runs_survive(db: &dyn Registry) -> Verdict {
    let texts = hostile_texts();
    for (n, text) in (1..).zip(&texts) {
        let new = NewRun {
            principal: text.clone(),
            request: text.as_bytes().to_vec(),
            arguments: json!({ text: text }),
            metadata: json!({ text: text }),
            ..new_run(&thread("a"), n)
        };
        create(db, &new).await?;
        let found = row(db, "", n).await?;
        ensure_eq!(found, new.pending_row(), "the run with {text:?}");
    }
    for (n, text) in (1..).zip(&texts) {
        for (metadata, wanted) in [
            (json!({ text: text }), &[n] as &[u8]),
            (json!({ text: "other" }), &[]),
        ] {
            let query = RunQuery {
                metadata: Some(metadata),
                ..all_runs("")
            };
            let found = listed(db, query).await?;
            ensure_eq!(found, wanted, "the runs found by {text:?}");
        }
        let end = RunEnd {
            error: json!({ text: text }),
            ..run_end(RunStatus::Error, later(9))
        };
        ensure!(
            db.end_run("", run_id(n), &end).await?,
            "the run with {text:?} was not ended"
        );
        let found = row(db, "", n).await?.error;
        ensure_eq!(found, end.error, "the error with {text:?}");
    }
    let found = listed(db, all_runs("")).await?;
    ensure_eq!(found.len(), texts.len(), "runs");
    Ok(())
}

pub(super) async fn every_json_value_of_a_run_survives(db: &dyn Registry) -> Verdict {
    let values = [
        json!(null),
        json!(false),
        json!(0),
        json!(-1),
        json!(1.0),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e300),
        json!(""),
        json!("null"),
        json!("\u{0}\u{1f600}"),
        json!([]),
        json!({}),
        json!([null]),
        json!({ "a": null, "": { "b": [[[]]] } }),
    ];
    for (n, value) in (1..).zip(&values) {
        let new = NewRun {
            arguments: value.clone(),
            metadata: json!({ "value": value }),
            ..new_run(&thread("a"), n)
        };
        create(db, &new).await?;
        let found = row(db, "", n).await?;
        ensure_eq!(found, new.pending_row(), "the run with {value}");
        let end = RunEnd {
            error: value.clone(),
            ..run_end(RunStatus::Error, later(9))
        };
        db.end_run("", run_id(n), &end).await?;
        let found = row(db, "", n).await?.error;
        ensure_eq!(found, *value, "the error of the run");
    }
    Ok(())
}

pub(super) async fn large_runs_are_stored_whole(db: &dyn Registry) -> Verdict {
    let new = NewRun {
        request: (0..=255u8).cycle().take(1 << 20).collect(),
        arguments: json!({ "text": "\u{e9}".repeat(1 << 19), "list": vec![1; 10_000] }),
        metadata: json!({ "text": "x".repeat(1 << 16) }),
        ..new_run(&thread("a"), 1)
    };
    create(db, &new).await?;
    let found = row(db, "", 1).await?;
    ensure!(found == new.pending_row(), "the row is not as it was given");
    let taken = db.take_runs(NOW, 1).await?;
    ensure!(
        taken.len() == 1 && taken[0].request == new.request,
        "the request is not as it was given"
    );
    Ok(())
}

pub(super) async fn created_assistant_is_read_as_given(db: &dyn Registry) -> Verdict {
    let new = NewAssistant {
        tenant: "acme".into(),
        graph: "support".into(),
        description: "Answers mail".into(),
        config: json!({ "recursion_limit": 5, "tags": ["a"] }),
        context: json!({ "language": "en", "deep": { "n": 1.5 } }),
        metadata: json!({ "owner": "ann" }),
        at: later(3),
        ..new_assistant(1)
    };
    let first = new.first_version();
    ensure_eq!(
        db.create_assistant(&new).await?,
        CreatedAssistant::Stored(first.clone()),
        "what the call did"
    );
    let found = db.assistant("acme", new.id).await?;
    ensure_eq!(found, Some(first.clone()), "the assistant");
    let found = versions(db, "acme", 1).await?;
    ensure_eq!(found, std::slice::from_ref(&first), "its versions");
    let found = db.assistants(&all_assistants("acme")).await?;
    ensure_eq!(found, [first], "the assistants of the tenant");
    let found = db.assistant("acme", assistant_id(2)).await?;
    ensure_eq!(found, None, "another assistant");
    let found = versions(db, "acme", 2).await?;
    ensure_eq!(found, vec![], "the versions of another assistant");
    Ok(())
}

pub(super) async fn same_assistant_twice_is_stored_once(db: &dyn Registry) -> Verdict {
    let first = create_assistant(db, &new_assistant(1)).await?;
    let other = NewAssistant {
        name: "other".into(),
        metadata: json!({ "other": true }),
        at: later(9),
        ..new_assistant(1)
    };
    ensure_eq!(
        db.create_assistant(&other).await?,
        CreatedAssistant::Exists(first.clone()),
        "the assistant created again"
    );
    let found = versions(db, "", 1).await?;
    ensure_eq!(found, [first], "its versions");
    let changed = change(db, 1, &named("changed"), later(10)).await?;
    ensure_eq!(
        db.create_assistant(&other).await?,
        CreatedAssistant::Exists(changed),
        "the assistant created again after a change"
    );
    Ok(())
}

pub(super) async fn racing_creates_of_one_assistant_store_one(db: &dyn Registry) -> Verdict {
    for round in 1..=4u8 {
        let all: Vec<_> = (0..16)
            .map(|n| NewAssistant {
                name: format!("{round} {n}"),
                ..new_assistant(round)
            })
            .collect();
        let results = join_all(all.iter().map(|new| db.create_assistant(new))).await;
        let (mut stored, mut found) = (Vec::new(), Vec::new());
        for result in results {
            match result? {
                CreatedAssistant::Stored(assistant) => stored.push(assistant),
                CreatedAssistant::Exists(assistant) => found.push(assistant),
            }
        }
        ensure_eq!(stored.len(), 1, "assistants stored in round {round}");
        ensure!(
            found.iter().all(|assistant| *assistant == stored[0]),
            "the losers of round {round} found {found:?}, the winner stored {stored:?}"
        );
        let found = versions(db, "", round).await?;
        ensure_eq!(found, stored, "the versions after round {round}");
    }
    Ok(())
}

pub(super) async fn change_makes_a_version_and_merges_metadata(db: &dyn Registry) -> Verdict {
    let new = NewAssistant {
        description: "first".into(),
        config: json!({ "x": 1, "y": 2 }),
        context: json!({ "c": 1 }),
        metadata: json!({ "kept": 1, "deep": { "a": 1, "b": 2 }, "list": [1, 2] }),
        ..new_assistant(1)
    };
    let first = create_assistant(db, &new).await?;
    let update = AssistantChange {
        graph: Some("other".into()),
        name: Some("changed".into()),
        config: Some(json!({ "y": 3 })),
        metadata: Some(json!({ "deep": { "b": 3 }, "new": null })),
        ..AssistantChange::default()
    };
    let changed = change(db, 1, &update, later(10)).await?;
    let wanted = Assistant {
        graph: "other".into(),
        name: "changed".into(),
        config: json!({ "y": 3 }),
        metadata: json!({ "kept": 1, "deep": { "b": 3 }, "list": [1, 2], "new": null }),
        version: 2,
        updated: later(10),
        ..first.clone()
    };
    ensure_eq!(changed, wanted, "the changed assistant");
    let found = db.assistant("", assistant_id(1)).await?;
    ensure_eq!(found, Some(wanted.clone()), "the current version");
    let found = created_at(NOW, versions(db, "", 1).await?);
    ensure_eq!(found, [wanted.clone(), first], "the versions");

    let changed = change(db, 1, &AssistantChange::default(), later(20)).await?;
    let same = Assistant {
        version: 3,
        updated: later(20),
        ..wanted
    };
    ensure_eq!(changed, same, "the version of an empty change");
    let missing = assistant_id(2);
    let found = db.change_assistant("", missing, &update, later(30)).await?;
    ensure_eq!(found, None, "the change of no assistant");
    let found = db.assistant("", missing).await?;
    ensure_eq!(found, None, "an assistant that only a change has named");
    Ok(())
}

pub(super) async fn older_version_becomes_the_current_one(db: &dyn Registry) -> Verdict {
    let first = create_assistant(db, &new_assistant(1)).await?;
    let second = change(db, 1, &named("second"), later(10)).await?;
    let id = assistant_id(1);
    let found = db.use_assistant_version("", id, 1, later(20)).await?;
    let used = Assistant {
        updated: later(20),
        ..first
    };
    ensure_eq!(found.as_ref(), Some(&used), "the version that is used");
    let found = db.assistant("", id).await?;
    ensure_eq!(found.as_ref(), Some(&used), "the current version");
    let found = created_at(NOW, versions(db, "", 1).await?);
    ensure_eq!(found, [second, used.clone()], "the versions");
    for version in [0, 3, u32::MAX] {
        let found = db.use_assistant_version("", id, version, later(30)).await?;
        ensure_eq!(found, None, "the version {version}");
    }
    let found = db
        .use_assistant_version("", assistant_id(2), 1, later(30))
        .await?;
    ensure_eq!(found, None, "the version of no assistant");
    let found = db.assistant("", id).await?;
    ensure_eq!(found, Some(used), "the current version in the end");
    Ok(())
}

pub(super) async fn version_numbers_are_not_reused(db: &dyn Registry) -> Verdict {
    create_assistant(db, &new_assistant(1)).await?;
    change(db, 1, &named("second"), later(10)).await?;
    change(db, 1, &named("third"), later(20)).await?;
    let id = assistant_id(1);
    db.use_assistant_version("", id, 1, later(30)).await?;
    let described = AssistantChange {
        description: Some("described".into()),
        ..AssistantChange::default()
    };
    let changed = change(db, 1, &described, later(40)).await?;
    ensure_eq!(
        (changed.version, changed.name.as_str()),
        (4, "assistant 1"),
        "a change of version 1 after version 3"
    );
    db.use_assistant_version("", id, 2, later(50)).await?;
    let changed = change(db, 1, &described, later(60)).await?;
    ensure_eq!(
        (changed.version, changed.name.as_str()),
        (5, "second"),
        "a change of version 2 after version 4"
    );
    let found = versions(db, "", 1).await?;
    let found: Vec<_> = found.into_iter().map(|found| found.version).collect();
    ensure_eq!(found, [5, 4, 3, 2, 1], "the versions");
    Ok(())
}

pub(super) async fn racing_changes_make_a_version_each(db: &dyn Registry) -> Verdict {
    create_assistant(db, &new_assistant(1)).await?;
    let id = assistant_id(1);
    let changes: Vec<_> = (0..16).map(|n| named(&format!("name {n}"))).collect();
    let results = join_all(
        changes
            .iter()
            .map(|change| db.change_assistant("", id, change, later(1))),
    )
    .await;
    let mut made = BTreeSet::new();
    for result in results {
        let Some(changed) = result? else {
            return Err(Fault::new("there is no assistant 1".into()));
        };
        made.insert(changed.version);
    }
    let wanted: BTreeSet<u32> = (2..=17).collect();
    ensure_eq!(made, wanted, "the versions made");
    let found = versions(db, "", 1).await?;
    ensure_eq!(found.len(), 17, "versions");
    let current = db.assistant("", id).await?;
    let current = current.map(|current| current.version);
    ensure_eq!(current, Some(17), "the current version");
    Ok(())
}

pub(super) async fn versions_are_newest_first_by_page(db: &dyn Registry) -> Verdict {
    create_assistant(db, &new_assistant(1)).await?;
    for n in 2..=12u64 {
        change(db, 1, &named(&format!("name {n}")), later(n)).await?;
    }
    for (limit, offset, wanted) in [
        (5, 0, &[12u32, 11, 10, 9, 8] as &[u32]),
        (5, 5, &[7, 6, 5, 4, 3]),
        (5, 10, &[2, 1]),
        (5, 12, &[]),
        (0, 0, &[]),
    ] {
        let page = Page { limit, offset };
        let found = db.assistant_versions("", assistant_id(1), page).await?;
        let found: Vec<_> = found.into_iter().map(|found| found.version).collect();
        ensure_eq!(found, wanted, "{limit} versions after {offset}");
    }
    Ok(())
}

pub(super) async fn versions_show_when_their_assistant_was_created(db: &dyn Registry) -> Verdict {
    create_assistant(db, &new_assistant(1)).await?;
    change(db, 1, &named("second"), later(10)).await?;
    change(db, 1, &named("third"), later(20)).await?;
    let id = assistant_id(1);
    db.use_assistant_version("", id, 2, later(30)).await?;
    let found = versions(db, "", 1).await?;
    let times: Vec<_> = found.iter().map(|v| (v.created, v.updated)).collect();
    let wanted = [(NOW, later(20)), (NOW, later(30)), (NOW, NOW)];
    ensure_eq!(times, wanted, "created and updated of the versions");
    let current = db.assistant("", id).await?;
    ensure_eq!(current.as_ref(), found.get(1), "the current version");
    Ok(())
}

pub(super) async fn assistants_by_name_whatever_its_case(db: &dyn Registry) -> Verdict {
    let names = [
        "Weather Bot",
        "weather",
        "WEATHERMAN",
        "Bot",
        "100%",
        "a_b",
        "axb",
        "\u{c4}RZTE",
        "it's",
    ];
    for (n, name) in (1..).zip(names) {
        let new = NewAssistant {
            name: name.into(),
            ..new_assistant(n)
        };
        create_assistant(db, &new).await?;
    }
    for (name, wanted) in [
        ("weather", &[1u8, 2, 3] as &[u8]),
        ("WEATHER", &[1, 2, 3]),
        ("r b", &[1]),
        ("bot", &[1, 4]),
        ("%", &[5]),
        ("_", &[6]),
        ("X", &[7]),
        ("\u{e4}rzte", &[8]),
        ("'", &[9]),
        ("weather%", &[]),
        ("*", &[]),
        ("", &[1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ] {
        let query = AssistantQuery {
            name: Some(name.into()),
            ..all_assistants("")
        };
        finds(db, query, wanted).await?;
    }
    Ok(())
}

pub(super) async fn assistants_by_graph_and_metadata(db: &dyn Registry) -> Verdict {
    for (n, graph, metadata) in [
        (1, "mail", json!({ "team": { "name": "ops" }, "n": 1 })),
        (2, "mail", json!({ "team": { "name": "dev" } })),
        (3, "Mail", json!({ "team": { "name": "ops" } })),
        (4, "mail2", json!({})),
    ] {
        let new = NewAssistant {
            graph: graph.into(),
            metadata,
            ..new_assistant(n)
        };
        create_assistant(db, &new).await?;
    }
    let ops = json!({ "team": { "name": "ops" } });
    for (graph, metadata, wanted) in [
        (None, None, &[1u8, 2, 3, 4] as &[u8]),
        (Some("mail"), None, &[1, 2]),
        (Some("mai_"), None, &[]),
        (Some(""), None, &[]),
        (None, Some(&ops), &[1, 3]),
        (None, Some(&json!({})), &[1, 2, 3, 4]),
        (Some("mail"), Some(&ops), &[1]),
        (Some("mail2"), Some(&ops), &[]),
    ] {
        let query = AssistantQuery {
            graph: graph.map(str::to_owned),
            metadata: metadata.cloned(),
            ..all_assistants("")
        };
        finds(db, query, wanted).await?;
    }
    Ok(())
}

pub(super) async fn assistants_are_found_by_their_current_version(db: &dyn Registry) -> Verdict {
    let by_name = |name: &str| AssistantQuery {
        name: Some(name.to_owned()),
        ..all_assistants("")
    };
    create_assistant(db, &new_assistant(1)).await?;
    change(db, 1, &named("second"), later(10)).await?;
    finds(db, by_name("assistant"), NONE).await?;
    finds(db, by_name("second"), &[1]).await?;
    let id = assistant_id(1);
    db.use_assistant_version("", id, 1, later(20)).await?;
    finds(db, by_name("assistant"), &[1]).await?;
    finds(db, by_name("second"), NONE).await?;
    finds(db, all_assistants(""), &[1]).await?;
    Ok(())
}

pub(super) async fn assistants_are_sorted_both_ways(db: &dyn Registry) -> Verdict {
    for (n, graph, name, ms) in [
        (4, "c", "B", 20),
        (1, "b", "a", 30),
        (3, "a", "c", 20),
        (2, "a", "B", 10),
    ] {
        let new = NewAssistant {
            graph: graph.into(),
            name: name.into(),
            at: later(ms),
            ..new_assistant(n)
        };
        create_assistant(db, &new).await?;
    }
    change(db, 2, &AssistantChange::default(), later(40)).await?;
    // Equal ones are in the order of their ids both ways.
    for (sort, up, down) in [
        (AssistantSort::Id, [1u8, 2, 3, 4], [4u8, 3, 2, 1]),
        (AssistantSort::Graph, [2, 3, 1, 4], [4, 1, 2, 3]),
        (AssistantSort::Name, [2, 4, 1, 3], [3, 1, 2, 4]),
        (AssistantSort::Created, [2, 3, 4, 1], [1, 3, 4, 2]),
        (AssistantSort::Updated, [3, 4, 1, 2], [2, 1, 3, 4]),
    ] {
        for (is_descending, wanted) in [(false, up), (true, down)] {
            let query = AssistantQuery {
                sort,
                is_descending,
                ..all_assistants("")
            };
            finds(db, query.clone(), &wanted).await?;
            let page = Page {
                limit: 2,
                offset: 1,
            };
            let found = db.assistants(&AssistantQuery { page, ..query }).await?;
            let found = assistant_numbers(&found);
            ensure_eq!(found, wanted[1..3], "a page of assistants by {sort:?}");
        }
    }
    Ok(())
}

pub(super) async fn count_of_assistants_is_of_all_pages(db: &dyn Registry) -> Verdict {
    for n in 1..=15u8 {
        let graph = if n % 3 == 0 { "third" } else { "other" };
        let new = NewAssistant {
            graph: graph.into(),
            ..new_assistant(n)
        };
        create_assistant(db, &new).await?;
    }
    change(db, 3, &named("changed"), later(10)).await?;
    let first_page = AssistantQuery::default();
    let found = db.assistants(&first_page).await?;
    ensure_eq!(found.len(), 10, "assistants on the first page");
    let counted = db.count_assistants(&first_page).await?;
    ensure_eq!(counted, 15, "assistants on all pages");
    let query = AssistantQuery {
        graph: Some("third".into()),
        page: Page {
            limit: 2,
            offset: 2,
        },
        ..AssistantQuery::default()
    };
    let found = assistant_numbers(&db.assistants(&query).await?);
    ensure_eq!(found, [9, 12], "the second page of a graph");
    let counted = db.count_assistants(&query).await?;
    ensure_eq!(counted, 5, "assistants of a graph");
    Ok(())
}

pub(super) async fn deleted_assistant_leaves_no_versions(db: &dyn Registry) -> Verdict {
    for n in [1, 2] {
        create_assistant(db, &new_assistant(n)).await?;
        change(db, n, &named("changed"), later(10)).await?;
    }
    let id = assistant_id(1);
    ensure!(
        db.delete_assistant("", id).await?,
        "there is no assistant 1"
    );
    ensure!(
        !db.delete_assistant("", id).await?,
        "an assistant was deleted twice"
    );
    let found = db.assistant("", id).await?;
    ensure_eq!(found, None, "the deleted assistant");
    let found = versions(db, "", 1).await?;
    ensure_eq!(found, vec![], "the versions of the deleted assistant");
    let found = db.use_assistant_version("", id, 1, later(20)).await?;
    ensure_eq!(found, None, "a version of the deleted assistant");
    finds(db, all_assistants(""), &[2]).await?;
    let found = versions(db, "", 2).await?;
    ensure_eq!(found.len(), 2, "versions of the other assistant");
    let first = create_assistant(db, &new_assistant(1)).await?;
    ensure_eq!(first.version, 1, "the version of one created again");
    let found = versions(db, "", 1).await?;
    ensure_eq!(found, [first], "the versions of one created again");
    Ok(())
}

pub(super) async fn tenants_are_apart_in_assistants(db: &dyn Registry) -> Verdict {
    let new = NewAssistant {
        tenant: "acme".into(),
        ..new_assistant(1)
    };
    let own = create_assistant(db, &new).await?;
    for tenant in STRANGERS {
        let found = db.assistant(tenant, new.id).await?;
        ensure_eq!(found, None, "the assistant, read by tenant `{tenant}`");
        let found = versions(db, tenant, 1).await?;
        ensure_eq!(found, vec![], "the versions, read by tenant `{tenant}`");
        let by_name = AssistantQuery {
            name: Some(new.name.clone()),
            ..all_assistants(tenant)
        };
        for query in [all_assistants(tenant), by_name] {
            finds(db, query, NONE).await?;
        }
        let found = db
            .change_assistant(tenant, new.id, &named("stolen"), later(9))
            .await?;
        ensure_eq!(found, None, "the change of tenant `{tenant}`");
        let found = db
            .use_assistant_version(tenant, new.id, 1, later(9))
            .await?;
        ensure_eq!(found, None, "the version that tenant `{tenant}` wanted");
        ensure!(
            !db.delete_assistant(tenant, new.id).await?,
            "tenant `{tenant}` deleted the assistant"
        );
    }
    let found = versions(db, "acme", 1).await?;
    ensure_eq!(found, [own], "the assistant after all of that");
    Ok(())
}

pub(super) async fn assistants_of_tenants_share_ids(db: &dyn Registry) -> Verdict {
    for tenant in TENANTS {
        let new = NewAssistant {
            tenant: tenant.to_owned(),
            name: format!("of {tenant}"),
            ..new_assistant(1)
        };
        create_assistant(db, &new).await?;
    }
    let id = assistant_id(1);
    db.change_assistant("acme", id, &named("changed"), later(10))
        .await?;
    ensure!(
        db.delete_assistant("", id).await?,
        "there is no assistant 1"
    );
    for (tenant, wanted) in [
        ("", None),
        ("acme", Some(("changed", 2))),
        ("acme-corp", Some(("of acme-corp", 1))),
    ] {
        let found = db.assistant(tenant, id).await?;
        let found = found
            .as_ref()
            .map(|found| (found.name.as_str(), found.version));
        ensure_eq!(found, wanted, "the assistant of tenant `{tenant}`");
        let count = db.count_assistants(&all_assistants(tenant)).await?;
        ensure_eq!(
            count,
            u64::from(wanted.is_some()),
            "assistants of tenant `{tenant}`"
        );
    }
    Ok(())
}

pub(super) async fn hostile_texts_of_assistants_survive(db: &dyn Registry) -> Verdict {
    let texts = hostile_texts();
    let hostile = |tenant: &str, n: u8, text: &String| NewAssistant {
        tenant: tenant.to_owned(),
        graph: text.clone(),
        name: text.clone(),
        description: text.clone(),
        config: json!({ text: text }),
        context: json!({ text: text }),
        metadata: json!({ text: text }),
        ..new_assistant(n)
    };
    // The same id under every tenant, and every graph within one tenant.
    for (n, text) in (1..).zip(&texts) {
        create_assistant(db, &hostile(text, 1, text)).await?;
        create_assistant(db, &hostile("", n, text)).await?;
    }
    for (n, text) in (1..).zip(&texts) {
        for (tenant, n) in [(text.as_str(), 1), ("", n)] {
            let wanted = hostile(tenant, n, text).first_version();
            let found = db.assistant(tenant, wanted.id).await?;
            ensure_eq!(found.as_ref(), Some(&wanted), "the assistant of {text:?}");
            let query = AssistantQuery {
                graph: Some(text.clone()),
                name: Some(text.clone()),
                metadata: Some(json!({ text: text })),
                ..all_assistants(tenant)
            };
            finds(db, query, &[n]).await?;
        }
    }
    Ok(())
}

pub(super) const NOW: Timestamp = Timestamp(1_000_000);

/// No runs or assistants.
pub(super) const NONE: &[u8] = &[];

pub(super) const TENANTS: [&str; 3] = ["", "acme", "acme-corp"];

/// Tenants that a careless comparison would take for `acme`.
pub(super) const STRANGERS: [&str; 12] = [
    "",
    "acm",
    "acme-corp",
    "Acme",
    "x",
    "%",
    "acme%",
    "acm_",
    "*",
    "acme/x",
    "acme' or '1'='1",
    "' or 1=1 --",
];

const ENDS: [RunStatus; 4] = [
    RunStatus::Success,
    RunStatus::Error,
    RunStatus::Timeout,
    RunStatus::Interrupted,
];

pub(super) fn later(ms: u64) -> Timestamp {
    NOW.plus_ms(ms)
}

pub(super) fn run_id(n: u8) -> RunId {
    RunId::from_bytes([n; 16])
}

pub(super) fn assistant_id(n: u8) -> AssistantId {
    AssistantId::from_bytes([n; 16])
}

/// Returns the number that the suite gave a run.
fn number(id: RunId) -> u8 {
    id.to_bytes()[0]
}

pub(super) fn new_run(thread: &ThreadId, n: u8) -> NewRun {
    NewRun {
        id: run_id(n),
        thread: thread.clone(),
        assistant: assistant_id(1),
        principal: "ann".into(),
        request: vec![n, 0, 255],
        arguments: json!({ "n": n }),
        metadata: json!({}),
        when_busy: WhenBusy::Enqueue,
        at: NOW,
        due: NOW,
    }
}

pub(super) fn rejecting_run(thread: &ThreadId, n: u8) -> NewRun {
    NewRun {
        when_busy: WhenBusy::Reject,
        ..new_run(thread, n)
    }
}

fn run_end(status: RunStatus, at: Timestamp) -> RunEnd {
    let error = match status {
        RunStatus::Error => json!({ "error": "NodeError", "message": "failed" }),
        _ => Json::Null,
    };
    RunEnd {
        status,
        error,
        at,
        deliveries: Vec::new(),
    }
}

pub(super) fn all_runs(tenant: &str) -> RunQuery {
    RunQuery {
        tenant: tenant.to_owned(),
        page: ALL,
        ..RunQuery::default()
    }
}

/// Creates a run that must be stored. Returns the runs before it.
async fn create(db: &dyn Registry, new: &NewRun) -> Result<Vec<u8>, Fault> {
    match db.create_run(new).await? {
        CreatedRun::Stored(before) => Ok(before.into_iter().map(number).collect()),
        other => Err(Fault::new(format!("{} was not stored: {other:?}", new.id))),
    }
}

async fn enqueue(db: &dyn Registry, name: &str, n: u8) -> Result<Vec<u8>, Fault> {
    create(db, &new_run(&thread(name), n)).await
}

/// Creates a run that must be rejected, and read as missing after it.
async fn is_rejected(db: &dyn Registry, thread: &ThreadId, why: &str) -> Verdict {
    let new = rejecting_run(thread, 200);
    let created = db.create_run(&new).await?;
    ensure_eq!(created, CreatedRun::Busy, "a thread with {why}");
    let found = db.run(thread.tenant(), new.id).await?;
    ensure_eq!(found, None, "the rejected run");
    Ok(())
}

async fn take(db: &dyn Registry, now: Timestamp, limit: u32) -> Result<Vec<u8>, Fault> {
    let taken = db.take_runs(now, limit).await?;
    Ok(taken.iter().map(|run| number(run.row.id)).collect())
}

pub(super) async fn listed(db: &dyn Registry, query: RunQuery) -> Result<Vec<u8>, Fault> {
    let rows = db.runs(&query).await?;
    Ok(rows.iter().map(|row| number(row.id)).collect())
}

async fn row(db: &dyn Registry, tenant: &str, n: u8) -> Result<RunRow, Fault> {
    let found = db.run(tenant, run_id(n)).await?;
    found.ok_or_else(|| Fault::new(format!("there is no run {n} of tenant `{tenant}`")))
}

/// Ends an active run of the unnamed tenant with a result.
async fn finish(db: &dyn Registry, n: u8) -> Verdict {
    let end = run_end(RunStatus::Success, later(5));
    ensure!(
        db.end_run("", run_id(n), &end).await?,
        "the run {n} was not active"
    );
    Ok(())
}

pub(super) fn new_assistant(n: u8) -> NewAssistant {
    NewAssistant {
        tenant: String::new(),
        id: assistant_id(n),
        graph: "graph".into(),
        name: format!("assistant {n}"),
        description: String::new(),
        config: json!({}),
        context: json!({}),
        metadata: json!({}),
        at: NOW,
    }
}

fn named(name: &str) -> AssistantChange {
    AssistantChange {
        name: Some(name.to_owned()),
        ..AssistantChange::default()
    }
}

pub(super) fn all_assistants(tenant: &str) -> AssistantQuery {
    AssistantQuery {
        tenant: tenant.to_owned(),
        page: ALL,
        ..AssistantQuery::default()
    }
}

fn assistant_numbers(found: &[Assistant]) -> Vec<u8> {
    found.iter().map(|found| found.id.to_bytes()[0]).collect()
}

/// Creates an assistant that must be stored.
async fn create_assistant(db: &dyn Registry, new: &NewAssistant) -> Result<Assistant, Fault> {
    match db.create_assistant(new).await? {
        CreatedAssistant::Stored(assistant) => Ok(assistant),
        CreatedAssistant::Exists(found) => Err(Fault::new(format!("it exists: {found:?}"))),
    }
}

/// Changes an assistant of the unnamed tenant that must exist.
async fn change(
    db: &dyn Registry,
    n: u8,
    change: &AssistantChange,
    now: Timestamp,
) -> Result<Assistant, Fault> {
    let changed = db
        .change_assistant("", assistant_id(n), change, now)
        .await?;
    changed.ok_or_else(|| Fault::new(format!("there is no assistant {n}")))
}

async fn versions(db: &dyn Registry, tenant: &str, n: u8) -> Result<Vec<Assistant>, Fault> {
    Ok(db.assistant_versions(tenant, assistant_id(n), ALL).await?)
}

/// Replaces when versions were created, which one clause checks for all.
fn created_at(at: Timestamp, found: Vec<Assistant>) -> Vec<Assistant> {
    let replace = |version: Assistant| Assistant {
        created: at,
        ..version
    };
    found.into_iter().map(replace).collect()
}

/// Ensures that a query finds these assistants in this order, and counts them.
async fn finds(db: &dyn Registry, query: AssistantQuery, wanted: &[u8]) -> Verdict {
    let found = assistant_numbers(&db.assistants(&query).await?);
    ensure_eq!(found, wanted, "the assistants of {query:?}");
    let counted = db.count_assistants(&query).await?;
    ensure_eq!(counted, wanted.len() as u64, "assistants of {query:?}");
    Ok(())
}
