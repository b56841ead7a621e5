//! Keys over their lives: created by a race, rotated, wrapped again, retired with a wrong program, destroyed.

use std::sync::Arc;

use serde_json::json;
use superstep_conformance::sample::{Owner, answer_by, listing, thread};
use superstep_conformance::{block_on, join_all};
use superstep_core::checkpoint::{
    Checkpointer, Commit, Filter, FilterValue, InterruptQuery, ThreadAnnotation, ThreadQuery,
};
use superstep_core::error::CheckpointError;
use superstep_core::store::{
    FilterOp, ItemFilter, MemoryStore, Namespace, NamespaceQuery, PutItem, Search, Store,
    StoreError,
};
use superstep_core::{Seq, ThreadId, Timestamp};
use superstep_encryption::{EncryptionError, PlainData, SearchableFields};

use crate::kit::{KEY, Kit, OTHER_KEY, code, searchable};

fn of(tenant: &str, name: &str) -> ThreadId {
    ThreadId::of_tenant(tenant, name).unwrap()
}

fn put(value: serde_json::Value) -> PutItem {
    PutItem {
        namespace: Namespace::of_tenant("acme", ["notes"]).unwrap(),
        key: "one".to_owned(),
        value,
        ttl: None,
    }
}

const NOW: Timestamp = Timestamp(1_000);

#[test]
fn processes_that_race_for_the_first_key_agree_on_one() {
    block_on(async {
        let kit = Kit::new();
        let others: Vec<Kit> = (0..4).map(|_| kit.again(|with| with)).collect();
        let starts = others.iter().enumerate().map(|(n, other)| {
            let id = of("acme", &format!("thread-{n}"));
            async move { Owner::started_at(&other.db, &id).await.unwrap() }
        });
        join_all(starts).await;
        assert_eq!(kit.encryption.data_keys("acme").await.unwrap().len(), 1);
        for n in 0..4 {
            let id = of("acme", &format!("thread-{n}"));
            assert!(kit.db.load(&id).await.unwrap().is_some());
        }
    });
}

#[test]
fn the_same_commit_has_the_same_bytes_in_every_process() {
    block_on(async {
        let (one, id) = (Kit::new(), thread("t"));
        let two = one.again(|with| with);
        let owner = Owner::new(&id);
        one.db.save(&owner.start()).await.unwrap();
        let stored = one.plain.export(&id).await.unwrap();
        two.db.save(&owner.start()).await.unwrap();
        assert_eq!(one.plain.export(&id).await.unwrap(), stored);
    });
}

#[test]
fn what_was_written_before_a_rotation_is_recognized_when_it_comes_again() {
    block_on(async {
        let (kit, id) = (Kit::new(), of("acme", "t"));
        let mut owner = Owner::started_at(&kit.db, &id).await.unwrap();
        let step = owner.step();
        let pause = {
            owner.save(&kit.db, step.clone()).await.unwrap();
            owner.pause(&[1, 2])
        };
        let record = owner.record(7, "key", json!("result"));
        kit.db.record(&record).await.unwrap();
        owner.save(&kit.db, pause.clone()).await.unwrap();
        let answers = [answer_by(1, "ada"), answer_by(2, "grace")];
        kit.db.answer(&id, &answers).await.unwrap();
        let archive = kit.db.export(&id).await.unwrap();
        kit.store.put(&put(json!({ "n": 1 })), NOW).await.unwrap();

        let first = kit.encryption.data_keys("acme").await.unwrap();
        let new = kit.encryption.rotate_key("acme").await.unwrap().unwrap();
        assert_eq!(
            kit.encryption.data_keys("acme").await.unwrap(),
            [new, first[0]]
        );

        // All of it again, in a process that knows only of the new key.
        let again = kit.again(|with| with);
        again.db.save(&step).await.unwrap();
        again.db.save(&pause).await.unwrap();
        assert_eq!(again.db.record(&record).await.unwrap(), record.body);
        again.db.answer(&id, &answers).await.unwrap();
        again
            .db
            .answer_and_load(&id, &answers)
            .await
            .unwrap()
            .unwrap();
        again.db.import(&id, &archive).await.unwrap();
        assert_eq!(again.db.export(&id).await.unwrap(), archive);
        let next = put(json!({ "n": 2 }));
        let seen = json!({ "n": 1 });
        assert!(again.store.put_if(Some(&seen), &next, NOW).await.unwrap());
        assert!(!again.store.put_if(Some(&seen), &next, NOW).await.unwrap());

        // And what differs is still refused.
        let other = superstep_conformance::sample::noted(step, json!("other"));
        assert_eq!(code(again.db.save(&other).await), "checkpoint-fenced");
        let others = [answer_by(1, "eve"), answer_by(2, "grace")];
        assert_eq!(
            code(again.db.answer(&id, &others).await),
            "checkpoint-not-open"
        );
        let mut changed = archive.clone();
        changed.listing.graph = "other".to_owned();
        assert_eq!(
            code(again.db.import(&id, &changed).await),
            "checkpoint-thread-exists"
        );
    });
}

