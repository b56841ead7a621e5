//! Ways to answer an interrupt that a host offers as keys or buttons, instead of a line to type.

use crate::interrupt::InterruptRequest;

/// A way to answer an interrupt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerChoice {
    /// Key that stands for it, unique among the choices of an interrupt.
    pub key: char,
    /// What it does, in one or two words.
    pub label: &'static str,
    /// What the person has to add.
    pub input: ChoiceInput,
}

/// What a person adds to a choice. Together they are a line for [`AgentUi::read_answer`](crate::AgentUi::read_answer).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChoiceInput {
    /// Nothing: this is the whole line.
    Line(&'static str),
    /// The rest of a line that begins with this.
    Rest(&'static str),
    /// Changed arguments of the call.
    Edit,
}

impl AnswerChoice {
    /// Creates a choice that needs nothing more than its key.
    pub fn line(key: char, label: &'static str, line: &'static str) -> Self {
        let input = ChoiceInput::Line(line);
        Self { key, label, input }
    }

    /// Creates a choice whose line begins with `begin` and ends with what the person types.
    pub fn rest(key: char, label: &'static str, begin: &'static str) -> Self {
        let input = ChoiceInput::Rest(begin);
        Self { key, label, input }
    }

    /// Returns the choices of an interrupt of any agent.
    pub fn of(interrupt: &InterruptRequest) -> Vec<Self> {
        if interrupt.is_budget() {
            return vec![
                Self::line('a', "raise", "raise"),
                Self::rest('r', "raise by", "raise "),
                Self::line('i', "stop", "stop"),
            ];
        }
        let choices = interrupt.allowed().into_iter().map(|word| match word {
            "accept" => Self::line('a', "accept", "accept"),
            "edit" => Self {
                key: 'e',
                label: "edit",
                input: ChoiceInput::Edit,
            },
            "ignore" => Self::line('i', "ignore", "ignore"),
            _ => Self::rest('r', "respond", "response "),
        });
        let choices: Vec<_> = choices.collect();
        match choices.is_empty() {
            true => vec![Self::rest('r', "answer", "")],
            false => choices,
        }
    }
}
