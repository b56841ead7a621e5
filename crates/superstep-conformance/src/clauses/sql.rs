//! What our stores in SQL databases share beside the rules of the traits: an index that may be wrong, and what things cost.

use serde_json::{Map, Value as Json, json};
use superstep_core::checkpoint::{AskedRow, Checkpointer, Commit, Page, Status, ThreadQuery};
use superstep_core::error::CheckpointError::NoThread;
use superstep_core::store::{FilterOp, ItemFilter, Namespace, PutItem, Search, StoreError};
use superstep_core::{InterruptId, Seq, Timestamp};

use super::list::{by_values, filter, names, started_with};
use crate::poll::join_all;
use crate::report::{Fault, Verdict, ensure, ensure_eq, ensure_refused};
use crate::sample::{Owner, answer, asked, listing, thread};
use crate::sql::Database;

pub(super) async fn answer_to_no_thread_says_so(db: &dyn Database) -> Verdict {
    let told = db
        .store()
        .answer(&thread("gone"), &[answer(1, json!(1))])
        .await;
    ensure_refused!(told, NoThread { .. }, "an answer to no thread");
    Ok(())
}

pub(super) async fn deleted_thread_leaves_no_rows(db: &dyn Database) -> Verdict {
    let owner = started_with(db.store(), "t", json!({ "user": "ann" }), json!({ "n": 1 })).await?;
    db.store().delete(&owner.thread).await?;
    for table in ["term", db.listing_table()] {
        ensure_eq!(db.rows(table).await, 0, "rows of `{table}`");
    }
    Ok(())
}

pub(super) async fn colliding_terms_find_nothing_wrong(db: &dyn Database) -> Verdict {
    started_with(db.store(), "a", json!({}), json!({ "n": 1 })).await?;
    started_with(db.store(), "b", json!({}), json!({ "n": 2 })).await?;
    // Every thread has every term: the worst that collisions can do. The condition is for SQLite, which would take what
    // follows for one of a join.
    let collide = "INSERT INTO term SELECT a.term, b.thread FROM term a, term b WHERE true \
                   ON CONFLICT DO NOTHING";
    db.execute(collide).await;
    let found = names(db.store(), by_values(vec![filter("n", &json!(1))])).await?;
    ensure_eq!(found, ["a"], "the threads by a value whose term all have");
    Ok(())
}

pub(super) async fn many_fields_make_few_terms(db: &dyn Database) -> Verdict {
    let many: Map<String, Json> = (0..200).map(|n| (format!("f{n:03}"), json!(n))).collect();
    started_with(db.store(), "many", json!({}), Json::Object(many)).await?;
    let terms = db.rows("term").await;
    ensure!(terms < 80, "200 fields made {terms} terms");
    Ok(())
}

pub(super) async fn common_value_is_paged_from_the_newest_on(db: &dyn Database) -> Verdict {
    let store = db.store();
    let threads = join_all((0..1_500).map(|n| common(store, n))).await;
    for started in threads {
        started?;
    }
    let page = |limit, offset| ThreadQuery {
        page: Page { limit, offset },
        ..by_values(vec![filter("common", &json!(true))])
    };
    ensure_eq!(
        names(store, page(2, 1_000)).await?,
        ["t0499", "t0498"],
        "a late page of what all have"
    );
    let third = ThreadQuery {
        values: vec![filter("third", &json!(1))],
        ..page(2, 1)
    };
    ensure_eq!(
        names(store, third).await?,
        ["t1495", "t1492"],
        "a page of what a third has"
    );
    let most = names(store, page(5_000, 0)).await?;
    ensure_eq!(most.len(), 1_001, "threads of the largest page");
    let none = names(store, page(0, 0)).await?;
    ensure!(none.is_empty(), "a page of none has {}", none.len());
    Ok(())
}

