//! The points where this runtime behaves as LangGraph does, in the order of the reference's checklist.
//!
//! Point 17 differs on purpose (see also `differs`); point 18, byte shapes, belongs to the server.

use serde_json::json;
use superstep::checkpoint::format::{Change, EntryKind};
use superstep::prelude::*;
use superstep::run::{StreamEventBody, StreamMode};
use superstep::store::{
    FilterOp, ItemFilter, MemoryStore, Namespace, NamespaceQuery, PutItem, Search, Store, Ttl,
};
use superstep::{Durability, NodeName, Seq, SubgraphLife, Timestamp};

use crate::kit::{
    Count, Log, LogUpdate, asked, asks, fails, failures, id_of, keys, memory, options, row, says,
    wrote,
};

const WORK: SendTo<u32> = SendTo::new("work");

async fn work(n: u32, _: NodeCx) -> Result<LogUpdate, NodeError> {
    // Later sends end first.
    for _ in n..3 {
        tokio::task::yield_now().await;
    }
    Ok(wrote(format!("work{n}")))
}

async fn split(_: View<Log>, _: NodeCx) -> Result<Command<Log>, NodeError> {
    let command = Command::update(wrote("split"));
    Ok((0..3).fold(command, |command, n| command.send(&WORK, n)))
}

