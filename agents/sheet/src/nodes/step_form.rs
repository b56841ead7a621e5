//! The form that a planner fills whose answer was refused: one query, or the code for the change. What it writes there becomes
//! the call of a tool, as if it had made the call itself.

use archie_agent::ModelProfile;
use serde_json::{Map, Value as Json, json};
use superstep_llm::{Answer, Message, OutputSchema, Reply, Request, ToolCall};

use super::super::state::{Actions, GraphState};
use super::super::tools::{PYTHON, SELECTOR};
use super::grounds::{self, MissingStep};

/// A form with fields for the step that is missing.
pub(super) struct StepForm(MissingStep);

impl StepForm {
    /// Returns the form for what is missing, if something is and its tool may be used. A small model gets one before its first
    /// step, too.
    pub(super) fn of(state: &GraphState, profile: ModelProfile) -> Option<Self> {
        let missing = match profile {
            ModelProfile::Small if state.step == 0 => grounds::first_step(state),
            _ => grounds::missing_step(state, profile)?,
        };
        let tool = match missing {
            MissingStep::Lookup => SELECTOR,
            MissingStep::NewSheet | MissingStep::Code => PYTHON,
        };
        state.tools.contains_key(tool).then_some(Self(missing))
    }

    /// Makes the form all that the model can write.
    pub(super) fn put_into(&self, request: &mut Request, state: &GraphState) {
        let query = format!(
            "names of sheets and columns are in double quotes and texts in single quotes, as in {}",
            state.workbook.select_example
        );
        let (ask, fields) = match self.0 {
            MissingStep::Lookup => (
                format!("Write the one SELECT that finds the answer; {query}."),
                vec![("sql", SQL_CHARS)],
            ),
            MissingStep::NewSheet => (
                format!(
                    "Write the name of the new sheet, and the one SELECT that finds all of its rows; {query}."
                ),
                vec![("sheet", SHEET_CHARS), ("sql", SQL_CHARS)],
            ),
            MissingStep::Code => (
                "Write the Python code that makes the change in `workbook`.".to_owned(),
                vec![("code", CODE_CHARS)],
            ),
        };
        // Small models follow what they read last.
        let ask = format!("{ask} What is asked for: {}", state.problem.instruction);
        let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
        let field = |(name, chars): &(&str, u32)| {
            let schema = json!({ "type": "string", "minLength": 1, "maxLength": chars });
            ((*name).to_owned(), schema)
        };
        let properties: Map<String, Json> = fields.iter().map(field).collect();
        request.tools.clear();
        request.messages.push(Message::user(ask));
        request.output = Some(OutputSchema {
            name: "step".to_owned(),
            schema: json!({
                "type": "object",
                "properties": properties,
                "required": names,
                "additionalProperties": false,
            }),
        });
    }
}

/// Turns a form that the model filled into the call that runs it. Other text stays what it is.
pub(super) fn said(reply: &Reply, step: u32, actions: Actions) -> Message {
    let form = serde_json::from_str::<Json>(&reply.text()).unwrap_or_default();
    let field = |name: &str| form[name].as_str();
    let (tool, argument, input) = match (field("code"), field("sheet"), field("sql")) {
        (Some(code), ..) => (PYTHON, "code", code.to_owned()),
        (None, Some(sheet), Some(sql)) => (PYTHON, "code", new_sheet(sheet, sql)),
        (None, None, Some(sql)) => (SELECTOR, "sql", sql.to_owned()),
        _ => return reply.message(),
    };
    match actions {
        Actions::Text => Message::assistant(format!("Action: {tool}\nAction Input: {input}")),
        Actions::Calls => Message::Assistant(Answer {
            tool_calls: vec![ToolCall {
                id: format!("form-{step}"),
                name: tool.to_owned(),
                args: json!({ argument: input }),
            }],
            ..Answer::default()
        }),
    }
}

/// Returns the code that fills a new sheet. A JSON text is a Python text, too.
fn new_sheet(name: &str, sql: &str) -> String {
    let (name, sql) = (json!(name), json!(sql));
    format!("new_sheet({name}, select({sql}))")
}

const SQL_CHARS: u32 = 600;
const CODE_CHARS: u32 = 1_200;
/// No spreadsheet program opens a longer name.
const SHEET_CHARS: u32 = 31;

#[test]
fn quotes_and_line_breaks_stay_inside_of_the_code() {
    assert_eq!(
        new_sheet("A \"B\"", "SELECT 'ä'\nFROM \"T\""),
        r#"new_sheet("A \"B\"", select("SELECT 'ä'\nFROM \"T\""))"#
    );
}
