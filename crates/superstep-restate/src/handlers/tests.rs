//! What a worker refuses; each check is shown to fail when its refusal is broken.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use superstep::checkpoint::{BoxFuture, CheckpointResult, Memory};
use superstep::driver::{QueuedRequest, RequestQueue, RequestRow, ThreadRequest};
use superstep::prelude::*;
use superstep::{Clock, RunId, RunOptions, Runtime, SegmentLimits, ThreadId, Timestamp};
use tokio::task::JoinSet;

use super::{Due, DueRef, HandlerState};
use crate::worker::{Worker, WorkerError};

/// A fault injected into a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// Finds a request that was cached for another thread.
    CachesByIdAlone,
    /// Answers an interrupt before its deadline.
    ExpiresEarly,
    /// Decides about deadlines by its own clock.
    TrustsItsOwnClock,
    /// Runs with a wrong clock.
    IgnoresSkew,
    /// Ignores the identity key.
    TakesUnsignedCalls,
    /// Serves on every address without a key.
    ServesAnywhere,
}

impl HandlerState {
    pub(crate) fn broken(mut self, mutant: Option<Mutant>) -> Self {
        self.mutant = mutant;
        self
    }
}

const HOUR_MS: i64 = 3_600_000;
const ASKED_AT: i64 = 1_700_000_000_000;

/// A queue whose database has its own clock.
#[derive(Clone, Default)]
struct Kept {
    requests: Arc<Mutex<HashMap<RunId, (Timestamp, RequestRow)>>>,
    now: Arc<AtomicI64>,
}

impl RequestQueue for Kept {
    fn put<'a>(
        &'a self,
        id: RunId,
        thread: &'a ThreadId,
        request: &'a [u8],
        due: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Vec<u8>>> {
        Box::pin(async move {
            let mut requests = self.requests.lock().unwrap();
            let new = || RequestRow {
                thread: thread.clone(),
                request: request.to_vec(),
                reply: None,
            };
            let (_, kept) = requests.entry(id).or_insert_with(|| (due, new()));
            Ok(kept.request.clone())
        })
    }

    fn get(&self, id: RunId) -> BoxFuture<'_, CheckpointResult<Option<RequestRow>>> {
        Box::pin(async move {
            let requests = self.requests.lock().unwrap();
            Ok(requests.get(&id).map(|(_, row)| row.clone()))
        })
    }

    fn reply<'a>(&'a self, _: RunId, _: &'a [u8]) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async { Ok(()) })
    }

    fn sweep(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move {
            let mut requests = self.requests.lock().unwrap();
            let old = requests.iter().filter(|(_, (due, _))| *due < before);
            let old: Vec<RunId> = old.map(|(id, _)| *id).take(limit as usize).collect();
            requests.retain(|id, _| !old.contains(id));
            Ok(old.len() as u64)
        })
    }

    fn erase_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move {
            let mut requests = self.requests.lock().unwrap();
            let before = requests.len();
            requests.retain(|_, (_, row)| row.thread.tenant() != tenant);
            Ok((before - requests.len()) as u64)
        })
    }

    fn now(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        Box::pin(async { Ok(Some(Timestamp(self.now.load(Ordering::SeqCst)))) })
    }
}

#[derive(Clone, Debug, Default, PartialEq, State)]
struct Notes {
    text: String,
}

/// A graph that interrupts, with a default answer after half an hour.
fn graph() -> Graph<Notes> {
    Graph::builder("deadline")
        .node("ask", async |_: View<Notes>, cx: NodeCx| {
            let question = Interrupt::new("ok", "Shall I?")
                .within(Duration::from_secs(1_800))
                .or_answer("no");
            let text: String = cx.interrupt(question).await?;
            Ok::<_, NodeError>(NotesUpdate::default().text(text))
        })
        .edge(START, "ask")
        .edge("ask", END)
        .build()
        .unwrap()
}

/// A worker with a clock that the test sets, and a database with another one.
struct Bench {
    desk: HandlerState,
    kept: Kept,
    worker_clock: Arc<AtomicI64>,
}

impl Bench {
    fn new(mutant: Option<Mutant>) -> Self {
        let worker_clock = Arc::new(AtomicI64::new(ASKED_AT));
        let told = worker_clock.clone();
        let clock = Clock::new(move || Timestamp(told.load(Ordering::SeqCst)));
        let kept = Kept::default();
        kept.now.store(ASKED_AT, Ordering::SeqCst);
        let runtime = Runtime::builder(Memory::new()).clock(clock).build();
        let desk = HandlerState::new(runtime, Arc::new(kept.clone()), SegmentLimits::default());
        Self {
            desk: desk.broken(mutant),
            kept,
            worker_clock,
        }
    }

