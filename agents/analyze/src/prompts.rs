//! Prompts of the agent.

use std::collections::BTreeMap;

use archie_agent::prompts::{PromptFiles, filled};

use super::state::PromptType;

/// Prompt texts with their `{{placeholders}}`.
#[derive(Debug, Clone)]
pub struct Prompts {
    system: String,
    initial: String,
    followup: String,
    last: String,
    tools: String,
}

impl Default for Prompts {
    fn default() -> Self {
        Self {
            system: include_str!("prompts/system.md").to_owned(),
            initial: include_str!("prompts/initial.md").to_owned(),
            followup: include_str!("prompts/followup.md").to_owned(),
            last: include_str!("prompts/final.md").to_owned(),
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
            ("tools.md", &mut self.tools),
        ]
    }
}

impl Prompts {
    pub(super) fn system(&self, files: &BTreeMap<String, String>, has_tools: bool) -> String {
        let mut notes = String::new();
        for (name, text) in files {
            notes.push_str(&format!("=== {name}\n"));
            for (number, line) in text.lines().enumerate() {
                notes.push_str(&format!("{}: {line}\n", number + 1));
            }
        }
        if notes.is_empty() {
            notes.push_str("(There are no notes.)\n");
        }
        let mut system = filled(&self.system, &[("files", &notes)]);
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
            PromptType::Followup => filled(&self.followup, &[("answer", said)]),
            PromptType::Final => filled(&self.last, &[("answer", said)]),
        }
    }
}

/// Prefix of the first input.
pub const QUERY: &str = "analyze: ";
