//! Python over the workbook: what is given to it, what it leaves, what of that is told and kept.

use std::collections::BTreeMap;

use serde::Deserialize;
use superstep::NodeError;

use super::{Bench, Desk, Ran, summaries};
use crate::book::diff::diff;
use crate::book::layout::Layout;
use crate::book::read;
use crate::changes::ranges;
use crate::hints::hint;
use crate::sandbox::{End, Job, Limits};
use crate::state::WorkbookState;

impl Bench {
    pub(super) async fn python(&self, code: &str, desk: &Desk<'_>) -> Result<Ran, NodeError> {
        let mut workbook = desk.workbook.clone();
        if workbook.baseline.is_empty() {
            let nothing = self.job("workbook\n", desk, &workbook).await?;
            let Some(saved) = nothing.saved else {
                return Ok(Ran::wrong(format!(
                    "the workbook cannot be opened here: {}",
                    nothing.observation
                )));
            };
            workbook.baseline = self
                .keep
                .put_book(desk.thread, &saved)
                .map_err(NodeError::fatal)?;
            // So that what is told as changed is what the code did, and not what opening and saving does.
            workbook.snapshot = workbook.baseline.clone();
        }
        let ran = self.job(code, desk, &workbook).await?;
        let mut observation = ran.observation;
        if let Some(saved) = &ran.saved {
            let after = match read(saved) {
                Ok(after) => after,
                Err(error) => {
                    return Ok(Ran {
                        workbook: Some(workbook),
                        ..Ran::wrong(format!("{observation}\n{error}"))
                    });
                }
            };
            let before = self.book(desk, &workbook.snapshot)?;
            let changed = diff(&before, &after);
            let told: Vec<_> = ranges(&changed)
                .iter()
                .take(RANGES_TOLD)
                .map(ToString::to_string)
                .collect();
            observation.push_str(&match told.is_empty() {
                true => "nothing in the workbook changed\n".to_owned(),
                false => format!("changed: {}\n", told.join(", ")),
            });
            if !told.is_empty() {
                workbook.snapshot = self
                    .keep
                    .put_book(desk.thread, saved)
                    .map_err(NodeError::fatal)?;
                workbook.sheets = summaries(&after);
            }
        }
        let lines = match ran.lines.is_empty() {
            true => None,
            false => {
                let lines = serde_json::to_vec(&ran.lines).map_err(NodeError::fatal)?;
                Some(
                    self.keep
                        .put_file(desk.thread, "lines.json", &lines)
                        .map_err(NodeError::fatal)?,
                )
            }
        };
        let mut pictures = BTreeMap::new();
        for (name, bytes) in &ran.pictures {
            let kept = self
                .keep
                .put_file(desk.thread, "png", bytes)
                .map_err(NodeError::fatal)?;
            observation.push_str(&format!("picture: {name}\n"));
            pictures.insert(name.clone(), kept);
        }
        if observation.trim().is_empty() {
            observation.push_str("it printed nothing\n");
        }
        Ok(Ran {
            observation,
            ok: ran.ok,
            workbook: Some(workbook),
            lines,
            pictures,
            ..Ran::default()
        })
    }

    /// One run of the interpreter.
    async fn job(
        &self,
        code: &str,
        desk: &Desk<'_>,
        workbook: &WorkbookState,
    ) -> Result<Played, NodeError> {
        let sandbox = self
            .sandboxes
            .get(desk.sandbox.kind)
            .map_err(NodeError::fatal)?;
        let limits = desk.sandbox.limits;
        let input = self
            .keep
            .book(desk.thread, &desk.input.hash)
            .map_err(NodeError::fatal)?;
        let current = self
            .keep
            .book(desk.thread, &workbook.snapshot)
            .map_err(NodeError::fatal)?;
        let book = self.book(desk, &workbook.snapshot)?;
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

/// What one run of the interpreter left.
#[derive(Debug, Default)]
struct Played {
    observation: String,
    ok: bool,
    saved: Option<Vec<u8>>,
    lines: Vec<(String, u32, u32, u32)>,
    pictures: BTreeMap<String, Vec<u8>>,
}

/// What the runner writes down. It comes from a process that ran a stranger's code: it is looked at, never trusted.
#[derive(Deserialize)]
struct Result_ {
    ok: bool,
    error: String,
    saved: bool,
    #[serde(default)]
    out: String,
    lines: Vec<(String, u32, u32, u32)>,
}

fn played(job: &Job, end: End, limits: &Limits, said: &str) -> std::io::Result<Played> {
    if let Some(why) = end.says(limits) {
        return Ok(Played {
            observation: format!("{why}\n"),
            ..Played::default()
        });
    }
    let result = job
        .left("result.json")?
        .and_then(|bytes| serde_json::from_slice::<Result_>(&bytes).ok());
    let Some(result) = result else {
        let last = said.trim().lines().last().unwrap_or("it left nothing");
        return Ok(Played {
            observation: format!("the code ended its interpreter: {last}\n"),
            ..Played::default()
        });
    };
    let mut observation = cut(&result.out);
    if !result.ok {
        observation.push_str(&format!("{}\n", cut(&result.error)));
        if let Some(hint) = hint(&result.error) {
            observation.push_str(&format!("Hint: {hint}\n"));
        }
        return Ok(Played {
            observation,
            lines: Vec::new(),
            ..Played::default()
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
    Ok(Played {
        observation,
        ok: true,
        saved,
        lines: result.lines,
        pictures,
    })
}

/// So much of what was printed, and it is said where it was cut.
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
