//! The lists: threads, questions, and what a restarted driver must resume.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use superstep_core::checkpoint::{
    Checkpointer, Commit, Filter, FilterValue, InterruptQuery, Listing, OverdueCursor, Page,
    Status, ThreadQuery, ThreadRow,
};
use superstep_core::{InterruptId, ThreadId, Timestamp};

use crate::report::{Fault, Verdict, ensure, ensure_eq};
use crate::sample::{
    ALL, Owner, answer, asked, interrupt_id, listing, thread, thread_of, unfinished, value,
};

pub(super) async fn thread_row_shows_the_thread(db: &dyn Checkpointer) -> Verdict {
    let metadata = json!({ "user": "ann", "tags": ["a", { "b": null }], "": 0 });
    let values = json!({ "topic": "cats", "n": 1 });
    let listing = listing("research", metadata, values);
    let mut owner = Owner::new(&thread("t"));
    owner
        .save(
            db,
            Commit {
                listing: Some(listing.clone()),
                ..owner.start()
            },
        )
        .await?;
    let wanted = ThreadRow {
        thread: owner.thread.clone(),
        head: owner.head,
        graph: listing.graph,
        metadata: listing.metadata.unwrap_or_default(),
        values: listing.values,
        created: owner.at,
        updated: owner.at,
        lifetime: None,
    };
    ensure_eq!(
        threads(db, ThreadQuery::default()).await?,
        vec![wanted],
        "the list of threads"
    );
    Ok(())
}

pub(super) async fn listing_is_replaced_but_metadata_is_kept(db: &dyn Checkpointer) -> Verdict {
    let mut owner = started_with(db, "t", json!({ "user": "ann" }), json!({ "n": 1 })).await?;
    // A state that grew too large to be listed must not be found by what it was before.
    let large = Listing {
        graph: "second".into(),
        metadata: None,
        values: None,
    };
    owner
        .save(
            db,
            Commit {
                listing: Some(large),
                ..owner.step()
            },
        )
        .await?;
    let row = only_row(db).await?;
    ensure_eq!(row.graph, "second", "the graph");
    ensure_eq!(row.values, None, "the values of a state that is too large");
    ensure_eq!(
        row.metadata.get("user"),
        Some(&json!("ann")),
        "metadata that was not given again"
    );
    let old = by_values(vec![filter("n", &json!(1))]);
    ensure_eq!(
        threads(db, old).await?,
        vec![],
        "the threads found by the former state"
    );

    let small = listing("third", json!({ "team": 7 }), json!({ "n": 2 }));
    owner
        .save(
            db,
            Commit {
                listing: Some(small),
                ..owner.step()
            },
        )
        .await?;
    let row = only_row(db).await?;
    ensure_eq!(
        row.values,
        Some(value(&json!({ "n": 2 }))),
        "the values of the new state"
    );
    ensure_eq!(
        row.metadata,
        [("team".to_owned(), json!(7))].into(),
        "the new metadata"
    );
    let old = by_metadata(vec![filter("user", &json!("ann"))]);
    ensure_eq!(
        threads(db, old).await?,
        vec![],
        "the threads found by the former metadata"
    );

    owner.save(db, owner.step()).await?;
    let wanted = ThreadRow {
        head: owner.head,
        ..row
    };
    ensure_eq!(
        only_row(db).await?,
        wanted,
        "the row after a step without a listing"
    );
    Ok(())
}

pub(super) async fn updated_moves_with_the_status(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.at = Timestamp(2_000);
    owner.save(db, owner.step()).await?;
    let row = only_row(db).await?;
    ensure_eq!(
        (row.created.0, row.updated.0),
        (1_000, 1_000),
        "created and updated in a run"
    );
    owner.at = Timestamp(3_000);
    owner.save(db, owner.stop(Status::Failed)).await?;
    let row = only_row(db).await?;
    ensure_eq!(
        (row.created.0, row.updated.0),
        (1_000, 3_000),
        "created and updated after a run"
    );
    Ok(())
}

