//! The handlers that Restate calls: threads as virtual objects, and tasks that one worker runs for another.
//!
//! # Why this is safe to replay
//!
//! A handler branches only on journaled values. Whatever a segment did before its worker died is in the store, and the
//! repeated segment finds it there (`superstep::segment`). Calls to tasks carry the epoch of the run: once another process
//! has claimed the thread, records under the old epoch are refused.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use superstep::__private::lock;
use superstep::checkpoint::{Answer, InterruptQuery, Page, ThreadQuery};
use superstep::driver::{QueuedRequest, RequestQueue, ThreadRequest};
use superstep::run::ResumeToken;
use superstep::{
    DriveError, InterruptId, RunId, RunReport, Runtime, SegmentEnd, SegmentLimits, Suspension,
    TaskId, ThreadId, Timestamp,
};
use tracing::Instrument;

use crate::refusal::{Refusal, chain};

#[cfg(test)]
pub(crate) mod tests;

/// State shared by all handlers of a worker.
pub(crate) struct HandlerState {
    pub(crate) runtime: Runtime,
    pub(crate) queue: Arc<dyn RequestQueue>,
    pub(crate) limits: SegmentLimits,
    pub(crate) counts: Counts,
    pub(crate) draining: AtomicBool,
    /// Whether this machine's clock was found to be wrong.
    pub(crate) skewed: AtomicBool,
    /// Cache of requests, because every segment and every task reads its request again. Keyed by thread and id: a request
    /// that was cached for one thread is not found for another one, even if a caller names its id.
    requests: Mutex<HashMap<(ThreadId, RunId), Arc<QueuedRequest>>>,
    /// Fault injected by a test.
    #[cfg(test)]
    mutant: Option<tests::Mutant>,
}

/// Counters of a worker, for its metrics.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) segments: AtomicU64,
    pub(crate) segments_failed: AtomicU64,
    pub(crate) tasks: AtomicU64,
    pub(crate) tasks_failed: AtomicU64,
    pub(crate) stopped: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) under_way: AtomicU64,
    /// How far this machine's clock is ahead of the database's, in milliseconds.
    pub(crate) skew_ms: AtomicI64,
}

/// Result of a request, as far as the journal needs it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The request was executed.
    Done(RunReport),
    /// The request was refused; the reason is in the queue.
    Refused,
}

/// Result of a segment, as journaled.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum SegmentReport {
    Boundary(SegmentEnd),
    Refused,
}

/// A task to be run for another worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TaskRef {
    thread: String,
    order: RunId,
    carried: ResumeToken,
    task: TaskId,
}

/// An interrupt whose deadline approaches.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DueRef {
    /// Request after which the interrupt was open.
    order: RunId,
    question: InterruptId,
    /// How often the timer was set again because the deadline had not passed yet.
    #[serde(default)]
    put_back: u32,
}

/// What to do when the timer of an interrupt fires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Due {
    /// The interrupt is answered, closed, or has no deadline.
    Nothing,
    /// Execute this request, which answers the interrupt.
    Answer(RunId),
    /// The deadline is this many milliseconds away.
    Early(u64),
}

/// The worker's clock is wrong, so it runs nothing: times that it stored would be wrong too.
#[derive(Debug, thiserror::Error)]
#[error(
    "the clock of this worker is {} s off the clock of its database; set the clock (is NTP running?)",
    by_ms / 1_000
)]
pub(crate) struct ClockSkew {
    /// How many milliseconds the clock is ahead; negative if it is behind.
    pub(crate) by_ms: i64,
}

/// The virtual object of a thread.
pub(crate) struct Thread(pub(crate) Arc<HandlerState>);

#[object(
    name = "SuperstepThread",
    client_visibility = "pub(crate)",
    inactivity_timeout = "15m",
    abort_timeout = "30m"
)]
impl Thread {
    /// Executes a request that runs the thread.
    #[handler]
    async fn run(
        &self,
        ctx: ObjectContext<'_>,
        Json(id): Json<RunId>,
    ) -> HandlerResult<Json<Reply>> {
        self.execute(&ctx, id).await
    }

