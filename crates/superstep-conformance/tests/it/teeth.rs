//! A suite that nothing fails is worth nothing: each defect must be caught by the clauses that name it.

use superstep_conformance::{Report, block_on, checkpointer, node_cache, registry, sql, store};

use crate::broken::{
    Broken, BrokenCache, BrokenDatabase, BrokenRegistry, BrokenStore, CacheDefect, DatabaseDefect,
    Defect, RegistryDefect, StoreDefect,
};

#[test]
fn every_defect_of_a_checkpointer_is_caught() {
    for (defect, clauses) in [
        (
            Defect::FenceSkipped,
            &[
                "commit::stale_epoch_is_fenced",
                "commit::late_copy_of_a_pruned_step_is_fenced",
                "commit::racing_claims_have_one_winner",
                "archive::import_keeps_owners_of_a_deleted_thread_out",
            ] as &[&str],
        ),
        (
            Defect::GlanceOverlooksRecords,
            &["glance::glance_shows_the_records_of_one_task"],
        ),
        (
            Defect::GlanceShowsEveryRecord,
            &["glance::glance_shows_the_records_of_one_task"],
        ),
        (
            Defect::GlanceOverlooksCancel,
            &["glance::glance_shows_a_wish_to_cancel"],
        ),
        (
            Defect::GlanceOverlooksAnswers,
            &["glance::glance_shows_answers_that_nobody_has_seen"],
        ),
        (
            Defect::GlanceOfLastEpoch,
            &["glance::glance_shows_where_a_thread_stands"],
        ),
        (
            Defect::RetryRefused,
            &[
                "commit::same_commit_twice_is_applied_once",
                "commit::same_claim_twice_is_applied_once",
            ],
        ),
        (
            Defect::LoserToldSaved,
            &[
                "commit::racing_starts_have_one_winner",
                "commit::start_of_an_existing_thread_is_fenced",
                "admin::start_is_not_taken_for_a_copy",
            ],
        ),
        (
            Defect::CancelKeptByClaim,
            &["commit::cancel_is_cleared_by_a_claim"],
        ),
        (
            Defect::RecordReplaced,
            &["record::first_record_wins", "record::racing_records_agree"],
        ),
        (
            Defect::RecordUnfenced,
            &["record::record_of_a_former_owner_is_fenced"],
        ),
        (
            Defect::AnswerReplaced,
            &[
                "answer::first_answer_wins",
                "answer::racing_answers_have_one_winner",
            ],
        ),
        (
            Defect::AnswerRetryRefused,
            &[
                "answer::same_answers_twice_are_stored_once",
                "answer::racing_retries_of_an_answer_are_stored_once",
            ],
        ),
        (Defect::EqualAnswerTaken, &["answer::first_answer_wins"]),
        (
            Defect::AnswersHalfStored,
            &[
                "answer::answers_are_all_or_nothing",
                "answer::racing_overlapping_answers_are_whole",
            ],
        ),
        (
            Defect::FalsyAnswerDropped,
            &["answer::falsy_answers_are_answers"],
        ),
        (
            Defect::AnswerOverlooked,
            &[
                "answer::pause_that_overlooks_an_answer_goes_on",
                "answer::answer_that_races_a_pause_is_not_lost",
            ],
        ),
        (
            Defect::DeleteForgetsEpoch,
            &["admin::start_from_nothing_after_delete_is_fenced"],
        ),
        (
            Defect::PruneDropsTooMuch,
            &["admin::prune_keeps_survivors_as_they_were"],
        ),
        (
            Defect::TenantIgnored,
            &["security::tenants_are_apart_in_lists"],
        ),
        (
            Defect::ClockOrder,
            &["load::order_is_the_sequence_not_the_clock"],
        ),
        (Defect::PageIgnored, &["list::threads_by_page"]),
        (
            Defect::CopyNotSealedAnew,
            &["admin::copy_is_idle_and_has_the_same_history"],
        ),
        (
            Defect::ExportLosesSnapshots,
            &[
                "archive::archive_is_the_same_in_every_store",
                "archive::pruned_thread_is_moved",
            ],
        ),
        (
            Defect::ImportNeedsEntries,
            &["archive::thread_that_was_only_claimed_is_moved"],
        ),
        (
            Defect::ExportCutAtAPage,
            &["archive::large_thread_is_moved_whole"],
        ),
        (
            Defect::ImportLosesListing,
            &["archive::imported_thread_is_listed_and_found"],
        ),
        (
            Defect::ListingNeverComparedAgain,
            &[
                "archive::found_no_longer_by_what_has_changed",
                "search::search_follows_the_values",
            ],
        ),
        (
            Defect::ImportLosesDeadlines,
            &["archive::imported_questions_wait_and_are_due"],
        ),
        (
            Defect::ImportLosesSeen,
            &["archive::imported_thread_is_unfinished_as_before"],
        ),
        (
            Defect::ImportLosesRecords,
            &[
                "archive::run_goes_on_after_an_import",
                "archive::records_move_along",
            ],
        ),
        (
            Defect::ImportLosesCancel,
            &["archive::cancel_request_moves_along"],
        ),
        (
            Defect::ImportLosesEpoch,
            &["archive::epoch_goes_on_after_an_import"],
        ),
        (
            Defect::ImportReplaces,
            &[
                "archive::import_onto_a_thread_is_refused",
                "archive::racing_imports_leave_one_whole_thread",
                "archive::import_that_races_a_start_has_one_winner",
            ],
        ),
        (
            Defect::ImportTwiceRefused,
            &["archive::import_twice_is_done_once"],
        ),
        (
            Defect::ImportTakesAnyName,
            &["archive::import_under_another_name_is_refused"],
        ),
        (
            Defect::ImportTakesDamage,
            &["archive::damaged_archive_is_refused"],
        ),
        (
            Defect::ExportOfDeletedIsEmpty,
            &["archive::export_of_no_thread_is_refused"],
        ),
        (
            Defect::ExportIgnoresTenant,
            &["archive::export_keeps_tenants_apart"],
        ),
        (Defect::ExportTorn, &["archive::export_is_of_one_moment"]),
        (
            Defect::CrowdSharesItsFate,
            &[
                "commit::crowd_of_commits_keeps_the_fenced_apart",
                "record::crowd_of_records_keeps_the_fenced_apart",
            ],
        ),
        (
            Defect::ReleaseOfManyDropsAll,
            &["record::release_of_many_tasks_keeps_the_others"],
        ),
        (
            Defect::ClaimMakesAnEntry,
            &["admin::bare_claim_makes_a_thread"],
        ),
        (
            Defect::DeletedTakenUpWithoutAClaim,
            &["admin::only_a_claim_makes_a_deleted_thread_anew"],
        ),
        (
            Defect::DeleteKeepsEverything,
            &[
                "admin::delete_leaves_nothing",
                "search::deleted_thread_is_found_by_nothing",
            ],
        ),
        (
            Defect::CopyCutAtAPage,
            &["admin::large_thread_is_copied_whole"],
        ),
        (
            Defect::ExpireOfUnnamedTenantOnly,
            &["admin::expire_deletes_old_threads_that_rest"],
        ),
        (
            Defect::SeqIsSigned,
            &[
                "load::load_at_outside_the_history_is_refused",
                "load::entries_from_any_point",
            ],
        ),
        (Defect::DueMeansOpen, &["list::questions_that_are_due"]),
        (
            Defect::MetadataSearchedOnce,
            &["search::search_follows_the_values"],
        ),
        (
            Defect::StatusOfTheListing,
            &["search::search_follows_a_status_without_a_listing"],
        ),
        (
            Defect::LaterFieldsNotSearched,
            &["search::many_fields_are_all_found"],
        ),
        (
            Defect::TextEndsAtNul,
            &["search::empty_texts_and_nul_are_only_texts"],
        ),
        (
            Defect::RefusalsNameNothing,
            &[
                "refusal::fence_names_the_epoch_that_was_held",
                "refusal::conflict_names_the_question",
                "refusal::missing_entry_is_named",
                "refusal::missing_thread_is_named",
            ],
        ),
        (
            Defect::CancelNeverTold,
            &["commit::cancel_is_told_with_each_commit"],
        ),
        (Defect::LoadedHeadLags, &["commit::steps_follow_each_other"]),
        (
            Defect::LoadedWithoutSnapshot,
            &["load::load_begins_at_the_newest_snapshot"],
        ),
        (
            Defect::MissingThreadIsNew,
            &["load::missing_thread_is_none"],
        ),
        (
            Defect::ReleaseOfResultDropsSteps,
            &["record::release_of_the_result_keeps_the_steps"],
        ),
        (
            Defect::ReleaseDropsEveryTask,
            &["record::release_of_all_keeps_other_tasks"],
        ),
        (
            Defect::ClosedQuestionsLoaded,
            &[
                "answer::asking_again_keeps_the_answer",
                "answer::closing_is_remembered_once",
            ],
        ),
        (
            Defect::SeenAnswersForgotten,
            &["answer::pause_that_has_seen_every_answer_is_one"],
        ),
        (
            Defect::QuestionsNewestFirst,
            &["list::questions_are_oldest_first"],
        ),
        (
            Defect::QuestionsOfEveryThread,
            &["list::questions_by_page_and_thread"],
        ),
        (Defect::AnsweredIsOpen, &["list::questions_open_only"]),
        (Defect::StatusIgnored, &["list::threads_by_status"]),
        (
            Defect::CopyLosesListing,
            &["admin::copy_takes_the_listing_only"],
        ),
        (
            Defect::DeletedEpochNotRaised,
            &["admin::start_after_delete_takes_the_next_epoch"],
        ),
        (
            Defect::PruneMiscounts,
            &[
                "admin::prune_without_a_snapshot_drops_nothing",
                "admin::prune_is_repeatable",
            ],
        ),
        (Defect::LeaseForgotten, &["lease::claim_sets_the_lease"]),
        (Defect::LeaseNotAtAGlance, &["lease::claim_sets_the_lease"]),
        (
            Defect::UnfinishedFromTheStart,
            &["list::unfinished_by_page"],
        ),
        (
            Defect::LeaseMovedBySteps,
            &["lease::superstep_keeps_the_lease"],
        ),
        (
            Defect::LeaseRenewedByAnyone,
            &["lease::former_owner_renews_nothing"],
        ),
        (
            Defect::LeaseNeverRenewed,
            &["lease::owner_renews_its_leases"],
        ),
        (
            Defect::LeaseOfThreadsThatRest,
            &["lease::thread_that_rests_has_no_lease"],
        ),
    ] {
        let report = block_on(checkpointer(async || Broken::new(defect)));
        assert_caught(&format!("{defect:?}"), clauses, &report);
    }
}