pub(super) async fn threads_are_newest_first_then_by_name(db: &dyn Checkpointer) -> Verdict {
    for (name, at) in [("b", 10), ("a", 10), ("d", -20), ("c", 30), ("e", 20)] {
        let mut owner = Owner::new(&thread(name));
        owner.at = Timestamp(at);
        owner.save(db, owner.start()).await?;
    }
    let query = ThreadQuery {
        page: ALL,
        ..ThreadQuery::default()
    };
    ensure_eq!(
        names(db, query).await?,
        ["c", "e", "a", "b", "d"],
        "the order of threads"
    );
    Ok(())
}

pub(super) async fn threads_by_page(db: &dyn Checkpointer) -> Verdict {
    for n in 0..25 {
        let mut owner = Owner::new(&thread(&format!("t{n:02}")));
        owner.at = Timestamp(n % 4);
        owner.save(db, owner.start()).await?;
    }
    let all = names(
        db,
        ThreadQuery {
            page: ALL,
            ..ThreadQuery::default()
        },
    )
    .await?;
    ensure_eq!(all.len(), 25, "threads in all");
    let default = names(db, ThreadQuery::default()).await?;
    ensure_eq!(default, all[..10], "the default page");
    let mut read = Vec::new();
    for offset in (0..35).step_by(7) {
        let page = Page { limit: 7, offset };
        read.extend(
            names(
                db,
                ThreadQuery {
                    page,
                    ..ThreadQuery::default()
                },
            )
            .await?,
        );
    }
    ensure_eq!(read, all, "the threads page by page");
    let none = Page {
        limit: 0,
        offset: 0,
    };
    let read = names(
        db,
        ThreadQuery {
            page: none,
            ..ThreadQuery::default()
        },
    )
    .await?;
    ensure!(read.is_empty(), "a page of no rows has {}", read.len());
    Ok(())
}

pub(super) async fn threads_by_status(db: &dyn Checkpointer) -> Verdict {
    use Status::{Cancelled, Failed, Idle, Paused, Running, StepLimit};
    let all = [Idle, Running, Paused, Failed, Cancelled, StepLimit];
    for status in all {
        let mut owner = Owner::started(db, status.as_str()).await?;
        owner.save(db, owner.stop(status)).await?;
    }
    for status in all {
        let query = ThreadQuery {
            statuses: vec![status],
            ..ThreadQuery::default()
        };
        ensure_eq!(
            names(db, query).await?,
            [status.as_str()],
            "the threads of a status"
        );
    }
    Ok(())
}

pub(super) async fn threads_by_graph(db: &dyn Checkpointer) -> Verdict {
    for (name, graph) in [
        ("a", "one"),
        ("b", "two"),
        ("c", "one"),
        ("d", "One"),
        ("e", "on"),
    ] {
        let mut owner = Owner::new(&thread(name));
        let listing = Some(listing(graph, json!({}), json!({})));
        owner
            .save(
                db,
                Commit {
                    listing,
                    ..owner.start()
                },
            )
            .await?;
    }
    let query = ThreadQuery {
        graph: Some("one".into()),
        ..ThreadQuery::default()
    };
    ensure_eq!(
        names(db, query).await?,
        ["a", "c"],
        "the threads of a graph"
    );
    Ok(())
}

pub(super) async fn threads_by_values_and_metadata(db: &dyn Checkpointer) -> Verdict {
    started_with(
        db,
        "a",
        json!({ "user": "ann" }),
        json!({ "topic": "cats" }),
    )
    .await?;
    started_with(
        db,
        "b",
        json!({ "user": "bob" }),
        json!({ "topic": "cats" }),
    )
    .await?;
    started_with(
        db,
        "c",
        json!({ "topic": "cats" }),
        json!({ "user": "ann" }),
    )
    .await?;
    started_with(
        db,
        "d",
        json!({ "user": "ann", "team": 1 }),
        json!({ "topic": "dogs" }),
    )
    .await?;
    let (ann, cats) = (
        filter("user", &json!("ann")),
        filter("topic", &json!("cats")),
    );
    let query = by_metadata(vec![ann.clone()]);
    ensure_eq!(
        names(db, query).await?,
        ["a", "d"],
        "the threads by metadata"
    );
    let query = by_values(vec![cats.clone()]);
    ensure_eq!(names(db, query).await?, ["a", "b"], "the threads by values");
    let query = ThreadQuery {
        values: vec![cats],
        ..by_metadata(vec![ann.clone()])
    };
    ensure_eq!(names(db, query).await?, ["a"], "the threads by both");
    let query = by_metadata(vec![ann.clone(), filter("team", &json!(1))]);
    ensure_eq!(
        names(db, query).await?,
        ["d"],
        "the threads by two conditions"
    );
    let query = by_metadata(vec![ann, filter("user", &json!("bob"))]);
    ensure!(
        names(db, query).await?.is_empty(),
        "a field has two values at once"
    );
    Ok(())
}