/// Neither loaded nor left out: every way of reading it names it. The item next to it is as it was, and a caller that deletes and
/// writes the damaged one has a sound one again.
pub(super) async fn item_with_a_flipped_byte_is_not_loaded(db: &dyn Database) -> Verdict {
    let items = db.items();
    let now = Timestamp(1_000);
    let namespace = Namespace::new(["acme", "apis"])?;
    let item = |key: &str| PutItem {
        namespace: namespace.clone(),
        key: key.to_owned(),
        value: json!({ "origin": "https://api.example", "n": 1 }),
        ttl: None,
    };
    for key in ["damaged", "sound"] {
        items.put(&item(key), now).await?;
    }
    db.flip_byte_of_item("damaged").await;

    let named = |error: &StoreError| {
        matches!(error, StoreError::Damaged { namespace, key }
            if namespace == &["acme", "apis"] && key == "damaged")
    };
    let got = items.get(&namespace, "damaged", now).await;
    ensure!(got.as_ref().is_err_and(named), "a get gave {got:?}");
    let everything = Search::default();
    let filtered = Search {
        filters: vec![ItemFilter {
            field: "n".to_owned(),
            op: FilterOp::Eq,
            value: json!(1),
        }],
        ..Search::default()
    };
    for search in [everything, filtered] {
        let found = items.search(&search, now).await;
        ensure!(found.as_ref().is_err_and(named), "a search gave {found:?}");
    }
    let seen = item("damaged").value;
    let stored = items.put_if(Some(&seen), &item("damaged"), now).await;
    ensure!(
        !matches!(stored, Ok(true)),
        "a damaged item was taken for the one that was seen"
    );
    let sound = items.get(&namespace, "sound", now).await?;
    ensure!(sound.is_some(), "the item next to it is gone");
    items.delete(&namespace, "damaged").await?;
    items.put(&item("damaged"), now).await?;
    let found = items.search(&Search::default(), now).await?;
    ensure_eq!(
        found.len(),
        2,
        "items after the damaged one was written again"
    );
    Ok(())
}

async fn common(store: &dyn Checkpointer, n: i64) -> Result<(), Fault> {
    let mut owner = Owner::new(&thread(&format!("t{n:04}")));
    owner.at = Timestamp(n);
    let values = json!({ "common": true, "third": n % 3 });
    let start = Commit {
        listing: Some(listing("graph", json!({}), values)),
        ..owner.start()
    };
    owner.save(store, start).await?;
    Ok(())
}

/// A state of 300 bytes, an input of 420, a stop of 60, a question of 200, six terms.
pub(super) async fn parked_thread_is_small(db: &dyn Database) -> Verdict {
    const THREADS: u64 = 2_000;
    let empty = db.bytes().await;
    let mut owners = Vec::new();
    for n in 0..THREADS {
        owners.push(begun(db.store(), n).await?);
    }
    // All are started before the first is parked, so that their rows are far apart.
    for (n, owner) in (0..).zip(&mut owners) {
        park(db.store(), owner, n).await?;
    }
    let each = (db.bytes().await - empty) / THREADS;
    let most = db.costs().parked_thread;
    ensure!(
        each <= most,
        "a paused thread costs {each} bytes, {most} at most"
    );
    Ok(())
}

pub(super) async fn long_thread_costs_about_its_entries(db: &dyn Database) -> Verdict {
    let mut owner = Owner::started(db.store(), "t").await?;
    let empty = db.bytes().await;
    for _ in 0..400 {
        let commit = Commit {
            entry: Some(vec![7; 270]),
            ..owner.step()
        };
        owner.save(db.store(), commit).await?;
    }
    let grown = db.bytes().await - empty;
    let most = db.costs().entries_of_108_000_bytes;
    ensure!(
        grown < most,
        "108,000 bytes of entries cost {grown}, {most} at most"
    );
    let entries = db.store().entries(&owner.thread, Seq(1), 1_000).await?;
    ensure_eq!(entries.len(), 400, "entries");
    Ok(())
}

async fn begun(store: &dyn Checkpointer, n: u64) -> Result<Owner, Fault> {
    // Names come in no order, as random ids do.
    let hash = u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834);
    let mut owner = Owner::new(&thread(&format!("{hash:036x}")));
    let start = Commit {
        entry: Some(vec![1; 420]),
        listing: Some(listing("graph", user(n), state(n))),
        ..owner.start()
    };
    owner.save(store, start).await?;
    Ok(owner)
}

async fn park(store: &dyn Checkpointer, owner: &mut Owner, n: u64) -> Result<(), Fault> {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    let stop = owner.stop(Status::Paused);
    let asked = AskedRow {
        id: InterruptId::from_bytes(id),
        body: vec![3; 200],
        ..asked(&owner.thread, stop.head.seq, 1)
    };
    let stop = Commit {
        entry: Some(vec![2; 60]),
        asked: vec![asked],
        listing: Some(listing("graph", user(n), state(n))),
        ..stop
    };
    owner.save(store, stop).await?;
    Ok(())
}

fn user(n: u64) -> Json {
    json!({ "user": format!("user-{n}") })
}

fn state(n: u64) -> Json {
    json!({
        "topic": format!("topic {n}"),
        "count": n,
        "done": false,
        "messages": [{ "id": n, "role": "user", "text": "x".repeat(200) }],
    })
}
