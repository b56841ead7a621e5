//! Threads as rows: created before their first run, annotated, with lifetimes; and the queries over all of their columns.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use superstep_core::checkpoint::AtLifetimeEnd::{Delete, KeepLatest};
use superstep_core::checkpoint::{
    AtLifetimeEnd, Checkpointer, Commit, ExpiredThread, Head, Metadata, NewThread, Page, Status,
    ThreadAnnotation, ThreadLifetime, ThreadQuery, ThreadRow, ThreadSort,
};
use superstep_core::error::CheckpointError::Fenced;
use superstep_core::registry::json_contains;
use superstep_core::{Epoch, Seq, ThreadId, Timestamp};

use super::list::{by_metadata, filter, names, started_with};
use crate::poll::{join, join_all};
use crate::report::{Fault, Verdict, ensure, ensure_eq, ensure_refused};
use crate::sample::{ALL, Owner, dump, listing, thread, thread_of, unfinished, value};

pub(super) async fn created_thread_is_loaded_and_listed(db: &dyn Checkpointer) -> Verdict {
    let id = thread_of("acme", "t");
    let new = NewThread {
        lifetime: lifetime(5_000, KeepLatest),
        ..new_thread(
            json!({ "user": "ann", "tags": ["a", { "b": null }] }),
            1_000,
        )
    };
    ensure!(db.create(&id, &new).await?, "a new thread exists already");
    let Some(loaded) = db.load(&id).await? else {
        return Err(Fault::new("a created thread is not loaded".to_owned()));
    };
    let head = Head {
        epoch: Epoch(1),
        ..Head::default()
    };
    ensure_eq!(loaded.head, head, "the head of a created thread");
    ensure!(loaded.history.snapshot.is_none(), "it has a snapshot");
    ensure_eq!(loaded.history.entries, vec![], "its entries");
    ensure_eq!(loaded.records, vec![], "its records");
    ensure_eq!(loaded.interrupts, vec![], "its interrupts");
    ensure_eq!(db.entries(&id, Seq(0), 10).await?, vec![], "its event log");
    let glance = db.glance(&id, None).await?;
    let status = glance.map(|glance| glance.status);
    ensure_eq!(status, Some(Status::Idle), "its status at a glance");
    ensure!(
        !unfinished(db, 10).await?.contains(&id),
        "a created thread is unfinished"
    );
    let wanted = ThreadRow {
        thread: id.clone(),
        head,
        graph: new.graph,
        metadata: new.metadata,
        values: None,
        created: Timestamp(1_000),
        updated: Timestamp(1_000),
        lifetime: new.lifetime,
    };
    ensure_eq!(row(db, &id).await?, wanted, "its row");
    Ok(())
}

pub(super) async fn create_of_an_existing_thread_changes_nothing(db: &dyn Checkpointer) -> Verdict {
    let id = thread("created");
    db.create(&id, &new_thread(json!({ "n": 1 }), 1_000))
        .await?;
    let mut owner = started_with(db, "started", json!({ "n": 1 }), json!({ "n": 1 })).await?;
    for id in [&id, &owner.thread] {
        let before = dump(db, id).await?;
        let other = NewThread {
            graph: "other".to_owned(),
            lifetime: lifetime(1, Delete),
            ..new_thread(json!({ "n": 2 }), 9_000)
        };
        ensure!(!db.create(id, &other).await?, "{id} was created twice");
        ensure_eq!(dump(db, id).await?, before, "{id} after a second creation");
    }
    owner.save(db, owner.step()).await?;
    Ok(())
}

pub(super) async fn racing_creates_have_one_winner(db: &dyn Checkpointer) -> Verdict {
    let id = &thread("t");
    let creates = (0..5).map(|n| async move {
        let new = new_thread(json!({ "n": n }), 1_000 + n);
        db.create(id, &new).await
    });
    let mut winners = Vec::new();
    for (n, created) in (0..).zip(join_all(creates).await) {
        if created? {
            winners.push(n);
        }
    }
    ensure_eq!(winners.len(), 1, "creations that succeeded");
    let row = row(db, id).await?;
    ensure_eq!(
        row.metadata,
        fields(json!({ "n": winners[0] })),
        "the metadata of the winner"
    );
    Ok(())
}

pub(super) async fn create_that_races_a_start_has_one_winner(db: &dyn Checkpointer) -> Verdict {
    for n in 0..4 {
        let id = thread(&format!("t{n}"));
        let (new, start) = (new_thread(json!({}), 1_000), Owner::new(&id).start());
        let (created, saved) = join(db.create(&id, &new), db.save(&start)).await;
        let head = head(db, &id).await?;
        match (created?, saved) {
            (true, Err(Fenced { .. })) => ensure_eq!(head.seq, Seq(0), "a created thread"),
            (false, Ok(_)) => ensure_eq!(head, start.head, "a started thread"),
            other => return Err(Fault::new(format!("both or neither won: {other:?}"))),
        }
    }
    Ok(())
}

