//! The registry: crons, and the ticks that make runs of them.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use superstep_core::checkpoint::Page;
use superstep_core::registry::{
    ChangedCron, CreatedCron, CreatedRun, CronChange, CronQuery, CronRow, CronSort, CronTick,
    FiredTick, NewCron, NewRun, Registry, TickRun,
};
use superstep_core::{CronId, ThreadId, Timestamp};

use super::registry::{
    NONE, NOW, STRANGERS, all_runs, assistant_id, later, listed, new_run, rejecting_run, run_id,
};
use super::security::hostile_texts;
use crate::poll::join_all;
use crate::report::{Fault, Verdict, ensure, ensure_eq};
use crate::sample::{ALL, thread, thread_of};

pub(super) async fn empty_registry_has_no_crons(db: &dyn Registry) -> Verdict {
    ensure_eq!(db.cron("", cron_id(1)).await?, None, "a cron");
    finds(db, all_crons(""), NONE).await?;
    ensure_eq!(due(db, NOW, 10).await?, NONE, "the crons that are due");
    ensure_eq!(db.next_cron_due().await?, None, "when a cron is due");
    ensure!(
        !db.delete_cron("", cron_id(1)).await?,
        "a cron that never was has been deleted"
    );
    let change = CronChange::default();
    let changed = db.change_cron("", cron_id(1), &change, NOW);
    ensure_eq!(changed.await?, ChangedCron::Missing, "the change of none");
    let row = new_cron(1).row();
    ensure_eq!(
        fire(db, &row, later(60), Some(1)).await?,
        FiredTick::Passed,
        "a tick of none"
    );
    ensure_eq!(listed(db, all_runs("")).await?, NONE, "the runs");
    Ok(())
}

pub(super) async fn created_cron_is_read_as_given(db: &dyn Registry) -> Verdict {
    let full = NewCron {
        tenant: "acme".into(),
        assistant: assistant_id(7),
        thread: Some(thread_of("acme", "a")),
        principal: "bob@example.org".into(),
        schedule: "30 4 * * 1-5".into(),
        zone: Some("Europe/Berlin".into()),
        end: Some(later(900)),
        next: Some(later(300)),
        arguments: json!({ "input": { "messages": ["hi", null, 1.5] } }),
        metadata: json!({ "team": { "name": "ops" }, "tags": ["a", "b"] }),
        at: later(3),
        ..new_cron(1)
    };
    let bare = NewCron {
        is_enabled: false,
        next: None,
        tenant: "acme".into(),
        ..new_cron(2)
    };
    for new in [&full, &bare] {
        let row = new.row();
        ensure_eq!(
            db.create_cron(new).await?,
            CreatedCron::Stored(row.clone()),
            "what the call did"
        );
        let found = db.cron("acme", new.id).await?;
        ensure_eq!(found, Some(row), "the cron that was created");
    }
    let wanted = [full.row(), bare.row()];
    let by_id = CronQuery {
        sort: CronSort::Id,
        ..all_crons("acme")
    };
    ensure_eq!(db.crons(&by_id).await?, wanted, "the crons of the tenant");
    let found = db.due_crons(later(300), 10).await?;
    ensure_eq!(found, [full.row()], "the cron that is due");
    ensure_eq!(db.cron("acme", cron_id(3)).await?, None, "another cron");
    Ok(())
}

pub(super) async fn same_cron_twice_is_stored_once(db: &dyn Registry) -> Verdict {
    let first = create(db, &new_cron(1)).await?;
    let other = NewCron {
        schedule: "5 5 * * *".into(),
        next: Some(later(7)),
        metadata: json!({ "other": true }),
        at: later(9),
        ..new_cron(1)
    };
    ensure_eq!(
        db.create_cron(&other).await?,
        CreatedCron::Exists(first.clone()),
        "the cron created again"
    );
    finds(db, all_crons(""), &[1]).await?;
    let found = db.cron("", first.id).await?;
    ensure_eq!(found, Some(first), "the cron that was there");
    Ok(())
}

