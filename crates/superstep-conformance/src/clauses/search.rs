//! Search by what is in a thread, while that changes, and where it is much or odd.

use serde_json::{Map, Value as Json, json};
use superstep_core::checkpoint::{Checkpointer, Commit, Listing, Status, ThreadQuery};

use super::list::{by_metadata, by_values, filter, names, started_with};
use crate::report::{Verdict, ensure, ensure_eq};
use crate::sample::listing;

pub(super) async fn search_follows_the_values(db: &dyn Checkpointer) -> Verdict {
    let mut owner = started_with(db, "t", json!({ "user": "ann" }), json!({ "n": 1 })).await?;
    let changed = Listing {
        metadata: None,
        ..listing("graph", json!(null), json!({ "n": 2 }))
    };
    let stop = Commit {
        listing: Some(changed),
        ..owner.stop(Status::Failed)
    };
    owner.save(db, stop).await?;
    let of = |n: u64| by_values(vec![filter("n", &json!(n))]);
    ensure!(
        names(db, of(1)).await?.is_empty(),
        "a thread is found by what it was"
    );
    ensure_eq!(names(db, of(2)).await?, ["t"], "the threads by what is new");
    let ann = by_metadata(vec![filter("user", &json!("ann"))]);
    ensure_eq!(
        names(db, ann).await?,
        ["t"],
        "the threads by metadata that were not given again"
    );
    Ok(())
}

pub(super) async fn search_follows_a_status_without_a_listing(db: &dyn Checkpointer) -> Verdict {
    let mut owner = started_with(db, "t", json!({}), json!({})).await?;
    for status in [Status::Failed, Status::Idle] {
        let stop = Commit {
            listing: None,
            ..owner.stop(status)
        };
        let former = of_status(owner.head.status);
        owner.save(db, stop).await?;
        ensure_eq!(
            names(db, of_status(status)).await?,
            ["t"],
            "the threads that are {status:?}"
        );
        ensure!(
            names(db, former).await?.is_empty(),
            "a thread is found by the status it had before {status:?}"
        );
    }
    Ok(())
}

pub(super) async fn deleted_thread_is_found_by_nothing(db: &dyn Checkpointer) -> Verdict {
    let owner = started_with(db, "t", json!({ "user": "ann" }), json!({ "n": 1 })).await?;
    db.delete(&owner.thread).await?;
    for query in [
        by_values(vec![filter("n", &json!(1))]),
        by_metadata(vec![filter("user", &json!("ann"))]),
        of_status(Status::Running),
        of_status(Status::Deleted),
    ] {
        let found = names(db, query.clone()).await?;
        ensure!(found.is_empty(), "{query:?} finds a deleted thread");
    }
    Ok(())
}

pub(super) async fn many_fields_are_all_found(db: &dyn Checkpointer) -> Verdict {
    let many: Map<String, Json> = (0..200).map(|n| (format!("f{n:03}"), json!(n))).collect();
    let many = Json::Object(many);
    started_with(db, "many", many.clone(), many).await?;
    let last = json!({ "f199": 199 });
    started_with(db, "one", last.clone(), last).await?;
    for (n, wanted) in [
        (0, &["many"] as &[&str]),
        (100, &["many"]),
        (199, &["many", "one"]),
    ] {
        for by in [by_metadata, by_values] {
            let query = by(vec![filter(&format!("f{n:03}"), &json!(n))]);
            ensure_eq!(names(db, query).await?, wanted, "the threads by field {n}");
        }
    }
    Ok(())
}

pub(super) async fn empty_texts_and_nul_are_only_texts(db: &dyn Checkpointer) -> Verdict {
    let texts = ["", "\0", "\0a", "a\0", "a\u{1f}b", "\\u0000"];
    for (n, text) in texts.iter().enumerate() {
        let fields = json!({ *text: text, "x": text });
        started_with(db, &format!("t{n}"), fields.clone(), fields).await?;
    }
    for (n, text) in texts.iter().enumerate() {
        for (by, field) in [
            (by_metadata as fn(_) -> _, *text),
            (by_metadata, "x"),
            (by_values, *text),
            (by_values, "x"),
        ] {
            let found = names(db, by(vec![filter(field, &json!(text))])).await?;
            ensure_eq!(
                found,
                [format!("t{n}")],
                "the threads where {field:?} is {text:?}"
            );
        }
        let query = ThreadQuery {
            graph: Some((*text).to_owned()),
            ..ThreadQuery::default()
        };
        let found = names(db, query).await?;
        ensure!(found.is_empty(), "{found:?} are of a graph named {text:?}");
    }
    Ok(())
}

fn of_status(status: Status) -> ThreadQuery {
    ThreadQuery {
        statuses: vec![status],
        ..ThreadQuery::default()
    }
}