    fn set(&self, database: i64, worker: i64) {
        self.kept.now.store(database, Ordering::SeqCst);
        self.worker_clock.store(worker, Ordering::SeqCst);
    }

    async fn give(&self, thread: &ThreadId) -> RunId {
        let request =
            QueuedRequest::new("deadline", ThreadRequest::Resume, &RunOptions::default()).unwrap();
        let id = RunId::from_bytes([7; 16]);
        let bytes = request.to_bytes(thread);
        self.kept
            .put(id, thread, &bytes, Timestamp(ASKED_AT))
            .await
            .unwrap();
        id
    }

    /// Starts a thread that interrupts at `ASKED_AT`, and returns what its timer carries.
    async fn ask(&self) -> (ThreadId, DueRef) {
        let thread = self.desk.runtime.thread(&graph(), "acme/asks").unwrap();
        let stopped = thread.start(NotesUpdate::default()).await.unwrap();
        let Outcome::Paused(asked) = stopped.outcome else {
            panic!("{:?}", stopped.outcome)
        };
        let id: ThreadId = "acme/asks".parse().unwrap();
        let due = DueRef {
            order: self.give(&id).await,
            question: asked[0].id,
            put_back: 0,
        };
        (id, due)
    }
}

async fn refuses_a_foreign_thread(mutant: Option<Mutant>) -> bool {
    let bench = Bench::new(mutant);
    let (ours, theirs) = (
        "acme/ours".parse().unwrap(),
        "mallory/stolen".parse().unwrap(),
    );
    let id = bench.give(&ours).await;
    let cold = bench.desk.request(&theirs, id).await.is_err();
    assert!(bench.desk.request(&ours, id).await.is_ok());
    cold && bench.desk.request(&theirs, id).await.is_err()
}

async fn puts_an_early_expiry_back(mutant: Option<Mutant>) -> bool {
    let bench = Bench::new(mutant);
    let (thread, due) = bench.ask().await;
    let found = bench.desk.answer_at_deadline(&thread, &due).await.unwrap();
    found == Due::Early(1_800_000) && bench.kept.requests.lock().unwrap().len() == 1
}

async fn decides_by_the_clock_of_the_database(mutant: Option<Mutant>) -> bool {
    let bench = Bench::new(mutant);
    let (thread, due) = bench.ask().await;
    let mut is_right = true;
    // An hour ahead the deadline seems to have passed; an hour behind it seems far away.
    for skew in [HOUR_MS, -HOUR_MS] {
        bench.set(ASKED_AT + 60_000, ASKED_AT + 60_000 + skew);
        let found = bench.desk.answer_at_deadline(&thread, &due).await.unwrap();
        is_right &= found == Due::Early(1_740_000);
    }
    let late = ASKED_AT + 1_800_000 + 5_000;
    bench.set(late, late - HOUR_MS);
    let found = bench.desk.answer_at_deadline(&thread, &due).await.unwrap();
    let Due::Answer(id) = found else { return false };
    let request = bench.desk.request(&thread, id).await.unwrap();
    let ThreadRequest::Answer(answers) = &request.request else {
        return false;
    };
    is_right && answers[0].at == Timestamp(late)
}

async fn refuses_to_work_with_a_wrong_clock(mutant: Option<Mutant>) -> bool {
    let bench = Bench::new(mutant);
    let mut is_right = bench.desk.check_clock().await.is_ok();
    for skew in [HOUR_MS, -HOUR_MS] {
        bench.set(ASKED_AT, ASKED_AT + skew);
        is_right &= bench.desk.check_clock().await.is_err() && bench.desk.refuse_unfit().is_err();
        let runtime = bench.desk.runtime.clone();
        let worker = Worker::new(runtime, bench.kept.clone()).mutant(mutant);
        let listener = Worker::listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let served = worker.serve(listener, std::future::ready(())).await;
        is_right &= matches!(served, Err(WorkerError::ClockSkew { by_ms }) if by_ms == skew);
    }
    bench.set(ASKED_AT, ASKED_AT + 50);
    is_right && bench.desk.check_clock().await.is_ok() && bench.desk.refuse_unfit().is_ok()
}

