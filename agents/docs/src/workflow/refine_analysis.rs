//! Node `refineAnalysis`: asks the model for a better text that answers the questions of the round, with evidence from the
//! tree.

use std::sync::Arc;

use superstep::{Command, Node, NodeCx, NodeError, View};
use superstep_llm::Message;

use super::super::deps::DocsDeps;
use super::super::evidence;
use super::super::state::{AgentWorkflowState, AgentWorkflowStateUpdate, ParallelAnswer};
use super::super::tools::research;
use super::asking::Ask;
use super::name_span;

pub(super) struct RefineAnalysis {
    pub(super) deps: Arc<DocsDeps>,
}

impl Node<AgentWorkflowState> for RefineAnalysis {
    async fn run(
        &self,
        state: View<AgentWorkflowState>,
        cx: NodeCx,
    ) -> Result<Command<AgentWorkflowState>, NodeError> {
        let round = state.iteration + 1;
        let span = format!("Refinement-{round}");
        name_span(&state, &span, &cx)?;
        let agent = self.deps.agent_of(&state.agent)?;
        let tree = self.deps.tree(cx.thread(), &state.context).await?;
        let answers: Vec<&ParallelAnswer> = state
            .answers
            .iter()
            .filter(|answer| answer.iteration == round)
            .collect();
        let found = evidence::of(state.self_questions.iter().map(String::as_str), &tree);
        let ask = Ask::of(&self.deps, &state, &span, &cx);
        let refine = self.deps.prompts.refine(
            &state.current_analysis,
            &state.self_questions,
            &answers,
            &found.text,
        );
        let mut messages = vec![
            Message::system(agent.build_system_prompt(&state.context)),
            Message::user(agent.build_human_prompt(&state.context, &tree)),
            Message::user(refine),
        ];
        // Not more than the draft had, so that the page depends on what its record says.
        let bytes_max = state.sources.as_ref().map(|record| record.bytes);
        let source = ask
            .sources(&tree, &*agent, &state.config, &messages, bytes_max)
            .await?;
        if !source.text.is_empty() {
            messages.insert(1, Message::user(self.deps.prompts.sources(&source)));
        }
        // Parallel answers could already use the tools.
        let found_out = match state.config.tools && answers.is_empty() {
            true => research(&ask, messages, &tree).await?,
            false => ask.words(messages).await?.map(|said| (said, Vec::new())),
        };
        let Some((said, mut reads)) = found_out else {
            return Ok(AgentWorkflowStateUpdate::default().budget(true).into());
        };
        reads.extend(found.reads);
        let mut update = AgentWorkflowStateUpdate::default()
            .iteration(round)
            .reads_all(reads)
            .calls_all(said.calls)
            .warnings_all(said.warnings);
        let count = state.self_questions.len();
        let note = format!("Iteration {round}: Addressed {count} questions");
        update = match said.value.is_empty() {
            true => update.warnings(format!(
                "Iteration {round}: the model gave no text; the one before is kept"
            )),
            false => update
                .current_analysis(said.value)
                .cut_off(said.is_cut_off)
                .refinement_notes(note),
        };
        Ok(update.into())
    }
}
