//! Node `answerQuestion`: answers one question with its own model call, in parallel with the others.

use std::sync::Arc;

use superstep::trace::SpanNames;
use superstep::{Command, Node, NodeCx, NodeError};
use superstep_llm::Message;

use super::super::deps::DocsDeps;
use super::super::evidence;
use super::super::state::{AgentWorkflowState, AgentWorkflowStateUpdate, ParallelAnswer};
use super::super::tools::research;
use super::Question;
use super::asking::Ask;

pub(super) struct AnswerQuestion {
    pub(super) deps: Arc<DocsDeps>,
}

impl Node<AgentWorkflowState, Question> for AnswerQuestion {
    async fn run(
        &self,
        asked: Question,
        cx: NodeCx,
    ) -> Result<Command<AgentWorkflowState>, NodeError> {
        let label = format!("{}-Answer-{}", asked.agent, asked.iteration);
        cx.emit(SpanNames {
            node_span: Some(label.clone()),
            graph_span: None,
        })?;
        let agent = self.deps.agent_of(&asked.agent)?;
        let tree = self.deps.tree(cx.thread(), &asked.context).await?;
        let found = evidence::of([asked.question.as_str()], &tree);
        let ask = Ask {
            deps: &self.deps,
            model_name: &asked.model_name,
            cx: &cx,
            label,
            parallel: asked.context.parallel,
        };
        let messages = vec![
            Message::system(agent.build_system_prompt(&asked.context)),
            Message::user(self.deps.prompts.answer(&asked.question, &found.text)),
        ];
        let found_out = match asked.tools {
            true => research(&ask, messages, &tree).await?,
            false => ask.words(messages).await?.map(|said| (said, Vec::new())),
        };
        // At a spending limit the question stays unanswered. The refinement answers it, and asks about the limit itself.
        let Some((said, mut reads)) = found_out else {
            return Ok(AgentWorkflowStateUpdate::default().into());
        };
        reads.extend(found.reads);
        Ok(AgentWorkflowStateUpdate::default()
            .answers(ParallelAnswer {
                iteration: asked.iteration,
                question: asked.question,
                answer: said.value,
            })
            .reads_all(reads)
            .calls_all(said.calls)
            .warnings_all(said.warnings)
            .into())
    }
}
