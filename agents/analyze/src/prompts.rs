//! Prompts of the agent.

use archie_agent::prompts::{PromptFiles, filled};

use super::state::{PromptType, Section};

/// Prompt texts with their `{{placeholders}}`.
#[derive(Debug, Clone)]
pub struct Prompts {
    system: String,
    initial: String,
    followup: String,
    last: String,
    heading: String,
    question: String,
    passages: String,
    tools: String,
}

impl Default for Prompts {
    fn default() -> Self {
        Self {
            system: include_str!("prompts/system.md").to_owned(),
            initial: include_str!("prompts/initial.md").to_owned(),
            followup: include_str!("prompts/followup.md").to_owned(),
            last: include_str!("prompts/final.md").to_owned(),
            heading: include_str!("prompts/heading.md").to_owned(),
            question: include_str!("prompts/question.md").to_owned(),
            passages: include_str!("prompts/passages.md").to_owned(),
            tools: include_str!("prompts/tools.md").to_owned(),
        }
    }
}

impl PromptFiles for Prompts {
    fn files(&mut self) -> Vec<(&'static str, &mut String)> {
        vec![
            ("system.md", &mut self.system),
            ("initial.md", &mut self.initial),
            ("followup.md", &mut self.followup),
            ("final.md", &mut self.last),
            ("heading.md", &mut self.heading),
            ("question.md", &mut self.question),
            ("passages.md", &mut self.passages),
            ("tools.md", &mut self.tools),
        ]
    }
}

impl Prompts {
    pub(super) fn system(&self, notes: &str, has_tools: bool) -> String {
        let notes = match notes.is_empty() {
            true => "(There are no notes.)\n",
            false => notes,
        };
        let mut system = filled(&self.system, &[("files", notes)]);
        if has_tools {
            system.push('\n');
            system.push_str(&self.tools);
        }
        system
    }

    pub(super) fn turn(&self, prompt: PromptType, said: &str) -> String {
        match prompt {
            PromptType::Initial => {
                let query = said.strip_prefix(QUERY).unwrap_or(said);
                filled(&self.initial, &[("query", query)])
            }
            PromptType::Followup => {
                let answer = said.strip_prefix(QUERY).unwrap_or(said);
                filled(&self.followup, &[("answer", answer)])
            }
            PromptType::Final => filled(&self.last, &[("answer", said)]),
        }
    }

    /// Returns the prompt for one section of the result, of at most this many claims. `example` is a claim as JSON.
    pub(super) fn heading(&self, section: Section, most: usize, example: &str) -> String {
        let places = [
            ("heading", section.heading()),
            ("meaning", section.meaning()),
            ("field", section.field()),
            ("most", &most.to_string()),
            ("example", example),
        ];
        filled(&self.heading, &places)
    }

    /// Returns the prompt for a question alone, after a turn that asked none.
    pub(super) fn question(&self) -> &str {
        &self.question
    }

    /// Returns passages of the notes, introduced.
    pub(super) fn passages(&self, passages: &str) -> String {
        filled(&self.passages, &[("passages", passages)])
    }
}

/// Prefix of the first input.
pub const QUERY: &str = "analyze: ";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interview_end::user_is_done;

    #[test]
    fn no_prompt_holds_words_that_end_the_interview() {
        let mut prompts = Prompts::default();
        for (name, text) in prompts.files() {
            let upper = text.to_uppercase();
            let has_word = |word: &str| {
                let mut words = upper.split(|c: char| !c.is_alphanumeric());
                words.any(|other| other == word)
            };
            assert!(!user_is_done(text), "{name}");
            for word in ["APPROVED", "APPROVE", "DONE"] {
                assert!(
                    !has_word(word),
                    "{name} has {word}, which a small model repeats"
                );
            }
        }
    }

    #[test]
    fn the_system_prompt_has_no_example_that_a_small_model_would_repeat() {
        let system = Prompts::default().system("", false);
        assert!(!system.contains("example"), "{system}");
        assert!(system.contains("(There are no notes.)"), "{system}");
    }
}
