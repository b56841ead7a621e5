//! Requests: what a caller asks of a thread, in a form that another process can execute.

use serde::{Deserialize, Serialize};

use crate::checkpoint::format::{Body, BodyKind, Extensions, GotoRecord};
use crate::checkpoint::{Answer, BoxFuture, CheckpointResult};
use crate::error::{FormatError, ValueError};
use crate::ids::{RunId, Seq, ThreadId, Timestamp};
use crate::run::{EditNode, RunOptions, ThreadEdit};
use crate::value::Value;

/// What a caller asks of a thread.
///
/// Stored in queues: the order of the variants is part of the format, so new ones go to the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ThreadRequest {
    /// Start a run with this input. Drops whatever was planned before.
    Start {
        /// Input of the run: an encoded update of the graph's state.
        input: Value,
        /// What nodes can read besides the state, with `NodeCx::context`.
        context: Option<Value>,
        /// What the thread can be searched by, a JSON object; `None` keeps the stored one.
        metadata: Option<Value>,
    },
    /// Resume the thread where it stopped, with the answers it has.
    Resume,
    /// Recover a run whose owner died.
    Recover,
    /// Answer interrupts, all or none, and resume.
    Answer(Vec<Answer>),
    /// Change the state from outside, without a run.
    Update {
        /// Node in whose name the state changes; it decides what runs next.
        node: EditNode,
        /// What to write: an encoded update.
        update: Value,
        /// Where the thread continues, for a node that routes by commands.
        goto: Vec<GotoRecord>,
    },
    /// Go back to an older entry, without a run.
    Fork {
        /// Entry to go back to.
        at: Seq,
    },
    /// Resume the thread with a command of the caller: answer interrupts, write into the state, replace the context; then
    /// continue. Refused if there is something to write and the thread is running.
    ///
    /// A run id of the request names this resume, not the run that it resumes: repeated under the same id, it writes once.
    ResumeWith {
        /// Answers to open interrupts, all or none; may be empty.
        answers: Vec<Answer>,
        /// What to write into the state of the root graph: an encoded update. It does not change what runs next.
        write: Option<Value>,
        /// What nodes can read besides the state from now on; `None` keeps what the run has.
        context: Option<Value>,
    },
    /// Change the state from outside, without a run: several updates in order, in one graph of the thread, from an older entry
    /// if wanted.
    Edit(ThreadEdit),
    /// Resume the thread at these nodes of the root graph as well as where it stopped; a thread that has finished continues at
    /// them alone. Refused if the thread is running. A run id names this resume, as for [`ThreadRequest::ResumeWith`].
    GoTo {
        /// Where the thread continues; the end adds nothing.
        goto: Vec<GotoRecord>,
        /// What to write into the state of the root graph first: an encoded update.
        write: Option<Value>,
        /// What nodes can read besides the state from now on; `None` keeps what the run has.
        context: Option<Value>,
    },
}

impl ThreadRequest {
    /// Whether the request changes the thread without running it.
    pub fn is_change(&self) -> bool {
        matches!(
            self,
            Self::Update { .. } | Self::Fork { .. } | Self::Edit(_)
        )
    }

    /// Returns the answers that the request gives.
    pub fn answers(&self) -> &[Answer] {
        match self {
            Self::Answer(answers) | Self::ResumeWith { answers, .. } => answers,
            _ => &[],
        }
    }

    /// Whether the request only gives answers. The owner of a running thread can continue with them, so such a request is not
    /// refused because of a run in progress.
    pub fn is_answer(&self) -> bool {
        match self {
            Self::Answer(_) => true,
            Self::ResumeWith {
                answers,
                write: None,
                context: None,
            } => !answers.is_empty(),
            _ => false,
        }
    }

