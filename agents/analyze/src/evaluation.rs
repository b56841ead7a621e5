//! An evaluation: 20 decisions over eight folders of notes with known facts. Scores the agent's results, or the memos that one
//! plain prompt gives.
//!
//! A person's answers are a fixed list, so that every model is told the same. A result is read by words and figures
//! (`wording`), never by the agent's own checks; only the share of supported claims comes from the agent's evidence.

mod decisions;
mod plain;
mod wording;

use std::collections::BTreeMap;
use std::sync::Arc;

use archie_agent::AgentDeps;
use archie_agent::mcp::McpServers;
use serde::Serialize;
use serde_json::json;
use superstep::checkpoint::Metadata;
use superstep::{AnyThread, Memory, Outcome, Runtime};

use crate::inputs::hash;
use crate::prompts::QUERY;
use crate::state::{AppState, AppStateUpdate, Evidence, Inputs, Section, Support};
use crate::{ANALYSIS_INTERRUPT, agent, get_final_output};

pub use decisions::{EvaluationDecision, Statement, decisions};
pub use plain::evaluate_plain;

/// Score of one decision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ScoredDecision {
    /// Name of the decision.
    pub id: String,
    /// Why the result is degraded or missing; `None` if it is not.
    pub degraded: Option<String>,
    /// Facts that the result contains.
    pub found: Vec<String>,
    /// Facts that the result does not contain.
    pub missing: Vec<String>,
    /// What the result recommends although the person ruled it out.
    pub contradictions: Vec<String>,
    /// Number of claims; zero for a plain prompt, whose claims are not checked.
    pub claims: usize,
    /// Number of claims that a note supports, by the agent's check of the evidence.
    pub supported: usize,
}

impl ScoredDecision {
    /// Returns what is wrong in a line; `None` if nothing is.
    pub fn fault(&self) -> Option<String> {
        let mut faults = Vec::new();
        if let Some(why) = &self.degraded {
            faults.push(format!("degraded ({why})"));
        }
        if !self.missing.is_empty() {
            faults.push(format!("misses {}", self.missing.join(", ")));
        }
        if !self.contradictions.is_empty() {
            faults.push(format!("contradicts: {}", self.contradictions.join(", ")));
        }
        (!faults.is_empty()).then(|| format!("{}: {}", self.id, faults.join("; ")))
    }
}

/// Result of an evaluation. The shares are pairs: how many are right, and of how many.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Evaluation {
    /// The decisions, in the order of the set.
    pub decisions: Vec<ScoredDecision>,
}

impl Evaluation {
    /// Returns the share of decisions whose result is not degraded.
    pub fn not_degraded(&self) -> (usize, usize) {
        self.share(|decision| decision.degraded.is_none())
    }

    /// Returns the share of facts that the results contain.
    pub fn facts(&self) -> (usize, usize) {
        let found = self.sum(|decision| decision.found.len());
        let missing = self.sum(|decision| decision.missing.len());
        (found, found + missing)
    }

    /// Returns the share of claims that a note supports. What the person said has no line in a note, so the share is never
    /// all of them.
    pub fn claims(&self) -> (usize, usize) {
        let supported = self.sum(|decision| decision.supported);
        (supported, self.sum(|decision| decision.claims))
    }

    /// Returns the share of decisions whose result does not contradict the person.
    pub fn without_contradiction(&self) -> (usize, usize) {
        self.share(|decision| decision.contradictions.is_empty())
    }

    fn sum(&self, count: impl Fn(&ScoredDecision) -> usize) -> usize {
        self.decisions.iter().map(count).sum()
    }

    fn share(&self, is_right: impl Fn(&ScoredDecision) -> bool) -> (usize, usize) {
        let right = self.decisions.iter().filter(|one| is_right(one)).count();
        (right, self.decisions.len())
    }
}

/// Holds the interviews in memory and scores their results. Writes no files. The MCP servers of the person take no part.
/// Tells `progress` how many decisions are done.
pub async fn evaluate(
    deps: &AgentDeps,
    model: &str,
    decisions: &[EvaluationDecision],
    mut progress: impl FnMut(usize),
) -> anyhow::Result<Evaluation> {
    let deps = AgentDeps {
        mcp: Arc::new(McpServers::new(Vec::new(), &deps.data_folder)),
        web: None,
        ..deps.clone()
    };
    let agent = agent(&deps)?;
    let runtime = Runtime::new(Memory::default());
    agent.register(&runtime);
    let mut evaluation = Evaluation::default();
    for (at, decision) in decisions.iter().enumerate() {
        let thread = agent.thread(&runtime, &format!("decision-{at}"), Metadata::default())?;
        let scored = match interview(&*thread, decision, model).await? {
            None => decision.score_state(&get_final_output(&*thread).await?),
            Some(why) => ScoredDecision {
                degraded: Some(why),
                ..decision.score("", "")
            },
        };
        evaluation.decisions.push(scored);
        progress(at + 1);
    }
    Ok(evaluation)
}

