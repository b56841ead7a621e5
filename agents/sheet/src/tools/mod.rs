//! The tools that the planner may call, and their results.

pub(crate) mod answer;
mod interpreter;
mod sandboxes;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep::{NodeError, ThreadId};
use superstep_agent::CallTimes;
use superstep_llm::{ToolCall, ToolSpec};

use super::book::layout::Layout;
use super::book::mirror::{Form, Mirror};
use super::book::{Book, Place};
use super::snapshots::SnapshotStore;
use super::state::{SandboxSpec, WorkbookHandle, WorkbookState};
pub use sandboxes::Sandboxes;

/// Tool that runs Python over the workbook.
pub const PYTHON: &str = "PythonInterpreter";
/// Tool that runs a `SELECT` over the SQL mirror of the workbook.
pub const SELECTOR: &str = "SheetSelector";
/// Tool that reads a range of cells.
pub const READER: &str = "CellRangeReader";
/// Tool that records the final answer.
pub const SUBMITTER: &str = "AnswerSubmitter";
/// Tool that has the informer look something up.
pub const INFORMER: &str = "Informer";

/// Every tool: name, description, name of its only argument, and description of the argument.
const TOOLS: [(&str, &str, &str, &str); 5] = [
    (
        PYTHON,
        "Runs Python over the workbook and shows what it printed. Each run is a new process; only changes of `workbook` are kept.",
        "code",
        "The code.",
    ),
    (
        SELECTOR,
        "Runs one SQL SELECT over the sheets (SQLite; a table for each sheet).",
        "sql",
        "The SELECT, with the names of sheets and columns in double quotes.",
    ),
    (
        READER,
        "Shows the cells of a range, ten by ten at most, with their formulas.",
        "range",
        "Such as Sheet1!A1:C10.",
    ),
    (
        SUBMITTER,
        "Submits the final answer and ends the work. Call it last, when everything else is done.",
        "answer",
        "The answer itself: the number, the name or the sentence that was asked for.",
    ),
    (
        INFORMER,
        "Looks up in the sheets what you need to know.",
        "question",
        "What you need to know.",
    ),
];

/// Returns the descriptions of the tools by name, as the state stores them.
pub fn names(with_informer: bool) -> BTreeMap<String, String> {
    let tools = TOOLS
        .iter()
        .filter(|(name, ..)| with_informer || *name != INFORMER);
    tools
        .map(|(name, about, ..)| ((*name).to_owned(), (*about).to_owned()))
        .collect()
}

/// Returns the name of a tool's only argument; `None` if there is no such tool.
pub(crate) fn argument(tool: &str) -> Option<&'static str> {
    let found = TOOLS.iter().find(|(name, ..)| *name == tool);
    found.map(|(_, _, argument, _)| *argument)
}

/// Returns the input of a call. Models often misname the only argument, or write a number where a text belongs.
pub(crate) fn input_of(call: &ToolCall) -> Option<String> {
    let plain = |value: &Json| match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) if call.name == SUBMITTER => Some(number.to_string()),
        _ => None,
    };
    let args = call.args.as_object()?;
    let named = argument(&call.name).and_then(|argument| args.get(argument));
    match (named, args.len()) {
        (Some(value), _) => plain(value),
        (None, 1) => args.values().next().and_then(plain),
        (None, _) => None,
    }
}

/// Returns the specifications that a model receives for these tools.
pub fn specs(names: &BTreeMap<String, String>) -> Vec<ToolSpec> {
    let known = TOOLS.iter().filter(|(name, ..)| names.contains_key(*name));
    let spec = |(name, about, argument, what): &(&str, &str, &str, &str)| ToolSpec {
        name: (*name).to_owned(),
        description: (*about).to_owned(),
        schema: json!({
            "type": "object",
            "properties": { *argument: { "type": "string", "description": what } },
            "required": [argument],
            "additionalProperties": false
        }),
    };
    known.map(spec).collect()
}

/// Dependencies of the tools, which run them.
#[derive(Debug, Clone)]
pub struct ToolDeps {
    /// Sandboxes for code.
    pub sandboxes: Arc<Sandboxes>,
    /// Store for workbooks and other files.
    pub snapshots: SnapshotStore,
}

/// Context of a tool call.
#[derive(Debug, Clone)]
pub struct ToolContext<'a> {
    /// Thread that owns the stored workbooks.
    pub thread: &'a ThreadId,
    /// The input workbook.
    pub input: &'a WorkbookHandle,
    /// The current workbook.
    pub workbook: WorkbookState,
    /// Sandbox settings.
    pub sandbox: &'a SandboxSpec,
}

/// Result of a tool call, recorded as a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Text for the planner.
    pub observation: String,
    /// Whether the tool succeeded.
    pub ok: bool,
    /// The workbook after the call; `None` if the tool does not write to it.
    pub workbook: Option<WorkbookState>,
    /// Name of the stored file that maps cells to the lines of code that wrote them, if there is one.
    pub lines: Option<String>,
    /// Pictures that the code made: name of the stored file by name of the picture.
    pub pictures: BTreeMap<String, String>,
    /// The answer, if the planner submitted one.
    pub answer: Option<String>,
    /// When the call started and how long it took. `None` in threads of older versions.
    #[serde(default)]
    pub took: Option<CallTimes>,
}

