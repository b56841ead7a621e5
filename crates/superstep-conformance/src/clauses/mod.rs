//! The clauses, and the one table of them.
//!
//! A clause is given a fresh checkpointer or store and may do with it what it likes. It uses the
//! trait only, and only what the trait's docs promise.

mod admin;
mod answer;
mod archive;
mod audit;
mod cache;
mod commit;
mod crons;
mod deliveries;
mod erasure;
mod glance;
mod keys;
mod lease;
mod list;
mod load;
mod record;
mod refusal;
mod registry;
mod search;
mod security;
mod sizes;
mod sql;
mod store;
mod threads;

use superstep_core::checkpoint::{BoxFuture, Checkpointer};
use superstep_core::driver::NodeCache;
use superstep_core::registry::Registry;
use superstep_core::store::Store;

use crate::report::{Report, Verdict};
use crate::sql::Database;

/// Holds a checkpointer to every clause. `make` gives an empty one each time it is called.
pub async fn checkpointer<F, Fut, C>(make: F) -> Report
where
    F: Fn() -> Fut,
    Fut: Future<Output = C>,
    C: Checkpointer,
{
    let mut report = Report::default();
    for (name, clause) in CHECKPOINTER {
        let db = make().await;
        report.add(name, clause(&db).await);
    }
    report
}

/// Holds a store to every clause. `make` gives an empty one each time it is called.
pub async fn store<F, Fut, S>(make: F) -> Report
where
    F: Fn() -> Fut,
    Fut: Future<Output = S>,
    S: Store,
{
    let mut report = Report::default();
    for (name, clause) in STORE {
        let db = make().await;
        report.add(name, clause(&db).await);
    }
    report
}

/// Holds a registry to every clause. `make` gives an empty one each time it is called.
pub async fn registry<F, Fut, R>(make: F) -> Report
where
    F: Fn() -> Fut,
    Fut: Future<Output = R>,
    R: Registry,
{
    let mut report = Report::default();
    for (name, clause) in REGISTRY {
        let db = make().await;
        report.add(name, clause(&db).await);
    }
    report
}

/// Holds a cache of nodes to every clause. `make` gives an empty one each time it is called.
pub async fn node_cache<F, Fut, C>(make: F) -> Report
where
    F: Fn() -> Fut,
    Fut: Future<Output = C>,
    C: NodeCache,
{
    let mut report = Report::default();
    for (name, clause) in NODE_CACHE {
        let db = make().await;
        report.add(name, clause(&db).await);
    }
    report
}

/// Holds a store in a SQL database to what ours share beside the rules of the traits: what becomes of their rows, and what
/// threads cost. `make` gives an empty one each time it is called.
pub async fn sql<F, Fut, D>(make: F) -> Report
where
    F: Fn() -> Fut,
    Fut: Future<Output = D>,
    D: Database,
{
    let mut report = Report::default();
    for (name, clause) in SQL {
        let db = make().await;
        report.add(name, clause(&db).await);
    }
    report
}

