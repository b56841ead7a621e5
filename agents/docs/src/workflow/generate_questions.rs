//! Node `generateQuestions`: three to five questions about what is missing, those about unsupported claims first, then those
//! about what the page must name.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use superstep::{Command, Node, NodeCx, NodeError, View};
use superstep_llm::Message;

use super::super::accuracy::Claim;
use super::super::completeness::is_plain_name;
use super::super::deps::DocsDeps;
use super::super::state::{AgentWorkflowState, AgentWorkflowStateUpdate, Round};
use super::asking::Ask;
use super::name_span;

pub(super) struct GenerateQuestions {
    pub(super) deps: Arc<DocsDeps>,
}

/// What the model fills in.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Gaps {
    #[schemars(length(max = 5), inner(length(max = 200)))]
    questions: Vec<String>,
    #[serde(default)]
    #[schemars(length(max = 5), inner(length(max = 200)))]
    missing: Vec<String>,
}

impl Node<AgentWorkflowState> for GenerateQuestions {
    async fn run(
        &self,
        state: View<AgentWorkflowState>,
        cx: NodeCx,
    ) -> Result<Command<AgentWorkflowState>, NodeError> {
        name_span(&state, SPAN, &cx)?;
        let agent = self.deps.agent_of(&state.agent)?;
        let ask = Ask::of(&self.deps, &state, SPAN, &cx);
        let asked: Vec<&String> = state
            .rounds
            .iter()
            .flat_map(|round| &round.questions)
            .collect();
        let prompt = self.deps.prompts.questions(
            &state.current_analysis,
            state.scores.last(),
            &state.missing_information,
            &asked,
        );
        let messages = vec![
            Message::system(agent.build_system_prompt(&state.context)),
            Message::user(prompt),
        ];
        let Some(said) = ask.form(messages, Gaps::default).await? else {
            return Ok(AgentWorkflowStateUpdate::default().budget(true).into());
        };
        let mut missing = state.missing_information.clone();
        missing.extend(
            said.value
                .missing
                .iter()
                .map(|gap| gap.trim().to_owned())
                .filter(|gap| !gap.is_empty()),
        );
        missing.dedup();
        let questions = questions(&state, said.value.questions);
        let mut update = AgentWorkflowStateUpdate::default()
            .missing_information(missing)
            .rounds(Round {
                iteration: state.iteration + 1,
                questions: questions.clone(),
            })
            .self_questions(questions)
            .calls_all(said.calls)
            .warnings_all(said.warnings);
        if let Some(why) = said.degraded {
            update = update.warnings(format!("The questions are the program's own: {why}"));
        }
        Ok(update.into())
    }
}

/// Returns the questions of the next round: first about unsupported claims and about what the page must name, then those of the
/// model, and general ones if there are fewer than three.
fn questions(state: &AgentWorkflowState, from_model: Vec<String>) -> Vec<String> {
    let misses = state
        .scores
        .last()
        .map(|scored| scored.misses.as_slice())
        .unwrap_or_default();
    let about_misses = misses
        .iter()
        .filter_map(|miss| Claim::parse(miss))
        .map(|claim| claim.question());
    let mut all: Vec<String> = about_misses.take(MISSES_MAX).collect();
    let unnamed = state.scores.last().map(|scored| scored.uncovered.iter());
    let unnamed = unnamed.into_iter().flatten();
    let plain = unnamed.filter(|subject| is_plain_name(subject));
    let about_unnamed = plain.map(|subject| {
        format!("What is `{subject}` for, and how does it belong to the rest? The text does not name it.")
    });
    all.extend(about_unnamed.take(UNNAMED_MAX));
    let asked: Vec<&String> = state
        .rounds
        .iter()
        .flat_map(|round| &round.questions)
        .collect();
    let own = OWN.iter().map(|question| (*question).to_owned());
    let mut from_model = from_model
        .into_iter()
        .map(|question| question.trim().to_owned());
    for question in from_model.by_ref() {
        let is_new =
            !question.is_empty() && !all.contains(&question) && !asked.contains(&&question);
        if is_new && all.len() < MOST {
            all.push(question);
        }
    }
    for question in own {
        if all.len() < FEWEST && !all.contains(&question) {
            all.push(question);
        }
    }
    all
}

const FEWEST: usize = 3;
const MOST: usize = 5;

/// Maximum number of questions about unsupported claims in one round, so that there is room for the model's questions.
const MISSES_MAX: usize = 3;

/// Maximum number of questions about what the text does not name in one round.
const UNNAMED_MAX: usize = 2;

/// General questions that fit every text.
const OWN: [&str; 3] = [
    "Which of the facts does the text not mention yet, and what follows from them?",
    "Which statements of the text have no file, symbol or count to support them?",
    "What would somebody who is new to this project need to know next?",
];

const SPAN: &str = "GenerateQuestions";
