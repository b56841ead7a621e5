//! What can be stored is refused at the node that wrote it, or read back as it was; and what is large is not copied.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use superstep::checkpoint::{BoxFuture, CheckpointResult};
use superstep::driver::NodeCache;
use superstep::prelude::*;
use superstep::{Clock, MemoryCache, Seq, Timestamp, Value};

use crate::kit::{Count, Log, LogUpdate, fails, memory};

#[derive(Clone, Debug, Default, PartialEq, State)]
struct Values {
    number: Option<f64>,
    list: Vec<f32>,
    json: serde_json::Value,
    by_number: BTreeMap<i64, String>,
    by_flag: BTreeMap<bool, u8>,
    by_pair: BTreeMap<(u8, u8), u8>,
    big: u64,
    text: String,
    maybe: Option<Option<u8>>,
}

fn writes(update: impl Fn() -> ValuesUpdate + Send + Sync + 'static) -> Graph<Values> {
    Graph::builder("values")
        .node("node", move |_: View<Values>, _: NodeCx| {
            let update = update();
            async move { Ok::<_, NodeError>(update) }
        })
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap()
}

fn nested(depth: usize) -> serde_json::Value {
    (0..depth).fold(serde_json::Value::Null, |inner, _| {
        serde_json::Value::Array(vec![inner])
    })
}

#[tokio::test]
async fn what_would_not_be_read_back_is_refused_at_the_node() {
    type Bad = (&'static str, fn() -> ValuesUpdate);
    let bad: [Bad; 5] = [
        ("nan", || ValuesUpdate::default().number(Some(f64::NAN))),
        ("infinite", || {
            ValuesUpdate::default().number(Some(f64::INFINITY))
        }),
        ("nan in a list", || {
            ValuesUpdate::default().list(vec![1.0, f32::NAN])
        }),
        ("too deep", || ValuesUpdate::default().json(nested(200))),
        ("keys that are no text", || {
            ValuesUpdate::default().by_pair(BTreeMap::from([((1, 2), 3)]))
        }),
    ];
    for (name, update) in bad {
        let thread = memory().thread(&writes(update), "t").unwrap();
        let failed = thread.start(ValuesUpdate::default()).await.unwrap();
        let Outcome::Failed(told) = &failed.outcome else {
            panic!("{name}: {failed:?}")
        };
        assert_eq!(told[0].kind.code(), "node-invalid-update", "{name}");
        assert_eq!(told[0].node.as_str(), "node");
        assert_eq!(failed.state, Values::default(), "{name}");
    }
}

#[tokio::test]
async fn what_is_taken_is_read_back_as_it_was() {
    let values = || {
        ValuesUpdate::default()
            .number(Some(0.1 + 0.2))
            .list(vec![f32::MIN_POSITIVE, -0.0])
            .json(nested(100))
            .by_number(BTreeMap::from([
                (-1, "a".to_owned()),
                (i64::MAX, "b".to_owned()),
            ]))
            .by_flag(BTreeMap::from([(false, 0), (true, 1)]))
            .big(u64::MAX)
            .text("\u{0}\u{1F600}\"\\")
    };
    let thread = memory().thread(&writes(values), "t").unwrap();
    let done = thread.start(ValuesUpdate::default()).await.unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
    assert_eq!(done.state.big, u64::MAX);
    assert_eq!(done.state.by_number[&i64::MAX], "b");
    assert_eq!(done.state.text, "\u{0}\u{1F600}\"\\");
    let stored = thread.state().await.unwrap().unwrap();
    assert_eq!(stored.values.decode::<Values>().unwrap(), done.state);
}

/// Large, and knows how often it was copied.
#[derive(Debug, Default)]
struct Large(Vec<u8>);

static COPIES: AtomicU32 = AtomicU32::new(0);

impl Clone for Large {
    fn clone(&self) -> Self {
        if !self.0.is_empty() {
            COPIES.fetch_add(1, Ordering::SeqCst);
        }
        Self(self.0.clone())
    }
}

#[derive(Clone, Debug, Default, State)]
struct Heavy {
    #[state(untracked)]
    large: Large,
    #[state(append)]
    seen: Vec<u32>,
}

#[tokio::test]
async fn a_state_of_32_mib_is_not_copied_for_each_of_a_thousand_tasks() {
    let mut builder = Graph::builder("heavy")
        .node("load", |_: View<Heavy>, _: NodeCx| async {
            Ok::<_, NodeError>(HeavyUpdate::default().large(Large(vec![7; 32 << 20])))
        })
        .node("end", |heavy: View<Heavy>, _: NodeCx| async move {
            assert_eq!(heavy.seen.len(), 1_000);
            Ok::<_, NodeError>(HeavyUpdate::default())
        })
        .edge(START, "load")
        .edge("end", END);
    for n in 0..1_000 {
        let name = format!("n{n}");
        builder = builder
            .node(name.as_str(), |heavy: View<Heavy>, _: NodeCx| async move {
                Ok::<_, NodeError>(HeavyUpdate::default().seen(heavy.large.0.len() as u32))
            })
            .edge("load", name.as_str())
            .edge(name.as_str(), "end");
    }
    let thread = memory().thread(&builder.build().unwrap(), "t").unwrap();
    let done = thread.start(HeavyUpdate::default()).await.unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
    assert_eq!(done.state.seen, vec![32 << 20; 1_000]);
    // What is never stored is not given to whoever waits for the run either.
    assert!(done.state.large.0.is_empty());
    assert!(COPIES.load(Ordering::SeqCst) <= 1, "{COPIES:?}");
}

#[test]
fn the_rules_of_a_node_cache_hold_in_memory() {
    let cache = async || MemoryCache::default();
    superstep_conformance::block_on(superstep_conformance::node_cache(cache)).assert();
}

/// A cache that a test keeps a handle on.
#[derive(Clone, Default)]
struct Shared(Arc<MemoryCache>);

impl NodeCache for Shared {
    fn get<'a>(
        &'a self,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Vec<u8>>>> {
        self.0.get(key, now)
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        bytes: Vec<u8>,
        expires: Option<Timestamp>,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        self.0.put(key, bytes, expires)
    }

    fn clear<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, CheckpointResult<()>> {
        self.0.clear(prefix)
    }

    fn clear_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<u64>> {
        self.0.clear_tenant(tenant)
    }

    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        self.0.sweep(now, limit)
    }
}