#[test]
fn a_process_that_has_not_seen_a_new_key_reads_what_is_encrypted_with_it() {
    block_on(async {
        let (one, id) = (Kit::new(), of("acme", "t"));
        let mut owner = Owner::started_at(&one.db, &id).await.unwrap();
        let two = one.again(|with| with);
        two.db.load(&id).await.unwrap();
        one.encryption.rotate_key("acme").await.unwrap();
        owner.save(&one.db, owner.step()).await.unwrap();
        assert_eq!(two.db.entries(&id, Seq(0), 10).await.unwrap().len(), 2);
    });
}

#[test]
fn a_key_encryption_key_is_replaced_without_touching_data() {
    block_on(async {
        let kit = Kit::new();
        let ids = ["", "acme", "evil"].map(|tenant| of(tenant, "t"));
        for id in &ids {
            Owner::started_at(&kit.db, id).await.unwrap();
        }
        let before = kit.plain.export(&ids[1]).await.unwrap();
        let both = kit.with_keys(&format!("{OTHER_KEY}\n{KEY}"));
        assert_eq!(
            both.encryption.tenants().await.unwrap(),
            ["", "acme", "evil"]
        );
        for tenant in both.encryption.tenants().await.unwrap() {
            assert!(both.encryption.rewrap(&tenant).await.unwrap());
            assert!(!both.encryption.rewrap(&tenant).await.unwrap(), "twice");
        }
        let new = kit.with_keys(OTHER_KEY);
        for id in &ids {
            assert!(new.db.load(id).await.unwrap().is_some());
        }
        assert_eq!(kit.plain.export(&ids[1]).await.unwrap(), before);
        let old = kit.with_keys(KEY);
        assert_eq!(
            code(old.db.load(&ids[0]).await),
            "encryption-key-encryption-key"
        );
    });
}

#[test]
fn an_erased_tenant_cannot_be_read_and_the_others_can() {
    block_on(async {
        let kit = Kit::new();
        let (gone, stays) = (of("acme", "t"), of("acme-corp", "t"));
        for id in [&gone, &stays] {
            Owner::started_at(&kit.db, id).await.unwrap();
        }
        kit.store.put(&put(json!("secret")), NOW).await.unwrap();
        let keys = kit.encryption.data_keys("acme").await.unwrap();
        let receipt = kit.encryption.erase_tenant("acme").await.unwrap().unwrap();
        assert_eq!((receipt.tenant.as_str(), &receipt.keys), ("acme", &keys));
        assert_eq!(receipt.wrapped_sha256.len(), 64);
        assert_eq!(
            kit.encryption.erasures("acme").await.unwrap(),
            std::slice::from_ref(&receipt)
        );
        assert_eq!(
            kit.encryption.erase_tenant("acme").await.unwrap(),
            None,
            "twice"
        );
        assert_eq!(kit.encryption.erase_tenant("nobody").await.unwrap(), None);
        for kit in [&kit, &kit.again(|with| with)] {
            assert_eq!(code(kit.db.load(&gone).await), "encryption-erased");
            let item = put(json!("secret"));
            let error = kit
                .store
                .get(&item.namespace, "one", NOW)
                .await
                .unwrap_err();
            assert_eq!(error.code(), "store-encryption");
            assert!(kit.db.load(&stays).await.unwrap().is_some());
        }
        // Whoever has the name next starts with other keys, and what is left of the former is still unreadable.
        let next = of("acme", "next");
        Owner::started_at(&kit.db, &next).await.unwrap();
        assert!(kit.db.load(&next).await.unwrap().is_some());
        assert_eq!(code(kit.db.load(&gone).await), "encryption-unknown-key");
        assert_eq!(kit.encryption.erasures("acme").await.unwrap(), [receipt]);
        assert_ne!(kit.encryption.data_keys("acme").await.unwrap(), keys);
    });
}

