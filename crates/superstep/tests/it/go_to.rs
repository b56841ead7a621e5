//! Resumes that go to nodes, resumes that find nothing left to run, and what a state says about a fork.

use superstep::checkpoint::format::{Change, EntryKind, GotoRecord};
use superstep::driver::ThreadRequest;
use superstep::prelude::*;
use superstep::run::ThreadEdit;
use superstep::{DriveError, FramePath, NodeName, RequestEnd, RunId, RunOptions, Seq, Value};

use crate::kit::{Log, LogUpdate, memory, options, row, wrote};

async fn go_to(
    thread: &Thread<Log>,
    (runtime, graph): (&Runtime, &Graph<Log>),
    nodes: &[&str],
    id: u8,
) -> Result<Option<RequestEnd>, DriveError> {
    let to = |node: &&str| GotoRecord {
        node: Some(NodeName::new(node).unwrap()),
        payload: None,
    };
    let request = ThreadRequest::GoTo {
        goto: nodes.iter().map(to).collect(),
        write: Some(Value::encode(&wrote("caller")).unwrap()),
        context: None,
    };
    let options = RunOptions::default().run(RunId::from_bytes([id; 16]));
    let (driver, graph) = (runtime.driver(), graph.definition());
    driver.execute(thread.id(), graph, request, &options).await
}

#[tokio::test]
async fn a_resume_goes_to_nodes_next_to_what_is_planned_and_a_repeated_one_goes_once() {
    let (runtime, graph) = (memory(), row(&["a", "b", "c"]));
    let thread = runtime.thread(&graph, "t").unwrap();
    let stops = options(|o| o.pause_before = [NodeName::new("b").unwrap()].into());
    let paused = thread.clone().with_options(stops);
    paused.start(LogUpdate::default()).await.unwrap();
    for _ in 0..2 {
        match go_to(&thread, (&runtime, &graph), &["b", "a"], 7).await {
            Ok(_) => {}
            Err(error) => assert_eq!(error.code(), "open-taken"),
        }
        let state = thread.values().await.unwrap().unwrap();
        // `b` was planned, and runs once. Then `c` runs because of `b`, next to the second `b`, which runs because of `a`.
        assert_eq!(state.ran, ["a", "caller", "b", "a", "b", "c", "c"]);
    }
    let history = thread.history(Seq(0), 100).await.unwrap();
    let mut resumes = history
        .iter()
        .filter(|past| past.entry.kind == EntryKind::Resume);
    let changes = &resumes.next().unwrap().entry.changes;
    assert!(matches!(
        &changes[..],
        [
            Change::RunResumed(_),
            Change::StateWritten(_),
            Change::Replanned(_)
        ]
    ));
    assert!(resumes.next().is_none());
}

#[tokio::test]
async fn a_thread_that_has_finished_continues_at_a_node_and_an_unknown_one_is_refused() {
    let (runtime, graph) = (memory(), row(&["a", "b"]));
    let thread = runtime.thread(&graph, "t").unwrap();
    let new = go_to(&thread, (&runtime, &graph), &["b"], 1).await;
    assert_eq!(new.unwrap_err().code(), "open-nothing-to-run");
    thread.start(LogUpdate::default()).await.unwrap();
    let unknown = go_to(&thread, (&runtime, &graph), &["z"], 2).await;
    assert_eq!(unknown.unwrap_err().code(), "open-bad-input");
    go_to(&thread, (&runtime, &graph), &["b"], 3).await.unwrap();
    let state = thread.values().await.unwrap().unwrap();
    assert_eq!(state.ran, ["a", "b", "caller", "b"]);
}

#[tokio::test]
async fn a_resume_of_a_thread_that_has_finished_is_refused_unless_it_may_finish() {
    let (runtime, graph) = (memory(), row(&["a"]));
    let thread = runtime.thread(&graph, "t").unwrap();
    let may_finish = thread
        .clone()
        .with_options(RunOptions::default().finish_if_idle());
    assert_eq!(
        may_finish.resume().await.unwrap_err().code(),
        "open-nothing-to-run"
    );
    thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(
        thread.resume().await.unwrap_err().code(),
        "open-nothing-to-run"
    );
    let done = may_finish.resume().await.unwrap();
    assert_eq!(done.state.ran, ["a"]);
}

#[tokio::test]
async fn a_fork_is_counted_as_a_step_and_a_thread_that_only_went_back_is_not() {
    let (runtime, graph) = (memory(), row(&["a", "b"]));
    let thread = runtime.thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let first = thread.state_at(Seq(1)).await.unwrap().unwrap();
    assert_eq!((first.step, first.restarts, first.edits), (0, 0, None));
    thread.fork(Seq(1)).await.unwrap();
    let fork = thread.state().await.unwrap().unwrap();
    assert_eq!((fork.step, fork.restarts, fork.edits), (0, 1, None));
    let back = ThreadEdit {
        at: Some(Seq(1)),
        frame: FramePath::root(),
        updates: Vec::new(),
    };
    thread.edit(back).await.unwrap();
    let back = thread.state().await.unwrap().unwrap();
    assert_eq!((back.step, back.restarts, back.edits), (0, 0, Some(0)));
}
