//! Orders: what is to be done with a thread, written down so that another process can do it.

use serde::{Deserialize, Serialize};

use crate::checkpoint::format::{Body, BodyKind, Extensions, GotoRecord};
use crate::checkpoint::{Answer, BoxFuture, CheckpointResult};
use crate::error::{FormatError, ValueError};
use crate::ids::{RunId, Seq, ThreadId, Timestamp};
use crate::run::{EditNode, RunOptions};
use crate::value::Value;

/// What is to be done with a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The name of the thread's graph.
    pub graph: String,
    /// What is to be done.
    pub what: Ordered,
    /// How a run is to be made: a [`RunOptions`]. It gains fields over time, so it is kept by their names.
    options: Value,
    /// What comes later.
    extensions: Extensions,
}

/// What is to be done with a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Ordered {
    /// Begin a run with this input.
    Start {
        /// The input, an encoded update.
        input: Value,
        /// What nodes can read beside the state.
        context: Option<Value>,
        /// What the thread is found by, a JSON object; none leaves what is there.
        metadata: Option<Value>,
    },
    /// Go on where the thread stopped.
    Resume,
    /// Go on with a run whose owner is gone.
    Recover,
    /// Answer questions, all or none, and go on.
    Answer(Vec<Answer>),
    /// Change the state from outside.
    Update {
        /// In whose name.
        node: EditNode,
        /// What is written, an encoded update.
        update: Value,
        /// Where it goes.
        goto: Vec<GotoRecord>,
    },
    /// Let the thread go on from an older entry.
    Fork {
        /// The entry.
        at: Seq,
    },
}

impl Order {
    /// An order for a thread of this graph.
    pub fn new(graph: &str, what: Ordered, options: &RunOptions) -> Result<Self, ValueError> {
        Ok(Self {
            graph: graph.to_owned(),
            what,
            options: Value::plain(options)?,
            extensions: Extensions::default(),
        })
    }

    /// How its run is to be made. The run's id is the order's.
    pub fn options(&self, id: RunId) -> Result<RunOptions, ValueError> {
        let options: RunOptions = self.options.decode()?;
        Ok(RunOptions {
            run: Some(id),
            ..options
        })
    }

    /// Whether two orders ask for the same. When an answer was given is not part of that: whoever gives it again, because
    /// they do not know whether it was taken, gives it later.
    pub fn asks_the_same(&self, other: &Self) -> bool {
        fn timeless(what: &Ordered) -> Ordered {
            let mut what = what.clone();
            if let Ordered::Answer(answers) = &mut what {
                for answer in answers {
                    answer.at = Timestamp::default();
                }
            }
            what
        }
        self.graph == other.graph
            && self.options == other.options
            && timeless(&self.what) == timeless(&other.what)
    }

    /// Its bytes, bound to its thread.
    pub fn to_bytes(&self, thread: &ThreadId) -> Vec<u8> {
        self.seal(thread, NO_SEQ)
    }

    /// Reads an order that was kept for this thread.
    pub fn from_bytes(bytes: &[u8], thread: &ThreadId) -> Result<Self, FormatError> {
        Self::unseal(bytes, thread, NO_SEQ)
    }
}

impl Body for Order {
    const KIND: BodyKind = BodyKind::Order;

    fn extensions(&self) -> &Extensions {
        &self.extensions
    }
}

/// An order has no place in its thread's log.
const NO_SEQ: Seq = Seq(0);

/// Keeps orders between those who give them and those who carry them out.
///
/// What an engine is handed is an order's id, so that no engine's journal holds anything of the user's.
pub trait Inbox: Send + Sync + 'static {
    /// Keeps an order unless there is one under its id, and gives what is kept: the same bytes, unless the id was used
    /// before.
    fn put<'a>(
        &'a self,
        id: RunId,
        thread: &'a ThreadId,
        order: &'a [u8],
        at: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Vec<u8>>>;

    /// An order, and what was replied; none if it is not there.
    fn get(&self, id: RunId) -> BoxFuture<'_, CheckpointResult<Option<KeptOrder>>>;

    /// Keeps a reply to an order. The first one stays.
    fn reply<'a>(&'a self, id: RunId, reply: &'a [u8]) -> BoxFuture<'a, CheckpointResult<()>>;

    /// Forgets orders that were given before this time. Gives how many.
    fn sweep(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>>;

    /// Returns the time by the clock of the database that keeps the orders, which all workers share; none if it has no clock
    /// of its own. Deadlines are decided by it, because the clock of a worker's machine may be wrong.
    fn now(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        Box::pin(async { Ok(None) })
    }
}

/// An order as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptOrder {
    /// Its thread.
    pub thread: ThreadId,
    /// Its bytes.
    pub order: Vec<u8>,
    /// What was replied.
    pub reply: Option<Vec<u8>>,
}

#[test]
fn an_answer_that_is_given_again_later_is_the_same_and_another_one_is_not() {
    let order = |answer: u32, at| {
        let answer = Answer {
            interrupt: crate::ids::InterruptId::from_bytes([1; 16]),
            body: crate::checkpoint::AnswerBody::Value(Value::plain(&answer).unwrap()),
            by: String::new(),
            at: Timestamp(at),
        };
        Order::new("g", Ordered::Answer(vec![answer]), &RunOptions::default()).unwrap()
    };
    assert!(order(1, 5).asks_the_same(&order(1, 9)));
    assert!(!order(1, 5).asks_the_same(&order(2, 5)));
}
