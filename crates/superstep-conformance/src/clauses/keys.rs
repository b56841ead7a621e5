//! The registry: API keys, and the keys that callers give their requests.

use superstep_core::ApiKeyId;
use superstep_core::checkpoint::Page;
use superstep_core::registry::{ApiKey, ClaimedRequest, Registry, RequestKey};

use super::registry::{NONE, NOW, STRANGERS, later};
use super::security::hostile_texts;
use crate::poll::join_all;
use crate::report::{Fault, Verdict, ensure, ensure_eq};
use crate::sample::ALL;

pub(super) async fn created_api_key_is_read_as_given(db: &dyn Registry) -> Verdict {
    ensure_eq!(db.api_key(key_id(1)).await?, None, "a key that never was");
    ensure_eq!(listed(db, "acme", ALL).await?, NONE, "the keys of none");
    let full = ApiKey {
        principal: "bob@example.org".into(),
        name: "deploys".into(),
        hash: *b"0123456789abcdef0123456789abcdef",
        permissions: 255,
        is_restricted: true,
        created: later(3),
        // Expired before it was created: it is found all the same, so that the caller can be told.
        expires: Some(NOW),
        ..new_key("acme", 1)
    };
    let bare = ApiKey {
        principal: String::new(),
        name: String::new(),
        permissions: 0,
        ..new_key("", 2)
    };
    for key in [&full, &bare] {
        ensure!(db.create_api_key(key).await?, "the key was not stored");
        let found = db.api_key(key.id).await?;
        ensure_eq!(found.as_ref(), Some(key), "the key that was created");
        let found = db.api_keys(&key.tenant, ALL).await?;
        ensure_eq!(found, std::slice::from_ref(key), "the keys of its tenant");
    }
    Ok(())
}

pub(super) async fn same_api_key_twice_is_stored_once(db: &dyn Registry) -> Verdict {
    let first = new_key("acme", 1);
    create(db, &first).await?;
    // The id says which tenant a caller belongs to, so it is not given twice, in whichever tenant.
    for tenant in ["acme", "other", ""] {
        let again = ApiKey {
            principal: "eve".into(),
            hash: [9; 32],
            ..new_key(tenant, 1)
        };
        ensure!(
            !db.create_api_key(&again).await?,
            "an id was stored twice, for tenant `{tenant}`"
        );
    }
    let found = db.api_key(first.id).await?;
    ensure_eq!(found, Some(first), "the key that was there");
    ensure_eq!(listed(db, "other", ALL).await?, NONE, "those of the other");
    Ok(())
}

pub(super) async fn racing_creates_of_one_api_key_store_one(db: &dyn Registry) -> Verdict {
    for round in 1..=8u8 {
        let keys: Vec<_> = (0..16u8)
            .map(|n| new_key(&format!("t{n}"), round))
            .collect();
        let results = join_all(keys.iter().map(|key| db.create_api_key(key))).await;
        let mut won = Vec::new();
        for (key, result) in keys.iter().zip(results) {
            if result? {
                won.push(key.clone());
            }
        }
        ensure_eq!(won.len(), 1, "winners of round {round}");
        let found = db.api_key(key_id(round)).await?;
        ensure_eq!(found, won.pop(), "the key of round {round}");
    }
    Ok(())
}

pub(super) async fn api_keys_are_newest_first_by_page(db: &dyn Registry) -> Verdict {
    for (n, ms) in [(3, 30), (1, 10), (2, 20), (5, 20), (4, 20)] {
        let key = ApiKey {
            created: later(ms),
            ..new_key("acme", n)
        };
        create(db, &key).await?;
        create(db, &new_key("other", n + 100)).await?;
    }
    // The order is the creation, not the clock.
    let all = listed(db, "acme", ALL).await?;
    ensure_eq!(all, [4, 5, 2, 1, 3], "the keys of the tenant");
    let page = |offset, limit| Page { limit, offset };
    let first = listed(db, "acme", page(0, 2)).await?;
    ensure_eq!(first, [4, 5], "the first page");
    let last = listed(db, "acme", page(4, 2)).await?;
    ensure_eq!(last, [3], "the last page");
    let after = listed(db, "acme", page(5, 2)).await?;
    ensure_eq!(after, NONE, "the page after it");
    Ok(())
}

