//! Runs Python over the workbook: prepares its input, collects its output, and stores what changed.

use std::collections::BTreeMap;

use serde::Deserialize;
use superstep::NodeError;

use super::{ToolContext, ToolDeps, ToolResult, summaries};
use crate::book::diff::{Diff, diff};
use crate::book::layout::Layout;
use crate::book::looks::{LookChanges, Looks};
use crate::book::mirror::select_example;
use crate::book::{BookError, read};
use crate::changes::{changed_sheets, grouped, ranges};
use crate::hints::hint;
use crate::sandbox::{End, Job, Limits};
use crate::state::WorkbookState;

impl ToolDeps {
    pub(super) async fn python(
        &self,
        code: &str,
        tool_context: &ToolContext<'_>,
    ) -> Result<ToolResult, NodeError> {
        let mut workbook = tool_context.workbook.clone();
        if workbook.baseline.is_empty() {
            let nothing = self.job("workbook\n", tool_context, &workbook).await?;
            let Some(saved) = nothing.saved else {
                return Ok(ToolResult::wrong(format!(
                    "the workbook cannot be opened here: {}",
                    nothing.observation
                )));
            };
            workbook.baseline = self
                .snapshots
                .put_book(tool_context.thread, &saved)
                .map_err(NodeError::fatal)?;
            // Compare with the baseline, so that the reported changes are those of the code and not those of opening and
            // saving.
            workbook.snapshot = workbook.baseline.clone();
        }
        let ran = self.job(code, tool_context, &workbook).await?;
        let mut observation = ran.observation;
        if let Some(saved) = &ran.saved {
            let after = match read(saved) {
                Ok(after) => after,
                Err(error) => {
                    return Ok(ToolResult {
                        workbook: Some(workbook),
                        ..ToolResult::wrong(format!("{observation}\n{error}"))
                    });
                }
            };
            let before = self.book(tool_context, &workbook.snapshot)?;
            let changed = diff(&before, &after);
            let looks = match self.looks(tool_context, &workbook.snapshot, saved)? {
                Ok(looks) => looks,
                Err(error) => {
                    return Ok(ToolResult {
                        workbook: Some(workbook),
                        ..ToolResult::wrong(format!("{observation}\n{error}"))
                    });
                }
            };
            let told = told(&changed, &looks);
            observation.push_str(&match told.is_empty() {
                true => "nothing in the workbook changed\n".to_owned(),
                false => format!("changed: {}\n", told.join(", ")),
            });
            for left_out in looks.left_out() {
                observation.push_str(&format!("cannot be saved: {left_out}\n"));
            }
            if !told.is_empty() {
                workbook.snapshot = self
                    .snapshots
                    .put_book(tool_context.thread, saved)
                    .map_err(NodeError::fatal)?;
                workbook.sheets = summaries(&after);
                workbook.select_example = select_example(&after);
            }
        }
        let lines = match ran.lines.is_empty() {
            true => None,
            false => {
                let lines = serde_json::to_vec(&ran.lines).map_err(NodeError::fatal)?;
                Some(
                    self.snapshots
                        .put_file(tool_context.thread, "lines.json", &lines)
                        .map_err(NodeError::fatal)?,
                )
            }
        };
        let mut pictures = BTreeMap::new();
        for (name, bytes) in &ran.pictures {
            let kept = self
                .snapshots
                .put_file(tool_context.thread, "png", bytes)
                .map_err(NodeError::fatal)?;
            observation.push_str(&format!("picture: {name}\n"));
            pictures.insert(name.clone(), kept);
        }
        if observation.trim().is_empty() {
            observation.push_str("it printed nothing\n");
        }
        Ok(ToolResult {
            observation,
            ok: ran.ok,
            workbook: Some(workbook),
            lines,
            pictures,
            ..ToolResult::default()
        })
    }

    /// Returns what the code changed besides the contents of cells.
    fn looks(
        &self,
        tool_context: &ToolContext<'_>,
        before: &str,
        after: &[u8],
    ) -> Result<Result<LookChanges, BookError>, NodeError> {
        let before = self
            .snapshots
            .book(tool_context.thread, before)
            .map_err(NodeError::fatal)?;
        let before = Looks::read(&before).map_err(NodeError::fatal)?;
        // The code may have left a workbook whose cells can be read and the rest of which cannot.
        Ok(Looks::read(after).map(|after| before.changes(&after)))
    }