#[test]
fn every_defect_of_a_store_is_caught() {
    for (defect, clauses) in [
        (
            StoreDefect::PrefixAsText,
            &[
                "store::search_by_whole_segments",
                "store::hostile_prefixes_are_only_segments",
            ] as &[&str],
        ),
        (
            StoreDefect::ExpiredFound,
            &["store::expired_items_are_not_found"],
        ),
        (
            StoreDefect::CreatedForgotten,
            &["store::put_replaces_and_keeps_created"],
        ),
        (
            StoreDefect::ReadDoesNotProlong,
            &["store::read_prolongs_only_if_asked"],
        ),
        (
            StoreDefect::SweepTakesAll,
            &["store::sweep_stops_at_the_limit"],
        ),
        (
            StoreDefect::FiltersIgnored,
            &["store::search_by_filters_as_the_model"],
        ),
        (StoreDefect::LimitsIgnored, &["store::limits_are_enforced"]),
        (
            StoreDefect::PutIfAlways,
            &["store::put_if_compares_what_is_there"],
        ),
        (
            StoreDefect::PutIfTorn,
            &[
                "store::racing_put_ifs_have_one_winner",
                "store::racing_put_ifs_lose_no_count",
            ],
        ),
        (
            StoreDefect::LoserToldStored,
            &["store::racing_put_ifs_have_one_winner"],
        ),
        (
            StoreDefect::PutIfSeesExpired,
            &["store::put_if_takes_expired_for_nothing"],
        ),
        (
            StoreDefect::PutIfForgetsCreated,
            &["store::put_if_compares_what_is_there"],
        ),
        (
            StoreDefect::ReadShortensLife,
            &["store::read_never_shortens_a_life"],
        ),
        (
            StoreDefect::EndlessLifeWraps,
            &["store::endless_life_does_not_overflow"],
        ),
        (
            StoreDefect::PagedBeforeFiltered,
            &["store::search_filters_before_it_pages"],
        ),
        (
            StoreDefect::NamespacesPagedBeforeCut,
            &["store::namespaces_by_page"],
        ),
        (
            StoreDefect::DeletedIsAlwaysToldThere,
            &["store::delete_says_whether_it_was_there"],
        ),
        (
            StoreDefect::ExpiredLendsItsAge,
            &["store::expired_item_is_made_anew"],
        ),
        (
            StoreDefect::SweepTellsNothing,
            &["store::sweep_deletes_what_expired"],
        ),
        (
            StoreDefect::NamespacesBackwards,
            &[
                "store::namespaces_in_order_without_repeats",
                "store::namespaces_cut_by_depth",
            ],
        ),
        (
            StoreDefect::SuffixIgnored,
            &["store::namespaces_by_pattern"],
        ),
    ] {
        let report = block_on(store(async || BrokenStore::new(defect)));
        assert_caught(&format!("{defect:?}"), clauses, &report);
    }
}

