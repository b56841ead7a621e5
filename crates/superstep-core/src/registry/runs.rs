//! Runs as rows.

use serde_json::Value as Json;

use crate::checkpoint::Page;
use crate::ids::{AssistantId, RunId, ThreadId, Timestamp};
use crate::registry::NewDelivery;

/// Where a run is. The numbers are part of what stores keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RunStatus {
    /// Waits for its time, or for earlier runs of its thread.
    Pending = 0,
    /// Was taken from the queue.
    Running = 1,
    /// Ended with a result, or waits for a person: the answer is a run of its own.
    Success = 2,
    /// Failed.
    Error = 3,
    /// Took longer than it may.
    Timeout = 4,
    /// Was cancelled. In rows of older versions also: stopped at an interrupt or a breakpoint.
    Interrupted = 5,
}

impl RunStatus {
    /// Every status, in the order of the numbers.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Running,
        Self::Success,
        Self::Error,
        Self::Timeout,
        Self::Interrupted,
    ];

    /// Returns the number that stores keep.
    pub const fn to_number(self) -> u8 {
        self as u8
    }

    /// Returns the status with this number.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Whether the run may still do something.
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

/// What to do with a new run if its thread has an active one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenBusy {
    /// Queue it behind the others.
    #[default]
    Enqueue,
    /// Store nothing.
    Reject,
}

/// A run to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    /// Id of the run.
    pub id: RunId,
    /// Thread of the run.
    pub thread: ThreadId,
    /// Assistant that the run was requested of.
    pub assistant: AssistantId,
    /// Who requested the run; may be empty.
    pub principal: String,
    /// Stored form of the request; see [`QueuedRequest`](crate::driver::QueuedRequest).
    pub request: Vec<u8>,
    /// What the caller sent, for callers to read.
    pub arguments: Json,
    /// What the caller wants to find the run by: a JSON object.
    pub metadata: Json,
    /// What to do if the thread has an active run.
    pub when_busy: WhenBusy,
    /// When the run was requested.
    pub at: Timestamp,
    /// Not executed before this time.
    pub due: Timestamp,
}

impl NewRun {
    /// Returns the run as [`begin_run`](super::Registry::begin_run) stores it if its thread is free.
    pub fn begun(&self) -> TakenRun {
        TakenRun {
            row: RunRow {
                status: RunStatus::Running,
                attempts: 1,
                ..self.pending_row()
            },
            request: self.request.clone(),
        }
    }

    /// Returns the row of the run when it was stored and nothing else has happened to it.
    pub fn pending_row(&self) -> RunRow {
        RunRow {
            id: self.id,
            thread: self.thread.clone(),
            assistant: self.assistant,
            principal: self.principal.clone(),
            status: RunStatus::Pending,
            attempts: 0,
            arguments: self.arguments.clone(),
            metadata: self.metadata.clone(),
            error: Json::Null,
            created: self.at,
            updated: self.at,
            due: self.due,
        }
    }
}

/// A run, as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// Id of the run.
    pub id: RunId,
    /// Thread of the run.
    pub thread: ThreadId,
    /// Assistant that the run was requested of.
    pub assistant: AssistantId,
    /// Who requested the run; may be empty.
    pub principal: String,
    /// Where the run is.
    pub status: RunStatus,
    /// How often the run was taken from the queue.
    pub attempts: u32,
    /// What the caller sent.
    pub arguments: Json,
    /// What the caller wants to find the run by: a JSON object.
    pub metadata: Json,
    /// Why the run failed; `null` unless it did.
    pub error: Json,
    /// When the run was requested.
    pub created: Timestamp,
    /// When the status last changed.
    pub updated: Timestamp,
    /// Not executed before this time.
    pub due: Timestamp,
}

/// What [`create_run`](super::Registry::create_run) did.
#[derive(Debug, Clone, PartialEq)]
pub enum CreatedRun {
    /// Stored the run. The active runs of its thread that are before it, oldest first.
    Stored(Vec<RunId>),
    /// Stored the run as running: [`begin_run`](super::Registry::begin_run) found its thread free.
    Begun,
    /// A run with this id exists: this row and this request. Nothing was stored.
    Exists(Box<RunRow>, Vec<u8>),
    /// The thread has an active run, and the caller wanted none to wait. Nothing was stored.
    Busy,
}

/// A run that was taken from the queue.
#[derive(Debug, Clone, PartialEq)]
pub struct TakenRun {
    /// The run.
    pub row: RunRow,
    /// Stored form of its request.
    pub request: Vec<u8>,
}

/// A run that is pending or running, without the rest of its row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActiveRun {
    /// The thread on which it runs, or will.
    pub thread: ThreadId,
    /// Whether it runs.
    pub is_running: bool,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    /// A status that is not active.
    pub status: RunStatus,
    /// Why the run failed; `null` unless it did.
    pub error: Json,
    /// When it ended.
    pub at: Timestamp,
    /// What to deliver because of it, in this order. Stored in the same write, if this is the first end of the run. A delivery whose
    /// id the tenant has already is not stored again.
    pub deliveries: Vec<NewDelivery>,
}

/// What [`cancel_run`](super::Registry::cancel_run) found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelledRun {
    /// The run was pending, and will not start.
    Withdrawn,
    /// The run is running, or was before it was released.
    Running,
    /// The run had ended before.
    Ended,
    /// There is no such run.
    Missing,
}

/// Selects runs of a tenant, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunQuery {
    /// Tenant of the runs; empty for the unnamed one.
    pub tenant: String,
    /// Only runs of this thread.
    pub thread: Option<ThreadId>,
    /// Only runs with one of these statuses; empty for any.
    pub statuses: Vec<RunStatus>,
    /// Only runs with these ids; `None` for any.
    pub ids: Option<Vec<RunId>>,
    /// Only runs whose metadata contains this, see [`json_contains`](super::json_contains).
    pub metadata: Option<Json>,
    /// Which page of the list to return.
    pub page: Page,
}