#[test]
fn a_keyring_that_was_changed_or_given_to_another_tenant_is_refused() {
    block_on(async {
        let kit = Kit::new();
        for tenant in ["acme", "evil"] {
            Owner::started_at(&kit.db, &of(tenant, "t")).await.unwrap();
        }
        let place = Namespace::of_tenant("superstep.data-keys", ["keyrings"]).unwrap();
        let stored = async |tenant: &str| {
            let key = format!("tenant:{tenant}");
            let item = kit.plain_store.get(&place, &key, NOW);
            item.await.unwrap().unwrap().value
        };
        let (own, foreign) = (stored("acme").await, stored("evil").await);
        let mut forged = vec![foreign];
        for change in [
            json!({ "tenant": "acme", "root": own["root"], "keys": [] }),
            json!({ "is_encrypted": false }),
            json!({ "erased": [{ "tenant": "acme", "at_ms": 1, "keys": [], "wrapped_sha256": "" }] }),
            json!({ "version": 2 }),
            json!({ "mac": "" }),
            json!({ "mac": 7 }),
        ] {
            let mut keyring = own.clone();
            for (field, value) in change.as_object().unwrap() {
                keyring[field] = value.clone();
            }
            forged.push(keyring);
        }
        for value in forged {
            let put = PutItem {
                namespace: place.clone(),
                key: "tenant:acme".to_owned(),
                value,
                ttl: None,
            };
            kit.plain_store.put(&put, NOW).await.unwrap();
            let found = code(kit.again(|with| with).db.load(&of("acme", "t")).await);
            assert_eq!(found, "encryption-keyring", "{}", put.value);
        }
        // A keyring that was taken away is not made again by a read.
        kit.plain_store.delete(&place, "tenant:acme").await.unwrap();
        let found = code(kit.again(|with| with).db.load(&of("acme", "t")).await);
        assert_eq!(found, "encryption-no-keys");
    });
}

#[test]
fn the_data_keys_cannot_be_reached_through_the_wrapped_store() {
    block_on(async {
        let kit = Kit::new();
        Owner::started_at(&kit.db, &of("acme", "t")).await.unwrap();
        let reserved = Namespace::of_tenant("superstep.data-keys", ["keyrings"]).unwrap();
        let item = PutItem {
            namespace: reserved.clone(),
            ..put(json!(1))
        };
        let tenant = "superstep.data-keys".to_owned();
        let search = Search {
            tenant: tenant.clone(),
            ..Search::default()
        };
        let query = NamespaceQuery {
            tenant,
            ..NamespaceQuery::default()
        };
        let refused = [
            kit.store.get(&reserved, "tenant:acme", NOW).await.map(drop),
            kit.store.put(&item, NOW).await,
            kit.store.put_if(None, &item, NOW).await.map(drop),
            kit.store.delete(&reserved, "tenant:acme").await.map(drop),
            kit.store.search(&search, NOW).await.map(drop),
            kit.store.namespaces(&query, NOW).await.map(drop),
        ];
        for result in refused {
            let Err(StoreError::Encryption { source }) = result else {
                panic!("reached: {result:?}");
            };
            let error: &EncryptionError = source.downcast_ref().unwrap();
            assert_eq!(error.code(), "encryption-reserved");
        }
    });
}

