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
        let tree = self.deps.tree(cx.thread(), &state.context).await?;
        let ask = Ask::of(&self.deps, &state, SPAN, &cx);
        let mut messages = vec![
            Message::system(agent.build_system_prompt(&state.context)),
            Message::user(agent.build_human_prompt(&state.context, &tree)),
        ];
        let source = ask
            .sources(&tree, &*agent, &state.config, &messages, None)
            .await?;
        if !source.text.is_empty() {
            messages.insert(1, Message::user(self.deps.prompts.sources(&source)));
        }
        let Some(said) = ask.words(messages).await? else {
            return Ok(AgentWorkflowStateUpdate::default().budget(true).into());
        };
        let mut warnings = said.warnings;
        let left_out = source.remark();
        warnings.extend(
            left_out.map(|left_out| format!("Not shown to the model for lack of room: {left_out}")),
        );
        Ok(AgentWorkflowStateUpdate::default()
            .current_analysis(said.value)
            .cut_off(said.is_cut_off)
            .iteration(0)
            .sources(Some(source.record))
            .calls_all(said.calls)
            .warnings_all(warnings)
            .into())
    }
}

const SPAN: &str = "InitialAnalysis";
