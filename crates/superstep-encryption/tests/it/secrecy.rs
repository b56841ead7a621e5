//! Nothing of what users write is in the files of a database, also not in those that it leaves behind.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep_conformance::block_on;
use superstep_conformance::sample::{Owner, answer_by, interrupt_id, listing, noted};
use superstep_core::checkpoint::{AskedRow, Commit, NewThread, ThreadAnnotation};
use superstep_core::store::{Namespace, PutItem, Store};
use superstep_core::{Checkpointer, ThreadId, Timestamp};
use superstep_encryption::{EncryptedCheckpointer, EncryptedStore};
use superstep_sqlite::Sqlite;

use crate::kit::encryption;

/// What is searched for. Every secret that the test writes begins so.
pub(crate) const MARKER: &str = "MARKER-d41d8cd98f00";

/// Returns another secret each time.
struct Markers(u32);

impl Markers {
    fn next(&mut self) -> String {
        self.0 += 1;
        format!("{MARKER}-{:04}", self.0)
    }

    fn json(&mut self) -> Json {
        json!({ "text": self.next(), "list": [self.next()] })
    }

    fn bytes(&mut self) -> Vec<u8> {
        self.next().repeat(40).into_bytes()
    }
}

/// Writes secrets wherever users can, on threads of several tenants.
pub(crate) async fn write(db: &dyn Checkpointer, store: &dyn Store) -> u32 {
    let mut markers = Markers(0);
    for tenant in ["", "acme", "evil"] {
        for n in 0..16 {
            let id = ThreadId::of_tenant(tenant, &format!("thread-{n}")).unwrap();
            let new = NewThread {
                metadata: [(markers.next(), markers.json())].into(),
                ..NewThread::default()
            };
            db.create(&id, &new).await.unwrap();
            let mut owner = Owner::new(&id);
            owner.head = db.load(&id).await.unwrap().unwrap().head;
            let start = Commit {
                listing: Some(listing("graph", markers.json(), markers.json())),
                entry: Some(markers.bytes()),
                snapshot: Some(markers.bytes()),
                ..owner.start()
            };
            owner.save(db, start).await.unwrap();
            let record = owner.record_of_bytes("step", &markers.bytes());
            db.record(&record).await.unwrap();
            let ask = owner.pause(&[1]);
            let asked = ask.asked.iter().map(|row| AskedRow {
                body: markers.bytes(),
                ..row.clone()
            });
            let asked = asked.collect();
            let listed = Some(listing("graph", json!({}), markers.json()));
            let ask = Commit {
                asked,
                listing: listed,
                ..ask
            };
            owner.save(db, ask).await.unwrap();
            let answer = answer_by(1, &markers.next());
            assert_eq!(answer.interrupt, interrupt_id(1));
            db.answer(&id, &[answer]).await.unwrap();
            let change = ThreadAnnotation {
                metadata: [("topic".to_owned(), json!(markers.next()))].into(),
                ..ThreadAnnotation::default()
            };
            db.annotate(&id, &change).await.unwrap();
            let [source, copy] = ["source", "copy"]
                .map(|name| ThreadId::of_tenant(tenant, &format!("{name}-{n}")).unwrap());
            let start = noted(Owner::new(&source).start(), markers.json());
            db.save(&start).await.unwrap();
            db.copy(&source, None, &copy).await.unwrap();
            for key in 0..4 {
                let item = PutItem {
                    namespace: Namespace::of_tenant(tenant, ["facts"]).unwrap(),
                    key: format!("{n}-{key}"),
                    value: markers.json(),
                    ttl: None,
                };
                store.put(&item, Timestamp(1)).await.unwrap();
            }
        }
    }
    markers.0
}

/// Returns how many secrets are in the files of a folder, while the database is open.
fn found_in(folder: &Path) -> (usize, u64) {
    let (mut found, mut bytes) = (0, 0);
    for file in std::fs::read_dir(folder).unwrap() {
        let content = std::fs::read(file.unwrap().path()).unwrap();
        bytes += content.len() as u64;
        let windows = content.windows(MARKER.len());
        found += windows.filter(|part| *part == MARKER.as_bytes()).count();
    }
    (found, bytes)
}

#[test]
fn a_thousand_secrets_are_not_in_the_files_of_sqlite() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let sqlite = Sqlite::open(folder.path().join("db")).unwrap();
        let encryption = encryption(Arc::new(sqlite.clone()));
        let db = EncryptedCheckpointer::new(Arc::new(sqlite.clone()), encryption.clone());
        let store = EncryptedStore::new(Arc::new(sqlite.clone()), encryption);
        let written = write(&db, &store).await;
        assert!(written >= 1_000, "only {written} secrets");
        let (found, bytes) = found_in(folder.path());
        assert_eq!(found, 0, "secrets in {bytes} bytes");
        assert!(
            bytes > 500_000,
            "the files hold {bytes} bytes, which is too little"
        );
        let backup = tempfile::tempdir().unwrap();
        sqlite.backup(&backup.path().join("db")).await.unwrap();
        assert_eq!(found_in(backup.path()).0, 0, "in the backup");
    });
}

/// Without encryption the same search finds what was written: it is no search that cannot fail.
#[test]
fn the_secrets_are_found_where_nothing_is_encrypted() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let sqlite = Sqlite::open(folder.path().join("db")).unwrap();
        let written = write(&sqlite, &sqlite).await as usize;
        let (found, bytes) = found_in(folder.path());
        assert!(found >= written, "{found} of {written} in {bytes} bytes");
    });
}
