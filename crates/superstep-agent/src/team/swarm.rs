//! A swarm: agents that share one conversation and hand it to each other.

use std::fmt;

use superstep_core::{END, Goto, Graph, START};

use crate::agent::{AgentBuilder, AgentError, AgentState, Conversation, TOOLS, unanswered_calls};
use crate::team::{active_agent, handed_over};

/// Entry point for building graphs of agents that hand one conversation to each other.
///
/// Every agent sees the whole conversation. The next message of a person goes to the agent that answered last.
///
/// ```
/// use std::sync::Arc;
///
/// use superstep_agent::{Agent, Swarm};
/// use superstep_llm::Script;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = Arc::new(Script::parse("demo", r#"{"replies": []}"#)?);
/// let sales = Agent::builder(model.clone())
///     .system("You sell bicycles.")
///     .handoff("repairs", "For everything that is broken.");
/// let repairs = Agent::builder(model)
///     .system("You repair bicycles.")
///     .handoff("sales", "For everything that can be bought.");
/// let shop = Swarm::builder().agent("sales", sales).agent("repairs", repairs).build()?;
/// # let _ = shop;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "create_swarm")]
#[derive(Debug)]
pub struct Swarm;

impl Swarm {
    /// Returns a builder for a swarm.
    pub fn builder() -> SwarmBuilder {
        SwarmBuilder {
            name: "swarm".to_owned(),
            agents: Vec::new(),
        }
    }
}

/// Builder of a swarm's graph.
pub struct SwarmBuilder {
    name: String,
    agents: Vec<(String, AgentBuilder)>,
}

impl SwarmBuilder {
    /// Sets the name of the graph. Default: `swarm`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Adds an agent. Its [handoffs](AgentBuilder::handoff) name other agents of the swarm. The first agent that is added
    /// answers first.
    #[must_use]
    pub fn agent(mut self, name: impl Into<String>, agent: AgentBuilder) -> Self {
        self.agents.push((name.into(), agent));
        self
    }

    /// Builds the graph over [`AgentState`].
    pub fn build(self) -> Result<Graph<AgentState>, AgentError> {
        self.build_over()
    }

    /// Builds the graph over your own state.
    pub fn build_over<S: Conversation>(self) -> Result<Graph<S>, AgentError> {
        let names: Vec<String> = self.agents.iter().map(|(name, _)| name.clone()).collect();
        let mut graph = Graph::builder(self.name);
        for (name, agent) in self.agents {
            let targets = agent.handoff_targets().to_vec();
            let retry = agent.retry_policy();
            let (model, calls) = agent.name(name.as_str()).label(name.as_str()).nodes()?;
            let tools = format!("{name}-{TOOLS}");
            let (to_tools, back) = (tools.clone(), name.clone());
            let mut after_tools = targets.clone();
            after_tools.push(name.clone());
            graph = graph
                .node(name.as_str(), model)
                .node(tools.as_str(), calls)
                .route(name.as_str(), &[tools.as_str(), END], move |state: &S| {
                    match unanswered_calls(state.messages()).is_empty() {
                        true => Goto::node(END),
                        false => Goto::node(to_tools.as_str()),
                    }
                })
                .route(tools.as_str(), &after_tools, move |state: &S| {
                    let to = handed_over(state.messages());
                    let to = to.filter(|to| targets.iter().any(|target| target == to));
                    Goto::node(to.unwrap_or(&back))
                });
            if let Some(policy) = retry {
                graph = graph.retry(name.as_str(), policy);
            }
        }
        let first = names.first().cloned().unwrap_or_default();
        let known = names.clone();
        let graph = graph.route(START, &names, move |state: &S| {
            let active = active_agent(state.messages());
            // An agent of an earlier version of the program may be gone.
            let active = active.filter(|active| known.iter().any(|name| name == active));
            Goto::node(active.unwrap_or(&first))
        });
        Ok(graph.build()?)
    }
}

impl fmt::Debug for SwarmBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.agents.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("SwarmBuilder")
            .field("name", &self.name)
            .field("agents", &names)
            .finish()
    }
}
