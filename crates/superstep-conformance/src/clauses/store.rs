//! The long-term store: items, lifetimes, search, namespaces.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use superstep_core::Timestamp;
use superstep_core::checkpoint::Page;
use superstep_core::store::{
    FilterOp, Item, ItemFilter, KEY_BYTES_MAX, Namespace, NamespaceQuery, PutItem, Search, Store,
    StoreError, Ttl,
};

use super::security::hostile_texts;
use crate::poll::join_all;
use crate::prng::Prng;
use crate::report::{Fault, Verdict, ensure, ensure_eq, ensure_refused};
use crate::sample::ALL;

pub(super) async fn missing_item_is_none(db: &dyn Store) -> Verdict {
    db.put(&put(&["a"], "key", json!(1)), NOW).await?;
    for (namespace, key) in [
        (ns(&["a"]), "other"),
        (ns(&["b"]), "key"),
        (ns(&["a", "b"]), "key"),
    ] {
        let found = db.get(&namespace, key, NOW).await?;
        ensure_eq!(found, None, "the item {key} of {namespace:?}");
    }
    Ok(())
}

pub(super) async fn put_then_get(db: &dyn Store) -> Verdict {
    let value = json!({ "likes": ["tea", { "with": "milk" }], "n": 1.5 });
    db.put(&put(&["users", "ann"], "drinks", value.clone()), NOW)
        .await?;
    let wanted = Item {
        namespace: ns(&["users", "ann"]),
        key: "drinks".into(),
        value,
        created: NOW,
        updated: NOW,
        expires: None,
    };
    let found = db.get(&wanted.namespace, "drinks", later(1)).await?;
    ensure_eq!(found, Some(wanted), "the item that was stored");
    Ok(())
}

pub(super) async fn put_replaces_and_keeps_created(db: &dyn Store) -> Verdict {
    db.put(&put(&["a"], "key", json!({ "old": 1, "same": 1 })), NOW)
        .await?;
    db.put(&put(&["a"], "key", json!({ "same": 2 })), later(500))
        .await?;
    let item = stored(db, &["a"], "key", later(500)).await?;
    ensure_eq!(
        item.value,
        json!({ "same": 2 }),
        "the value after it was replaced"
    );
    ensure_eq!(
        (item.created, item.updated),
        (NOW, later(500)),
        "created and updated"
    );
    ensure_eq!(
        searched(db, Search::default(), later(500)).await?.len(),
        1,
        "items"
    );
    Ok(())
}

pub(super) async fn put_without_ttl_lives_on(db: &dyn Store) -> Verdict {
    db.put(&put_for(&["a"], "key", json!(1), 100), NOW).await?;
    db.put(&put(&["a"], "key", json!(2)), later(50)).await?;
    let item = stored(db, &["a"], "key", later(1_000_000)).await?;
    ensure_eq!(
        (item.value, item.expires),
        (json!(2), None),
        "an item whose lifetime was lifted"
    );
    Ok(())
}

pub(super) async fn delete_says_whether_it_was_there(db: &dyn Store) -> Verdict {
    db.put(&put(&["a"], "key", json!(1)), NOW).await?;
    db.put(&put(&["a"], "other", json!(1)), NOW).await?;
    ensure!(
        !db.delete(&ns(&["a"]), "missing").await?,
        "a missing item was deleted"
    );
    ensure!(
        db.delete(&ns(&["a"]), "key").await?,
        "an item was not there"
    );
    ensure!(
        !db.delete(&ns(&["a"]), "key").await?,
        "an item was deleted twice"
    );
    ensure_eq!(
        db.get(&ns(&["a"]), "key", NOW).await?,
        None,
        "the deleted item"
    );
    ensure_eq!(
        keys(db, Search::default()).await?,
        ["other"],
        "the items that are left"
    );
    db.put(&put(&["a"], "key", json!(2)), later(9)).await?;
    let item = stored(db, &["a"], "key", later(9)).await?;
    ensure_eq!(
        item.created,
        later(9),
        "when an item was made that was deleted before"
    );
    Ok(())
}

pub(super) async fn namespaces_hold_their_own_keys(db: &dyn Store) -> Verdict {
    let namespaces: [&[&str]; 6] = [&["a"], &["a", "b"], &["a/b"], &["a,b"], &["b", "a"], &["A"]];
    for (n, namespace) in namespaces.iter().enumerate() {
        db.put(&put(namespace, "key", json!(n)), NOW).await?;
    }
    for (n, namespace) in namespaces.iter().enumerate() {
        let value = stored(db, namespace, "key", NOW).await?.value;
        ensure_eq!(value, json!(n), "the item of {namespace:?}");
    }
    db.delete(&ns(&["a"]), "key").await?;
    ensure_eq!(
        keys(db, Search::default()).await?.len(),
        5,
        "items after one was deleted"
    );
    Ok(())
}

