//! A scenario: one thread of a graph from its inputs to its end, with every answer scripted.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value as Json;
use superstep_core::__private::lock;
use superstep_core::checkpoint::Memory;
use superstep_core::checkpoint::format::{Change, InterruptRecord};
use superstep_core::error::CheckpointError;
use superstep_core::run::{OpenInterrupt, open_interrupts};
use superstep_core::{Checkpointer, Graph, Outcome, RunId, Seq, State};

use crate::drive::DriveError;
use crate::runtime::{Runtime, RuntimeBuilder};
use crate::testing::clock::TestClock;
use crate::testing::script::{Due, Reply, ScenarioError, Script, ScriptedAnswer, StandingAnswer};
use crate::testing::store::ObservedStore;
use crate::thread::{RunResult, Thread};

/// A test of a whole graph: inputs, and what people answer when they are asked.
///
/// ```
/// use std::time::Duration;
///
/// use superstep::prelude::*;
/// use superstep::testing::Scenario;
///
/// #[derive(Clone, Debug, Default, State)]
/// struct Refund {
///     cents: i64,
///     receipt: Option<String>,
/// }
///
/// async fn pay(refund: View<Refund>, cx: NodeCx) -> Result<RefundUpdate, NodeError> {
///     let day = Duration::from_secs(86_400);
///     let question = Interrupt::new("approve", refund.cents).within(day).or_answer(false);
///     if !cx.interrupt::<bool>(question).await? {
///         return Ok(RefundUpdate::default());
///     }
///     let receipt: String = cx.step("charge", || async { Ok("r-1".to_owned()) }).await?;
///     Ok(RefundUpdate::default().receipt(Some(receipt)))
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let graph = Graph::builder("refund").node("pay", pay).edge(START, "pay").edge("pay", END).build()?;
/// let refund = || Scenario::new(&graph).start(RefundUpdate::default().cents(1_900));
///
/// let paid = refund().answer("approve", true).run().await?;
/// assert_eq!(paid.state.receipt.as_deref(), Some("r-1"));
/// assert_eq!(paid.asked(), ["approve"]);
/// assert_eq!(paid.steps, ["charge"]);
///
/// // Nobody answers for a day, which takes no time here.
/// let expired = refund().expire("approve").run().await?;
/// assert_eq!(expired.state.receipt, None);
/// assert_eq!(expired.elapsed, Duration::from_secs(86_400));
///
/// // A script that forgets a question fails, and says which.
/// let failure = refund().run().await.unwrap_err();
/// assert!(failure.to_string().starts_with("`pay` asked `approve`"));
/// # Ok(())
/// # }
/// ```
///
/// The scenario has a thread of its own, called `scenario`, and a [`TestClock`]. Use `#[tokio::test(start_paused = true)]`, and
/// delays of retries and timeouts take no real time; a script that waits for something needs it.
///
/// Run over a store that already has its thread, a scenario continues where that stopped. So it can be the life of a
/// `superstep_conformance::mortal::KillSweep`.
pub struct Scenario<S: State> {
    graph: Graph<S>,
    runtime: RuntimeBuilder,
    clock: TestClock,
    context: Option<Json>,
    inputs: Vec<S::Update>,
    script: Script,
}

/// How a [`Scenario`] ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScenarioEnd<S: State> {
    /// Why the last run stopped. Never a pause: the script answers every interrupt.
    pub outcome: Outcome,
    /// State of the root graph in the end.
    pub state: S,
    /// Every interrupt, answered or expired, in the order in which they were raised. Those of one superstep are ordered by node
    /// and key.
    pub interrupts: Vec<OpenInterrupt>,
    /// Nodes whose results were committed, in order; those of one superstep by name. A node of a subgraph has the names of the
    /// outer nodes before it, as in `research/search`.
    pub nodes: Vec<String>,
    /// Names of the steps that were recorded in this call of [`Scenario::run`], in order.
    pub steps: Vec<String>,
    /// How much time passed by the scenario's clock.
    pub elapsed: Duration,
    /// The thread, for everything else.
    pub thread: Thread<S>,
}

impl<S: State> ScenarioEnd<S> {
    /// Returns the keys of the interrupts, in the order in which they were raised.
    pub fn asked(&self) -> Vec<&str> {
        let interrupts = self.interrupts.iter();
        interrupts
            .map(|raised| raised.interrupt.key.as_str())
            .collect()
    }
}

