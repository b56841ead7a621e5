//! What agents remember, on every store, with real embeddings.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::label::{Label, Labeled, Labels};
use superstep::store::{MemoryStore, Namespace, PutItem, Store};
use superstep_agent::memory::{Memories, MemoryError, Source};
use superstep_conformance::services;
use superstep_llm::{Address, RemoteEmbedder};
use superstep_postgres::Postgres;
use superstep_sqlite::Sqlite;

fn plain(value: Json) -> Labeled<Json> {
    Labeled::new(value, Labels::NONE)
}

fn because(why: &str) -> Source {
    Source::person(why)
}

fn namespace(name: &str) -> Namespace {
    Namespace::new(["memories", name]).unwrap()
}

fn value(memory: &superstep_agent::memory::Memory) -> &Json {
    memory.value.parts().0
}

async fn every_store() -> Vec<(&'static str, Arc<dyn Store>)> {
    let postgres = Postgres::connect(&services::url("postgres")).await.unwrap();
    vec![
        ("memory", Arc::new(MemoryStore::default())),
        ("sqlite", Arc::new(Sqlite::in_memory().unwrap())),
        ("postgres", Arc::new(postgres)),
    ]
}

/// A namespace that no other go at the tests has used: PostgreSQL keeps what it is given.
fn fresh(test: &str) -> Namespace {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    namespace(&format!("{test}-{}", now.as_nanos()))
}

#[tokio::test]
async fn a_patch_changes_what_it_names_and_the_past_can_be_brought_back() {
    for (name, store) in every_store().await {
        let memories = Memories::new(store, fresh("patch"));
        let first = plain(json!({"tone": "formal", "sign": "Ada"}));
        memories
            .patch("style", first, because("said so on Monday"))
            .await
            .unwrap();
        let patch = plain(json!({"tone": "warm", "sign": null}));
        let changed = memories
            .patch("style", patch, because("corrected a draft"))
            .await
            .unwrap();
        assert_eq!(value(&changed), &json!({"tone": "warm"}), "{name}");
        assert_eq!(changed.revision, 2, "{name}");
        let history = memories.history("style").await.unwrap();
        let told: Vec<_> = history
            .iter()
            .map(|past| past.source.why.as_str())
            .collect();
        assert_eq!(told, ["said so on Monday", "corrected a draft"], "{name}");
        let back = memories
            .revert("style", 1, because("that was a mistake"))
            .await
            .unwrap();
        assert_eq!(
            value(&back),
            &json!({"tone": "formal", "sign": "Ada"}),
            "{name}"
        );
        assert_eq!(back.revision, 3, "{name}");
        let missing = memories.revert("style", 9, because("?")).await.unwrap_err();
        assert!(
            matches!(missing, MemoryError::NoRevision { revision: 9, .. }),
            "{name}"
        );
        assert!(memories.forget("style").await.unwrap(), "{name}");
        assert_eq!(memories.get("style").await.unwrap(), None, "{name}");
    }
}

#[tokio::test]
async fn labels_stay_with_a_memory_and_cannot_be_stripped() {
    for (name, store) in every_store().await {
        let namespace = fresh("labels");
        let memories = Memories::new(store.clone(), namespace.clone());
        let from_mail = Labeled::new(json!({"pay": "now"}), Label::UNTRUSTED);
        memories
            .patch("note", from_mail, because("a mail"))
            .await
            .unwrap();
        memories
            .patch("note", plain(json!({"pay": "later"})), because("a person"))
            .await
            .unwrap();
        let kept = memories.revert("note", 2, because("again")).await.unwrap();
        assert!(kept.value.labels().has(&Label::UNTRUSTED), "{name}");
        let item = store
            .get(&namespace, "note", superstep::Timestamp(0))
            .await
            .unwrap()
            .unwrap();
        let mut stripped = item.value;
        stripped["memory"].as_object_mut().unwrap().remove("labels");
        let put = PutItem {
            namespace,
            key: "note".to_owned(),
            value: stripped,
            ttl: None,
        };
        store.put(&put, superstep::Timestamp(0)).await.unwrap();
        let error = memories.get("note").await.unwrap_err();
        assert!(
            matches!(error, MemoryError::NotAMemory { .. }),
            "{name}: {error}"
        );
    }
}

#[tokio::test]
async fn all_who_change_a_memory_at_once_get_through() {
    for (name, store) in every_store().await {
        let memories = Memories::new(store, fresh("race"));
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..8 {
            let memories = memories.clone();
            writers.spawn(async move {
                let patch = json!({ format!("w{writer}"): writer });
                memories
                    .patch("shared", plain(patch), because("a race"))
                    .await
                    .unwrap()
            });
        }
        writers.join_all().await;
        let memory = memories.get("shared").await.unwrap().unwrap();
        assert_eq!(value(&memory).as_object().unwrap().len(), 8, "{name}");
        assert_eq!(memory.revision, 8, "{name}");
    }
}

#[tokio::test]
async fn the_nearest_in_meaning_are_found_with_real_embeddings() {
    let address = Address {
        url: services::url("embeddings"),
        key: None,
    };
    let embedder = Arc::new(RemoteEmbedder::at(
        &"openai:smollm2-135m".parse().unwrap(),
        address,
    ));
    let mut answers = Vec::new();
    for (name, store) in every_store().await {
        let memories = Memories::new(store, fresh("search")).with_embedder(embedder.clone());
        let facts = [
            ("allergy", "Bob is allergic to peanuts and nuts"),
            ("database", "Our database runs on PostgreSQL 15"),
            ("bill", "The invoice from the printer company is overdue"),
        ];
        for (key, fact) in facts {
            memories
                .patch(key, plain(json!(fact)), because("told"))
                .await
                .unwrap();
        }
        let mut found = Vec::new();
        for question in [
            "What food must Bob not eat?",
            "What version of Postgres do we use?",
            "Which bill has not been paid?",
        ] {
            let nearest = memories.search(question, 2).await.unwrap();
            assert_eq!(nearest.len(), 2, "{name}");
            assert!(nearest[0].score >= nearest[1].score, "{name}");
            found.push(nearest[0].memory.key.clone());
        }
        assert_eq!(found, ["allergy", "database", "bill"], "{name}");
        answers.push(found);
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
}