    /// Executes a request that changes the thread without running it.
    #[handler]
    async fn change(
        &self,
        ctx: ObjectContext<'_>,
        Json(id): Json<RunId>,
    ) -> HandlerResult<Json<Reply>> {
        let (desk, thread) = (&self.0, thread_of(ctx.key())?);
        // Journaled first, so a retried change can tell that it was already made.
        let Json(epoch) = ctx
            .run(|| async { Ok(Json(desk.runtime.local().epoch_of(&thread).await?)) })
            .name("look")
            .await?;
        let Json(reply) = ctx
            .run(|| async {
                let request = desk.request(&thread, id).await?;
                let changed = desk
                    .runtime
                    .local()
                    .change(&thread, id, &request, epoch)
                    .await;
                match desk.refusal(id, changed).await? {
                    Some(report) => Ok(Json(Reply::Done(report))),
                    None => Ok(Json(Reply::Refused)),
                }
            })
            .name("change")
            .await?;
        Ok(Json(reply))
    }

    /// Answers a question whose time has passed as it says itself, unless somebody was quicker.
    #[handler]
    async fn expire(
        &self,
        ctx: ObjectContext<'_>,
        Json(due): Json<DueRef>,
    ) -> HandlerResult<Json<Option<Reply>>> {
        let (desk, thread) = (&self.0, thread_of(ctx.key())?);
        let Json(found) = ctx
            .run(|| async { Ok(Json(desk.answer_at_deadline(&thread, &due).await?)) })
            .name("expire")
            .await?;
        match found {
            Due::Answer(id) => Ok(Json(Some(self.execute(&ctx, id).await?.into_inner()))),
            Due::Nothing => Ok(Json(None)),
            Due::Early(wait) => {
                let again = DueRef {
                    put_back: due.put_back.saturating_add(1),
                    ..due
                };
                self.wake_at_deadline(&ctx, again, wait);
                Ok(Json(None))
            }
        }
    }
}

impl Thread {
    async fn execute(&self, ctx: &ObjectContext<'_>, id: RunId) -> HandlerResult<Json<Reply>> {
        let (desk, thread) = (&self.0, thread_of(ctx.key())?);
        let mut carried = None;
        loop {
            let Json(told) = ctx
                .run(|| desk.segment(&thread, id, carried.clone()))
                .name("segment")
                .await?;
            carried = Some(match told {
                SegmentReport::Refused => return Ok(Json(Reply::Refused)),
                SegmentReport::Boundary(SegmentEnd::Stopped(report)) => {
                    self.watch_deadlines(ctx, id, &report).await?;
                    return Ok(Json(Reply::Done(report)));
                }
                SegmentReport::Boundary(SegmentEnd::Suspended(Suspension::Continue(token))) => {
                    token
                }
                SegmentReport::Boundary(SegmentEnd::Suspended(Suspension::Sleep {
                    until,
                    token,
                })) => {
                    self.sleep(ctx, &thread, until).await?;
                    token
                }
                SegmentReport::Boundary(SegmentEnd::Suspended(Suspension::Dispatch {
                    tasks,
                    token,
                })) => {
                    let call = |task: &TaskId| {
                        let task = TaskRef {
                            thread: ctx.key().to_owned(),
                            order: id,
                            carried: token.clone(),
                            task: *task,
                        };
                        ctx.service_client::<NodeClient<'_>>()
                            .run(Json(task))
                            .call()
                    };
                    let mut calls: DurableFuturesUnordered<_> = tasks.iter().map(call).collect();
                    while let Some((_, ended)) = calls.next().await? {
                        ended?;
                    }
                    token
                }
            });
        }
    }

    /// Sleeps in growing slices, and checks after each whether the run should be cancelled: a sleep cannot be interrupted.
    async fn sleep(
        &self,
        ctx: &ObjectContext<'_>,
        thread: &ThreadId,
        until: Timestamp,
    ) -> HandlerResult<()> {
        let desk = &self.0;
        let mut slice = FIRST_SLICE;
        loop {
            let Json(left) = ctx
                .run(|| async {
                    let left = u64::try_from(until.0 - now().0).unwrap_or(0);
                    match desk.runtime.local().is_wanted(thread).await? {
                        true => Ok(Json(left)),
                        false => Ok(Json(0)),
                    }
                })
                .name("look")
                .await?;
            if left == 0 {
                return Ok(());
            }
            ctx.sleep(slice.min(Duration::from_millis(left))).await?;
            slice = (slice * 2).min(LONGEST_SLICE);
        }
    }

