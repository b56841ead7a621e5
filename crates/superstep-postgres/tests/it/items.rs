//! The long-term store.

use serde_json::{Value as Json, json};
use superstep_core::Timestamp;
use superstep_core::checkpoint::Page;
use superstep_core::store::{
    FilterOp, ItemFilter, Namespace, NamespaceQuery, PutItem, Search, Store, StoreError, Ttl,
};
use superstep_postgres::Postgres;

use crate::kit::db;

const NOW: Timestamp = Timestamp(1_000);

async fn put(db: &Postgres, namespace: &[&str], key: &str, value: Json, now: Timestamp) {
    let namespace = Namespace::new(namespace.iter().copied()).unwrap();
    db.put(
        &PutItem {
            namespace,
            key: key.into(),
            value,
            ttl: None,
        },
        now,
    )
    .await
    .unwrap();
}

async fn keys(db: &Postgres, search: &Search) -> Vec<String> {
    let items = db.search(search, NOW).await.unwrap();
    items.into_iter().map(|item| item.key).collect()
}

fn below(prefix: &[&str]) -> Search {
    Search {
        prefix: prefix.iter().map(|&segment| segment.into()).collect(),
        ..Search::default()
    }
}

#[tokio::test]
async fn a_prefix_matches_whole_segments_byte_for_byte() {
    let db = db().await;
    for namespace in [
        &["acme"][..],
        &["acme", "users"],
        &["acme-corp"],
        &["Acme"],
        &["%"],
        &["_cme"],
        &["acme users"],
        &["\u{10ffff}"],
    ] {
        put(&db, namespace, &namespace.join("/"), json!(1), NOW).await;
    }
    assert_eq!(keys(&db, &below(&["acme"])).await, ["acme", "acme/users"]);
    assert_eq!(keys(&db, &below(&["acme", "users"])).await, ["acme/users"]);
    assert_eq!(keys(&db, &below(&["%"])).await, ["%"]);
    assert_eq!(keys(&db, &below(&["_cme"])).await, ["_cme"]);
    assert_eq!(keys(&db, &below(&["Acme"])).await, ["Acme"]);
    assert_eq!(keys(&db, &below(&[])).await.len(), 8);
    for nothing in [
        &["acm"][..],
        &["ACME"],
        &["acme\u{1f}users"],
        &[""],
        &["acme", ""],
        &["*"],
    ] {
        assert!(keys(&db, &below(nothing)).await.is_empty(), "{nothing:?}");
    }
}

#[tokio::test]
async fn items_are_filtered_before_they_are_paged_newest_first() {
    let db = db().await;
    for n in 0..50 {
        put(
            &db,
            &["n"],
            &format!("k{n}"),
            json!({ "n": n, "even": n % 2 == 0 }),
            Timestamp(n),
        )
        .await;
    }
    let even = ItemFilter {
        field: "even".into(),
        op: FilterOp::Eq,
        value: json!(true),
    };
    let small = ItemFilter {
        field: "n".into(),
        op: FilterOp::Lt,
        value: json!(40),
    };
    let page = Page {
        limit: 2,
        offset: 1,
    };
    let search = Search {
        filters: vec![even, small],
        page,
        ..below(&["n"])
    };
    assert_eq!(keys(&db, &search).await, ["k36", "k34"]);
}

#[tokio::test]
async fn a_put_replaces_and_a_delete_says_if_it_was_there() {
    let db = db().await;
    let namespace = Namespace::new(["a"]).unwrap();
    put(&db, &["a"], "k", json!(1), Timestamp(1)).await;
    put(&db, &["a"], "k", json!({ "b": [2] }), Timestamp(2)).await;
    let item = db.get(&namespace, "k", NOW).await.unwrap().unwrap();
    assert_eq!(item.value, json!({ "b": [2] }));
    assert_eq!((item.created, item.updated), (Timestamp(1), Timestamp(2)));
    assert!(Store::delete(&db.postgres, &namespace, "k").await.unwrap());
    assert!(!Store::delete(&db.postgres, &namespace, "k").await.unwrap());
    assert_eq!(db.get(&namespace, "k", NOW).await.unwrap(), None);

    let null = PutItem {
        namespace,
        key: "k".into(),
        value: json!(null),
        ttl: None,
    };
    assert!(matches!(
        db.put(&null, NOW).await,
        Err(StoreError::NullValue { .. })
    ));
}

