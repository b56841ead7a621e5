//! The run queue: runs are stored before they are executed, keep their order per thread, survive a crash and can be cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value as Json, json};
use superstep::checkpoint::{Answer, AnswerBody, BoxFuture};
use superstep::driver::{QueuedRequest, ThreadRequest};
use superstep::prelude::*;
use superstep::registry::{
    CancelledRun, CreatedRun, CronTick, DeliveryQuery, FiredTick, MemoryRegistry, NewCron,
    NewDelivery, NewRun, Registry, RunEnd, RunQuery, RunRow, RunStatus, TickRun, WhenBusy,
};
use superstep::run::{Edit, EditNode, ThreadEdit};
use superstep::{
    AssistantId, CronId, DeliveryId, DriveError, Engine, FramePath, InterruptId, NodeName,
    QueueOptions, RunEndHook, RunEndHookError, RunId, RunOptions, RunQueue, RunReport, ThreadId,
    Timestamp, Value,
};
use tokio::sync::Notify;

use crate::kit::{Count, Log, LogUpdate, asks, fails, patient, row, says, wrote};

/// A store and a registry, which outlive processes.
#[derive(Clone, Default)]
struct Disk {
    store: Memory,
    registry: MemoryRegistry,
}

impl Disk {
    /// A process with a queue.
    async fn process(&self, graphs: &[&Graph<Log>]) -> (Runtime, RunQueue) {
        let runtime = Runtime::builder(self.store.clone())
            .lease(Duration::ZERO)
            .build();
        for graph in graphs {
            runtime.register(graph);
        }
        let registry = Arc::new(self.registry.clone());
        let queue = RunQueue::start(&runtime, registry, 64).await.unwrap();
        (runtime, queue)
    }

    async fn status(&self, id: u8) -> RunStatus {
        let row = self.registry.run("", run_id(id)).await.unwrap();
        row.unwrap().status
    }
}

fn run_id(id: u8) -> RunId {
    RunId::from_bytes([id; 16])
}

fn starts(graph: &str, thread: &str, id: u8, input: LogUpdate) -> NewRun {
    let request = ThreadRequest::Start {
        input: Value::encode(&input).unwrap(),
        context: None,
        metadata: None,
    };
    requests(graph, thread, id, request)
}

fn requests(graph: &str, thread: &str, id: u8, request: ThreadRequest) -> NewRun {
    let thread: ThreadId = thread.parse().unwrap();
    let request = QueuedRequest::new(graph, request, &RunOptions::default()).unwrap();
    NewRun {
        id: run_id(id),
        request: request.to_bytes(&thread),
        thread,
        assistant: AssistantId::from_bytes([9; 16]),
        principal: "ann".to_owned(),
        arguments: json!({}),
        metadata: json!({}),
        when_busy: WhenBusy::Enqueue,
        at: Timestamp(1),
        due: Timestamp(0),
    }
}

async fn ended(queue: &RunQueue, id: u8) -> (RunStatus, Json) {
    let row = queue.wait("", run_id(id)).await.unwrap().unwrap();
    (row.status, row.error)
}

#[tokio::test]
async fn runs_of_a_thread_are_executed_in_order_and_once() {
    let disk = Disk::default();
    let graph = row(&["a", "b"]);
    let (runtime, queue) = disk.process(&[&graph]).await;
    for id in 1..=5 {
        let input = wrote(format!("input {id}"));
        let created = queue.submit(&starts("row", "t", id, input)).await.unwrap();
        match id {
            1 => assert_eq!(created, CreatedRun::Begun),
            _ => assert!(matches!(&created, CreatedRun::Stored(before) if !before.is_empty())),
        }
    }
    // A caller that lost the reply asks again.
    let again = starts("row", "t", 3, wrote("input 3"));
    let created = queue.submit(&again).await.unwrap();
    assert!(matches!(created, CreatedRun::Exists(..)), "{created:?}");
    for id in 1..=5 {
        assert_eq!(ended(&queue, id).await, (RunStatus::Success, Json::Null));
    }
    let thread = runtime.thread(&graph, "t").unwrap();
    let state: Log = thread.values().await.unwrap().unwrap();
    let expected = (1..=5).flat_map(|id| [format!("input {id}"), "a".into(), "b".into()]);
    assert_eq!(state.ran, expected.collect::<Vec<String>>());
    let other = starts("row", "t", 3, wrote("something else"));
    let refused = queue.submit(&other).await.unwrap_err();
    assert_eq!(refused.code(), "drive-id-reused");
}