pub(super) async fn create_after_delete_keeps_former_owners_out(db: &dyn Checkpointer) -> Verdict {
    let mut former = started_with(db, "t", json!({ "user": "ann" }), json!({ "n": 1 })).await?;
    former.save(db, former.claim()).await?;
    let last = former.step();
    former.save(db, last.clone()).await?;
    let id = former.thread.clone();
    annotate(db, &id, 2_000, |change| {
        change.lifetime = Some(lifetime(1, Delete));
    })
    .await?;
    db.delete(&id).await?;
    let deleted = head(db, &id).await?;
    let new = new_thread(json!({ "team": 7 }), 5_000);
    ensure!(
        db.create(&id, &new).await?,
        "a deleted thread was not created again"
    );
    let created = head(db, &id).await?;
    ensure!(
        created.epoch > deleted.epoch,
        "{:?} does not exceed the remembered {:?}",
        created.epoch,
        deleted.epoch
    );
    let mut late = Owner::new(&id);
    late.head = deleted;
    for (commit, what) in [
        (former.step(), "a step of the former owner"),
        (last, "a retry of the former owner's last step"),
        (former.claim(), "a claim of the former owner"),
        (former.start(), "a start of the former owner"),
        (Owner::new(&id).start(), "a start that expects no thread"),
        (late.start(), "a start that expects the deleted thread"),
    ] {
        ensure_refused!(db.save(&commit).await, Fenced { .. }, "{what}");
    }
    let wanted = ThreadRow {
        thread: id.clone(),
        head: Head {
            epoch: created.epoch,
            ..Head::default()
        },
        graph: new.graph,
        metadata: new.metadata,
        values: None,
        created: Timestamp(5_000),
        updated: Timestamp(5_000),
        lifetime: None,
    };
    ensure_eq!(
        row(db, &id).await?,
        wanted,
        "the row of a thread that was created again"
    );
    let mut owner = Owner::new(&id);
    owner.head = created;
    owner.save(db, owner.start()).await?;
    owner.save(db, owner.step()).await?;
    Ok(())
}

pub(super) async fn first_run_keeps_what_the_row_says(db: &dyn Checkpointer) -> Verdict {
    let id = thread("t");
    let new = NewThread {
        graph: String::new(),
        lifetime: lifetime(5_000, Delete),
        ..new_thread(json!({ "user": "ann" }), 1_000)
    };
    db.create(&id, &new).await?;
    let mut owner = Owner::new(&id);
    owner.head = head(db, &id).await?;
    owner.at = Timestamp(2_000);
    let start = Commit {
        listing: Some(listing("research", Json::Null, json!({ "n": 1 }))),
        ..owner.start()
    };
    owner.save(db, start).await?;
    let wanted = ThreadRow {
        thread: id.clone(),
        head: owner.head,
        graph: "research".to_owned(),
        metadata: new.metadata,
        values: Some(value(&json!({ "n": 1 }))),
        created: Timestamp(1_000),
        updated: Timestamp(2_000),
        lifetime: new.lifetime,
    };
    ensure_eq!(row(db, &id).await?, wanted, "the row after the first start");
    owner.save_steps(db, 4).await?;
    let stop = Commit {
        listing: Some(listing("research", json!({ "team": 7 }), json!({}))),
        ..owner.stop(Status::Idle)
    };
    owner.save(db, stop).await?;
    let row = row(db, &id).await?;
    ensure_eq!(
        row.metadata,
        fields(json!({ "team": 7 })),
        "metadata that a commit replaced"
    );
    ensure_eq!(row.lifetime, new.lifetime, "the lifetime after the run");
    let loaded = db.load(&id).await?.unwrap_or_default();
    let wanted = owner.history_at(owner.head.seq);
    ensure_eq!(
        loaded.history.entries,
        wanted.entries,
        "the entries of the run"
    );
    Ok(())
}

pub(super) async fn annotate_merges_into_the_metadata(db: &dyn Checkpointer) -> Verdict {
    let mut owner = started_with(
        db,
        "t",
        json!({ "user": "ann", "n": 1 }),
        json!({ "topic": "cats" }),
    )
    .await?;
    let before = row(db, &owner.thread).await?;
    let found = annotate(db, &owner.thread, 3_000, |change| {
        change.metadata = fields(json!({ "n": null, "team": { "a": [1] } }));
    });
    ensure!(found.await?, "the thread was not found");
    let merged = fields(json!({ "user": "ann", "n": null, "team": { "a": [1] } }));
    let wanted = ThreadRow {
        metadata: merged.clone(),
        updated: Timestamp(3_000),
        ..before
    };
    ensure_eq!(
        row(db, &owner.thread).await?,
        wanted,
        "the row after an annotation"
    );
    // The owner is not fenced, and its commits keep the annotation.
    owner.save(db, owner.step()).await?;
    owner.at = Timestamp(4_000);
    owner.save(db, owner.stop(Status::Paused)).await?;
    let row = row(db, &owner.thread).await?;
    ensure_eq!(row.metadata, merged, "the metadata after the run");
    ensure_eq!(
        (row.created.0, row.updated.0),
        (1_000, 4_000),
        "created and updated after the run"
    );
    Ok(())
}

