//! Entry points: `execute(context, config, …)` starts or recovers the workflow of all requested agents, or of one alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, bail};
use superstep::{AnyRunResult, AnyThread, Outcome, Runtime};

use super::super::begin;
use super::super::deps::DocsDeps;
use super::super::state::{
    AgentContext, AgentResult, AgentTask, AgentWorkflowConfig, DocsStateUpdate,
};
use super::graph;

/// The workflow of several agents on one thread. `archie docs` runs this.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DocumentationWorkflow {
    /// Names of the agents to run.
    pub wanted: Vec<String>,
    /// Name of the model.
    pub model_name: String,
    /// Folder that the pages are written to.
    pub output: String,
    /// Clarity thresholds learned from earlier runs, by agent.
    pub thresholds: BTreeMap<String, u32>,
    /// Number of each agent's last recorded run before this one.
    pub times: BTreeMap<String, u64>,
}

impl DocumentationWorkflow {
    /// Runs the agents on a thread until they are done or a person is asked. Called again for the same thread, recovers or
    /// resumes its run.
    pub async fn execute(
        &self,
        context: &AgentContext,
        config: &AgentWorkflowConfig,
        thread: &dyn AnyThread,
    ) -> anyhow::Result<AnyRunResult> {
        let input = DocsStateUpdate::default()
            .root(context.root.clone())
            .output(self.output.clone())
            .model_name(self.model_name.clone())
            .options(context.options.clone())
            .thresholds(self.thresholds.clone())
            .times(self.times.clone())
            .config(config.clone())
            .parallel(context.parallel)
            .wanted(self.wanted.clone());
        Ok(thread
            .start_or_recover(serde_json::to_value(input)?)
            .await?)
    }
}

/// Where [`execute`] runs a single agent.
#[derive(Debug, Clone)]
pub struct RunnableConfig {
    /// Runtime that drives the run.
    pub runtime: Runtime,
    /// Id of the thread.
    pub thread: String,
    /// Name of the model.
    pub model_name: String,
}

/// Runs the workflow of one agent alone, with the input that it also gets from [`DocumentationWorkflow::execute`]. Called again
/// for the same thread, recovers or resumes its run. Returns an error if the run stops before it finishes, for example at an
/// interrupt.
pub async fn execute(
    agent: &str,
    deps: &Arc<DocsDeps>,
    context: AgentContext,
    config: AgentWorkflowConfig,
    runnable: &RunnableConfig,
) -> anyhow::Result<AgentResult> {
    let graph = graph(deps)?;
    let thread = runnable.runtime.thread(&graph, &runnable.thread)?;
    let input = begin(AgentTask {
        agent: agent.to_owned(),
        model_name: runnable.model_name.clone(),
        context,
        config,
        ..AgentTask::default()
    });
    let stopped = thread.start_or_recover(input).await?;
    match stopped.outcome {
        Outcome::Finished => stopped.state.result.context("it ended without a result"),
        Outcome::Paused(_) => bail!("it waits for an answer on thread {}", runnable.thread),
        other => bail!("it ended early: {other:?}"),
    }
}