pub(super) async fn expiry_of_an_api_key_only_comes_earlier(db: &dyn Registry) -> Verdict {
    let endless = new_key("acme", 1);
    let ending = ApiKey {
        expires: Some(later(500)),
        ..new_key("acme", 2)
    };
    for (key, steps) in [
        (&endless, [(900, 900), (950, 900), (100, 100), (200, 100)]),
        (&ending, [(900, 500), (500, 500), (100, 100), (200, 100)]),
    ] {
        create(db, key).await?;
        for (at, wanted) in steps {
            let wanted = ApiKey {
                expires: Some(later(wanted)),
                ..key.clone()
            };
            let expired = db.expire_api_key("acme", key.id, later(at)).await?;
            ensure_eq!(expired.as_ref(), Some(&wanted), "the key at {at}");
            let found = db.api_key(key.id).await?;
            ensure_eq!(found, Some(wanted), "the key as it is read at {at}");
        }
    }
    let none = db.expire_api_key("acme", key_id(3), NOW).await?;
    ensure_eq!(none, None, "a key that never was");
    Ok(())
}

pub(super) async fn tenants_are_apart_in_api_keys(db: &dyn Registry) -> Verdict {
    let own = new_key("acme", 1);
    create(db, &own).await?;
    for tenant in STRANGERS {
        let found = listed(db, tenant, ALL).await?;
        ensure_eq!(found, NONE, "the keys of tenant `{tenant}`");
        let expired = db.expire_api_key(tenant, own.id, NOW).await?;
        ensure_eq!(expired, None, "the key, expired by tenant `{tenant}`");
    }
    let found = db.api_key(own.id).await?;
    ensure_eq!(found, Some(own), "the key after all of that");
    Ok(())
}

pub(super) async fn hostile_texts_of_api_keys_survive(db: &dyn Registry) -> Verdict {
    let texts = hostile_texts();
    for (n, text) in (1..).zip(&texts) {
        let key = ApiKey {
            principal: text.clone(),
            name: text.clone(),
            ..new_key(text, n)
        };
        create(db, &key).await?;
        let found = db.api_key(key.id).await?;
        ensure_eq!(found.as_ref(), Some(&key), "the key of {text:?}");
        let found = db.api_keys(text, ALL).await?;
        ensure_eq!(found, [key], "the keys of tenant {text:?}");
    }
    Ok(())
}

pub(super) async fn repeated_request_is_recognised(db: &dyn Registry) -> Verdict {
    let first = request("a", 1, 0);
    ensure_eq!(claim(db, &first).await?, ClaimedRequest::New, "the first");
    for ms in [0, 5, 99] {
        let again = request("a", 1, ms);
        let claimed = claim(db, &again).await?;
        ensure_eq!(claimed, ClaimedRequest::Repeated(NOW), "again after {ms}");
    }
    let other = claim(db, &request("b", 1, 0)).await?;
    ensure_eq!(other, ClaimedRequest::New, "another key");
    Ok(())
}

pub(super) async fn other_request_with_the_same_key_is_different(db: &dyn Registry) -> Verdict {
    claim(db, &request("a", 1, 0)).await?;
    for ms in [0, 50] {
        let other = claim(db, &request("a", 2, ms)).await?;
        ensure_eq!(other, ClaimedRequest::Different, "another request");
    }
    // It has not taken the place of the first, nor made it last longer.
    let first = claim(db, &request("a", 1, 60)).await?;
    ensure_eq!(first, ClaimedRequest::Repeated(NOW), "the first request");
    let later = claim(db, &request("a", 2, 100)).await?;
    ensure_eq!(later, ClaimedRequest::New, "the other one when it is free");
    Ok(())
}

pub(super) async fn request_keys_of_callers_are_apart(db: &dyn Registry) -> Verdict {
    let callers = [
        ("", "ann"),
        ("", "bob"),
        ("acme", "ann"),
        ("acme", ""),
        ("acm", "eann"),
        ("acme", "anna"),
        ("Acme", "ann"),
    ];
    let by = |(tenant, principal): (&str, &str), fingerprint: u8| RequestKey {
        tenant: tenant.to_owned(),
        principal: principal.to_owned(),
        ..request("a", fingerprint, 0)
    };
    for (n, caller) in (1..).zip(callers) {
        let claimed = claim(db, &by(caller, n)).await?;
        ensure_eq!(claimed, ClaimedRequest::New, "the request of {caller:?}");
    }
    for (n, caller) in (1..).zip(callers) {
        let claimed = claim(db, &by(caller, n)).await?;
        ensure_eq!(claimed, ClaimedRequest::Repeated(NOW), "that of {caller:?}");
    }
    Ok(())
}

pub(super) async fn expired_request_key_is_free(db: &dyn Registry) -> Verdict {
    claim(db, &request("a", 1, 0)).await?;
    let last = claim(db, &request("a", 1, 99)).await?;
    ensure_eq!(last, ClaimedRequest::Repeated(NOW), "just before its end");
    let next = claim(db, &request("a", 2, 100)).await?;
    ensure_eq!(next, ClaimedRequest::New, "another request at its end");
    let again = claim(db, &request("a", 2, 150)).await?;
    ensure_eq!(again, ClaimedRequest::Repeated(later(100)), "it again");
    let first = claim(db, &request("a", 1, 150)).await?;
    ensure_eq!(first, ClaimedRequest::Different, "the first request");
    Ok(())
}

