//! Threads outlive code: parked by one version of a program, taken up by another.

use superstep::error::{MigrationError, OpenError};
use superstep::prelude::*;
use superstep::run::check;
use superstep::state::Fields;
use superstep::{DriveError, RunId, RunOptions, Seq, ThreadId};

use crate::kit::{Count, Log, LogUpdate, asks, fails, failures, id_of, memory, says, wrote};

mod old {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, State)]
    pub(super) struct Doc {
        pub(super) title: String,
        #[state(append)]
        pub(super) notes: Vec<String>,
        pub(super) score: String,
        pub(super) legacy: u32,
    }

    pub(super) fn graph() -> Graph<Doc> {
        let write = |_: View<Doc>, _: NodeCx| async {
            let update = DocUpdate::default().notes("written").score("41".to_owned());
            Ok::<_, NodeError>(update.legacy(7_u32))
        };
        let ask = |_: View<Doc>, cx: NodeCx| async move {
            let note: String = cx.interrupt(Interrupt::new("note", "?")).await?;
            Ok::<_, NodeError>(DocUpdate::default().notes(note))
        };
        Graph::builder("doc")
            .node("write", write)
            .node("ask", ask)
            .edge(START, "write")
            .edge("write", "ask")
            .edge("ask", END)
            .build()
            .unwrap()
    }
}

mod new {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, State)]
    #[state(version = 2, migrate = migrate, removed("legacy"))]
    pub(super) struct Doc {
        pub(super) title: String,
        #[state(append)]
        pub(super) remarks: Vec<String>,
        pub(super) score: i64,
    }

    fn migrate(from: u32, fields: &mut Fields) -> Result<(), MigrationError> {
        assert_eq!(from, 1);
        fields.rename("notes", "remarks");
        fields.change("score", |score| {
            let text = score.as_str().unwrap_or_default();
            text.parse::<i64>().unwrap_or(0).into()
        });
        Ok(())
    }

    pub(super) fn graph() -> Graph<Doc> {
        let nothing = |_: View<Doc>, _: NodeCx| async { Ok::<_, NodeError>(DocUpdate::default()) };
        let ask = |doc: View<Doc>, cx: NodeCx| async move {
            let note: String = cx.interrupt(Interrupt::new("note", "?")).await?;
            Ok::<_, NodeError>(DocUpdate::default().remarks(note).score(doc.score + 1))
        };
        Graph::builder("doc")
            .node("write", nothing)
            .node("ask", ask)
            .edge(START, "write")
            .edge("write", "ask")
            .edge("ask", END)
            .build()
            .unwrap()
    }
}

#[tokio::test]
async fn old_snapshots_and_old_deltas_become_the_new_struct() {
    // Small: only deltas are stored. Large: a snapshot, and deltas after it.
    for bytes in [10, 10_000] {
        let runtime = memory();
        let thread = runtime.thread(&old::graph(), "t").unwrap();
        let title = "x".repeat(bytes);
        for _ in 0..2 {
            thread
                .start(old::DocUpdate::default().title(title.clone()))
                .await
                .unwrap();
        }
        let upgraded = runtime.thread(&new::graph(), "t").unwrap();
        let before: new::Doc = upgraded
            .state()
            .await
            .unwrap()
            .unwrap()
            .values
            .decode()
            .unwrap();
        assert_eq!((before.score, before.remarks.len()), (41, 2));
        let done = upgraded.answer_only("new").await.unwrap().unwrap();
        assert_eq!(done.outcome, Outcome::Finished);
        assert_eq!(done.state.remarks, ["written", "written", "new"]);
        assert_eq!(done.state.score, 42);
        assert_eq!(done.state.title, title);
        // From here on it is data of the new version, and old and new entries read as one history.
        let again = upgraded.state().await.unwrap().unwrap();
        assert_eq!(again.values.decode::<new::Doc>().unwrap(), done.state);
        for seq in 1..=done.seq.0 {
            assert!(upgraded.state_at(Seq(seq)).await.unwrap().is_some());
        }
    }
}

