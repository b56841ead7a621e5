//! The load: what a program does that gives orders, alike for every side.
//!
//! It keeps the order in the side's inbox and calls the side's handler under the order's id, as our client does; with
//! keep-alive, and without looking at what the thread has become.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value as Json, json};
use superstep::__private::lock;
use superstep::driver::{QueuedRequest, RequestQueue};
use superstep::{RunId, ThreadId, Timestamp};
use superstep_postgres::Postgres;
use tokio::task::JoinSet;

/// A Restate, as those see it who call it.
#[derive(Debug, Clone)]
pub(super) struct Http {
    pub(super) ingress: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// Whom to call, and how.
#[derive(Clone)]
pub(super) struct Way {
    /// Where its orders are kept; none if it needs none.
    pub(super) inbox: Option<Postgres>,
    pub(super) service: &'static str,
    pub(super) handler: &'static str,
}

/// An order to a thread.
#[derive(Clone)]
pub(super) struct Errand {
    pub(super) thread: ThreadId,
    pub(super) order: Arc<QueuedRequest>,
}

/// What is to be done, until when.
pub(super) enum Work {
    /// New threads, for this long.
    For(Duration, Arc<QueuedRequest>),
    /// These, each once.
    Each(VecDeque<Errand>),
}

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) wall: Duration,
    pub(super) times: Vec<Duration>,
}

impl Http {
    pub(super) fn new(ingress: &str) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self {
            ingress: ingress.to_owned(),
            client: Client::builder(TokioExecutor::new()).build(connector),
        }
    }

    /// So many clients at once, each giving one order after the other.
    pub(super) async fn load(&self, way: &Way, clients: usize, work: Work) -> anyhow::Result<Done> {
        let (work, begun) = (Arc::new(Mutex::new(work)), Instant::now());
        let mut working = JoinSet::new();
        for _ in 0..clients {
            let (http, way, work) = (self.clone(), way.clone(), work.clone());
            working.spawn(async move {
                let mut times = Vec::new();
                while let Some(errand) = next(&work, begun) {
                    let asked = Instant::now();
                    http.give(&way, &errand, new_id()).await?;
                    times.push(asked.elapsed());
                }
                anyhow::Ok(times)
            });
        }
        let mut times = Vec::new();
        while let Some(client) = working.join_next().await {
            times.extend(client??);
        }
        Ok(Done {
            wall: begun.elapsed(),
            times,
        })
    }

    /// Gives one order, and waits until it is carried out.
    pub(super) async fn give(&self, way: &Way, errand: &Errand, id: RunId) -> anyhow::Result<()> {
        if let Some(inbox) = &way.inbox {
            let bytes = errand.order.to_bytes(&errand.thread);
            inbox.put(id, &errand.thread, &bytes, now()).await?;
        }
        let url = format!(
            "{}/{}/{}/{}",
            self.ingress, way.service, errand.thread, way.handler
        );
        let reply = self.post(&url, &id.to_string(), &json!(id)).await?;
        ensure!(!reply["Done"].is_null(), "{url} said {reply}");
        Ok(())
    }

    pub(super) async fn post(&self, url: &str, key: &str, body: &Json) -> anyhow::Result<Json> {
        let mut request = hyper::Request::post(url).header("content-type", "application/json");
        if !key.is_empty() {
            request = request.header("idempotency-key", key);
        }
        let request = request.body(Full::new(Bytes::from(body.to_string())))?;
        let response = self.client.request(request).await?;
        let status = response.status();
        let answer = response.into_body().collect().await?.to_bytes();
        ensure!(
            status.is_success(),
            "{url}: {status}: {}",
            String::from_utf8_lossy(&answer)
        );
        serde_json::from_slice(&answer).with_context(|| format!("{url} did not answer in JSON"))
    }
}

/// None when nothing is left to do.
fn next(work: &Mutex<Work>, begun: Instant) -> Option<Errand> {
    match &mut *lock(work) {
        Work::For(time, order) => (begun.elapsed() < *time).then(|| Errand {
            thread: new_thread(),
            order: order.clone(),
        }),
        Work::Each(errands) => errands.pop_front(),
    }
}

/// New threads for the same order.
pub(super) fn errands(order: &Arc<QueuedRequest>, count: usize) -> VecDeque<Errand> {
    let errand = |_| Errand {
        thread: new_thread(),
        order: order.clone(),
    };
    (0..count).map(errand).collect()
}

/// A thread that nobody had.
pub(super) fn new_thread() -> ThreadId {
    let name = format!("{:032x}", u128::from_be_bytes(new_id().to_bytes()));
    ThreadId::new(&name).expect("digits are a name")
}

/// An id that nobody had, in no order, as random ones are.
pub(super) fn new_id() -> RunId {
    static GIVEN: AtomicU64 = AtomicU64::new(1);
    let number = GIVEN.fetch_add(1, Ordering::Relaxed);
    let high = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let low = high ^ u64::from(std::process::id());
    RunId::from_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp(since.map_or(0, |since| since.as_millis() as i64))
}