#[test]
fn plain_data_is_accepted_until_all_of_it_is_encrypted() {
    block_on(async {
        let (plain, id) = (Kit::new(), of("acme", "t"));
        let mut owner = Owner::started_at(&plain.plain, &id).await.unwrap();
        let metadata = Some([("team".to_owned(), json!("red"))].into());
        let step = Commit {
            listing: Some(superstep_core::checkpoint::Listing {
                metadata,
                ..listing("graph", json!({}), json!({ "n": 1 }))
            }),
            ..owner.step()
        };
        owner.save(&plain.plain, step.clone()).await.unwrap();
        let before = plain.plain.export(&id).await.unwrap();
        // By default it is refused.
        assert_eq!(code(plain.db.load(&id).await), "encryption-plain");
        let accepting =
            || plain.again(|with| with.with_plain_data(PlainData::AcceptUntilEncrypted));
        let kit = accepting();
        assert_eq!(kit.db.export(&id).await.unwrap(), before);
        // A commit that was saved without encryption is recognized.
        kit.db.save(&step).await.unwrap();
        // What is written is encrypted, also next to what is not.
        owner.save(&kit.db, owner.step()).await.unwrap();
        let change = ThreadAnnotation {
            metadata: [("team".to_owned(), json!("blue"))].into(),
            ..ThreadAnnotation::default()
        };
        kit.db.annotate(&id, &change).await.unwrap();
        let query = ThreadQuery {
            tenant: "acme".to_owned(),
            ..ThreadQuery::default()
        };
        let rows = kit.db.threads(&query);
        let row = rows.await.unwrap().remove(0);
        assert_eq!(row.metadata["team"], json!("blue"));
        assert_eq!(kit.db.entries(&id, Seq(0), 10).await.unwrap().len(), 3);
        assert!(!kit.encryption.is_encrypted("acme").await.unwrap());
        assert!(kit.encryption.refuse_plain("acme").await.unwrap());
        for kit in [&kit, &accepting()] {
            assert_eq!(code(kit.db.load(&id).await), "encryption-plain");
        }
    });
}

#[test]
fn only_declared_fields_are_searched() {
    block_on(async {
        let kit = Kit::new().again(|with| with.with_searchable(searchable(&["owner"])));
        let id = thread("t");
        let owner = Owner::new(&id);
        let metadata = json!({ "owner": "ada", "topic": "secret" });
        let start = Commit {
            listing: Some(listing(
                "graph",
                metadata,
                json!({ "owner": "ada", "n": 1 }),
            )),
            ..owner.start()
        };
        kit.db.save(&start).await.unwrap();
        let filter = |field: &str, text: &str| Filter {
            field: field.to_owned(),
            equals: FilterValue::Text(text.to_owned()),
        };
        let query = |metadata: Vec<Filter>, values: Vec<Filter>| ThreadQuery {
            metadata,
            values,
            ..ThreadQuery::default()
        };
        let by_owner = || vec![filter("owner", "ada")];
        let found = kit
            .db
            .threads(&query(by_owner(), by_owner()))
            .await
            .unwrap();
        assert_eq!(
            found[0].metadata,
            [
                ("owner".to_owned(), json!("ada")),
                ("topic".to_owned(), json!("secret")),
            ]
            .into()
        );
        assert_eq!(
            kit.db
                .count_threads(&query(by_owner(), vec![]))
                .await
                .unwrap(),
            1
        );
        let by_topic = || vec![filter("topic", "secret")];
        let contains = |part| ThreadQuery {
            metadata_contains: Some(part),
            ..ThreadQuery::default()
        };
        for query in [
            query(by_topic(), vec![]),
            query(vec![], by_topic()),
            contains(json!({ "topic": "secret" })),
        ] {
            assert_eq!(code(kit.db.threads(&query).await), "checkpoint-query");
            assert_eq!(code(kit.db.count_threads(&query).await), "checkpoint-query");
        }
        let item = put(json!({ "owner": "ada", "text": "secret" }));
        kit.store.put(&item, NOW).await.unwrap();
        let search = |field: &str, value| Search {
            tenant: "acme".to_owned(),
            filters: vec![ItemFilter {
                field: field.to_owned(),
                op: FilterOp::Eq,
                value,
            }],
            ..Search::default()
        };
        let found = kit.store.search(&search("owner", json!("ada")), NOW).await;
        assert_eq!(found.unwrap()[0].value, item.value);
        let refused = kit
            .store
            .search(&search("text", json!("secret")), NOW)
            .await;
        assert_eq!(refused.unwrap_err().code(), "store-encryption");
    });
}