/// Holds an interview as the person of the decision would, to its end. Returns why there is no result, if there is none.
async fn interview(
    thread: &dyn AnyThread,
    decision: &EvaluationDecision,
    model: &str,
) -> anyhow::Result<Option<String>> {
    let start = serde_json::to_value(decision.initial_state(model))?;
    let mut outcome = thread.start_or_recover(start).await?.outcome;
    let answers = decision.answers.iter().map(String::as_str);
    let mut answers = answers.chain([APPROVAL]);
    loop {
        match outcome {
            Outcome::Paused(_) => {}
            Outcome::Finished => return Ok(None),
            Outcome::Failed(failures) => {
                let why = failures.into_iter().next().map(|failure| failure.message);
                return Ok(Some(format!("failed: {}", why.unwrap_or_default())));
            }
            other => return Ok(Some(format!("ended early: {other:?}"))),
        }
        let mut open = thread.interrupts().await?.into_iter();
        // A spending limit interrupts, too, and its interrupt is not for these answers.
        let question = open.find(|open| open.interrupt.node.as_str() == ANALYSIS_INTERRUPT);
        let Some(question) = question else {
            return Ok(Some("stopped by a limit".to_owned()));
        };
        let Some(answer) = answers.next() else {
            return Ok(Some("did not end with the approval".to_owned()));
        };
        let answer = vec![(question.interrupt.id, json!(answer))];
        match thread.answer_as(PERSON, answer).await? {
            Some(stopped) => outcome = stopped.outcome,
            None => return Ok(Some("is run by another process".to_owned())),
        }
    }
}

impl EvaluationDecision {
    /// Returns the input that starts the interview, as `archie analyze` does.
    fn initial_state(&self, model: &str) -> AppStateUpdate {
        let hashes: BTreeMap<String, String> = self
            .notes
            .iter()
            .map(|(name, text)| (name.clone(), hash(text.as_bytes())))
            .collect();
        let inputs = Inputs {
            folder: self.folder.clone(),
            hashes,
            ..Inputs::default()
        };
        AppStateUpdate::default()
            .user_input(format!("{QUERY}{}", self.query))
            .file_contents(self.notes.clone())
            .inputs(inputs)
            .model_name(model.to_owned())
            .analysis_output(String::new())
            .current_analysis_query(String::new())
    }

    fn score_state(&self, state: &AppState) -> ScoredDecision {
        let degraded = match state.analysis_output.is_empty() {
            true => Some("there is no result".to_owned()),
            false => state.degraded.clone(),
        };
        let is_supported = |evidence: Option<Evidence>| evidence == Some(Evidence::Supported);
        let findings = &state.findings;
        ScoredDecision {
            degraded,
            claims: findings.len(),
            supported: findings
                .iter()
                .filter(|one| is_supported(one.evidence))
                .count(),
            ..self.score(&claims_of(state), &with_quotes(state))
        }
    }

    /// Scores a result. `said` is what the result claims; `shown` also has the quotations of notes, which state facts but
    /// recommend nothing.
    pub fn score(&self, said: &str, shown: &str) -> ScoredDecision {
        let is_found = |fact: &&Statement| wording::states(shown, &fact.words);
        let (found, missing): (Vec<_>, Vec<_>) = self.facts.iter().partition(is_found);
        let contradictions = self.contradictions.iter();
        let contradictions = contradictions.filter(|wrong| wording::recommends(said, &wrong.words));
        let names = |statements: Vec<&Statement>| -> Vec<String> {
            statements.into_iter().map(|one| one.name.clone()).collect()
        };
        ScoredDecision {
            id: self.id.clone(),
            found: names(found),
            missing: names(missing),
            contradictions: names(contradictions.collect()),
            ..ScoredDecision::default()
        }
    }
}

/// Returns the claims below their headings. The page of a result also repeats the query, the person's answers and, if it is
/// degraded, the whole interview; the model would get facts for free from those.
fn claims_of(state: &AppState) -> String {
    page(state, |_, _| String::new())
}

/// Returns the claims below their headings, each with its quotation if that is in the notes.
fn with_quotes(state: &AppState) -> String {
    page(state, |quote, support| match support {
        Support::Quoted | Support::Moved => format!(" ({quote})"),
        Support::Unsupported | Support::Said => String::new(),
    })
}

fn page(state: &AppState, quoted: impl Fn(&str, Support) -> String) -> String {
    let mut text = String::new();
    for section in Section::ALL {
        text.push_str(&format!("## {}\n", section.heading()));
        for finding in &state.findings {
            if finding.section != section {
                continue;
            }
            let quote = finding.source.as_ref().map(|source| source.quote.as_str());
            let quote = quote.map(|quote| quoted(quote, finding.support));
            let line = format!("{}{}", finding.claim, quote.unwrap_or_default());
            text.push_str(&format!("- {}\n", line.replace('\n', " ")));
        }
    }
    text
}

/// Ends every interview.
const APPROVAL: &str = "SOLUTION APPROVED";
/// Who answers.
const PERSON: &str = "evaluation";

#[cfg(test)]
mod tests;
