//! One attempt of a task under way in a simulated process, and the door it records through.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use superstep_core::checkpoint::{BoxFuture, CheckpointResult, RecordWrite};
use superstep_core::driver::{LiveEvent, NodeHost};
use superstep_core::node::{Execution, Task, TaskEnd};
use superstep_core::{Epoch, TaskId};

use super::lab::{Current, Lab, ProcId, Reply, yield_once};
use super::ledger::ExecId;

/// An attempt under way.
pub(super) struct Running {
    pub(super) exec: ExecId,
    pub(super) task: TaskId,
    pub(super) attempt: u32,
    /// Tasks of the same node in the same superstep.
    pub(super) kind: String,
    pub(super) may_time_out: bool,
    epoch: Option<Epoch>,
    future: Execution,
    woken: Arc<Flag>,
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Running {
    /// A process begins a task, in the name of this epoch.
    pub(super) fn start(lab: &Arc<Lab>, proc: ProcId, task: Task, epoch: Option<Epoch>) -> Self {
        let mut inner = lab.get();
        inner.started(&task, epoch);
        inner.trace.add(format_args!(
            "  p{proc} start {} {} #{}",
            task.node(),
            task.id(),
            task.attempt()
        ));
        let exec = inner.exec_id();
        drop(inner);
        let host = SimHost {
            lab: lab.clone(),
            proc,
        };
        Self {
            exec,
            task: task.id(),
            attempt: task.attempt(),
            kind: format!("{}/{}/{}", task.frame(), task.step(), task.node()),
            may_time_out: task.timeout().run_ms.is_some(),
            epoch,
            future: task.execute(Arc::new(host)),
            woken: Arc::new(Flag(AtomicBool::new(true))),
        }
    }

    /// Whether it wants to be polled.
    pub(super) fn is_ripe(&self) -> bool {
        self.woken.0.load(Ordering::Relaxed)
    }

    /// Who it is to the lab.
    pub(super) fn current(&self, generation: u32, orphan: bool) -> Current {
        Current {
            exec: self.exec,
            epoch: self.epoch,
            generation,
            orphan,
        }
    }

    /// Polls it; gives how it ended.
    pub(super) fn poll(&mut self, lab: &Lab, generation: u32, orphan: bool) -> Option<TaskEnd> {
        self.woken.0.store(false, Ordering::Relaxed);
        lab.get().current = Some(self.current(generation, orphan));
        let waker = Waker::from(self.woken.clone());
        let polled = Pin::new(&mut self.future).poll(&mut Context::from_waker(&waker));
        lab.get().current = None;
        match polled {
            Poll::Ready(end) => Some(end),
            Poll::Pending => None,
        }
    }
}

/// What a node of a simulated process reaches its driver through.
struct SimHost {
    lab: Arc<Lab>,
    proc: ProcId,
}

impl NodeHost for SimHost {
    fn record(&self, write: RecordWrite) -> BoxFuture<'static, CheckpointResult<Vec<u8>>> {
        let (lab, proc) = (self.lab.clone(), self.proc);
        Box::pin(async move {
            lab.dawdle().await;
            loop {
                let reply = lab.get().record(proc, &write);
                match reply {
                    Reply::Died => std::future::pending::<()>().await,
                    Reply::Answer(Err(error)) if error.is_transient() => {
                        let mut inner = lab.get();
                        let give_up = inner.weather.give_up;
                        if inner.mishap(give_up) {
                            return Err(error);
                        }
                    }
                    Reply::Answer(answer) => return answer,
                }
                yield_once().await;
            }
        })
    }

    fn emit(&self, _event: LiveEvent) {}
}

pub(super) fn end_word(end: &TaskEnd) -> String {
    match end {
        TaskEnd::Done(_) => "done".to_owned(),
        TaskEnd::Stored(_) => "stored".to_owned(),
        TaskEnd::Cached(_) => "cached".to_owned(),
        TaskEnd::Paused(drafts) => format!("asks {}", drafts.len()),
        TaskEnd::Failed(error) => format!("failed {error:?}"),
        TaskEnd::TimedOut => "timed out".to_owned(),
    }
}