pub(super) async fn annotate_names_the_graph_of_a_thread_without_one(
    db: &dyn Checkpointer,
) -> Verdict {
    let id = thread("t");
    let new = NewThread {
        graph: String::new(),
        ..new_thread(json!({}), 1_000)
    };
    db.create(&id, &new).await?;
    for (graph, wanted) in [
        (None, ""),
        (Some("research"), "research"),
        (None, "research"),
        (Some("other"), "research"),
    ] {
        annotate(db, &id, 2_000, |change| {
            change.graph = graph.map(str::to_owned);
        })
        .await?;
        let row = row(db, &id).await?;
        ensure_eq!(row.graph, wanted, "the graph after {graph:?}");
        let query = ThreadQuery {
            graph: Some(wanted.to_owned()),
            ..ThreadQuery::default()
        };
        ensure_eq!(names(db, query).await?, ["t"], "the threads of `{wanted}`");
    }
    Ok(())
}

pub(super) async fn annotate_of_no_thread_is_false(db: &dyn Checkpointer) -> Verdict {
    let deleted = started_with(db, "deleted", json!({}), json!({}))
        .await?
        .thread;
    db.delete(&deleted).await?;
    for id in [&thread("missing"), &deleted] {
        let before = dump(db, id).await?;
        let found = annotate(db, id, 2_000, |change| {
            change.metadata = fields(json!({ "n": 1 }));
            change.lifetime = Some(lifetime(1, Delete));
        });
        ensure!(!found.await?, "{id} was found");
        ensure_eq!(dump(db, id).await?, before, "{id} after an annotation");
    }
    let rows = names(db, all()).await?;
    ensure!(rows.is_empty(), "an annotation made {rows:?}");
    Ok(())
}

pub(super) async fn search_follows_annotations(db: &dyn Checkpointer) -> Verdict {
    let id = thread("t");
    db.create(&id, &new_thread(json!({ "user": "ann" }), 1_000))
        .await?;
    annotate(db, &id, 2_000, |change| {
        change.metadata = fields(json!({ "user": "bob" }));
    })
    .await?;
    for (user, wanted) in [("ann", &[] as &[&str]), ("bob", &["t"])] {
        let exact = by_metadata(vec![filter("user", &json!(user))]);
        let contains = ThreadQuery {
            metadata_contains: Some(json!({ "user": user })),
            ..all()
        };
        for query in [exact, contains] {
            ensure_eq!(names(db, query).await?, wanted, "the threads of {user}");
        }
    }
    Ok(())
}

pub(super) async fn lifetime_counts_from_the_last_change(db: &dyn Checkpointer) -> Verdict {
    for (name, lifetime) in [
        ("short", lifetime(500, Delete)),
        ("long", lifetime(5_000, KeepLatest)),
        ("none", None),
    ] {
        let new = NewThread {
            lifetime,
            ..new_thread(json!({}), 1_000)
        };
        db.create(&thread(name), &new).await?;
    }
    let (short, long) = (("short", Delete), ("long", KeepLatest));
    for (now, wanted) in [
        (1_499, vec![]),
        (1_500, vec![short]),
        (5_999, vec![short]),
        (6_000, vec![long, short]),
    ] {
        ensure_eq!(
            expired(db, now).await?,
            owned(&wanted),
            "what is over at {now}"
        );
    }
    annotate(db, &thread("short"), 1_400, |_| {}).await?;
    ensure_eq!(
        expired(db, 1_899).await?,
        owned(&[]),
        "what is over after an annotation"
    );
    ensure_eq!(
        expired(db, 1_900).await?,
        owned(&[short]),
        "what is over later"
    );
    let mut owner = Owner::new(&thread("short"));
    owner.head = head(db, &owner.thread).await?;
    owner.at = Timestamp(2_000);
    owner.save(db, owner.start()).await?;
    owner.at = Timestamp(3_000);
    owner.save(db, owner.stop(Status::Idle)).await?;
    for (now, wanted) in [(3_499, vec![]), (3_500, vec![short])] {
        ensure_eq!(
            expired(db, now).await?,
            owned(&wanted),
            "what is over at {now}, after a run"
        );
    }
    Ok(())
}

pub(super) async fn lifetime_is_changed_and_removed(db: &dyn Checkpointer) -> Verdict {
    let id = thread("t");
    db.create(&id, &new_thread(json!({}), 1_000)).await?;
    for (change, wanted) in [
        (Some(lifetime(700, Delete)), lifetime(700, Delete)),
        (None, lifetime(700, Delete)),
        (Some(lifetime(900, KeepLatest)), lifetime(900, KeepLatest)),
        (Some(None), None),
        (None, None),
    ] {
        annotate(db, &id, 1_000, |annotation| annotation.lifetime = change).await?;
        ensure_eq!(
            row(db, &id).await?.lifetime,
            wanted,
            "the lifetime after {change:?}"
        );
        let over = wanted.map(|wanted| ("t", wanted.at_end));
        ensure_eq!(
            expired(db, 9_000).await?,
            owned(over.as_slice()),
            "what is over after {change:?}"
        );
    }
    Ok(())
}

