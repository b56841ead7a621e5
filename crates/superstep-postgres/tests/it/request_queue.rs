//! The queue of requests: each is stored once, read by its id, and swept or erased.

use superstep_conformance::sample::Owner;
use superstep_core::checkpoint::Status;
use superstep_core::driver::RequestQueue;
use superstep_core::{RunId, ThreadId, Timestamp};

use crate::kit;

fn id(n: u8) -> RunId {
    RunId::from_bytes([n; 16])
}

fn thread(name: &str) -> ThreadId {
    ThreadId::of_tenant("acme", name).unwrap()
}

#[tokio::test]
async fn the_first_request_under_an_id_is_kept() {
    let db = kit::db().await;
    let postgres = &*db;
    let at = Timestamp(5);
    let kept = postgres
        .put(id(1), &thread("a"), b"first", at)
        .await
        .unwrap();
    assert_eq!(kept, b"first");
    let kept = postgres
        .put(id(1), &thread("b"), b"second", at)
        .await
        .unwrap();
    assert_eq!(kept, b"first");
    let found = RequestQueue::get(postgres, id(1)).await.unwrap().unwrap();
    assert_eq!(
        (found.thread, found.request),
        (thread("a"), b"first".to_vec())
    );
    assert!(RequestQueue::get(postgres, id(2)).await.unwrap().is_none());
}

#[tokio::test]
async fn the_clock_is_the_servers_and_goes_on() {
    let db = kit::db().await;
    let first = RequestQueue::now(&*db).await.unwrap().unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let second = RequestQueue::now(&*db).await.unwrap().unwrap();
    assert!(
        (15..10_000).contains(&(second.0 - first.0)),
        "{first:?} {second:?}"
    );
    // A year after this was written, at least, and in milliseconds.
    assert!((1_700_000_000_000..10_000_000_000_000).contains(&first.0));
}

#[tokio::test]
async fn racing_requests_agree() {
    let db = kit::db().await;
    let postgres = &*db;
    let bodies: Vec<Vec<u8>> = (0..16).map(|n| vec![n]).collect();
    let (to, at) = (thread("a"), Timestamp(5));
    let mut kept = Vec::new();
    let mut puts = tokio::task::JoinSet::new();
    for body in bodies {
        let (postgres, to) = (postgres.clone(), to.clone());
        puts.spawn(async move { postgres.put(id(1), &to, &body, at).await.unwrap() });
    }
    while let Some(put) = puts.join_next().await {
        kept.push(put.unwrap());
    }
    kept.dedup();
    assert_eq!(kept.len(), 1);
}

#[tokio::test]
async fn the_first_reply_stays() {
    let db = kit::db().await;
    let postgres = &*db;
    postgres
        .put(id(1), &thread("a"), b"request", Timestamp(5))
        .await
        .unwrap();
    postgres.reply(id(1), b"first").await.unwrap();
    postgres.reply(id(1), b"second").await.unwrap();
    let found = RequestQueue::get(postgres, id(1)).await.unwrap().unwrap();
    assert_eq!(found.reply.unwrap(), b"first");
}

#[tokio::test]
async fn old_requests_are_swept_a_few_at_a_time() {
    let db = kit::db().await;
    let postgres = &*db;
    for n in 1..=5_u8 {
        let at = Timestamp(i64::from(n));
        postgres
            .put(id(n), &thread("a"), b"request", at)
            .await
            .unwrap();
    }
    assert_eq!(
        RequestQueue::sweep(postgres, Timestamp(4), 2)
            .await
            .unwrap(),
        2
    );
    assert_eq!(
        RequestQueue::sweep(postgres, Timestamp(4), 9)
            .await
            .unwrap(),
        1
    );
    assert!(RequestQueue::get(postgres, id(3)).await.unwrap().is_none());
    assert!(RequestQueue::get(postgres, id(4)).await.unwrap().is_some());
}

#[tokio::test]
async fn a_request_to_a_running_thread_is_not_swept() {
    let db = kit::db().await;
    let postgres = &*db;
    let runs = thread("runs");
    let mut run = Owner::started_at(postgres, &runs).await.unwrap();
    for (n, name) in [(1, "runs"), (2, "new"), (3, "runs")] {
        let at = Timestamp(i64::from(n));
        postgres
            .put(id(n), &thread(name), b"request", at)
            .await
            .unwrap();
    }
    let sweep = async || {
        RequestQueue::sweep(postgres, Timestamp(9), 1)
            .await
            .unwrap()
    };
    // The oldest request does not hide the one that may go.
    assert_eq!(sweep().await, 1);
    assert_eq!(sweep().await, 0);
    for (n, is_kept) in [(1, true), (2, false), (3, true)] {
        let found = RequestQueue::get(postgres, id(n)).await.unwrap();
        assert_eq!(found.is_some(), is_kept, "request {n}");
    }
    run.save(postgres, run.stop(Status::Idle)).await.unwrap();
    assert_eq!(sweep().await + sweep().await, 2);
}

#[tokio::test]
async fn an_erased_tenant_has_no_requests_and_others_keep_theirs() {
    let db = kit::db().await;
    let postgres = &*db;
    let tenants = ["", "acme", "acme-corp", "acm"];
    for (n, tenant) in (1..).zip(tenants) {
        let thread = ThreadId::of_tenant(tenant, "t").unwrap();
        postgres
            .put(id(n), &thread, b"request", Timestamp(i64::MAX))
            .await
            .unwrap();
        postgres.reply(id(n), b"refused").await.unwrap();
    }
    for (tenant, erased) in [
        ("ACME", 0),
        ("acme%", 0),
        ("a_me", 0),
        ("acme\0", 0),
        ("acme", 1),
        ("acme", 0),
    ] {
        let found = RequestQueue::erase_tenant(postgres, tenant).await.unwrap();
        assert_eq!(found, erased, "requests of {tenant:?}");
    }
    for (n, tenant) in (1..).zip(tenants) {
        let found = RequestQueue::get(postgres, id(n)).await.unwrap();
        assert_eq!(found.is_some(), tenant != "acme", "{tenant:?}");
    }
}