#[tokio::test]
async fn a_queue_that_is_full_begins_a_run_when_another_has_ended() {
    let disk = Disk::default();
    let graph = row(&["a"]);
    let runtime = Runtime::new(disk.store.clone());
    runtime.register(&graph);
    let registry = Arc::new(disk.registry.clone());
    let queue = RunQueue::start(&runtime, registry, 1).await.unwrap();
    let created = queue.submit(&starts("row", "t", 1, wrote("one"))).await;
    assert_eq!(created.unwrap(), CreatedRun::Begun);
    let created = queue.submit(&starts("row", "u", 2, wrote("two"))).await;
    assert_eq!(created.unwrap(), CreatedRun::Stored(Vec::new()));
    for id in [1, 2] {
        assert_eq!(ended(&queue, id).await, (RunStatus::Success, Json::Null));
    }
}

#[tokio::test]
async fn what_a_crash_left_is_executed_by_the_next_process() {
    let disk = Disk::default();
    let (calls, go) = (Count::default(), Arc::new(Notify::new()));
    let graph = Graph::builder("pay")
        .node("charge", {
            let calls = calls.clone();
            move |_: View<Log>, cx: NodeCx| {
                let calls = calls.clone();
                async move {
                    let n = cx.step("charge", async || Ok(calls.up())).await?;
                    Ok::<_, NodeError>(wrote(format!("charged {n}")))
                }
            }
        })
        .node("wait", {
            let go = go.clone();
            move |_: View<Log>, _: NodeCx| {
                let go = go.clone();
                async move {
                    go.notified().await;
                    Ok::<_, NodeError>(wrote("done"))
                }
            }
        })
        .edge(START, "charge")
        .edge("charge", "wait")
        .edge("wait", END)
        .build()
        .unwrap();
    let (runtime, queue) = disk.process(&[&graph]).await;
    for (thread, id) in [("t", 1), ("t", 2), ("u", 3)] {
        let run = starts("pay", thread, id, LogUpdate::default());
        queue.submit(&run).await.unwrap();
    }
    while calls.get() < 2 {
        tokio::task::yield_now().await;
    }
    // The process dies.
    drop((queue, runtime));
    assert_eq!(disk.status(1).await, RunStatus::Running);
    assert_eq!(disk.status(2).await, RunStatus::Pending);

    let (runtime, queue) = disk.process(&[&graph]).await;
    for _ in 0..3 {
        go.notify_one();
        tokio::time::sleep(Duration::from_millis(20)).await;
        go.notify_one();
    }
    go.notify_waiters();
    for id in 1..=3 {
        go.notify_one();
        assert_eq!(ended(&queue, id).await.0, RunStatus::Success, "run {id}");
    }
    assert_eq!(calls.get(), 3, "each run charges once");
    let thread = runtime.thread(&graph, "t").unwrap();
    let state: Log = thread.values().await.unwrap().unwrap();
    assert_eq!(state.ran.iter().filter(|ran| *ran == "done").count(), 2);
    let attempts = disk.registry.run("", run_id(1)).await.unwrap().unwrap();
    assert_eq!(attempts.attempts, 2);
}

#[tokio::test]
async fn a_pending_run_that_is_cancelled_never_starts_and_a_running_one_stops() {
    let disk = Disk::default();
    let (calls, go) = (Count::default(), Arc::new(Notify::new()));
    let graph = patient(&calls, &go);
    let (_runtime, queue) = disk.process(&[&graph]).await;
    for id in [1, 2] {
        let run = starts("patient", "t", id, LogUpdate::default());
        queue.submit(&run).await.unwrap();
    }
    while calls.get() == 0 {
        tokio::task::yield_now().await;
    }
    let cancelled = queue.cancel("", run_id(2)).await.unwrap();
    assert_eq!(cancelled, CancelledRun::Withdrawn);
    let cancelled = queue.cancel("", run_id(1)).await.unwrap();
    assert_eq!(cancelled, CancelledRun::Running);
    for id in [1, 2] {
        assert_eq!(ended(&queue, id).await.0, RunStatus::Interrupted);
        let again = queue.cancel("", run_id(id)).await.unwrap();
        assert_eq!(again, CancelledRun::Ended);
    }
    assert_eq!(calls.get(), 1);
    let missing = queue.cancel("other", run_id(1)).await.unwrap();
    assert_eq!(missing, CancelledRun::Missing);
}