pub(super) async fn filters_compare_type_and_value(db: &dyn Checkpointer) -> Verdict {
    let scalars = [
        ("null", json!(null)),
        ("false", json!(false)),
        ("true", json!(true)),
        ("zero", json!(0)),
        ("one", json!(1)),
        ("one-point", json!(1.0)),
        ("minus", json!(-1)),
        ("half", json!(0.5)),
        ("largest", json!(u64::MAX)),
        ("near", json!(u64::MAX - 1)),
        ("empty", json!("")),
        ("text-null", json!("null")),
        ("text-one", json!("1")),
        ("text-true", json!("true")),
    ];
    for (name, scalar) in &scalars {
        started_with(db, name, json!({ "f": scalar }), json!({ "f": scalar })).await?;
    }
    for (name, scalar) in &scalars {
        let found = names(db, by_metadata(vec![filter("f", scalar)])).await?;
        ensure_eq!(found, [*name], "the threads whose metadata has {scalar}");
        let found = names(db, by_values(vec![filter("f", scalar)])).await?;
        ensure_eq!(found, [*name], "the threads whose values have {scalar}");
    }
    Ok(())
}

pub(super) async fn filters_need_the_field(db: &dyn Checkpointer) -> Verdict {
    started_with(db, "without", json!({}), json!({})).await?;
    let nested = json!({ "f": { "g": null }, "list": [null], "a.b": 1 });
    started_with(db, "nested", nested.clone(), nested).await?;
    for field in ["f", "g", "f.g", "list", "list[0]", "a", "b", "$.f.g"] {
        for query in [by_metadata, by_values] {
            let found = names(db, query(vec![filter(field, &Json::Null)])).await?;
            ensure!(
                found.is_empty(),
                "`{field}` is not null, yet {found:?} was found"
            );
        }
    }
    let found = names(db, by_values(vec![filter("a.b", &json!(1))])).await?;
    ensure_eq!(
        found,
        ["nested"],
        "the threads with a field whose name has a dot"
    );
    Ok(())
}

pub(super) async fn long_texts_are_not_searched(db: &dyn Checkpointer) -> Verdict {
    let longest = "é".repeat(FilterValue::TEXT_BYTES_MAX / 2);
    let longer = format!("{longest}x");
    started_with(
        db,
        "longest",
        json!({ "f": longest }),
        json!({ "f": longest }),
    )
    .await?;
    started_with(db, "longer", json!({ "f": longer }), json!({ "f": longer })).await?;
    for query in [by_metadata, by_values] {
        let found = names(db, query(vec![filter("f", &json!(longest))])).await?;
        ensure_eq!(
            found,
            ["longest"],
            "the threads with the longest text that is searched"
        );
        let equals = FilterValue::Text(longer.clone());
        let found = names(
            db,
            query(vec![Filter {
                field: "f".into(),
                equals,
            }]),
        )
        .await?;
        ensure!(found.is_empty(), "a text that is too long was found");
    }
    Ok(())
}

pub(super) async fn largest_values_are_kept_whole(db: &dyn Checkpointer) -> Verdict {
    let frame = value(&json!({ "pad": "", "tag": "large" })).len();
    let pad = "x".repeat(Listing::VALUES_BYTES_MAX - frame);
    let values = json!({ "pad": pad, "tag": "large" });
    ensure_eq!(
        value(&values).len(),
        Listing::VALUES_BYTES_MAX,
        "the bytes of the largest values"
    );
    started_with(db, "large", json!({}), values.clone()).await?;
    let rows = threads(db, by_values(vec![filter("tag", &json!("large"))])).await?;
    ensure_eq!(rows.len(), 1, "threads found by the largest values");
    ensure!(
        rows[0].values == Some(value(&values)),
        "the largest values came back changed"
    );
    Ok(())
}

