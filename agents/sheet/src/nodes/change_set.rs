//! The node that checks the result and has the person review it.

use serde_json::json;
use superstep::{Command, Interrupt, Node, NodeCx, NodeError, View};
use superstep_agent::ChatMessage;
use superstep_llm::Message;

use super::super::changes::Verdict;
use super::super::review::{self, Review};
use super::super::state::{GraphState, GraphStateUpdate, Stopped};
use super::super::tools::ToolDeps;
use super::labels;

/// Checks the result, and interrupts for the person's verdict.
pub(in super::super) struct ChangeSetNode {
    pub(in super::super) tool_deps: ToolDeps,
}

impl Node<GraphState> for ChangeSetNode {
    async fn run(
        &self,
        state: View<GraphState>,
        cx: NodeCx,
    ) -> Result<Command<GraphState>, NodeError> {
        let review =
            review::of(&self.tool_deps.snapshots, cx.thread(), &state).map_err(NodeError::fatal)?;
        let update = GraphStateUpdate::default().checks(review.checks.clone());
        let may_go_on = state.stopped == Some(Stopped::Finished)
            && state.step < state.max_steps
            && state.recipe.is_none();
        if !review.is_well() && may_go_on && state.reopened < REOPENED_MAX {
            let message = ChatMessage::new(Message::user(review.complaint()), labels(&state));
            return Ok(update
                .messages(message)
                .reopened(state.reopened + 1)
                .stopped(None)
                .into());
        }
        if review.is_empty() {
            return Ok(update.into());
        }
        let verdict = ask_person(&review, &state, &cx).await?;
        Ok(update.verdict(Some(verdict)).into())
    }
}

/// Interrupts until the verdict can be applied to the change set.
async fn ask_person(
    review: &Review,
    state: &GraphState,
    cx: &NodeCx,
) -> Result<Verdict, NodeError> {
    let mut problem = None;
    for attempt in 1.. {
        // The key contains the snapshot, so that an answer only applies to the workbook that was shown.
        // Older versions asked with the first prefix, and did not show formats and charts.
        let prefix = match review.looks.is_empty() {
            true => "changes",
            false => "changes-and-looks",
        };
        let key = format!("{prefix}-{}-{attempt}", state.workbook.snapshot);
        let mut request = review.request();
        if let Some(problem) = problem.take() {
            request["problem"] = json!(problem);
        }
        let question = Interrupt::new(key, request)
            .kind("approval")
            .schema(Verdict::schema());
        let verdict: Verdict = cx.interrupt(question).await?;
        match verdict.apply(&review.diff, &review.looks) {
            Ok(_) => return Ok(verdict),
            Err(wrong) => problem = Some(wrong.to_string()),
        }
    }
    unreachable!("it asks until it has an answer")
}

const REOPENED_MAX: u32 = 1;
