//! Prompts of the agent.

use archie_agent::prompts::{PromptFiles, filled};

use super::state::{Actions, GraphState};

/// Prompt texts with their `{{placeholders}}`.
#[derive(Debug, Clone)]
pub struct Prompts {
    planner: String,
    text: String,
    calls: String,
    informer: String,
}

impl Default for Prompts {
    fn default() -> Self {
        Self {
            planner: include_str!("prompts/planner.md").to_owned(),
            text: include_str!("prompts/text.md").to_owned(),
            calls: include_str!("prompts/calls.md").to_owned(),
            informer: include_str!("prompts/informer.md").to_owned(),
        }
    }
}

impl PromptFiles for Prompts {
    fn files(&mut self) -> Vec<(&'static str, &mut String)> {
        vec![
            ("planner.md", &mut self.planner),
            ("text.md", &mut self.text),
            ("calls.md", &mut self.calls),
            ("informer.md", &mut self.informer),
        ]
    }
}

impl Prompts {
    pub(super) fn planner(&self, state: &GraphState) -> String {
        let names: Vec<_> = state.tools.keys().cloned().collect();
        let format = match state.planner.actions {
            Actions::Text => filled(&self.text, &[("tools", &names.join(", "))]),
            Actions::Calls => self.calls.clone(),
        };
        let key_information = match &state.key_information {
            Some(known) => {
                let age = match known.snapshot == state.workbook.snapshot {
                    true => "",
                    false => " (before the last change of the workbook)",
                };
                format!(
                    "\nKey information{age}, from `{}`:\n{}\n",
                    known.sql, known.text
                )
            }
            None => String::new(),
        };
        let context = match state.problem.context.is_empty() {
            true => String::new(),
            false => format!("{}\n", state.problem.context),
        };
        let places = [
            ("format", format.trim_end()),
            ("context", &context),
            ("sheets", &state.workbook.sheets.join("\n")),
            ("select_example", select_example(state)),
            ("key_information", &key_information),
            ("instruction", &state.problem.instruction),
        ];
        filled(&self.planner, &places)
    }

    pub(super) fn informer(&self, state: &GraphState, question: &str, wrong: &str) -> String {
        let wrong = match wrong.is_empty() {
            true => String::new(),
            false => format!("The last SELECT failed: {wrong}\n"),
        };
        let places = [
            ("wrong", wrong.as_str()),
            ("question", question),
            ("sheets", &state.workbook.sheets.join("\n")),
            ("select_example", select_example(state)),
            ("instruction", &state.problem.instruction),
        ];
        filled(&self.informer, &places)
    }
}

fn select_example(state: &GraphState) -> &str {
    match state.workbook.select_example.as_str() {
        "" => r#"SELECT COUNT(*) FROM "Sheet 1""#,
        example => example,
    }
}