pub(super) async fn questions_are_oldest_first(db: &dyn Checkpointer) -> Verdict {
    for (name, at, ids) in [("b", 20, [5, 4]), ("a", 20, [6, 3]), ("c", 10, [9, 8])] {
        let mut owner = Owner::started(db, name).await?;
        owner.at = Timestamp(at);
        owner.save(db, owner.pause(&ids)).await?;
    }
    let query = InterruptQuery {
        page: ALL,
        ..InterruptQuery::default()
    };
    let wanted = [8, 9, 3, 6, 4, 5].map(interrupt_id);
    ensure_eq!(
        questions(db, query).await?,
        wanted,
        "the order of questions"
    );
    Ok(())
}

pub(super) async fn questions_by_page_and_thread(db: &dyn Checkpointer) -> Verdict {
    let ids: Vec<u8> = (1..=23).collect();
    let mut owner = Owner::started(db, "a").await?;
    owner.save(db, owner.pause(&ids)).await?;
    let mut other = Owner::started(db, "b").await?;
    other.save(db, other.pause(&[1, 50])).await?;
    let mut read = Vec::new();
    for offset in (0..30).step_by(5) {
        let page = Page { limit: 5, offset };
        let query = InterruptQuery {
            thread: Some(owner.thread.clone()),
            page,
            ..InterruptQuery::default()
        };
        read.extend(questions(db, query).await?);
    }
    let wanted: Vec<_> = ids.into_iter().map(interrupt_id).collect();
    ensure_eq!(read, wanted, "the questions of a thread page by page");
    let named = |threads: &[&ThreadId]| InterruptQuery {
        threads: threads.iter().map(|thread| (*thread).clone()).collect(),
        page: ALL,
        ..InterruptQuery::default()
    };
    let (missing, elsewhere) = (thread("missing"), thread_of("elsewhere", "b"));
    for (threads, wanted) in [
        (&[&other.thread, &missing] as &[&ThreadId], 2),
        (&[&owner.thread, &other.thread], 25),
        (&[&missing, &elsewhere], 0),
        (&[&elsewhere], 0),
    ] {
        let found = questions(db, named(threads)).await?.len();
        ensure_eq!(found, wanted, "the questions of {threads:?}");
    }
    let query = InterruptQuery {
        page: ALL,
        ..InterruptQuery::default()
    };
    ensure_eq!(
        questions(db, query).await?.len(),
        25,
        "questions of all threads"
    );
    Ok(())
}

pub(super) async fn questions_open_only(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    owner.save(db, owner.ask(&[1, 2, 3, 4])).await?;
    db.answer(
        &owner.thread,
        &[answer(1, json!(null)), answer(2, json!(2))],
    )
    .await?;
    let closed = vec![interrupt_id(2), interrupt_id(3)];
    owner
        .save(
            db,
            Commit {
                closed,
                ..owner.stop(Status::Paused)
            },
        )
        .await?;
    let query = InterruptQuery {
        page: ALL,
        ..InterruptQuery::default()
    };
    ensure_eq!(
        questions(db, query.clone()).await?.len(),
        4,
        "questions in all"
    );
    let open = InterruptQuery {
        open_only: true,
        ..query
    };
    ensure_eq!(
        questions(db, open).await?,
        [interrupt_id(4)],
        "the open questions"
    );
    Ok(())
}