/// The same namespace and key in several tenants, one of whose names begins with another.
pub(super) async fn tenants_have_their_own_items(db: &dyn Store) -> Verdict {
    for tenant in TENANTS {
        db.put(&put_of(tenant, &["a"], "key", json!(tenant)), NOW)
            .await?;
    }
    for tenant in TENANTS {
        let found = db.get(&ns_of(tenant, &["a"]), "key", NOW).await?;
        let found = found.ok_or_else(|| Fault::new(format!("no item of tenant `{tenant}`")))?;
        ensure_eq!(found.value, json!(tenant), "the item of tenant `{tenant}`");
        ensure_eq!(found.namespace.tenant(), tenant, "the tenant of an item");
    }
    let other = put_of("acme", &["a"], "key", json!("changed"));
    ensure!(
        !db.put_if(Some(&json!("acme-corp")), &other, NOW).await?,
        "an item was compared with that of another tenant"
    );
    ensure!(
        db.put_if(Some(&json!("acme")), &other, NOW).await?,
        "an item of a tenant was not replaced"
    );
    ensure!(
        db.delete(&ns_of("acme", &["a"]), "key").await?,
        "an item of a tenant was not there"
    );
    for tenant in TENANTS {
        let found = db.get(&ns_of(tenant, &["a"]), "key", NOW).await?;
        ensure_eq!(
            found.map(|item| item.value),
            (tenant != "acme").then(|| json!(tenant)),
            "the item of tenant `{tenant}` after one of `acme` was deleted"
        );
    }
    Ok(())
}

pub(super) async fn tenants_have_their_own_lists(db: &dyn Store) -> Verdict {
    for tenant in TENANTS {
        db.put(
            &put_of(tenant, &["a", "b"], tenant_key(tenant), json!({ "n": 1 })),
            NOW,
        )
        .await?;
    }
    let filters = [ItemFilter {
        field: "n".into(),
        op: FilterOp::Eq,
        value: json!(1),
    }];
    for tenant in TENANTS {
        for (prefix, filters) in [
            (Vec::new(), Vec::new()),
            (Vec::new(), filters.to_vec()),
            (vec!["a".to_owned()], Vec::new()),
            (vec!["a".to_owned()], filters.to_vec()),
        ] {
            let search = Search {
                tenant: tenant.to_owned(),
                prefix: prefix.clone(),
                filters,
                page: ALL,
            };
            ensure_eq!(
                keys(db, search).await?,
                [tenant_key(tenant)],
                "the items of tenant `{tenant}` below {prefix:?}"
            );
            let query = NamespaceQuery {
                tenant: tenant.to_owned(),
                prefix,
                page: ALL,
                ..NamespaceQuery::default()
            };
            ensure_eq!(
                namespaces(db, query, NOW).await?,
                [ns_of(tenant, &["a", "b"])],
                "the namespaces of tenant `{tenant}`"
            );
        }
    }
    Ok(())
}

/// Prefixes and tenants that a store could take for its own marks of tenants.
pub(super) async fn hostile_prefixes_stay_in_their_tenant(db: &dyn Store) -> Verdict {
    db.put(&put_of("acme", &["a"], "secret", json!(1)), NOW)
        .await?;
    for mark in ('\0'..='\u{20}').chain(['/', '@', ':', '\u{7f}', '\u{9f}']) {
        for end in ["", "\u{1f}", "/", "\0"] {
            let hostile = format!("{mark}acme{end}");
            for (tenant, prefix) in [
                ("", vec![hostile.clone()]),
                ("", vec![hostile.clone(), "a".to_owned()]),
                ("other", vec![hostile.clone()]),
                (&*hostile, Vec::new()),
                (&*hostile, vec!["a".to_owned()]),
                ("", vec![mark.to_string(), "acme".to_owned()]),
            ] {
                let search = Search {
                    tenant: tenant.to_owned(),
                    prefix: prefix.clone(),
                    page: ALL,
                    ..Search::default()
                };
                ensure_eq!(
                    keys(db, search).await?.len(),
                    0,
                    "items of another tenant, found by tenant {tenant:?} below {prefix:?}"
                );
                let query = NamespaceQuery {
                    tenant: tenant.to_owned(),
                    prefix: prefix.clone(),
                    page: ALL,
                    ..NamespaceQuery::default()
                };
                ensure_eq!(
                    namespaces(db, query, NOW).await?.len(),
                    0,
                    "namespaces of another tenant, found by tenant {tenant:?} below {prefix:?}"
                );
            }
            ensure!(
                Namespace::of_tenant(&hostile, ["a"]).is_err(),
                "{hostile:?} was taken for a tenant"
            );
        }
    }
    Ok(())
}

pub(super) async fn every_json_value_but_null(db: &dyn Store) -> Verdict {
    let values = [
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
        json!("x".repeat(1 << 18)),
    ];
    for (n, value) in values.iter().enumerate() {
        db.put(&put(&["a"], &format!("key{n}"), value.clone()), NOW)
            .await?;
        let found = stored(db, &["a"], &format!("key{n}"), NOW).await?.value;
        ensure_eq!(found, *value, "the value that was stored");
    }
    Ok(())
}

pub(super) async fn limits_are_enforced(db: &dyn Store) -> Verdict {
    let long = "k".repeat(KEY_BYTES_MAX + 1);
    for key in ["", long.as_str()] {
        let result = db.put(&put(&["a"], key, json!(1)), NOW).await;
        ensure_refused!(
            result,
            StoreError::Key { .. },
            "a key of {} bytes",
            key.len()
        );
    }
    let result = db.put(&put(&["a"], "key", Json::Null), NOW).await;
    ensure_refused!(result, StoreError::NullValue { .. }, "a null");
    ensure_eq!(
        keys(db, Search::default()).await?,
        [""; 0],
        "what was refused and yet stored"
    );

    let segment = "s".repeat(Namespace::SEGMENT_BYTES_MAX);
    let deepest = vec![segment.as_str(); Namespace::SEGMENTS_MAX];
    db.put(&put(&deepest, &long[1..], json!(1)), NOW).await?;
    stored(db, &deepest, &long[1..], NOW).await?;
    Ok(())
}