impl<S: State> Scenario<S> {
    /// Creates a scenario of this graph over an empty [`Memory`].
    pub fn new(graph: &Graph<S>) -> Self {
        Self {
            graph: graph.clone(),
            runtime: Runtime::builder(Memory::default()),
            clock: TestClock::new(),
            context: None,
            inputs: Vec::new(),
            script: Script::default(),
        }
    }

    /// Starts a run with an input. Called again, it starts the next run when the one before has stopped, as in a conversation.
    #[must_use]
    pub fn start(mut self, input: S::Update) -> Self {
        self.inputs.push(input);
        self
    }

    /// Answers an interrupt at once. `name` is its key or its kind. Each answer is used once; several of one name are used in
    /// their order.
    ///
    /// # Panics
    /// If the answer cannot be stored as JSON.
    #[must_use]
    #[track_caller]
    pub fn answer(self, name: impl Into<String>, answer: impl Serialize) -> Self {
        self.answer_after(Duration::ZERO, name, answer)
    }

    /// Answers an interrupt, as [`Scenario::answer`] does, this long after it was raised. If its deadline passes first, that counts.
    ///
    /// # Panics
    /// If the answer cannot be stored as JSON.
    #[must_use]
    #[track_caller]
    pub fn answer_after(
        self,
        delay: Duration,
        name: impl Into<String>,
        answer: impl Serialize,
    ) -> Self {
        self.scripted(name.into(), Reply::Answer(json(answer), delay))
    }

    /// Answers every interrupt of this key or kind for which no other answer is left, however many there are, or none.
    #[must_use]
    pub fn answer_with<A: Serialize>(
        mut self,
        name: impl Into<String>,
        answer: impl Fn(&InterruptRecord) -> A + Send + Sync + 'static,
    ) -> Self {
        self.script.standing.push(StandingAnswer {
            name: name.into(),
            answer: Box::new(move |interrupt| json(answer(interrupt))),
        });
        self
    }

    /// Lets the deadline of an interrupt pass. `name` is its key or its kind.
    #[must_use]
    pub fn expire(self, name: impl Into<String>) -> Self {
        self.scripted(name.into(), Reply::Expire)
    }

    /// Sets the checkpointer. Default: an empty [`Memory`].
    #[must_use]
    pub fn checkpointer(self, store: impl Checkpointer) -> Self {
        self.runtime(Runtime::builder(store))
    }

    /// Sets the runtime, for example one with a long-term store. Its clock and its lease are replaced: the clock is the scenario's,
    /// and a scenario is the only process.
    #[must_use]
    pub fn runtime(mut self, runtime: RuntimeBuilder) -> Self {
        self.runtime = runtime;
        self
    }

    /// Sets the clock. Default: one of its own.
    #[must_use]
    pub fn clock(mut self, clock: &TestClock) -> Self {
        self.clock = clock.clone();
        self
    }

    /// Sets the context of the runs, which nodes read with [`NodeCx::context`](crate::NodeCx::context).
    ///
    /// # Panics
    /// If it cannot be stored as JSON.
    #[must_use]
    #[track_caller]
    pub fn context(mut self, context: impl Serialize) -> Self {
        self.context = Some(json(context));
        self
    }

    /// Runs the scenario to its end. Fails if a node asks for something that the script does not answer, or if the script answers
    /// something that no node asks.
    pub async fn run(self) -> Result<ScenarioEnd<S>, ScenarioError> {
        let began = self.clock.now();
        let steps = Arc::new(Mutex::new(Vec::new()));
        let runtime = self.runtime.observed(self.clock.clock(), |inner| {
            let steps = steps.clone();
            Arc::new(ObservedStore { inner, steps })
        });
        let runtime = runtime.build();
        let mut thread = runtime.thread(&self.graph, THREAD)?;
        if let Some(context) = &self.context {
            thread = thread.with_context(context)?;
        }
        let people = People {
            runtime: &runtime,
            thread: &thread,
            clock: &self.clock,
            script: &self.script,
        };
        let first = current_input(&thread, self.inputs.len()).await?;
        let mut stopped = None;
        for (at, input) in self.inputs.into_iter().enumerate().skip(first) {
            let started = thread.start_once(&run_key(at), input).await?;
            let run = people.answer_all(started).await?;
            let has_finished = run.outcome == Outcome::Finished;
            stopped = Some(run);
            // The next input would hide how this run ended.
            if !has_finished {
                break;
            }
        }
        let RunResult { outcome, state, .. } = stopped.ok_or(ScenarioError::NoInput)?;
        let interrupts = people.interrupts().await?;
        let answers = self.script.unused(&interrupts);
        if !answers.is_empty() {
            let outcome = format!("{outcome:?}");
            return Err(ScenarioError::NotAsked { answers, outcome });
        }
        let elapsed = self.clock.now().0.saturating_sub(began.0).unsigned_abs();
        let nodes = committed_nodes(&thread).await?;
        let steps = lock(&steps).clone();
        Ok(ScenarioEnd {
            outcome,
            state,
            interrupts,
            nodes,
            steps,
            elapsed: Duration::from_millis(elapsed),
            thread,
        })
    }