#[tokio::test]
async fn data_of_a_newer_program_and_data_without_a_migration_are_refused() {
    let runtime = memory();
    let newer = runtime.thread(&new::graph(), "newer").unwrap();
    newer
        .start(new::DocUpdate::default().title("t"))
        .await
        .unwrap();
    let refused = runtime.thread(&old::graph(), "newer").unwrap();
    let DriveError::Open(OpenError::Unreadable { source, .. }) =
        refused.resume().await.unwrap_err()
    else {
        panic!("another error")
    };
    assert!(
        source.to_string().contains("version 2") && source.to_string().contains("newer program"),
        "{source}"
    );

    #[derive(Clone, Debug, Default, State)]
    #[state(version = 3)]
    struct Doc {
        title: String,
    }
    let graph = Graph::<Doc>::builder("doc")
        .node("ask", |doc: View<Doc>, _: NodeCx| async move {
            Ok::<_, NodeError>(DocUpdate::default().title(doc.title.clone()))
        })
        .edge(START, "ask")
        .edge("ask", END)
        .build()
        .unwrap();
    let thread = runtime.thread(&graph, "newer").unwrap();
    let error = thread.resume().await.unwrap_err();
    assert_eq!(error.code(), "open-unreadable");
}

fn with_nodes(first: &'static str, ask: &'static str) -> Graph<Log> {
    Graph::builder("renamed")
        .node(first, says(first))
        .node(ask, asks("q"))
        .edge(START, first)
        .edge(first, ask)
        .edge(ask, END)
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_waiting_node_that_is_gone_is_told_before_anything_runs() {
    let runtime = memory();
    let old = runtime.thread(&with_nodes("a", "ask"), "t").unwrap();
    let paused = old.start(LogUpdate::default()).await.unwrap();
    let graph = with_nodes("a", "question");
    let renamed = runtime.thread(&graph, "t").unwrap();
    let loaded = runtime.checkpointer().load(renamed.id()).await.unwrap();
    let told = check(graph.definition(), renamed.id(), &loaded.unwrap()).unwrap_err();
    assert_eq!(told.code(), "open-node-gone");
    for refused in [renamed.resume().await, renamed.recover().await] {
        assert_eq!(refused.unwrap_err().code(), "open-node-gone");
    }
    let seq = renamed.state().await.unwrap().unwrap().seq;
    assert_eq!(seq, paused.seq, "nothing was written");
    // The way out that the message names.
    renamed.update_as("a", wrote("moved")).await.unwrap();
    let asked = renamed.resume().await.unwrap();
    assert!(matches!(asked.outcome, Outcome::Paused(_)));
    // Nodes that ran before may be renamed freely.
    let other = runtime.thread(&with_nodes("b", "question"), "t").unwrap();
    let done = other.answer_only("yes").await.unwrap().unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
}

#[tokio::test]
async fn a_thread_of_another_graph_is_refused() {
    let runtime = memory();
    let thread = runtime.thread(&with_nodes("a", "ask"), "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let other = runtime.thread(&crate::kit::row(&["a"]), "t").unwrap();
    for refused in [
        other.resume().await.map(|_| ()),
        other.start(LogUpdate::default()).await.map(|_| ()),
        other.state().await.map(|_| ()),
        other.update_as("a", wrote("x")).await.map(|_| ()),
    ] {
        assert_eq!(refused.unwrap_err().code(), "open-other-graph");
    }
}

#[tokio::test]
async fn a_payload_whose_type_changed_parks_the_thread() {
    const NUMBER: SendTo<u32> = SendTo::new("work");
    const TEXT: SendTo<String> = SendTo::new("work");
    let old = Graph::builder("payload")
        .map_node(&NUMBER, |_: u32, _: NodeCx| async {
            Err::<LogUpdate, _>(NodeError::fatal("broken"))
        })
        .route(START, &["work"], |_: &Log| Goto::send(&NUMBER, 7))
        .edge("work", END)
        .build()
        .unwrap();
    let new = Graph::builder("payload")
        .map_node(&TEXT, |text: String, _: NodeCx| async move {
            Ok::<_, NodeError>(wrote(text))
        })
        .route(START, &["work"], |_: &Log| {
            Goto::send(&TEXT, "x".to_owned())
        })
        .edge("work", END)
        .build()
        .unwrap();
    let runtime = memory();
    let thread = runtime.thread(&old, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let upgraded = runtime.thread(&new, "t").unwrap();
    let parked = upgraded.resume().await.unwrap();
    assert_eq!(failures(&parked)[0].1.code(), "node-record-unreadable");
}

/// `goes` chooses `x`, `ask` asks beside it; without `x` the choice has nowhere to go.
fn chooses(with_x: bool, calls: &Count) -> Graph<Log> {
    let calls = calls.clone();
    let mut builder = Graph::builder("chooses")
        .node("goes", move |_: View<Log>, _: NodeCx| {
            calls.up();
            async { Ok::<_, NodeError>(Command::update(wrote("goes")).goto("x")) }
        })
        .node("ask", asks("q"))
        .edge(START, "goes")
        .edge(START, "ask")
        .edge("ask", END);
    builder = if with_x {
        builder
            .node("x", says("x"))
            .edge("x", END)
            .commands("goes", &["x"])
    } else {
        builder.commands("goes", &[END])
    };
    builder.build().unwrap()
}

#[tokio::test]
async fn a_stored_choice_of_a_node_that_is_gone_fails_by_name_and_is_kept() {
    let (runtime, calls) = (memory(), Count::default());
    let thread = runtime.thread(&chooses(true, &calls), "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let without = runtime.thread(&chooses(false, &calls), "t").unwrap();
    let failed = without.answer(id_of(&paused, "q"), "yes").await.unwrap();
    let told = failures(&failed.unwrap());
    assert_eq!(told[0].1.code(), "node-undeclared-target");
    let back = runtime.thread(&chooses(true, &calls), "t").unwrap();
    let done = back.resume().await.unwrap();
    assert_eq!(done.state.ran, ["q=yes", "goes", "x"]);
    assert_eq!(calls.get(), 1);
}

#[tokio::test]
async fn a_half_seen_join_that_changed_is_told_before_anything_runs() {
    let joining = |sources: &[&str]| {
        Graph::builder("joining")
            .node("a", says("a"))
            .node("b", says("b"))
            .node("ask", asks("q"))
            .node("j", says("j"))
            .edge(START, "a")
            .edge(START, "b")
            .edge("b", "ask")
            .edge("a", END)
            .edge("ask", END)
            .join(sources, "j")
            .edge("j", END)
            .build()
            .unwrap()
    };
    let runtime = memory();
    let thread = runtime.thread(&joining(&["a", "ask"]), "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let changed = runtime.thread(&joining(&["a", "b", "ask"]), "t").unwrap();
    let refused = changed.resume().await.unwrap_err();
    assert_eq!(refused.code(), "open-node-gone");
    let same = runtime.thread(&joining(&["a", "ask"]), "t").unwrap();
    let done = same.answer_only("yes").await.unwrap().unwrap();
    assert_eq!(done.state.ran, ["a", "b", "q=yes", "j"]);
}

/// `sub` is a subgraph or a plain node, then `ask` asks.
fn after_a_child(as_child: bool, asks_inside: bool) -> Graph<Log> {
    let inner = if asks_inside { "inside" } else { "plain" };
    let child = Graph::builder("child").edge(START, inner).edge(inner, END);
    let child = if asks_inside {
        child.node(inner, asks("q"))
    } else {
        child.node(inner, says("child"))
    };
    let builder = Graph::builder("parent")
        .node("ask", asks("q"))
        .edge(START, "sub")
        .edge("sub", "ask")
        .edge("ask", END);
    if as_child {
        builder.shared_subgraph("sub", child.build().unwrap())
    } else {
        builder.node("sub", says("plain"))
    }
    .build()
    .unwrap()
}

#[tokio::test]
async fn a_child_that_had_ended_may_be_gone_and_one_that_waits_may_not() {
    let runtime = memory();
    let thread = runtime.thread(&after_a_child(true, false), "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let without = runtime.thread(&after_a_child(false, false), "t").unwrap();
    let done = without.answer_only("yes").await.unwrap().unwrap();
    assert_eq!(done.state.ran, ["child", "q=yes"]);

    let waits = runtime
        .thread(&after_a_child(true, true), "inside")
        .unwrap();
    waits.start(LogUpdate::default()).await.unwrap();
    let without = runtime
        .thread(&after_a_child(false, false), "inside")
        .unwrap();
    let refused = without.resume().await.unwrap_err();
    assert_eq!(refused.code(), "open-node-gone");
}

#[tokio::test]
async fn a_damaged_row_is_told_and_nothing_runs() {
    let id = ThreadId::new("t").unwrap();
    let calls = Count::default();
    let graph = Graph::builder("damaged")
        .node("a", fails("a", 9, &calls))
        .edge(START, "a")
        .edge("a", END)
        .build()
        .unwrap();
    let runtime = memory();
    let thread = runtime.thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let mut loaded = runtime.checkpointer().load(&id).await.unwrap().unwrap();
    let last = loaded.history.entries.last_mut().unwrap();
    *last.body.last_mut().unwrap() ^= 1;
    let told = check(graph.definition(), &id, &loaded).unwrap_err();
    assert!(matches!(told, OpenError::Format(_)), "{told}");
    assert_eq!(calls.get(), 1);
}

/// Code that cannot resume the thread refuses the answer, and the interrupt stays open for code that can.
#[tokio::test]
async fn an_answer_that_cannot_be_used_is_not_stored() {
    let runtime = memory();
    let unreadable = runtime.thread(&new::graph(), "unreadable").unwrap();
    unreadable.start(new::DocUpdate::default()).await.unwrap();
    let older = runtime.thread(&old::graph(), "unreadable").unwrap();
    let refused = older.answer_only("from old code").await.unwrap_err();
    assert_eq!(
        (refused.code(), refused.is_refusal()),
        ("open-unreadable", true)
    );
    assert_eq!(unreadable.interrupts().await.unwrap().len(), 1);
    let done = unreadable
        .answer_only("from new code")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(done.state.remarks, ["from new code"]);

    let one = |name: &'static str| {
        Graph::builder("asks")
            .node(name, asks(name))
            .edge(START, name)
            .edge(name, END)
            .build()
            .unwrap()
    };
    let before = runtime.thread(&one("before"), "gone").unwrap();
    before.start(LogUpdate::default()).await.unwrap();
    let after = runtime.thread(&one("after"), "gone").unwrap();
    let refused = after.answer_only("yes").await.unwrap_err();
    assert_eq!(
        (refused.code(), refused.is_refusal()),
        ("open-node-gone", true)
    );
    assert_eq!(before.interrupts().await.unwrap().len(), 1);
    let done = before.answer_only("yes").await.unwrap().unwrap();
    assert_eq!(done.state.ran, ["before=yes"]);
}

/// The handle that started a run under an id also answers it: the answer continues that run.
#[tokio::test]
async fn an_answer_through_the_handle_with_the_id_of_the_run_continues_the_run() {
    let graph = Graph::builder("asks")
        .node("ask", asks("ask"))
        .edge(START, "ask")
        .edge("ask", END)
        .build()
        .unwrap();
    let mut with_id = RunOptions::default();
    with_id.run = Some(RunId::from_bytes([9; 16]));
    let thread = memory().thread(&graph, "t").unwrap().with_options(with_id);
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let done = thread.answer(id_of(&paused, "ask"), "yes").await.unwrap();
    assert_eq!(done.unwrap().state.ran, ["ask=yes"]);
    let again = thread.answer(id_of(&paused, "ask"), "no").await;
    assert_eq!(again.unwrap_err().code(), "checkpoint-not-open");
}
