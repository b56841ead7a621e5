//! Checks that an answer rests on what the run has looked up or changed. A small model likes to answer at once, with a figure
//! that it made up, or to say that a change is made which it did not make.

use archie_agent::ModelProfile;
use superstep_llm::{Message, ToolStatus};

use super::super::figures::unstated;
use super::super::state::{GraphState, JournalEntry, WorkbookState};
use super::super::tools::{self, SUBMITTER};
use super::repeats;

/// Returns why the answer of a message without calls is refused, as text for the planner. `None` if it rests on results, or if
/// the planner insists: a person reads the answer next to the steps, and a figure may be right although no result states it.
/// `step` is the step of the message: at the last one, a refusal would lose the answer.
pub(super) fn refusal(state: &GraphState, step: u32, answer: &str) -> Option<String> {
    // `Done` alone ends a run without an answer, which is reported as such.
    if answer.trim().is_empty() && !asks_for_change(&state.problem.instruction) {
        return None;
    }
    refusal_after(state, step, (&[], &state.workbook), answer)
}

/// Like [`refusal`], for an answer behind other calls of the same message: those calls, and the workbook after them.
pub(super) fn refusal_after(
    state: &GraphState,
    step: u32,
    (done, workbook): (&[JournalEntry], &WorkbookState),
    answer: &str,
) -> Option<String> {
    if state.recipe.is_some() || step >= state.max_steps || refusals(state) >= REFUSALS_MAX {
        return None;
    }
    let journal: Vec<&JournalEntry> = state.journal.iter().chain(done).collect();
    let why = match asks_for_change(&state.problem.instruction) {
        true => unchanged(&journal, workbook)?,
        false => unfounded(state, &journal, answer)?,
    };
    Some(format!("{NOT_GROUNDED} {why}"))
}

fn unchanged(journal: &[&JournalEntry], workbook: &WorkbookState) -> Option<String> {
    let has_picture = journal.iter().any(|done| !done.pictures.is_empty());
    let example = "new_sheet(\"Name\", select(\"SELECT …\"))";
    (!workbook.is_changed() && !has_picture).then(|| {
        format!(
            "nothing was changed yet, and a change was asked for. Make it with {}, for example {example}",
            tools::PYTHON
        )
    })
}

fn unfounded(state: &GraphState, journal: &[&JournalEntry], answer: &str) -> Option<String> {
    let results = journal
        .iter()
        .filter(|done| done.ok && done.tool != SUBMITTER)
        .map(|done| done.observation.as_str());
    let known = state
        .key_information
        .iter()
        .map(|known| known.text.as_str());
    let results: Vec<&str> = results.chain(known).collect();
    let sheets = state.workbook.sheets.iter().map(String::as_str);
    // A figure of the instruction may be part of an answer, but alone it is none.
    let told = (!results.is_empty()).then_some(state.problem.instruction.as_str());
    let stated = results.iter().copied().chain(sheets).chain(told);
    let look_up = format!(
        "Look it up first, with {}, for example {}",
        tools::SELECTOR,
        state.workbook.select_example
    );
    if let Some(figure) = unstated(answer, stated) {
        return Some(format!("no result states {figure}. {look_up}"));
    }
    // How many rows a sheet has is known without a lookup, but not after one that failed.
    let is_known = answer.contains(|c: char| c.is_ascii_digit())
        && journal.iter().all(|done| done.ok || done.tool == SUBMITTER);
    (results.is_empty() && !is_known).then(|| format!("nothing was looked up yet. {look_up}"))
}

/// Returns whether an observation is such a refusal.
pub(super) fn is_refusal(observation: &str) -> bool {
    observation.starts_with(NOT_GROUNDED)
}

/// What a planner is asked for whose answer was refused: the one thing that is missing, and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingStep {
    /// A query that finds the answer.
    Lookup,
    /// The name of a new sheet, and the query that finds its rows.
    NewSheet,
    /// Code that makes the change.
    Code,
}

/// Returns what comes first: a look at the data, or the change.
pub(super) fn first_step(state: &GraphState) -> MissingStep {
    let instruction = &state.problem.instruction;
    match (asks_for_change(instruction), asks_for_sheet(instruction)) {
        (true, true) => MissingStep::NewSheet,
        (true, false) => MissingStep::Code,
        (false, _) => MissingStep::Lookup,
    }
}