pub(super) async fn change_of_a_cron_keeps_what_it_does_not_name(db: &dyn Registry) -> Verdict {
    let new = NewCron {
        zone: Some("Europe/Berlin".into()),
        end: Some(later(900)),
        arguments: json!({ "input": 1 }),
        metadata: json!({ "kept": 1, "deep": { "a": 1, "b": 2 } }),
        thread: Some(thread("a")),
        ..new_cron(1)
    };
    let mut row = create(db, &new).await?;
    let changes = [
        CronChange {
            schedule: Some("5 5 * * *".into()),
            next: Some(Some(later(500))),
            ..CronChange::default()
        },
        CronChange {
            zone: Some("Asia/Tokyo".into()),
            end: Some(Some(later(800))),
            ..CronChange::default()
        },
        CronChange {
            is_enabled: Some(false),
            next: Some(None),
            ..CronChange::default()
        },
        CronChange {
            arguments: Some(json!({ "input": 2 })),
            metadata: Some(json!({ "deep": { "b": 3 }, "new": null })),
            ..CronChange::default()
        },
        CronChange {
            end: Some(None),
            ..CronChange::default()
        },
        CronChange::default(),
    ];
    for (n, change) in (1..).zip(&changes) {
        let wanted = change.applied(&row, later(n * 10));
        let changed = applied(db, &row, change, later(n * 10)).await?;
        ensure_eq!(changed, wanted, "the cron after change {n}");
        let found = db.cron("", row.id).await?;
        ensure_eq!(found.as_ref(), Some(&wanted), "the cron as it is read");
        row = wanted;
    }
    let wanted = CronRow {
        schedule: "5 5 * * *".into(),
        zone: Some("Asia/Tokyo".into()),
        end: None,
        is_enabled: false,
        next: None,
        arguments: json!({ "input": 2 }),
        metadata: json!({ "kept": 1, "deep": { "b": 3 }, "new": null }),
        updated: later(60),
        ..new.row()
    };
    ensure_eq!(row, wanted, "the cron after all changes");
    Ok(())
}

pub(super) async fn change_of_a_cron_that_changed_is_stale(db: &dyn Registry) -> Verdict {
    let first = create(db, &new_cron(1)).await?;
    let second = applied(db, &first, &scheduled("1 1 * * *"), later(10)).await?;
    let late = CronChange {
        seen: first.updated,
        ..scheduled("2 2 * * *")
    };
    let changed = db.change_cron("", first.id, &late, later(20)).await?;
    ensure_eq!(changed, ChangedCron::Stale, "a change of what is past");
    let found = db.cron("", first.id).await?;
    ensure_eq!(found.as_ref(), Some(&second), "the cron after it");
    // A tick is not a change.
    let fired = fire(db, &second, later(120), Some(1)).await?;
    ensure_eq!(fired, stored(&[]), "a tick");
    let changed = applied(db, &second, &scheduled("3 3 * * *"), later(130)).await?;
    ensure_eq!(changed.next, Some(later(120)), "the time after the tick");
    Ok(())
}

pub(super) async fn changes_of_a_cron_have_times_of_their_own(db: &dyn Registry) -> Verdict {
    let mut row = create(db, &new_cron(1)).await?;
    // The clock stands still, then goes back.
    for now in [NOW, NOW, Timestamp(5), later(1_000), later(1_000)] {
        let changed = applied(db, &row, &scheduled("1 1 * * *"), now).await?;
        ensure!(
            changed.updated > row.updated && changed.updated >= now,
            "a change at {now:?} after {:?} has the time {:?}",
            row.updated,
            changed.updated
        );
        let found = db.cron("", row.id).await?;
        ensure_eq!(found.as_ref(), Some(&changed), "the cron as it is read");
        row = changed;
    }
    Ok(())
}

pub(super) async fn racing_changes_of_a_cron_have_one_winner(db: &dyn Registry) -> Verdict {
    let mut row = create(db, &new_cron(1)).await?;
    for round in 1..=8u64 {
        let changes: Vec<_> = (0..12)
            .map(|n| CronChange {
                seen: row.updated,
                ..scheduled(&format!("{round} {n} * * *"))
            })
            .collect();
        let results = join_all(
            changes
                .iter()
                .map(|change| db.change_cron("", row.id, change, later(round))),
        )
        .await;
        let mut won = Vec::new();
        for result in results {
            match result? {
                ChangedCron::Changed(changed) => won.push(*changed),
                ChangedCron::Stale => {}
                ChangedCron::Missing => return Err(Fault::new("there is no cron 1".into())),
            }
        }
        ensure_eq!(won.len(), 1, "winners of round {round}");
        let found = db.cron("", row.id).await?;
        ensure_eq!(found.as_ref(), won.first(), "the cron after round {round}");
        row = won.remove(0);
    }
    Ok(())
}