#[test]
fn a_field_is_read_as_it_was_last_written_whether_it_was_searchable_then_or_not() {
    block_on(async {
        let (hidden, id) = (Kit::new(), thread("t"));
        let clear = hidden.again(|with| with.with_searchable(searchable(&["team"])));
        Owner::started_at(&hidden.db, &id).await.unwrap();
        let team = async |kit: &Kit, team: &str| {
            let change = ThreadAnnotation {
                metadata: [("team".to_owned(), json!(team))].into(),
                ..ThreadAnnotation::default()
            };
            kit.db.annotate(&id, &change).await.unwrap();
            let rows = kit.db.threads(&ThreadQuery::default()).await.unwrap();
            assert_eq!(rows[0].metadata["team"], json!(team));
        };
        team(&hidden, "red").await;
        team(&clear, "blue").await;
        team(&clear, "green").await;
        // A field that is no longer declared must not stay in clear unnoticed.
        let error = hidden.db.threads(&ThreadQuery::default()).await;
        assert_eq!(code(error), "encryption-plain");
    });
}

#[test]
fn an_answer_of_an_interrupt_is_returned_as_it_was_given() {
    block_on(async {
        let (kit, id) = (Kit::new(), of("acme", "t"));
        let mut owner = Owner::started_at(&kit.db, &id).await.unwrap();
        owner.save(&kit.db, owner.ask(&[1])).await.unwrap();
        let answer = answer_by(1, "ada");
        kit.db
            .answer(&id, std::slice::from_ref(&answer))
            .await
            .unwrap();
        // A pause that overlooks the answer gets it.
        let saved = owner.save(&kit.db, owner.pause(&[1])).await.unwrap();
        let unseen = saved.unseen.unwrap();
        assert_eq!(unseen.answered, [(answer.interrupt, answer.body.clone())]);
        let query = InterruptQuery {
            tenant: "acme".to_owned(),
            ..InterruptQuery::default()
        };
        let row = kit.db.interrupts(&query).await.unwrap().remove(0);
        assert_eq!(
            (row.answer, row.answered_by.as_str()),
            (Some(answer.body), "ada")
        );
        let stored = kit.plain.interrupts(&query).await.unwrap().remove(0);
        assert!(!stored.answered_by.contains("ada"));
    });
}

/// A key service that is away at first.
struct Away(
    superstep_encryption::LocalKeys,
    std::sync::atomic::AtomicBool,
);

impl superstep_encryption::KeyEncryption for Away {
    fn current(&self) -> String {
        self.0.current()
    }

    fn wrap<'a>(
        &'a self,
        key: &'a superstep_encryption::SecretKey,
        context: &'a [u8],
    ) -> superstep_core::checkpoint::BoxFuture<
        'a,
        Result<superstep_encryption::WrappedKey, EncryptionError>,
    > {
        if self.1.swap(false, std::sync::atomic::Ordering::Relaxed) {
            let source = "connection refused".into();
            return Box::pin(async { Err(EncryptionError::KeyService { source }) });
        }
        self.0.wrap(key, context)
    }

    fn unwrap<'a>(
        &'a self,
        wrapped: &'a superstep_encryption::WrappedKey,
        context: &'a [u8],
    ) -> superstep_core::checkpoint::BoxFuture<
        'a,
        Result<superstep_encryption::UnwrappedKey, EncryptionError>,
    > {
        self.0.unwrap(wrapped, context)
    }
}

#[test]
fn a_key_service_that_does_not_answer_is_asked_again() {
    block_on(async {
        let local = superstep_encryption::LocalKeys::from_text(KEY).unwrap();
        let service = Away(local, true.into());
        let encryption =
            superstep_encryption::Encryption::new(service, Arc::new(MemoryStore::new()))
                .with_searchable(SearchableFields::all());
        let kit = Kit::new().again(|_| encryption);
        let start = Owner::new(&thread("t")).start();
        let error = kit.db.save(&start).await.unwrap_err();
        assert!(matches!(error, CheckpointError::Store { .. }) && error.is_transient());
        kit.db.save(&start).await.unwrap();
    });
}