impl ToolResult {
    fn well(observation: impl Into<String>) -> Self {
        Self {
            observation: observation.into(),
            ok: true,
            ..Self::default()
        }
    }

    /// Returns a failed result that tells the planner why.
    pub fn wrong(observation: impl Into<String>) -> Self {
        Self {
            observation: observation.into(),
            ..Self::default()
        }
    }
}

impl ToolDeps {
    /// Runs a tool. Mistakes of the model or its code become observations; an error means that this machine failed.
    pub async fn run(
        &self,
        call: &ToolCall,
        tool_context: &ToolContext<'_>,
    ) -> Result<ToolResult, NodeError> {
        let Some((_, _, argument, _)) = TOOLS.iter().find(|(name, ..)| *name == call.name) else {
            let names: Vec<_> = TOOLS
                .iter()
                .map(|(name, ..)| *name)
                .filter(|name| *name != INFORMER)
                .collect();
            return Ok(ToolResult::wrong(format!(
                "there is no tool `{}`; there are {}",
                call.name,
                names.join(", ")
            )));
        };
        let Some(input) = input_of(call) else {
            return Ok(ToolResult::wrong(format!(
                "`{}` needs `{argument}`, a text; this came: {}",
                call.name, call.args
            )));
        };
        match call.name.as_str() {
            PYTHON => self.python(&input, tool_context).await,
            SELECTOR => self.select(&input, tool_context),
            READER => self.cells(&input, tool_context),
            SUBMITTER => Ok(ToolResult {
                answer: Some(input),
                ..ToolResult::well("accepted")
            }),
            _ => Ok(ToolResult::wrong("there is no informer in this run")),
        }
    }

    fn select(&self, sql: &str, tool_context: &ToolContext<'_>) -> Result<ToolResult, NodeError> {
        let book = self.book_with_results(tool_context)?;
        let mut mirror = Mirror::of(&book).map_err(NodeError::fatal)?;
        Ok(match mirror.select(sql) {
            Ok(rows) => ToolResult::well(rows.shown(Form::Markdown)),
            Err(error) => ToolResult::wrong(mirror.explain(&error)),
        })
    }

    fn cells(&self, range: &str, tool_context: &ToolContext<'_>) -> Result<ToolResult, NodeError> {
        let book = self.book_with_results(tool_context)?;
        let Some((sheet, cells)) = range.rsplit_once('!') else {
            return Ok(ToolResult::wrong(format!(
                "`{range}` is not a range; write Sheet1!A1:C10"
            )));
        };
        let Some(sheet) = book.sheet(sheet.trim_matches('\'')) else {
            return Ok(ToolResult::wrong(format!("there is no sheet `{sheet}`")));
        };
        let (first, last) = cells.split_once(':').unwrap_or((cells, cells));
        let (Some(first), Some(last)) = (Place::parse(first), Place::parse(last)) else {
            return Ok(ToolResult::wrong(format!(
                "`{cells}` is not a range; write A1:C10"
            )));
        };
        if last.row < first.row
            || last.column < first.column
            || last.row - first.row >= 10
            || last.column - first.column >= 10
        {
            return Ok(ToolResult::wrong(
                "a range of ten rows and ten columns at most, please",
            ));
        }
        let mut shown = String::new();
        for row in first.row..=last.row {
            for column in first.column..=last.column {
                let place = Place { row, column };
                let Some(content) = sheet.content(place) else {
                    continue;
                };
                let value = sheet
                    .values
                    .get(&place)
                    .filter(|_| sheet.formulas.contains_key(&place));
                let value = value.map(|value| format!(" = {value}")).unwrap_or_default();
                shown.push_str(&format!("{place}: {content}{value}\n"));
            }
        }
        Ok(ToolResult::well(if shown.is_empty() {
            "all of them are empty".to_owned()
        } else {
            shown
        }))
    }

    /// Returns the current workbook with the results of unchanged formulas, taken from the input. The interpreter saves
    /// formulas without their results.
    pub fn book_with_results(&self, tool_context: &ToolContext<'_>) -> Result<Book, NodeError> {
        let mut book = Book::clone(&*self.book(tool_context, &tool_context.workbook.snapshot)?);
        if tool_context.workbook.snapshot == tool_context.input.hash
            || tool_context.workbook.baseline.is_empty()
        {
            return Ok(book);
        }
        let input = self.book(tool_context, &tool_context.input.hash)?;
        let baseline = self.book(tool_context, &tool_context.workbook.baseline)?;
        for sheet in &mut book.sheets {
            let (Some(before), Some(input)) =
                (baseline.sheet(&sheet.name), input.sheet(&sheet.name))
            else {
                continue;
            };
            for (place, formula) in &sheet.formulas {
                if before.formulas.get(place) == Some(formula)
                    && let Some(value) = input.values.get(place)
                {
                    sheet.values.insert(*place, value.clone());
                }
            }
        }
        Ok(book)
    }

    fn book(&self, tool_context: &ToolContext<'_>, id: &str) -> Result<Arc<Book>, NodeError> {
        self.snapshots
            .read(tool_context.thread, id)
            .map_err(NodeError::fatal)
    }
}

/// Returns one summary line per sheet.
pub fn summaries(book: &Book) -> Vec<String> {
    book.sheets
        .iter()
        .map(|sheet| Layout::of(sheet).summary(&sheet.name))
        .collect()
}
