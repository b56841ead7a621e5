//! Replies that never arrive: what was asked is done, whoever asked does not know, and asks again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use superstep_conformance::sample::{Owner, answer_by};
use superstep_core::Seq;
use superstep_core::checkpoint::Checkpointer;
use superstep_core::error::CheckpointError;
use superstep_postgres::Postgres;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::kit::Schema;

/// Stands between a store and its server, and can lose a reply.
struct Proxy {
    address: SocketAddr,
    loses: Arc<AtomicBool>,
    /// Ends with the proxy.
    _serving: JoinSet<()>,
}

impl Proxy {
    async fn before(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let loses = Arc::new(AtomicBool::new(false));
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, server, Arc::clone(&loses)));
        Self {
            address,
            loses,
            _serving: serving,
        }
    }

    /// The next reply is kept back, and its connection closed.
    fn lose_next_reply(&self) {
        self.loses.store(true, Ordering::SeqCst);
    }
}

async fn serve(listener: TcpListener, server: String, loses: Arc<AtomicBool>) {
    let mut links = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let server = TcpStream::connect(&server).await.unwrap();
        links.spawn(pass(client, server, Arc::clone(&loses)));
    }
}

async fn pass(client: TcpStream, server: TcpStream, loses: Arc<AtomicBool>) {
    let (mut requests, mut to_client) = client.into_split();
    let (mut replies, mut to_server) = server.into_split();
    let there = tokio::io::copy(&mut requests, &mut to_server);
    let back = async {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = replies.read(&mut bytes).await {
            let is_lost = loses.swap(false, Ordering::SeqCst);
            if is_lost || to_client.write_all(&bytes[..count]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        _ = there => {}
        () = back => {}
    }
}

/// A store that reaches its server through a proxy, over one connection.
async fn store_behind_proxy(schema: &Schema) -> (Postgres, Proxy) {
    let config: Config = schema.url.parse().unwrap();
    let (hosts, ports) = (config.get_hosts(), config.get_ports());
    let ([Host::Tcp(host)], [port]) = (hosts, ports) else {
        panic!("a proxy needs one host and port, not {hosts:?}, {ports:?}");
    };
    let server = format!("{host}:{port}");
    let proxy = Proxy::before(server.clone()).await;
    let url = schema.url.replace(&server, &proxy.address.to_string());
    let mut options = schema.options();
    options.connections = 1;
    let store = Postgres::connect_with(&url, options).await.unwrap();
    (store, proxy)
}

#[tokio::test]
async fn a_commit_whose_reply_was_lost_is_applied_once() {
    let schema = Schema::new();
    let (db, proxy) = store_behind_proxy(&schema).await;
    let mut owner = Owner::started(&db, "a").await.unwrap();
    // The statement is known to the server from here on, so the next reply is that of the commit itself.
    owner.save(&db, owner.step()).await.unwrap();

    let commit = owner.step();
    proxy.lose_next_reply();
    assert!(db.save(&commit).await.unwrap_err().is_transient());
    owner.save(&db, commit).await.unwrap();
    let seqs: Vec<Seq> = db
        .entries(&owner.thread, Seq(0), 10)
        .await
        .unwrap()
        .iter()
        .map(|entry| entry.seq)
        .collect();
    assert_eq!(seqs, [Seq(1), Seq(2), Seq(3)]);
}

#[tokio::test]
async fn a_record_whose_reply_was_lost_is_kept_as_it_was() {
    let schema = Schema::new();
    let (db, proxy) = store_behind_proxy(&schema).await;
    let owner = Owner::started(&db, "a").await.unwrap();
    db.record(&owner.record_of_bytes("known", b"x"))
        .await
        .unwrap();

    proxy.lose_next_reply();
    let lost = db.record(&owner.record_of_bytes("key", b"first")).await;
    assert!(lost.unwrap_err().is_transient());
    let again = db
        .record(&owner.record_of_bytes("key", b"second"))
        .await
        .unwrap();
    assert_eq!(again, b"first");
}

#[tokio::test]
async fn an_answer_whose_reply_was_lost_is_stored_once_and_no_conflict() {
    let schema = Schema::new();
    let (db, proxy) = store_behind_proxy(&schema).await;
    let mut owner = Owner::started(&db, "a").await.unwrap();
    owner.save(&db, owner.pause(&[1, 2])).await.unwrap();
    db.answer(&owner.thread, &[answer_by(1, "me")])
        .await
        .unwrap();

    let mine = [answer_by(2, "me")];
    proxy.lose_next_reply();
    let lost = db.answer(&owner.thread, &mine).await;
    assert!(lost.unwrap_err().is_transient());
    let late = db.answer(&owner.thread, &[answer_by(2, "you")]).await;
    assert!(matches!(late, Err(CheckpointError::NotOpen { .. })));
    db.answer(&owner.thread, &mine).await.unwrap();
    let loaded = db.load(&owner.thread).await.unwrap().unwrap();
    assert_eq!(loaded.head.answers, 2);
    assert!(loaded.interrupts.iter().all(|row| row.answered_by == "me"));
}
