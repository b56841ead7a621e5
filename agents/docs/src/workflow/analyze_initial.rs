//! Node `analyzeInitial`: asks the model for the first draft.

use std::sync::Arc;

use superstep::{Command, Node, NodeCx, NodeError, View};
use superstep_llm::Message;

use super::super::deps::DocsDeps;
use super::super::state::{AgentWorkflowState, AgentWorkflowStateUpdate};
use super::asking::Ask;
use super::name_span;

pub(super) struct AnalyzeInitial {
    pub(super) deps: Arc<DocsDeps>,
}

impl Node<AgentWorkflowState> for AnalyzeInitial {
    async fn run(
        &self,
        state: View<AgentWorkflowState>,
        cx: NodeCx,
    ) -> Result<Command<AgentWorkflowState>, NodeError> {
        name_span(&state, SPAN, &cx)?;
        let agent = self.deps.agent_of(&state.agent)?;
        let tree = self.deps.tree(&state.context).await?;
        let ask = Ask::of(&self.deps, &state, SPAN, &cx);
        let messages = vec![
            Message::system(agent.build_system_prompt(&state.context)),
            Message::user(agent.build_human_prompt(&state.context, &tree)),
        ];
        let Some(said) = ask.words(messages).await? else {
            return Ok(AgentWorkflowStateUpdate::default().budget(true).into());
        };
        Ok(AgentWorkflowStateUpdate::default()
            .current_analysis(said.value)
            .iteration(0)
            .calls_all(said.calls)
            .warnings_all(said.warnings)
            .into())
    }
}

const SPAN: &str = "InitialAnalysis";
