//! The ready-made agent loop: call the model, call the tools it requests, repeat until it requests none.
//!
//! Two nodes, `model` and `tools`, so the model's decision is committed before a tool is called.

mod answer_form;
mod event;
mod history;
mod hooks;
mod model_node;
mod models;
pub(crate) mod spending;
mod state;
mod tool_node;

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use superstep_core::error::BuildError;
use superstep_core::{END, Graph, RetryPolicy, START};
use superstep_llm::Model;
use superstep_llm::structured::NotFlat;

use answer_form::AnswerForm;
pub use event::AgentEvent;
pub use history::{SummarizeHistory, TrimHistory};
pub use hooks::{Go, HookCx, Hooks};
pub use model_node::ModelNode;
use model_node::Sampling;
use models::Models;
pub use spending::Spending;
pub(crate) use state::labels_of;
pub use state::{
    AgentState, AgentStateUpdate, Conversation, EndReason, Spent, StructuredAnswer, Turn,
    labels_of_last_answer, unanswered_calls, with_all_results,
};
pub use tool_node::ToolNode;
pub(crate) use tool_node::steps_in_any_order;

use crate::team::{handed_over, handoff_tool};
use crate::tool::{Tool, ToolFault, Tools};

/// Name of the node that calls the model.
pub const MODEL: &str = "model";
/// Name of the node that calls the tools.
pub const TOOLS: &str = "tools";

/// Entry point for building graphs of a model and its tools.
#[derive(Debug)]
pub struct Agent;

impl Agent {
    /// Returns a builder for an agent with this model.
    #[doc(alias = "create_react_agent")]
    #[doc(alias = "create_agent")]
    pub fn builder(model: Arc<dyn Model>) -> AgentBuilder {
        AgentBuilder {
            name: "agent".to_owned(),
            label: MODEL.to_owned(),
            models: Models::new(model),
            tools: Vec::new(),
            handoffs: Vec::new(),
            system: None,
            answer: None,
            step_limit: STEP_LIMIT,
            sampling: Sampling::default(),
            parallel: None,
            hooks: Vec::new(),
            spending: None,
            retry: None,
        }
    }
}

/// Builder of an agent's graph.
pub struct AgentBuilder {
    name: String,
    label: String,
    models: Models,
    tools: Vec<Tool>,
    /// Names of the agents that this one may hand over to.
    handoffs: Vec<String>,
    system: Option<String>,
    answer: Option<AnswerForm>,
    step_limit: u32,
    sampling: Sampling,
    parallel: Option<usize>,
    hooks: Vec<Arc<dyn Hooks>>,
    spending: Option<Spending>,
    retry: Option<RetryPolicy>,
}

/// Error from [`AgentBuilder::build`]: every problem of the tools, or of the graph, each with its own code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The set of tools is invalid.
    #[error("the tools of agent `{agent}` have {} fault(s):{}", .faults.len(), list(.faults))]
    Tools {
        /// Name of the agent.
        agent: String,
        /// Every problem found, not only the first.
        faults: Vec<ToolFault>,
    },
    /// An agent has a handoff, and nothing in its graph leads there.
    #[error(
        "`{agent}` has a handoff, and a supervisor and its agents have nowhere to hand over to; build a `Swarm` instead"
    )]
    HandoffToNobody {
        /// Name of the agent.
        agent: String,
    },
    /// The schema of the type of [`AgentBuilder::answers_with`] is one that some servers would not enforce.
    #[error("the answer of agent `{agent}` cannot be structured: {source}")]
    Answer {
        /// Name of the agent.
        agent: String,
        /// What is wrong with the schema.
        source: NotFlat,
    },
    /// The graph is invalid.
    #[error(transparent)]
    Graph(#[from] BuildError),
}

fn list(faults: &[ToolFault]) -> String {
    let line = |fault: &ToolFault| format!("\n  - {fault} [{}]", fault.code());
    faults.iter().map(line).collect()
}

impl AgentBuilder {
    /// Sets the name of the graph. Default: `agent`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Adds a model that a run can choose by this name instead of the agent's own: its context names it in the field `model`, as
    /// in `thread.with_context(json!({ "model": "fast" }))`. A run whose context has no such field uses the agent's own model. A
    /// name that was not declared fails the run before it calls any model. An agent without choices does not read the context.
    #[must_use]
    pub fn model_choice(mut self, name: impl Into<String>, model: Arc<dyn Model>) -> Self {
        self.models.add(name.into(), model);
        self
    }

    /// Adds tools that the model may call.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Lets the model hand the conversation over to another agent, by a tool `transfer_to_AGENT` with this description. The graph
    /// ends after a handoff; [`handed_over`] tells the graph around it where to go on. [`Swarm`](crate::Swarm) does that for
    /// you.
    #[must_use]
    pub fn handoff(mut self, agent: &str, description: &str) -> Self {
        self.tools.push(handoff_tool(agent, description));
        self.handoffs.push(agent.to_owned());
        self
    }

    pub(crate) fn retry_policy(&self) -> Option<RetryPolicy> {
        self.retry
    }

    pub(crate) fn handoff_targets(&self) -> &[String] {
        &self.handoffs
    }

    /// Sets the name of the model's node in requests, scripts and traces. Default: `model`.
    #[must_use]
    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Sets the system prompt. Not part of the state, so a new version of the program takes effect on existing threads.
    #[must_use]
    pub fn system(mut self, instructions: impl Into<String>) -> Self {
        self.system = Some(instructions.into());
        self
    }