#[test]
fn every_defect_of_a_cache_is_caught() {
    for (defect, clauses) in [
        (
            CacheDefect::FoundByPrefix,
            &["cache::missing_result_is_none"] as &[&str],
        ),
        (
            CacheDefect::ExpiredFound,
            &["cache::result_is_found_until_it_expires"],
        ),
        (
            CacheDefect::FirstResultStays,
            &["cache::put_replaces_a_result_and_its_end"],
        ),
        (
            CacheDefect::ClearedByPattern,
            &["cache::clear_forgets_what_begins_so_and_nothing_else"],
        ),
        (
            CacheDefect::KeysFoldCase,
            &["cache::hostile_and_long_keys_are_only_keys"],
        ),
    ] {
        let report = block_on(node_cache(async || BrokenCache::new(defect)));
        assert_caught(&format!("{defect:?}"), clauses, &report);
    }
}

#[test]
fn every_defect_of_a_registry_is_caught() {
    for (defect, clauses) in [
        (
            RegistryDefect::SameIdReplaces,
            &[
                "registry::same_id_twice_is_stored_once",
                "registry::racing_creates_of_one_id_store_one",
            ] as &[&str],
        ),
        (
            RegistryDefect::ExistingRequestLost,
            &[
                "registry::same_id_twice_is_stored_once",
                "registry::racing_creates_of_one_id_store_one",
            ],
        ),
        (
            RegistryDefect::QueuedRunLost,
            &[
                "registry::enqueued_run_names_the_runs_before_it",
                "registry::take_leaves_a_thread_with_a_running_run_alone",
            ],
        ),
        (
            RegistryDefect::RejectIgnoresRunning,
            &["registry::reject_stores_nothing_if_the_thread_is_busy"],
        ),
        (
            RegistryDefect::RejectTorn,
            &["registry::racing_rejects_have_one_winner"],
        ),
        (
            RegistryDefect::TakesTwoOfAThread,
            &[
                "registry::take_gives_the_oldest_of_each_thread",
                "registry::racing_takes_give_each_run_once",
            ],
        ),
        (
            RegistryDefect::TakesRunningAgain,
            &[
                "registry::take_leaves_a_thread_with_a_running_run_alone",
                "registry::racing_takes_give_each_run_once",
            ],
        ),
        (
            RegistryDefect::TakeTorn,
            &["registry::racing_takes_give_each_run_once"],
        ),
        (
            RegistryDefect::DueIgnored,
            &[
                "registry::take_waits_until_a_run_is_due",
                "registry::future_run_does_not_block_later_ones",
            ],
        ),
        (RegistryDefect::LastEndWins, &["registry::first_end_stays"]),
        (
            RegistryDefect::ReleasedGoToTheBack,
            &["registry::released_runs_keep_their_order"],
        ),
        (
            RegistryDefect::CancelEndsRunning,
            &["registry::cancel_changes_only_pending_runs"],
        ),
        (
            RegistryDefect::DeleteIgnoresTenant,
            &["registry::delete_of_a_thread_keeps_other_threads"],
        ),
        (
            RegistryDefect::TenantsMixedInLists,
            &[
                "registry::ids_of_tenants_are_apart",
                "registry::tenants_are_apart_in_runs",
            ],
        ),
        (
            RegistryDefect::VersionReused,
            &["registry::version_numbers_are_not_reused"],
        ),
        (
            RegistryDefect::MetadataReplaced,
            &["registry::change_makes_a_version_and_merges_metadata"],
        ),
        (
            RegistryDefect::VersionsOldestFirst,
            &[
                "registry::versions_are_newest_first_by_page",
                "registry::older_version_becomes_the_current_one",
            ],
        ),
        (
            RegistryDefect::NameMatchesCase,
            &["registry::assistants_by_name_whatever_its_case"],
        ),
    ] {
        let report = block_on(registry(async || BrokenRegistry::new(defect)));
        assert_caught(&format!("{defect:?}"), clauses, &report);
    }
}