#[tokio::test]
async fn an_answer_is_a_run_of_its_own_and_is_recovered_like_one() {
    let disk = Disk::default();
    let (calls, go) = (Count::default(), Arc::new(Notify::new()));
    let slow = {
        let (calls, go) = (calls.clone(), go.clone());
        move |_: View<Log>, _: NodeCx| {
            let (calls, go) = (calls.clone(), go.clone());
            async move {
                calls.up();
                go.notified().await;
                Ok::<_, NodeError>(wrote("slow"))
            }
        }
    };
    let graph = Graph::builder("asks")
        .node("ask", asks("ask"))
        .node("slow", slow)
        .edge(START, "ask")
        .edge("ask", "slow")
        .edge("slow", END)
        .build()
        .unwrap();
    let (runtime, queue) = disk.process(&[&graph]).await;
    let run = starts("asks", "t", 1, LogUpdate::default());
    queue.submit(&run).await.unwrap();
    assert_eq!(ended(&queue, 1).await.0, RunStatus::Success);
    let thread = runtime.thread(&graph, "t").unwrap();
    let open = thread.interrupts().await.unwrap();
    let answer = |id: InterruptId| Answer {
        interrupt: id,
        body: AnswerBody::Value(Value::plain("yes").unwrap()),
        by: "ann".to_owned(),
        at: Timestamp(5),
    };
    let request = ThreadRequest::Answer(vec![answer(open[0].interrupt.id)]);
    let run = requests("asks", "t", 2, request);
    queue.submit(&run).await.unwrap();
    while calls.get() == 0 {
        tokio::task::yield_now().await;
    }
    drop((queue, thread, runtime));

    let (runtime, queue) = disk.process(&[&graph]).await;
    while calls.get() == 1 {
        tokio::task::yield_now().await;
    }
    go.notify_one();
    assert_eq!(ended(&queue, 2).await.0, RunStatus::Success);
    let thread = runtime.thread(&graph, "t").unwrap();
    let state: Log = thread.values().await.unwrap().unwrap();
    assert_eq!(state.ran, ["ask=yes", "slow"]);
}

#[tokio::test]
async fn a_resume_that_writes_and_an_edit_are_runs_of_their_own() {
    let disk = Disk::default();
    let graph = Graph::builder("asks")
        .node("ask", asks("ask"))
        .edge(START, "ask")
        .edge("ask", END)
        .build()
        .unwrap();
    let (runtime, queue) = disk.process(&[&graph]).await;
    let run = starts("asks", "t", 1, LogUpdate::default());
    queue.submit(&run).await.unwrap();
    assert_eq!(ended(&queue, 1).await.0, RunStatus::Success);
    let thread = runtime.thread(&graph, "t").unwrap();
    let open = thread.interrupts().await.unwrap().remove(0).interrupt.id;
    let resume = ThreadRequest::ResumeWith {
        answers: vec![Answer {
            interrupt: open,
            body: AnswerBody::Value(Value::plain("yes").unwrap()),
            by: "ann".to_owned(),
            at: Timestamp(5),
        }],
        write: Some(Value::encode(&LogUpdate::default().total(2)).unwrap()),
        context: None,
    };
    let run = requests("asks", "t", 2, resume);
    queue.submit(&run).await.unwrap();
    assert_eq!(ended(&queue, 2).await, (RunStatus::Success, Json::Null));
    let node = EditNode::Node(NodeName::new("ask").unwrap());
    let by_hand = Command::<Log>::update(wrote("by hand"));
    let edit = ThreadRequest::Edit(ThreadEdit {
        at: None,
        frame: FramePath::root(),
        updates: vec![Edit::new(node, by_hand).unwrap()],
    });
    queue.submit(&requests("asks", "t", 3, edit)).await.unwrap();
    assert_eq!(ended(&queue, 3).await, (RunStatus::Success, Json::Null));
    let state: Log = thread.values().await.unwrap().unwrap();
    assert_eq!(state.ran, ["ask=yes", "by hand"]);
    assert_eq!(state.total, 2);
}

#[tokio::test]
async fn failures_and_unknown_graphs_end_a_run_with_an_error() {
    let disk = Disk::default();
    let graph = Graph::builder("broken")
        .node("a", fails("a", 9, &Count::default()))
        .edge(START, "a")
        .edge("a", END)
        .build()
        .unwrap();
    let (_runtime, queue) = disk.process(&[&graph]).await;
    for (graph, thread, id) in [("broken", "t", 1), ("gone", "u", 2)] {
        let run = starts(graph, thread, id, LogUpdate::default());
        queue.submit(&run).await.unwrap();
    }
    let (status, error) = ended(&queue, 1).await;
    assert_eq!(status, RunStatus::Error);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("a is broken"), "{error}");
    let (status, error) = ended(&queue, 2).await;
    assert_eq!(status, RunStatus::Error);
    assert_eq!(error["error"], "drive-unknown-graph");
}