pub(super) async fn hostile_keys_are_only_keys(db: &dyn Store) -> Verdict {
    let texts = hostile_texts();
    let allowed = |text: &str| Namespace::new(["ns", text]).is_ok();
    for text in &texts {
        db.put(&put(&["keys"], text, json!(text)), NOW).await?;
        if allowed(text) {
            db.put(&put(&["ns", text], "key", json!(text)), NOW).await?;
        }
    }
    for text in &texts {
        let value = stored(db, &["keys"], text, NOW).await?.value;
        ensure_eq!(value, json!(text), "the item under {text:?}");
        if allowed(text) {
            let prefix = vec!["ns".to_owned(), text.clone()];
            let found = searched(
                db,
                Search {
                    prefix,
                    ..Search::default()
                },
                NOW,
            )
            .await?;
            let values: Vec<_> = found.into_iter().map(|item| item.value).collect();
            ensure_eq!(values, [json!(text)], "the items below {text:?}");
        }
    }
    for text in &texts {
        ensure!(
            db.delete(&ns(&["keys"]), text).await?,
            "the item under {text:?} is not there"
        );
    }
    let left = searched(db, below(&["keys"]), NOW).await?;
    ensure_eq!(left, vec![], "the items after all were deleted");
    Ok(())
}

pub(super) async fn expired_items_are_not_found(db: &dyn Store) -> Verdict {
    db.put(&put_for(&["short"], "key", json!(1), 100), NOW)
        .await?;
    db.put(&put(&["long"], "key", json!(1)), NOW).await?;
    for (ms, alive) in [
        (0, true),
        (99, true),
        (100, false),
        (101, false),
        (1 << 40, false),
    ] {
        let now = later(ms);
        let found = db.get(&ns(&["short"]), "key", now).await?;
        ensure_eq!(found.is_some(), alive, "whether get finds it after {ms} ms");
        let found = searched(db, below(&["short"]), now).await?;
        ensure_eq!(
            !found.is_empty(),
            alive,
            "whether search finds it after {ms} ms"
        );
        let found = namespaces(db, NamespaceQuery::default(), now).await?;
        let found = found.contains(&ns(&["short"]));
        ensure_eq!(
            found,
            alive,
            "whether its namespace is listed after {ms} ms"
        );
    }
    let item = stored(db, &["short"], "key", NOW).await?;
    ensure_eq!(item.expires, Some(later(100)), "when it goes");
    Ok(())
}

pub(super) async fn expired_item_is_made_anew(db: &dyn Store) -> Verdict {
    db.put(&put_for(&["a"], "key", json!(1), 100), NOW).await?;
    db.put(&put(&["a"], "key", json!(2)), later(200)).await?;
    let item = stored(db, &["a"], "key", later(200)).await?;
    ensure_eq!(
        (item.created, item.updated),
        (later(200), later(200)),
        "created and updated"
    );
    Ok(())
}

pub(super) async fn read_prolongs_only_if_asked(db: &dyn Store) -> Verdict {
    let ttl = Some(Ttl {
        ms: 100,
        refresh_on_read: true,
    });
    db.put(
        &PutItem {
            ttl,
            ..put(&["a"], "kept", json!(1))
        },
        NOW,
    )
    .await?;
    db.put(&put_for(&["a"], "plain", json!(1), 100), NOW)
        .await?;
    for ms in [60, 120, 180] {
        let item = stored(db, &["a"], "kept", later(ms)).await?;
        ensure_eq!(
            (item.created, item.updated),
            (NOW, NOW),
            "created and updated after a read"
        );
    }
    stored(db, &["a"], "plain", later(60)).await?;
    let found = db.get(&ns(&["a"]), "plain", later(120)).await?;
    ensure_eq!(found, None, "an item that reads do not prolong");
    let found = db.get(&ns(&["a"]), "kept", later(280)).await?;
    ensure_eq!(found, None, "an item that was last read too long ago");
    Ok(())
}

pub(super) async fn read_never_shortens_a_life(db: &dyn Store) -> Verdict {
    let ttl = Some(Ttl {
        ms: 100,
        refresh_on_read: true,
    });
    let kept = PutItem {
        ttl,
        ..put(&["a"], "key", json!(1))
    };
    db.put(&kept, NOW).await?;
    // The last clock went back.
    for ms in [99, 10] {
        let item = stored(db, &["a"], "key", later(ms)).await?;
        ensure_eq!(
            item.expires,
            Some(later(199)),
            "when it goes, read after {ms} ms"
        );
    }
    ensure_eq!(
        db.sweep(later(198), 10).await?,
        0,
        "items swept that a read has prolonged"
    );
    stored(db, &["a"], "key", later(198)).await?;
    Ok(())
}

pub(super) async fn endless_life_does_not_overflow(db: &dyn Store) -> Verdict {
    let ttl = Some(Ttl {
        ms: u64::MAX,
        refresh_on_read: true,
    });
    let endless = PutItem {
        ttl,
        ..put(&["a"], "key", json!(1))
    };
    db.put(&endless, NOW).await?;
    let item = stored(db, &["a"], "key", NOW).await?;
    ensure_eq!(item.expires, Some(Timestamp(i64::MAX)), "when it goes");
    Ok(())
}