#[test]
fn every_defect_of_a_database_is_caught() {
    for (defect, clauses) in [
        (
            DatabaseDefect::NoThreadToldAsNotOpen,
            &["sql::answer_to_no_thread_says_so"] as &[&str],
        ),
        (
            DatabaseDefect::RowsOutliveTheirThread,
            &["sql::deleted_thread_leaves_no_rows"],
        ),
        (
            DatabaseDefect::TermsTrusted,
            &["sql::colliding_terms_find_nothing_wrong"],
        ),
        (
            DatabaseDefect::EveryFieldATerm,
            &["sql::many_fields_make_few_terms"],
        ),
        (
            DatabaseDefect::PagesWithoutEnd,
            &["sql::common_value_is_paged_from_the_newest_on"],
        ),
        (
            DatabaseDefect::ItemsUnchecked,
            &["sql::item_with_a_flipped_byte_is_not_loaded"],
        ),
        (
            DatabaseDefect::DamagedItemsLeftOut,
            &["sql::item_with_a_flipped_byte_is_not_loaded"],
        ),
        (
            DatabaseDefect::Bloated,
            &[
                "sql::parked_thread_is_small",
                "sql::long_thread_costs_about_its_entries",
            ],
        ),
    ] {
        let report = block_on(sql(async || BrokenDatabase::new(defect)));
        assert_caught(&format!("{defect:?}"), clauses, &report);
    }
}

#[test]
fn the_wrappers_are_sound_without_a_defect() {
    block_on(checkpointer(async || Broken::new(Defect::None))).assert();
    block_on(store(async || BrokenStore::new(StoreDefect::None))).assert();
    block_on(node_cache(async || BrokenCache::new(CacheDefect::None))).assert();
    block_on(registry(async || BrokenRegistry::new(RegistryDefect::None))).assert();
    block_on(sql(async || BrokenDatabase::new(DatabaseDefect::None))).assert();
}

fn assert_caught(defect: &str, clauses: &[&str], report: &Report) {
    for clause in clauses {
        let is_caught = report.failed.iter().any(|(name, _)| name == clause);
        assert!(is_caught, "{defect} got past `{clause}`: {report}");
    }
}