#[tokio::test]
async fn a_cached_result_is_used_until_it_expires_or_is_cleared_and_failures_are_not_kept() {
    let calls = Count::default();
    let graph = Graph::builder("cached")
        .node("node", fails("node", 1, &calls))
        .cache("node", Some(Duration::from_secs(60)), |log: &Log| {
            log.last.clone().unwrap_or_default()
        })
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap();
    let (now, cache) = (Arc::new(AtomicI64::new(0)), Shared::default());
    let told = now.clone();
    let runtime = Runtime::builder(Memory::default())
        .clock(Clock::new(move || Timestamp(told.load(Ordering::SeqCst))))
        .cache(cache.clone())
        .build();
    let mut threads = 0;
    let mut run = async |key: &str| {
        threads += 1;
        let thread = runtime.thread(&graph, format!("t{threads}")).unwrap();
        let input = LogUpdate::default().last(key.to_owned());
        thread.start(input).await.unwrap();
        calls.get()
    };
    assert_eq!(run("a").await, 1, "fails, and that is not kept");
    assert_eq!(run("a").await, 2, "runs");
    assert_eq!(run("a").await, 2, "kept");
    assert_eq!(run("b").await, 3, "another key");
    now.store(59_999, Ordering::SeqCst);
    assert_eq!(run("a").await, 3, "still kept");
    now.store(60_000, Ordering::SeqCst);
    assert_eq!(run("a").await, 4, "expired");
    assert_eq!(run("a").await, 4, "kept again");
    cache.clear("cached/node/").await.unwrap();
    assert_eq!(run("a").await, 5, "cleared");
}

