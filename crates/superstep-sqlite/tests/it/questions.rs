//! Answers that come from many threads at once.

use std::sync::Arc;

use superstep_conformance::sample::{Owner, answer_by, thread};
use superstep_core::checkpoint::Checkpointer;
use superstep_sqlite::Sqlite;

use crate::kit::db;

#[test]
fn of_racing_answers_one_wins() {
    let db = db();
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    };
    let sqlite = Arc::new(Sqlite::open(db.path()).unwrap());
    runtime().block_on(async {
        let mut owner = Owner::started(&*sqlite, "a").await.unwrap();
        owner.save(&*sqlite, owner.pause(&[1, 2])).await.unwrap();
    });

    let race = |n: usize| {
        let sqlite = Arc::clone(&sqlite);
        move || {
            let by = n.to_string();
            runtime().block_on(sqlite.answer(&thread("a"), &[answer_by(1, &by), answer_by(2, &by)]))
        }
    };
    let racers: Vec<_> = (0..8).map(|n| std::thread::spawn(race(n))).collect();
    let ends: Vec<_> = racers
        .into_iter()
        .map(|racer| racer.join().unwrap())
        .collect();

    let winner = ends.iter().position(Result::is_ok).unwrap();
    assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 1);
    let loaded = runtime()
        .block_on(sqlite.load(&thread("a")))
        .unwrap()
        .unwrap();
    assert!(
        loaded
            .interrupts
            .iter()
            .all(|row| row.answered_by == winner.to_string())
    );
    assert_eq!(loaded.head.answers, 2);
}
