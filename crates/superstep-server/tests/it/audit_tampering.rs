//! Someone who can write to the database changes the audit log there, over a connection of their own. The verifier finds it.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use superstep::prelude::*;
use superstep::registry::AuditHead;
use superstep_conformance::Prng;
use superstep_server::{AuditKey, AuditProblem, AuditVerifier, Server, verify_audit_log};
use superstep_sqlite::Sqlite;

use crate::audit::key;
use crate::kit::Client;

const ROUNDS: usize = 200;

/// Keeps the log as it is, for this connection alone.
const KEEP: &str = "
    CREATE TEMP TABLE whole AS SELECT * FROM main.audit;
    CREATE TEMP TABLE whole_head AS SELECT * FROM main.audit_head";

/// Puts the log back.
const RESTORE: &str = "
    BEGIN IMMEDIATE;
    DELETE FROM main.audit;
    DELETE FROM main.audit_head;
    INSERT INTO main.audit SELECT * FROM whole;
    INSERT INTO main.audit_head SELECT * FROM whole_head;
    COMMIT";

/// A log that is whole in itself, but not the one that was. Only an end that was noted elsewhere shows that.
const SET_BACK: &str = "cut off, and the end set back";

/// Ways to tamper, each with its statements. `{at}` and `{other}` are the numbers of two entries.
const WAYS: &[(&str, &str)] = &[
    ("deleted", "DELETE FROM audit WHERE seq = {at}"),
    (
        "deleted, and the others numbered again",
        "DELETE FROM audit WHERE seq = {at};
         UPDATE audit SET seq = -seq WHERE seq > {at};
         UPDATE audit SET seq = -seq - 1 WHERE seq < 0;
         UPDATE audit_head SET seq = seq - 1",
    ),
    ("cut off", "DELETE FROM audit WHERE seq >= {at}"),
    (
        SET_BACK,
        "DELETE FROM audit WHERE seq >= {at};
         DELETE FROM audit_head;
         INSERT INTO audit_head SELECT tenant, seq, hash FROM audit ORDER BY seq DESC LIMIT 1",
    ),
    ("cut off at the beginning", "DELETE FROM audit WHERE seq <= {at}"),
    ("the end deleted", "DELETE FROM audit_head"),
    ("the end set back", "UPDATE audit_head SET seq = seq - 1"),
    (
        "reordered",
        "UPDATE audit SET seq = -1 WHERE seq = {at};
         UPDATE audit SET seq = {at} WHERE seq = {other};
         UPDATE audit SET seq = {other} WHERE seq = -1",
    ),
    (
        "replaced by another one",
        "UPDATE audit SET (at, principal, action, resource, detail, previous, hash) = (
             SELECT at, principal, action, resource, detail, previous, hash
             FROM audit AS other WHERE other.seq = {other})
         WHERE seq = {at}",
    ),
    (
        "inserted",
        "UPDATE audit SET seq = -seq WHERE seq >= {at};
         UPDATE audit SET seq = 1 - seq WHERE seq < 0;
         INSERT INTO audit
             SELECT tenant, {at}, at, principal, action, resource, detail, previous, hash
             FROM audit WHERE seq = {at} + 1;
         UPDATE audit_head SET seq = seq + 1",
    ),
    ("time", "UPDATE audit SET at = at + 1 WHERE seq = {at}"),
    (
        "principal",
        "UPDATE audit SET principal = principal || 'x' WHERE seq = {at}",
    ),
    (
        "action",
        "UPDATE audit SET action = action || 's' WHERE seq = {at}",
    ),
    (
        "resource",
        "UPDATE audit SET resource = resource || '/' WHERE seq = {at}",
    ),
    (
        "boundary between two fields",
        "UPDATE audit SET action = substr(action, 1, length(action) - 1),
             resource = substr(action, -1) || resource
         WHERE seq = {at}",
    ),
    (
        "detail",
        "UPDATE audit SET detail = detail || ' ' WHERE seq = {at}",
    ),
    (
        "hash",
        "UPDATE audit SET hash = randomblob(32) WHERE seq = {at}",
    ),
    (
        "hash of the one before",
        "UPDATE audit SET previous = randomblob(32) WHERE seq = {at}",
    ),
    (
        "written again without the key",
        "DELETE FROM main.audit;
         DELETE FROM main.audit_head;
         INSERT INTO main.audit
             SELECT (SELECT tenant FROM whole_head), seq, at, principal, action, resource, detail, previous, hash
             FROM forged.audit;
         INSERT INTO main.audit_head
             SELECT (SELECT tenant FROM whole_head), seq, hash FROM forged.audit_head",
    ),
];

/// Has a server write a log of forty entries, and returns the store.
async fn written_log(file: &Path, key: Option<AuditKey>) -> Sqlite {
    let store = Sqlite::open(file).unwrap();
    let runtime = Runtime::new(store.clone());
    let builder = Server::builder(runtime, Arc::new(store.clone())).audit(key);
    let client = Client::of(builder).await;
    for _ in 0..20 {
        client.thread().await;
    }
    client.drain().await;
    store
}

#[tokio::test]
async fn two_hundred_of_two_hundred_tamperings_with_the_file_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let [file, forged] = ["audit.db", "forged.db"].map(|name| folder.path().join(name));
    let store = written_log(&file, Some(key())).await;
    let _forged = written_log(&forged, None).await;
    let verify = async |noted: Option<AuditHead>| -> Result<AuditHead, AuditProblem> {
        let mut verifier = AuditVerifier::new("", Some(&key()));
        if let Some(noted) = noted {
            verifier = verifier.anchor(noted);
        }
        verify_audit_log(&store, "", verifier).await
    };
    let noted = verify(None).await.unwrap();
    assert_eq!(noted.seq, 40);

    let stranger = Connection::open(&file).unwrap();
    stranger.execute_batch(KEEP).unwrap();
    let path = forged.to_str().unwrap();
    stranger.execute("ATTACH ?1 AS forged", [path]).unwrap();
    let mut random = Prng::new(22);
    let length = noted.seq as usize;
    for round in 0..ROUNDS {
        let (how, sql) = WAYS[round % WAYS.len()];
        let at = random.below(length);
        let other = (at + 1 + random.below(length - 1)) % length;
        let sql = sql.replace("{at}", &(at + 1).to_string());
        let sql = sql.replace("{other}", &(other + 1).to_string());
        let tampering = format!("BEGIN IMMEDIATE; {sql}; COMMIT");
        stranger.execute_batch(&tampering).unwrap();
        let found = verify((how == SET_BACK).then_some(noted)).await;
        assert!(
            found.is_err(),
            "round {round}: {how} at entry {} was not found",
            at + 1
        );
        stranger.execute_batch(RESTORE).unwrap();
        assert_eq!(verify(Some(noted)).await.unwrap(), noted, "round {round}");
    }
}