#[tokio::test]
async fn the_cached_results_of_a_tenant_can_be_deleted() {
    let calls = Count::default();
    let counted = calls.clone();
    let graph = Graph::builder("cached")
        .node("node", move |_: View<Log>, _: NodeCx| {
            counted.up();
            async { Ok::<_, NodeError>(LogUpdate::default()) }
        })
        // A key of the node's own that looks like one of another tenant.
        .cache("node", None, |_: &Log| "x/v0@acme/".to_owned())
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap();
    let cache = Shared::default();
    let runtime = Runtime::builder(Memory::default())
        .cache(cache.clone())
        .build();
    let run = async |thread: &str| {
        let thread = runtime.thread(&graph, thread).unwrap();
        thread.start(LogUpdate::default()).await.unwrap();
        calls.get()
    };
    for (thread, wanted) in [("1", 1), ("acme/1", 2), ("globex/1", 3), ("acme/2", 3)] {
        assert_eq!(run(thread).await, wanted, "{thread}");
    }
    assert_eq!(cache.clear_tenant("acme").await.unwrap(), 1);
    assert_eq!(run("3").await, 3, "another tenant's");
    assert_eq!(run("globex/3").await, 3, "another tenant's");
    assert_eq!(run("acme/3").await, 4, "deleted");
}

#[tokio::test]
async fn a_cached_choice_of_where_to_go_is_followed() {
    let calls = Count::default();
    let counted = calls.clone();
    let graph = Graph::builder("cached")
        .node("choose", move |_: View<Log>, _: NodeCx| {
            counted.up();
            async { Ok::<_, NodeError>(Command::<Log>::to("b")) }
        })
        .cache("choose", None, |_: &Log| String::new())
        .node("a", crate::kit::says("a"))
        .node("b", crate::kit::says("b"))
        .edge(START, "choose")
        .commands("choose", &["a", "b"])
        .edge("a", END)
        .edge("b", END)
        .build()
        .unwrap();
    let runtime = memory();
    for name in ["one", "two"] {
        let thread = runtime.thread(&graph, name).unwrap();
        let done = thread.start(LogUpdate::default()).await.unwrap();
        assert_eq!(done.state.ran, ["b"]);
        assert_eq!(done.seq, Seq(3));
    }
    assert_eq!(calls.get(), 1);
}

#[test]
fn numbers_are_the_same_after_any_number_of_round_trips() {
    let mut bits: u64 = 0x9E37_79B9_7F4A_7C15;
    for _ in 0..20_000 {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        let number = f64::from_bits(bits);
        if number.is_finite() {
            let read: f64 = Value::encode(&number).unwrap().decode().unwrap();
            assert_eq!(read.to_bits(), number.to_bits(), "{number:e}");
        }
    }
}

#[derive(Clone, Debug, Default, State)]
struct Sum {
    #[state(reduce = std::ops::Add::add)]
    total: f64,
}

#[tokio::test]
async fn a_fold_that_cannot_be_stored_is_refused_and_nothing_is_written() {
    let graph = Graph::builder("sum")
        .node("add", async |_: View<Sum>, _: NodeCx| {
            Ok::<_, NodeError>(SumUpdate::default().total(f64::MAX))
        })
        .edge(START, "add")
        .edge("add", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let stopped = thread
        .start(SumUpdate::default().total(f64::MAX))
        .await
        .unwrap();
    let Outcome::Failed(failures) = &stopped.outcome else {
        panic!("{:?}", stopped.outcome)
    };
    assert_eq!(failures[0].kind.code(), "node-invalid-update");
    assert!(
        failures[0].message.contains("the reducer of `total`"),
        "{}",
        failures[0].message
    );
    assert!(stopped.state.total.is_finite());
    let refused = thread
        .start(SumUpdate::default().total(f64::MAX))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), "open-bad-input");
    assert!(
        thread
            .state()
            .await
            .unwrap()
            .unwrap()
            .values
            .decode::<Sum>()
            .unwrap()
            .total
            .is_finite()
    );
}