/// Returns what is missing if the last message to the planner says that its answer was refused, or that what it did about the
/// refusal failed. A small model has a form from the start.
pub(super) fn missing_step(state: &GraphState, profile: ModelProfile) -> Option<MissingStep> {
    let Message::Tool(last) = &state.messages.last()?.message else {
        return None;
    };
    let text = state.messages.last()?.text();
    let is_refused = is_refusal(&text);
    let has_form = refusals(state) > 0 || profile == ModelProfile::Small;
    // What it wrote into the form twice, it would write there again.
    let is_new = !repeats::is_explanation(&text);
    let is_failed = last.status == ToolStatus::Error && has_form && is_new;
    let (step, tool) = match first_step(state) {
        MissingStep::Lookup => (MissingStep::Lookup, tools::SELECTOR),
        change => (change, tools::PYTHON),
    };
    if step != MissingStep::Lookup {
        let journal: Vec<&JournalEntry> = state.journal.iter().collect();
        unchanged(&journal, &state.workbook)?;
    }
    (is_refused || (is_failed && last.name == tool)).then_some(step)
}

/// Returns how often an answer was refused. Counts only what this program wrote: a cell may hold the same words.
fn refusals(state: &GraphState) -> usize {
    let submitted = state.journal.iter();
    let submitted = submitted
        .filter(|done| done.tool == SUBMITTER && !done.ok && is_refusal(&done.observation));
    let said = state.messages.iter().filter(|kept| {
        let is_ours = matches!(&kept.message, Message::Tool(result) if result.name.is_empty());
        is_ours && is_refusal(&kept.text())
    });
    submitted.count() + said.count()
}

/// Returns whether an instruction asks for a change, in English, German or French.
fn asks_for_change(instruction: &str) -> bool {
    let text = instruction.to_lowercase();
    let sentences = text.split(['.', '?', '!', ';', '\n']);
    let mut firsts = sentences.filter_map(|sentence| {
        let mut words = sentence.split(|c: char| !c.is_alphanumeric());
        words.find(|word| !word.is_empty() && !POLITE.contains(word))
    });
    firsts.any(|first| VERBS.contains(&first))
        || NEW_SHEETS
            .iter()
            .chain(&NEW_COLUMNS)
            .any(|place| text.contains(place))
}

/// Returns whether an instruction asks for a new sheet.
fn asks_for_sheet(instruction: &str) -> bool {
    let text = instruction.to_lowercase();
    NEW_SHEETS.iter().any(|place| text.contains(place))
}

const POLITE: [&str; 4] = ["please", "bitte", "then", "dann"];

/// Verbs that begin the instruction to change a workbook.
const VERBS: [&str; 34] = [
    "put",
    "add",
    "write",
    "create",
    "insert",
    "fill",
    "mark",
    "highlight",
    "sort",
    "delete",
    "remove",
    "replace",
    "rename",
    "set",
    "format",
    "convert",
    "split",
    "copy",
    "move",
    "enter",
    "füge",
    "schreibe",
    "erstelle",
    "lösche",
    "ersetze",
    "sortiere",
    "markiere",
    "trage",
    "ajoute",
    "crée",
    "écris",
    "supprime",
    "remplace",
    "trie",
];

const NEW_SHEETS: [&str; 4] = [
    "new sheet",
    "neues blatt",
    "neuen blatt",
    "nouvelle feuille",
];
const NEW_COLUMNS: [&str; 4] = [
    "new column",
    "neue spalte",
    "neuen spalte",
    "nouvelle colonne",
];

/// Begins a refusal.
const NOT_GROUNDED: &str = "not accepted yet:";

/// After this many refusals an answer is taken as it is.
const REFUSALS_MAX: usize = 2;

#[test]
fn instructions_for_changes_are_distinguished_from_questions() {
    for change in [
        "Put the total of each customer into a new sheet.",
        "Count the people in a new sheet.",
        "Please sort the rows by date.",
        "Füge eine Spalte mit der Summe an.",
        "What is the total? Write it into D1.",
    ] {
        assert!(asks_for_change(change), "{change}");
    }
    for question in [
        "How many units of Tea were ordered?",
        "Which set is the largest?",
        "Sum up the amounts.",
    ] {
        assert!(!asks_for_change(question), "{question}");
    }
}
