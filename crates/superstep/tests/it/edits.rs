//! Resumes that write, edits of several updates, inside subgraphs and from older entries, and the states that they leave.

use serde_json::{Value as Json, json};
use superstep::checkpoint::format::{Change, EntryKind};
use superstep::checkpoint::{Answer, AnswerBody, Status};
use superstep::driver::ThreadRequest;
use superstep::prelude::*;
use superstep::run::{Edit, EditNode, StreamEventBody, ThreadEdit};
use superstep::{
    DriveError, FramePath, InterruptId, Message, NodeName, RequestEnd, RunId, RunOptions, Seq,
    Timestamp, Value,
};

use crate::kit::{Log, LogUpdate, asks, id_of, keys, memory, row, says, wrote};

/// Asks, and writes the answer, what it saw in the state, and the context.
async fn ask(state: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
    let answer: String = cx.interrupt(Interrupt::new("q", "?")).await?;
    let user: Option<String> = cx.context()?;
    Ok(wrote(format!("{answer}, {:?}, {user:?}", state.last)))
}

fn asking() -> Graph<Log> {
    Graph::builder("asking")
        .node("ask", ask)
        .edge(START, "ask")
        .edge("ask", END)
        .build()
        .unwrap()
}

fn answer(interrupt: InterruptId, text: &str) -> Answer {
    Answer {
        interrupt,
        body: AnswerBody::Value(Value::plain(text).unwrap()),
        by: "ada".to_owned(),
        at: Timestamp(5),
    }
}

/// A resume that answers, writes `last` and adds to `total`, and sets the context.
fn resumes_with(interrupt: InterruptId) -> ThreadRequest {
    let write = LogUpdate::default().last("new".to_owned()).total(2);
    ThreadRequest::ResumeWith {
        answers: vec![answer(interrupt, "yes")],
        write: Some(Value::encode(&write).unwrap()),
        context: Some(Value::plain("ada").unwrap()),
    }
}

/// Executes a request under an id.
async fn execute(
    thread: &Thread<Log>,
    (runtime, graph): (&Runtime, &Graph<Log>),
    request: ThreadRequest,
    id: u8,
) -> Result<Option<RequestEnd>, DriveError> {
    let options = RunOptions::default().run(RunId::from_bytes([id; 16]));
    let (driver, graph) = (runtime.driver(), graph.definition());
    driver.execute(thread.id(), graph, request, &options).await
}

fn by(node: &str, update: LogUpdate) -> Edit {
    let node = EditNode::Node(NodeName::new(node).unwrap());
    Edit::new(node, Command::<Log>::update(update)).unwrap()
}

#[tokio::test]
async fn a_resume_writes_and_replaces_the_context_and_a_repeated_one_writes_once() {
    let (runtime, graph) = (memory(), asking());
    let thread = runtime.thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let request = resumes_with(id_of(&paused, "q"));
    let ended = execute(&thread, (&runtime, &graph), request.clone(), 7).await;
    assert_eq!(ended.unwrap().unwrap().run, RunId::from_bytes([7; 16]));
    for _ in 0..2 {
        let state = thread.values().await.unwrap().unwrap();
        assert_eq!(state.ran, ["yes, Some(\"new\"), Some(\"ada\")"]);
        assert_eq!(state.total, 2);
        // A caller that lost the reply asks again. An engine replies as it did before.
        match execute(&thread, (&runtime, &graph), request.clone(), 7).await {
            Ok(_) => {}
            Err(error) => assert_eq!(error.code(), "open-taken"),
        }
    }
    let history = thread.history(Seq(0), 100).await.unwrap();
    let mut resumes = history
        .iter()
        .filter(|past| past.entry.kind == EntryKind::Resume);
    let resume = resumes.next().unwrap();
    assert!(
        matches!(
            &resume.entry.changes[..],
            [Change::RunResumed(_), Change::StateWritten(_)]
        ),
        "{:?}",
        resume.entry
    );
    assert!(resumes.next().is_none());
    let events = thread.events(Seq(0)).stored().await.unwrap();
    let began: Vec<_> = events
        .iter()
        .filter_map(|event| match event.what {
            StreamEventBody::RunBegan { is_resumed } => Some((event.index, event.kind, is_resumed)),
            _ => None,
        })
        .collect();
    let expected = [(0, EntryKind::Input, false), (0, EntryKind::Resume, true)];
    assert_eq!(began, expected);
    let last = events.last().unwrap();
    assert_eq!(last.run, RunId::from_bytes([7; 16]));
}

