//! Each trial must notice the promise that its mutant breaks, and nothing where none is broken.

use super::{Backend, Plan, Test};

fn violations(backend: Backend, test: Test, trials: u64, mutant: Option<&str>) -> u64 {
    let plan = Plan {
        test,
        backend,
        trials,
        seconds: 2,
        every: 1..2,
        seed: 7,
        mutant: mutant.map(str::to_owned),
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
        assert!(violations(backend, Test::Kill, 12, Some("record-lost")) > 0);
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

const BOTH: [Backend; 2] = [Backend::Sqlite, Backend::Postgres];