#[tokio::test]
async fn an_item_lives_as_long_as_it_was_given_and_is_read() {
    let db = db().await;
    let namespace = Namespace::new(["a"]).unwrap();
    for (key, refresh_on_read) in [("fixed", false), ("read", true)] {
        let ttl = Some(Ttl {
            ms: 100,
            refresh_on_read,
        });
        let (namespace, key) = (namespace.clone(), key.to_owned());
        db.put(
            &PutItem {
                namespace,
                key,
                value: json!(1),
                ttl,
            },
            Timestamp(0),
        )
        .await
        .unwrap();
    }
    let get = async |key, now| db.get(&namespace, key, Timestamp(now)).await.unwrap();
    assert_eq!(
        get("fixed", 99).await.unwrap().expires,
        Some(Timestamp(100))
    );
    assert_eq!(get("read", 99).await.unwrap().expires, Some(Timestamp(199)));
    assert_eq!(get("fixed", 100).await, None);
    // A clock that went back shortens nothing.
    assert_eq!(get("read", 10).await.unwrap().expires, Some(Timestamp(199)));

    let found = db.search(&below(&["a"]), Timestamp(100)).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(db.sweep(Timestamp(100), 10).await.unwrap(), 1);
    assert_eq!(db.sweep(Timestamp(100), 10).await.unwrap(), 0);
    assert!(get("read", 198).await.is_some());

    // What had expired is gone, so what takes its place is new.
    let put = PutItem {
        namespace: namespace.clone(),
        key: "read".into(),
        value: json!(2),
        ttl: None,
    };
    db.put(&put, Timestamp(9_000)).await.unwrap();
    let item = get("read", 9_000).await.unwrap();
    assert_eq!((item.created, item.expires), (Timestamp(9_000), None));
}

#[tokio::test]
async fn an_endless_ttl_does_not_overflow() {
    let db = db().await;
    let namespace = Namespace::new(["a"]).unwrap();
    let ttl = Some(Ttl {
        ms: u64::MAX,
        refresh_on_read: true,
    });
    let put = PutItem {
        namespace: namespace.clone(),
        key: "k".into(),
        value: json!(1),
        ttl,
    };
    db.put(&put, NOW).await.unwrap();
    let item = db.get(&namespace, "k", NOW).await.unwrap().unwrap();
    assert_eq!(item.expires, Some(Timestamp(i64::MAX)));
}

#[tokio::test]
async fn namespaces_are_listed_in_order_cut_and_without_repeats() {
    let db = db().await;
    for namespace in [
        &["b", "x"][..],
        &["a", "y", "1"],
        &["a", "y", "2"],
        &["a"],
        &["a-b", "x"],
    ] {
        put(&db, namespace, "k", json!(1), NOW).await;
        put(&db, namespace, "l", json!(1), NOW).await;
    }
    let list = async |query: NamespaceQuery| -> Vec<String> {
        let found = db.namespaces(&query, NOW).await.unwrap();
        found
            .iter()
            .map(|namespace| namespace.segments().join("/"))
            .collect()
    };
    let text = |segments: &[&str]| segments.iter().map(|&s| s.to_owned()).collect::<Vec<_>>();
    let all = NamespaceQuery::default();
    assert_eq!(
        list(all.clone()).await,
        ["a", "a/y/1", "a/y/2", "a-b/x", "b/x"]
    );
    let cut = NamespaceQuery {
        depth_max: Some(2),
        ..all.clone()
    };
    assert_eq!(list(cut.clone()).await, ["a", "a/y", "a-b/x", "b/x"]);
    let page = Page {
        limit: 2,
        offset: 1,
    };
    assert_eq!(list(NamespaceQuery { page, ..cut }).await, ["a/y", "a-b/x"]);
    let below = NamespaceQuery {
        prefix: text(&["a"]),
        ..all.clone()
    };
    assert_eq!(list(below).await, ["a", "a/y/1", "a/y/2"]);
    let any = NamespaceQuery {
        prefix: text(&["*", "y"]),
        ..all.clone()
    };
    assert_eq!(list(any).await, ["a/y/1", "a/y/2"]);
    assert_eq!(
        list(NamespaceQuery {
            suffix: text(&["x"]),
            ..all
        })
        .await,
        ["a-b/x", "b/x"]
    );
}
