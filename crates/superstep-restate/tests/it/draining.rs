//! A worker that is stopped hands its runs over.

use std::time::Duration;

use superstep::prelude::*;
use superstep::{Runtime, SegmentLimits};
use superstep_restate::Worker;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::kit::{Cluster, named, register};

#[derive(Clone, Debug, Default, PartialEq, State)]
struct Count {
    #[state(reduce = add)]
    n: u64,
}

fn add(a: u64, b: u64) -> u64 {
    a + b
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_elsewhere_when_its_worker_is_stopped() {
    let cluster = Cluster::start_with(|worker| {
        worker.limits(SegmentLimits {
            supersteps: 1_000,
            ..SegmentLimits::default()
        })
    })
    .await;
    let graph = Graph::builder("long")
        .node("tick", async |_: View<Count>, _: NodeCx| {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok::<_, NodeError>(CountUpdate::default().n(1))
        })
        .edge(START, "tick")
        .route("tick", &["tick", END], |count: &Count| {
            match count.n < 100 {
                true => "tick",
                false => END,
            }
        })
        .build()
        .unwrap();
    let thread = cluster.runtime().thread(&graph, named("long")).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn({
        let thread = cluster.runtime().thread(&graph, named("long")).unwrap();
        async move { thread.start(CountUpdate::default()).await.unwrap() }
    });
    let done = async |thread: &Thread<Count>| -> u64 {
        let state = thread.state().await.unwrap();
        state.map_or(0, |state| state.values.decode::<Count>().unwrap().n)
    };
    while done(&thread).await < 3 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    // Another one at the same address takes over; the first one comes to its next superstep and no further.
    let other = Runtime::new(cluster.store.clone());
    other.register(&graph);
    let listener = Worker::listen(cluster.address).unwrap();
    let worker = Worker::new(other, cluster.store.clone());
    let (_stop, stopped) = oneshot::channel::<()>();
    let mut other = JoinSet::new();
    other.spawn(worker.serve(listener, async { drop(stopped.await) }));
    cluster.stop_worker().await;
    let before = done(&thread).await;
    assert!((3..100).contains(&before), "{before}");

    let stopped = tasks.join_next().await.unwrap().unwrap();
    assert_eq!((stopped.outcome, stopped.state.n), (Outcome::Finished, 100));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_tells_its_health_and_its_figures() {
    let operations = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = operations.local_addr().unwrap();
    let cluster = Cluster::start_with(|worker| worker.operations(operations)).await;
    let get = async |path: &str| crate::kit::get(&format!("http://{address}{path}")).await;
    assert_eq!(get("/health").await.0, 200);
    assert_eq!(get("/ready").await.0, 200);
    let graph = Graph::builder("one")
        .node("one", async |_: View<Count>, _: NodeCx| {
            Ok::<_, NodeError>(CountUpdate::default().n(1))
        })
        .edge(START, "one")
        .edge("one", END)
        .build()
        .unwrap();
    let thread = cluster.runtime().thread(&graph, named("one")).unwrap();
    thread.start(CountUpdate::default()).await.unwrap();
    let (_, figures) = get("/metrics").await;
    assert!(
        figures.contains("superstep_runs_stopped_total 1\n"),
        "{figures}"
    );
    let kinds = figures.lines().filter_map(|l| l.strip_prefix("# TYPE "));
    let returned: serde_json::Value = kinds
        .map(|line| {
            let (name, kind) = line.split_once(' ').unwrap();
            (name.to_owned(), serde_json::json!(kind))
        })
        .collect();
    // What alert rules and the dashboard rely on.
    let listed = include_str!("../../../../deploy/metrics.json");
    let listed: serde_json::Value = serde_json::from_str(listed).unwrap();
    assert_eq!(returned, listed["worker"]);
    assert_eq!(get("/nothing").await.0, 404);
    register(
        &cluster.services.admin,
        &format!("http://{}", cluster.address),
    )
    .await;
}
