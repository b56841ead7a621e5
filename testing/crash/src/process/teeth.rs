//! Each trial must notice the promise that its mutant breaks, and nothing where none is broken.

use super::{Backend, Plan, Test};
use services::restate::Layout;

fn violations(backend: Backend, test: Test, trials: u64, mutant: Option<&str>) -> u64 {
    let plan = Plan {
        test,
        backend,
        trials,
        threads: 60,
        seconds: 2,
        every: 1..2,
        seed: 7,
        mutant: mutant.map(str::to_owned),
        layout: Layout::Single,
    };
    plan.perform().unwrap().violations
}

#[test]
fn calm_workers_break_nothing() {
    let violations = |test, trials| violations(Backend::Sqlite, test, trials, None);
    assert_eq!(violations(Test::Kill, 3), 0);
    assert_eq!(violations(Test::Race, 20), 0);
    assert_eq!(violations(Test::Zombie, 2), 0);
    assert_eq!(violations(Test::Chain, 1), 0);
}

#[test]
fn a_lost_record_is_noticed_by_kill() {
    for backend in BOTH {
        // A kill has to come between a record and its commit, and on a busy machine few do.
        let noticed = |_| violations(backend, Test::Kill, 12, Some("record-lost")) > 0;
        assert!((0..6).any(noticed));
    }
}

#[test]
fn an_answer_that_is_taken_twice_is_noticed_by_race() {
    for backend in BOTH {
        assert!(violations(backend, Test::Race, 5, Some("answer-twice")) > 0);
    }
}

#[test]
fn a_skipped_fence_is_noticed_by_zombie() {
    for backend in BOTH {
        assert!(violations(backend, Test::Zombie, 3, Some("fence-skipped")) > 0);
    }
}

#[test]
fn a_skipped_fence_is_noticed_by_chain() {
    for backend in BOTH {
        assert!(violations(backend, Test::Chain, 1, Some("fence-skipped")) > 0);
    }
}

#[test]
fn a_store_that_is_not_asked_again_is_noticed_by_restarts() {
    let impatient = Some("impatient");
    assert!(violations(Backend::Postgres, Test::Restarts, 60, impatient) > 0);
}

#[test]
fn recoveries_that_ignore_leases_are_noticed_by_recover() {
    for backend in BOTH {
        assert_eq!(violations(backend, Test::Recover, 1, None), 0);
        assert!(violations(backend, Test::Recover, 1, Some("no-lease")) > 0);
    }
}

#[test]
fn a_lost_record_is_noticed_by_cluster() {
    let lost = Some("record-lost");
    assert!(violations(Backend::Cluster, Test::Programs, 12, lost) > 0);
}

#[test]
fn a_lost_answer_is_noticed_by_leaders() {
    let lost = Some("answer-lost");
    assert!(violations(Backend::Cluster, Test::Leaders, 1, lost) > 0);
}

#[test]
fn an_answer_that_is_taken_twice_is_noticed_by_race_on_a_cluster() {
    let twice = Some("answer-twice");
    assert!(violations(Backend::Cluster, Test::Race, 5, twice) > 0);
}

#[test]
fn a_name_that_is_used_again_is_noticed_by_upgrade() {
    let reused = Some("name-reused");
    assert!(violations(Backend::Cluster, Test::Upgrade, 1, reused) > 0);
}

#[test]
fn a_lost_record_is_noticed_by_fanout() {
    let lost = Some("record-lost");
    assert!(violations(Backend::Cluster, Test::Fanout, 1, lost) > 0);
}

#[test]
fn a_lost_answer_is_noticed_by_server() {
    for backend in BOTH {
        assert!(violations(backend, Test::Server, 1, Some("answer-lost")) > 0);
    }
}

#[test]
fn a_lost_answer_is_noticed_by_server_on_a_cluster() {
    let lost = Some("answer-lost");
    assert!(violations(Backend::Cluster, Test::Server, 1, lost) > 0);
}

#[test]
fn a_lost_record_is_noticed_by_server() {
    // A kill has to come between a record and its commit, as above.
    let noticed = |_| violations(Backend::Sqlite, Test::Server, 2, Some("record-lost")) > 0;
    assert!((0..6).any(noticed));
}

#[test]
fn an_event_that_is_skipped_is_noticed_by_streams() {
    let skipped = Some("event-skipped");
    assert!(violations(Backend::Sqlite, Test::Streams, 6, skipped) > 0);
}

#[test]
fn a_lost_answer_is_noticed_by_outages() {
    let lost = Some("answer-lost");
    assert!(violations(Backend::Postgres, Test::Outages, 20, lost) > 0);
}

#[test]
fn a_lost_answer_is_noticed_by_outages_on_a_cluster() {
    let lost = Some("answer-lost");
    assert!(violations(Backend::Cluster, Test::Outages, 20, lost) > 0);
}

#[test]
fn recoveries_that_ignore_leases_are_noticed_by_slow() {
    for backend in BOTH {
        assert_eq!(violations(backend, Test::Slow, 1, None), 0);
        assert!(violations(backend, Test::Slow, 1, Some("no-lease")) > 0);
    }
}

const BOTH: [Backend; 2] = [Backend::Sqlite, Backend::Postgres];