#[tokio::test]
async fn a_write_that_does_not_fit_is_refused_before_the_answer_is_stored() {
    let (runtime, graph) = (memory(), asking());
    let thread = runtime.thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let bad = ThreadRequest::ResumeWith {
        answers: vec![answer(id_of(&paused, "q"), "yes")],
        write: Some(Value::plain(&json!({ "nothing": 1 })).unwrap()),
        context: None,
    };
    let refused = execute(&thread, (&runtime, &graph), bad, 7).await;
    assert_eq!(refused.unwrap_err().code(), "open-bad-input");
    assert_eq!(thread.interrupts().await.unwrap().len(), 1);
    let good = resumes_with(id_of(&paused, "q"));
    let ended = execute(&thread, (&runtime, &graph), good, 8).await;
    assert!(ended.unwrap().is_some());
}

#[tokio::test]
async fn a_subgraph_that_shares_the_state_sees_what_a_resume_writes() {
    let child = Graph::builder("child")
        .node("first", says("first"))
        .node("ask", ask)
        .edge(START, "first")
        .edge("first", "ask")
        .edge("ask", END)
        .build()
        .unwrap();
    let graph = Graph::builder("parent")
        .shared_subgraph("child", child)
        .edge(START, "child")
        .edge("child", END)
        .build()
        .unwrap();
    let runtime = memory();
    let thread = runtime.thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let request = resumes_with(id_of(&paused, "q"));
    let ended = execute(&thread, (&runtime, &graph), request, 7).await;
    assert!(ended.unwrap().is_some());
    let state = thread.values().await.unwrap().unwrap();
    assert_eq!(state.ran, ["first", "yes, Some(\"new\"), Some(\"ada\")"]);
    assert_eq!(state.total, 2);
}

/// A subgraph that asks, next to a node that asks.
fn asking_inside() -> Graph<Log> {
    let child = Graph::builder("child")
        .node("first", says("first"))
        .node("ask", asks("ask"))
        .edge(START, "first")
        .edge("first", "ask")
        .edge("ask", END)
        .build()
        .unwrap();
    Graph::builder("parent")
        .subgraph(
            "child",
            child,
            |_: &Log| LogUpdate::default(),
            |_: &Log, child: &Log| LogUpdate::default().ran_all(child.ran.clone()),
        )
        .node("other", asks("other"))
        .edge(START, "child")
        .edge(START, "other")
        .edge("child", END)
        .edge("other", END)
        .build()
        .unwrap()
}

