//! Replay, fork, copy, and changes of the state from outside.

use superstep::checkpoint::format::EntryKind;
use superstep::prelude::*;
use superstep::{Seq, SubgraphLife};

use crate::kit::{Count, Log, LogUpdate, asks, fails, id_of, keys, memory, row, says, wrote};

/// A child that does a step, then asks.
fn asking_child(effects: &Count) -> Graph<Log> {
    let effects = effects.clone();
    let child = Graph::builder("child")
        .node("first", says("first"))
        .node("ask", move |_: View<Log>, cx: NodeCx| {
            let effects = effects.clone();
            async move {
                cx.step("effect", || async { Ok(effects.up()) }).await?;
                let answer: String = cx.interrupt(Interrupt::new("q", "?")).await?;
                Ok::<_, NodeError>(wrote(answer))
            }
        })
        .edge(START, "first")
        .edge("first", "ask")
        .edge("ask", END)
        .build()
        .unwrap();
    Graph::builder("parent")
        .node("before", says("before"))
        .shared_subgraph("child", child)
        .node("after", says("after"))
        .edge(START, "before")
        .edge("before", "child")
        .edge("child", "after")
        .edge("after", END)
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_fork_inside_a_subgraph_pause_asks_again_and_does_effects_of_its_own() {
    let effects = Count::default();
    let thread = memory().thread(&asking_child(&effects), "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    thread.answer_only("one").await.unwrap();
    thread.fork(paused.seq).await.unwrap();
    assert!(thread.interrupts().await.unwrap().is_empty());
    let again = thread.resume().await.unwrap();
    assert_ne!(id_of(&paused, "q"), id_of(&again, "q"));
    assert_eq!(effects.get(), 2, "a branch has effects of its own");
    let done = thread.answer_only("two").await.unwrap().unwrap();
    assert_eq!(done.state.ran, ["before", "first", "two", "after"]);
    // What came before the fork is still there to look at.
    let old = thread.state_at(Seq(paused.seq.0 + 1)).await.unwrap();
    assert!(old.is_some());
}

#[tokio::test]
async fn a_fork_at_every_entry_leads_to_the_same_end() {
    let graph = Graph::builder("every")
        .node("a", says("a"))
        .node("b", says("b"))
        .node("c", says("c"))
        .node("j", says("j"))
        .edge(START, "a")
        .edge("a", "b")
        .edge("a", "c")
        .join(&["b", "c"], "j")
        .edge("j", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let done = thread.start(wrote("in")).await.unwrap();
    for seq in 1..done.seq.0 {
        let again = thread.replay(Seq(seq)).await.unwrap();
        assert_eq!(again.state, done.state, "from {seq}");
    }
}

#[tokio::test]
async fn a_copy_has_the_history_and_goes_its_own_way() {
    let effects = Count::default();
    let runtime = memory();
    let thread = runtime.thread(&asking_child(&effects), "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let copy = thread.copy_to("copy", None).await.unwrap();
    assert_eq!(keys(&copy.resume().await.unwrap()), ["q"]);
    let done = copy.answer_only("copied").await.unwrap().unwrap();
    assert_eq!(done.state.ran, ["before", "first", "copied", "after"]);
    let done = thread.answer(id_of(&paused, "q"), "kept").await.unwrap();
    assert_eq!(
        done.unwrap().state.ran,
        ["before", "first", "kept", "after"]
    );
    let taken = thread.copy_to("copy", None).await.unwrap_err();
    assert_eq!(taken.code(), "checkpoint-thread-exists");
}

#[tokio::test]
async fn a_copy_with_something_else_in_its_state_goes_on_where_it_stood() {
    /// Asks, and says what it saw.
    async fn ask(state: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
        let answer: String = cx.interrupt(Interrupt::new("q", "?")).await?;
        let (last, hint) = (&state.last, &state.hint);
        Ok(wrote(format!("{answer}, {last:?}, {hint:?}")))
    }
    let child = Graph::builder("child")
        .node("first", says("first"))
        .node("ask", ask)
        .edge(START, "first")
        .edge("first", "ask")
        .edge("ask", END)
        .build()
        .unwrap();
    // A command without a goto leads nowhere: whoever speaks for this node ends the run.
    let graph = Graph::builder("parent")
        .node("before", async |_: View<Log>, _: NodeCx| {
            Ok::<_, NodeError>(Command::update(wrote("before").total(1)).goto("child"))
        })
        .commands("before", &["child", END])
        .shared_subgraph("child", child)
        .edge(START, "before")
        .edge("child", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let other = LogUpdate::default().last("other".to_owned()).total(1);
    let copy = thread.copy_with("copy", None, other).await.unwrap();
    assert_eq!(keys(&copy.resume().await.unwrap()), ["q"]);
    let done = copy.answer_only("yes").await.unwrap().unwrap();
    assert_eq!(
        done.state.ran,
        ["before", "first", "yes, Some(\"other\"), None"]
    );
    assert_eq!(done.state.total, 2);
    let kept = thread.answer(id_of(&paused, "q"), "yes").await.unwrap();
    let kept = kept.unwrap().state;
    assert_eq!(kept.ran, ["before", "first", "yes, None, None"]);
    assert_eq!(kept.total, 1);
}

#[tokio::test]
async fn a_copy_with_another_context_runs_in_it_and_the_original_keeps_its_own() {
    /// Asks, and says in which context it ran.
    async fn ask(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
        let context: Option<String> = cx.context()?;
        let answer: String = cx.interrupt(Interrupt::new("q", "?")).await?;
        Ok(wrote(format!("{answer} in {context:?}")))
    }
    let graph = Graph::builder("asks")
        .node("ask", ask)
        .edge(START, "ask")
        .edge("ask", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let thread = thread.with_context("one").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let nothing = LogUpdate::default();
    let copy = thread.copy_with_context("copy", None, nothing, "other");
    let copy = copy.await.unwrap();
    assert_eq!(keys(&copy.resume().await.unwrap()), ["q"]);
    let done = copy.answer_only("yes").await.unwrap().unwrap();
    assert_eq!(done.state.ran, ["yes in Some(\"other\")"]);
    let kept = thread.answer(id_of(&paused, "q"), "yes").await.unwrap();
    assert_eq!(kept.unwrap().state.ran, ["yes in Some(\"one\")"]);
}

#[tokio::test]
async fn what_lives_for_one_superstep_is_still_there_in_a_copy_with_something_else() {
    let graph = Graph::builder("hint")
        .node("hints", async |_: View<Log>, _: NodeCx| {
            Ok::<_, NodeError>(LogUpdate::default().hint("psst".to_owned()))
        })
        .node("hears", async |state: View<Log>, _: NodeCx| {
            let (hint, last) = (&state.hint, &state.last);
            Ok::<_, NodeError>(wrote(format!("{hint:?}, {last:?}")))
        })
        .edge(START, "hints")
        .edge("hints", "hears")
        .edge("hears", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let other = LogUpdate::default().last("other".to_owned());
    let copy = thread.copy_with("copy", Some(Seq(2)), other).await.unwrap();
    let done = copy.resume().await.unwrap();
    assert_eq!(done.state.ran, ["Some(\"psst\"), Some(\"other\")"]);
}

#[tokio::test]
async fn an_update_speaks_for_the_node_that_ran_last_unless_several_did() {
    let thread = memory().thread(&row(&["a", "b"]), "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    thread.fork(Seq(2)).await.unwrap();
    thread.update(wrote("edited")).await.unwrap();
    let done = thread.resume().await.unwrap();
    assert_eq!(done.state.ran, ["a", "edited", "b"]);

    let wide = Graph::builder("wide")
        .node("a", says("a"))
        .node("b", says("b"))
        .edge(START, "a")
        .edge(START, "b")
        .edge("a", END)
        .edge("b", END)
        .build()
        .unwrap();
    let thread = memory().thread(&wide, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let refused = thread.update(wrote("whose?")).await.unwrap_err();
    assert_eq!(refused.code(), "open-ambiguous-node");
    let text = refused.to_string();
    assert_eq!(
        text,
        "`a`, `b` ran last; name the node that the update acts as"
    );
}

#[tokio::test]
async fn an_update_follows_routes_and_commands_as_the_node_would() {
    const WORK: SendTo<u32> = SendTo::new("work");
    let graph = Graph::builder("routes")
        .node("route", says("route"))
        .node("left", says("left"))
        .node("right", says("right"))
        .node("command", |_: View<Log>, _: NodeCx| async {
            Ok::<_, NodeError>(Command::<Log>::to(END))
        })
        .map_node(&WORK, |n: u32, _: NodeCx| async move {
            Ok::<_, NodeError>(wrote(format!("work{n}")))
        })
        .edge(START, "route")
        .route("route", &["left", "right"], |log: &Log| {
            if log.total > 0 { "right" } else { "left" }
        })
        .edge("left", "command")
        .edge("right", END)
        .commands("command", &["work", END])
        .edge("work", END)
        .build()
        .unwrap();
    let runtime = memory();
    let routed = runtime.thread(&graph, "routed").unwrap();
    routed
        .update_as("route", LogUpdate::default().total(1))
        .await
        .unwrap();
    assert_eq!(routed.resume().await.unwrap().state.ran, ["right"]);

    let sent = runtime.thread(&graph, "sent").unwrap();
    let command = Command::update(wrote("edited"))
        .send(&WORK, 1)
        .send(&WORK, 2);
    sent.update_as("command", command).await.unwrap();
    let done = sent.resume().await.unwrap();
    assert_eq!(done.state.ran, ["edited", "work1", "work2"]);

    let stray = Command::update(wrote("x")).goto("left");
    let refused = sent.update_as("command", stray).await.unwrap_err();
    assert_eq!(refused.code(), "open-undeclared-target");
}

#[tokio::test]
async fn an_update_as_input_begins_with_the_next_resume() {
    let thread = memory().thread(&row(&["a"]), "t").unwrap();
    thread.update_as_input(wrote("in")).await.unwrap();
    assert_eq!(thread.resume().await.unwrap().state.ran, ["in", "a"]);
    thread.update_as_input(wrote("again")).await.unwrap();
    let done = thread.resume().await.unwrap();
    assert_eq!(done.state.ran, ["in", "a", "again", "a"]);
    let kinds: Vec<_> = thread.history(Seq(0), 9).await.unwrap();
    let kinds = kinds.iter().map(|past| past.entry.kind);
    // An engine's resume has an entry of its own, by which it knows itself again.
    let kinds: Vec<_> = kinds.filter(|kind| *kind != EntryKind::Resume).collect();
    assert_eq!(
        kinds,
        [
            EntryKind::Update,
            EntryKind::Step,
            EntryKind::Update,
            EntryKind::Step
        ]
    );
}

#[tokio::test]
async fn an_update_while_paused_drops_the_question() {
    let graph = Graph::builder("paused")
        .node("ask", asks("q"))
        .node("next", says("next"))
        .edge(START, "ask")
        .edge("ask", "next")
        .edge("next", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    thread.update_as("ask", wrote("by hand")).await.unwrap();
    let late = thread.answer(id_of(&paused, "q"), "late").await;
    assert_eq!(late.unwrap_err().code(), "checkpoint-not-open");
    let done = thread.resume().await.unwrap();
    assert_eq!(done.state.ran, ["by hand", "next"]);
}

#[tokio::test]
async fn a_fork_takes_the_memory_of_a_child_back_too() {
    let calls = Count::default();
    let child = Graph::builder("child")
        .node("a", fails("a", 0, &calls))
        .edge(START, "a")
        .edge("a", END)
        .build()
        .unwrap();
    let graph = Graph::builder("parent")
        .subgraph(
            "child",
            child,
            |_: &Log| LogUpdate::default(),
            |_, child: &Log| LogUpdate::default().last(child.ran.len().to_string()),
        )
        .life("child", SubgraphLife::Thread)
        .edge(START, "child")
        .edge("child", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let first = thread.start(LogUpdate::default()).await.unwrap();
    let second = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(second.state.last.as_deref(), Some("2"));
    thread.fork(first.seq).await.unwrap();
    let again = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(again.state.last.as_deref(), Some("2"), "not 3");
}

#[tokio::test]
async fn there_is_no_fork_of_what_is_not_there() {
    let thread = memory().thread(&row(&["a"]), "t").unwrap();
    assert_eq!(
        thread.fork(Seq(1)).await.unwrap_err().code(),
        "checkpoint-no-thread"
    );
    thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(
        thread.fork(Seq(99)).await.unwrap_err().code(),
        "checkpoint-no-checkpoint"
    );
}

#[tokio::test]
async fn checkpoints_are_the_states_that_were_and_a_fork_begins_where_one_is() {
    let thread = memory().thread(&row(&["a", "b", "c"]), "t").unwrap();
    let done = thread.start(LogUpdate::default()).await.unwrap();
    let checkpoints = thread.checkpoints(Seq(0), 100).await.unwrap();
    for checkpoint in &checkpoints {
        let stored = thread.state_at(checkpoint.seq).await.unwrap().unwrap();
        assert_eq!(checkpoint.state, stored.values.decode().unwrap());
        let next: Vec<_> = stored.next.into_iter().map(|task| task.node).collect();
        assert_eq!(checkpoint.next, next);
    }
    let last = checkpoints.last().unwrap();
    assert_eq!((last.seq, last.stop.is_some()), (done.seq, true));

    let before_c = checkpoints
        .iter()
        .find(|checkpoint| checkpoint.next == ["c"]);
    let before_c = before_c.unwrap();
    assert_eq!(before_c.state.ran, ["a", "b"]);
    thread.fork(before_c.seq).await.unwrap();
    thread.resume().await.unwrap();
    let all = thread.checkpoints(Seq(0), 100).await.unwrap();
    assert_eq!(
        all[..checkpoints.len()],
        checkpoints,
        "the past does not change"
    );
    assert_eq!(all.last().unwrap().state.ran, ["a", "b", "c"]);
    let rest = thread.checkpoints(done.seq, 100).await.unwrap();
    assert_eq!(rest, all[checkpoints.len()..], "read from the middle");
}
