//! The list of threads and search by content.

use serde_json::{Map, Value as Json, json};
use superstep_core::Timestamp;
use superstep_core::checkpoint::{
    Checkpointer, Commit, Filter, FilterValue, Listing, Page, Status, ThreadQuery,
};
use superstep_postgres::Postgres;

use crate::kit::{Owner, db, listing, thread};

async fn list(db: &Postgres, name: &str, at: i64, metadata: Json, values: Json) -> Owner {
    let mut owner = Owner::new(thread(name));
    owner.at = Timestamp(at);
    let listing = Some(listing(metadata, values));
    owner
        .save(
            db,
            Commit {
                listing,
                ..owner.start()
            },
        )
        .await
        .unwrap();
    owner
}

async fn names(db: &Postgres, query: &ThreadQuery) -> Vec<String> {
    let rows = db.threads(query).await.unwrap();
    rows.iter().map(|row| row.thread.to_string()).collect()
}

fn is(field: &str, value: Json) -> Vec<Filter> {
    vec![Filter {
        field: field.into(),
        equals: FilterValue::of(&value).unwrap(),
    }]
}

#[tokio::test]
async fn threads_are_found_by_what_is_in_them() {
    let db = db().await;
    list(
        &db,
        "a",
        1,
        json!({ "user": "eva" }),
        json!({ "n": 1, "ok": true }),
    )
    .await;
    list(
        &db,
        "b",
        2,
        json!({ "user": "bob" }),
        json!({ "n": 1, "ok": null }),
    )
    .await;
    list(
        &db,
        "c",
        3,
        json!({ "user": "eva" }),
        json!({ "n": "1", "ok": [1] }),
    )
    .await;
    list(
        &db,
        "acme/a",
        4,
        json!({ "user": "eva" }),
        json!({ "n": 1 }),
    )
    .await;

    let all = ThreadQuery::default();
    let of = |values| ThreadQuery {
        values,
        ..ThreadQuery::default()
    };
    assert_eq!(names(&db, &all).await, ["c", "b", "a"]);
    assert_eq!(names(&db, &of(is("n", json!(1)))).await, ["b", "a"]);
    assert_eq!(names(&db, &of(is("n", json!("1")))).await, ["c"]);
    assert_eq!(
        names(&db, &of(is("n", json!(1.0)))).await,
        Vec::<String>::new()
    );
    assert_eq!(names(&db, &of(is("ok", json!(null)))).await, ["b"]);
    let both = ThreadQuery {
        metadata: is("user", json!("eva")),
        ..of(is("n", json!(1)))
    };
    assert_eq!(names(&db, &both).await, ["a"]);
    // A field of the state is not one of the metadata.
    assert!(names(&db, &of(is("user", json!("eva")))).await.is_empty());
    let acme = ThreadQuery {
        tenant: "acme".into(),
        ..both
    };
    assert_eq!(names(&db, &acme).await, ["acme/a"]);
    assert!(
        names(
            &db,
            &ThreadQuery {
                tenant: "acm".into(),
                ..all
            }
        )
        .await
        .is_empty()
    );
}

#[tokio::test]
async fn hostile_text_is_only_text() {
    let db = db().await;
    let hostile = [
        "'; DROP TABLE thread; --",
        "%",
        "_",
        "\" OR 1=1",
        "\0",
        "a\u{1f}b",
        "💥",
        "\\u0000",
        "?1",
        "",
    ];
    for (n, text) in hostile.iter().enumerate() {
        let fields = json!({ *text: text, "x": text });
        list(&db, &format!("t{n}"), n as i64, fields.clone(), fields).await;
    }
    for (n, text) in hostile.iter().enumerate() {
        let found = [format!("t{n}")];
        let by = |field| is(field, json!(text));
        for filters in [by("x"), by(text)] {
            let query = ThreadQuery {
                values: filters.clone(),
                ..ThreadQuery::default()
            };
            assert_eq!(names(&db, &query).await, found);
            let query = ThreadQuery {
                metadata: filters,
                ..ThreadQuery::default()
            };
            assert_eq!(names(&db, &query).await, found);
        }
        let query = ThreadQuery {
            graph: Some((*text).into()),
            ..ThreadQuery::default()
        };
        assert!(names(&db, &query).await.is_empty());
    }
}