#[tokio::test]
async fn an_edit_inside_a_subgraph_changes_its_state_and_its_plan_and_nothing_else() {
    let thread = memory().thread(&asking_inside(), "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let frame = thread.subgraphs(None).await.unwrap().remove(0).frame;
    let edit = ThreadEdit {
        at: None,
        frame: frame.clone(),
        updates: vec![by("first", wrote("edited"))],
    };
    thread.edit(edit.clone()).await.unwrap();
    let inside = thread.subgraphs(None).await.unwrap().remove(0);
    assert_eq!(inside.frame, frame);
    let inside: Log = inside.values.decode().unwrap();
    assert_eq!(inside.ran, ["first", "edited"]);
    let open = thread.interrupts().await.unwrap();
    let open: Vec<_> = open.iter().map(|open| open.interrupt.id).collect();
    assert_eq!(open, [id_of(&paused, "other")], "its sibling still asks");

    let again = thread.resume().await.unwrap();
    assert_eq!(keys(&again), ["ask", "other"]);
    assert_ne!(id_of(&again, "ask"), id_of(&paused, "ask"));
    thread.answer(id_of(&again, "ask"), "yes").await.unwrap();
    let done = thread.answer(id_of(&again, "other"), "no").await.unwrap();
    let done = done.unwrap().state;
    assert_eq!(done.ran, ["first", "edited", "ask=yes", "other=no"]);
    let late = thread.edit(edit).await.unwrap_err();
    assert_eq!(late.code(), "open-not-inside");
}

#[tokio::test]
async fn a_subgraph_can_be_edited_from_an_older_entry() {
    let thread = memory().thread(&asking_inside(), "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let at = Some(paused.seq);
    let frame = thread.subgraphs(at).await.unwrap().remove(0).frame;
    for key in ["ask", "other"] {
        thread.answer(id_of(&paused, key), "first").await.unwrap();
    }
    let edit = ThreadEdit {
        at,
        frame,
        updates: vec![by("ask", wrote("by hand"))],
    };
    thread.edit(edit).await.unwrap();
    let again = thread.resume().await.unwrap();
    assert_eq!(keys(&again), ["other"]);
    let done = thread.answer_only("second").await.unwrap().unwrap();
    assert_eq!(done.state.ran, ["first", "by hand", "other=second"]);
}

#[tokio::test]
async fn a_shared_subgraph_is_edited_as_its_nodes_and_takes_no_input() {
    let child = Graph::builder("child")
        .node("first", says("first"))
        .node("ask", asks("ask"))
        .edge(START, "first")
        .edge("first", "ask")
        .edge("ask", END)
        .build()
        .unwrap();
    let graph = Graph::builder("parent")
        .shared_subgraph("child", child)
        .edge(START, "child")
        .edge("child", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    thread.start(wrote("in")).await.unwrap();
    let frame = thread.subgraphs(None).await.unwrap().remove(0).frame;
    let input = Command::<Log>::update(wrote("no"));
    let edit = |updates| ThreadEdit {
        at: None,
        frame: frame.clone(),
        updates,
    };
    let input = edit(vec![Edit::new(EditNode::Input, input).unwrap()]);
    let refused = thread.edit(input).await.unwrap_err();
    assert_eq!(refused.code(), "open-shared-input");
    let by_node = edit(vec![by("ask", wrote("by hand"))]);
    thread.edit(by_node).await.unwrap();
    let done = thread.resume().await.unwrap();
    assert_eq!(done.state.ran, ["in", "first", "by hand"]);
}

#[tokio::test]
async fn several_updates_are_one_entry() {
    let thread = memory().thread(&row(&["a", "b", "c"]), "t").unwrap();
    let input = Command::<Log>::update(LogUpdate::default().total(1));
    let edit = ThreadEdit {
        at: None,
        frame: FramePath::root(),
        updates: vec![
            Edit::new(EditNode::Input, input).unwrap(),
            by("a", wrote("x")),
            by("b", wrote("y")),
        ],
    };
    assert_eq!(thread.edit(edit).await.unwrap(), Seq(1));
    let state = thread.state().await.unwrap().unwrap();
    assert_eq!((state.kind, state.parent), (EntryKind::Update, Seq(0)));
    let done = thread.resume().await.unwrap();
    assert_eq!(done.state.ran, ["x", "y", "c"]);
    assert_eq!(done.state.total, 1);
    let nothing = ThreadEdit {
        at: None,
        frame: FramePath::root(),
        updates: Vec::new(),
    };
    assert_eq!(thread.edit(nothing).await.unwrap(), done.seq);
}

#[tokio::test]
async fn states_are_read_newest_first_over_an_edit_from_an_older_entry() {
    let (runtime, graph) = (memory(), row(&["a", "b", "c"]));
    let thread = runtime.thread(&graph, "t").unwrap();
    let first = thread.start(LogUpdate::default()).await.unwrap();
    let edit = ThreadEdit {
        at: Some(Seq(2)),
        frame: FramePath::root(),
        updates: vec![by("b", wrote("other b"))],
    };
    let forked = thread.edit(edit).await.unwrap();
    let done = thread.resume().await.unwrap();
    assert_eq!(done.state.ran, ["a", "other b", "c"]);

    let states = |before, limit| runtime.states_of(graph.definition(), thread.id(), before, limit);
    let all = states(None, 100).await.unwrap();
    let numbers: Vec<_> = all.iter().map(|state| state.seq.0).collect();
    assert_eq!(numbers, (1..=done.seq.0).rev().collect::<Vec<_>>());
    for state in &all {
        let stored = thread.state_at(state.seq).await.unwrap().unwrap();
        assert_eq!(*state, stored);
    }
    let fork = all.iter().find(|state| state.seq == forked).unwrap();
    assert_eq!((fork.kind, fork.parent), (EntryKind::Fork, Seq(2)));
    let stop = all.iter().find(|state| state.seq == first.seq).unwrap();
    assert!(stop.stop.is_some());
    let middle = states(Some(all[0].seq), 2).await.unwrap();
    assert_eq!(middle, all[1..3]);
    assert!(states(Some(Seq(1)), 10).await.unwrap().is_empty());
    assert!(states(None, 0).await.unwrap().is_empty());
}

async fn status(runtime: &Runtime, thread: &Thread<Log>) -> Status {
    let loaded = runtime.checkpointer().load(thread.id()).await.unwrap();
    loaded.unwrap().head.status
}

#[tokio::test]
async fn a_thread_goes_back_to_its_beginning() {
    let (runtime, graph) = (memory(), row(&["a", "b"]));
    let thread = runtime.thread(&graph, "t").unwrap();
    let back = |updates| ThreadEdit {
        at: Some(Seq(0)),
        frame: FramePath::root(),
        updates,
    };
    let nothing = thread.edit(back(Vec::new())).await.unwrap();
    assert_eq!(nothing, Seq(0), "a new thread is there already");
    let first = thread.start(wrote("one")).await.unwrap();
    let emptied = thread.edit(back(Vec::new())).await.unwrap();
    assert_eq!(status(&runtime, &thread).await, Status::Idle);
    let state = thread.state().await.unwrap().unwrap();
    assert_eq!((state.seq, state.parent), (emptied, Seq(0)));
    assert!(state.next.is_empty() && state.values.decode::<Log>().unwrap().ran.is_empty());
    assert_eq!(
        thread.resume().await.unwrap_err().code(),
        "open-nothing-to-run"
    );
    let second = thread.start(wrote("two")).await.unwrap();
    assert_eq!(second.state.ran, ["two", "a", "b"]);

    let input = Command::<Log>::update(wrote("three"));
    let input = Edit::new(EditNode::Input, input).unwrap();
    thread.edit(back(vec![input])).await.unwrap();
    let third = thread.resume().await.unwrap();
    assert_eq!(third.state.ran, ["three", "a", "b"]);
    let states = runtime.states_of(graph.definition(), thread.id(), None, 100);
    let states = states.await.unwrap();
    let numbers: Vec<_> = states.iter().map(|state| state.seq.0).collect();
    assert_eq!(numbers, (1..=third.seq.0).rev().collect::<Vec<_>>());
    let kept = thread.state_at(first.seq).await.unwrap().unwrap();
    assert_eq!(kept.values.decode::<Log>().unwrap().ran, ["one", "a", "b"]);
    let events = thread.events(Seq(0)).stored().await.unwrap();
    assert_eq!(events.last().unwrap().seq, third.seq);
}

#[tokio::test]
async fn an_edit_that_leaves_tasks_planned_pauses_the_thread() {
    let (runtime, graph) = (memory(), row(&["a", "b"]));
    let thread = runtime.thread(&graph, "t").unwrap();
    let edit = |updates| ThreadEdit {
        at: None,
        frame: FramePath::root(),
        updates,
    };
    thread.edit(edit(vec![by("a", wrote("x"))])).await.unwrap();
    assert_eq!(status(&runtime, &thread).await, Status::Paused);
    thread.resume().await.unwrap();
    assert_eq!(status(&runtime, &thread).await, Status::Idle);
    thread.edit(edit(vec![by("b", wrote("y"))])).await.unwrap();
    assert_eq!(status(&runtime, &thread).await, Status::Idle);
    thread.fork(Seq(1)).await.unwrap();
    assert_eq!(status(&runtime, &thread).await, Status::Paused);
    let end = Edit::new(EditNode::End, Command::<Log>::update(LogUpdate::default())).unwrap();
    thread.edit(edit(vec![end])).await.unwrap();
    assert_eq!(status(&runtime, &thread).await, Status::Idle);
}

#[tokio::test]
async fn the_states_of_a_subgraph_are_read_after_it_ended() {
    let (runtime, graph) = (memory(), asking_inside());
    let thread = runtime.thread(&graph, "t").unwrap();
    let paused = thread.start(LogUpdate::default()).await.unwrap();
    let frame = thread.subgraphs(None).await.unwrap().remove(0).frame;
    for key in ["ask", "other"] {
        thread.answer(id_of(&paused, key), "yes").await.unwrap();
    }
    assert!(thread.subgraphs(None).await.unwrap().is_empty());
    let read = |before, limit| {
        let (graph, thread) = (graph.definition(), thread.id());
        runtime.subgraph_states_of(graph, thread, &frame, before, limit)
    };
    let states = read(None, 10).await.unwrap();
    let shown: Vec<_> = states
        .iter()
        .map(|state| {
            let ran = state.values.decode::<Log>().unwrap().ran;
            let next: Vec<_> = state
                .next
                .iter()
                .map(|task| task.node.to_string())
                .collect();
            (ran.join(" "), next.join(" "), state.is_input)
        })
        .collect();
    let expected = [
        ("first ask=yes", "", false),
        ("first", "ask", false),
        ("", "first", true),
    ];
    let expected = expected.map(|(ran, next, is_input)| (ran.into(), next.into(), is_input));
    assert_eq!(shown, expected);
    let older = read(Some(states[0].seq), 1).await.unwrap();
    assert_eq!(older, states[1..]);
}

#[tokio::test]
async fn callers_may_write_what_a_graph_declares_and_nothing_that_it_does_not_have() {
    let builder = || {
        Graph::<Log>::builder("row")
            .node("a", says("a"))
            .edge(START, "a")
            .edge("a", END)
    };
    let refused = builder().inputs(["ran", "nothing"]).build().unwrap_err();
    let codes: Vec<_> = refused.problems.iter().map(|found| found.code()).collect();
    assert_eq!(codes, ["build-unknown-input"]);

    let closed = builder().build().unwrap();
    assert!(closed.definition().inputs().is_empty());
    let graph = builder().inputs(["ran"]).build().unwrap();
    let graph = graph.definition();
    assert!(graph.inputs().iter().eq(&["ran"]));
    let schema = graph.input_schema();
    let strings = json!({ "type": "array", "items": { "type": "string" } });
    assert_eq!(schema["properties"], json!({ "ran": strings }));
    let total = &graph.state_schema()["properties"]["total"];
    assert_eq!(total["type"], "integer");
    let check = |update: Json| graph.check_update(&Value::plain(&update).unwrap());
    assert!(check(json!({ "total": 1 })).is_ok());
    let refused = check(json!({ "total": "one" })).unwrap_err();
    assert_eq!(refused.code(), "open-bad-input");
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Note {
    id: Option<String>,
    text: String,
}

impl Message for Note {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    fn set_id(&mut self, id: String) {
        self.id = Some(id);
    }
}

#[derive(Clone, Debug, Default, State)]
struct Notes {
    #[state(messages)]
    notes: Vec<Note>,
    announced: Vec<String>,
}

#[tokio::test]
async fn a_node_knows_the_ids_that_its_messages_will_have() {
    fn note(text: &str) -> Note {
        let text = text.to_owned();
        Note { id: None, text }
    }
    async fn write(_: View<Notes>, cx: NodeCx) -> Result<NotesUpdate, NodeError> {
        let announced = vec![cx.message_id(0), cx.message_id(1)];
        let update = NotesUpdate::default().announced(announced);
        Ok(update.notes(note("one")).notes(note("two")))
    }
    let graph = Graph::builder("notes")
        .node("write", write)
        .edge(START, "write")
        .edge("write", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let done = thread.start(NotesUpdate::default()).await.unwrap();
    let notes = done.state.notes.into_iter();
    let ids: Vec<_> = notes.filter_map(|note| note.id).collect();
    assert_eq!(ids, done.state.announced);

    // Updates of one edit do not replace each other's messages.
    let node = || EditNode::Node(NodeName::new("write").unwrap());
    let by_hand = |text| {
        let update = NotesUpdate::default().notes(note(text));
        Edit::new(node(), Command::<Notes>::update(update)).unwrap()
    };
    let edit = ThreadEdit {
        at: None,
        frame: FramePath::root(),
        updates: vec![by_hand("three"), by_hand("four")],
    };
    thread.edit(edit).await.unwrap();
    let texts = thread.values().await.unwrap().unwrap().notes;
    let texts: Vec<_> = texts.iter().map(|note| note.text.as_str()).collect();
    assert_eq!(texts, ["one", "two", "three", "four"]);
}