pub(super) async fn endless_lifetime_is_never_over(db: &dyn Checkpointer) -> Verdict {
    for (name, ms) in [("endless", u64::MAX), ("long", i64::MAX as u64)] {
        let new = NewThread {
            lifetime: lifetime(ms, Delete),
            ..new_thread(json!({}), 1_000)
        };
        db.create(&thread(name), &new).await?;
    }
    // In the year 2286.
    ensure_eq!(
        expired(db, 10_000_000_000_000).await?,
        owned(&[]),
        "what is over"
    );
    Ok(())
}

pub(super) async fn running_thread_does_not_expire(db: &dyn Checkpointer) -> Verdict {
    use Status::{Cancelled, Failed, Idle, Paused, Running, StepLimit};
    for status in [Idle, Running, Paused, Failed, Cancelled, StepLimit] {
        let mut owner = Owner::started(db, status.as_str()).await?;
        annotate(db, &owner.thread, 1_000, |change| {
            change.lifetime = Some(lifetime(500, Delete));
        })
        .await?;
        owner.save(db, owner.step()).await?;
        let over = expired(db, 9_000).await?;
        ensure!(
            !over.iter().any(|(name, _)| name == status.as_str()),
            "a running thread is over"
        );
        owner.save(db, owner.stop(status)).await?;
    }
    let mut wanted =
        [Idle, Paused, Failed, Cancelled, StepLimit].map(|status| (status.as_str(), Delete));
    wanted.sort_by_key(|(name, _)| *name);
    ensure_eq!(
        expired(db, 9_000).await?,
        owned(&wanted),
        "what is over of threads in every status"
    );
    let before = dump(db, &thread("idle")).await?;
    db.expired(Timestamp(9_000), None, 10).await?;
    ensure_eq!(
        dump(db, &thread("idle")).await?,
        before,
        "a thread after it was listed"
    );
    Ok(())
}

pub(super) async fn expired_spans_tenants_and_stops_at_the_limit(db: &dyn Checkpointer) -> Verdict {
    let mut made = BTreeSet::new();
    for tenant in ["", "acme"] {
        for n in 0..3 {
            let id = thread_of(tenant, &format!("t{n}"));
            let new = NewThread {
                lifetime: lifetime(10, Delete),
                ..new_thread(json!({}), 1_000 + n)
            };
            db.create(&id, &new).await?;
            made.insert(id);
        }
    }
    for (limit, wanted) in [(0, 0), (2, 2), (6, 6), (100, 6)] {
        let found = db.expired(Timestamp(9_000), None, limit).await?;
        ensure_eq!(found.len(), wanted, "rows of at most {limit}");
        let found: BTreeSet<_> = found.into_iter().map(|found| found.thread).collect();
        ensure_eq!(found.len(), wanted, "threads of at most {limit}");
        ensure!(found.is_subset(&made), "others are over: {found:?}");
    }
    Ok(())
}

pub(super) async fn expired_by_page(db: &dyn Checkpointer) -> Verdict {
    // Equal ends in several threads and tenants, so that pages end among them.
    let mut wanted = Vec::new();
    for (tenant, name) in [("", "a"), ("", "b"), ("acme", "a"), ("acme", "b")] {
        for (n, ms, at_end) in [(1, 50, KeepLatest), (2, 100, Delete), (3, 9_001, Delete)] {
            let id = thread_of(tenant, &format!("{name}{n}"));
            let new = NewThread {
                lifetime: lifetime(ms, at_end),
                ..new_thread(json!({}), 1_000)
            };
            db.create(&id, &new).await?;
            let row = ExpiredThread {
                ended: Timestamp(1_000).plus_ms(ms),
                thread: id,
                at_end,
            };
            wanted.extend((ms < 8_000).then_some(row));
        }
    }
    wanted.sort();
    for limit in 1..=10 {
        let mut found: Vec<ExpiredThread> = Vec::new();
        loop {
            let page = db.expired(Timestamp(9_000), found.last(), limit).await?;
            if page.is_empty() || found.len() > wanted.len() {
                break;
            }
            found.extend(page);
        }
        ensure_eq!(found, wanted, "what is over, {limit} at a time");
    }
    // What is deleted meanwhile moves no other thread to another page.
    db.delete(&wanted[2].thread).await?;
    let rest = db.expired(Timestamp(9_000), Some(&wanted[2]), 100).await?;
    ensure_eq!(rest, wanted[3..], "what is over behind a deleted thread");
    Ok(())
}