pub(super) async fn deleted_cron_is_gone(db: &dyn Registry) -> Verdict {
    let first = create(db, &new_cron(1)).await?;
    create(db, &due_at(2, later(500))).await?;
    let fired = fire(db, &first, later(90), Some(1)).await?;
    ensure_eq!(fired, stored(&[]), "a tick");
    ensure!(db.delete_cron("", first.id).await?, "there is no cron 1");
    ensure!(
        !db.delete_cron("", first.id).await?,
        "a cron was deleted twice"
    );
    ensure_eq!(db.cron("", first.id).await?, None, "the deleted cron");
    finds(db, all_crons(""), &[2]).await?;
    ensure_eq!(due(db, later(499), 10).await?, NONE, "what is due");
    let next = db.next_cron_due().await?;
    ensure_eq!(next, Some(later(500)), "when a cron is due");
    let gone = CronRow {
        next: Some(later(90)),
        ..first
    };
    let fired = fire(db, &gone, later(150), Some(2)).await?;
    ensure_eq!(fired, FiredTick::Passed, "a tick of the deleted cron");
    let runs = listed(db, all_runs("")).await?;
    ensure_eq!(runs, [1], "the run that it made before");
    let again = create(db, &new_cron(1)).await?;
    ensure_eq!(again.error, Json::Null, "the error of one created again");
    Ok(())
}

pub(super) async fn crons_by_assistant_thread_and_switch(db: &dyn Registry) -> Verdict {
    for (n, assistant, name, is_enabled) in [
        (1, 1, Some("a"), true),
        (2, 1, None, false),
        (3, 2, Some("a"), false),
        (4, 2, Some("ab"), true),
    ] {
        let new = NewCron {
            assistant: assistant_id(assistant),
            thread: name.map(thread),
            is_enabled,
            ..new_cron(n)
        };
        create(db, &new).await?;
    }
    for (assistant, name, is_enabled, wanted) in [
        (None, None, None, &[1u8, 2, 3, 4] as &[u8]),
        (Some(1), None, None, &[1, 2]),
        (Some(3), None, None, &[]),
        (None, Some("a"), None, &[1, 3]),
        (None, Some("A"), None, &[]),
        (None, None, Some(true), &[1, 4]),
        (None, None, Some(false), &[2, 3]),
        (Some(2), Some("a"), Some(false), &[3]),
        (Some(1), Some("ab"), None, &[]),
    ] {
        let query = CronQuery {
            assistant: assistant.map(assistant_id),
            thread: name.map(thread),
            is_enabled,
            ..all_crons("")
        };
        finds(db, query, wanted).await?;
    }
    Ok(())
}

pub(super) async fn crons_by_metadata(db: &dyn Registry) -> Verdict {
    let ops = json!({ "team": { "name": "ops" }, "n": 1 });
    for (n, metadata) in [
        (1, ops.clone()),
        (2, json!({ "team": { "name": "dev" } })),
        (3, json!({})),
    ] {
        let new = NewCron {
            metadata,
            ..new_cron(n)
        };
        create(db, &new).await?;
    }
    for (metadata, wanted) in [
        (json!({}), &[1u8, 2, 3] as &[u8]),
        (json!({ "team": {} }), &[1, 2]),
        (json!({ "team": { "name": "ops" } }), &[1]),
        (json!({ "n": 1.0 }), &[1]),
        (json!({ "n": 2 }), &[]),
        (json!({ "team": null }), &[]),
    ] {
        let query = CronQuery {
            metadata: Some(metadata),
            ..all_crons("")
        };
        finds(db, query, wanted).await?;
    }
    Ok(())
}

