//! The prompts: Markdown files that come with the program, and that a user can put their own in the place of.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;

use super::state::PromptType;

/// The texts with their `{{placeholders}}`.
#[derive(Debug, Clone)]
pub struct Prompts {
    system: String,
    initial: String,
    followup: String,
    last: String,
}

impl Default for Prompts {
    fn default() -> Self {
        Self {
            system: include_str!("prompts/system.md").to_owned(),
            initial: include_str!("prompts/initial.md").to_owned(),
            followup: include_str!("prompts/followup.md").to_owned(),
            last: include_str!("prompts/final.md").to_owned(),
        }
    }
}

impl Prompts {
    /// Those that come with the program, and those of this folder in their place: `system.md`, `initial.md`, `followup.md`,
    /// `final.md`.
    pub fn with_folder(folder: &Path) -> anyhow::Result<Self> {
        let mut prompts = Self::default();
        for (name, text) in [
            ("system.md", &mut prompts.system),
            ("initial.md", &mut prompts.initial),
            ("followup.md", &mut prompts.followup),
            ("final.md", &mut prompts.last),
        ] {
            let path = folder.join(name);
            match std::fs::read_to_string(&path) {
                Ok(own) => *text = own,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("the prompt {} cannot be read", path.display()));
                }
            }
        }
        Ok(prompts)
    }

    pub(super) fn system(&self, files: &BTreeMap<String, String>) -> String {
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
        self.system.replace("{{files}}", &notes)
    }

    pub(super) fn turn(&self, prompt: PromptType, said: &str) -> String {
        match prompt {
            PromptType::Initial => {
                let query = said.strip_prefix(QUERY).unwrap_or(said);
                self.initial.replace("{{query}}", query)
            }
            PromptType::Followup => self.followup.replace("{{answer}}", said),
            PromptType::Final => self.last.replace("{{answer}}", said),
        }
    }
}

/// How the first input begins.
pub const QUERY: &str = "analyze: ";
