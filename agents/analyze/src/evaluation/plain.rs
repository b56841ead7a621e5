//! The rival of the agent: one prompt, as a person types it into a chat window.

use superstep_llm::{Message, Model, Request};

use super::{Evaluation, EvaluationDecision, ScoredDecision};

/// Asks for a memo about each decision in one prompt, and scores the memos. Tells `progress` how many decisions are done.
pub async fn evaluate_plain(
    decisions: &[EvaluationDecision],
    model: &dyn Model,
    mut progress: impl FnMut(usize),
) -> anyhow::Result<Evaluation> {
    let mut evaluation = Evaluation::default();
    for decision in decisions {
        let messages = vec![Message::user(decision.plain_prompt())];
        let request = Request::new("plain", messages).tokens_max(MEMO_TOKENS);
        let memo = model.reply(&request).await?.text();
        let degraded = memo.trim().is_empty();
        evaluation.decisions.push(ScoredDecision {
            degraded: degraded.then(|| "the reply is empty".to_owned()),
            ..decision.score(&memo, &memo)
        });
        progress(evaluation.decisions.len());
    }
    Ok(evaluation)
}

impl EvaluationDecision {
    /// Returns the prompt with everything that the agent learns, too: the query, the notes and the person's answers.
    pub(super) fn plain_prompt(&self) -> String {
        let mut prompt = format!("I have to decide this: {}\n\nMy notes:\n\n", self.query);
        for (name, text) in &self.notes {
            prompt.push_str(&format!("{name}:\n{text}\n"));
        }
        let answers = self.answers.join(" ");
        prompt.push_str(&format!("{answers}\n\nWrite a decision memo."));
        prompt
    }
}

/// Token limit of a memo, about two pages. A small model may write until it is stopped.
const MEMO_TOKENS: u32 = 1_024;