    /// Returns the request without the times of its answers.
    fn timeless(&self) -> Self {
        let mut request = self.clone();
        if let Self::Answer(answers) | Self::ResumeWith { answers, .. } = &mut request {
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
    /// Name of the thread's graph.
    pub graph: String,
    /// What the caller asks of the thread.
    pub request: ThreadRequest,
    /// The [`RunOptions`], encoded with their field names, because the type gains fields over time.
    options: Value,
    /// Fields that later versions of the format add.
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

    /// Returns the options of the request's run, with the request's id as the run's.
    pub fn options(&self, id: RunId) -> Result<RunOptions, ValueError> {
        let options: RunOptions = self.options.decode()?;
        Ok(RunOptions {
            run: Some(id),
            ..options
        })
    }

    /// Whether two requests ask for the same. Times of answers and the spans of callers do not count: a caller that repeats an
    /// answer, not knowing whether it arrived, sends it with a later time, and in another span.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.graph == other.graph
            && (self.options == other.options || self.has_options_of(other))
            && self.request.timeless() == other.request.timeless()
    }

    /// Whether the options differ by the spans of the callers only.
    fn has_options_of(&self, other: &Self) -> bool {
        let untraced = |request: &Self| {
            let options = request.options.decode::<RunOptions>().ok()?;
            Some(RunOptions {
                caller: None,
                ..options
            })
        };
        let own = untraced(self);
        own.is_some() && own == untraced(other)
    }

    /// Returns the stored form of the request, bound to its thread.
    pub fn to_bytes(&self, thread: &ThreadId) -> Vec<u8> {
        self.seal(thread, NO_SEQ)
    }

    /// Decodes a request that was stored for this thread.
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
/// An engine receives only a request's id, so its journal holds no user data.
pub trait RequestQueue: Send + Sync + 'static {
    /// Stores a request that is due at this time unless there is one under its id, and returns the stored one: the same bytes,
    /// unless the id was used before.
    fn put<'a>(
        &'a self,
        id: RunId,
        thread: &'a ThreadId,
        request: &'a [u8],
        at: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Vec<u8>>>;

    /// Returns a request and the reply to it; `None` if there is no such request.
    fn get(&self, id: RunId) -> BoxFuture<'_, CheckpointResult<Option<RequestRow>>>;

    /// Stores the reply to a request. The first reply stays.
    fn reply<'a>(&'a self, id: RunId, reply: &'a [u8]) -> BoxFuture<'a, CheckpointResult<()>>;

    /// Deletes at most `limit` requests that were due before this time, oldest first, and returns how many. Leaves out those to
    /// threads that are running, whose workers may still read them.
    fn sweep(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>>;

    /// Deletes every request to a thread of a tenant, with its reply, executed or not. Returns how many there were.
    fn erase_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<u64>>;

    /// Returns the time by the clock of the database that stores the requests, which all workers share; `None` if it has no
    /// clock. It decides about deadlines, because the clock of a worker's machine may be wrong. Default: `None`.
    fn now(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        Box::pin(async { Ok(None) })
    }
}

/// A request with its reply, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRow {
    /// Thread that the request is for.
    pub thread: ThreadId,
    /// Stored form of the request; see [`QueuedRequest::from_bytes`].
    pub request: Vec<u8>,
    /// Reply to the request, once there is one.
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
        let with = |answers: Vec<Answer>| ThreadRequest::ResumeWith {
            answers,
            write: None,
            context: None,
        };
        let forms = [
            ThreadRequest::Answer(vec![answer.clone()]),
            with(vec![answer]),
        ];
        forms.map(|form| QueuedRequest::new("g", form, &RunOptions::default()).unwrap())
    };
    let mut repeated = request(1, 5).into_iter().zip(request(1, 9));
    assert!(repeated.all(|(one, other)| one.is_same_as(&other)));
    let mut different = request(1, 5).into_iter().zip(request(2, 5));
    assert!(different.all(|(one, other)| !one.is_same_as(&other)));
}

#[test]
fn a_resume_that_only_answers_is_an_answer_and_one_that_writes_is_not() {
    let answer = || Answer {
        interrupt: crate::ids::InterruptId::from_bytes([1; 16]),
        body: crate::checkpoint::AnswerBody::Expired,
        by: String::new(),
        at: Timestamp(1),
    };
    let with = |answers, write| ThreadRequest::ResumeWith {
        answers,
        write,
        context: None,
    };
    assert!(with(vec![answer()], None).is_answer());
    assert!(!with(Vec::new(), None).is_answer());
    let writes = with(vec![answer()], Some(Value::from_json_bytes(b"{}")));
    assert!(!writes.is_answer());
    assert_eq!(writes.answers(), [answer()]);
}