pub(super) async fn crons_are_sorted_both_ways(db: &dyn Registry) -> Verdict {
    for (n, assistant, name, next, end, at) in [
        (4, 3, Some("c"), Some(40), None, 20),
        (1, 2, Some("b"), Some(10), Some(900), 30),
        (3, 1, None, None, Some(700), 20),
        (2, 1, Some("a"), Some(30), None, 10),
    ] {
        let new = NewCron {
            assistant: assistant_id(assistant),
            thread: name.map(thread),
            next: next.map(later),
            end: end.map(later),
            at: later(at),
            ..new_cron(n)
        };
        let row = create(db, &new).await?;
        if n == 2 {
            applied(db, &row, &CronChange::default(), later(60)).await?;
        }
    }
    // What is missing is before all others. Equal ones are in the order of their ids both ways.
    for (sort, up, down) in [
        (CronSort::Id, [1u8, 2, 3, 4], [4u8, 3, 2, 1]),
        (CronSort::Assistant, [2, 3, 1, 4], [4, 1, 2, 3]),
        (CronSort::Thread, [3, 2, 1, 4], [4, 1, 2, 3]),
        (CronSort::Created, [2, 3, 4, 1], [1, 3, 4, 2]),
        (CronSort::Updated, [3, 4, 1, 2], [2, 1, 3, 4]),
        (CronSort::Next, [3, 1, 2, 4], [4, 2, 1, 3]),
        (CronSort::End, [2, 4, 3, 1], [1, 3, 2, 4]),
    ] {
        for (is_descending, wanted) in [(false, up), (true, down)] {
            let query = CronQuery {
                sort,
                is_descending,
                ..all_crons("")
            };
            finds(db, query.clone(), &wanted).await?;
            let page = Page {
                limit: 2,
                offset: 1,
            };
            let found = numbers(&db.crons(&CronQuery { page, ..query }).await?);
            ensure_eq!(found, wanted[1..3], "a page of crons by {sort:?}");
        }
    }
    Ok(())
}

pub(super) async fn count_of_crons_is_of_all_pages(db: &dyn Registry) -> Verdict {
    for n in 1..=15u8 {
        let new = NewCron {
            assistant: assistant_id(n % 3),
            ..new_cron(n)
        };
        create(db, &new).await?;
    }
    let first_page = CronQuery::default();
    let found = db.crons(&first_page).await?;
    ensure_eq!(found.len(), 10, "crons on the first page");
    let counted = db.count_crons(&first_page).await?;
    ensure_eq!(counted, 15, "crons on all pages");
    let query = CronQuery {
        assistant: Some(assistant_id(0)),
        page: Page {
            limit: 2,
            offset: 2,
        },
        ..CronQuery::default()
    };
    let found = numbers(&db.crons(&query).await?);
    ensure_eq!(found, [9, 12], "the second page of an assistant");
    let counted = db.count_crons(&query).await?;
    ensure_eq!(counted, 5, "crons of an assistant");
    Ok(())
}

pub(super) async fn due_crons_are_of_all_tenants_in_the_order_of_time(
    db: &dyn Registry,
) -> Verdict {
    for (n, tenant, ms) in [
        (1, "", 30),
        (2, "acme", 10),
        (3, "acme-corp", 20),
        (4, "", 41),
        (5, "acme", 40),
    ] {
        let new = NewCron {
            tenant: tenant.to_owned(),
            ..due_at(n, later(ms))
        };
        create(db, &new).await?;
    }
    for (ms, limit, wanted) in [
        (9, 10, &[] as &[u8]),
        (10, 10, &[2]),
        (39, 10, &[2, 3, 1]),
        (40, 10, &[2, 3, 1, 5]),
        (40, 2, &[2, 3]),
        (40, 0, &[]),
        (1_000, 10, &[2, 3, 1, 5, 4]),
    ] {
        let found = due(db, later(ms), limit).await?;
        ensure_eq!(found, wanted, "{limit} crons that are due after {ms} ms");
    }
    Ok(())
}

pub(super) async fn cron_without_a_time_is_never_due(db: &dyn Registry) -> Verdict {
    let never = NewCron {
        next: None,
        ..new_cron(1)
    };
    create(db, &never).await?;
    let row = create(db, &due_at(2, later(5))).await?;
    let stopped = CronChange {
        is_enabled: Some(false),
        next: Some(None),
        ..CronChange::default()
    };
    let row = applied(db, &row, &stopped, later(1)).await?;
    let end_of_time = Timestamp(i64::MAX);
    ensure_eq!(due(db, end_of_time, 10).await?, NONE, "what is due");
    ensure_eq!(db.next_cron_due().await?, None, "when a cron is due");
    let due_before = CronRow {
        next: Some(later(5)),
        ..row
    };
    let fired = fire(db, &due_before, later(90), Some(1)).await?;
    ensure_eq!(fired, FiredTick::Passed, "a tick of the stopped cron");
    Ok(())
}