pub(super) async fn copy_takes_the_lifetime(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "from").await?;
    annotate(db, &owner.thread, 1_000, |change| {
        change.lifetime = Some(lifetime(500, KeepLatest));
    })
    .await?;
    let to = thread("to");
    db.copy(&owner.thread, None, &to).await?;
    ensure_eq!(
        row(db, &to).await?.lifetime,
        lifetime(500, KeepLatest),
        "the lifetime of a copy"
    );
    ensure_eq!(
        expired(db, 9_000).await?,
        owned(&[("to", KeepLatest)]),
        "what is over"
    );
    Ok(())
}

pub(super) async fn archive_has_no_lifetime(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.stop(Status::Idle)).await?;
    let without = db.export(&owner.thread).await?;
    annotate(db, &owner.thread, without.listing.updated.0, |change| {
        change.lifetime = Some(lifetime(500, Delete));
    })
    .await?;
    let archive = db.export(&owner.thread).await?;
    ensure_eq!(
        archive.to_bytes(),
        without.to_bytes(),
        "the archive of a thread with a lifetime"
    );
    db.delete(&owner.thread).await?;
    db.import(&owner.thread, &archive).await?;
    ensure_eq!(
        row(db, &owner.thread).await?.lifetime,
        None,
        "the lifetime of an imported thread"
    );
    ensure_eq!(expired(db, 9_000).await?, owned(&[]), "what is over");
    Ok(())
}

pub(super) async fn deleted_thread_has_no_lifetime(db: &dyn Checkpointer) -> Verdict {
    let id = thread("t");
    let new = NewThread {
        lifetime: lifetime(500, Delete),
        ..new_thread(json!({}), 1_000)
    };
    db.create(&id, &new).await?;
    db.delete(&id).await?;
    ensure_eq!(
        expired(db, 9_000).await?,
        owned(&[]),
        "what is over after a deletion"
    );
    let mut owner = Owner::new(&id);
    owner.head = head(db, &id).await?;
    owner.save(db, owner.start()).await?;
    owner.save(db, owner.stop(Status::Idle)).await?;
    ensure_eq!(
        row(db, &id).await?.lifetime,
        None,
        "the lifetime of a thread that was started again"
    );
    Ok(())
}

pub(super) async fn forgotten_thread_leaves_nothing(db: &dyn Checkpointer) -> Verdict {
    let (id, other) = (thread("t"), thread_of("acme", "t"));
    for id in [&id, &other] {
        let mut owner = Owner::started_at(db, id).await?;
        owner.save(db, owner.claim()).await?;
        db.delete(id).await?;
    }
    for _ in 0..2 {
        db.forget(&id).await?;
        ensure!(db.load(&id).await?.is_none(), "its epoch is remembered");
        ensure!(db.glance(&id, None).await?.is_none(), "it is seen");
    }
    ensure_eq!(
        head(db, &other).await?.status,
        Status::Deleted,
        "a thread of another tenant"
    );
    db.forget(&thread("missing")).await?;
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.step()).await?;
    ensure_eq!(
        head(db, &id).await?,
        owner.head,
        "the head of a thread that was started from nothing"
    );
    db.delete(&id).await?;
    db.forget(&id).await?;
    ensure!(
        db.create(&id, &new_thread(json!({}), 1_000)).await?,
        "a forgotten thread exists"
    );
    ensure_eq!(
        head(db, &id).await?.epoch,
        Epoch(1),
        "the epoch of a thread that was created from nothing"
    );
    Ok(())
}

pub(super) async fn only_a_deleted_thread_is_forgotten(db: &dyn Checkpointer) -> Verdict {
    let mut owner = started_with(db, "started", json!({ "n": 1 }), json!({ "n": 1 })).await?;
    let created = thread("created");
    db.create(&created, &new_thread(json!({ "n": 1 }), 1_000))
        .await?;
    for id in [&owner.thread, &created] {
        let before = dump(db, id).await?;
        db.forget(id).await?;
        ensure_eq!(dump(db, id).await?, before, "{id} after it was forgotten");
    }
    owner.save(db, owner.step()).await?;
    Ok(())
}

pub(super) async fn threads_by_several_statuses(db: &dyn Checkpointer) -> Verdict {
    use Status::{Cancelled, Deleted, Failed, Idle, Paused, Running, StepLimit};
    for status in [Idle, Running, Paused, Failed, Cancelled, StepLimit] {
        let mut owner = Owner::started(db, status.as_str()).await?;
        owner.save(db, owner.stop(status)).await?;
    }
    for statuses in [
        vec![Idle, Failed],
        vec![Failed, Idle, Idle],
        vec![StepLimit, Paused, Running],
        vec![Deleted, Cancelled],
        vec![Idle, Running, Paused, Failed, Cancelled, StepLimit],
    ] {
        let living = statuses.iter().filter(|status| **status != Deleted);
        let wanted: BTreeSet<String> = living.map(|status| status.as_str().to_owned()).collect();
        let query = ThreadQuery { statuses, ..all() };
        let found = names(db, query.clone()).await?;
        ensure_eq!(found.len(), wanted.len(), "threads by {:?}", query.statuses);
        ensure_eq!(
            BTreeSet::from_iter(found),
            wanted,
            "the threads by {:?}",
            query.statuses
        );
    }
    Ok(())
}

