//! A durable function as a graph: no state struct, no edges.
//!
//! The graph has one node, whose steps are recorded. So everything that holds for graphs holds for a workflow: it pauses at an
//! interrupt, survives a crash, streams, and is listed and rewound like any other thread.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::channel::{Channel, ChannelKind, ChannelSet};
use crate::command::Command;
use crate::error::{BuildError, NodeError};
use crate::graph::Graph;
use crate::ids::{END, START};
use crate::node::NodeCx;
use crate::state::{State, StateUpdate, View, present};

/// Makes a graph of one async function, whose [steps](NodeCx::step) run once and whose [interrupts](NodeCx::interrupt) wait for
/// a person.
///
/// ```
/// use superstep_core::{Interrupt, NodeCx, NodeError, workflow};
///
/// async fn write(topic: &str) -> Result<String, NodeError> {
///     Ok(format!("An essay about {topic}."))
/// }
///
/// async fn essay(topic: String, cx: NodeCx) -> Result<String, NodeError> {
///     let draft = cx.step("write", || write(&topic)).await?;
///     let correction: Option<String> = cx.interrupt(Interrupt::new("correct", &draft)).await?;
///     Ok(correction.unwrap_or(draft))
/// }
///
/// let graph = workflow("essay", essay)?;
/// # Ok::<(), superstep_core::error::BuildError>(())
/// ```
///
/// A thread of it starts with the argument, `thread.start("cats".to_owned().into())`, and its result has the return value in
/// `result.state.output`. **Code outside of steps runs again** when the function is resumed after a pause, a crash or a retry. A
/// function that does many things in a row stores one record per step and no superstep between them; write a graph where
/// parts run in parallel, are retried on their own, or should be seen as a picture.
#[doc(alias = "entrypoint")]
#[doc(alias = "task")]
pub fn workflow<I, O, F, Fut>(
    name: &str,
    function: F,
) -> Result<Graph<WorkflowState<I, O>>, BuildError>
where
    I: WorkflowValue,
    O: WorkflowValue,
    F: Fn(I, NodeCx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, NodeError>> + Send + 'static,
{
    let function = Arc::new(function);
    let node = move |state: View<WorkflowState<I, O>>, cx: NodeCx| {
        let function = function.clone();
        async move {
            let input = state.input.clone().ok_or_else(|| {
                NodeError::fatal("the workflow has no input; start it with its argument")
            })?;
            let output = Some(function(input, cx).await?);
            Ok(WorkflowUpdate {
                input: None,
                output,
            })
        }
    };
    Graph::builder(name)
        .node(name, node)
        .edge(START, name)
        .edge(name, END)
        .build()
}

/// What a workflow can take and return: anything that serde can store and read back.
pub trait WorkflowValue: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {}

impl<T: Clone + Serialize + DeserializeOwned + Send + Sync + 'static> WorkflowValue for T {}

/// State of a [`workflow`]: its argument and its return value.
// `present`, because `null` is a value of some types: a function that returned `()` has returned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    bound = "I: Serialize + DeserializeOwned, O: Serialize + DeserializeOwned"
)]
pub struct WorkflowState<I, O> {
    /// Argument of the function; `None` before the first run.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub input: Option<I>,
    /// What the function returned; `None` until it has.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub output: Option<O>,
}

/// Update of a [`WorkflowState`]. Converts from the argument of the function.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    bound = "I: Serialize + DeserializeOwned, O: Serialize + DeserializeOwned"
)]
pub struct WorkflowUpdate<I, O> {
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    input: Option<I>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    output: Option<O>,
}

impl<I, O> From<I> for WorkflowUpdate<I, O> {
    fn from(input: I) -> Self {
        Self {
            input: Some(input),
            output: None,
        }
    }
}

impl<I, O> Default for WorkflowState<I, O> {
    fn default() -> Self {
        Self {
            input: None,
            output: None,
        }
    }
}

impl<I, O> Default for WorkflowUpdate<I, O> {
    fn default() -> Self {
        Self {
            input: None,
            output: None,
        }
    }
}

impl<I: WorkflowValue, O: WorkflowValue> From<WorkflowUpdate<I, O>>
    for Command<WorkflowState<I, O>>
{
    fn from(update: WorkflowUpdate<I, O>) -> Self {
        Command::update(update)
    }
}

const INPUT: u32 = 0;
const OUTPUT: u32 = 1;

// Keeps the compiler from suggesting this type when a struct lacks `#[derive(State)]`.
#[diagnostic::do_not_recommend]
impl<I: WorkflowValue, O: WorkflowValue> StateUpdate for WorkflowUpdate<I, O> {
    fn written(&self) -> ChannelSet {
        ChannelSet::EMPTY
            .with(INPUT, self.input.is_some())
            .with(OUTPUT, self.output.is_some())
    }

    fn overwritten(&self) -> ChannelSet {
        ChannelSet::EMPTY
    }

    fn discard(&mut self, channels: ChannelSet) {
        if channels.has(INPUT) {
            self.input = None;
        }
        if channels.has(OUTPUT) {
            self.output = None;
        }
    }
}

#[diagnostic::do_not_recommend]
impl<I: WorkflowValue, O: WorkflowValue> State for WorkflowState<I, O> {
    type Update = WorkflowUpdate<I, O>;

    const VERSION: u32 = 1;

    const CHANNELS: &'static [Channel] = &[
        Channel {
            name: "input",
            kind: ChannelKind::Last,
        },
        Channel {
            name: "output",
            kind: ChannelKind::Last,
        },
    ];

    fn apply(&mut self, update: Self::Update) {
        if let Some(input) = update.input {
            // A run that begins with another argument has not returned yet, whatever the one before returned.
            *self = Self {
                input: Some(input),
                output: None,
            };
        }
        if let Some(output) = update.output {
            self.output = Some(output);
        }
    }
}