    /// Makes the agent end with an answer of type `T`, which [`AgentState::answer_as`] reads from the state; your own state finds
    /// it in [`Turn::structured_answer`].
    ///
    /// When the model answers without tool calls, the agent asks it once more, for that answer as JSON: servers that constrain an
    /// answer to a schema cannot offer tools at the same time. An agent without tools asks only once, with the schema, and so
    /// does the last call of the [step limit](Self::step_limit). If the JSON does not fit, the model is told why and asked once
    /// more; if that fails, too, the state has no such answer and [`EndReason::InvalidAnswer`]. The JSON is not streamed.
    #[doc(alias = "response_format")]
    #[doc(alias = "with_structured_output")]
    #[must_use]
    pub fn answers_with<T>(mut self) -> Self
    where
        T: JsonSchema + DeserializeOwned + Serialize + 'static,
    {
        self.answer = Some(AnswerForm::of::<T>());
        self
    }

    /// Limits the model calls per message of a person. Default: 25. The last call forbids tools, so the model must answer
    /// with what it has; the state then has [`EndReason::StepLimit`].
    #[must_use]
    pub fn step_limit(mut self, model_calls: u32) -> Self {
        self.step_limit = model_calls.max(1);
        self
    }

    /// Limits the length of one answer, in tokens. Default: the provider's.
    #[must_use]
    pub fn tokens_max(mut self, tokens: u32) -> Self {
        self.sampling.tokens_max = Some(tokens);
        self
    }

    /// Sets the sampling temperature of every request. Default: the provider's.
    #[must_use]
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.sampling.temperature = Some(temperature);
        self
    }

    /// Sets the probability of nucleus sampling of every request. Default: the provider's.
    #[must_use]
    pub fn top_p(mut self, probability: f64) -> Self {
        self.sampling.top_p = Some(probability);
        self
    }

    /// Adds a text at which the model stops. The answer does not contain it.
    #[must_use]
    pub fn stop(mut self, text: impl Into<String>) -> Self {
        self.sampling.stop.push(text.into());
        self
    }

    /// Sets the sampling seed of every request, for servers that support reproducible output. Default: none.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.sampling.seed = Some(seed);
        self
    }

    /// Limits how many tool calls of one message are in progress at once. With 1, the agent makes one call after the other, in
    /// the order in which the model requested them. A call that waits for a person counts as in progress. Default: all calls of
    /// a message.
    #[doc(alias = "parallel_tool_calls")]
    #[doc(alias = "max_concurrency")]
    #[must_use]
    pub fn parallel_tools(mut self, calls_max: usize) -> Self {
        self.parallel = Some(calls_max.max(1));
        self
    }

    /// Adds hooks, which inspect, change or refuse requests and results. Several run in the order they were added.
    #[must_use]
    pub fn hooks(mut self, hooks: impl Hooks) -> Self {
        self.hooks.push(Arc::new(hooks));
        self
    }

    /// Sets spending limits. At a limit the agent interrupts for a person. Default: no limits.
    #[must_use]
    pub fn spending(mut self, spending: Spending) -> Self {
        self.spending = Some(spending);
        self
    }

    /// Sets when and how often the model node is retried after a failure. Default: one attempt, because models that
    /// [`superstep_llm::open`] returns retry by themselves.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// Builds the graph over [`AgentState`].
    pub fn build(self) -> Result<Graph<AgentState>, AgentError> {
        self.build_over()
    }

    /// Builds the graph over your own state.
    pub fn build_over<S: Conversation>(self) -> Result<Graph<S>, AgentError> {
        let (name, retry) = (self.name.clone(), self.retry);
        let hands_over = !self.handoffs.is_empty();
        let (model, calls) = self.nodes()?;
        let mut graph = Graph::builder(name)
            .node(MODEL, model)
            .node(TOOLS, calls)
            .edge(START, MODEL)
            .route(MODEL, &[TOOLS, END], |state: &S| {
                match unanswered_calls(state.messages()).is_empty() {
                    true => END,
                    false => TOOLS,
                }
            });
        graph = match hands_over {
            false => graph.edge(TOOLS, MODEL),
            true => graph.route(TOOLS, &[MODEL, END], |state: &S| {
                match handed_over(state.messages()).is_some() {
                    true => END,
                    false => MODEL,
                }
            }),
        };
        if let Some(policy) = retry {
            graph = graph.retry(MODEL, policy);
        }
        Ok(graph.build()?)
    }

    /// Builds the node that calls the model and the node that calls the tools.
    pub(crate) fn nodes(self) -> Result<(ModelNode, ToolNode), AgentError> {
        if let Some(Err(source)) = self.answer.as_ref().map(AnswerForm::check) {
            let agent = self.name;
            return Err(AgentError::Answer { agent, source });
        }
        let tools = Tools::new(self.tools).map_err(|faults| AgentError::Tools {
            agent: self.name,
            faults,
        })?;
        let mut calls = ToolNode::new(tools.clone());
        calls.hooks.clone_from(&self.hooks);
        calls.parallel = self.parallel;
        let model = ModelNode {
            label: self.label,
            models: self.models,
            tools,
            system: self.system,
            answer: self.answer,
            step_limit: self.step_limit,
            sampling: self.sampling,
            hooks: self.hooks,
            spending: self.spending,
        };
        Ok((model, calls))
    }
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder")
            .field("name", &self.name)
            .field("models", &self.models)
            .field("tools", &self.tools)
            .field("step_limit", &self.step_limit)
            .finish_non_exhaustive()
    }
}

const STEP_LIMIT: u32 = 25;