pub(super) async fn threads_by_ids_and_exceptions(db: &dyn Checkpointer) -> Verdict {
    for name in ["a", "b", "c", "d"] {
        started_with(db, name, json!({ "even": name == "b" }), json!({})).await?;
    }
    db.delete(&thread("d")).await?;
    Owner::started_at(db, &thread_of("acme", "e")).await?;
    let ids = |names: &[&str]| names.iter().map(|name| thread(name)).collect::<Vec<_>>();
    let strangers = [thread_of("acme", "a"), thread_of("acme", "e")];
    for (query, wanted) in [
        (
            Some(ids(&["c", "a", "d", "missing"])),
            &["a", "c"] as &[&str],
        ),
        (
            Some([ids(&["c", "c"]), strangers.to_vec()].concat()),
            &["c"],
        ),
        (Some(strangers.to_vec()), &[]),
        (Some(Vec::new()), &[]),
        (None, &["a", "b", "c"]),
    ] {
        let by_ids = ThreadQuery {
            ids: query,
            ..all()
        };
        ensure_eq!(
            names(db, by_ids.clone()).await?,
            wanted,
            "the threads of {:?}",
            by_ids.ids
        );
        let except = ThreadQuery {
            except: [ids(&["a", "missing"]), strangers.to_vec()].concat(),
            ..by_ids
        };
        let rest: Vec<_> = (wanted.iter().copied())
            .filter(|name| *name != "a")
            .collect();
        ensure_eq!(
            names(db, except).await?,
            rest,
            "the same threads, except for `a`"
        );
    }
    let even = ThreadQuery {
        ids: Some(ids(&["a", "b"])),
        ..by_metadata(vec![filter("even", &json!(true))])
    };
    ensure_eq!(
        names(db, even).await?,
        ["b"],
        "the threads by ids and metadata"
    );
    Ok(())
}

pub(super) async fn threads_that_contain_json_as_the_model(db: &dyn Checkpointer) -> Verdict {
    let long = "x".repeat(300);
    let documents = [
        (
            "a",
            json!({ "user": "ann", "profile": { "team": { "id": 1, "tags": ["x", "y"] } }, "n": 1 }),
        ),
        (
            "b",
            json!({
                "user": "ann",
                "profile": { "team": { "id": 2, "tags": ["y"] } },
                "n": 1.0,
                "list": [1, { "k": "v", "l": 2 }],
            }),
        ),
        (
            "c",
            json!({ "user": "bob", "profile": {}, "n": "1", "list": [] }),
        ),
        (
            "d",
            json!({ "user": null, "flag": true, "zero": 0, "long": long }),
        ),
        ("e", json!({})),
    ];
    for (name, document) in &documents {
        started_with(db, name, document.clone(), document.clone()).await?;
    }
    db.create(&thread("without-a-state"), &new_thread(json!({}), 500))
        .await?;
    for part in [
        json!({ "user": "ann" }),
        json!({ "profile": {} }),
        json!({ "profile": { "team": { "tags": ["y"] } } }),
        json!({ "profile": { "team": { "tags": ["y", "x"] } } }),
        json!({ "profile": { "team": { "id": 2 } }, "user": "ann" }),
        json!({ "list": [{ "k": "v" }] }),
        json!({ "list": [] }),
        json!({ "list": [2] }),
        json!({ "n": 1 }),
        json!({ "n": 1.0 }),
        json!({ "user": null }),
        json!({ "missing": null }),
        json!({ "user": { "ann": 1 } }),
        json!({ "flag": true, "zero": 0.0 }),
        json!({ "long": long }),
        json!({ "long": "x" }),
    ] {
        let contains = |(_, document): &&(&str, Json)| json_contains(document, &part);
        let found = documents.iter().filter(contains);
        let wanted: Vec<_> = found.map(|(name, _)| *name).collect();
        let metadata = ThreadQuery {
            metadata_contains: Some(part.clone()),
            ..all()
        };
        ensure_eq!(
            names(db, metadata).await?,
            wanted,
            "the threads whose metadata contains {part}"
        );
        let values = ThreadQuery {
            values_contains: Some(part.clone()),
            ..all()
        };
        ensure_eq!(
            names(db, values).await?,
            wanted,
            "the threads whose state contains {part}"
        );
    }
    let anything = Some(json!({}));
    let metadata = ThreadQuery {
        metadata_contains: anything.clone(),
        ..all()
    };
    ensure_eq!(names(db, metadata).await?.len(), 6, "threads with metadata");
    let values = ThreadQuery {
        values_contains: anything,
        ..all()
    };
    ensure_eq!(names(db, values).await?.len(), 5, "threads with a state");
    Ok(())
}

