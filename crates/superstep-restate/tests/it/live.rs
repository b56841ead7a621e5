//! Threads that one process runs and another watches: the log from the store, and what is live over Redis.

use std::sync::Arc;
use std::time::Duration;

use superstep::prelude::*;
use superstep::run::{StreamEvent, StreamEventBody};
use superstep::{Event, Events, LiveBus, RetryPolicy, Seq};
use superstep_restate::{Redis, RedisOptions};
use tokio::sync::Semaphore;

use crate::kit::{Cluster, Server, Services, named, number, store};

#[derive(Clone, Debug, Default, PartialEq, State)]
struct Story {
    #[state(append)]
    lines: Vec<String>,
}

fn says(line: impl Into<String>) -> StoryUpdate {
    StoryUpdate::default().lines(line.into())
}

/// Two runtimes over one store, each with a wire of its own: they stand for two processes.
struct Two {
    runs: Runtime,
    watches: Runtime,
}

async fn two(address: &str) -> Two {
    let store = store(&Services::find()).await;
    let prefix = format!("test-{}", number());
    let runtime = async || {
        let live_bus = live_bus(address, &prefix).await;
        Runtime::builder(store.clone()).live_bus(live_bus).build()
    };
    Two {
        runs: runtime().await,
        watches: runtime().await,
    }
}

async fn live_bus(address: &str, prefix: &str) -> Redis {
    let mut options = RedisOptions::default();
    options.prefix = prefix.to_owned();
    options.waiting_max = 100;
    Redis::connect_with(address, options).await.unwrap()
}

/// What a watcher saw.
#[derive(Default)]
struct Saw {
    log: Vec<StreamEvent>,
    /// What was shown live, and where it was replaced.
    live: Vec<String>,
}

impl Saw {
    /// Watches until the log tells of a stop.
    async fn until_stop(&mut self, events: &mut Events) {
        self.until(events, |saw| {
            let last = saw.log.last();
            last.is_some_and(|seen| matches!(seen.what, StreamEventBody::Stopped(_)))
        })
        .await;
    }

    /// Watches until this was shown.
    async fn until_shown(&mut self, events: &mut Events, what: &str) {
        self.until(events, |saw| saw.live.last().is_some_and(|it| it == what))
            .await;
    }

    async fn until(&mut self, events: &mut Events, is_enough: impl Fn(&Saw) -> bool) {
        loop {
            let next = tokio::time::timeout(PATIENCE, events.next()).await;
            match next.expect("something more happens").unwrap() {
                Event::Logged(seen) => self.log.push(seen),
                Event::Live(event) => self.live.push(event.payload.decode().unwrap()),
                Event::Replaced { .. } => self.live.push("(replaced)".to_owned()),
            }
            if is_enough(self) {
                return;
            }
        }
    }
}

/// How long nothing may happen, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lets a node go on when the test says so.
type Gate = Arc<Semaphore>;

fn gate() -> Gate {
    Arc::new(Semaphore::new(0))
}

async fn pass(gate: &Gate) {
    gate.acquire().await.unwrap().forget();
}

