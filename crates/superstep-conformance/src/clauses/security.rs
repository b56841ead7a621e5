//! What an attacker would try: to reach another tenant, and to be taken for more than text.

use serde_json::{Map, Value as Json, json};
use superstep_core::checkpoint::{
    BoxFuture, CheckpointResult, Checkpointer, Commit, Filter, FilterValue, InterruptQuery,
    ThreadQuery,
};
use superstep_core::error::CheckpointError::{Fenced, NoCheckpoint, NoThread, NotOpen, Query};
use superstep_core::{Seq, ThreadId};

use super::list::{by_metadata, by_values, names, started_with};
use crate::prng::Prng;
use crate::report::{Fault, Verdict, ensure, ensure_eq, ensure_refused};
use crate::sample::{ALL, Owner, answer, dump, listing, thread, thread_of, unfinished};

pub(super) async fn tenants_are_apart_in_loads(db: &dyn Checkpointer) -> Verdict {
    let owner = furnished(db, &thread_of("acme", "x")).await?;
    for other in strangers() {
        ensure!(db.load(&other).await?.is_none(), "{other} is loaded");
        let result = db.load_at(&other, owner.head.seq).await;
        ensure_refused!(
            result,
            NoThread { .. } | NoCheckpoint { .. },
            "a load of {other}"
        );
        let entries = db.entries(&other, Seq(0), 100).await;
        ensure!(
            !entries.is_ok_and(|entries| !entries.is_empty()),
            "{other} has an event log"
        );
    }
    Ok(())
}

pub(super) async fn tenants_are_apart_in_lists(db: &dyn Checkpointer) -> Verdict {
    let mut all = strangers();
    all.push(thread_of("acme", "x"));
    for thread in &all {
        furnished(db, thread).await?;
    }
    for tenant in ["", "acme", "acme-corp", "acm", "x", "nobody"] {
        let own: Vec<_> = all
            .iter()
            .filter(|thread| thread.tenant() == tenant)
            .collect();
        let mine = || ThreadQuery {
            tenant: tenant.to_owned(),
            page: ALL,
            ..Default::default()
        };
        let graph = ThreadQuery {
            graph: Some("graph".into()),
            ..mine()
        };
        let metadata = ThreadQuery {
            metadata: by_user("ann"),
            ..mine()
        };
        let values = ThreadQuery {
            values: by_user("ann"),
            ..mine()
        };
        for query in [mine(), graph, metadata, values] {
            let rows = db.threads(&query).await?;
            let mut found: Vec<_> = rows.iter().map(|row| &row.thread).collect();
            found.sort();
            let mut wanted = own.clone();
            wanted.sort();
            ensure_eq!(found, wanted, "the threads of tenant `{tenant}`");
        }
        let query = InterruptQuery {
            tenant: tenant.to_owned(),
            page: ALL,
            ..InterruptQuery::default()
        };
        let rows = db.interrupts(&query).await?;
        ensure!(
            rows.iter().all(|row| row.thread.tenant() == tenant),
            "foreign questions"
        );
        ensure_eq!(rows.len(), own.len(), "questions of tenant `{tenant}`");
        let foreign = all.iter().find(|thread| thread.tenant() != tenant).cloned();
        let rows = db
            .interrupts(&InterruptQuery {
                thread: foreign,
                ..query
            })
            .await?;
        ensure_eq!(rows, vec![], "questions of a foreign thread that was named");
    }
    let mut found = unfinished(db, 100).await?;
    found.sort();
    all.sort();
    ensure_eq!(
        found,
        all,
        "the threads of all tenants that a driver resumes"
    );
    Ok(())
}

pub(super) async fn tenants_are_apart_in_writes(db: &dyn Checkpointer) -> Verdict {
    let owner = furnished(db, &thread_of("acme", "x")).await?;
    let before = dump(db, &owner.thread).await?;
    for other in strangers() {
        let mut stranger = owner.clone();
        stranger.thread = other.clone();
        ensure_refused!(
            db.save(&stranger.step()).await,
            Fenced { .. },
            "a step of {other}"
        );
        let record = stranger.record(9, "key", json!(1));
        ensure_refused!(
            db.record(&record).await,
            Fenced { .. },
            "a record of {other}"
        );
        let result = db.answer(&other, &[answer(1, json!(1))]).await;
        ensure_refused!(
            result,
            NotOpen { .. } | NoThread { .. },
            "an answer of {other}"
        );
        let result = db.request_cancel(&other).await;
        ensure_refused!(result, NoThread { .. }, "a cancel of {other}");
        // Whether a thread that is not there can be deleted or pruned is the store's own affair.
        let _ = db.delete(&other).await;
        let _ = db.prune(&other, 1).await;
    }
    ensure_eq!(
        dump(db, &owner.thread).await?,
        before,
        "the thread that none of them named"
    );
    let mut owner = owner;
    ensure!(
        !owner.save(db, owner.step()).await?.cancel,
        "a stranger cancelled the run"
    );
    Ok(())
}