pub(super) async fn threads_are_sorted_both_ways(db: &dyn Checkpointer) -> Verdict {
    let made = make_sortable(db).await?;
    for is_ascending in [false, true] {
        for sort in SORTS {
            let mut wanted = made.clone();
            wanted.sort_by(|a, b| a.compare(b, sort, is_ascending));
            let query = ThreadQuery {
                sort,
                is_ascending,
                ..all()
            };
            let what = format!("the threads by {sort:?}, ascending: {is_ascending}");
            let wanted_names: Vec<_> = wanted.iter().map(|thread| thread.name).collect();
            ensure_eq!(names(db, query.clone()).await?, wanted_names, "{what}");
            let marked = ThreadQuery {
                metadata_contains: Some(json!({ "mark": 1 })),
                ..query
            };
            let with_mark = wanted.iter().filter(|thread| thread.is_marked);
            let wanted: Vec<_> = with_mark.map(|thread| thread.name).collect();
            ensure_eq!(names(db, marked).await?, wanted, "{what}, of the marked");
        }
    }
    Ok(())
}

pub(super) async fn pages_of_every_order_have_no_gaps(db: &dyn Checkpointer) -> Verdict {
    make_sortable(db).await?;
    for is_ascending in [false, true] {
        for sort in SORTS {
            for metadata_contains in [None, Some(json!({ "mark": 1 }))] {
                let query = ThreadQuery {
                    sort,
                    is_ascending,
                    metadata_contains,
                    ..all()
                };
                let wanted = names(db, query.clone()).await?;
                let mut read = Vec::new();
                for offset in (0..15).step_by(3) {
                    let page = Page { limit: 3, offset };
                    let query = ThreadQuery {
                        page,
                        ..query.clone()
                    };
                    read.extend(names(db, query).await?);
                }
                ensure_eq!(
                    read,
                    wanted,
                    "the threads by {sort:?}, ascending: {is_ascending}, page by page"
                );
            }
        }
    }
    Ok(())
}

pub(super) async fn count_is_of_all_pages(db: &dyn Checkpointer) -> Verdict {
    make_sortable(db).await?;
    for n in 0..15 {
        let new = new_thread(json!({ "n": n % 3 }), 1_000);
        db.create(&thread(&format!("t{n:02}")), &new).await?;
    }
    db.delete(&thread("t00")).await?;
    Owner::started_at(db, &thread_of("acme", "other")).await?;
    for query in [
        all(),
        ThreadQuery {
            statuses: vec![Status::Idle],
            ..all()
        },
        ThreadQuery {
            statuses: vec![Status::Failed, Status::Running, Status::Deleted],
            ..all()
        },
        ThreadQuery {
            except: vec![thread("t01"), thread("b")],
            ..all()
        },
        ThreadQuery {
            ids: Some(vec![thread("t01"), thread("t00"), thread("b")]),
            ..all()
        },
        ThreadQuery {
            metadata_contains: Some(json!({ "n": 1 })),
            ..all()
        },
        ThreadQuery {
            values_contains: Some(json!({ "n": 1 })),
            ..all()
        },
        ThreadQuery {
            graph: Some("missing".to_owned()),
            ..all()
        },
    ] {
        let wanted = names(db, query.clone()).await?.len() as u64;
        for (limit, offset) in [(10_000, 0), (2, 1), (0, 0), (10, 500)] {
            let query = ThreadQuery {
                page: Page { limit, offset },
                ..query.clone()
            };
            ensure_eq!(
                db.count_threads(&query).await?,
                wanted,
                "how many threads match {query:?}"
            );
        }
    }
    let nobody = ThreadQuery {
        tenant: "nobody".to_owned(),
        ..all()
    };
    ensure_eq!(
        db.count_threads(&nobody).await?,
        0,
        "threads of a tenant without any"
    );
    Ok(())
}

pub(super) async fn tenants_are_apart_in_rows(db: &dyn Checkpointer) -> Verdict {
    let tenants = ["", "acme", "acme-corp"];
    for tenant in tenants {
        let new = new_thread(json!({ "tenant": tenant }), 1_000);
        ensure!(
            db.create(&thread_of(tenant, "t"), &new).await?,
            "another tenant's thread was taken for one of `{tenant}`"
        );
    }
    annotate(db, &thread_of("acme", "t"), 2_000, |change| {
        change.metadata = fields(json!({ "by": "acme" }));
    })
    .await?;
    for tenant in tenants {
        let rows = db
            .threads(&ThreadQuery {
                tenant: tenant.to_owned(),
                ids: Some(tenants.map(|tenant| thread_of(tenant, "t")).to_vec()),
                ..all()
            })
            .await?;
        ensure_eq!(rows.len(), 1, "threads of `{tenant}`");
        let metadata = match tenant {
            "acme" => json!({ "tenant": tenant, "by": "acme" }),
            _ => json!({ "tenant": tenant }),
        };
        ensure_eq!(rows[0].metadata, fields(metadata), "the row of `{tenant}`");
        for (part, wanted) in [
            (json!({}), 1),
            (json!({ "tenant": "acme" }), u64::from(tenant == "acme")),
        ] {
            let query = ThreadQuery {
                tenant: tenant.to_owned(),
                metadata_contains: Some(part),
                ..all()
            };
            ensure_eq!(
                db.count_threads(&query).await?,
                wanted,
                "threads of `{tenant}` by {:?}",
                query.metadata_contains
            );
        }
    }
    Ok(())
}