pub(super) async fn next_cron_due_is_the_earliest(db: &dyn Registry) -> Verdict {
    for (n, tenant, ms, wanted) in [
        (1, "", 50, 50),
        (2, "acme", 70, 50),
        (3, "acme", 20, 20),
        (4, "", 30, 20),
    ] {
        let new = NewCron {
            tenant: tenant.to_owned(),
            ..due_at(n, later(ms))
        };
        create(db, &new).await?;
        let next = db.next_cron_due().await?;
        ensure_eq!(next, Some(later(wanted)), "when a cron is due");
    }
    ensure!(
        db.delete_cron("acme", cron_id(3)).await?,
        "there is no cron 3"
    );
    let next = db.next_cron_due().await?;
    ensure_eq!(next, Some(later(30)), "when a cron is due after that");
    Ok(())
}

pub(super) async fn tick_moves_the_cron_and_stores_its_run(db: &dyn Registry) -> Verdict {
    let new = NewCron {
        tenant: "acme".into(),
        ..new_cron(1)
    };
    let row = create(db, &new).await?;
    create(db, &due_at(2, later(60))).await?;
    let run = NewRun {
        metadata: json!({ "cron": "1" }),
        ..new_run(&thread_of("acme", "a"), 1)
    };
    let tick = CronTick {
        run: TickRun::Run(Box::new(run.clone())),
        ..tick_of(&row, Some(later(120)))?
    };
    ensure_eq!(db.fire_cron(&tick).await?, stored(&[]), "the tick");
    let moved = CronRow {
        next: Some(later(120)),
        last_tick: row.next,
        ..row
    };
    let found = db.cron("acme", moved.id).await?;
    ensure_eq!(found, Some(moved.clone()), "the cron after its tick");
    let found = db.run("acme", run.id).await?;
    ensure_eq!(found, Some(run.pending_row()), "the run of the tick");
    let taken = db.take_runs(NOW, 10).await?;
    let requests: Vec<_> = taken.into_iter().map(|run| run.request).collect();
    ensure_eq!(requests, [run.request], "the request of the run");
    ensure_eq!(due(db, later(119), 10).await?, [2], "what is due then");
    // The next run of the thread waits for the first.
    let second = CronTick {
        run: TickRun::Run(Box::new(new_run(&thread_of("acme", "a"), 2))),
        ..tick_of(&moved, Some(later(180)))?
    };
    ensure_eq!(db.fire_cron(&second).await?, stored(&[1]), "the next tick");
    Ok(())
}

pub(super) async fn tick_that_is_not_due_writes_nothing(db: &dyn Registry) -> Verdict {
    let row = create(db, &new_cron(1)).await?;
    for due in [NOW, later(59), later(61), Timestamp(0)] {
        let other = CronRow {
            next: Some(due),
            ..row.clone()
        };
        let fired = fire(db, &other, later(120), Some(1)).await?;
        ensure_eq!(fired, FiredTick::Passed, "a tick at {due:?}");
        let failed = fire(db, &other, later(120), None).await?;
        ensure_eq!(failed, FiredTick::Passed, "a failed tick at {due:?}");
    }
    let found = db.cron("", row.id).await?;
    ensure_eq!(found, Some(row), "the cron after all of that");
    ensure_eq!(listed(db, all_runs("")).await?, NONE, "the runs");
    Ok(())
}

pub(super) async fn tick_of_a_changed_cron_writes_nothing(db: &dyn Registry) -> Verdict {
    let row = create(db, &new_cron(1)).await?;
    // The change leaves the time as it was.
    let change = CronChange {
        arguments: Some(json!({ "input": "other" })),
        ..CronChange::default()
    };
    let changed = applied(db, &row, &change, NOW).await?;
    ensure_eq!(changed.next, row.next, "the time after the change");
    let fired = fire(db, &row, later(120), Some(1)).await?;
    ensure_eq!(fired, FiredTick::Passed, "a tick made before the change");
    let found = db.cron("", row.id).await?;
    ensure_eq!(found.as_ref(), Some(&changed), "the cron after it");
    ensure_eq!(listed(db, all_runs("")).await?, NONE, "the runs");
    let fired = fire(db, &changed, later(120), Some(1)).await?;
    ensure_eq!(fired, stored(&[]), "a tick made after the change");
    Ok(())
}

pub(super) async fn same_tick_twice_is_fired_once(db: &dyn Registry) -> Verdict {
    let row = create(db, &new_cron(1)).await?;
    let fired = fire(db, &row, later(120), Some(1)).await?;
    ensure_eq!(fired, stored(&[]), "the tick");
    // Under the same id, as a caller that lost the reply, and under another one.
    for run in [1, 2] {
        let again = fire(db, &row, later(120), Some(run)).await?;
        ensure_eq!(again, FiredTick::Passed, "the tick again with run {run}");
    }
    ensure_eq!(listed(db, all_runs("")).await?, [1], "the runs");
    let next = db.next_cron_due().await?;
    ensure_eq!(next, Some(later(120)), "when the cron is due");
    Ok(())
}

