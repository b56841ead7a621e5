//! Each trial must notice the promise that its mutant breaks, and nothing where none is broken.

use super::{Backend, Plan, Test};

fn violations(test: Test, trials: u64, mutant: Option<&str>) -> u64 {
    violations_on(Backend::Sqlite, test, trials, mutant)
}

fn violations_on(backend: Backend, test: Test, trials: u64, mutant: Option<&str>) -> u64 {
    let plan = Plan {
        test,
        backend,
        trials,
        seed: 7,
        mutant: mutant.map(str::to_owned),
    };
    plan.perform().unwrap().violations
}

#[test]
fn calm_workers_break_nothing() {
    assert_eq!(violations(Test::Kill, 3, None), 0);
    assert_eq!(violations(Test::Race, 20, None), 0);
    assert_eq!(violations(Test::Zombie, 2, None), 0);
}

#[test]
fn a_lost_record_is_noticed_by_kill() {
    assert!(violations(Test::Kill, 12, Some("record-lost")) > 0);
}

#[test]
fn an_answer_that_is_taken_twice_is_noticed_by_race() {
    assert!(violations(Test::Race, 5, Some("answer-twice")) > 0);
}

#[test]
fn a_skipped_fence_is_noticed_by_zombie() {
    assert!(violations(Test::Zombie, 3, Some("fence-skipped")) > 0);
}