pub(super) async fn sweep_deletes_what_expired(db: &dyn Store) -> Verdict {
    db.put(&put_for(&["a"], "short", json!(1), 100), NOW)
        .await?;
    db.put(&put_for(&["a"], "long", json!(1), 1_000), NOW)
        .await?;
    db.put(&put(&["a"], "forever", json!(1)), NOW).await?;
    ensure_eq!(db.sweep(later(99), 100).await?, 0, "items swept too early");
    ensure_eq!(db.sweep(later(100), 100).await?, 1, "items swept");
    ensure_eq!(db.sweep(later(100), 100).await?, 0, "items swept again");
    ensure!(
        !db.delete(&ns(&["a"]), "short").await?,
        "a swept item is still there"
    );
    let mut left = keys(db, Search::default()).await?;
    left.sort();
    ensure_eq!(left, ["forever", "long"], "the items that are left");
    Ok(())
}

pub(super) async fn sweep_stops_at_the_limit(db: &dyn Store) -> Verdict {
    for n in 0..5 {
        db.put(&put_for(&["a"], &format!("key{n}"), json!(n), 100), NOW)
            .await?;
    }
    for swept in [2, 2, 1, 0] {
        ensure_eq!(
            db.sweep(later(200), 2).await?,
            swept,
            "items swept, two at most"
        );
    }
    Ok(())
}

pub(super) async fn search_by_whole_segments(db: &dyn Store) -> Verdict {
    let mut random = Prng::new(0xface);
    let all = random_namespaces(&mut random, 60);
    for (n, namespace) in all.iter().enumerate() {
        let put = PutItem {
            namespace: namespace.clone(),
            ..put(&["a"], "key", json!(n))
        };
        db.put(&put, NOW).await?;
    }
    for _ in 0..200 {
        let prefix = random_segments(&mut random, 0);
        let search = Search {
            prefix: prefix.clone(),
            page: ALL,
            ..Search::default()
        };
        let found: BTreeSet<_> = searched(db, search, NOW)
            .await?
            .into_iter()
            .map(|item| item.namespace)
            .collect();
        let wanted: BTreeSet<_> = all
            .iter()
            .filter(|namespace| namespace.starts_with(&prefix))
            .cloned()
            .collect();
        ensure_eq!(found, wanted, "the namespaces below {prefix:?}");
    }
    Ok(())
}

pub(super) async fn hostile_prefixes_are_only_segments(db: &dyn Store) -> Verdict {
    let namespaces: [&[&str]; 8] = [
        &["acme"],
        &["acme", "users"],
        &["acme-corp"],
        &["Acme"],
        &["%"],
        &["_cme"],
        &["acme users"],
        &["\u{10ffff}"],
    ];
    for namespace in namespaces {
        db.put(&put(namespace, &namespace.join("/"), json!(1)), NOW)
            .await?;
    }
    let found = async |prefix: &[&str]| -> Result<Vec<String>, Fault> {
        let prefix = prefix.iter().map(|&segment| segment.to_owned()).collect();
        let search = Search {
            prefix,
            ..Search::default()
        };
        let mut found = keys(db, search).await?;
        found.sort();
        Ok(found)
    };
    for (prefix, wanted) in [
        (&["acme"] as &[&str], &["acme", "acme/users"] as &[&str]),
        (&["acme", "users"], &["acme/users"]),
        (&["%"], &["%"]),
        (&["_cme"], &["_cme"]),
        (&["Acme"], &["Acme"]),
        (&["\u{10ffff}"], &["\u{10ffff}"]),
        (&["acm"], &[]),
        (&["ACME"], &[]),
        (&["acme\u{1f}users"], &[]),
        (&[""], &[]),
        (&["acme", ""], &[]),
        (&["*"], &[]),
    ] {
        ensure_eq!(found(prefix).await?, wanted, "the items below {prefix:?}");
    }
    ensure_eq!(found(&[]).await?.len(), 8, "items below everything");
    Ok(())
}

pub(super) async fn search_filters_before_it_pages(db: &dyn Store) -> Verdict {
    for n in 0..50 {
        let value = json!({ "n": n, "even": n % 2 == 0 });
        db.put(&put(&["a"], &format!("key{n}"), value), later(n))
            .await?;
    }
    let filters = [
        ("even", FilterOp::Eq, json!(true)),
        ("n", FilterOp::Lt, json!(40)),
    ];
    let filters = filters.map(|(field, op, value)| ItemFilter {
        field: field.into(),
        op,
        value,
    });
    let search = Search {
        filters: filters.into(),
        page: Page {
            limit: 2,
            offset: 1,
        },
        ..below(&["a"])
    };
    let found = searched(db, search, later(50)).await?;
    let found: Vec<_> = found.into_iter().map(|item| item.key).collect();
    ensure_eq!(
        found,
        ["key36", "key34"],
        "the second page of what passes the filters"
    );
    Ok(())
}

pub(super) async fn search_is_newest_first(db: &dyn Store) -> Verdict {
    for (key, ms) in [("b", 2), ("a", 1), ("d", 4), ("c", 3)] {
        db.put(&put(&["a"], key, json!(1)), later(ms)).await?;
    }
    db.put(&put(&["a"], "a", json!(2)), later(9)).await?;
    ensure_eq!(
        keys(db, Search::default()).await?,
        ["a", "d", "c", "b"],
        "the order of items"
    );
    Ok(())
}

