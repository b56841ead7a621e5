//! The engine of a cluster, as far as a run sees it: it journals where the run was suspended, has the tasks run that
//! were dispatched, and tries again whatever it did not hear of.

use superstep_core::driver::ThreadRequest;
use superstep_core::run::{ResumeToken, Suspension};
use superstep_core::{Epoch, RunId, TaskId, Timestamp};

use super::check::Check;
use super::life::Life;
use super::worker::{CallId, Did, Worker};

/// A start or resume that is carried out once.
pub(super) struct Order {
    pub(super) id: RunId,
    pub(super) what: What,
    /// It was tried before.
    pub(super) tried: bool,
}

/// What is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Start,
    Resume,
}

/// How a process comes to open the thread.
pub(super) enum Opening {
    /// Somebody asked for it.
    Request(ThreadRequest),
    /// A segment suspended its run.
    Suspended(ResumeToken),
}

impl Opening {
    pub(super) const RECOVER: Self = Self::Request(ThreadRequest::Recover);

    pub(super) fn recovers(&self) -> bool {
        matches!(self, Self::Request(ThreadRequest::Recover))
    }

    pub(super) fn resumes(&self) -> bool {
        matches!(self, Self::Request(ThreadRequest::Resume))
    }
}

/// What is journaled of a run that was suspended.
pub(super) struct Parked {
    /// As an engine keeps it: text.
    token: String,
    pub(super) epoch: Epoch,
    until: Option<Timestamp>,
    calls: Vec<Call>,
    /// How often it was resumed.
    taken_up: u32,
}

/// A task that is to be run before the run goes on.
struct Call {
    task: TaskId,
    is_done: bool,
    by: Option<CallId>,
}

impl Parked {
    fn new(suspension: Suspension) -> Self {
        let (token, until, tasks) = match suspension {
            Suspension::Continue(token) => (token, None, Vec::new()),
            Suspension::Sleep { until, token } => (token, Some(until), Vec::new()),
            Suspension::Dispatch { tasks, token } => (token, None, tasks),
        };
        let call = |task| Call {
            task,
            is_done: false,
            by: None,
        };
        Self {
            epoch: token.epoch,
            token: serde_json::to_string(&token).expect("plain data"),
            until,
            calls: tasks.into_iter().map(call).collect(),
            taken_up: 0,
        }
    }
}

/// How many processes run tasks for others at a time.
const WORKERS_MAX: usize = 3;