pub(super) async fn questions_that_are_due(db: &dyn Checkpointer) -> Verdict {
    let mut owner = Owner::started(db, "t").await?;
    let pause = owner.stop(Status::Paused);
    let deadlines = [
        (1, Some(100)),
        (2, None),
        (3, Some(200)),
        (4, Some(300)),
        (5, Some(50)),
    ];
    let asked = deadlines.map(|(n, deadline)| {
        let mut row = asked(&owner.thread, pause.head.seq, n);
        row.deadline = deadline.map(Timestamp);
        row
    });
    owner
        .save(
            db,
            Commit {
                asked: asked.into(),
                ..pause
            },
        )
        .await?;
    let due = InterruptQuery {
        due: Some(Timestamp(200)),
        page: ALL,
        ..InterruptQuery::default()
    };
    let wanted = [1, 3, 5].map(interrupt_id);
    ensure_eq!(
        questions(db, due.clone()).await?,
        wanted,
        "the questions that are due"
    );
    db.answer(&owner.thread, &[answer(1, json!(1))]).await?;
    ensure_eq!(
        questions(db, due.clone()).await?,
        wanted,
        "the questions that are due, one of them answered"
    );
    let open = InterruptQuery {
        open_only: true,
        ..due
    };
    let wanted = [3, 5].map(interrupt_id);
    ensure_eq!(
        questions(db, open).await?,
        wanted,
        "the open questions that are due"
    );
    let overdue = db.overdue(Timestamp(200), None, 10).await?;
    let overdue: Vec<_> = overdue.into_iter().map(|row| row.id).collect();
    let by_deadline = [5, 3].map(interrupt_id);
    ensure_eq!(
        overdue,
        by_deadline,
        "what drivers find overdue, by deadline"
    );
    Ok(())
}

pub(super) async fn overdue_by_page(db: &dyn Checkpointer) -> Verdict {
    // Equal deadlines in several threads and tenants, so that pages end among them.
    let mut wanted = Vec::new();
    for (tenant, name) in [("", "a"), ("", "b"), ("acme", "a")] {
        let id = thread_of(tenant, name);
        let mut owner = Owner::new(&id);
        owner.save(db, owner.start()).await?;
        let pause = owner.stop(Status::Paused);
        let deadlines = [(1, 100), (2, 100), (3, 50), (4, 201)];
        let asked = deadlines.map(|(n, deadline)| {
            let mut row = asked(&id, pause.head.seq, n);
            row.deadline = Some(Timestamp(deadline));
            row
        });
        owner
            .save(
                db,
                Commit {
                    asked: asked.into(),
                    ..pause
                },
            )
            .await?;
        let due = deadlines
            .into_iter()
            .filter(|(_, deadline)| *deadline <= 200);
        wanted.extend(due.map(|(n, deadline)| OverdueCursor {
            deadline: Timestamp(deadline),
            thread: id.clone(),
            id: interrupt_id(n),
        }));
    }
    wanted.sort();
    for limit in 1..=10 {
        let mut found: Vec<OverdueCursor> = Vec::new();
        loop {
            let page = db.overdue(Timestamp(200), found.last(), limit).await?;
            let cursors = page.into_iter().map(|row| {
                let is_row =
                    |cursor: &&OverdueCursor| cursor.thread == row.thread && cursor.id == row.id;
                wanted.iter().find(is_row).cloned()
            });
            let cursors = cursors.collect::<Option<Vec<_>>>();
            let cursors =
                cursors.ok_or_else(|| Fault::new("an interrupt that is not overdue".to_owned()))?;
            if cursors.is_empty() || found.len() > wanted.len() {
                break;
            }
            found.extend(cursors);
        }
        ensure_eq!(found, wanted, "pages of {limit}");
    }
    Ok(())
}

pub(super) async fn unfinished_is_what_must_be_taken_up(db: &dyn Checkpointer) -> Verdict {
    let running = Owner::started(db, "running").await?;
    for status in [
        Status::Idle,
        Status::Failed,
        Status::Cancelled,
        Status::StepLimit,
    ] {
        let mut owner = Owner::started(db, status.as_str()).await?;
        owner
            .save(
                db,
                Commit {
                    asked: owner.ask(&[1]).asked,
                    ..owner.stop(status)
                },
            )
            .await?;
        db.answer(&owner.thread, &[answer(1, json!(1))]).await?;
    }
    let mut waiting = Owner::started(db, "waiting").await?;
    waiting.save(db, waiting.pause(&[1])).await?;
    let mut answered = Owner::started(db, "answered").await?;
    answered.save(db, answered.pause(&[1, 2])).await?;
    db.answer(&answered.thread, &[answer(1, json!(false))])
        .await?;
    let mut seen = Owner::started(db, "seen").await?;
    seen.save(db, seen.ask(&[1, 2])).await?;
    db.answer(&seen.thread, &[answer(1, json!(1))]).await?;
    seen.head.answers = 1;
    seen.save(db, seen.pause(&[2])).await?;
    let deleted = Owner::started(db, "deleted").await?;
    db.delete(&deleted.thread).await?;

    let wanted: BTreeSet<ThreadId> = [running.thread, answered.thread].into();
    let found = unfinished(db, 100).await?;
    ensure_eq!(found.len(), wanted.len(), "threads to take up");
    ensure_eq!(
        found.into_iter().collect::<BTreeSet<_>>(),
        wanted,
        "the threads to take up"
    );
    Ok(())
}