pub(super) async fn search_by_page(db: &dyn Store) -> Verdict {
    for n in 0..25 {
        db.put(&put(&["a"], &format!("key{n:02}"), json!(n)), later(n % 3))
            .await?;
    }
    let all = keys(
        db,
        Search {
            page: ALL,
            ..Search::default()
        },
    )
    .await?;
    ensure_eq!(all.len(), 25, "items in all");
    ensure_eq!(
        keys(db, Search::default()).await?,
        all[..10],
        "the default page"
    );
    let mut read = Vec::new();
    for offset in (0..35).step_by(7) {
        let page = Page { limit: 7, offset };
        read.extend(
            keys(
                db,
                Search {
                    page,
                    ..Search::default()
                },
            )
            .await?,
        );
    }
    ensure_eq!(read, all, "the items page by page");
    Ok(())
}

pub(super) async fn search_by_filters_as_the_model(db: &dyn Store) -> Verdict {
    let values = filter_values();
    let mut model = BTreeMap::new();
    for (n, value) in values.iter().enumerate() {
        let item = json!({ "f": value, "n": n });
        db.put(&put(&["a"], &format!("key{n:02}"), item.clone()), NOW)
            .await?;
        model.insert(format!("key{n:02}"), item);
    }
    for (key, item) in [
        ("no-field", json!({})),
        ("no-object", json!([1])),
        ("text", json!("f")),
    ] {
        db.put(&put(&["a"], key, item.clone()), NOW).await?;
        model.insert(key.to_owned(), item);
    }
    for value in &values {
        for op in OPS {
            let filter = ItemFilter {
                field: "f".into(),
                op,
                value: value.clone(),
            };
            let wanted: Vec<_> = model
                .iter()
                .filter(|(_, item)| filter.matches(item))
                .map(|(key, _)| key)
                .collect();
            let mut found = filtered(db, vec![filter.clone()]).await?;
            found.sort();
            ensure_eq!(
                found.iter().collect::<Vec<_>>(),
                wanted,
                "items where f {op:?} {value}"
            );
        }
    }
    let between = [(FilterOp::Gte, json!(3)), (FilterOp::Lt, json!(6))];
    let between = between.map(|(op, value)| ItemFilter {
        field: "n".into(),
        op,
        value,
    });
    let mut found = filtered(db, between.into()).await?;
    found.sort();
    ensure_eq!(
        found,
        ["key03", "key04", "key05"],
        "the items that pass two filters"
    );
    Ok(())
}

pub(super) async fn search_compares_nested_values(db: &dyn Store) -> Verdict {
    let nested = json!({ "a": [1, { "b": null }], "c": "x" });
    for (key, value) in [
        ("same", json!({ "c": "x", "a": [1, { "b": null }] })),
        ("more", json!({ "a": [1, { "b": null }], "c": "x", "d": 1 })),
        ("less", json!({ "a": [1, { "b": null }] })),
        ("order", json!({ "a": [{ "b": null }, 1], "c": "x" })),
        ("text", json!("{\"a\":[1,{\"b\":null}],\"c\":\"x\"}")),
    ] {
        db.put(&put(&["a"], key, json!({ "f": value })), NOW)
            .await?;
    }
    let filter = |op| ItemFilter {
        field: "f".into(),
        op,
        value: nested.clone(),
    };
    let found = filtered(db, vec![filter(FilterOp::Eq)]).await?;
    ensure_eq!(found, ["same"], "the items with an equal object");
    let mut found = filtered(db, vec![filter(FilterOp::Ne)]).await?;
    found.sort();
    ensure_eq!(
        found,
        ["less", "more", "order", "text"],
        "the items with another"
    );
    Ok(())
}

pub(super) async fn search_of_mixed_types_does_not_fail(db: &dyn Store) -> Verdict {
    for (n, value) in filter_values().into_iter().enumerate() {
        db.put(
            &put(&["a"], &format!("bare{n}"), value_or(value.clone())),
            NOW,
        )
        .await?;
        db.put(
            &put(&["a"], &format!("field{n}"), json!({ "f": value })),
            NOW,
        )
        .await?;
    }
    for value in [
        json!([1]),
        json!({ "g": 1 }),
        json!(null),
        json!(true),
        json!("10"),
        json!(10),
    ] {
        for op in OPS {
            let filter = ItemFilter {
                field: "f".into(),
                op,
                value: value.clone(),
            };
            let found = filtered(db, vec![filter.clone(), filter]).await?;
            let ordered = !matches!(op, FilterOp::Eq | FilterOp::Ne);
            let comparable = value.is_number() || value.is_string();
            ensure!(
                !ordered || comparable || found.is_empty(),
                "{found:?} are {op:?} {value}"
            );
        }
    }
    Ok(())
}

pub(super) async fn hostile_filters_are_only_texts(db: &dyn Store) -> Verdict {
    let texts = hostile_texts();
    for (n, text) in texts.iter().enumerate() {
        db.put(&put(&["a"], &format!("key{n}"), json!({ text: text })), NOW)
            .await?;
    }
    for (n, text) in texts.iter().enumerate() {
        let filter = |op| ItemFilter {
            field: text.clone(),
            op,
            value: json!(text),
        };
        let found = filtered(db, vec![filter(FilterOp::Eq)]).await?;
        ensure_eq!(
            found,
            [format!("key{n}")],
            "the items where {text:?} is itself"
        );
        let found = filtered(db, vec![filter(FilterOp::Ne)]).await?;
        ensure_eq!(
            found.len(),
            texts.len() - 1,
            "items where {text:?} is not itself"
        );
    }
    Ok(())
}

