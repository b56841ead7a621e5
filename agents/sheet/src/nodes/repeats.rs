//! Recognises a planner that goes in circles: the same call, or the same message, while nothing has changed.

use superstep_llm::{Message, ToolCall};

use super::super::plan::{self, Plan};
use super::super::state::{GraphState, JournalEntry};
use super::super::tools::{INFORMER, SUBMITTER};
use super::grounds::is_refusal;
use super::is_stale;

/// Returns the earlier results of exactly this call since the workbook last changed, oldest first.
///
/// A call that changed the workbook counts, too: what it wrote is there already, and running it again would write it twice. An
/// accepted answer does not count: after a failed check, the planner may finish again with the same one. Nor does one that no
/// result supports: the planner may insist on it.
pub(super) fn earlier_results<'a>(
    journal: impl Iterator<Item = &'a JournalEntry>,
    tool: &str,
    input: &str,
    snapshot: &str,
) -> Vec<&'a JournalEntry> {
    let is_same = |done: &&JournalEntry| {
        let may_repeat = done.tool == SUBMITTER && (done.ok || is_refusal(&done.observation));
        done.tool == tool && done.input == input && done.snapshot == snapshot && !may_repeat
    };
    journal.filter(is_same).collect()
}

/// Returns how often the planner asked the informer exactly this before, if the answer it got is still current.
pub(super) fn earlier_questions(state: &GraphState, call: &ToolCall) -> usize {
    if call.name != INFORMER || state.informer.is_none() || is_stale(state) {
        return 0;
    }
    let is_same = |message: &Message| match message {
        Message::Assistant(_) => {
            matches!(plan::read(message, 0), Plan::Ask(asked) if asked.args == call.args)
        }
        _ => false,
    };
    let messages = state.messages.iter().rev().skip(1);
    messages.filter(|kept| is_same(&kept.message)).count()
}

/// Returns how often the planner wrote exactly its last message before, if that message has no call.
pub(super) fn earlier_messages(state: &GraphState) -> usize {
    let Some(last) = state.messages.last() else {
        return 0;
    };
    let (text, mut earlier) = (last.text(), state.messages.iter().rev());
    earlier.next();
    earlier
        .filter(|kept| matches!(kept.message, Message::Assistant(_)) && kept.text() == text)
        .count()
}

/// Returns the explanation for a call that was not run because it would give the same result again.
pub(super) fn explanation(earlier: &str) -> String {
    format!(
        "{NOT_RUN}, and the workbook has not changed since. Its result was:\n{}\nUse that result, or make a different call. If you make this call once more, the work stops.",
        earlier.trim_end()
    )
}

/// Returns whether an observation is such an explanation, which quotes an earlier result.
pub(super) fn is_explanation(observation: &str) -> bool {
    observation.starts_with(NOT_RUN)
}

const NOT_RUN: &str = "not run: you made exactly this call before";

/// The planner may repeat itself once. After this many earlier calls the run ends.
pub(super) const REPEATS_MAX: usize = 2;

#[cfg(test)]
mod tests {
    use super::super::super::tools::PYTHON;
    use super::*;

    #[test]
    fn an_accepted_answer_may_be_submitted_again() {
        let entry = |tool: &str, ok| JournalEntry {
            step: 1,
            tool: tool.to_owned(),
            input: "12".to_owned(),
            observation: String::new(),
            ok,
            snapshot: "s".to_owned(),
            lines: None,
            pictures: std::collections::BTreeMap::new(),
        };
        for (tool, ok, times) in [
            (SUBMITTER, true, 0),
            (SUBMITTER, false, 1),
            (PYTHON, true, 1),
        ] {
            let journal = [entry(tool, ok)];
            let found = earlier_results(journal.iter(), tool, "12", "s");
            assert_eq!(found.len(), times, "{tool} {ok}");
        }
    }
}