async fn refuses_unsigned_calls(mutant: Option<Mutant>) -> bool {
    let bench = Bench::new(None);
    let worker = Worker::new(bench.desk.runtime.clone(), bench.kept.clone());
    // A public key without an owner: 32 bytes of 1.
    let key = "publickeyv1_4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi";
    let worker = worker.identity_key(key).mutant(mutant);
    let listener = Worker::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let mut serving = JoinSet::new();
    serving.spawn(async move { worker.serve(listener, std::future::pending()).await });
    let client = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    let request = hyper::Request::get(format!("http://{address}/discover"))
        .header("accept", "application/vnd.restate.endpointmanifest.v3+json")
        .body(Full::new(Bytes::new()))
        .unwrap();
    let response = client.request(request).await.unwrap();
    response.status() == 401
}

async fn refuses_a_public_address_without_a_key(mutant: Option<Mutant>) -> bool {
    let bench = Bench::new(None);
    let serve = async |change: fn(Worker) -> Worker| {
        let worker = Worker::new(bench.desk.runtime.clone(), bench.kept.clone());
        let listener = Worker::listen("0.0.0.0:0".parse().unwrap()).unwrap();
        let worker = change(worker).mutant(mutant);
        worker.serve(listener, std::future::ready(())).await
    };
    let refused = serve(|worker| worker).await;
    matches!(refused, Err(WorkerError::NoIdentityKey { .. }))
        && serve(Worker::take_unsigned_calls).await.is_ok()
}

/// Returns the names of the refusals that do not hold.
async fn broken(mutant: Option<Mutant>) -> BTreeSet<&'static str> {
    let mut broken = BTreeSet::new();
    for (name, holds) in [
        ("foreign thread", refuses_a_foreign_thread(mutant).await),
        ("early expiry", puts_an_early_expiry_back(mutant).await),
        (
            "clock of the database",
            decides_by_the_clock_of_the_database(mutant).await,
        ),
        (
            "wrong clock",
            refuses_to_work_with_a_wrong_clock(mutant).await,
        ),
        ("unsigned call", refuses_unsigned_calls(mutant).await),
        (
            "public address",
            refuses_a_public_address_without_a_key(mutant).await,
        ),
    ] {
        if !holds {
            broken.insert(name);
        }
    }
    broken
}

#[tokio::test]
async fn everything_that_is_to_be_refused_is_refused() {
    assert_eq!(broken(None).await, BTreeSet::new());
}

#[tokio::test]
async fn every_broken_refusal_is_noticed_by_name() {
    for (mutant, name) in [
        (Mutant::CachesByIdAlone, "foreign thread"),
        (Mutant::ExpiresEarly, "early expiry"),
        (Mutant::TrustsItsOwnClock, "clock of the database"),
        (Mutant::IgnoresSkew, "wrong clock"),
        (Mutant::TakesUnsignedCalls, "unsigned call"),
        (Mutant::ServesAnywhere, "public address"),
    ] {
        let broken = broken(Some(mutant)).await;
        assert!(broken.contains(name), "{mutant:?} got past: {broken:?}");
    }
}

#[tokio::test]
async fn an_interrupt_outlives_the_request_that_raised_it() {
    let bench = Bench::new(None);
    let (thread, due) = bench.ask().await;
    let kept = Duration::from_millis(HOUR_MS as u64);
    let requests = || bench.kept.requests.lock().unwrap().len();

    bench.set(ASKED_AT + HOUR_MS, ASKED_AT);
    bench.desk.sweep(kept).await.unwrap();
    assert_eq!(requests(), 1, "swept too early");
    bench.set(ASKED_AT + HOUR_MS + 1, ASKED_AT);
    bench.desk.sweep(kept).await.unwrap();
    assert_eq!(requests(), 0, "not swept");

    let found = bench.desk.answer_at_deadline(&thread, &due).await.unwrap();
    let Due::Answer(id) = found else {
        panic!("{found:?}")
    };
    let request = bench.desk.request(&thread, id).await.unwrap();
    assert_eq!(request.graph, "deadline");
    assert!(matches!(&request.request, ThreadRequest::Answer(answers) if answers.len() == 1));
    let lost = bench.desk.request(&thread, due.order).await;
    assert!(lost.is_err(), "{lost:?}");
}

#[tokio::test]
async fn more_requests_are_swept_than_one_statement_deletes() {
    let bench = Bench::new(None);
    let thread = "acme/many".parse().unwrap();
    for n in 0..2_500_u128 {
        let id = RunId::from_bytes(n.to_be_bytes());
        let put = bench.kept.put(id, &thread, b"request", Timestamp(ASKED_AT));
        put.await.unwrap();
    }
    bench.set(ASKED_AT + HOUR_MS, ASKED_AT);
    bench.desk.sweep(Duration::from_secs(60)).await.unwrap();
    assert_eq!(bench.kept.requests.lock().unwrap().len(), 0);
}