pub(super) async fn namespaces_in_order_without_repeats(db: &dyn Store) -> Verdict {
    for key in ["one", "two"] {
        for namespace in [&["b"] as &[&str], &["a", "b"], &["a"], &["a b"], &["B"]] {
            db.put(&put(namespace, key, json!(1)), NOW).await?;
        }
    }
    let found = namespaces(db, NamespaceQuery::default(), NOW).await?;
    let wanted = [&["B"] as &[&str], &["a"], &["a", "b"], &["a b"], &["b"]].map(ns);
    ensure_eq!(found, wanted, "the namespaces");
    for key in ["one", "two"] {
        db.delete(&ns(&["b"]), key).await?;
    }
    let found = namespaces(db, NamespaceQuery::default(), NOW).await?;
    ensure_eq!(found, wanted[..4], "the namespaces after one was emptied");
    Ok(())
}

pub(super) async fn namespaces_by_page(db: &dyn Store) -> Verdict {
    for n in 0..25 {
        db.put(&put(&["a", &format!("n{n:02}")], "key", json!(n)), NOW)
            .await?;
    }
    let mut read = Vec::new();
    for offset in (0..35).step_by(7) {
        let page = Page { limit: 7, offset };
        read.extend(
            namespaces(
                db,
                NamespaceQuery {
                    page,
                    ..Default::default()
                },
                NOW,
            )
            .await?,
        );
    }
    let wanted: Vec<_> = (0..25).map(|n| ns(&["a", &format!("n{n:02}")])).collect();
    ensure_eq!(read, wanted, "the namespaces page by page");
    // The page is cut after the repeats are gone, not before.
    for (offset, wanted) in [(0, vec![ns(&["a"])]), (1, vec![])] {
        let query = NamespaceQuery {
            depth_max: Some(1),
            page: Page { limit: 2, offset },
            ..NamespaceQuery::default()
        };
        ensure_eq!(
            namespaces(db, query, NOW).await?,
            wanted,
            "cut namespaces from {offset} on"
        );
    }
    Ok(())
}

pub(super) async fn namespaces_cut_by_depth(db: &dyn Store) -> Verdict {
    for namespace in [
        &["a", "b", "c"] as &[&str],
        &["a", "b", "d"],
        &["a", "e"],
        &["f"],
    ] {
        db.put(&put(namespace, "key", json!(1)), NOW).await?;
    }
    for (depth, wanted) in [
        (1, vec![ns(&["a"]), ns(&["f"])]),
        (2, vec![ns(&["a", "b"]), ns(&["a", "e"]), ns(&["f"])]),
        (
            9,
            vec![
                ns(&["a", "b", "c"]),
                ns(&["a", "b", "d"]),
                ns(&["a", "e"]),
                ns(&["f"]),
            ],
        ),
    ] {
        let query = NamespaceQuery {
            depth_max: Some(depth),
            ..NamespaceQuery::default()
        };
        ensure_eq!(
            namespaces(db, query, NOW).await?,
            wanted,
            "the namespaces at depth {depth}"
        );
    }
    // What is matched is the whole namespace, not what is left of it.
    let suffix = vec!["c".to_owned()];
    let query = NamespaceQuery {
        suffix,
        depth_max: Some(1),
        ..NamespaceQuery::default()
    };
    ensure_eq!(
        namespaces(db, query, NOW).await?,
        [ns(&["a"])],
        "the cut namespaces that end so"
    );
    Ok(())
}

pub(super) async fn namespaces_by_pattern(db: &dyn Store) -> Verdict {
    for namespace in [
        &["users", "ann", "facts"] as &[&str],
        &["users", "bob", "facts"],
        &["users", "bob"],
        &["teams", "ann", "facts"],
        &["users-old", "ann", "facts"],
    ] {
        db.put(&put(namespace, "key", json!(1)), NOW).await?;
    }
    let texts = |segments: &[&str]| segments.iter().map(|&s| s.to_owned()).collect::<Vec<_>>();
    for (prefix, suffix, wanted) in [
        (&["users"] as &[&str], &[] as &[&str], 3),
        (&["users", "*", "facts"], &[], 2),
        (&["*", "ann"], &[], 3),
        (&["user"], &[], 0),
        (&["user%"], &[], 0),
        (&["users_old"], &[], 0),
        (&[], &["facts"], 4),
        (&[], &["bob", "*"], 1),
        (&["users"], &["facts"], 2),
        (&["*", "*", "*", "*"], &[], 0),
        (&["users", "bob"], &["users", "bob"], 1),
    ] {
        let query = NamespaceQuery {
            prefix: texts(prefix),
            suffix: texts(suffix),
            page: ALL,
            ..NamespaceQuery::default()
        };
        let found = namespaces(db, query, NOW).await?.len();
        ensure_eq!(found, wanted, "namespaces that fit {prefix:?} … {suffix:?}");
    }
    Ok(())
}

pub(super) async fn namespaces_as_the_model(db: &dyn Store) -> Verdict {
    let mut random = Prng::new(0xbeef);
    let all = random_namespaces(&mut random, 60);
    for namespace in &all {
        let put = PutItem {
            namespace: namespace.clone(),
            ..put(&["a"], "key", json!(1))
        };
        db.put(&put, NOW).await?;
    }
    for _ in 0..200 {
        let query = NamespaceQuery {
            tenant: String::new(),
            prefix: random_segments(&mut random, 0),
            suffix: random_segments(&mut random, 0),
            depth_max: Some(random.below(5)).filter(|depth| *depth > 0),
            page: ALL,
        };
        let wanted: BTreeSet<_> = all
            .iter()
            .filter(|namespace| query.matches(namespace))
            .map(|namespace| query.cut(namespace))
            .collect();
        let found = namespaces(db, query.clone(), NOW).await?;
        ensure_eq!(
            found,
            wanted.into_iter().collect::<Vec<_>>(),
            "the namespaces of {query:?}"
        );
    }
    Ok(())
}