/// A graph of one node, which is tried twice.
fn one<F>(node: impl Fn(NodeCx) -> F + Send + Sync + 'static) -> Graph<Story>
where
    F: Future<Output = Result<StoryUpdate, NodeError>> + Send + 'static,
{
    Graph::builder("one")
        .node("node", move |_: View<Story>, cx: NodeCx| node(cx))
        .retry("node", RetryPolicy::attempts(2).every(Duration::ZERO))
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap()
}

/// Emits, stumbles once, goes through a subgraph and asks.
fn busy() -> Graph<Story> {
    let child = Graph::builder("child")
        .node("in", async |_: View<Story>, _: NodeCx| {
            Ok::<_, NodeError>(says("in"))
        })
        .edge(START, "in")
        .edge("in", END)
        .build()
        .unwrap();
    Graph::builder("busy")
        .node("emits", async |_: View<Story>, cx: NodeCx| {
            cx.emit("stored")?;
            cx.emit_live("token")?;
            Ok::<_, NodeError>(says("emits"))
        })
        .node("stumbles", async |_: View<Story>, cx: NodeCx| {
            match cx.attempt() {
                1 => Err(NodeError::retryable("once")),
                _ => Ok(says("stumbles")),
            }
        })
        .retry("stumbles", RetryPolicy::attempts(2).every(Duration::ZERO))
        .shared_subgraph("child", child)
        .node("ask", async |_: View<Story>, cx: NodeCx| {
            let answer: String = cx.interrupt(Interrupt::new("q", "what?")).await?;
            Ok::<_, NodeError>(says(answer))
        })
        .edge(START, "emits")
        .edge(START, "stumbles")
        .edge("emits", "child")
        .edge("stumbles", END)
        .edge("child", "ask")
        .edge("ask", END)
        .build()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_elsewhere_sees_the_log_and_whoever_rejoins_sees_the_rest() {
    let Two { runs, watches } = two(&Services::redis()).await;
    let running = runs.thread(&busy(), named("t")).unwrap();
    let watched = watches.thread(&busy(), named("t")).unwrap();
    let mut saw = Saw::default();
    let mut events = watched.events(Seq(0));
    let watching = async {
        saw.until_stop(&mut events).await;
        saw.until_stop(&mut events).await;
    };
    let run = async {
        running.start(StoryUpdate::default()).await.unwrap();
        running.answer_only("yes").await.unwrap();
    };
    tokio::join!(watching, run);
    let stored = running.events(Seq(0)).stored().await.unwrap();
    assert_eq!(saw.log, stored);
    for after in 0..stored.last().unwrap().seq.0 {
        let mut rejoined = Saw::default();
        let mut events = watched.events(Seq(after));
        let is_whole = |saw: &Saw| saw.log.last() == stored.last();
        rejoined.until(&mut events, is_whole).await;
        let rest = stored.iter().filter(|seen| seen.seq.0 > after);
        assert_eq!(rejoined.log, rest.cloned().collect::<Vec<_>>());
        assert_eq!(
            rejoined.live, [""; 0],
            "what was shown is in the log by now"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_failed_attempt_showed_is_replaced() {
    let Two { runs, watches } = two(&Services::redis()).await;
    let gate = gate();
    let waits = gate.clone();
    let graph = one(move |cx| {
        let gate = waits.clone();
        async move {
            cx.emit_live(format!("attempt {}", cx.attempt()))?;
            pass(&gate).await;
            match cx.attempt() {
                1 => Err(NodeError::retryable("once")),
                _ => Ok(says("done")),
            }
        }
    });
    let running = runs.thread(&graph, named("t")).unwrap();
    let mut events = watches.thread(&graph, named("t")).unwrap().events(Seq(0));
    let mut saw = Saw::default();
    let watching = async {
        saw.until_shown(&mut events, "attempt 1").await;
        gate.add_permits(1);
        saw.until_shown(&mut events, "attempt 2").await;
        gate.add_permits(1);
        saw.until_stop(&mut events).await;
    };
    let (stopped, ()) = tokio::join!(running.start(StoryUpdate::default()), watching);
    assert_eq!(stopped.unwrap().outcome, Outcome::Finished);
    assert_eq!(saw.live, ["attempt 1", "(replaced)", "attempt 2"]);
    assert_eq!(saw.log, running.events(Seq(0)).stored().await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crashed_worker_showed_is_replaced_by_whoever_takes_the_thread_up() {
    let Two { runs, watches } = two(&Services::redis()).await;
    let graph = one(|cx| async move {
        cx.emit_live("a")?;
        cx.emit_live("b")?;
        std::future::pending::<()>().await;
        Ok(says("never"))
    });
    let first = runs.thread(&graph, named("t")).unwrap();
    let watched = watches.thread(&graph, named("t")).unwrap();
    let mut events = watched.events(Seq(0));
    let mut saw = Saw::default();
    tokio::select! {
        stopped = first.start(StoryUpdate::default()) => panic!("{stopped:?}"),
        () = saw.until_shown(&mut events, "b") => {}
    }
    tokio::select! {
        stopped = watched.recover() => panic!("{stopped:?}"),
        () = saw.until(&mut events, |saw| saw.live.len() >= 5) => {}
    }
    assert_eq!(saw.live, ["a", "b", "(replaced)", "a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_who_joins_in_the_middle_hears_what_was_shown_before() {
    let Two { runs, watches } = two(&Services::redis()).await;
    let gate = gate();
    let waits = gate.clone();
    let graph = one(move |cx| {
        let gate = waits.clone();
        async move {
            cx.emit_live("a")?;
            cx.emit_live("b")?;
            pass(&gate).await;
            cx.emit_live("c")?;
            pass(&gate).await;
            Ok(says("done"))
        }
    });
    let running = runs.thread(&graph, named("t")).unwrap();
    let watched = watches.thread(&graph, named("t")).unwrap();
    let mut first = (watched.events(Seq(0)), Saw::default());
    let mut late = (watched.events(Seq(0)), Saw::default());
    let watching = async {
        first.1.until_shown(&mut first.0, "b").await;
        late = (watched.events(Seq(1)), Saw::default());
        late.1.until_shown(&mut late.0, "b").await;
        gate.add_permits(1);
        first.1.until_shown(&mut first.0, "c").await;
        late.1.until_shown(&mut late.0, "c").await;
        gate.add_permits(1);
        first.1.until_stop(&mut first.0).await;
        late.1.until_stop(&mut late.0).await;
    };
    let (stopped, ()) = tokio::join!(running.start(StoryUpdate::default()), watching);
    let last = stopped.unwrap().seq;
    assert_eq!(first.1.live, ["a", "b", "c"]);
    assert_eq!(late.1.live, ["a", "b", "c"]);
    let stored = running.events(Seq(1)).stored().await.unwrap();
    assert_eq!(late.1.log, stored);

    // Of the run that is over, nothing is shown to one who comes for the next.
    gate.add_permits(2);
    let mut next = (watched.events(last), Saw::default());
    let run = running.start(StoryUpdate::default());
    let (stopped, ()) = tokio::join!(run, next.1.until_stop(&mut next.0));
    stopped.unwrap();
    assert!(next.1.live.len() <= 3, "{:?}", next.1.live);
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_goes_away_and_comes_back_and_the_log_is_whole() {
    let mut server = Server::start().await;
    let Two { runs, watches } = two(&server.address()).await;
    let gate = gate();
    let waits = gate.clone();
    let graph = Graph::builder("loop")
        .node("turn", move |_: View<Story>, cx: NodeCx| {
            let gate = waits.clone();
            async move {
                // Shows signs of life until it may go on.
                while tokio::time::timeout(Duration::from_millis(5), pass(&gate))
                    .await
                    .is_err()
                {
                    cx.emit_live("alive")?;
                }
                Ok::<_, NodeError>(says("turned"))
            }
        })
        .edge(START, "turn")
        .route("turn", &["turn", END], |story: &Story| {
            if story.lines.len() < 30 { "turn" } else { END }
        })
        .build()
        .unwrap();
    let running = runs.thread(&graph, named("t")).unwrap();
    let mut events = watches.thread(&graph, named("t")).unwrap().events(Seq(0));
    let mut saw = Saw::default();
    let watching = async {
        saw.until_shown(&mut events, "alive").await;
        gate.add_permits(10);
        saw.until(&mut events, |saw| {
            saw.log.last().is_some_and(|it| it.seq.0 >= 5)
        })
        .await;
        server.kill().await;
        gate.add_permits(10);
        saw.until(&mut events, |saw| {
            saw.log.last().is_some_and(|it| it.seq.0 >= 21)
        })
        .await;
        server.start_again().await;
        saw.live.clear();
        saw.until_shown(&mut events, "alive").await;
        gate.add_permits(10);
        saw.until_stop(&mut events).await;
    };
    let (stopped, ()) = tokio::join!(running.start(StoryUpdate::default()), watching);
    assert_eq!(stopped.unwrap().outcome, Outcome::Finished);
    assert_eq!(saw.log, running.events(Seq(0)).stored().await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_takes_nothing_holds_nobody_up() {
    // Takes connections and never says a word.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("redis://{}", silent.local_addr().unwrap());
    let Two { runs, watches } = two(&address).await;
    let graph = one(|cx| async move {
        for number in 0..10_000 {
            cx.emit_live(number)?;
        }
        Ok(says("done"))
    });
    let running = runs.thread(&graph, named("t")).unwrap();
    let mut events = watches.thread(&graph, named("t")).unwrap().events(Seq(0));
    let mut saw = Saw::default();
    let run = running.start(StoryUpdate::default());
    let (stopped, ()) = tokio::join!(run, saw.until_stop(&mut events));
    assert_eq!(stopped.unwrap().outcome, Outcome::Finished);
    assert_eq!(saw.log, running.events(Seq(0)).stored().await.unwrap());
    assert_eq!(saw.live, [""; 0]);
    assert!(
        runs.live_bus().dropped() > 8_000,
        "{}",
        runs.live_bus().dropped()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_watcher_holds_nobody_up_and_misses_nothing_of_the_log() {
    let Two { runs, watches } = two(&Services::redis()).await;
    let graph = one(|cx| async move {
        for number in 0..50_000 {
            cx.emit_live(number.to_string())?;
            if number % 50 == 0 {
                tokio::task::yield_now().await;
            }
        }
        Ok(says("done"))
    });
    let running = runs.thread(&graph, named("t")).unwrap();
    let mut events = watches.thread(&graph, named("t")).unwrap().events(Seq(0));
    let mut saw = Saw::default();
    // Looks once, so that it is let in, and then not before all is over.
    let looks = saw.until(&mut events, |saw| !saw.log.is_empty());
    let (stopped, ()) = tokio::join!(running.start(StoryUpdate::default()), looks);
    assert_eq!(stopped.unwrap().outcome, Outcome::Finished);
    saw.until_stop(&mut events).await;
    assert_eq!(saw.log, running.events(Seq(0)).stored().await.unwrap());
    let numbers: Vec<u32> = saw.live.iter().map(|it| it.parse().unwrap()).collect();
    assert!(numbers.is_sorted(), "in order, whatever was missed");
}

const WRITE: SendTo<u32> = SendTo::new("write");

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_a_worker_runs_for_others_are_shown_too() {
    let prefix = format!("test-{}", number());
    let wires = live_bus(&Services::redis(), &prefix).await;
    let cluster = Cluster::start_wired(wires).await;
    let gate = gate();
    let waits = gate.clone();
    let graph = Graph::builder("fan")
        .node("plan", async |_: View<Story>, _: NodeCx| {
            let command = Command::update(says("planned"));
            Ok::<_, NodeError>((0..4).fold(command, |command, part| command.send(&WRITE, part)))
        })
        .map_node(&WRITE, move |part: u32, cx: NodeCx| {
            let gate = waits.clone();
            async move {
                cx.emit_live(format!("part {part}"))?;
                pass(&gate).await;
                Ok::<_, NodeError>(says(format!("{part}")))
            }
        })
        .edge(START, "plan")
        .commands("plan", &["write"])
        .edge("write", END)
        .build()
        .unwrap();
    let watches = cluster
        .builder()
        .live_bus(live_bus(&Services::redis(), &prefix).await);
    let thread = watches.build().thread(&graph, named("fan")).unwrap();
    let mut events = thread.events(Seq(0));
    let mut saw = Saw::default();
    let watching = async {
        saw.until(&mut events, |saw| saw.live.len() == 4).await;
        gate.add_permits(4);
        saw.until_stop(&mut events).await;
    };
    let (stopped, ()) = tokio::join!(thread.start(StoryUpdate::default()), watching);
    assert_eq!(stopped.unwrap().outcome, Outcome::Finished);
    saw.live.sort();
    assert_eq!(saw.live, ["part 0", "part 1", "part 2", "part 3"]);
    assert_eq!(saw.log, thread.events(Seq(0)).stored().await.unwrap());
}

#[tokio::test]
async fn what_is_too_large_to_be_shown_is_dropped_and_counted() {
    let redis = live_bus(&Services::redis(), "test-large").await;
    let runtime = Runtime::builder(Memory::default())
        .live_bus(redis.clone())
        .build();
    let graph = one(|cx| async move {
        cx.emit("x".repeat(100_000))?;
        Ok(says("done"))
    });
    let thread = runtime.thread(&graph, "t").unwrap();
    thread.start(StoryUpdate::default()).await.unwrap();
    assert_eq!(redis.dropped(), 1);
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_without_its_password() {
    let refused = Redis::connect("rodis://me:secret@here").await.unwrap_err();
    assert_eq!(refused.code(), "redis-bad-address");
    assert!(!refused.to_string().contains("secret"), "{refused}");
}