/// A thread for the orders of the list.
#[derive(Debug, Clone)]
struct Sortable {
    name: &'static str,
    created: i64,
    updated: i64,
    status: Status,
    is_marked: bool,
}

impl Sortable {
    fn compare(&self, other: &Self, sort: ThreadSort, is_ascending: bool) -> Ordering {
        let by = match sort {
            ThreadSort::Updated => self.updated.cmp(&other.updated),
            ThreadSort::Created => self.created.cmp(&other.created),
            ThreadSort::Id => self.name.cmp(other.name),
            ThreadSort::Status => (self.status as u8).cmp(&(other.status as u8)),
        };
        let by = if is_ascending { by } else { by.reverse() };
        by.then(self.name.cmp(other.name))
    }
}

const SORTS: [ThreadSort; 4] = [
    ThreadSort::Updated,
    ThreadSort::Created,
    ThreadSort::Id,
    ThreadSort::Status,
];

/// Makes threads of which several are equal in every order but that of their names.
async fn make_sortable(db: &dyn Checkpointer) -> Result<Vec<Sortable>, Fault> {
    use Status::{Failed, Idle, Paused, Running};
    let made = [
        ("d", 100, 900, Idle),
        ("B", 100, 500, Failed),
        ("a", 300, 500, Idle),
        ("e", 200, 700, Running),
        ("b", 200, 500, Paused),
        ("a.1", 300, 900, Failed),
        ("c", -50, 600, Idle),
        ("a-1", 100, 600, Paused),
        ("_", 200, 800, Idle),
    ];
    let made = made.map(|(name, created, updated, status)| Sortable {
        name,
        created,
        updated,
        status,
        is_marked: name.len() == 1 && name != "c",
    });
    for sortable in &made {
        let mut owner = Owner::new(&thread(sortable.name));
        owner.at = Timestamp(sortable.created);
        let metadata = json!({ "mark": u8::from(sortable.is_marked) });
        let start = Commit {
            listing: Some(listing("graph", metadata, json!({ "n": 1 }))),
            ..owner.start()
        };
        owner.save(db, start).await?;
        owner.at = Timestamp(sortable.updated);
        let stop = Commit {
            listing: Some(listing("graph", Json::Null, json!({ "n": 1 }))),
            ..owner.stop(sortable.status)
        };
        owner.save(db, stop).await?;
    }
    Ok(made.to_vec())
}

fn new_thread(metadata: Json, at: i64) -> NewThread {
    NewThread {
        graph: "graph".to_owned(),
        metadata: fields(metadata),
        lifetime: None,
        at: Timestamp(at),
    }
}

fn fields(metadata: Json) -> Metadata {
    match metadata {
        Json::Object(fields) => fields.into_iter().collect(),
        _ => Metadata::new(),
    }
}

fn lifetime(ms: u64, at_end: AtLifetimeEnd) -> Option<ThreadLifetime> {
    Some(ThreadLifetime { ms, at_end })
}

async fn annotate(
    db: &dyn Checkpointer,
    thread: &ThreadId,
    at: i64,
    describe: impl FnOnce(&mut ThreadAnnotation),
) -> Result<bool, Fault> {
    let mut change = ThreadAnnotation {
        at: Timestamp(at),
        ..ThreadAnnotation::default()
    };
    describe(&mut change);
    Ok(db.annotate(thread, &change).await?)
}

/// All threads of the unnamed tenant.
fn all() -> ThreadQuery {
    ThreadQuery {
        page: ALL,
        ..ThreadQuery::default()
    }
}

/// The row of a thread that exists.
async fn row(db: &dyn Checkpointer, thread: &ThreadId) -> Result<ThreadRow, Fault> {
    let query = ThreadQuery {
        tenant: thread.tenant().to_owned(),
        ..all()
    };
    let mut rows = db.threads(&query).await?.into_iter();
    let found = rows.find(|row| row.thread == *thread);
    found.ok_or_else(|| Fault::new(format!("{thread} is not listed")))
}

async fn head(db: &dyn Checkpointer, thread: &ThreadId) -> Result<Head, Fault> {
    Ok(db.load(thread).await?.unwrap_or_default().head)
}

/// The threads whose lifetime is over, in the order of their ids.
async fn expired(db: &dyn Checkpointer, now: i64) -> Result<Vec<(String, AtLifetimeEnd)>, Fault> {
    let found = db.expired(Timestamp(now), None, 100).await?.into_iter();
    let mut found: Vec<_> = found
        .map(|found| (found.thread.to_string(), found.at_end))
        .collect();
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}

fn owned(wanted: &[(&str, AtLifetimeEnd)]) -> Vec<(String, AtLifetimeEnd)> {
    let rows = wanted.iter();
    rows.map(|(name, at_end)| ((*name).to_owned(), *at_end))
        .collect()
}
