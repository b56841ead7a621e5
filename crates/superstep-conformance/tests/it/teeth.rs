//! A suite that nothing fails is worth nothing: each defect must be caught by the clause that names it.

use superstep_conformance::{Report, block_on, budgets, checkpointer, store};
use superstep_core::store::MemoryStore;

use crate::broken::{Broken, BrokenStore, Defect, StoreDefect};

#[test]
fn every_defect_of_a_checkpointer_is_caught() {
    for (defect, clause) in [
        (Defect::FenceSkipped, "commit::stale_epoch_is_fenced"),
        (
            Defect::FenceSkipped,
            "commit::late_copy_of_a_pruned_step_is_fenced",
        ),
        (
            Defect::GlanceOverlooksRecords,
            "glance::glance_shows_the_records_of_one_task",
        ),
        (
            Defect::GlanceShowsEveryRecord,
            "glance::glance_shows_the_records_of_one_task",
        ),
        (
            Defect::GlanceOverlooksCancel,
            "glance::glance_shows_a_wish_to_cancel",
        ),
        (
            Defect::GlanceOverlooksAnswers,
            "glance::glance_shows_answers_that_nobody_has_seen",
        ),
        (
            Defect::GlanceOfLastEpoch,
            "glance::glance_shows_where_a_thread_stands",
        ),
        (
            Defect::FenceSkipped,
            "commit::racing_claims_have_one_winner",
        ),
        (
            Defect::RetryRefused,
            "commit::same_commit_twice_is_applied_once",
        ),
        (
            Defect::RetryRefused,
            "commit::same_claim_twice_is_applied_once",
        ),
        (
            Defect::LoserToldSaved,
            "commit::racing_starts_have_one_winner",
        ),
        (
            Defect::LoserToldSaved,
            "commit::start_of_an_existing_thread_is_fenced",
        ),
        (
            Defect::CancelKeptByClaim,
            "commit::cancel_is_cleared_by_a_claim",
        ),
        (Defect::RecordReplaced, "record::first_record_wins"),
        (Defect::RecordReplaced, "record::racing_records_agree"),
        (
            Defect::RecordUnfenced,
            "record::record_of_a_former_owner_is_fenced",
        ),
        (Defect::AnswerReplaced, "answer::first_answer_wins"),
        (
            Defect::AnswerReplaced,
            "answer::racing_answers_have_one_winner",
        ),
        (
            Defect::AnswerRetryRefused,
            "answer::same_answers_twice_are_stored_once",
        ),
        (
            Defect::AnswerRetryRefused,
            "answer::racing_retries_of_an_answer_are_stored_once",
        ),
        (Defect::EqualAnswerTaken, "answer::first_answer_wins"),
        (
            Defect::AnswersHalfStored,
            "answer::answers_are_all_or_nothing",
        ),
        (
            Defect::AnswersHalfStored,
            "answer::racing_overlapping_answers_are_whole",
        ),
        (
            Defect::FalsyAnswerDropped,
            "answer::falsy_answers_are_answers",
        ),
        (
            Defect::AnswerOverlooked,
            "answer::pause_that_overlooks_an_answer_goes_on",
        ),
        (
            Defect::AnswerOverlooked,
            "answer::answer_that_races_a_pause_is_not_lost",
        ),
        (
            Defect::DeleteForgetsEpoch,
            "admin::start_from_nothing_after_delete_is_fenced",
        ),
        (
            Defect::PruneDropsTooMuch,
            "admin::prune_keeps_survivors_as_they_were",
        ),
        (
            Defect::TenantIgnored,
            "security::tenants_are_apart_in_lists",
        ),
        (
            Defect::ClockOrder,
            "load::order_is_the_sequence_not_the_clock",
        ),
        (Defect::PageIgnored, "list::threads_by_page"),
        (
            Defect::CopyNotSealedAnew,
            "admin::copy_is_idle_and_has_the_same_history",
        ),
        (
            Defect::ExportLosesSnapshots,
            "archive::archive_is_the_same_in_every_store",
        ),
        (
            Defect::ImportNeedsEntries,
            "archive::thread_that_was_only_claimed_is_moved",
        ),
        (
            Defect::ExportLosesSnapshots,
            "archive::pruned_thread_is_moved",
        ),
        (
            Defect::ExportCutAtAPage,
            "archive::large_thread_is_moved_whole",
        ),
        (
            Defect::ImportLosesListing,
            "archive::imported_thread_is_listed_and_found",
        ),
        (
            Defect::ListingNeverComparedAgain,
            "archive::found_no_longer_by_what_has_changed",
        ),
        (
            Defect::ImportLosesDeadlines,
            "archive::imported_questions_wait_and_are_due",
        ),
        (
            Defect::ImportLosesSeen,
            "archive::imported_thread_is_unfinished_as_before",
        ),
        (
            Defect::ImportLosesRecords,
            "archive::run_goes_on_after_an_import",
        ),
        (Defect::ImportLosesRecords, "archive::records_move_along"),
        (
            Defect::ImportLosesCancel,
            "archive::cancel_request_moves_along",
        ),
        (
            Defect::ImportLosesEpoch,
            "archive::epoch_goes_on_after_an_import",
        ),
        (
            Defect::ImportReplaces,
            "archive::import_onto_a_thread_is_refused",
        ),
        (
            Defect::ImportTwiceRefused,
            "archive::import_twice_is_done_once",
        ),
        (
            Defect::ImportReplaces,
            "archive::racing_imports_leave_one_whole_thread",
        ),
        (
            Defect::ImportReplaces,
            "archive::import_that_races_a_start_has_one_winner",
        ),
        (
            Defect::FenceSkipped,
            "archive::import_keeps_owners_of_a_deleted_thread_out",
        ),
        (
            Defect::ImportTakesAnyName,
            "archive::import_under_another_name_is_refused",
        ),
        (
            Defect::ImportTakesDamage,
            "archive::damaged_archive_is_refused",
        ),
        (
            Defect::ExportOfDeletedIsEmpty,
            "archive::export_of_no_thread_is_refused",
        ),
        (
            Defect::ExportIgnoresTenant,
            "archive::export_keeps_tenants_apart",
        ),
        (Defect::ExportTorn, "archive::export_is_of_one_moment"),
    ] {
        let report = block_on(checkpointer(async || Broken::new(defect)));
        assert!(
            failed(&report, clause),
            "{defect:?} got past `{clause}`: {report}"
        );
    }
}