/// An engine that refuses every run.
struct RefusingEngine;

impl RefusingEngine {
    fn refusal() -> DriveError {
        DriveError::Engine {
            code: "refused".to_owned(),
            message: "it is a test".to_owned(),
            is_refusal: true,
        }
    }
}

impl Engine for RefusingEngine {
    fn execute<'a>(
        &'a self,
        _: &'a ThreadId,
        _: RunId,
        _: &'a QueuedRequest,
    ) -> BoxFuture<'a, Result<RunReport, DriveError>> {
        Box::pin(async { Err(Self::refusal()) })
    }

    fn send<'a>(
        &'a self,
        _: &'a ThreadId,
        _: RunId,
        _: &'a QueuedRequest,
    ) -> BoxFuture<'a, Result<(), DriveError>> {
        Box::pin(async { Err(Self::refusal()) })
    }
}

/// Several processes share the queue, and this one does not know the graph of the oldest runs.
#[tokio::test]
async fn runs_of_graphs_that_others_know_do_not_keep_those_behind_them() {
    let disk = Disk::default();
    // As often as if many processes had handed it back.
    let first = starts("gone", "gone-1", 1, LogUpdate::default());
    disk.registry.create_run(&first).await.unwrap();
    for _ in 0..150 {
        let taken = disk.registry.take_runs(Timestamp(2), 1).await.unwrap();
        assert_eq!(taken.len(), 1);
        disk.registry.release_runs(&[], Timestamp(2)).await.unwrap();
    }
    for id in 2..=100 {
        let run = starts("gone", &format!("gone-{id}"), id, LogUpdate::default());
        disk.registry.create_run(&run).await.unwrap();
    }
    let known = starts("row", "known", 200, LogUpdate::default());
    disk.registry.create_run(&known).await.unwrap();

    let runtime = Runtime::builder(disk.store.clone())
        .engine(RefusingEngine)
        .build();
    let graph = row(&["a"]);
    runtime.register(&graph);
    let registry = Arc::new(disk.registry.clone());
    let queue = RunQueue::start(&runtime, registry, 16).await.unwrap();
    let known = tokio::time::timeout(Duration::from_secs(10), ended(&queue, 200));
    let (status, error) = known.await.unwrap();
    assert_eq!(status, RunStatus::Error);
    assert_eq!(error["error"], "refused");
    for id in [1, 2, 100] {
        assert!(disk.status(id).await.is_active(), "{id}");
    }
}

#[tokio::test]
async fn a_run_waits_for_its_time_and_holds_up_no_other() {
    let disk = Disk::default();
    let graph = Graph::builder("row")
        .node("a", says("a"))
        .edge(START, "a")
        .edge("a", END)
        .build()
        .unwrap();
    let (runtime, queue) = disk.process(&[&graph]).await;
    let later = NewRun {
        due: runtime.now().plus_ms(150),
        ..starts("row", "t", 1, wrote("later"))
    };
    queue.submit(&later).await.unwrap();
    queue
        .submit(&starts("row", "t", 2, wrote("now")))
        .await
        .unwrap();
    assert_eq!(ended(&queue, 2).await.0, RunStatus::Success);
    assert_eq!(disk.status(1).await, RunStatus::Pending);
    assert_eq!(ended(&queue, 1).await.0, RunStatus::Success);
    assert!(runtime.now() >= later.due);
}