pub(super) async fn tenant_is_never_a_pattern(db: &dyn Checkpointer) -> Verdict {
    for thread in [thread_of("acme", "x"), thread("x")] {
        furnished(db, &thread).await?;
    }
    for tenant in [
        "%",
        "acme%",
        "acm_",
        "*",
        "acme' or '1'='1",
        "' or 1=1 --",
        "acme/",
        "acme/x",
    ] {
        let query = ThreadQuery {
            tenant: tenant.to_owned(),
            page: ALL,
            ..Default::default()
        };
        let found = nothing_or_refused(db.threads(&query)).await?;
        ensure!(found, "threads of tenant `{tenant}` are listed");
        let query = InterruptQuery {
            tenant: tenant.to_owned(),
            page: ALL,
            ..Default::default()
        };
        let found = nothing_or_refused(db.interrupts(&query)).await?;
        ensure!(found, "questions of tenant `{tenant}` are listed");
    }
    Ok(())
}

pub(super) async fn addresses_do_not_run_together(db: &dyn Checkpointer) -> Verdict {
    let longest = "n".repeat(ThreadId::BYTES_MAX);
    let threads = [
        thread_of("a", "b.c"),
        thread_of("a.b", "c"),
        thread_of("a-b", "c"),
        thread_of("a", "b-c"),
        thread_of("a_b", "c"),
        thread_of("ab", "c"),
        thread_of("a", "bc"),
        thread("abc"),
        thread("a.b.c"),
        thread_of(&longest, &longest),
        thread_of(&longest[1..], &longest),
    ];
    are_apart(db, &threads).await
}

pub(super) async fn names_differ_by_case(db: &dyn Checkpointer) -> Verdict {
    let threads = [
        thread("thread"),
        thread("Thread"),
        thread("THREAD"),
        thread_of("acme", "x"),
        thread_of("Acme", "x"),
        thread_of("acme", "X"),
    ];
    are_apart(db, &threads).await
}

pub(super) async fn hostile_texts_are_only_texts(db: &dyn Checkpointer) -> Verdict {
    let texts = hostile_texts();
    for (n, text) in texts.iter().enumerate() {
        let mut owner = Owner::new(&thread(&format!("t{n}")));
        let listing = listing(text, json!({ text: text }), json!({ text: text }));
        owner
            .save(
                db,
                Commit {
                    listing: Some(listing.clone()),
                    ..owner.start()
                },
            )
            .await?;
        let query = ThreadQuery {
            graph: Some(text.clone()),
            page: ALL,
            ..Default::default()
        };
        let rows = db.threads(&query).await?;
        ensure_eq!(rows.len(), 1, "threads of graph {text:?}");
        ensure_eq!(rows[0].graph, *text, "the graph's name");
        ensure_eq!(
            Some(&rows[0].metadata),
            listing.metadata.as_ref(),
            "the metadata"
        );
        ensure_eq!(rows[0].values, listing.values, "the values");
    }
    let all = names(
        db,
        ThreadQuery {
            page: ALL,
            ..ThreadQuery::default()
        },
    )
    .await?;
    ensure_eq!(all.len(), texts.len(), "threads after all hostile texts");
    Ok(())
}

pub(super) async fn hostile_searches_find_what_a_model_finds(db: &dyn Checkpointer) -> Verdict {
    let mut random = Prng::new(0x5eed);
    let (texts, scalars) = (hostile_texts(), hostile_scalars());
    let mut model: Vec<(String, [Map<String, Json>; 2])> = Vec::new();
    for n in 0..40 {
        let sides = [(); 2].map(|()| {
            let fields = 1 + random.below(4);
            (0..fields)
                .map(|_| hostile_field(&mut random, &texts, &scalars))
                .collect()
        });
        let name = format!("t{n:02}");
        let [metadata, values]: [Map<String, Json>; 2] = sides.clone();
        started_with(db, &name, metadata.into(), values.into()).await?;
        model.push((name, sides));
    }
    for _ in 0..200 {
        let side = random.below(2);
        // Mostly of a field that is there, so that most searches find something.
        let (_, sides) = random.pick(&model);
        let there: Vec<_> = sides[side].clone().into_iter().collect();
        let (field, scalar) = match random.below(4) {
            0 => hostile_field(&mut random, &texts, &scalars),
            1 => (random.pick(&there).0.clone(), random.pick(&scalars).clone()),
            _ => random.pick(&there).clone(),
        };
        let Some(equals) = FilterValue::of(&scalar) else {
            continue;
        };
        let passes = |fields: &Map<String, Json>| {
            fields
                .get(&field)
                .is_some_and(|found| equals.matches(found))
        };
        let wanted: Vec<_> = model
            .iter()
            .filter(|row| passes(&row.1[side]))
            .map(|row| row.0.clone())
            .collect();
        let filter = vec![Filter {
            field: field.clone(),
            equals: equals.clone(),
        }];
        let query = if side == 0 {
            by_metadata(filter)
        } else {
            by_values(filter)
        };
        ensure_eq!(
            names(db, query).await?,
            wanted,
            "threads where {field:?} is {scalar}"
        );
    }
    Ok(())
}

