//! What a thread costs on disk.

use serde_json::json;
use superstep_core::checkpoint::{AskedRow, Checkpointer, Commit, Status};
use superstep_core::{InterruptId, Seq};
use superstep_postgres::Postgres;

use crate::kit::{Owner, asked, db, listing, thread};

/// A state of 300 bytes, an input of 420, a stop of 60, a question of 200, six terms.
#[tokio::test]
async fn a_parked_thread_costs_less_than_four_kib() {
    let db = db().await;
    let empty = db.bytes().await.unwrap();
    let threads = 2_000;
    let mut owners = Vec::new();
    for n in 0..threads {
        owners.push(started(&db, n).await);
    }
    // All are started before the first is parked, so that their rows are far apart.
    for (n, owner) in owners.iter_mut().enumerate() {
        park(&db, owner, n).await;
    }
    let each = (db.bytes().await.unwrap() - empty) / threads as u64;
    // 3.2 KiB when this was written: every row has a header of 28 bytes, and a changed one stays until it is vacuumed.
    assert!(each <= 4_096, "{each} bytes");
}

#[tokio::test]
async fn a_long_thread_costs_about_its_entries() {
    let db = db().await;
    let mut owner = Owner::started(&db, "a").await;
    let empty = db.bytes().await.unwrap();
    for _ in 0..400 {
        let commit = Commit {
            entry: Some(vec![7; 270]),
            ..owner.step()
        };
        owner.save(&db, commit).await.unwrap();
    }
    let grown = db.bytes().await.unwrap() - empty;
    // A third more, the maps of free and visible pages, and the pages a table grows by at once.
    assert!(grown < 400 * 270 * 133 / 100 + 98_304, "{grown} bytes");
    assert_eq!(
        db.entries(&owner.thread, Seq(1), 1_000)
            .await
            .unwrap()
            .len(),
        400
    );
}

async fn started(db: &Postgres, n: usize) -> Owner {
    // Names come in no order, as random ids do.
    let hash = (n as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834);
    let mut owner = Owner::new(thread(&format!("{hash:036x}")));
    let listing = Some(listing(json!({ "user": format!("user-{n}") }), state(n)));
    owner
        .save(
            db,
            Commit {
                entry: Some(vec![1; 420]),
                listing,
                ..owner.start()
            },
        )
        .await
        .unwrap();
    owner
}

async fn park(db: &Postgres, owner: &mut Owner, n: usize) {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&(n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    let asked = AskedRow {
        id: InterruptId::from_bytes(id),
        body: vec![3; 200],
        ..asked(1)
    };
    let listing = Some(listing(json!({ "user": format!("user-{n}") }), state(n)));
    let stop = Commit {
        entry: Some(vec![2; 60]),
        asked: vec![asked],
        listing,
        ..owner.stop(Status::Paused)
    };
    owner.save(db, stop).await.unwrap();
}

fn state(n: usize) -> serde_json::Value {
    json!({
        "topic": format!("topic {n}"),
        "count": n,
        "done": false,
        "messages": [{ "id": n, "role": "user", "text": "x".repeat(200) }],
    })
}