#[tokio::test]
async fn a_tick_that_two_queues_fire_is_one_run() {
    let disk = Disk::default();
    let graph = row(&["a", "b"]);
    let (_one, first) = disk.process(&[&graph]).await;
    let (_two, second) = disk.process(&[&graph]).await;
    let cron = NewCron {
        tenant: String::new(),
        id: CronId::from_bytes([7; 16]),
        assistant: AssistantId::from_bytes([9; 16]),
        thread: None,
        principal: "ann".to_owned(),
        schedule: "* * * * *".to_owned(),
        zone: None,
        end: None,
        is_enabled: true,
        next: Some(Timestamp(60_000)),
        arguments: json!({}),
        metadata: json!({}),
        at: Timestamp(1),
    };
    disk.registry.create_cron(&cron).await.unwrap();
    // Each with a run of its own, so that nothing but the cron keeps them apart.
    let tick = |id: u8| CronTick {
        tenant: String::new(),
        cron: cron.id,
        due: Timestamp(60_000),
        seen: Timestamp(1),
        next: Some(Timestamp(120_000)),
        run: TickRun::Run(Box::new(starts("row", &format!("t{id}"), id, wrote("x")))),
    };
    let (one, two) = (tick(1), tick(2));
    let (one, two) = tokio::join!(first.fire(&one), second.fire(&two));
    let stored = FiredTick::Run(CreatedRun::Stored(Vec::new()));
    let fired = match (one.unwrap(), two.unwrap()) {
        (one, FiredTick::Passed) if one == stored => 1,
        (FiredTick::Passed, two) if two == stored => 2,
        both => panic!("{both:?}"),
    };
    assert_eq!(ended(&first, fired).await, (RunStatus::Success, Json::Null));
    let runs = disk.registry.runs(&RunQuery::default()).await.unwrap();
    assert_eq!(runs.len(), 1);
    let moved = disk.registry.cron("", cron.id).await.unwrap().unwrap();
    assert_eq!(moved.next, Some(Timestamp(120_000)));
}

#[tokio::test]
async fn a_drained_queue_leaves_its_runs_to_the_next_one() {
    let disk = Disk::default();
    let (calls, go) = (Count::default(), Arc::new(Notify::new()));
    let graph = patient(&calls, &go);
    let (_runtime, queue) = disk.process(&[&graph]).await;
    for id in [1, 2] {
        let run = starts("patient", "t", id, LogUpdate::default());
        queue.submit(&run).await.unwrap();
    }
    while calls.get() == 0 {
        tokio::task::yield_now().await;
    }
    // A drain waits for the node.
    let drain = queue.drain();
    let free = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        go.notify_one();
    };
    tokio::join!(drain, free);
    assert_eq!(calls.get(), 1, "the second run was not started");
    assert_eq!(disk.status(2).await, RunStatus::Pending);
    let (_runtime, queue) = disk.process(&[&graph]).await;
    for id in [1, 2] {
        go.notify_one();
        assert_eq!(ended(&queue, id).await.0, RunStatus::Success, "run {id}");
    }
}

/// Wants every end to be delivered, and does not know what to the first two times that it is called.
#[derive(Default)]
struct FlakyHook {
    calls: AtomicUsize,
    stored: AtomicUsize,
}