pub(super) async fn racing_ticks_make_one_run(db: &dyn Registry) -> Verdict {
    let mut row = create(db, &new_cron(1)).await?;
    for round in 0..8u8 {
        let next = later(60 * (u64::from(round) + 2));
        let mut ticks = Vec::new();
        for n in 1..=12u8 {
            // Each on a thread of its own, so that nothing but the cron keeps them apart.
            let run = new_run(&thread(&format!("t{n}")), round * 12 + n);
            ticks.push(CronTick {
                run: TickRun::Run(Box::new(run)),
                ..tick_of(&row, Some(next))?
            });
        }
        let mut fired = 0;
        for result in join_all(ticks.iter().map(|tick| db.fire_cron(tick))).await {
            match result? {
                FiredTick::Run(CreatedRun::Stored(_)) => fired += 1,
                FiredTick::Passed => {}
                other => return Err(Fault::new(format!("a tick did {other:?}"))),
            }
        }
        ensure_eq!(fired, 1, "ticks fired in round {round}");
        let runs: BTreeSet<u8> = listed(db, all_runs("")).await?.into_iter().collect();
        ensure_eq!(runs.len(), usize::from(round) + 1, "runs after the round");
        row.last_tick = row.next;
        row.next = Some(next);
        let found = db.cron("", row.id).await?;
        ensure_eq!(found.as_ref(), Some(&row), "the cron after round {round}");
    }
    Ok(())
}

pub(super) async fn tick_of_a_busy_thread_makes_no_run(db: &dyn Registry) -> Verdict {
    let row = create(db, &new_cron(1)).await?;
    let before = db.create_run(&new_run(&thread("a"), 1)).await?;
    ensure_eq!(before, CreatedRun::Stored(vec![]), "a run of the thread");
    let tick = CronTick {
        run: TickRun::Run(Box::new(rejecting_run(&thread("a"), 2))),
        ..tick_of(&row, Some(later(120)))?
    };
    ensure_eq!(
        db.fire_cron(&tick).await?,
        FiredTick::Run(CreatedRun::Busy),
        "the tick"
    );
    ensure_eq!(listed(db, all_runs("")).await?, [1], "the runs");
    let moved = CronRow {
        next: Some(later(120)),
        error: CronTick::busy_error(),
        ..row
    };
    let found = db.cron("", moved.id).await?;
    ensure_eq!(found, Some(moved), "the cron, which does not wait");
    Ok(())
}

pub(super) async fn tick_whose_run_exists_stores_no_second(db: &dyn Registry) -> Verdict {
    let row = create(db, &new_cron(1)).await?;
    let run = NewRun {
        request: b"first".to_vec(),
        ..new_run(&thread("b"), 1)
    };
    db.create_run(&run).await?;
    let fired = fire(db, &row, later(120), Some(1)).await?;
    let exists = CreatedRun::Exists(Box::new(run.pending_row()), run.request.clone());
    ensure_eq!(fired, FiredTick::Run(exists), "the tick");
    let found = db.run("", run.id).await?;
    ensure_eq!(found, Some(run.pending_row()), "the run that was there");
    let next = db.next_cron_due().await?;
    ensure_eq!(next, Some(later(120)), "when the cron is due");
    Ok(())
}

pub(super) async fn failed_tick_says_why_until_the_next_run(db: &dyn Registry) -> Verdict {
    let mut row = create(db, &new_cron(1)).await?;
    for (run, next, error) in [
        (None, 120, why()),
        (None, 180, why()),
        (Some(1), 240, Json::Null),
        (None, 300, why()),
        (Some(2), 360, Json::Null),
    ] {
        let fired = fire(db, &row, later(next), run).await?;
        let is_as_wanted = match (run, &fired) {
            (None, FiredTick::NoRun) => true,
            (Some(_), FiredTick::Run(created)) => matches!(created, CreatedRun::Stored(_)),
            _ => false,
        };
        ensure!(is_as_wanted, "the tick before {next} did {fired:?}");
        // A tick without a run leaves the last run as it was.
        if run.is_some() {
            row.last_tick = row.next;
        }
        row.next = Some(later(next));
        row.error = error;
        let found = db.cron("", row.id).await?;
        ensure_eq!(found.as_ref(), Some(&row), "the cron until {next}");
    }
    let runs = listed(db, all_runs("")).await?;
    ensure_eq!(runs, [2, 1], "the runs");
    Ok(())
}