    async fn watch_deadlines(
        &self,
        ctx: &ObjectContext<'_>,
        order: RunId,
        report: &RunReport,
    ) -> HandlerResult<()> {
        if report.due.is_empty() {
            return Ok(());
        }
        let desk = &self.0;
        let Json(now) = ctx
            .run(|| async { Ok(Json(desk.authority_now().await?)) })
            .name("clock")
            .await?;
        for (question, deadline) in &report.due {
            let due = DueRef {
                order,
                question: *question,
                put_back: 0,
            };
            self.wake_at_deadline(ctx, due, wait_ms(now, *deadline));
        }
        Ok(())
    }

    /// Schedules a check of an interrupt's deadline. The idempotency key makes a repeated call a single one.
    fn wake_at_deadline(&self, ctx: &ObjectContext<'_>, due: DueRef, wait_ms: u64) {
        let key = match due.put_back {
            0 => format!("due-{}-{}", due.order, due.question),
            n => format!("due-{}-{}-{n}", due.order, due.question),
        };
        ctx.object_client::<ThreadClient<'_>>(ctx.key())
            .expire(Json(due))
            .idempotency_key(key)
            .send_after(Duration::from_millis(wait_ms));
    }
}

/// The service that runs tasks for other workers.
pub(crate) struct Node(pub(crate) Arc<HandlerState>);

#[service(
    name = "SuperstepNode",
    client_visibility = "pub(crate)",
    inactivity_timeout = "15m",
    abort_timeout = "30m",
    ingress_private = true
)]
impl Node {
    /// Runs a task. What became of it is in the store.
    #[handler]
    async fn run(&self, _ctx: Context<'_>, Json(task): Json<TaskRef>) -> HandlerResult<()> {
        self.0.run_task(&task).await
    }
}

impl HandlerState {
    pub(crate) fn new(
        runtime: Runtime,
        queue: Arc<dyn RequestQueue>,
        limits: SegmentLimits,
    ) -> Self {
        Self {
            runtime,
            queue,
            limits,
            counts: Counts::default(),
            draining: AtomicBool::new(false),
            skewed: AtomicBool::new(false),
            requests: Mutex::default(),
            #[cfg(test)]
            mutant: None,
        }
    }

