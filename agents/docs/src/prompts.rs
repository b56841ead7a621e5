//! Prompts of the workflow.

use archie_agent::prompts::{PromptFiles, filled};

use super::source_map::SourceText;
use super::state::{AgentContext, ParallelAnswer, Scored};

/// Prompt templates with `{{placeholders}}` that all agents share.
#[derive(Debug, Clone)]
pub struct Prompts {
    sources: String,
    evaluate: String,
    questions: String,
    answer: String,
    refine: String,
}

impl Default for Prompts {
    fn default() -> Self {
        Self {
            sources: include_str!("prompts/sources.md").to_owned(),
            evaluate: include_str!("prompts/evaluate.md").to_owned(),
            questions: include_str!("prompts/questions.md").to_owned(),
            answer: include_str!("prompts/answer.md").to_owned(),
            refine: include_str!("prompts/refine.md").to_owned(),
        }
    }
}

impl PromptFiles for Prompts {
    fn files(&mut self) -> Vec<(&'static str, &mut String)> {
        vec![
            ("sources.md", &mut self.sources),
            ("evaluate.md", &mut self.evaluate),
            ("questions.md", &mut self.questions),
            ("answer.md", &mut self.answer),
            ("refine.md", &mut self.refine),
        ]
    }
}

impl Prompts {
    /// Returns the prompt with the source that the model reads.
    pub(super) fn sources(&self, source: &SourceText) -> String {
        let left_out = source.remark();
        let places = [
            ("left_out", left_out.as_deref().unwrap_or("nothing")),
            ("sources", source.text.trim_end()),
        ];
        filled(&self.sources, &places)
    }

    pub(super) fn evaluate(&self, analysis: &str, misses: &[String]) -> String {
        let misses = list(misses, "Every claim was found in the tree.");
        filled(
            &self.evaluate,
            &[("misses", &misses), ("analysis", analysis)],
        )
    }

    pub(super) fn questions(
        &self,
        analysis: &str,
        scored: Option<&Scored>,
        missing: &[String],
        asked: &[&String],
    ) -> String {
        let scores = scored.map_or_else(String::new, |scored| {
            format!(
                "completeness {}, clarity {}, depth {}, accuracy {}",
                scored.completeness, scored.clarity, scored.depth, scored.accuracy
            )
        });
        let places = [
            ("scores", scores.as_str()),
            ("missing", &list(missing, "(nothing yet)")),
            ("asked", &list(asked, "(nothing yet)")),
            ("analysis", analysis),
        ];
        filled(&self.questions, &places)
    }

    pub(super) fn answer(&self, question: &str, evidence: &str) -> String {
        let places = [
            ("evidence", evidence_or_none(evidence)),
            ("question", question),
        ];
        filled(&self.answer, &places)
    }

    pub(super) fn refine(
        &self,
        analysis: &str,
        questions: &[String],
        answers: &[&ParallelAnswer],
        evidence: &str,
    ) -> String {
        let found = |question: &String| {
            let answer = answers.iter().find(|answer| answer.question == *question);
            match answer {
                Some(answer) => format!("{question}\n  Found: {}", answer.answer),
                None => question.clone(),
            }
        };
        let questions: Vec<String> = questions.iter().map(found).collect();
        let places = [
            ("questions", list(&questions, "(none)")),
            ("evidence", evidence_or_none(evidence).to_owned()),
            ("analysis", analysis.to_owned()),
        ];
        let places = places.each_ref().map(|(name, text)| (*name, text.as_str()));
        filled(&self.refine, &places)
    }
}

/// Returns the system prompt that all agents share, with the `focus` of one of them.
pub(super) fn system(context: &AgentContext, focus: &str) -> String {
    let places = [("project", context.project.as_str()), ("focus", focus)];
    filled(include_str!("prompts/system.md"), &places)
}

fn list(items: &[impl AsRef<str>], none: &str) -> String {
    if items.is_empty() {
        return none.to_owned();
    }
    let lines: Vec<String> = items
        .iter()
        .map(|item| format!("- {}", item.as_ref()))
        .collect();
    lines.join("\n")
}

fn evidence_or_none(evidence: &str) -> &str {
    match evidence.is_empty() {
        true => "(The questions name no file or symbol of the tree.)",
        false => evidence,
    }
}