    fn scripted(mut self, name: String, reply: Reply) -> Self {
        self.script.once.push(ScriptedAnswer { name, reply });
        self
    }
}

impl<S: State> fmt::Debug for Scenario<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario")
            .field("graph", &self.graph.name())
            .field("inputs", &self.inputs.len())
            .finish_non_exhaustive()
    }
}

/// The people of a scenario, who answer when they are asked.
struct People<'a, S: State> {
    runtime: &'a Runtime,
    thread: &'a Thread<S>,
    clock: &'a TestClock,
    script: &'a Script,
}

impl<S: State> People<'_, S> {
    /// Answers until the run stops for another reason.
    async fn answer_all(&self, mut stopped: RunResult<S>) -> Result<RunResult<S>, ScenarioError> {
        while let Outcome::Paused(_) = stopped.outcome {
            let interrupts = self.interrupts().await?;
            // A pause with nothing open: another process stored the answer, and was killed before it could resume.
            let Some((at, due)) = self.script.next(&interrupts)? else {
                stopped = self.thread.resume().await?;
                continue;
            };
            let wait = due.at().0.saturating_sub(self.clock.now().0);
            if wait > 0 {
                let wait = Duration::from_millis(wait.unsigned_abs());
                self.clock.advance(wait).await;
            }
            let resumed = match due {
                Due::Answer(answer, _) => {
                    let id = interrupts[at].interrupt.id;
                    self.thread.answer(id, answer).await?
                }
                Due::Deadline(_) => {
                    self.runtime.expire_interrupts().await?;
                    None
                }
            };
            stopped = match resumed {
                Some(resumed) => resumed,
                None => self.stopped().await?,
            };
        }
        Ok(stopped)
    }

    async fn stopped(&self) -> Result<RunResult<S>, DriveError> {
        match self.thread.result().await? {
            Some(stopped) => Ok(stopped),
            None => self.thread.recover().await,
        }
    }

    /// Every interrupt of the thread so far, in the order in which they were raised.
    async fn interrupts(&self) -> Result<Vec<OpenInterrupt>, ScenarioError> {
        let rows = self.thread.all_interrupts().await?;
        let mut all = open_interrupts(rows)
            .map_err(|error| DriveError::from(CheckpointError::from(error)))?;
        all.sort_by_key(|raised| {
            let OpenInterrupt { interrupt, row } = raised;
            let name = interrupt.node.to_string();
            (
                row.seq,
                interrupt.frame.to_string(),
                name,
                interrupt.key.clone(),
            )
        });
        Ok(all)
    }
}

/// The input whose run is the thread's last one: where a scenario over a store that already has its thread continues.
async fn current_input<S: State>(thread: &Thread<S>, inputs: usize) -> Result<usize, DriveError> {
    let Some(state) = thread.state().await? else {
        return Ok(0);
    };
    let is_current = |at: &usize| RunId::of_key(thread.id(), &run_key(*at)) == state.run.run;
    Ok((0..inputs).rev().find(is_current).unwrap_or(0))
}

fn run_key(input: usize) -> String {
    format!("input {input}")
}

async fn committed_nodes<S: State>(thread: &Thread<S>) -> Result<Vec<String>, DriveError> {
    let (mut nodes, mut after) = (Vec::new(), Seq(0));
    loop {
        let page = thread.history(after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(nodes);
        };
        after = last.seq;
        let changes = page.into_iter().flat_map(|past| past.entry.changes);
        for change in changes {
            let Change::FrameAdvanced(advanced) = change else {
                continue;
            };
            let outer = advanced.frame.segments().iter();
            let outer: String = outer.map(|segment| format!("{}/", segment.node)).collect();
            let written = advanced.writes.iter();
            nodes.extend(written.map(|write| format!("{outer}{}", write.node)));
        }
    }
}

#[track_caller]
fn json(value: impl Serialize) -> Json {
    serde_json::to_value(value).expect("it can be stored as JSON")
}

/// Name of the thread.
const THREAD: &str = "scenario";
/// Number of entries that are read at once.
const PAGE: u32 = 1_000;