pub(super) async fn last_tick_is_the_last(db: &dyn Registry) -> Verdict {
    let row = create(db, &new_cron(1)).await?;
    let tick = CronTick {
        run: TickRun::Run(Box::new(new_run(&thread("a"), 1))),
        ..tick_of(&row, None)?
    };
    ensure_eq!(db.fire_cron(&tick).await?, stored(&[]), "the last tick");
    let ended = CronRow {
        next: None,
        last_tick: row.next,
        ..row
    };
    let found = db.cron("", ended.id).await?;
    ensure_eq!(found, Some(ended), "the cron after its last tick");
    let end_of_time = Timestamp(i64::MAX);
    ensure_eq!(due(db, end_of_time, 10).await?, NONE, "what is due");
    ensure_eq!(db.next_cron_due().await?, None, "when a cron is due");
    Ok(())
}

pub(super) async fn tenants_are_apart_in_crons(db: &dyn Registry) -> Verdict {
    let new = NewCron {
        tenant: "acme".into(),
        thread: Some(thread_of("acme", "x")),
        metadata: json!({ "user": "ann" }),
        ..new_cron(1)
    };
    let own = create(db, &new).await?;
    for tenant in STRANGERS {
        let found = db.cron(tenant, own.id).await?;
        ensure_eq!(found, None, "the cron, read by tenant `{tenant}`");
        let by_thread = CronQuery {
            thread: own.thread.clone(),
            ..all_crons(tenant)
        };
        let by_metadata = CronQuery {
            metadata: Some(own.metadata.clone()),
            ..all_crons(tenant)
        };
        for query in [all_crons(tenant), by_thread, by_metadata] {
            finds(db, query, NONE).await?;
        }
        let change = CronChange {
            seen: own.updated,
            ..scheduled("1 1 * * *")
        };
        let changed = db.change_cron(tenant, own.id, &change, later(9)).await?;
        ensure_eq!(
            changed,
            ChangedCron::Missing,
            "the change of tenant `{tenant}`"
        );
        ensure!(
            !db.delete_cron(tenant, own.id).await?,
            "tenant `{tenant}` deleted the cron"
        );
        let foreign = CronRow {
            tenant: tenant.to_owned(),
            ..own.clone()
        };
        let fired = fire(db, &foreign, later(90), Some(1)).await?;
        ensure_eq!(fired, FiredTick::Passed, "the tick of tenant `{tenant}`");
        if ThreadId::of_tenant(tenant, "x").is_ok() {
            let same_id = NewCron {
                tenant: tenant.to_owned(),
                ..new_cron(1)
            };
            create(db, &same_id).await?;
            ensure!(
                db.delete_cron(tenant, own.id).await?,
                "tenant `{tenant}` has no cron with this id of its own"
            );
        }
    }
    let found = db.cron("acme", own.id).await?;
    ensure_eq!(found, Some(own), "the cron after all of that");
    Ok(())
}

pub(super) async fn hostile_texts_of_crons_survive(db: &dyn Registry) -> Verdict {
    let texts = hostile_texts();
    let hostile = |tenant: &str, n: u8, text: &String| NewCron {
        tenant: tenant.to_owned(),
        principal: text.clone(),
        schedule: text.clone(),
        zone: Some(text.clone()),
        arguments: json!({ text: text }),
        metadata: json!({ text: text }),
        ..new_cron(n)
    };
    // The same id under every tenant, and every text within one tenant.
    for (n, text) in (1..).zip(&texts) {
        create(db, &hostile(text, 1, text)).await?;
        create(db, &hostile("", n, text)).await?;
    }
    for (n, text) in (1..).zip(&texts) {
        for (tenant, n) in [(text.as_str(), 1), ("", n)] {
            let wanted = hostile(tenant, n, text).row();
            let found = db.cron(tenant, wanted.id).await?;
            ensure_eq!(found.as_ref(), Some(&wanted), "the cron of {text:?}");
            let query = CronQuery {
                metadata: Some(json!({ text: text })),
                ..all_crons(tenant)
            };
            finds(db, query, &[n]).await?;
            let failed = CronTick {
                run: TickRun::Failed(json!({ text: text })),
                ..tick_of(&wanted, Some(later(120)))?
            };
            ensure_eq!(db.fire_cron(&failed).await?, FiredTick::NoRun, "a tick");
            let found = db.cron(tenant, wanted.id).await?;
            let error = found.map(|found| found.error);
            ensure_eq!(error, Some(json!({ text: text })), "why it failed");
        }
    }
    Ok(())
}