impl RunEndHook for FlakyHook {
    fn before_end<'a>(
        &'a self,
        run: &'a RunRow,
        end: &'a RunEnd,
    ) -> BoxFuture<'a, Result<Vec<NewDelivery>, RunEndHookError>> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let delivery = NewDelivery {
            id: DeliveryId::from_bytes([7; 16]),
            run: run.id,
            thread: run.thread.clone(),
            address: "https://example.com/".to_owned(),
            event: "run.ended".to_owned(),
            body: format!("{:?}", end.status),
            at: end.at,
        };
        Box::pin(async move {
            match call {
                0 | 1 => Err(RunEndHookError("not now".to_owned())),
                _ => Ok(vec![delivery]),
            }
        })
    }

    fn deliveries_stored(&self) {
        self.stored.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn what_is_to_be_delivered_is_stored_with_the_end_of_a_run() {
    let disk = Disk::default();
    let graph = row(&["a"]);
    let runtime = Runtime::new(disk.store.clone());
    runtime.register(&graph);
    let hook = Arc::new(FlakyHook::default());
    let registry = Arc::new(disk.registry.clone());
    let queue = RunQueue::start_with(
        &runtime,
        registry,
        QueueOptions::new(1).end_hook(hook.clone()),
    );
    let queue = queue.await.unwrap();
    let submitted = queue.submit(&starts("row", "t", 1, wrote("one"))).await;
    submitted.unwrap();
    assert_eq!(ended(&queue, 1).await, (RunStatus::Success, Json::Null));
    let query = DeliveryQuery {
        run: Some(run_id(1)),
        ..DeliveryQuery::default()
    };
    let found = disk.registry.deliveries(&query).await.unwrap();
    let bodies: Vec<&str> = found.iter().map(|found| found.new.body.as_str()).collect();
    assert_eq!(bodies, ["Success"]);
    assert_eq!(hook.calls.load(Ordering::Relaxed), 3);
    assert_eq!(hook.stored.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_run_that_takes_its_process_down_three_times_is_given_up() {
    let disk = Disk::default();
    let (calls, go) = (Count::default(), Arc::new(Notify::new()));
    let graph = patient(&calls, &go);
    let mut run = starts("patient", "t", 1, wrote("input"));
    let options = RunOptions::default().recoveries_max(2);
    let request = QueuedRequest::from_bytes(&run.request, &run.thread).unwrap();
    let request = QueuedRequest::new("patient", request.request, &options).unwrap();
    run.request = request.to_bytes(&run.thread);
    for process in 1..=3 {
        let (runtime, queue) = disk.process(&[&graph]).await;
        if process == 1 {
            queue.submit(&run).await.unwrap();
        }
        while calls.get() < process {
            tokio::task::yield_now().await;
        }
        // The process dies.
        drop((queue, runtime));
    }
    let (runtime, queue) = disk.process(&[&graph]).await;
    let (status, error) = ended(&queue, 1).await;
    assert_eq!(status, RunStatus::Error);
    assert_eq!(error["error"], "node-poisoned", "{error}");
    assert_eq!(calls.get(), 3, "a fourth execution would be one too many");
    let thread = runtime.thread(&graph, "t").unwrap();
    let state: Log = thread.values().await.unwrap().unwrap();
    assert_eq!(state.ran, ["input"], "the thread can be read");
}

#[tokio::test]
async fn a_run_whose_process_dies_before_it_begins_is_given_up_too() {
    let disk = Disk::default();
    let calls = Count::default();
    let graph = Graph::builder("counts")
        .node("a", fails("a", 0, &calls))
        .edge(START, "a")
        .edge("a", END)
        .build()
        .unwrap();
    let run = starts("counts", "t", 1, wrote("input"));
    disk.registry.create_run(&run).await.unwrap();
    for _ in 1..=3 {
        let taken = disk.registry.take_runs(Timestamp(2), 1).await.unwrap();
        assert_eq!(taken.len(), 1);
        // The process dies at once, and the next one finds its run.
        disk.registry.release_runs(&[], Timestamp(3)).await.unwrap();
    }
    let (_runtime, queue) = disk.process(&[&graph]).await;
    let (status, error) = ended(&queue, 1).await;
    assert_eq!((status, calls.get()), (RunStatus::Error, 0));
    assert_eq!(error["error"], "node-poisoned", "{error}");
    let again = starts("counts", "t", 2, wrote("again"));
    queue.submit(&again).await.unwrap();
    assert_eq!(ended(&queue, 2).await, (RunStatus::Success, Json::Null));
}

#[tokio::test]
async fn a_tenant_that_floods_the_queue_leaves_room_for_others() {
    let disk = Disk::default();
    let (calls, go) = (Count::default(), Arc::new(Notify::new()));
    let graph = patient(&calls, &go);
    let quick = row(&["a"]);
    let of_tenant = |tenant: &str, graph: &str, id: u8| {
        let mut run = starts(graph, "t", id, wrote("input"));
        let request = QueuedRequest::from_bytes(&run.request, &run.thread).unwrap();
        run.thread = ThreadId::of_tenant(tenant, &format!("t{id}")).unwrap();
        run.request = request.to_bytes(&run.thread);
        run
    };
    // Everything is waiting when the queue starts: the flood first.
    for id in 1..=20 {
        let run = of_tenant("loud", "patient", id);
        disk.registry.create_run(&run).await.unwrap();
    }
    let run = of_tenant("calm", "row", 21);
    disk.registry.create_run(&run).await.unwrap();
    let runtime = Runtime::new(disk.store.clone());
    runtime.register(&graph);
    runtime.register(&quick);
    let options = QueueOptions::new(4).tenant_runs_max(2);
    let registry = Arc::new(disk.registry.clone());
    let queue = RunQueue::start_with(&runtime, registry, options)
        .await
        .unwrap();
    let row = queue.wait("calm", run_id(21)).await.unwrap().unwrap();
    assert_eq!(row.status, RunStatus::Success);
    assert_eq!(calls.get(), 2, "the flood executes as many as it may");
    let created = queue.submit(&of_tenant("calm", "row", 22)).await.unwrap();
    assert_eq!(created, CreatedRun::Begun, "at once");
    queue.wait("calm", run_id(22)).await.unwrap();
    let created = queue.submit(&of_tenant("loud", "patient", 23)).await;
    assert_eq!(created.unwrap(), CreatedRun::Stored(Vec::new()));
    // When one of the flood ends, the next of it begins.
    go.notify_one();
    while calls.get() < 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(queue.health().executing, 2);
}
