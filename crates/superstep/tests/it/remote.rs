//! A runtime with an engine executes nothing itself, whichever way a request comes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use superstep::checkpoint::BoxFuture;
use superstep::driver::{QueuedRequest, ThreadRequest};
use superstep::prelude::*;
use superstep::{Clock, DriveError, Driver, Engine, RunId, RunReport, ThreadId, Timestamp};

use crate::kit::{Log, LogUpdate};

/// An engine that is down: it notes what it is asked for.
#[derive(Clone, Default)]
struct DownEngine(Arc<Mutex<Vec<ThreadRequest>>>);

impl DownEngine {
    fn asked(&self) -> Vec<ThreadRequest> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Engine for DownEngine {
    fn execute<'a>(
        &'a self,
        _: &'a ThreadId,
        _: RunId,
        request: &'a QueuedRequest,
    ) -> BoxFuture<'a, Result<RunReport, DriveError>> {
        self.0.lock().unwrap().push(request.request.clone());
        Box::pin(async { Err(DriveError::Draining) })
    }

    fn send<'a>(
        &'a self,
        _: &'a ThreadId,
        _: RunId,
        request: &'a QueuedRequest,
    ) -> BoxFuture<'a, Result<(), DriveError>> {
        self.0.lock().unwrap().push(request.request.clone());
        Box::pin(async { Err(DriveError::Draining) })
    }
}

async fn asks(_: View<Log>, cx: NodeCx) -> Result<LogUpdate, NodeError> {
    let question = Interrupt::new("go", "go?").within(Duration::from_secs(60));
    let answer: String = cx.interrupt(question.or_answer("no")).await?;
    Ok(LogUpdate::default().ran(answer))
}

async fn hangs(_: View<Log>, _: NodeCx) -> Result<LogUpdate, NodeError> {
    std::future::pending().await
}

fn asking() -> Graph<Log> {
    let builder = Graph::builder("asking").node("asks", asks);
    let builder = builder.edge(START, "asks").edge("asks", END);
    builder.build().unwrap()
}

fn hanging() -> Graph<Log> {
    let builder = Graph::builder("hanging").node("hangs", hangs);
    let builder = builder.edge(START, "hangs").edge("hangs", END);
    builder.build().unwrap()
}

#[tokio::test]
async fn deadlines_and_recoveries_are_left_to_the_engine() {
    let store = Memory::default();
    let (asking, hanging) = (asking(), hanging());
    let local = Runtime::builder(store.clone())
        .clock(Clock::new(|| Timestamp(0)))
        .build();
    let asked = local.thread(&asking, "asked").unwrap();
    asked.start(LogUpdate::default()).await.unwrap();
    let lost = local.thread(&hanging, "lost").unwrap();
    let run = lost.start(LogUpdate::default());
    // Its process dies.
    let _ = tokio::time::timeout(Duration::from_millis(50), run).await;

    let engine = DownEngine::default();
    let remote = Runtime::builder(store)
        .engine(engine.clone())
        .clock(Clock::new(|| Timestamp(120_000)))
        .build();
    remote.register(&asking);
    remote.register(&hanging);
    remote.expire_interrupts().await.unwrap_err();
    assert!(matches!(&engine.asked()[..], [ThreadRequest::Answer(answers)] if answers.len() == 1));
    assert_eq!(asked.interrupts().await.unwrap().len(), 1, "answered here");
    let recovered = remote.recover().await.unwrap();
    assert!(matches!(&recovered[..], [(thread, Err(DriveError::Draining))] if thread == lost.id()));
    assert_eq!(engine.asked(), [ThreadRequest::Recover]);
}

#[tokio::test]
async fn a_host_of_many_graphs_holds_drivers_as_objects() {
    let runtime = crate::runtime();
    let graph = asking();
    runtime.register(&graph);
    let drivers: Vec<Arc<dyn Driver>> =
        vec![runtime.driver().clone(), Arc::new(runtime.local().clone())];
    for (number, driver) in drivers.iter().enumerate() {
        let thread: ThreadId = format!("t{number}").parse().unwrap();
        let start = ThreadRequest::Start {
            input: superstep::Value::encode(&LogUpdate::default()).unwrap(),
            context: None,
            metadata: None,
        };
        let options = superstep::RunOptions::default();
        let end = driver.execute(&thread, graph.definition(), start, &options);
        assert!(end.await.unwrap().is_some());
        let open = runtime.thread(&graph, thread.name()).unwrap();
        assert_eq!(open.interrupts().await.unwrap().len(), 1);
    }
}