pub(super) async fn put_if_compares_what_is_there(db: &dyn Store) -> Verdict {
    let value = json!({ "n": 0.1, "list": [1, { "deep": null }] });
    let first = put(&["a"], "key", value.clone());
    ensure!(
        !db.put_if(Some(&json!(1)), &first, NOW).await?,
        "a value was seen where nothing is"
    );
    ensure_eq!(
        db.get(&ns(&["a"]), "key", NOW).await?,
        None,
        "what was refused and yet stored"
    );
    ensure!(
        db.put_if(None, &first, NOW).await?,
        "nothing was seen and nothing is there"
    );
    ensure!(
        !db.put_if(None, &first, later(1)).await?,
        "nothing was seen where something is"
    );
    let second = put(&["a"], "key", json!(2));
    for other in [json!({ "n": 0.1 }), json!(2), json!([value.clone()])] {
        ensure!(
            !db.put_if(Some(&other), &second, later(2)).await?,
            "{other} was taken for {value}"
        );
    }
    let item = stored(db, &["a"], "key", later(2)).await?;
    ensure_eq!(
        (&item.value, item.created, item.updated),
        (&value, NOW, NOW),
        "an item after several tries in vain"
    );
    ensure!(
        db.put_if(Some(&item.value), &second, later(3)).await?,
        "what was read is not what is there"
    );
    let item = stored(db, &["a"], "key", later(3)).await?;
    ensure_eq!(
        (item.value, item.created, item.updated),
        (json!(2), NOW, later(3)),
        "an item that was replaced"
    );
    Ok(())
}

pub(super) async fn put_if_takes_every_value_as_it_was_read(db: &dyn Store) -> Verdict {
    let values = [
        json!(0.1 + 0.2),
        json!(1.0),
        json!(u64::MAX),
        json!(1e300),
        json!(5e-324),
        json!("\u{0}\u{1f600}\u{e9}"),
        json!({ "b": 1, "a": { "d": [], "c": "" } }),
        json!(false),
    ];
    let mut seen = None;
    for value in values {
        let stores = db
            .put_if(seen.as_ref(), &put(&["a"], "key", value.clone()), NOW)
            .await?;
        ensure!(stores, "{seen:?} is not what was read");
        seen = Some(stored(db, &["a"], "key", NOW).await?.value);
        ensure_eq!(seen.as_ref(), Some(&value), "what was stored");
    }
    Ok(())
}

pub(super) async fn put_if_takes_expired_for_nothing(db: &dyn Store) -> Verdict {
    db.put(&put_for(&["a"], "key", json!(1), 100), NOW).await?;
    let next = put_for(&["a"], "key", json!(2), 50);
    ensure!(
        !db.put_if(None, &next, later(99)).await?,
        "nothing was seen where something lives"
    );
    ensure!(
        !db.put_if(Some(&json!(1)), &next, later(100)).await?,
        "what had expired was seen"
    );
    ensure!(
        db.put_if(None, &next, later(100)).await?,
        "what had expired is in the way"
    );
    let item = stored(db, &["a"], "key", later(100)).await?;
    ensure_eq!(
        (item.created, item.expires),
        (later(100), Some(later(150))),
        "created and expires"
    );
    let lasting = put(&["a"], "key", json!(3));
    ensure!(
        db.put_if(Some(&json!(2)), &lasting, later(101)).await?,
        "what lives was not found"
    );
    let item = stored(db, &["a"], "key", later(1_000)).await?;
    ensure_eq!(
        item.expires,
        None,
        "when an item goes that was given no end"
    );
    Ok(())
}

pub(super) async fn put_if_has_the_limits_of_a_put(db: &dyn Store) -> Verdict {
    let long = "k".repeat(KEY_BYTES_MAX + 1);
    for key in ["", long.as_str()] {
        let result = db.put_if(None, &put(&["a"], key, json!(1)), NOW).await;
        ensure_refused!(
            result,
            StoreError::Key { .. },
            "a key of {} bytes",
            key.len()
        );
    }
    let result = db.put_if(None, &put(&["a"], "key", Json::Null), NOW).await;
    ensure_refused!(result, StoreError::NullValue { .. }, "a null");
    Ok(())
}

pub(super) async fn racing_put_ifs_have_one_winner(db: &dyn Store) -> Verdict {
    let mut seen = None;
    for round in 0..8 {
        let puts: Vec<_> = (0..16)
            .map(|n| put(&["a"], "key", json!({ "round": round, "n": n })))
            .collect();
        let tries = puts.iter().map(|put| db.put_if(seen.as_ref(), put, NOW));
        let mut won = Vec::new();
        for (put, stores) in puts.iter().zip(join_all(tries).await) {
            if stores? {
                won.push(&put.value);
            }
        }
        let item = stored(db, &["a"], "key", NOW).await?;
        ensure_eq!(won, [&item.value], "the winners of round {round}");
        seen = Some(item.value);
    }
    Ok(())
}

