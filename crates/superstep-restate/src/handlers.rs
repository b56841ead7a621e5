//! What Restate calls: threads as virtual objects, and tasks that one worker runs for another.
//!
//! # Why this is safe to replay
//!
//! A handler's branches follow from what is journaled and from nothing else. Whatever a segment did before its worker
//! died is in the store, and the segment that is run again finds it there (`superstep::segment`). Calls to tasks carry the
//! epoch of the run: when somebody else has taken the thread up, what they record is refused.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use superstep::checkpoint::format::OnDeadline;
use superstep::checkpoint::{Answer, AnswerBody, InterruptQuery, Page};
use superstep::driver::{Inbox, Order, Ordered};
use superstep::run::ResumeToken;
use superstep::{
    DriveError, InterruptId, RunId, RunReport, Runtime, SegmentEnd, SegmentLimits, Suspension,
    TaskId, ThreadId, Timestamp,
};
use tracing::Instrument;

use crate::refusal::{Refusal, chain};

/// What every handler of a worker works with.
pub(crate) struct Desk {
    pub(crate) runtime: Runtime,
    pub(crate) inbox: Arc<dyn Inbox>,
    pub(crate) limits: SegmentLimits,
    pub(crate) counts: Counts,
    pub(crate) draining: AtomicBool,
    /// Orders that were read, for they are read again by every segment and every task.
    orders: Mutex<HashMap<RunId, Arc<Order>>>,
}

/// What a worker has done, for those who watch it.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) segments: AtomicU64,
    pub(crate) segments_failed: AtomicU64,
    pub(crate) tasks: AtomicU64,
    pub(crate) tasks_failed: AtomicU64,
    pub(crate) stopped: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) under_way: AtomicU64,
}

/// What an order comes to, as far as the journal is to know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// It was carried out.
    Done(RunReport),
    /// It was refused; why is in the inbox.
    Refused,
}

/// What a segment comes to, as it is journaled.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Told {
    Boundary(SegmentEnd),
    Refused,
}

/// A task that is to be run for another worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TaskRef {
    thread: String,
    order: RunId,
    carried: ResumeToken,
    task: TaskId,
}

/// A question whose time passes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DueRef {
    /// The order after which it was open.
    order: RunId,
    question: InterruptId,
}

/// A thread.
pub(crate) struct Thread(pub(crate) Arc<Desk>);

#[object(
    name = "SuperstepThread",
    client_visibility = "pub(crate)",
    inactivity_timeout = "15m",
    abort_timeout = "30m"
)]
impl Thread {
    /// Carries out an order that runs the thread.
    #[handler]
    async fn run(
        &self,
        ctx: ObjectContext<'_>,
        Json(id): Json<RunId>,
    ) -> HandlerResult<Json<Reply>> {
        self.carry_out(&ctx, id).await
    }