impl Life<'_> {
    /// The process in charge has suspended its run.
    pub(super) fn suspended(&mut self, suspension: Suspension) {
        self.current = None;
        let mut lab = self.lab.get();
        lab.counts.put_down += 1;
        lab.counts.sleeps += u64::from(matches!(suspension, Suspension::Sleep { .. }));
        let unjournaled = lab.weather.unjournaled;
        if lab.mishap(unjournaled) {
            lab.counts.unjournaled += 1;
            lab.trace
                .add(format_args!("suspended, and the engine did not hear of it"));
            drop(lab);
            self.resumed = false;
            return;
        }
        let parked = Parked::new(suspension);
        lab.trace.add(format_args!("suspended {}", parked.token));
        drop(lab);
        self.parked = Some(parked);
    }

    /// Resumes the run that was suspended, when its tasks have been run.
    pub(super) fn take_up(&mut self) -> Option<String> {
        let parked = self.parked.as_mut()?;
        if parked.calls.iter().any(|call| !call.is_done) {
            self.have_tasks_run();
            return None;
        }
        let mut lab = self.lab.get();
        if let Some(until) = parked.until {
            lab.now = lab.now.max(until);
        }
        lab.counts.taken_up_twice += u64::from(parked.taken_up > 0);
        parked.taken_up += 1;
        let forgets = lab.kept.forgets_put_down();
        let stale = lab.kept.accepts_stale_tokens();
        let epoch = (lab.kept.peek(&lab.thread)).map(|loaded| loaded.head.epoch);
        drop(lab);
        let opening = match serde_json::from_str::<ResumeToken>(&parked.token) {
            Ok(_) if forgets => Opening::RECOVER,
            Ok(mut token) => {
                if let Some(epoch) = epoch.filter(|_| stale) {
                    token.epoch = epoch;
                }
                Opening::Suspended(token)
            }
            Err(error) => {
                self.lab.get().fail(Check::Unexpected, error.to_string());
                Opening::RECOVER
            }
        };
        self.open(opening)
    }

    /// One act of the caller of tasks.
    fn have_tasks_run(&mut self) {
        self.make_call();
        self.doubt();
        self.work();
    }

    /// Asks somebody to run one of the tasks that nobody runs.
    fn make_call(&mut self) {
        let Some(parked) = &mut self.parked else {
            return;
        };
        let open = |call: &&mut Call| !call.is_done && call.by.is_none();
        let Some(call) = parked.calls.iter_mut().find(open) else {
            return;
        };
        let token = serde_json::from_str(&parked.token).expect("it was written by us");
        self.next_call += 1;
        call.by = Some(self.next_call);
        let (id, task) = (self.next_call, call.task);
        if self.workers.len() >= WORKERS_MAX
            && let Some(idle) = self.workers.iter().position(Worker::is_idle)
            && self.lab.get().entropy.chance(100)
        {
            self.workers.remove(idle);
        }
        let at = self.lab.get().entropy.below(WORKERS_MAX);
        if at >= self.workers.len() {
            self.next_proc += 1;
            let worker = Worker::new(self.next_proc, &self.lab, self.options());
            self.workers.push(worker);
        }
        let at = at.min(self.workers.len() - 1);
        self.workers[at].take(id, task, token);
    }

    /// Something is taken for lost that is not, or asked for although it was done.
    fn doubt(&mut self) {
        let Some(parked) = &mut self.parked else {
            return;
        };
        let mut lab = self.lab.get();
        let (again, replace) = (lab.weather.call_again, lab.weather.replace);
        if lab.mishap(again) {
            let at = lab.entropy.below(parked.calls.len());
            let call = &mut parked.calls[at];
            if call.is_done || call.by.is_some() {
                lab.counts.calls_twice += 1;
                lab.trace
                    .add(format_args!("{} is asked for again", call.task));
            }
            drop(lab);
            call.is_done = false;
            let by = call.by.take();
            for worker in &mut self.workers {
                worker.forget(|call| Some(call) == by);
            }
        } else if !self.workers.is_empty() && lab.mishap(replace) {
            let at = lab.entropy.below(self.workers.len());
            lab.counts.zombies += 1;
            lab.trace
                .add(format_args!("p{} is taken for dead", self.workers[at].id));
            drop(lab);
            let lost = self.workers[at].calls();
            self.workers[at].forget(|_| true);
            self.ask_again(&lost);
        }
    }

    /// One act of a process that runs tasks for others.
    pub(super) fn work(&mut self) {
        let busy: Vec<usize> = (0..self.workers.len())
            .filter(|&at| !self.workers[at].is_idle())
            .collect();
        if busy.is_empty() {
            return;
        }
        let at = busy[self.lab.get().entropy.below(busy.len())];
        match self.workers[at].act() {
            Did::Went => {}
            Did::Returned(call) => {
                let calls = self.parked.iter_mut().flat_map(|parked| &mut parked.calls);
                for waiting in calls.filter(|waiting| call.is_some() && waiting.by == call) {
                    waiting.is_done = true;
                }
            }
            Did::Died => {
                let worker = self.workers.swap_remove(at);
                let lost = worker.calls();
                drop(worker);
                let mut lab = self.lab.get();
                lab.counts.crashes += 1;
                lab.kept.process_died();
                lab.trace.add(format_args!("a helper died"));
                drop(lab);
                self.ask_again(&lost);
            }
        }
    }

    fn ask_again(&mut self, lost: &[CallId]) {
        let calls = self.parked.iter_mut().flat_map(|parked| &mut parked.calls);
        for call in calls.filter(|call| call.by.is_some_and(|by| lost.contains(&by))) {
            if !call.is_done {
                call.by = None;
                self.lab.get().counts.calls_again += 1;
            }
        }
    }

    /// Begins to carry out an order, or tries it again.
    pub(super) fn try_order(
        &mut self,
        request: impl FnOnce(What) -> ThreadRequest,
    ) -> Option<String> {
        let order = self.order.as_mut()?;
        let request = request(order.what);
        if order.tried {
            let mut lab = self.lab.get();
            lab.counts.orders_again += 1;
            if lab.kept.forgets_runs() {
                order.id = run_id(lab.entropy.number());
            }
        }
        self.open(Opening::Request(request))
    }

    /// A start or resume is wanted: with an id, if they have ids in this world.
    pub(super) fn order(&mut self, what: What) {
        let mut lab = self.lab.get();
        if !lab.weather.orders {
            return;
        }
        self.orders += 1;
        lab.model.order = self.orders;
        self.order = Some(Order {
            id: run_id(lab.entropy.number()),
            what,
            tried: false,
        });
    }

    /// The caller knows what became of the order.
    pub(super) fn order_done(&mut self) {
        (self.order, self.parked) = (None, None);
        self.lab.get().model.order = 0;
    }
}

fn run_id(number: u64) -> RunId {
    RunId::from_bytes(u128::from(number).to_be_bytes())
}