pub(super) async fn racing_put_ifs_lose_no_count(db: &dyn Store) -> Verdict {
    let count_up = async || -> Result<(), StoreError> {
        loop {
            let seen = db
                .get(&ns(&["a"]), "count", NOW)
                .await?
                .map(|item| item.value);
            let next = seen.as_ref().and_then(Json::as_u64).unwrap_or(0) + 1;
            if db
                .put_if(seen.as_ref(), &put(&["a"], "count", json!(next)), NOW)
                .await?
            {
                return Ok(());
            }
        }
    };
    for result in join_all((0..32).map(|_| count_up())).await {
        result?;
    }
    let counted = stored(db, &["a"], "count", NOW).await?.value;
    ensure_eq!(counted, json!(32), "what 32 counted together");
    Ok(())
}

pub(super) async fn racing_puts_leave_one_whole_item(db: &dyn Store) -> Verdict {
    let puts: Vec<_> = (0..16)
        .map(|n| put(&["a"], "key", json!({ "n": n, "again": n })))
        .collect();
    for result in join_all(puts.iter().map(|put| db.put(put, NOW))).await {
        result?;
    }
    let items = searched(db, Search::default(), NOW).await?;
    ensure_eq!(items.len(), 1, "items after the race");
    let value = &items[0].value;
    ensure!(
        puts.iter().any(|put| put.value == *value),
        "nobody stored {value}"
    );
    Ok(())
}

const NOW: Timestamp = Timestamp(1_000_000);

const OPS: [FilterOp; 6] = [
    FilterOp::Eq,
    FilterOp::Ne,
    FilterOp::Gt,
    FilterOp::Gte,
    FilterOp::Lt,
    FilterOp::Lte,
];

fn filter_values() -> Vec<Json> {
    vec![
        json!(null),
        json!(true),
        json!(false),
        json!(-5),
        json!(0),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(9),
        json!(10),
        json!(1e300),
        json!(""),
        json!("1"),
        json!("10"),
        json!("9"),
        json!("B"),
        json!("a"),
        json!("b"),
        json!("\u{e9}"),
        json!([1, 2]),
        json!({ "g": 1 }),
    ]
}

/// The value itself where it can be an item.
fn value_or(value: Json) -> Json {
    if value.is_null() {
        json!("null")
    } else {
        value
    }
}

fn later(ms: u64) -> Timestamp {
    NOW.plus_ms(ms)
}

fn ns(segments: &[&str]) -> Namespace {
    Namespace::new(segments.iter().copied()).expect("the suite names namespaces well")
}

/// Tenants whose names look alike.
const TENANTS: [&str; 5] = ["", "acme", "acme-corp", "ACME", "a"];

fn tenant_key(tenant: &str) -> &str {
    match tenant {
        "" => "unnamed",
        tenant => tenant,
    }
}

fn ns_of(tenant: &str, segments: &[&str]) -> Namespace {
    Namespace::of_tenant(tenant, segments.iter().copied()).expect("these are namespaces")
}

fn put_of(tenant: &str, namespace: &[&str], key: &str, value: Json) -> PutItem {
    PutItem {
        namespace: ns_of(tenant, namespace),
        ..put(namespace, key, value)
    }
}

fn put(namespace: &[&str], key: &str, value: Json) -> PutItem {
    PutItem {
        namespace: ns(namespace),
        key: key.to_owned(),
        value,
        ttl: None,
    }
}

fn put_for(namespace: &[&str], key: &str, value: Json, ms: u64) -> PutItem {
    PutItem {
        ttl: Some(Ttl {
            ms,
            refresh_on_read: false,
        }),
        ..put(namespace, key, value)
    }
}

fn below(prefix: &[&str]) -> Search {
    Search {
        prefix: ns(prefix).segments().to_vec(),
        ..Search::default()
    }
}

async fn stored(
    db: &dyn Store,
    namespace: &[&str],
    key: &str,
    now: Timestamp,
) -> Result<Item, Fault> {
    let found = db.get(&ns(namespace), key, now).await?;
    found.ok_or_else(|| Fault::new(format!("there is no item {key:?} in {namespace:?}")))
}

async fn searched(db: &dyn Store, search: Search, now: Timestamp) -> Result<Vec<Item>, Fault> {
    Ok(db.search(&search, now).await?)
}

async fn keys(db: &dyn Store, search: Search) -> Result<Vec<String>, Fault> {
    Ok(searched(db, search, NOW)
        .await?
        .into_iter()
        .map(|item| item.key)
        .collect())
}

async fn filtered(db: &dyn Store, filters: Vec<ItemFilter>) -> Result<Vec<String>, Fault> {
    keys(
        db,
        Search {
            filters,
            page: ALL,
            ..Search::default()
        },
    )
    .await
}

async fn namespaces(
    db: &dyn Store,
    query: NamespaceQuery,
    now: Timestamp,
) -> Result<Vec<Namespace>, Fault> {
    Ok(db.namespaces(&query, now).await?)
}

fn random_namespaces(random: &mut Prng, count: usize) -> Vec<Namespace> {
    let some = (0..count).map(|_| Namespace::new(random_segments(random, 1)));
    let some: BTreeSet<_> = some.map(|ns| ns.expect("these are namespaces")).collect();
    some.into_iter().collect()
}

/// Few different ones that look alike, so that prefixes often match, and often only almost.
fn random_segments(random: &mut Prng, at_least: usize) -> Vec<String> {
    const SEGMENTS: [&str; 9] = ["a", "ab", "b", "a b", "A", "%", "_", "a%", "*"];
    let count = at_least + random.below(4);
    (0..count)
        .map(|_| (*random.pick(&SEGMENTS)).to_owned())
        .collect()
}