fn cron_id(n: u8) -> CronId {
    CronId::from_bytes([n; 16])
}

/// A cron that is due a while after [`NOW`].
pub(super) fn new_cron(n: u8) -> NewCron {
    NewCron {
        tenant: String::new(),
        id: cron_id(n),
        assistant: assistant_id(1),
        thread: None,
        principal: "ann".into(),
        schedule: "* * * * *".into(),
        zone: None,
        end: None,
        is_enabled: true,
        next: Some(later(60)),
        arguments: json!({ "n": n }),
        metadata: json!({}),
        at: NOW,
    }
}

fn due_at(n: u8, next: Timestamp) -> NewCron {
    NewCron {
        next: Some(next),
        ..new_cron(n)
    }
}

fn scheduled(schedule: &str) -> CronChange {
    CronChange {
        schedule: Some(schedule.to_owned()),
        ..CronChange::default()
    }
}

pub(super) fn all_crons(tenant: &str) -> CronQuery {
    CronQuery {
        tenant: tenant.to_owned(),
        sort: CronSort::Id,
        page: ALL,
        ..CronQuery::default()
    }
}

/// Returns the numbers that the suite gave crons.
fn numbers(found: &[CronRow]) -> Vec<u8> {
    found.iter().map(|found| found.id.to_bytes()[0]).collect()
}

/// Why a tick of the suite makes no run.
fn why() -> Json {
    json!({ "error": "gone", "message": "the thread was deleted" })
}

/// What a tick does that stores a run behind these.
fn stored(before: &[u8]) -> FiredTick {
    let before = before.iter().map(|n| run_id(*n)).collect();
    FiredTick::Run(CreatedRun::Stored(before))
}

/// Returns the tick that a cron is due for. It makes no run.
fn tick_of(row: &CronRow, next: Option<Timestamp>) -> Result<CronTick, Fault> {
    let due = row.next.ok_or_else(|| {
        let n = row.id.to_bytes()[0];
        Fault::new(format!("cron {n} is never due"))
    })?;
    Ok(CronTick {
        tenant: row.tenant.clone(),
        cron: row.id,
        due,
        seen: row.updated,
        next,
        run: TickRun::Failed(why()),
    })
}

/// Fires the tick of a cron, with a run on a thread of the unnamed tenant or without one.
async fn fire(
    db: &dyn Registry,
    row: &CronRow,
    next: Timestamp,
    run: Option<u8>,
) -> Result<FiredTick, Fault> {
    let mut tick = tick_of(row, Some(next))?;
    if let Some(n) = run {
        tick.run = TickRun::Run(Box::new(new_run(&thread(&format!("t{n}")), n)));
    }
    Ok(db.fire_cron(&tick).await?)
}

async fn due(db: &dyn Registry, now: Timestamp, limit: u32) -> Result<Vec<u8>, Fault> {
    Ok(numbers(&db.due_crons(now, limit).await?))
}

/// Creates a cron that must be stored.
async fn create(db: &dyn Registry, new: &NewCron) -> Result<CronRow, Fault> {
    match db.create_cron(new).await? {
        CreatedCron::Stored(row) => Ok(row),
        CreatedCron::Exists(found) => Err(Fault::new(format!("it exists: {found:?}"))),
    }
}

/// Changes a cron that must be as it was read.
async fn applied(
    db: &dyn Registry,
    row: &CronRow,
    change: &CronChange,
    now: Timestamp,
) -> Result<CronRow, Fault> {
    let change = CronChange {
        seen: row.updated,
        ..change.clone()
    };
    match db.change_cron(&row.tenant, row.id, &change, now).await? {
        ChangedCron::Changed(changed) => Ok(*changed),
        other => Err(Fault::new(format!("a change did {other:?}"))),
    }
}

/// Ensures that a query finds these crons in this order, and counts them.
async fn finds(db: &dyn Registry, query: CronQuery, wanted: &[u8]) -> Verdict {
    let found = numbers(&db.crons(&query).await?);
    ensure_eq!(found, wanted, "the crons of {query:?}");
    let counted = db.count_crons(&query).await?;
    ensure_eq!(counted, wanted.len() as u64, "crons of {query:?}");
    Ok(())
}
