//! Shares questions between agents: what one agent could not answer goes to another one whose subject it is.

use std::collections::BTreeMap;

use superstep::{Command, Node, NodeCx, NodeError, View};

use super::AGENT;
use super::state::{AgentResult, ExecutionState, ExecutionStateUpdate, Finished, SharedQuestions};

pub(super) struct ShareQuestions;

impl Node<ExecutionState> for ShareQuestions {
    async fn run(
        &self,
        state: View<ExecutionState>,
        _cx: NodeCx,
    ) -> Result<Command<ExecutionState>, NodeError> {
        let mut command = Command::update(ExecutionStateUpdate::default().shared(true));
        if state.shared {
            return Ok(command.goto(superstep::END));
        }
        let newest = newest(&state);
        let mut is_any = false;
        for task in state
            .tasks
            .iter()
            .filter(|task| task.config.share_questions)
        {
            let Some(finished) = newest.get(task.agent.as_str()) else {
                continue;
            };
            let questions = for_agent(&task.agent, &newest);
            if questions.is_empty() || finished.best.is_none() {
                continue;
            }
            let mut task = task.clone();
            task.shared = Some(SharedQuestions {
                questions,
                finished: Box::new((*finished).clone()),
            });
            command = command.send(&AGENT, task);
            is_any = true;
        }
        Ok(match is_any {
            true => command,
            false => command.goto(superstep::END),
        })
    }
}

/// Returns up to three gaps of other agents that belong to the subject of this agent and that it has not asked itself.
fn for_agent(agent: &str, all: &BTreeMap<&str, &Finished>) -> Vec<String> {
    let own: Vec<&String> = match all.get(agent) {
        Some(own) => own
            .rounds
            .iter()
            .flat_map(|round| &round.questions)
            .collect(),
        None => Vec::new(),
    };
    let others = all.iter().filter(|(name, _)| **name != agent);
    let open = others.flat_map(|(_, other)| &other.result.metadata.missing_information);
    let is_ours = |gap: &&String| {
        let lower = gap.to_lowercase();
        subjects(agent).iter().any(|word| lower.contains(word)) && !own.contains(gap)
    };
    let mut questions: Vec<String> = open.filter(is_ours).cloned().collect();
    questions.sort();
    questions.dedup();
    questions.truncate(SHARED_MAX);
    questions
}

/// Returns the words that assign a gap to an agent's subject.
fn subjects(agent: &str) -> &'static [&'static str] {
    match agent {
        "file-structure" => &["folder", "director", "file", "layout", "naming"],
        "dependency-analyzer" => &["dependenc", "version", "package", "library", "crate"],
        "architecture-analyzer" => &["architecture", "component", "layer", "module", "responsib"],
        "flow-analyzer" => &["flow", "entry", "start", "request", "call"],
        "schema-analyzer" => &["schema", "data", "field", "table", "type", "model"],
        "pattern-analyzer" => &["pattern", "convention", "test", "error handling", "style"],
        "security-analyzer" => &[
            "security",
            "secret",
            "auth",
            "trust",
            "unsafe",
            "permission",
        ],
        _ => &[],
    }
}

/// Returns the newest outcome of each agent.
fn newest(state: &ExecutionState) -> BTreeMap<&str, &Finished> {
    state
        .finished
        .iter()
        .map(|finished| (finished.agent.as_str(), finished))
        .collect()
}

/// Returns one result for each agent, in the order of the tasks.
pub(super) fn results(done: &ExecutionState) -> Vec<AgentResult> {
    let newest = newest(done);
    let results = done
        .tasks
        .iter()
        .filter_map(|task| newest.get(task.agent.as_str()));
    results.map(|finished| finished.result.clone()).collect()
}

const SHARED_MAX: usize = 3;