pub(super) async fn unfinished_by_page(db: &dyn Checkpointer) -> Verdict {
    let mut all = Vec::new();
    for (tenant, name) in [
        ("", "b"),
        ("acme", "a"),
        ("", "a"),
        ("acme", "c"),
        ("", "c"),
    ] {
        let thread = thread_of(tenant, name);
        Owner::started_at(db, &thread).await?;
        all.push(thread);
    }
    all.sort();
    ensure_eq!(unfinished(db, 10).await?, all, "all threads, in order");
    for limit in 1..=3 {
        let mut paged: Vec<ThreadId> = Vec::new();
        loop {
            let page = db.unfinished(paged.last(), limit).await?;
            ensure!(
                page.len() <= limit as usize,
                "a page is longer than {limit}"
            );
            // More than there are: it would never end.
            if page.is_empty() || paged.len() > all.len() {
                break;
            }
            paged.extend(page.into_iter().map(|found| found.thread));
        }
        ensure_eq!(paged, all, "all threads, page by page");
    }
    Ok(())
}

pub(super) fn filter(field: &str, equals: &Json) -> Filter {
    let equals = FilterValue::of(equals).expect("the suite filters by scalars");
    Filter {
        field: field.to_owned(),
        equals,
    }
}

pub(super) fn by_metadata(metadata: Vec<Filter>) -> ThreadQuery {
    ThreadQuery {
        metadata,
        page: ALL,
        ..ThreadQuery::default()
    }
}

pub(super) fn by_values(values: Vec<Filter>) -> ThreadQuery {
    ThreadQuery {
        values,
        page: ALL,
        ..ThreadQuery::default()
    }
}

pub(super) async fn threads(
    db: &dyn Checkpointer,
    query: ThreadQuery,
) -> Result<Vec<ThreadRow>, Fault> {
    Ok(db.threads(&query).await?)
}

/// Their names only, in the order of the list.
pub(super) async fn names(db: &dyn Checkpointer, query: ThreadQuery) -> Result<Vec<String>, Fault> {
    let rows = threads(db, query).await?;
    Ok(rows
        .iter()
        .map(|row| row.thread.name().to_owned())
        .collect())
}

/// Starts a thread of the unnamed tenant that is found by this.
pub(super) async fn started_with(
    db: &dyn Checkpointer,
    name: &str,
    metadata: Json,
    values: Json,
) -> Result<Owner, Fault> {
    let mut owner = Owner::new(&thread(name));
    let listing = Some(listing("graph", metadata, values));
    owner
        .save(
            db,
            Commit {
                listing,
                ..owner.start()
            },
        )
        .await?;
    Ok(owner)
}

async fn only_row(db: &dyn Checkpointer) -> Result<ThreadRow, Fault> {
    let mut rows = threads(db, ThreadQuery::default()).await?;
    match rows.pop() {
        Some(row) if rows.is_empty() => Ok(row),
        _ => Err(Fault::new(format!(
            "one thread was made, {} more are listed",
            rows.len()
        ))),
    }
}

async fn questions(
    db: &dyn Checkpointer,
    query: InterruptQuery,
) -> Result<Vec<InterruptId>, Fault> {
    Ok(db
        .interrupts(&query)
        .await?
        .iter()
        .map(|row| row.id)
        .collect())
}
