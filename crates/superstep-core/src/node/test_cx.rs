//! A context for unit tests: a node is called like any function.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use serde::Serialize;

use crate::checkpoint::format::StepRecord;
use crate::checkpoint::{AnswerBody, BoxFuture, CheckpointResult, RecordWrite};
use crate::driver::{LiveEvent, NodeHost};
use crate::ids::{Epoch, FramePath, NodeName, RunId, TaskId, ThreadId, Timestamp};
use crate::label::Labels;
use crate::lock::lock;
use crate::node::cx::{Answers, NodeCx, TaskInfo};
use crate::node::records::{StepKept, TaskRecords};
use crate::store::{MemoryStore, Store};
use crate::value::Value;

/// Makes the [`NodeCx`] of a unit test, in which a node is called directly, without a graph, a runtime or a store.
///
/// ```
/// use superstep_core::{Interrupt, NodeCx, NodeError, State, TestCx, View};
///
/// #[derive(Clone, Debug, Default, PartialEq, State)]
/// # #[state(crate = superstep_core)]
/// struct Order {
///     cents: u32,
///     receipt: Option<String>,
/// }
///
/// async fn pay(order: View<Order>, cx: NodeCx) -> Result<OrderUpdate, NodeError> {
///     let may: bool = cx.interrupt(Interrupt::new("approve", order.cents)).await?;
///     if !may {
///         return Ok(OrderUpdate::default());
///     }
///     let receipt: String = cx.step("charge", || async { Ok("r-1".to_owned()) }).await?;
///     Ok(OrderUpdate::default().receipt(Some(receipt)))
/// }
///
/// # use std::future::Future;
/// # use std::task::{Context, Poll, Waker};
/// # let test = std::pin::pin!(async {
/// let order = View::of(Order { cents: 900, receipt: None });
/// let approved = TestCx::new().answer("approve", true);
/// let mut after = (*order).clone();
/// after.apply(pay(order.clone(), approved.cx()).await?);
/// assert_eq!(after.receipt.as_deref(), Some("r-1"));
///
/// // A step that an earlier execution recorded does not run again.
/// let resumed = TestCx::new().answer("approve", true).step("charge", "r-0");
/// after.apply(pay(order.clone(), resumed.cx()).await?);
/// assert_eq!(after.receipt.as_deref(), Some("r-0"));
///
/// // A question without an answer is an error here, and names its key.
/// let unanswered = pay(order, TestCx::new().cx()).await.unwrap_err();
/// assert!(unanswered.to_string().contains("approve"));
/// # Ok::<(), NodeError>(())
/// # });
/// # let Poll::Ready(done) = test.poll(&mut Context::from_waker(Waker::noop())) else { panic!() };
/// # done.unwrap();
/// ```
#[derive(Clone)]
pub struct TestCx {
    answers: Answers,
    steps: BTreeMap<String, Value>,
    context: Option<Value>,
    attempt: u32,
    host: Arc<TestHost>,
}

#[derive(Default)]
struct TestHost {
    shown: Mutex<Vec<Value>>,
    store: MemoryStore,
}

impl Default for TestCx {
    fn default() -> Self {
        Self::new()
    }
}

impl TestCx {
    /// Creates a context without answers, recorded steps or a context of the run.
    pub fn new() -> Self {
        Self {
            answers: Answers::default(),
            steps: BTreeMap::new(),
            context: None,
            attempt: 1,
            host: Arc::default(),
        }
    }

    /// Answers the interrupt with this key.
    ///
    /// # Panics
    /// If the answer cannot be stored as JSON.
    #[must_use]
    #[track_caller]
    pub fn answer(mut self, key: impl Into<String>, answer: impl Serialize) -> Self {
        let answer = AnswerBody::Value(encoded(answer));
        self.answers.insert(key.into(), answer);
        self
    }

    /// Records the result of a step, as if an earlier execution of the node had run it.
    ///
    /// # Panics
    /// If the result cannot be stored as JSON.
    #[must_use]
    #[track_caller]
    pub fn step(mut self, name: impl Into<String>, result: impl Serialize) -> Self {
        self.steps.insert(name.into(), encoded(result));
        self
    }

    /// Sets what the caller passes to the run besides the input.
    ///
    /// # Panics
    /// If it cannot be stored as JSON.
    #[must_use]
    #[track_caller]
    pub fn context(mut self, context: impl Serialize) -> Self {
        self.context = Some(encoded(context));
        self
    }

    /// Sets the number of the attempt, counted from 1.
    #[must_use]
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }

    /// Returns the context to call the node with. Each call of the node needs its own.
    pub fn cx(&self) -> NodeCx {
        let records = TaskRecords::default();
        for (ordinal, (name, value)) in self.steps.iter().enumerate() {
            let step = StepRecord {
                ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX),
                // A test names the steps in any order.
                overlapped: true,
                value: value.clone(),
            };
            let read = Labels::NONE;
            records.insert(name.clone(), StepKept { step, read });
        }
        let info = TaskInfo {
            thread: ThreadId::new("test").expect("a name"),
            epoch: Epoch(1),
            run: RunId::from_bytes([0; 16]),
            task: TaskId::from_bytes([0; 16]),
            frame: FramePath::root(),
            node: NodeName::new("node").expect("a name"),
            step: 1,
            attempt: self.attempt,
            go: 0,
            remaining_steps: 100,
            context: self.context.clone(),
            stateless: false,
        };
        NodeCx::of_test(info, self.host.clone(), records, self.answers.clone())
    }

    /// Returns the long-term store that nodes reach by [`NodeCx::store`]: an empty one of its own for each test.
    pub fn store(&self) -> &MemoryStore {
        &self.host.store
    }

    /// Returns what the node emitted, live events included, in order.
    pub fn emitted(&self) -> Vec<Value> {
        lock(&self.host.shown).clone()
    }
}

impl fmt::Debug for TestCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestCx")
            .field("answers", &self.answers)
            .field("steps", &self.steps)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

#[track_caller]
fn encoded(value: impl Serialize) -> Value {
    Value::plain(&value).expect("it can be stored as JSON")
}

impl NodeHost for TestHost {
    fn record(&self, write: RecordWrite) -> BoxFuture<'static, CheckpointResult<Vec<u8>>> {
        Box::pin(async move { Ok(write.body) })
    }

    fn emit(&self, event: LiveEvent) {
        lock(&self.shown).push(event.payload);
    }

    fn store(&self) -> Option<(Arc<dyn Store>, Timestamp)> {
        Some((Arc::new(self.store.clone()), Timestamp(0)))
    }
}
