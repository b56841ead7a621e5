//! The simulator: clean on the real machine, the same every time, and with teeth.

use superstep_conformance::sim::{Mutant, catch, simulate, sweep};

/// Where the seeds of these tests begin.
const FIRST: u64 = 1;

#[test]
fn random_programs_survive_every_fault() {
    assert_clean(FIRST..FIRST + 200);
}

/// Tasks of a failed child with the ids of later ones; a failure that a drain had handled too early; a child that was entered
/// again after its handler failed; a breakpoint behind a failure.
#[test]
fn seeds_that_found_something_stay_clean() {
    assert_clean([3_420_136_553, 3_420_136_969, 3_420_149_275, 3_420_150_592]);
}

fn assert_clean(seeds: impl IntoIterator<Item = u64>) {
    let broken: Vec<String> = seeds
        .into_iter()
        .map(simulate)
        .filter(|told| !told.violations.is_empty())
        .map(|told| format!("seed {}: {}", told.seed, told.violations[0]))
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in FIRST..FIRST + 40 {
        let (once, twice) = (simulate(seed), simulate(seed));
        assert_eq!(once.trace_hash, twice.trace_hash, "seed {seed}");
        assert_eq!(once.events, twice.events, "seed {seed}");
        assert_eq!(once.counts, twice.counts, "seed {seed}");
    }
}

#[test]
fn different_seeds_give_different_traces() {
    let mut hashes: Vec<u64> = (FIRST..FIRST + 40)
        .map(|seed| simulate(seed).trace_hash)
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 40);
}

#[test]
fn the_world_of_the_simulator_is_hostile() {
    let mut counts = superstep_conformance::sim::Counts::default();
    for seed in FIRST..FIRST + 200 {
        counts += simulate(seed).counts;
    }
    for (what, times) in counts.named() {
        assert!(times > 0, "no {what} in 200 trials");
    }
}

#[test]
fn a_death_at_every_single_point_is_survived() {
    let swept = sweep([5, 9]);
    assert!(swept.points > 100, "{} points", swept.points);
    assert!(swept.violations.is_empty(), "{:#?}", swept.violations);
}

/// Each mutant is a test of its own, so that one that escapes is named.
macro_rules! mutants {
    ($($test:ident => $mutant:ident),* $(,)?) => {
        $(#[test]
        fn $test() {
            let mutant = Mutant::$mutant;
            let caught = catch(mutant, FIRST, 1_500);
            assert!(
                caught.caught_after.is_some(),
                "`{}` was not caught by `{}`",
                mutant.name(),
                mutant.caught_by().name()
            );
        })*

        #[test]
        fn every_mutant_has_its_test() {
            let tested = [$(Mutant::$mutant),*];
            assert!(Mutant::ALL.iter().all(|mutant| tested.contains(mutant)));
        }
    };
}

mutants! {
    fence_skipped_is_caught => FenceSkipped,
    check_then_write_is_caught => CheckThenWrite,
    ack_before_write_is_caught => AckBeforeWrite,
    record_lost_is_caught => RecordLost,
    record_replaced_is_caught => RecordReplaced,
    answer_applied_twice_is_caught => AnswerAppliedTwice,
    answer_not_idempotent_is_caught => AnswerNotIdempotent,
    answer_lost_is_caught => AnswerLost,
    question_asked_again_is_caught => QuestionAskedAgain,
    question_dropped_is_caught => QuestionDropped,
    arrival_order_is_caught => ArrivalOrder,
    key_randomised_is_caught => KeyRandomised,
    sibling_result_dropped_is_caught => SiblingResultDropped,
    retry_count_forgotten_is_caught => RetryCountForgotten,
    delta_skipped_is_caught => DeltaSkipped,
    delta_twice_is_caught => DeltaTwice,
    stale_snapshot_is_caught => StaleSnapshot,
    commit_not_idempotent_is_caught => CommitNotIdempotent,
    unseen_answers_overlooked_is_caught => UnseenAnswersOverlooked,
    event_order_by_clock_is_caught => EventOrderByClock,
    history_rewritten_is_caught => HistoryRewritten,
    claim_records_withheld_is_caught => ClaimRecordsWithheld,
    glance_withheld_is_caught => GlanceWithheld,
    end_overlooked_is_caught => EndOverlooked,
    receipt_lost_is_caught => ReceiptLost,
    record_unfenced_is_caught => RecordUnfenced,
    run_forgotten_is_caught => RunForgotten,
    put_down_forgotten_is_caught => PutDownForgotten,
    end_told_at_once_is_caught => EndToldAtOnce,
    dispatched_twice_is_caught => DispatchedTwice,
    suspended_before_recorded_is_caught => SuspendedBeforeRecorded,
    limit_ignored_is_caught => LimitIgnored,
    stale_token_accepted_is_caught => StaleTokenAccepted,
}