pub(super) async fn hostile_record_keys_are_only_keys(db: &dyn Checkpointer) -> Verdict {
    let owner = Owner::started(db, "t").await?;
    let texts = hostile_texts();
    for text in &texts {
        let record = owner.record(1, text, json!(text));
        ensure_eq!(
            db.record(&record).await?,
            record.body,
            "the record under {text:?}"
        );
    }
    let loaded = db.load(&owner.thread).await?.unwrap_or_default();
    ensure_eq!(
        loaded.records.len(),
        texts.len(),
        "records under hostile keys"
    );
    for row in &loaded.records {
        let wanted = owner.record(1, &row.key, json!(row.key)).body;
        ensure_eq!(row.body, wanted, "the record under {:?}", row.key);
    }
    Ok(())
}

/// Texts that mean something to somebody: to SQL, to JSON paths, to patterns, to collations.
pub(super) fn hostile_texts() -> Vec<String> {
    let short = [
        "'",
        "''",
        "\"",
        "\\",
        "\\'",
        "`",
        "%",
        "_",
        "a%",
        "a_b",
        "a.b",
        "a[0]",
        "$",
        "$.a",
        "$.\"a\"",
        "'; drop table thread; --",
        "' or 1=1 --",
        "\") or (\"\"=\"",
        "--",
        "/*",
        "?1",
        ":a",
        "@a",
        "$1",
        "{}",
        "{\"a\":1}",
        "null",
        "true",
        "0",
        "1",
        "1.0",
        " ",
        " a",
        "a ",
        "a",
        "A",
        "\t",
        "\r\n",
        "\u{1}\u{1b}\u{7f}",
        "\u{e9}",
        "e\u{301}",
        "\u{df}",
        "ss",
        "\u{130}",
        "\u{feff}",
        "\u{202e}",
        "\u{1f600}",
        "\u{10ffff}",
        "__proto__",
        "../../etc/passwd",
    ];
    let long = [
        "x".repeat(256),
        "\u{1f600}".repeat(64),
        "%".repeat(255),
        "'".repeat(200),
    ];
    short.into_iter().map(str::to_owned).chain(long).collect()
}

fn hostile_scalars() -> Vec<Json> {
    let others = [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(-1),
        json!(1.0),
        json!(1.5),
        json!(1e300),
        json!(i64::MIN),
        json!(u64::MAX),
        json!([]),
        json!({}),
        json!([1]),
        json!("x".repeat(257)),
    ];
    hostile_texts()
        .into_iter()
        .map(Json::String)
        .chain(others)
        .collect()
}

fn hostile_field(random: &mut Prng, texts: &[String], scalars: &[Json]) -> (String, Json) {
    (random.pick(texts).clone(), random.pick(scalars).clone())
}

/// Neighbours of `acme/x` that a careless comparison would take for it.
fn strangers() -> Vec<ThreadId> {
    vec![
        thread("x"),
        thread("acme"),
        thread_of("acme-corp", "x"),
        thread_of("acm", "x"),
        thread_of("x", "acme"),
        thread_of("acme", "y"),
        thread_of("acme", "x-"),
    ]
}

fn by_user(user: &str) -> Vec<Filter> {
    vec![Filter {
        field: "user".into(),
        equals: FilterValue::Text(user.to_owned()),
    }]
}

/// A running thread with an open question, found by its user.
async fn furnished(db: &dyn Checkpointer, thread: &ThreadId) -> Result<Owner, Fault> {
    let mut owner = Owner::new(thread);
    let listing = Some(listing(
        "graph",
        json!({ "user": "ann" }),
        json!({ "user": "ann" }),
    ));
    owner
        .save(
            db,
            Commit {
                listing,
                ..owner.start()
            },
        )
        .await?;
    owner.save_steps(db, 3).await?;
    owner.save(db, owner.ask(&[1])).await?;
    Ok(owner)
}

async fn are_apart(db: &dyn Checkpointer, threads: &[ThreadId]) -> Verdict {
    let mut owners = Vec::new();
    for (n, thread) in threads.iter().enumerate() {
        let mut owner = Owner::started_at(db, thread).await?;
        owner.save_steps(db, n as u64).await?;
        owners.push(owner);
    }
    for owner in &owners {
        let entries = db.entries(&owner.thread, Seq(0), 100).await?;
        ensure_eq!(entries, owner.entries(), "the entries of {}", owner.thread);
        let tenant = owner.thread.tenant().to_owned();
        let query = ThreadQuery {
            tenant: tenant.clone(),
            page: ALL,
            ..Default::default()
        };
        let listed = db.threads(&query).await?.len();
        let wanted = threads
            .iter()
            .filter(|thread| thread.tenant() == tenant)
            .count();
        ensure_eq!(listed, wanted, "threads of tenant `{tenant}`");
    }
    Ok(())
}

async fn nothing_or_refused<T>(
    rows: BoxFuture<'_, CheckpointResult<Vec<T>>>,
) -> Result<bool, Fault> {
    match rows.await {
        Ok(rows) => Ok(rows.is_empty()),
        Err(Query { .. }) => Ok(true),
        Err(other) => Err(other.into()),
    }
}