#[tokio::test]
async fn search_follows_changes() {
    let db = db().await;
    let mut owner = list(&db, "a", 1, json!({ "user": "eva" }), json!({ "n": 1 })).await;
    let changed = Listing {
        metadata: None,
        ..listing(json!({}), json!({ "n": 2 }))
    };
    let stop = Commit {
        listing: Some(changed),
        ..owner.stop(Status::Failed)
    };
    owner.save(&db, stop).await.unwrap();

    let values = |n: u64| ThreadQuery {
        values: is("n", json!(n)),
        ..ThreadQuery::default()
    };
    let status = |status| ThreadQuery {
        status: Some(status),
        ..ThreadQuery::default()
    };
    assert!(names(&db, &values(1)).await.is_empty());
    assert_eq!(names(&db, &values(2)).await, ["a"]);
    assert!(names(&db, &status(Status::Running)).await.is_empty());
    assert_eq!(names(&db, &status(Status::Failed)).await, ["a"]);
    let user = ThreadQuery {
        metadata: is("user", json!("eva")),
        ..ThreadQuery::default()
    };
    assert_eq!(names(&db, &user).await, ["a"]);

    // A status that changes without a new line is found all the same.
    let stop = Commit {
        listing: None,
        ..owner.stop(Status::Idle)
    };
    owner.save(&db, stop).await.unwrap();
    assert_eq!(names(&db, &status(Status::Idle)).await, ["a"]);
    db.delete(&owner.thread).await.unwrap();
    for query in [
        values(2),
        status(Status::Idle),
        status(Status::Deleted),
        user,
    ] {
        assert!(names(&db, &query).await.is_empty());
    }
    assert_eq!(count(&db, "term").await + count(&db, "listing").await, 0);
}

async fn count(db: &crate::kit::Db, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    let client = db.schema.client().await;
    client.query_one(&sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_hash_that_collides_finds_nothing_wrong() {
    let db = db().await;
    list(&db, "a", 1, json!({}), json!({ "n": 1 })).await;
    list(&db, "b", 2, json!({}), json!({ "n": 2 })).await;
    // Every thread has every term: the worst that collisions can do.
    let sql = "INSERT INTO term SELECT a.term, b.thread FROM term a, term b ON CONFLICT DO NOTHING";
    let client = db.schema.client().await;
    client.batch_execute(sql).await.unwrap();
    let query = ThreadQuery {
        values: is("n", json!(1)),
        ..ThreadQuery::default()
    };
    assert_eq!(names(&db, &query).await, ["a"]);
}

#[tokio::test]
async fn more_fields_than_terms_are_still_found() {
    let db = db().await;
    let many: Map<String, Json> = (0..200).map(|n| (format!("f{n:03}"), json!(n))).collect();
    list(&db, "many", 1, json!({}), Json::Object(many)).await;
    list(&db, "few", 2, json!({}), json!({ "f199": 199 })).await;
    let by = |n: u64| ThreadQuery {
        values: is(&format!("f{n:03}"), json!(n)),
        ..ThreadQuery::default()
    };
    assert_eq!(names(&db, &by(0)).await, ["many"]);
    assert_eq!(names(&db, &by(199)).await, ["few", "many"]);
    assert!(count(&db, "term").await < 80);
}

#[tokio::test]
async fn a_common_value_is_paged_from_the_newest_on() {
    let db = db().await;
    let mut saves = tokio::task::JoinSet::new();
    for n in 0..1_500_i64 {
        let postgres = db.postgres.clone();
        saves.spawn(async move {
            let values = json!({ "common": true, "third": n % 3 });
            list(&postgres, &format!("t{n:04}"), n, json!({}), values).await;
        });
    }
    saves.join_all().await;
    let query = |page| ThreadQuery {
        values: is("common", json!(true)),
        page,
        ..ThreadQuery::default()
    };
    let page = names(
        &db,
        &query(Page {
            limit: 2,
            offset: 1_000,
        }),
    )
    .await;
    assert_eq!(page, ["t0499", "t0498"]);
    let rare = ThreadQuery {
        values: is("third", json!(1)),
        ..query(Page {
            limit: 2,
            offset: 1,
        })
    };
    assert_eq!(names(&db, &rare).await, ["t1495", "t1492"]);
    assert_eq!(
        names(
            &db,
            &query(Page {
                limit: 5_000,
                offset: 0
            })
        )
        .await
        .len(),
        1_000
    );
    assert!(
        names(
            &db,
            &query(Page {
                limit: 0,
                offset: 0
            })
        )
        .await
        .is_empty()
    );
}
