//! Requests: what a caller asks of a thread, in a form that another process can carry out.

use serde::{Deserialize, Serialize};

use crate::checkpoint::format::{Body, BodyKind, Extensions, GotoRecord};
use crate::checkpoint::{Answer, BoxFuture, CheckpointResult};
use crate::error::{FormatError, ValueError};
use crate::ids::{RunId, Seq, ThreadId, Timestamp};
use crate::run::{EditNode, RunOptions};
use crate::value::Value;

/// What a caller asks of a thread.
///
/// Stored in queues: the order of the variants is part of the format, so new ones go to the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ThreadRequest {
    /// Start a run with this input. Drops whatever was planned before.
    Start {
        /// An encoded update of the graph's state.
        input: Value,
        /// What nodes can read besides the state.
        context: Option<Value>,
        /// What the thread can be searched by, a JSON object; none keeps what is there.
        metadata: Option<Value>,
    },
    /// Resume where the thread stopped, with whatever answers there are.
    Resume,
    /// Resume a run whose owner died.
    Recover,
    /// Answer interrupts, all or none, and resume.
    Answer(Vec<Answer>),
    /// Change the state from outside, without a run.
    Update {
        /// The node in whose name.
        node: EditNode,
        /// What is written, an encoded update.
        update: Value,
        /// Where the thread continues.
        goto: Vec<GotoRecord>,
    },
    /// Go back to an older entry, without a run.
    Fork {
        /// The entry.
        at: Seq,
    },
}

impl ThreadRequest {
    /// Whether it changes the thread without running it.
    pub fn is_change(&self) -> bool {
        matches!(self, Self::Update { .. } | Self::Fork { .. })
    }

    /// The same request without the times at which its answers were given.
    fn timeless(&self) -> Self {
        let mut request = self.clone();
        if let Self::Answer(answers) = &mut request {
            for answer in answers {
                answer.at = Timestamp::default();
            }
        }
        request
    }
}

/// A request on its way to a worker, with the name of the graph and the options of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueuedRequest {
    /// The name of the thread's graph.
    pub graph: String,
    /// What is asked.
    pub request: ThreadRequest,
    /// A [`RunOptions`]. It gains fields over time, so it is stored by their names.
    options: Value,
    /// What later versions add.
    extensions: Extensions,
}

impl QueuedRequest {
    /// Creates a request for a thread of this graph.
    pub fn new(
        graph: &str,
        request: ThreadRequest,
        options: &RunOptions,
    ) -> Result<Self, ValueError> {
        Ok(Self {
            graph: graph.to_owned(),
            request,
            options: Value::plain(options)?,
            extensions: Extensions::default(),
        })
    }

    /// Returns the options of its run, whose id is the request's.
    pub fn options(&self, id: RunId) -> Result<RunOptions, ValueError> {
        let options: RunOptions = self.options.decode()?;
        Ok(RunOptions {
            run: Some(id),
            ..options
        })
    }

    /// Whether two requests ask for the same. The time of an answer does not count: a caller that repeats an answer, not
    /// knowing whether it arrived, gives it later.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.graph == other.graph
            && self.options == other.options
            && self.request.timeless() == other.request.timeless()
    }

    /// Returns its bytes, bound to its thread.
    pub fn to_bytes(&self, thread: &ThreadId) -> Vec<u8> {
        self.seal(thread, NO_SEQ)
    }

    /// Reads a request that was stored for this thread.
    pub fn from_bytes(bytes: &[u8], thread: &ThreadId) -> Result<Self, FormatError> {
        Self::unseal(bytes, thread, NO_SEQ)
    }
}

impl Body for QueuedRequest {
    const KIND: BodyKind = BodyKind::Request;

    fn extensions(&self) -> &Extensions {
        &self.extensions
    }
}

/// A request has no place in its thread's log.
const NO_SEQ: Seq = Seq(0);

/// Stores requests between the callers and the workers of a cluster.
///
/// An engine is handed a request's id only, so that its journal holds no user data.
pub trait RequestQueue: Send + Sync + 'static {
    /// Stores a request unless there is one under its id, and returns what is stored: the same bytes, unless the id was
    /// used before.
    fn put<'a>(
        &'a self,
        id: RunId,
        thread: &'a ThreadId,
        request: &'a [u8],
        at: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Vec<u8>>>;

    /// Returns a request and the reply to it; none if there is no such request.
    fn get(&self, id: RunId) -> BoxFuture<'_, CheckpointResult<Option<RequestRow>>>;

    /// Stores the reply to a request. The first one stays.
    fn reply<'a>(&'a self, id: RunId, reply: &'a [u8]) -> BoxFuture<'a, CheckpointResult<()>>;

    /// Deletes requests that were made before this time, and returns how many.
    fn sweep(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>>;

    /// Returns the time by the clock of the database that stores the requests, which all workers share; none if it has no
    /// clock of its own. Deadlines are decided by it, because the clock of a worker's machine may be wrong.
    fn now(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        Box::pin(async { Ok(None) })
    }
}

/// A request as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRow {
    /// Its thread.
    pub thread: ThreadId,
    /// Its bytes, see [`QueuedRequest::from_bytes`].
    pub request: Vec<u8>,
    /// The reply, if there is one yet.
    pub reply: Option<Vec<u8>>,
}

#[test]
fn an_answer_that_is_given_again_later_is_the_same_and_another_one_is_not() {
    let request = |answer: u32, at| {
        let answer = Answer {
            interrupt: crate::ids::InterruptId::from_bytes([1; 16]),
            body: crate::checkpoint::AnswerBody::Value(Value::plain(&answer).unwrap()),
            by: String::new(),
            at: Timestamp(at),
        };
        QueuedRequest::new(
            "g",
            ThreadRequest::Answer(vec![answer]),
            &RunOptions::default(),
        )
        .unwrap()
    };
    assert!(request(1, 5).is_same_as(&request(1, 9)));
    assert!(!request(1, 5).is_same_as(&request(2, 5)));
}