#[test]
fn every_defect_of_a_store_is_caught() {
    for (defect, clause) in [
        (StoreDefect::PrefixAsText, "store::search_by_whole_segments"),
        (
            StoreDefect::ExpiredFound,
            "store::expired_items_are_not_found",
        ),
        (
            StoreDefect::CreatedForgotten,
            "store::put_replaces_and_keeps_created",
        ),
        (
            StoreDefect::ReadDoesNotProlong,
            "store::read_prolongs_only_if_asked",
        ),
        (
            StoreDefect::SweepTakesAll,
            "store::sweep_stops_at_the_limit",
        ),
        (
            StoreDefect::FiltersIgnored,
            "store::search_by_filters_as_the_model",
        ),
        (StoreDefect::LimitsIgnored, "store::limits_are_enforced"),
        (
            StoreDefect::PutIfAlways,
            "store::put_if_compares_what_is_there",
        ),
        (
            StoreDefect::PutIfTorn,
            "store::racing_put_ifs_have_one_winner",
        ),
        (
            StoreDefect::PutIfTorn,
            "store::racing_put_ifs_lose_no_count",
        ),
        (
            StoreDefect::LoserToldStored,
            "store::racing_put_ifs_have_one_winner",
        ),
        (
            StoreDefect::PutIfSeesExpired,
            "store::put_if_takes_expired_for_nothing",
        ),
        (
            StoreDefect::PutIfForgetsCreated,
            "store::put_if_compares_what_is_there",
        ),
    ] {
        let report = block_on(store(async || BrokenStore::new(defect)));
        assert!(
            failed(&report, clause),
            "{defect:?} got past `{clause}`: {report}"
        );
    }
}

/// The arithmetic itself has its mutants beside it, in the tests of core.
#[test]
fn budgets_in_a_store_that_does_not_compare_are_caught() {
    for (defect, clause) in [
        (
            StoreDefect::PutIfAlways,
            "budget::racing_reservations_stay_within_the_cap",
        ),
        (
            StoreDefect::PutIfTorn,
            "budget::racing_reservations_stay_within_the_cap",
        ),
        (
            StoreDefect::PutIfTorn,
            "budget::racing_settlements_lose_nothing",
        ),
        (
            StoreDefect::LoserToldStored,
            "budget::racing_reservations_stay_within_the_cap",
        ),
    ] {
        let report = block_on(budgets(async || BrokenStore::new(defect)));
        assert!(
            failed(&report, clause),
            "{defect:?} got past `{clause}`: {report}"
        );
    }
}

#[test]
fn budgets_hold_in_memory() {
    block_on(budgets(async || MemoryStore::new())).assert();
}

#[test]
fn the_wrappers_are_sound_without_a_defect() {
    block_on(checkpointer(async || Broken::new(Defect::None))).assert();
    block_on(store(async || BrokenStore::new(StoreDefect::None))).assert();
    block_on(budgets(async || BrokenStore::new(StoreDefect::None))).assert();
}

fn failed(report: &Report, clause: &str) -> bool {
    report.failed.iter().any(|(name, _)| *name == clause)
}
