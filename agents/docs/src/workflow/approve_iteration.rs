//! Node `approveIteration`: the gate. A person sees the scores, the questions of the next round and its estimated cost, and
//! decides whether to refine again.

use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::{Command, Interrupt, Node, NodeCx, NodeError, View};

use super::super::state::{AgentWorkflowState, AgentWorkflowStateUpdate, Round};
use super::name_span;

pub(super) struct ApproveIteration;

/// A person's answer at the gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// Whether to refine again. In JSON, this field is called `type`.
    #[serde(rename = "type")]
    pub go: GateChoice,
    /// Questions to add to the round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Numbers of the questions to delete, from 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delete: Vec<u32>,
}

/// Whether to refine again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GateChoice {
    /// Refine again.
    Accept,
    /// Stop, and keep the best version so far.
    Skip,
}

impl Node<AgentWorkflowState> for ApproveIteration {
    async fn run(
        &self,
        state: View<AgentWorkflowState>,
        cx: NodeCx,
    ) -> Result<Command<AgentWorkflowState>, NodeError> {
        name_span(&state, "ApproveIteration", &cx)?;
        let key = format!("iteration-{}", state.iteration + 1);
        let question = Interrupt::new(key, request(&state))
            .kind("gate")
            .schema(schema());
        let approval: Approval = cx.interrupt(question).await?;
        let update = AgentWorkflowStateUpdate::default();
        if approval.go == GateChoice::Skip {
            return Ok(update.skipped(true).into());
        }
        let kept = (1_u32..).zip(&state.self_questions);
        let kept = kept.filter(|(number, _)| !approval.delete.contains(number));
        let mut questions: Vec<String> = kept.map(|(_, question)| question.clone()).collect();
        let added = approval
            .add
            .iter()
            .map(|question| question.trim().to_owned());
        questions.extend(added.filter(|question| !question.is_empty()));
        let mut rounds = state.rounds.clone();
        if let Some(round) = rounds.last_mut() {
            round.questions.clone_from(&questions);
        } else {
            rounds.push(Round {
                iteration: state.iteration + 1,
                questions: questions.clone(),
            });
        }
        Ok(update
            .self_questions(questions)
            .overwrite_rounds(rounds)
            .into())
    }
}

/// Returns the interrupt's request. It holds everything that a person needs who has not followed the run.
fn request(state: &AgentWorkflowState) -> serde_json::Value {
    let mut usage = superstep_llm::Usage::default();
    let mut cost = superstep_llm::Cost::NanoDollars(0);
    for call in &state.calls {
        usage += call.usage.unwrap_or_default();
        cost = cost.plus(call.cost);
    }
    let calls = match state.config.parallel_answers {
        true => state.self_questions.len() + 3,
        false => 3,
    };
    let so_far = state.calls.len().max(1) as u64;
    let trend: Vec<u32> = state.scores.iter().map(|scored| scored.overall).collect();
    json!({
        "agent": state.agent,
        "iteration": state.iteration + 1,
        "maxIterations": state.config.max_iterations,
        "scores": trend,
        "threshold": state.config.clarity_threshold,
        "questions": state.self_questions,
        "missingInformation": state.missing_information,
        "spent": { "calls": state.calls.len(), "tokens": usage.total_tokens(), "cost": cost.to_string() },
        "estimate": {
            "calls": calls,
            "tokens": usage.total_tokens() / so_far * calls as u64,
            "cost": times(cost, calls as u64, so_far).to_string(),
        },
    })
}

fn times(cost: superstep_llm::Cost, calls: u64, so_far: u64) -> superstep_llm::Cost {
    match cost {
        superstep_llm::Cost::NanoDollars(nano) => {
            superstep_llm::Cost::NanoDollars(nano / so_far * calls)
        }
        unknown => unknown,
    }
}

fn schema() -> serde_json::Value {
    json!({
        "type": "object",
        "properties": {
            "type": { "type": "string", "enum": ["accept", "skip"] },
            "add": { "type": "array", "items": { "type": "string", "minLength": 1 } },
            "delete": { "type": "array", "items": { "type": "integer", "minimum": 1 } }
        },
        "required": ["type"],
        "additionalProperties": false
    })
}
