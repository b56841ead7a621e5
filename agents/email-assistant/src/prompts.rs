//! Prompts of the graph, which files in the prompts folder can override.

use archie_agent::prompts::PromptFiles;

/// Prompt templates with `{{placeholders}}`.
#[derive(Debug, Clone)]
pub struct Prompts {
    pub(super) triage: String,
    pub(super) triage_mail: String,
    pub(super) triage_examples: String,
    pub(super) respond: String,
    pub(super) nudge: String,
    pub(super) learn: String,
    pub(super) tone: String,
}

impl Default for Prompts {
    fn default() -> Self {
        Self {
            triage: include_str!("prompts/triage.md").to_owned(),
            triage_examples: include_str!("prompts/triage_examples.md").to_owned(),
            triage_mail: include_str!("prompts/triage_mail.md").to_owned(),
            respond: include_str!("prompts/respond.md").to_owned(),
            nudge: include_str!("prompts/nudge.md").to_owned(),
            learn: include_str!("prompts/learn.md").to_owned(),
            tone: include_str!("prompts/tone.md").to_owned(),
        }
    }
}

impl Prompts {
    /// Returns the texts of all prompts.
    pub(super) fn texts(&self) -> Vec<&str> {
        let all = [
            &self.triage,
            &self.triage_mail,
            &self.triage_examples,
            &self.respond,
            &self.nudge,
            &self.learn,
            &self.tone,
        ];
        all.map(String::as_str).to_vec()
    }
}

impl PromptFiles for Prompts {
    fn files(&mut self) -> Vec<(&'static str, &mut String)> {
        vec![
            ("triage.md", &mut self.triage),
            ("triage_mail.md", &mut self.triage_mail),
            ("triage_examples.md", &mut self.triage_examples),
            ("respond.md", &mut self.respond),
            ("nudge.md", &mut self.nudge),
            ("learn.md", &mut self.learn),
            ("tone.md", &mut self.tone),
        ]
    }
}

/// Formats lines as a numbered list, starting at 1.
pub(super) fn numbered(lines: &[String]) -> String {
    let lines = lines
        .iter()
        .enumerate()
        .map(|(at, line)| format!("{}. {line}", at + 1));
    lines.collect::<Vec<_>>().join("\n")
}