    /// Carries out an order that changes the thread without running it.
    #[handler]
    async fn change(
        &self,
        ctx: ObjectContext<'_>,
        Json(id): Json<RunId>,
    ) -> HandlerResult<Json<Reply>> {
        let (desk, thread) = (&self.0, thread_of(ctx.key())?);
        // Journaled first: by it, a change that is tried again knows that it was made.
        let Json(epoch) = ctx
            .run(|| async { Ok(Json(desk.runtime.epoch_of(&thread).await?)) })
            .name("look")
            .await?;
        let Json(reply) = ctx
            .run(|| async {
                let order = desk.order(&thread, id).await?;
                let changed = desk.runtime.change(&thread, id, &order, epoch).await;
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
        let Json(answer) = ctx
            .run(|| async { Ok(Json(desk.answer_at_deadline(&thread, &due).await?)) })
            .name("expire")
            .await?;
        match answer {
            Some(id) => Ok(Json(Some(self.carry_out(&ctx, id).await?.into_inner()))),
            None => Ok(Json(None)),
        }
    }
}

impl Thread {
    async fn carry_out(&self, ctx: &ObjectContext<'_>, id: RunId) -> HandlerResult<Json<Reply>> {
        let (desk, thread) = (&self.0, thread_of(ctx.key())?);
        let mut carried = None;
        loop {
            let Json(told) = ctx
                .run(|| desk.segment(&thread, id, carried.clone()))
                .name("segment")
                .await?;
            carried = Some(match told {
                Told::Refused => return Ok(Json(Reply::Refused)),
                Told::Boundary(SegmentEnd::Stopped(report)) => {
                    self.watch_deadlines(ctx, id, &report);
                    return Ok(Json(Reply::Done(report)));
                }
                Told::Boundary(SegmentEnd::Suspended(Suspension::Continue(token))) => token,
                Told::Boundary(SegmentEnd::Suspended(Suspension::Sleep { until, token })) => {
                    self.sleep(ctx, &thread, until).await?;
                    token
                }
                Told::Boundary(SegmentEnd::Suspended(Suspension::Dispatch { tasks, token })) => {
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

    /// Sleeps in slices that grow, and looks after each whether the run is to be cancelled: a sleep cannot be woken.
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
                    match desk.runtime.is_wanted(thread).await? {
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

    fn watch_deadlines(&self, ctx: &ObjectContext<'_>, order: RunId, report: &RunReport) {
        for (question, deadline) in &report.due {
            let wait = u64::try_from(deadline.0 - now().0).unwrap_or(0);
            let due = DueRef {
                order,
                question: *question,
            };
            ctx.object_client::<ThreadClient<'_>>(ctx.key())
                .expire(Json(due))
                .idempotency_key(format!("due-{order}-{question}"))
                .send_after(Duration::from_millis(wait));
        }
    }
}

/// Tasks that one worker runs for another.
pub(crate) struct Node(pub(crate) Arc<Desk>);

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

impl Desk {
    pub(crate) fn new(runtime: Runtime, inbox: Arc<dyn Inbox>, limits: SegmentLimits) -> Self {
        Self {
            runtime,
            inbox,
            limits,
            counts: Counts::default(),
            draining: AtomicBool::new(false),
            orders: Mutex::default(),
        }
    }

    async fn segment(
        &self,
        thread: &ThreadId,
        id: RunId,
        carried: Option<ResumeToken>,
    ) -> HandlerResult<Json<Told>> {
        self.refuse_draining()?;
        let _under_way = self.counts.enter();
        let order = self.order(thread, id).await?;
        let span = tracing::info_span!("segment", %thread, run = %id);
        let driven = self
            .runtime
            .segment(thread, id, &order, carried, &self.limits)
            .instrument(span)
            .await;
        self.counts.segments.fetch_add(1, Ordering::Relaxed);
        match self.refusal(id, driven).await {
            Ok(Some(boundary)) => {
                if matches!(boundary, SegmentEnd::Stopped(_)) {
                    self.counts.stopped.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Json(Told::Boundary(boundary)))
            }
            Ok(None) => Ok(Json(Told::Refused)),
            Err(error) => {
                self.counts.segments_failed.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%thread, run = %id, error = chain(&error), "a segment is tried again");
                Err(error.into())
            }
        }
    }

    async fn run_task(&self, task: &TaskRef) -> HandlerResult<()> {
        self.refuse_draining()?;
        let _under_way = self.counts.enter();
        let thread = thread_of(&task.thread)?;
        let order = self.order(&thread, task.order).await?;
        let span = tracing::info_span!("task", %thread, run = %task.order, task = %task.task);
        self.counts.tasks.fetch_add(1, Ordering::Relaxed);
        let (order_id, carried) = (task.order, &task.carried);
        let ran = self
            .runtime
            .run_task(&thread, order_id, &order, carried, task.task, &self.limits)
            .instrument(span)
            .await;
        ran.map_err(|error| {
            self.counts.tasks_failed.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%thread, task = %task.task, error = chain(&error), "a task is tried again");
            error.into()
        })
    }

    /// A worker that is told to stop begins nothing: Restate asks another one.
    fn refuse_draining(&self) -> Result<(), DriveError> {
        match self.draining.load(Ordering::SeqCst) {
            true => Err(DriveError::Draining),
            false => Ok(()),
        }
    }

    /// What was done, or none if it was refused and the refusal is kept.
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
                self.inbox.reply(id, &refusal).await?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn order(&self, thread: &ThreadId, id: RunId) -> HandlerResult<Arc<Order>> {
        if let Some(order) = lock(&self.orders).get(&id) {
            return Ok(order.clone());
        }
        let Some(kept) = self.inbox.get(id).await? else {
            let why = format!("order `{id}` is not in the inbox any more; give it again");
            return Err(TerminalError::new_with_code(410, why).into());
        };
        if kept.thread != *thread {
            let why = format!("order `{id}` is for another thread");
            return Err(TerminalError::new_with_code(400, why).into());
        }
        let order = Order::from_bytes(&kept.order, thread)
            .map_err(|error| TerminalError::new_with_code(400, chain(&error)))?;
        let order = Arc::new(order);
        let mut orders = lock(&self.orders);
        if orders.len() >= ORDERS_MAX {
            orders.clear();
        }
        orders.insert(id, order.clone());
        Ok(order)
    }

    /// Gives the order by which a question answers itself; none if somebody was quicker.
    async fn answer_at_deadline(
        &self,
        thread: &ThreadId,
        due: &DueRef,
    ) -> HandlerResult<Option<RunId>> {
        let query = InterruptQuery {
            tenant: thread.tenant().to_owned(),
            thread: Some(thread.clone()),
            open_only: true,
            due: None,
            page: Page {
                limit: QUESTIONS_MAX,
                offset: 0,
            },
        };
        let open = self.runtime.questions(&query).await?;
        let Some(open) = open.iter().find(|open| open.question.id == due.question) else {
            return Ok(None);
        };
        let body = match &open.question.on_deadline {
            OnDeadline::Wait => return Ok(None),
            OnDeadline::Answer(value) => AnswerBody::Value(value.clone()),
            OnDeadline::Fail => AnswerBody::Expired,
        };
        let answer = Answer {
            interrupt: due.question,
            body,
            by: "deadline".to_owned(),
            // Not the time of this call: asked again, it is the same answer.
            at: open.question.deadline.unwrap_or_default(),
        };
        let of = self.order(thread, due.order).await?;
        let order = Order::new(
            &of.graph,
            Ordered::Answer(vec![answer]),
            &of.options(due.order)?,
        )?;
        let id = derived(&[&due.order.to_bytes(), &due.question.to_bytes()]);
        self.inbox
            .put(id, thread, &order.to_bytes(thread), now())
            .await?;
        Ok(Some(id))
    }
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

/// An id that follows from these and from nothing else.
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What it guards is changed by single calls, so a panic cannot have left it half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many orders a worker remembers.
const ORDERS_MAX: usize = 4_096;
/// How many open questions of a thread are looked through.
const QUESTIONS_MAX: u32 = 10_000;
const FIRST_SLICE: Duration = Duration::from_secs(2);
const LONGEST_SLICE: Duration = Duration::from_secs(60);
