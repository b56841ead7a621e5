//! The set of decisions, from the folder `evaluation` of this crate.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Deserialize;

/// A decision with the notes, the person's answers, and what a good result contains.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationDecision {
    /// Name of the decision.
    pub id: String,
    /// Name of the folder with the notes. Several decisions share one.
    pub folder: String,
    /// What is to be decided.
    pub query: String,
    /// What the person answers, whatever is asked. Approves the solution afterwards.
    pub answers: Vec<String>,
    /// What a good result states.
    pub facts: Vec<Statement>,
    /// What a result must not recommend, because the person ruled it out.
    pub contradictions: Vec<Statement>,
    /// Content of each note, by its name.
    #[serde(skip)]
    pub notes: BTreeMap<String, String>,
}

/// A statement that can be found in a text by its words.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The statement, for people.
    pub name: String,
    /// Sets of words. The text makes the statement if it has all words of one set.
    pub words: Vec<Vec<String>>,
}

/// Returns the decisions.
pub fn decisions() -> anyhow::Result<Vec<EvaluationDecision>> {
    let notes = include_str!("../../evaluation/notes.json");
    let folders: BTreeMap<String, BTreeMap<String, Vec<String>>> = serde_json::from_str(notes)?;
    let decisions = include_str!("../../evaluation/decisions.json");
    let mut decisions: Vec<EvaluationDecision> = serde_json::from_str(decisions)?;
    for decision in &mut decisions {
        let folder = folders.get(&decision.folder);
        let folder = folder.with_context(|| format!("there is no folder `{}`", decision.folder))?;
        let notes = folder.iter();
        decision.notes = notes
            .map(|(name, lines)| (name.clone(), format!("{}\n", lines.join("\n"))))
            .collect();
    }
    Ok(decisions)
}