pub(super) async fn racing_requests_have_one_first(db: &dyn Registry) -> Verdict {
    for round in 0..8u64 {
        // Each round after the first finds a key that has expired.
        let requests: Vec<_> = (0..16u64)
            .map(|n| request("a", 1, round * 1_000 + n))
            .collect();
        let results = join_all(requests.iter().map(|request| db.claim_request(request))).await;
        let (mut first, mut repeated) = (Vec::new(), Vec::new());
        for (request, result) in requests.iter().zip(results) {
            match result? {
                ClaimedRequest::New => first.push(request.at),
                ClaimedRequest::Repeated(at) => repeated.push(at),
                ClaimedRequest::Different => {
                    return Err(Fault::new("the same request is another one".into()));
                }
            }
        }
        ensure_eq!(first.len(), 1, "first requests of round {round}");
        ensure!(
            repeated.iter().all(|at| *at == first[0]),
            "round {round} repeats {repeated:?}, the first came at {first:?}"
        );
    }
    Ok(())
}

pub(super) async fn sweep_deletes_expired_request_keys(db: &dyn Registry) -> Verdict {
    ensure_eq!(db.sweep_requests(NOW, 10).await?, 0, "swept of none");
    for (n, key) in (0..).zip(["a", "b", "c", "d"]) {
        claim(db, &request(key, 1, n * 10)).await?;
    }
    ensure_eq!(db.sweep_requests(later(99), 10).await?, 0, "swept early");
    ensure_eq!(db.sweep_requests(later(120), 2).await?, 2, "swept of three");
    ensure_eq!(db.sweep_requests(later(120), 2).await?, 1, "swept then");
    ensure_eq!(db.sweep_requests(later(120), 2).await?, 0, "swept after");
    let kept = claim(db, &request("d", 1, 40)).await?;
    ensure_eq!(kept, ClaimedRequest::Repeated(later(30)), "what was kept");
    let swept = claim(db, &request("a", 2, 40)).await?;
    ensure_eq!(swept, ClaimedRequest::New, "what was swept");
    Ok(())
}

pub(super) async fn hostile_texts_of_requests_are_only_texts(db: &dyn Registry) -> Verdict {
    let texts = hostile_texts();
    let hostile = |text: &String, fingerprint: u8| RequestKey {
        tenant: text.clone(),
        principal: text.clone(),
        ..request(text, fingerprint, 0)
    };
    let in_one_tenant = |text: &String, fingerprint: u8| request(text, fingerprint, 0);
    for (n, text) in (1..).zip(&texts) {
        for request in [hostile(text, n), in_one_tenant(text, n)] {
            let claimed = claim(db, &request).await?;
            ensure_eq!(claimed, ClaimedRequest::New, "the key {text:?}");
        }
    }
    for (n, text) in (1..).zip(&texts) {
        for request in [hostile(text, n), in_one_tenant(text, n)] {
            let claimed = claim(db, &request).await?;
            ensure_eq!(claimed, ClaimedRequest::Repeated(NOW), "again {text:?}");
        }
    }
    Ok(())
}

pub(super) fn key_id(n: u8) -> ApiKeyId {
    ApiKeyId::from_bytes([n; 16])
}

/// An API key that never expires.
pub(super) fn new_key(tenant: &str, n: u8) -> ApiKey {
    ApiKey {
        id: key_id(n),
        tenant: tenant.to_owned(),
        principal: "ann".into(),
        name: format!("key {n}"),
        hash: [n; 32],
        permissions: 3,
        is_restricted: false,
        created: NOW,
        expires: None,
    }
}

/// Creates an API key that must be stored.
async fn create(db: &dyn Registry, key: &ApiKey) -> Verdict {
    ensure!(db.create_api_key(key).await?, "{} was not stored", key.id);
    Ok(())
}

async fn listed(db: &dyn Registry, tenant: &str, page: Page) -> Result<Vec<u8>, Fault> {
    let found = db.api_keys(tenant, page).await?;
    Ok(found.iter().map(|key| key.id.to_bytes()[0]).collect())
}

/// A request that comes so many milliseconds after [`NOW`], and whose key is free again 100 milliseconds later.
pub(super) fn request(key: &str, fingerprint: u8, ms: u64) -> RequestKey {
    RequestKey {
        tenant: "acme".into(),
        principal: "ann".into(),
        key: key.to_owned(),
        fingerprint: [fingerprint; 32],
        at: later(ms),
        expires: later(ms + 100),
    }
}

async fn claim(db: &dyn Registry, request: &RequestKey) -> Result<ClaimedRequest, Fault> {
    Ok(db.claim_request(request).await?)
}