#[tokio::test]
async fn parity_01_write_order_is_by_name_then_by_send() {
    let graph = Graph::builder("order")
        .node("split", split)
        .node("zeta", says("zeta"))
        .node("alpha", says("alpha"))
        .node("beta", says("beta"))
        .map_node(&WORK, work)
        .edge(START, "split")
        .edge(START, "zeta")
        .commands("split", &["work"])
        .edge("zeta", "beta")
        .edge("zeta", "alpha")
        .edge("alpha", END)
        .edge("beta", END)
        .edge("work", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let done = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(
        done.state.ran,
        ["split", "zeta", "alpha", "beta", "work0", "work1", "work2"]
    );
}

#[tokio::test]
async fn parity_02_a_superstep_is_one_entry_with_all_its_writes() {
    let graph = Graph::builder("wide")
        .node("a", says("a"))
        .node("b", says("b"))
        .node("c", says("c"))
        .edge(START, "a")
        .edge(START, "b")
        .edge("a", "c")
        .edge("b", "c")
        .edge("c", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let history = thread.history(Seq(0), 100).await.unwrap();
    let writes = history.iter().map(|past| {
        let of = past.entry.changes.iter().map(|change| match change {
            Change::FrameAdvanced(advanced) => advanced.writes.len(),
            _ => 0,
        });
        (past.seq.0, past.entry.kind, of.sum())
    });
    assert_eq!(
        writes.collect::<Vec<_>>(),
        [
            (1, EntryKind::Input, 0),
            (2, EntryKind::Step, 2),
            (3, EntryKind::Step, 1)
        ]
    );
}

#[tokio::test]
async fn parity_03_ephemerals_and_topics_live_for_one_superstep() {
    async fn first(_: View<Log>, _: NodeCx) -> Result<LogUpdate, NodeError> {
        Ok(LogUpdate::default().fresh("news").hint("psst".to_owned()))
    }
    async fn look(log: View<Log>, _: NodeCx) -> Result<LogUpdate, NodeError> {
        Ok(wrote(format!("{:?} {:?}", log.fresh, log.hint)))
    }
    let graph = Graph::builder("short")
        .node("a", first)
        .node("b", look)
        .node("c", look)
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", "c")
        .edge("c", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let done = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(done.state.ran, [r#"["news"] Some("psst")"#, "[] None"]);
}

#[tokio::test]
async fn parity_04_a_join_waits_for_all_and_starts_over_on_the_way_back() {
    let graph = Graph::builder("join")
        .node("s", says("s"))
        .node("a", says("a"))
        .node("b", says("b"))
        .node("b2", says("b2"))
        .node("j", says("j"))
        .edge(START, "s")
        .edge("s", "a")
        .edge("s", "b")
        .edge("b", "b2")
        .join(&["a", "b2"], "j")
        .route("j", &["s", END], |log| {
            if log.ran.iter().filter(|ran| *ran == "j").count() < 2 {
                "s"
            } else {
                END
            }
        })
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let done = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(
        done.state.ran,
        ["s", "a", "b", "b2", "j", "s", "a", "b", "b2", "j"]
    );
}

#[tokio::test]
async fn parity_05_a_deferred_node_runs_after_branches_of_unequal_depth() {
    let graph = Graph::builder("defer")
        .node("a", says("a"))
        .node("b", says("b"))
        .node("c", says("c"))
        .node("d", says("d"))
        .node("last", says("last"))
        .defer("last")
        .edge(START, "a")
        .edge(START, "b")
        .edge("a", "last")
        .edge("b", "c")
        .edge("c", "d")
        .edge("d", "last")
        .edge("last", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let done = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(done.state.ran, ["a", "b", "c", "d", "last"]);
}

async fn sets_last(_: View<Log>, _: NodeCx) -> Result<LogUpdate, NodeError> {
    Ok(wrote("x").last("x".to_owned()))
}

#[tokio::test]
async fn parity_06_two_writers_of_one_value_fail_and_the_error_names_the_channel() {
    let graph = Graph::builder("conflict")
        .node("a", sets_last)
        .node("b", sets_last)
        .edge(START, "a")
        .edge(START, "b")
        .edge("a", END)
        .edge("b", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let failed = thread.start(LogUpdate::default()).await.unwrap();
    let Outcome::Failed(failures) = &failed.outcome else {
        panic!("{failed:?}")
    };
    assert_eq!(failures[0].kind.code(), "node-conflicting-writes");
    assert!(
        failures[0]
            .message
            .starts_with("`a` and `b` both write `last`"),
        "{}",
        failures[0].message
    );
    assert_eq!(failed.state, Log::default(), "nothing of it was applied");
}

#[tokio::test]
async fn parity_07_an_overwrite_wins_its_superstep() {
    async fn over(_: View<Log>, _: NodeCx) -> Result<LogUpdate, NodeError> {
        Ok(LogUpdate::default().overwrite_ran(["only".to_owned()]))
    }
    let overwriting = |twice: bool| {
        let builder = Graph::builder("overwrite")
            .node("a", says("a"))
            .node("b", over)
            .edge(START, "a")
            .edge(START, "b")
            .edge("a", END)
            .edge("b", END)
            .edge("c", END)
            .edge(START, "c");
        if twice {
            builder.node("c", over).build().unwrap()
        } else {
            builder.node("c", says("c")).build().unwrap()
        }
    };
    let once = memory().thread(&overwriting(false), "t").unwrap();
    let done = once.start(wrote("before")).await.unwrap();
    assert_eq!(done.state.ran, ["only"]);
    let twice = memory().thread(&overwriting(true), "t").unwrap();
    let failed = twice.start(wrote("before")).await.unwrap();
    assert_eq!(failures(&failed)[0].1.code(), "node-conflicting-writes");
}

#[tokio::test]
async fn parity_08_after_a_partial_failure_only_what_failed_runs_again() {
    let (good, bad) = (Count::default(), Count::default());
    let graph = Graph::builder("partial")
        .node("a", fails("a", 0, &good))
        .node("b", fails("b", 1, &bad))
        .edge(START, "a")
        .edge(START, "b")
        .edge("a", END)
        .edge("b", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let failed = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(failures(&failed)[0].0, "b");
    let done = thread.resume().await.unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
    assert_eq!(done.state.ran, ["a", "b"]);
    assert_eq!((good.get(), bad.get()), (1, 2));
}

/// A graph whose one node asks twice, one after the other.
fn two_questions() -> Graph<Log> {
    async fn node(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
        let first: i64 = cx.interrupt(Interrupt::new("first", 1)).await?;
        let second: i64 = cx.interrupt(Interrupt::new("second", 2)).await?;
        Ok(LogUpdate::default().total(first * 10 + second))
    }
    Graph::builder("two")
        .node("node", node)
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap()
}

fn fan_out_of_questions() -> Graph<Log> {
    Graph::builder("fan")
        .node("a", asks("a"))
        .node("b", asks("b"))
        .node("c", says("c"))
        .edge(START, "a")
        .edge(START, "b")
        .edge(START, "c")
        .edge("a", END)
        .edge("b", END)
        .edge("c", END)
        .build()
        .unwrap()
}

#[tokio::test]
async fn parity_09_interrupts_in_a_node_a_fan_out_and_nested_subgraphs() {
    let runtime = memory();
    // Several in one node: each answer brings the next question.
    let thread = runtime.thread(&two_questions(), "node").unwrap();
    assert_eq!(
        keys(&thread.start(LogUpdate::default()).await.unwrap()),
        ["first"]
    );
    assert_eq!(
        keys(&thread.answer_only(4).await.unwrap().unwrap()),
        ["second"]
    );
    let done = thread.answer_only(2).await.unwrap().unwrap();
    assert_eq!(done.state.total, 42);

    // In a fan-out: together, and a single answer without an id is refused while two are open.
    let thread = runtime.thread(&fan_out_of_questions(), "fan").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(keys(&paused), ["a", "b"]);
    let refused = thread.answer_only("?").await.unwrap_err();
    assert_eq!(refused.code(), "drive-ambiguous-answer");
    // Partial: what was answered ends, the rest stays open.
    let partial = thread.answer(id_of(&paused, "b"), "yes").await.unwrap();
    assert_eq!(keys(&partial.unwrap()), ["a"]);
    let done = thread.answer_only("no").await.unwrap().unwrap();
    assert_eq!(done.state.ran, ["a=no", "b=yes", "c"]);

    // By a map, all at once, two levels down.
    let outer = Graph::builder("outer")
        .shared_subgraph("inner", fan_out_of_questions())
        .edge(START, "inner")
        .edge("inner", END)
        .build()
        .unwrap();
    let thread = runtime.thread(&outer, "nested").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let answers = asked(&paused).into_iter().map(|(key, id)| (id, key));
    let done = thread.answer_as("ada", answers).await.unwrap().unwrap();
    assert_eq!(done.state.ran, ["a=a", "b=b", "c"]);
}

#[tokio::test]
async fn parity_10_a_new_input_drops_what_waits_and_starts_over_with_the_old_state() {
    let graph = Graph::builder("again")
        .node("first", says("first"))
        .node("ask", asks("ask"))
        .edge(START, "first")
        .edge("first", "ask")
        .edge("ask", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let paused = thread.start(wrote("one")).await.unwrap();
    let again = thread.start(wrote("two")).await.unwrap();
    assert_eq!(again.state.ran, ["one", "first", "two", "first"]);
    assert_ne!(id_of(&paused, "ask"), id_of(&again, "ask"));
    let late = thread.answer(id_of(&paused, "ask"), "late").await;
    assert_eq!(late.unwrap_err().code(), "checkpoint-not-open");
}

#[tokio::test]
async fn parity_11_static_breakpoints_do_not_fire_again() {
    let builder = Graph::builder("stops")
        .node("a", says("a"))
        .node("b", says("b"))
        .pause_before("a")
        .pause_after("a")
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", END);
    let thread = memory().thread(&builder.build().unwrap(), "t").unwrap();
    let before = thread.start(LogUpdate::default()).await.unwrap();
    assert!(
        matches!(before.outcome, Outcome::Breakpoint(_)),
        "{before:?}"
    );
    let after = thread.resume().await.unwrap();
    assert!(matches!(after.outcome, Outcome::Breakpoint(_)), "{after:?}");
    assert_eq!(after.state.ran, ["a"]);
    let done = thread.resume().await.unwrap();
    assert_eq!(done.outcome, Outcome::Finished);

    // Of one run: not remembered by the next.
    let thread = memory().thread(&row(&["a", "b"]), "t").unwrap();
    let stops = options(|o| o.pause_before = [NodeName::new("b").unwrap()].into());
    let handle = thread.with_options(stops);
    let before = handle.start(LogUpdate::default()).await.unwrap();
    assert!(
        matches!(before.outcome, Outcome::Breakpoint(_)),
        "{before:?}"
    );
    let done = handle.with_options(options(|_| {})).resume().await.unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
}

/// A child that counts how often it was entered, and asks if it may.
fn counting_child(asks: bool) -> Graph<Log> {
    Graph::builder("child")
        .node("count", move |log: View<Log>, cx: NodeCx| async move {
            if asks {
                let _: bool = cx.interrupt(Interrupt::new("sure", "?")).await?;
            }
            Ok::<_, NodeError>(LogUpdate::default().total(1).last(log.total.to_string()))
        })
        .edge(START, "count")
        .edge("count", END)
        .build()
        .unwrap()
}

fn with_child(life: SubgraphLife, asks: bool) -> Graph<Log> {
    Graph::builder("parent")
        .subgraph(
            "child",
            counting_child(asks),
            |_| LogUpdate::default(),
            |_, child| wrote(child.total.to_string()),
        )
        .life("child", life)
        .edge(START, "child")
        .edge("child", END)
        .build()
        .unwrap()
}

#[tokio::test]
async fn parity_12_the_three_lives_of_a_subgraph() {
    for (life, remembers) in [
        (SubgraphLife::Invocation, ["1", "1"]),
        (SubgraphLife::Thread, ["1", "2"]),
        (SubgraphLife::Stateless, ["1", "1"]),
    ] {
        let thread = memory().thread(&with_child(life, false), "t").unwrap();
        thread.start(LogUpdate::default()).await.unwrap();
        let done = thread.start(LogUpdate::default()).await.unwrap();
        assert_eq!(done.state.ran, remembers, "{life:?}");
    }
    for life in [SubgraphLife::Invocation, SubgraphLife::Thread] {
        let thread = memory().thread(&with_child(life, true), "t").unwrap();
        thread.start(LogUpdate::default()).await.unwrap();
        let done = thread.answer_only(true).await.unwrap().unwrap();
        assert_eq!(done.state.ran, ["1"], "{life:?}");
    }
    let thread = memory()
        .thread(&with_child(SubgraphLife::Stateless, true), "t")
        .unwrap();
    let failed = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(failures(&failed)[0].1.code(), "node-stateless-interrupt");
}

async fn leaves(_: View<Log>, _: NodeCx) -> Result<Command<Log>, NodeError> {
    Ok(Command::parent(
        Command::<Log>::update(wrote("left")).goto("b"),
    ))
}

#[tokio::test]
async fn parity_13_a_command_to_the_parent_drops_what_the_child_did() {
    let child = Graph::builder("child")
        .node("x", says("x"))
        .node("leave", leaves)
        .edge(START, "x")
        .edge("x", "leave")
        .edge("leave", END)
        .build()
        .unwrap();
    let graph = Graph::builder("parent")
        .shared_subgraph("child", child)
        .node("a", says("a"))
        .node("b", says("b"))
        .edge(START, "child")
        .commands("child", &["a", "b"])
        .edge("a", END)
        .edge("b", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let done = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(done.state.ran, ["left", "b"], "{done:?}");

    let root = Graph::builder("root")
        .node("leave", leaves)
        .edge(START, "leave")
        .edge("leave", END)
        .build()
        .unwrap();
    let thread = memory().thread(&root, "t").unwrap();
    let failed = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(failures(&failed)[0].1.code(), "node-no-parent");
}

#[tokio::test]
async fn parity_14_an_update_as_a_node_decides_what_runs_next() {
    let runtime = memory();
    let thread = runtime.thread(&row(&["a", "b", "c"]), "t").unwrap();
    thread.update_as("a", wrote("edited")).await.unwrap();
    let next = thread.state().await.unwrap().unwrap().next;
    assert_eq!(next[0].node.as_str(), "b");
    let done = thread.resume().await.unwrap();
    assert_eq!(done.state.ran, ["edited", "b", "c"]);

    // As the end: whatever was planned is dropped.
    let ended = runtime.thread(&row(&["a", "b", "c"]), "ended").unwrap();
    ended.update_as("a", wrote("edited")).await.unwrap();
    ended.finish().await.unwrap();
    assert_eq!(
        ended.resume().await.unwrap_err().code(),
        "open-nothing-to-run"
    );

    // A copy goes on by itself.
    let copy = thread.copy_to("copy", Some(Seq(1))).await.unwrap();
    let done = copy.resume().await.unwrap();
    assert_eq!(done.state.ran, ["edited", "b", "c"]);
    assert_eq!(
        copy.history(Seq(1), 1).await.unwrap()[0].entry.kind,
        EntryKind::Fork
    );
    let unknown = thread.update_as("nobody", wrote("x")).await.unwrap_err();
    assert_eq!(unknown.code(), "open-no-such-node");
}

#[tokio::test]
async fn parity_15_a_replay_is_a_fork_that_runs_everything_again_and_asks_again() {
    let calls = Count::default();
    let graph = Graph::builder("replay")
        .node("a", fails("a", 0, &calls))
        .node("ask", asks("ask"))
        .edge(START, "a")
        .edge("a", "ask")
        .edge("ask", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let first = thread.start(LogUpdate::default()).await.unwrap();
    thread.answer_only("yes").await.unwrap();
    let again = thread.replay(Seq(1)).await.unwrap();
    assert_eq!(calls.get(), 2);
    assert_ne!(id_of(&first, "ask"), id_of(&again, "ask"), "asked anew");
    let kinds = thread.history(Seq(0), 100).await.unwrap();
    let forks = kinds
        .iter()
        .filter(|past| past.entry.kind == EntryKind::Fork);
    assert_eq!(forks.count(), 1);
    let done = thread.answer_only("no").await.unwrap().unwrap();
    assert_eq!(done.state.ran, ["a", "ask=no"]);
}

#[tokio::test]
async fn parity_16_durability_exit_makes_one_checkpoint() {
    let thread = memory().thread(&row(&["a", "b", "c"]), "t").unwrap();
    let exit = thread.with_options(options(|o| o.durability = Durability::Exit));
    let first = exit.start(LogUpdate::default()).await.unwrap();
    assert_eq!(first.state.ran, ["a", "b", "c"]);
    let before = exit.history(Seq(0), 100).await.unwrap().len();
    exit.start(LogUpdate::default()).await.unwrap();
    let after = exit.history(Seq(0), 100).await.unwrap().len();
    assert_eq!(after - before, 1 + crate::ENTRIES_OF_AN_ID);
}

#[tokio::test]
async fn parity_17_a_limit_finishes_and_resuming_allows_as_many_again() {
    let graph = Graph::builder("loop")
        .node("a", says("a"))
        .edge(START, "a")
        .edge("a", "a")
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let limited = thread.with_options(options(|o| o.step_limit = 3));
    let stopped = limited.start(LogUpdate::default()).await.unwrap();
    assert_eq!(stopped.outcome, Outcome::StepLimit);
    assert_eq!(stopped.state.ran.len(), 3);
    let again = limited.resume().await.unwrap();
    assert_eq!(again.outcome, Outcome::StepLimit);
    assert_eq!(again.state.ran.len(), 6);
}

#[tokio::test]
async fn parity_19_a_cached_result_is_marked() {
    let calls = Count::default();
    let graph = Graph::builder("cached")
        .node("a", fails("a", 0, &calls))
        .cache("a", None, |_| "same".to_owned())
        .edge(START, "a")
        .edge("a", END)
        .build()
        .unwrap();
    let runtime = memory();
    let mut marks = Vec::new();
    for name in ["one", "two"] {
        let thread = runtime.thread(&graph, name).unwrap();
        let done = thread.start(LogUpdate::default()).await.unwrap();
        assert_eq!(done.state.ran, ["a"]);
        let seen = thread.events(Seq(0)).only([StreamMode::Updates]);
        for seen in seen.stored().await.unwrap() {
            if let StreamEventBody::Update { cached, .. } = seen.what {
                marks.push(cached);
            }
        }
    }
    assert_eq!(marks, [false, true]);
    assert_eq!(calls.get(), 1);
}

#[tokio::test]
async fn parity_20_store_filters_and_namespaces() {
    for bad in [vec![], vec![""], vec!["a.b"], vec!["langgraph", "x"]] {
        let refused = Namespace::new(bad.clone()).unwrap_err();
        assert_eq!(refused.code(), "store-namespace", "{bad:?}");
    }
    let store = MemoryStore::new();
    let now = Timestamp(0);
    let users = Namespace::new(["acme", "users"]).unwrap();
    for (key, value) in [
        ("ada", json!({"age": 36, "tags": ["x"]})),
        ("bob", json!({"age": 17, "name": "bob"})),
        ("eve", json!({"age": "old"})),
    ] {
        let put = PutItem {
            namespace: users.clone(),
            key: key.to_owned(),
            value,
            ttl: None,
        };
        store.put(&put, now).await.unwrap();
    }
    let found = async |filters: &[(&str, FilterOp, serde_json::Value)]| {
        let filters = filters.iter().map(|(field, op, value)| ItemFilter {
            field: (*field).to_owned(),
            op: *op,
            value: value.clone(),
        });
        let search = Search {
            prefix: vec!["acme".to_owned()],
            filters: filters.collect(),
            ..Search::default()
        };
        let items = store.search(&search, now).await.unwrap();
        let mut keys: Vec<_> = items.into_iter().map(|item| item.key).collect();
        keys.sort();
        keys
    };
    assert_eq!(
        found(&[("tags", FilterOp::Eq, json!(["x"]))]).await,
        ["ada"]
    );
    assert_eq!(
        found(&[("age", FilterOp::Gte, json!(17))]).await,
        ["ada", "bob"]
    );
    let between = [
        ("age", FilterOp::Gt, json!(17)),
        ("age", FilterOp::Lt, json!(99)),
    ];
    assert_eq!(found(&between).await, ["ada"]);
    assert_eq!(
        found(&[("name", FilterOp::Ne, json!("bob"))]).await,
        ["ada", "eve"]
    );

    let prefix = Search {
        prefix: vec!["acm".to_owned()],
        ..Search::default()
    };
    assert!(store.search(&prefix, now).await.unwrap().is_empty());
    let query = NamespaceQuery {
        prefix: vec!["*".to_owned(), "users".to_owned()],
        ..NamespaceQuery::default()
    };
    assert_eq!(
        store.namespaces(&query, now).await.unwrap(),
        std::slice::from_ref(&users)
    );
    let short = PutItem {
        namespace: users.clone(),
        key: "gone".to_owned(),
        value: json!(1),
        ttl: Some(Ttl {
            ms: 10,
            refresh_on_read: false,
        }),
    };
    store.put(&short, now).await.unwrap();
    assert!(
        store
            .get(&users, "gone", Timestamp(9))
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        store
            .get(&users, "gone", Timestamp(10))
            .await
            .unwrap()
            .is_none()
    );
}
