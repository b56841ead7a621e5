//! The cache of nodes: what it keeps, until when, and what it forgets.

use superstep_core::Timestamp;
use superstep_core::driver::NodeCache;

use super::security::hostile_texts;
use crate::report::{Fault, Verdict, ensure_eq};

pub(super) async fn missing_result_is_none(db: &dyn NodeCache) -> Verdict {
    db.put("graph/node/1", b"one".to_vec(), None).await?;
    for key in ["graph/node/2", "graph/node/", "graph/node/11", ""] {
        ensure_eq!(found(db, key, 0).await?, None, "what is under {key:?}");
    }
    Ok(())
}

pub(super) async fn result_is_found_until_it_expires(db: &dyn NodeCache) -> Verdict {
    db.put("lasting", b"one".to_vec(), None).await?;
    db.put("short", b"two".to_vec(), Some(Timestamp(10)))
        .await?;
    for (now, wanted) in [(0, Some("two")), (9, Some("two")), (10, None), (11, None)] {
        ensure_eq!(
            found(db, "short", now).await?.as_deref(),
            wanted,
            "what goes at 10, as of {now}"
        );
    }
    ensure_eq!(
        found(db, "lasting", i64::MAX).await?.as_deref(),
        Some("one"),
        "what never goes"
    );
    Ok(())
}

pub(super) async fn put_replaces_a_result_and_its_end(db: &dyn NodeCache) -> Verdict {
    db.put("key", b"one".to_vec(), Some(Timestamp(10))).await?;
    db.put("key", b"again".to_vec(), None).await?;
    ensure_eq!(
        found(db, "key", 100).await?.as_deref(),
        Some("again"),
        "a result that was replaced"
    );
    Ok(())
}

pub(super) async fn clear_forgets_what_begins_so_and_nothing_else(db: &dyn NodeCache) -> Verdict {
    let keys = ["g/a/1", "g/a/2", "g/a_b/1", "g/axb/1", "g/%/1", "G/a/1"];
    for (cleared, gone) in [
        ("g/a_b/", &["g/a_b/1"] as &[&str]),
        ("g/%", &["g/%/1"]),
        ("g/a/", &["g/a/1", "g/a/2"]),
        ("/", &[]),
        ("g/a/1", &["g/a/1"]),
        ("", &keys),
    ] {
        for key in keys {
            db.put(key, key.as_bytes().to_vec(), None).await?;
        }
        db.clear(cleared).await?;
        for key in keys {
            let wanted = Some(key).filter(|key| !gone.contains(key));
            ensure_eq!(
                found(db, key, 0).await?.as_deref(),
                wanted,
                "what is under {key:?} after {cleared:?} was cleared"
            );
        }
    }
    Ok(())
}

pub(super) async fn clear_tenant_forgets_the_results_of_one_tenant(db: &dyn NodeCache) -> Verdict {
    let none = "00000000000000000000000000000000";
    let sent = "0123456789abcdef0123456789abcdef";
    let of_a_tenant = |tenant: &str| {
        [none, sent].map(|payload| format!("graph/node/v1/{payload}{tenant}/own/@acme/x"))
    };
    let mut acme = Vec::from(of_a_tenant("@acme"));
    acme.push(format!("graph/node/v1/{sent}@acme/"));
    let mut others: Vec<String> = ["@acme-corp", "@acm", "@Acme", "@a", "@a.me"]
        .iter()
        .flat_map(|tenant| of_a_tenant(tenant))
        .collect();
    // Not of a node: too few parts, or no hash of a payload.
    others.extend(["@acme", "/@acme/", "a/b/c/d@acme/e", "graph/node/", ""].map(str::to_owned));
    others.push(format!("graph/node/v1/{sent}@acme"));
    others.push(format!("graph/{sent}@acme/v1/{sent}x@acme/"));
    others.extend(hostile_texts());
    let unnamed = of_a_tenant("");
    for key in acme.iter().chain(&others).chain(&unnamed) {
        db.put(key, key.as_bytes().to_vec(), None).await?;
    }
    for (tenant, cleared) in [
        ("acme", 3),
        ("acme", 0),
        ("a_me", 0),
        ("acme\0", 0),
        ("", 2),
    ] {
        let found = db.clear_tenant(tenant).await?;
        ensure_eq!(found, cleared, "results of tenant {tenant:?}");
    }
    for key in acme.iter().chain(&unnamed) {
        ensure_eq!(found(db, key, 0).await?, None, "what is under {key:?}");
    }
    for key in &others {
        ensure_eq!(
            found(db, key, 0).await?.as_ref(),
            Some(key),
            "what is under {key:?}"
        );
    }
    Ok(())
}

pub(super) async fn sweep_deletes_what_has_expired(db: &dyn NodeCache) -> Verdict {
    db.put("lasting", b"one".to_vec(), None).await?;
    for expires in [10, 11, 12, 20] {
        let key = format!("until {expires}");
        db.put(&key, b"two".to_vec(), Some(Timestamp(expires)))
            .await?;
    }
    for (now, limit, swept) in [(9, 10, 0), (15, 2, 2), (15, 2, 1), (15, 2, 0)] {
        let found = db.sweep(Timestamp(now), limit).await?;
        ensure_eq!(found, swept, "results swept at {now}, at most {limit}");
    }
    // As of a time when nothing had expired: what was swept is deleted and not only hidden.
    for (key, is_there) in [
        ("lasting", true),
        ("until 10", false),
        ("until 11", false),
        ("until 12", false),
        ("until 20", true),
    ] {
        ensure_eq!(
            found(db, key, 0).await?.is_some(),
            is_there,
            "whether there is a result under {key:?}"
        );
    }
    Ok(())
}

pub(super) async fn hostile_and_long_keys_are_only_keys(db: &dyn NodeCache) -> Verdict {
    let mut keys = hostile_texts();
    keys.push("k".repeat(10_000));
    for key in &keys {
        db.put(key, key.as_bytes().to_vec(), None).await?;
    }
    for key in &keys {
        ensure_eq!(
            found(db, key, 0).await?.as_ref(),
            Some(key),
            "what is under {key:?}"
        );
    }
    Ok(())
}

/// As text, which all results here are.
async fn found(db: &dyn NodeCache, key: &str, now: i64) -> Result<Option<String>, Fault> {
    let found = db.get(key, Timestamp(now)).await?;
    Ok(found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}
