//! Who runs when: edges, joins, sends, deferred nodes, pauses, failures, limits.

use insta::assert_snapshot;

use crate::simulate::simulate;

#[test]
fn join_runs_once_after_both_branches() {
    assert_snapshot!(simulate("start -> a, b; a -> join; b -> join; finish b, a"), @r"
    1 run a b
    1 save
    2 run join
    2 save
    stop Finished
    ");
}

#[test]
fn a_barrier_join_waits_for_branches_of_unequal_depth() {
    assert_snapshot!(simulate("start -> a, b; b -> c; join a+c -> d; show"), @r"
    1 run a b
    1 save
    2 run c
    2 save
    3 run d
    3 save
    stop Finished
    ran a b c d
    ");
}

#[test]
fn a_join_starts_over_when_the_graph_loops_back() {
    assert_snapshot!(simulate("start -> s; s -> a, b; join a+b -> j; loop j -> s*1; show"), @r"
    1 run s
    1 save
    2 run a b
    2 save
    3 run j
    3 save
    4 run s
    4 save
    5 run a b
    5 save
    6 run j
    6 save
    stop Finished
    ran s a b j s a b j
    ");
}

#[test]
fn writes_are_in_order_of_names_whatever_ends_first() {
    assert_snapshot!(simulate("start -> c, a, b; finish c, b, a; show"), @r"
    1 run a b c
    1 save
    stop Finished
    ran a b c
    ");
}

#[test]
fn sends_run_in_the_order_they_were_made_after_nodes_by_name() {
    assert_snapshot!(simulate("start -> s, z; send s -> w*3; z -> y; finish w, y; show"), @r"
    1 run s z
    1 save
    2 run y w w w
    2 save
    stop Finished
    ran s z y w0 w1 w2
    ");
}

#[test]
fn a_deferred_node_waits_for_the_deepest_branch() {
    assert_snapshot!(simulate("start -> a, b; a -> last; b -> c; c -> d; d -> last; defer last; show"), @r"
    1 run a b
    1 save
    2 run c
    2 save
    3 run d
    3 save
    4 run last
    4 save
    stop Finished
    ran a b c d last
    ");
}

#[test]
fn two_deferred_nodes_run_together_and_the_graph_goes_on() {
    assert_snapshot!(simulate("start -> a; a -> x, y; x -> z; defer x, y; show"), @r"
    1 run a
    1 save
    2 run x y
    2 save
    3 run z
    3 save
    stop Finished
    ran a x y z
    ");
}

#[test]
fn a_pause_waits_for_running_siblings_and_keeps_their_results() {
    assert_snapshot!(simulate("start -> a, b, c; ask a; finish a, c, b; answer a; show"), @r"
    1 run a b c
    1 save
    stop Paused a
    1 run a
    1 save
    stop Finished
    ran a b c
    ");
}

#[test]
fn partial_answers_leave_the_rest_open() {
    assert_snapshot!(simulate("start -> a, b; ask a, b; answer b; answer a; show"), @r"
    1 run a b
    1 save
    stop Paused a b
    1 run b
    1 save
    stop Paused a
    1 run a
    1 save
    stop Finished
    ran a b
    ");
}

#[test]
fn siblings_of_a_failure_finish_and_only_the_failed_one_runs_again() {
    assert_snapshot!(simulate("start -> a, b, c; fail b; finish b, a, c; resume; show"), @r"
    1 run a b c
    1 save
    stop Failed b node-fatal
    1 run b
    1 save
    stop Finished
    ran a b c
    ");
}

#[test]
fn retries_wait_longer_each_time_up_to_a_limit() {
    assert_snapshot!(simulate("start -> a; retry a*4; show"), @r"
    1 run a
    1 save attempt
    1000 ms
    1 run a
    1 save attempt
    3000 ms
    1 run a
    1 save attempt
    7000 ms
    1 run a
    1 save attempt
    11000 ms
    1 run a
    1 save
    stop Finished
    ran a
    ");
}

#[test]
fn a_retry_does_not_hold_up_its_siblings_but_the_barrier_waits_for_it() {
    assert_snapshot!(simulate("start -> a, b; a -> c; b -> c; retry a*1; show"), @r"
    1 run a b
    1 save attempt
    1000 ms
    1 run a
    1 save
    2 run c
    2 save
    stop Finished
    ran a b c
    ");
}

#[test]
fn a_failure_beside_a_question_is_told_and_the_question_stays() {
    assert_snapshot!(simulate("start -> a, b; ask a; fail b; answer a; show"), @r"
    1 run a b
    1 save
    stop Failed b node-fatal
    1 run a b
    1 save
    stop Finished
    ran a b
    ");
}

#[test]
fn the_order_in_which_tasks_end_changes_nothing() {
    let names = ["a", "b", "c", "d"];
    let logs: std::collections::BTreeSet<String> = permutations(&names)
        .into_iter()
        .map(|order| {
            let order = order.join(", ");
            simulate(&format!(
                "start -> d, c, b, a; join a+b -> x; c -> y; finish {order}; show"
            ))
        })
        .collect();
    assert_eq!(logs.len(), 1, "{logs:#?}");
}

fn permutations<'a>(names: &[&'a str]) -> Vec<Vec<&'a str>> {
    if names.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for at in 0..names.len() {
        let mut rest = names.to_vec();
        let first = rest.remove(at);
        for mut order in permutations(&rest) {
            order.insert(0, first);
            all.push(order);
        }
    }
    all
}

#[test]
fn a_limit_stops_and_resuming_allows_as_many_steps_again() {
    assert_snapshot!(simulate("start -> a; loop a -> a*4; limit 2; resume; resume; show"), @r"
    1 run a
    1 save
    2 run a
    2 save
    stop StepLimit
    3 run a
    3 save
    4 run a
    4 save
    stop StepLimit
    5 run a
    5 save
    stop Finished
    ran a a a a a
    ");
}

#[test]
fn breakpoints_stop_once_on_each_side() {
    assert_snapshot!(simulate("start -> a; a -> b; b -> c; before b; after b; resume; resume; show"), @r"
    1 run a
    1 save
    1 save
    stop Breakpoint Before b
    2 run b
    2 save
    stop Breakpoint After b
    3 run c
    3 save
    stop Finished
    ran a b c
    ");
}

#[test]
fn a_breakpoint_fires_again_when_the_node_comes_round_again() {
    assert_snapshot!(simulate("start -> a; loop a -> a*1; before a; resume; resume; show"), @r"
    0 save
    stop Breakpoint Before a
    1 run a
    1 save
    1 save
    stop Breakpoint Before a
    2 run a
    2 save
    stop Finished
    ran a a
    ");
}

#[test]
fn a_breakpoint_after_the_last_node_has_nothing_to_stop() {
    assert_snapshot!(simulate("start -> a; after a"), @r"
    1 run a
    1 save
    stop Finished
    ");
}