    /// Runs the interpreter once.
    async fn job(
        &self,
        code: &str,
        tool_context: &ToolContext<'_>,
        workbook: &WorkbookState,
    ) -> Result<InterpreterRun, NodeError> {
        let sandbox = self
            .sandboxes
            .get(tool_context.sandbox.kind)
            .map_err(NodeError::fatal)?;
        let limits = tool_context.sandbox.limits;
        let input = self
            .snapshots
            .book(tool_context.thread, &tool_context.input.hash)
            .map_err(NodeError::fatal)?;
        let current = self
            .snapshots
            .book(tool_context.thread, &workbook.snapshot)
            .map_err(NodeError::fatal)?;
        let book = self.book(tool_context, &workbook.snapshot)?;
        let layouts: BTreeMap<_, _> = book
            .sheets
            .iter()
            .map(|sheet| (sheet.name.clone(), Layout::of(sheet)))
            .collect();
        let layouts = serde_json::to_vec(&layouts).map_err(NodeError::fatal)?;
        let job = Job::new(limits).map_err(NodeError::fatal)?;
        let given = [
            ("step.py", code.as_bytes()),
            ("layout.json", &layouts),
            ("current.xlsx", &current),
            ("input.xlsx", &input),
        ];
        for (name, bytes) in given {
            job.give(name, bytes).map_err(NodeError::fatal)?;
        }
        let outcome = sandbox.run(&job).await.map_err(NodeError::fatal)?;
        played(&job, outcome.end, &limits, &outcome.said).map_err(NodeError::fatal)
    }
}

/// Returns what changed, for the planner.
fn told(changed: &Diff, looks: &LookChanges) -> Vec<String> {
    let mut told = grouped(&ranges(changed));
    if told.len() > RANGES_TOLD {
        let more = told.len() - RANGES_TOLD;
        told.truncate(RANGES_TOLD);
        told.push(format!("{more} more ranges"));
    }
    let sheets = changed_sheets(changed).into_iter();
    let without_cells = sheets.filter(|sheet| sheet.cells == 0);
    told.extend(without_cells.map(|sheet| sheet.to_string()));
    told.extend(looks.lines().into_iter().take(RANGES_TOLD));
    told
}

/// What one run of the interpreter left behind.
#[derive(Debug, Default)]
struct InterpreterRun {
    observation: String,
    ok: bool,
    saved: Option<Vec<u8>>,
    lines: Vec<(String, u32, u32, u32)>,
    pictures: BTreeMap<String, Vec<u8>>,
}

/// Report of the runner. It comes from a process that ran untrusted code, so its content is checked and never trusted.
#[derive(Deserialize)]
struct RunnerReport {
    ok: bool,
    error: String,
    saved: bool,
    #[serde(default)]
    out: String,
    lines: Vec<(String, u32, u32, u32)>,
}

fn played(job: &Job, end: End, limits: &Limits, said: &str) -> std::io::Result<InterpreterRun> {
    if let Some(why) = end.says(limits) {
        return Ok(InterpreterRun {
            observation: format!("{why}\n"),
            ..InterpreterRun::default()
        });
    }
    let result = job
        .left("result.json")?
        .and_then(|bytes| serde_json::from_slice::<RunnerReport>(&bytes).ok());
    let Some(result) = result else {
        let last = said.trim().lines().last().unwrap_or("it left nothing");
        return Ok(InterpreterRun {
            observation: format!("the code ended its interpreter: {last}\n"),
            ..InterpreterRun::default()
        });
    };
    let mut observation = cut(&result.out);
    if !result.ok {
        observation.push_str(&format!("{}\n", cut(&result.error)));
        if let Some(hint) = hint(&result.error) {
            observation.push_str(&format!("Hint: {hint}\n"));
        }
        return Ok(InterpreterRun {
            observation,
            lines: Vec::new(),
            ..InterpreterRun::default()
        });
    }
    let saved = match result.saved {
        true => job.left("workbook.xlsx")?,
        false => None,
    };
    let mut pictures = BTreeMap::new();
    for name in job
        .names()?
        .into_iter()
        .filter(|name| name.ends_with(".png"))
        .take(PICTURES_MAX)
    {
        if let Some(bytes) = job
            .left(&name)?
            .filter(|bytes| bytes.starts_with(b"\x89PNG"))
        {
            pictures.insert(name, bytes);
        }
    }
    Ok(InterpreterRun {
        observation,
        ok: true,
        saved,
        lines: result.lines,
        pictures,
    })
}

/// Cuts the middle out of long output, and marks the cut.
fn cut(text: &str) -> String {
    let count = text.chars().count();
    if count <= PRINTED_MAX {
        return match text.is_empty() || text.ends_with('\n') {
            true => text.to_owned(),
            false => format!("{text}\n"),
        };
    }
    let head: String = text.chars().take(PRINTED_MAX * 3 / 4).collect();
    let tail: String = text.chars().skip(count - PRINTED_MAX / 4).collect();
    format!(
        "{head}\n[… {} characters were left out …]\n{tail}\n",
        count - PRINTED_MAX
    )
}

const PRINTED_MAX: usize = 4_000;
const RANGES_TOLD: usize = 8;
const PICTURES_MAX: usize = 20;