type Clause<T> = (&'static str, for<'a> fn(&'a T) -> BoxFuture<'a, Verdict>);

/// Writes a table of clauses: each has its module and name as text, and the function as one that is boxed.
#[macro_export]
macro_rules! clauses {
    ($($concern:ident: $($name:ident),+;)+) => {
        &[$($((
            concat!(stringify!($concern), "::", stringify!($name)),
            |db| Box::pin($concern::$name(db)),
        )),+),+]
    };
}

const CHECKPOINTER: &[Clause<dyn Checkpointer>] = clauses! {
    commit:
        first_commit_makes_the_thread,
        head_is_stored_as_given,
        steps_follow_each_other,
        start_of_an_existing_thread_is_fenced,
        stale_epoch_is_fenced,
        late_copy_of_a_pruned_step_is_fenced,
        stale_sequence_is_fenced,
        stale_epoch_and_sequence_are_fenced,
        sequence_ahead_is_fenced,
        epoch_ahead_is_fenced,
        commit_to_no_thread_is_fenced,
        fenced_commit_changes_nothing,
        claim_keeps_the_history,
        claim_fences_the_former_owner,
        claim_from_a_stale_head_is_fenced,
        claim_with_an_entry_does_both,
        racing_claims_have_one_winner,
        racing_starts_have_one_winner,
        racing_steps_of_two_owners_have_one_winner,
        same_commit_twice_is_applied_once,
        same_start_twice_is_applied_once,
        same_claim_twice_is_applied_once,
        racing_retries_are_applied_once,
        retry_after_later_commits_is_told_saved,
        retry_after_a_takeover_is_told_saved,
        retry_undoes_nothing,
        retry_tells_the_same_answers,
        other_epoch_at_the_same_sequence_is_fenced,
        other_entry_under_the_same_epoch_is_fenced,
        crowd_of_commits_keeps_the_fenced_apart,
        threads_do_not_mix,
        cancel_is_told_with_each_commit,
        cancel_is_cleared_by_a_claim,
        cancel_of_no_thread_is_refused,
        cancel_reaches_one_thread_only;
    lease:
        claim_sets_the_lease,
        superstep_keeps_the_lease,
        owner_renews_its_leases,
        former_owner_renews_nothing,
        thread_that_rests_has_no_lease;
    record:
        first_record_is_given_back,
        first_record_wins,
        racing_records_agree,
        record_of_a_former_owner_is_fenced,
        record_at_a_later_epoch_is_fenced,
        record_of_no_thread_is_fenced,
        record_of_a_deleted_thread_is_fenced,
        tasks_and_keys_are_apart,
        records_outlive_a_claim,
        release_of_the_result_keeps_the_steps,
        release_of_all_keeps_other_tasks,
        release_of_many_tasks_keeps_the_others,
        crowd_of_records_keeps_the_fenced_apart,
        released_record_can_be_written_anew,
        large_records_are_kept_whole;
    answer:
        answer_is_stored_as_given,
        answer_is_counted_and_no_more,
        first_answer_wins,
        same_answers_twice_are_stored_once,
        same_answers_after_a_close_are_told_stored,
        answers_of_which_some_are_stored_are_refused,
        racing_retries_of_an_answer_are_stored_once,
        racing_answers_have_one_winner,
        racing_overlapping_answers_are_whole,
        answers_are_all_or_nothing,
        one_question_twice_in_a_call_is_refused,
        unknown_question_is_refused,
        closed_question_is_refused,
        question_of_another_thread_is_refused,
        answer_to_no_thread_is_refused,
        no_answers_are_no_error,
        falsy_answers_are_answers,
        expiry_is_an_answer,
        question_keeps_its_first_form,
        asking_again_keeps_the_answer,
        closing_is_remembered_once,
        pause_that_overlooks_an_answer_goes_on,
        pause_that_has_seen_every_answer_is_one,
        run_that_ends_is_told_no_answers,
        retry_of_a_pause_is_told_as_before,
        closed_answers_are_not_told,
        answer_that_races_a_pause_is_not_lost,
        answers_are_in_what_is_loaded_with_them,
        refused_answers_load_nothing;
    glance:
        glance_at_no_thread_is_none,
        glance_shows_where_a_thread_stands,
        glance_shows_the_records_of_one_task,
        glance_shows_a_wish_to_cancel,
        glance_shows_answers_that_nobody_has_seen;
    load:
        missing_thread_is_none,
        load_begins_at_the_newest_snapshot,
        load_without_a_snapshot_is_everything,
        load_at_every_sequence,
        load_at_outside_the_history_is_refused,
        load_at_no_thread_is_refused,
        entries_from_any_point,
        entries_stop_at_the_limit,
        order_is_the_sequence_not_the_clock,
        large_bodies_are_kept_whole;
    list:
        thread_row_shows_the_thread,
        listing_is_replaced_but_metadata_is_kept,
        updated_moves_with_the_status,
        threads_are_newest_first_then_by_name,
        threads_by_page,
        threads_by_status,
        threads_by_graph,
        threads_by_values_and_metadata,
        filters_compare_type_and_value,
        filters_need_the_field,
        long_texts_are_not_searched,
        largest_values_are_kept_whole,
        questions_are_oldest_first,
        questions_by_page_and_thread,
        questions_open_only,
        questions_that_are_due,
        overdue_by_page,
        unfinished_is_what_must_be_taken_up,
        unfinished_by_page;
    threads:
        created_thread_is_loaded_and_listed,
        create_of_an_existing_thread_changes_nothing,
        racing_creates_have_one_winner,
        create_that_races_a_start_has_one_winner,
        create_after_delete_keeps_former_owners_out,
        first_run_keeps_what_the_row_says,
        annotate_merges_into_the_metadata,
        annotate_names_the_graph_of_a_thread_without_one,
        annotate_of_no_thread_is_false,
        search_follows_annotations,
        lifetime_counts_from_the_last_change,
        lifetime_is_changed_and_removed,
        endless_lifetime_is_never_over,
        running_thread_does_not_expire,
        expired_spans_tenants_and_stops_at_the_limit,
        expired_by_page,
        copy_takes_the_lifetime,
        archive_has_no_lifetime,
        deleted_thread_has_no_lifetime,
        forgotten_thread_leaves_nothing,
        only_a_deleted_thread_is_forgotten,
        threads_by_several_statuses,
        threads_by_ids_and_exceptions,
        threads_that_contain_json_as_the_model,
        threads_are_sorted_both_ways,
        pages_of_every_order_have_no_gaps,
        count_is_of_all_pages,
        tenants_are_apart_in_rows;
    sizes:
        sizes_are_those_of_what_is_stored,
        sizes_are_of_one_tenant_or_thread,
        sizes_by_page;
    search:
        search_follows_the_values,
        search_follows_a_status_without_a_listing,
        deleted_thread_is_found_by_nothing,
        many_fields_are_all_found,
        empty_texts_and_nul_are_only_texts;
    refusal:
        fence_names_the_epoch_that_was_held,
        conflict_names_the_question,
        missing_entry_is_named,
        missing_thread_is_named;
    admin:
        copy_is_idle_and_has_the_same_history,
        copy_up_to_an_entry,
        copy_takes_the_listing_only,
        copy_outside_the_history_is_refused,
        copy_of_no_thread_is_refused,
        copy_onto_a_thread_is_refused,
        copy_onto_a_deleted_thread_keeps_its_epoch,
        large_thread_is_copied_whole,
        start_is_not_taken_for_a_copy,
        copy_goes_its_own_way,
        delete_leaves_nothing,
        delete_twice_is_no_error,
        delete_fences_the_owner,
        start_from_nothing_after_delete_is_fenced,
        start_after_delete_takes_the_next_epoch,
        only_a_claim_makes_a_deleted_thread_anew,
        bare_claim_makes_a_thread,
        former_owner_cannot_write_what_was_made_again,
        recreated_thread_begins_empty,
        delete_and_save_race_to_one_end,
        prune_keeps_survivors_as_they_were,
        prune_without_a_snapshot_drops_nothing,
        prune_is_repeatable,
        pruned_thread_goes_on,
        expire_deletes_old_threads_that_rest,
        expire_stops_at_the_limit;
    archive:
        archive_is_the_same_in_every_store,
        thread_that_was_only_claimed_is_moved,
        pruned_thread_is_moved,
        large_thread_is_moved_whole,
        imported_thread_is_listed_and_found,
        found_no_longer_by_what_has_changed,
        imported_questions_wait_and_are_due,
        imported_thread_is_unfinished_as_before,
        run_goes_on_after_an_import,
        records_move_along,
        cancel_request_moves_along,
        epoch_goes_on_after_an_import,
        import_onto_a_thread_is_refused,
        import_twice_is_done_once,
        racing_imports_leave_one_whole_thread,
        import_that_races_a_start_has_one_winner,
        import_keeps_owners_of_a_deleted_thread_out,
        import_under_another_name_is_refused,
        damaged_archive_is_refused,
        export_of_no_thread_is_refused,
        export_keeps_tenants_apart,
        export_is_of_one_moment;
    security:
        tenants_are_apart_in_loads,
        tenants_are_apart_in_lists,
        tenants_are_apart_in_writes,
        tenant_is_never_a_pattern,
        addresses_do_not_run_together,
        names_differ_by_case,
        hostile_texts_are_only_texts,
        hostile_searches_find_what_a_model_finds,
        hostile_record_keys_are_only_keys;
};

const STORE: &[Clause<dyn Store>] = clauses! {
    store:
        missing_item_is_none,
        put_then_get,
        put_replaces_and_keeps_created,
        put_without_ttl_lives_on,
        delete_says_whether_it_was_there,
        namespaces_hold_their_own_keys,
        tenants_have_their_own_items,
        tenants_have_their_own_lists,
        hostile_prefixes_stay_in_their_tenant,
        every_json_value_but_null,
        limits_are_enforced,
        hostile_keys_are_only_keys,
        expired_items_are_not_found,
        expired_item_is_made_anew,
        read_prolongs_only_if_asked,
        read_never_shortens_a_life,
        endless_life_does_not_overflow,
        sweep_deletes_what_expired,
        sweep_stops_at_the_limit,
        search_by_whole_segments,
        hostile_prefixes_are_only_segments,
        search_filters_before_it_pages,
        search_is_newest_first,
        search_by_page,
        search_by_filters_as_the_model,
        search_compares_nested_values,
        search_of_mixed_types_does_not_fail,
        hostile_filters_are_only_texts,
        namespaces_in_order_without_repeats,
        namespaces_by_page,
        namespaces_cut_by_depth,
        namespaces_by_pattern,
        namespaces_as_the_model,
        racing_puts_leave_one_whole_item,
        put_if_compares_what_is_there,
        put_if_takes_every_value_as_it_was_read,
        put_if_takes_expired_for_nothing,
        put_if_has_the_limits_of_a_put,
        racing_put_ifs_have_one_winner,
        racing_put_ifs_lose_no_count;
};

const REGISTRY: &[Clause<dyn Registry>] = clauses! {
    registry:
        empty_registry_has_no_rows,
        created_run_is_read_as_given,
        same_id_twice_is_stored_once,
        ids_of_tenants_are_apart,
        take_skips_tenants_and_takes_the_rest,
        racing_creates_of_one_id_store_one,
        reject_stores_nothing_if_the_thread_is_busy,
        racing_rejects_have_one_winner,
        begun_run_is_running_as_if_taken,
        run_does_not_begin_on_a_busy_thread,
        racing_begins_of_a_thread_have_one_winner,
        enqueued_run_names_the_runs_before_it,
        take_gives_the_oldest_of_each_thread,
        take_marks_the_run_and_counts_the_attempt,
        take_leaves_a_thread_with_a_running_run_alone,
        take_stops_at_the_limit,
        take_waits_until_a_run_is_due,
        future_run_does_not_block_later_ones,
        take_spans_tenants_and_threads,
        order_is_the_creation_not_the_clock,
        racing_takes_give_each_run_once,
        first_end_stays,
        racing_ends_have_one_winner,
        ended_run_is_never_taken,
        end_of_no_run_is_false,
        next_due_is_the_earliest_of_the_pending,
        release_makes_running_runs_pending,
        released_runs_keep_their_order,
        cancel_withdraws_a_pending_run,
        release_leaves_what_is_held,
        idle_runs_are_released_and_touched_ones_are_not,
        cancel_changes_only_pending_runs,
        released_run_is_not_withdrawn,
        racing_cancel_and_take_agree,
        deleted_run_leaves_nothing,
        delete_of_a_thread_keeps_other_threads,
        runs_are_listed_newest_first,
        runs_by_thread_and_status,
        active_runs_of_a_tenant,
        runs_by_ids,
        runs_by_metadata_as_the_model,
        runs_are_filtered_before_they_are_paged,
        tenants_are_apart_in_runs,
        hostile_texts_of_runs_survive,
        every_json_value_of_a_run_survives,
        large_runs_are_stored_whole,
        created_assistant_is_read_as_given,
        same_assistant_twice_is_stored_once,
        racing_creates_of_one_assistant_store_one,
        change_makes_a_version_and_merges_metadata,
        older_version_becomes_the_current_one,
        version_numbers_are_not_reused,
        racing_changes_make_a_version_each,
        versions_are_newest_first_by_page,
        versions_show_when_their_assistant_was_created,
        assistants_by_name_whatever_its_case,
        assistants_by_graph_and_metadata,
        assistants_are_found_by_their_current_version,
        assistants_are_sorted_both_ways,
        count_of_assistants_is_of_all_pages,
        deleted_assistant_leaves_no_versions,
        tenants_are_apart_in_assistants,
        assistants_of_tenants_share_ids,
        hostile_texts_of_assistants_survive;
    crons:
        empty_registry_has_no_crons,
        created_cron_is_read_as_given,
        same_cron_twice_is_stored_once,
        change_of_a_cron_keeps_what_it_does_not_name,
        change_of_a_cron_that_changed_is_stale,
        changes_of_a_cron_have_times_of_their_own,
        racing_changes_of_a_cron_have_one_winner,
        deleted_cron_is_gone,
        crons_by_assistant_thread_and_switch,
        crons_by_metadata,
        crons_are_sorted_both_ways,
        count_of_crons_is_of_all_pages,
        due_crons_are_of_all_tenants_in_the_order_of_time,
        cron_without_a_time_is_never_due,
        next_cron_due_is_the_earliest,
        tick_moves_the_cron_and_stores_its_run,
        tick_that_is_not_due_writes_nothing,
        tick_of_a_changed_cron_writes_nothing,
        same_tick_twice_is_fired_once,
        racing_ticks_make_one_run,
        tick_of_a_busy_thread_makes_no_run,
        tick_whose_run_exists_stores_no_second,
        failed_tick_says_why_until_the_next_run,
        last_tick_is_the_last,
        tenants_are_apart_in_crons,
        hostile_texts_of_crons_survive;
    keys:
        created_api_key_is_read_as_given,
        same_api_key_twice_is_stored_once,
        racing_creates_of_one_api_key_store_one,
        api_keys_are_newest_first_by_page,
        expiry_of_an_api_key_only_comes_earlier,
        tenants_are_apart_in_api_keys,
        hostile_texts_of_api_keys_survive,
        repeated_request_is_recognised,
        other_request_with_the_same_key_is_different,
        request_keys_of_callers_are_apart,
        expired_request_key_is_free,
        racing_requests_have_one_first,
        sweep_deletes_expired_request_keys,
        hostile_texts_of_requests_are_only_texts;
    deliveries:
        empty_outbox_has_no_deliveries,
        end_of_a_run_stores_its_deliveries,
        second_end_stores_no_deliveries,
        racing_ends_store_the_deliveries_of_one,
        delivery_with_a_known_id_is_not_stored_again,
        taken_delivery_counts_an_attempt_and_is_due_again,
        take_gives_the_oldest_of_each_run,
        take_gives_the_longest_due_first,
        take_of_deliveries_skips_tenants,
        delivery_behind_another_waits_for_its_end,
        racing_takes_give_each_delivery_once,
        end_of_an_attempt_is_stored,
        attempt_that_was_overtaken_ends_nothing,
        ended_delivery_is_not_taken,
        repeated_delivery_is_sent_from_the_beginning,
        attempt_from_before_a_repetition_ends_nothing,
        next_delivery_due_is_of_the_first_of_each_run,
        deliveries_outlive_their_run,
        deliveries_by_run_status_and_page,
        sweep_deletes_old_confirmed_deliveries,
        tenants_are_apart_in_deliveries,
        hostile_texts_of_deliveries_survive;
    audit:
        empty_audit_log_has_no_entries,
        appended_entries_are_read_as_given,
        audit_is_read_after_a_number,
        entries_that_do_not_continue_the_log_are_not_appended,
        same_entries_twice_are_appended_once,
        racing_appends_make_one_chain,
        prune_deletes_the_beginning_of_a_log,
        prune_needs_the_hash_of_an_entry_before_the_last,
        prune_spares_the_logs_of_others,
        tenants_are_apart_in_audit_logs,
        audited_tenants_are_in_order,
        hostile_texts_of_audit_entries_survive;
    erasure:
        erased_tenant_has_nothing_but_its_audit_log,
        others_keep_everything_when_a_tenant_is_erased;
};

const NODE_CACHE: &[Clause<dyn NodeCache>] = clauses! {
    cache:
        missing_result_is_none,
        result_is_found_until_it_expires,
        put_replaces_a_result_and_its_end,
        clear_forgets_what_begins_so_and_nothing_else,
        clear_tenant_forgets_the_results_of_one_tenant,
        sweep_deletes_what_has_expired,
        hostile_and_long_keys_are_only_keys;
};

const SQL: &[Clause<dyn Database>] = clauses! {
    sql:
        answer_to_no_thread_says_so,
        deleted_thread_leaves_no_rows,
        colliding_terms_find_nothing_wrong,
        many_fields_make_few_terms,
        common_value_is_paged_from_the_newest_on,
        item_with_a_flipped_byte_is_not_loaded,
        parked_thread_is_small,
        long_thread_costs_about_its_entries;
};