    async fn segment(
        &self,
        thread: &ThreadId,
        id: RunId,
        carried: Option<ResumeToken>,
    ) -> HandlerResult<Json<SegmentReport>> {
        self.refuse_unfit()?;
        let _under_way = self.counts.enter();
        let request = self.request(thread, id).await?;
        let span = tracing::info_span!("segment", %thread, run = %id);
        let driven = self
            .runtime
            .local()
            .segment(thread, id, &request, carried, &self.limits)
            .instrument(span)
            .await;
        self.counts.segments.fetch_add(1, Ordering::Relaxed);
        match self.refusal(id, driven).await {
            Ok(Some(boundary)) => {
                if matches!(boundary, SegmentEnd::Stopped(_)) {
                    self.counts.stopped.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Json(SegmentReport::Boundary(boundary)))
            }
            Ok(None) => Ok(Json(SegmentReport::Refused)),
            Err(error) => {
                self.counts.segments_failed.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%thread, run = %id, error = chain(&error), "a segment is tried again");
                Err(error.into())
            }
        }
    }

    async fn run_task(&self, task: &TaskRef) -> HandlerResult<()> {
        self.refuse_unfit()?;
        let _under_way = self.counts.enter();
        let thread = thread_of(&task.thread)?;
        let request = self.request(&thread, task.order).await?;
        let span = tracing::info_span!("task", %thread, run = %task.order, task = %task.task);
        self.counts.tasks.fetch_add(1, Ordering::Relaxed);
        let (id, carried) = (task.order, &task.carried);
        let ran = self
            .runtime
            .local()
            .run_task(&thread, id, &request, carried, task.task, &self.limits)
            .instrument(span)
            .await;
        ran.map_err(|error| {
            self.counts.tasks_failed.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%thread, task = %task.task, error = chain(&error), "a task is tried again");
            error.into()
        })
    }

    /// Refuses work if the worker is draining or its clock is wrong: Restate then retries on another worker.
    fn refuse_unfit(&self) -> HandlerResult<()> {
        if self.draining.load(Ordering::SeqCst) {
            return Err(DriveError::Draining.into());
        }
        if self.skewed.load(Ordering::SeqCst) {
            return Err(ClockSkew {
                by_ms: self.counts.skew_ms.load(Ordering::SeqCst),
            }
            .into());
        }
        Ok(())
    }

    /// Returns the time that decides about deadlines.
    ///
    /// It is the database's: a worker's clock may be wrong and differs from machine to machine, while a deadline is stored
    /// next to this clock and outlives them all. Restate's timers only trigger the check: they run on the clocks of its
    /// nodes, and any client that reaches the ingress can make the same call without a timer. If the store has no clock, this
    /// process's clock decides.
    async fn authority_now(&self) -> Result<Timestamp, DriveError> {
        #[cfg(test)]
        if self.mutant == Some(tests::Mutant::TrustsItsOwnClock) {
            return Ok(self.runtime.now());
        }
        Ok(self.queue.now().await?.unwrap_or(self.runtime.now()))
    }

    /// Compares this machine's clock with the database's, and remembers the result.
    pub(crate) async fn check_clock(&self) -> Result<(), CheckClockError> {
        let (before, theirs, after) = (
            self.runtime.now().0,
            self.authority_now().await?.0,
            self.runtime.now().0,
        );
        // The database read its clock at some moment in between; a slow answer is not a wrong clock.
        let by_ms = match theirs {
            theirs if theirs < before => before - theirs,
            theirs if theirs > after => after - theirs,
            _ => 0,
        };
        let is_skewed = by_ms.abs() > SKEW_MAX_MS;
        #[cfg(test)]
        let is_skewed = is_skewed && self.mutant != Some(tests::Mutant::IgnoresSkew);
        self.counts.skew_ms.store(by_ms, Ordering::SeqCst);
        self.skewed.store(is_skewed, Ordering::SeqCst);
        match is_skewed {
            true => Err(CheckClockError::Skew(ClockSkew { by_ms })),
            false => Ok(()),
        }
    }

    /// Returns the result, or `None` if the request was refused, after storing the refusal.
    async fn refusal<T>(
        &self,
        id: RunId,
        done: Result<T, DriveError>,
    ) -> Result<Option<T>, DriveError> {
        match done {
            Ok(done) => Ok(Some(done)),
            Err(error) if error.is_refusal() => {
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
                let refusal =
                    serde_json::to_vec(&Refusal::of(&error)).expect("text always encodes");
                self.queue.reply(id, &refusal).await?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns a request made to this thread.
    async fn request(&self, thread: &ThreadId, id: RunId) -> HandlerResult<Arc<QueuedRequest>> {
        let Some(request) = self.find_request(thread, id).await? else {
            let why = format!("request `{id}` is no longer in the queue; make it again");
            return Err(TerminalError::new_with_code(410, why).into());
        };
        Ok(request)
    }

    /// Returns a request made to this thread, unless it was swept. The only way to get a request, cached or not.
    async fn find_request(
        &self,
        thread: &ThreadId,
        id: RunId,
    ) -> HandlerResult<Option<Arc<QueuedRequest>>> {
        if let Some(request) = self.cached_request(thread, id) {
            return Ok(Some(request));
        }
        let Some(kept) = self.queue.get(id).await? else {
            return Ok(None);
        };
        if kept.thread != *thread {
            let why = format!("request `{id}` is for another thread");
            return Err(TerminalError::new_with_code(400, why).into());
        }
        let request = QueuedRequest::from_bytes(&kept.request, thread)
            .map_err(|error| TerminalError::new_with_code(400, chain(&error)))?;
        let request = Arc::new(request);
        let mut requests = lock(&self.requests);
        if requests.len() >= ORDERS_MAX {
            requests.clear();
        }
        requests.insert((thread.clone(), id), request.clone());
        Ok(Some(request))
    }

    /// Returns the name of a thread's graph; `None` if the thread was deleted.
    async fn graph_of(&self, thread: &ThreadId) -> Result<Option<String>, DriveError> {
        let query = ThreadQuery {
            tenant: thread.tenant().to_owned(),
            ids: Some(vec![thread.clone()]),
            ..ThreadQuery::default()
        };
        let rows = self.runtime.threads(&query).await?;
        Ok(rows.into_iter().next().map(|row| row.graph))
    }

    /// Deletes requests that were due longer ago than this, and results of cached nodes that have expired.
    pub(crate) async fn sweep(&self, requests_kept: Duration) -> Result<(), DriveError> {
        let now = self.authority_now().await?;
        let kept_ms = i64::try_from(requests_kept.as_millis()).unwrap_or(i64::MAX);
        let before = Timestamp(now.0.saturating_sub(kept_ms));
        let all = u64::from(SWEPT_AT_ONCE);
        while self.queue.sweep(before, SWEPT_AT_ONCE).await? >= all {}
        let (cache, now) = (self.runtime.cache(), self.runtime.now());
        while cache.sweep(now, SWEPT_AT_ONCE).await? >= all {}
        Ok(())
    }

    fn cached_request(&self, thread: &ThreadId, id: RunId) -> Option<Arc<QueuedRequest>> {
        let requests = lock(&self.requests);
        #[cfg(test)]
        if self.mutant == Some(tests::Mutant::CachesByIdAlone) {
            let mut of_any_thread = requests.iter().filter(|((_, cached), _)| *cached == id);
            return of_any_thread.next().map(|(_, request)| request.clone());
        }
        requests.get(&(thread.clone(), id)).cloned()
    }

    /// Queues the request that answers an interrupt at its deadline, unless it is already answered or the deadline has not
    /// passed.
    async fn answer_at_deadline(&self, thread: &ThreadId, due: &DueRef) -> HandlerResult<Due> {
        let query = InterruptQuery {
            tenant: thread.tenant().to_owned(),
            thread: Some(thread.clone()),
            threads: Vec::new(),
            open_only: true,
            due: None,
            page: Page {
                limit: QUESTIONS_MAX,
                offset: 0,
            },
        };
        let open = self.runtime.interrupts(&query).await?;
        let Some(open) = open.iter().find(|open| open.interrupt.id == due.question) else {
            return Ok(Due::Nothing);
        };
        let Some(body) = open.interrupt.answer_at_deadline() else {
            return Ok(Due::Nothing);
        };
        let Some(deadline) = open.interrupt.deadline else {
            return Ok(Due::Nothing);
        };
        let now = self.authority_now().await?;
        let early = wait_ms(now, deadline);
        #[cfg(test)]
        let early = match self.mutant {
            Some(tests::Mutant::ExpiresEarly) => 0,
            _ => early,
        };
        if early > 0 {
            return Ok(Due::Early(early));
        }
        let answer = Answer {
            interrupt: due.question,
            body,
            by: "deadline".to_owned(),
            // A retry computes another time. The queue keeps the first request under this id, and so the first time.
            at: now,
        };
        let (graph, options) = match self.find_request(thread, due.order).await? {
            Some(of) => (of.graph.clone(), of.options(due.order)?),
            // Swept, because the interrupt was open for longer than requests are kept. The thread knows its graph.
            None => match self.graph_of(thread).await? {
                Some(graph) => (graph, self.runtime.run_options().clone()),
                None => return Ok(Due::Nothing),
            },
        };
        let request = QueuedRequest::new(&graph, ThreadRequest::Answer(vec![answer]), &options)?;
        let id = derived(&[&due.order.to_bytes(), &due.question.to_bytes()]);
        self.queue
            .put(id, thread, &request.to_bytes(thread), now)
            .await?;
        Ok(Due::Answer(id))
    }
}

/// Why a worker's clock is not trusted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckClockError {
    #[error(transparent)]
    Skew(ClockSkew),
    #[error(transparent)]
    Unknown(#[from] DriveError),
}

impl Counts {
    fn enter(&self) -> UnderWay<'_> {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        UnderWay(&self.under_way)
    }
}

struct UnderWay<'a>(&'a AtomicU64);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns an id that depends only on these parts.
pub(crate) fn derived(parts: &[&[u8]]) -> RunId {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    RunId::from_bytes(hasher.digest128().to_be_bytes())
}

fn thread_of(key: &str) -> HandlerResult<ThreadId> {
    key.parse().map_err(|error| {
        TerminalError::new_with_code(400, format!("`{key}` is not a thread: {error}")).into()
    })
}

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Returns the milliseconds from `now` until then; 0 if it has passed.
pub(crate) fn wait_ms(now: Timestamp, until: Timestamp) -> u64 {
    u64::try_from(until.0.saturating_sub(now.0)).unwrap_or(0)
}

/// Number of requests, and of results, that are deleted in one statement.
const SWEPT_AT_ONCE: u32 = 1_000;
/// Maximum number of cached requests.
const ORDERS_MAX: usize = 4_096;
/// Maximum clock skew. Clocks that NTP keeps are within a few milliseconds; this leaves room for one that is being slewed.
const SKEW_MAX_MS: i64 = 10_000;
/// Maximum number of open interrupts of a thread that are searched.
const QUESTIONS_MAX: u32 = 10_000;
const FIRST_SLICE: Duration = Duration::from_secs(2);
const LONGEST_SLICE: Duration = Duration::from_secs(60);
