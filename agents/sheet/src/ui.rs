//! User interface of the agent: a change set to review, and result files at the end.

use std::path::{Path, PathBuf};

use archie_agent::printable::{counted, one_line};
use archie_agent::{
    AgentUi, AnswerChoice, Exit, InterruptRequest, Output, ThreadFolders, state_of,
};
use serde_json::{Value as Json, json};
use superstep::checkpoint::BoxFuture;
use superstep::{AnyThread, ThreadId};

use super::changes::{ChangedSheet, Range, Verdict, VerdictKind, grouped};
use super::output::{self, spent};
use super::snapshots::SnapshotStore;
use super::state::{GraphState, Stopped};
use super::step_text;
use super::{CHANGE_SET_NODE, TOOL_NODE};

/// Shows a change set to a person, and writes the files that they accept.
#[derive(Debug)]
pub(super) struct SheetUi {
    pub(super) snapshots: SnapshotStore,
    pub(super) folders: Option<ThreadFolders>,
}

impl AgentUi for SheetUi {
    fn describe(&self, interrupt: &InterruptRequest) -> String {
        let mut words = String::new();
        if let Some(problem) = interrupt.request["problem"].as_str() {
            words.push_str(&format!("{problem}\n"));
        }
        let texts = |name: &str| {
            let texts = interrupt.request[name].as_array().cloned();
            let texts = texts.unwrap_or_default().into_iter();
            texts.filter_map(|text| text.as_str().map(one_line))
        };
        for sheet in interrupt.request["sheets"].as_array().into_iter().flatten() {
            if let Ok(sheet) = serde_json::from_value::<ChangedSheet>(sheet.clone()) {
                words.push_str(&format!("{sheet}\n"));
            }
        }
        let ranges: Vec<Range> = ranges_of(interrupt)
            .filter_map(|range| serde_json::from_value(range.clone()).ok())
            .collect();
        let cells: usize = ranges.iter().map(|range| range.cells).sum();
        // What many cells have in common comes first; a person reads the cells afterwards, page by page.
        let is_large = cells > CELLS_AT_A_GLANCE;
        if is_large {
            let overview = grouped(&ranges);
            for line in overview.iter().take(OVERVIEW_LINES) {
                words.push_str(&format!("  {}\n", one_line(line)));
            }
            if overview.len() > OVERVIEW_LINES {
                let more = overview.len() - OVERVIEW_LINES;
                words.push_str(&format!("  and {} more\n", counted(more, "range")));
            }
        }
        if let Some(cells) = interrupt.request["cells"].as_u64() {
            words.push_str(&format!("{}\n", counted(cells as usize, "changed cell")));
        }
        for line in texts("looks") {
            words.push_str(&format!("  {line}\n"));
        }
        for line in texts("left_out") {
            words.push_str(&format!("  not saved: {line}\n"));
        }
        for check in interrupt.request["checks"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|check| check["ok"] == json!(false))
        {
            let text = |name: &str| check[name].as_str().unwrap_or_default().to_owned();
            words.push_str(&format!(
                "  does not hold: {}: {}\n",
                text("name"),
                text("found")
            ));
        }
        if is_large {
            words.push_str("Every changed cell:\n");
        }
        for range in ranges_of(interrupt) {
            for line in range["shown"].as_array().into_iter().flatten() {
                words.push_str(&format!("  {}\n", line.as_str().unwrap_or_default()));
            }
            let missing = missing(range);
            if missing > 0 {
                words.push_str(&format!(
                    "  {} of {} not shown\n",
                    counted(missing, "cell"),
                    range["range"].as_str().unwrap_or_default()
                ));
            }
        }
        words.push_str(
            interrupt.request["summary"]
                .as_str()
                .unwrap_or(&interrupt.words()),
        );
        words
    }

    fn prompt(&self, interrupt: &InterruptRequest) -> String {
        match interrupt.kind.as_str() {
            "approval" if interrupt.node == CHANGE_SET_NODE => "Accept? [y/n/e] ".to_owned(),
            "approval" => "[y/n] ".to_owned(),
            _ => interrupt.prompt(),
        }
    }

    fn choices(&self, interrupt: &InterruptRequest) -> Vec<AnswerChoice> {
        if interrupt.kind != "approval" {
            return AnswerChoice::of(interrupt);
        }
        let mut choices = vec![
            AnswerChoice::line('a', "accept", "accept"),
            AnswerChoice::line('i', "reject", "reject"),
        ];
        if interrupt.node == CHANGE_SET_NODE {
            choices.insert(1, AnswerChoice::rest('e', "accept with changes", "edit "));
        }
        choices
    }

    fn answer_effects(&self, interrupt: &InterruptRequest) -> Vec<(&'static str, &'static str)> {
        match interrupt.kind.as_str() {
            "approval" if interrupt.node == CHANGE_SET_NODE => vec![
                ("y", "save the workbook with these changes"),
                ("n", "save nothing"),
                (
                    "e …",
                    "save a part: `e reject Sheet!A1:B2; set Sheet!C3=12`",
                ),
            ],
            "approval" => vec![("y", "yes"), ("n", "no")],
            _ => interrupt.answer_effects(),
        }
    }

    fn read_answer(&self, interrupt: &InterruptRequest, line: &str) -> Result<Json, String> {
        if interrupt.kind != "approval" {
            return interrupt.read(line);
        }
        if line.trim() == "e" {
            return Err("say what: `e reject Sheet!A1:B2; set Sheet!C3=12`".to_owned());
        }
        let verdict = match serde_json::from_str::<Verdict>(line) {
            Ok(verdict) => verdict,
            Err(_) => Verdict::from_line(line).map_err(|wrong| wrong.to_string())?,
        };
        serde_json::to_value(verdict).map_err(|error| error.to_string())
    }

    /// Interrupts of older versions held at most twenty cells per range, and two hundred ranges.
    fn is_complete(&self, interrupt: &InterruptRequest) -> bool {
        let left_out = interrupt.request["ranges_left_out"].as_u64().unwrap_or(0);
        left_out == 0 && ranges_of(interrupt).all(|range| missing(range) == 0)
    }

    fn is_finished(&self, state: &Json) -> bool {
        !state["stopped"].is_null()
    }

    fn reopen(&self, state: &Json) -> Option<(&'static str, Json)> {
        let is_stopped = state["stopped"] == json!(Stopped::Budget);
        is_stopped.then(|| (TOOL_NODE, json!({ "stopped": null })))
    }

    fn describe_input(&self, input: &Json) -> Option<String> {
        step_text::describe_input(input)
    }

    fn describe_step(&self, node: &str, update: &Json) -> Option<String> {
        step_text::describe_step(node, update)
    }

    fn with_model(&self, state: &Json, model: &str) -> Option<Json> {
        let mut planner = state["planner"].as_object()?.clone();
        planner.insert("model".to_owned(), json!(model));
        Some(json!({ "planner": planner }))
    }

    fn files(&self, thread: &ThreadId) -> Option<PathBuf> {
        Some(self.snapshots.folder_of(thread))
    }

    fn tenant_files(&self, tenant: &str) -> Option<PathBuf> {
        self.snapshots.folder_of_tenant(tenant)
    }

    fn finish<'a>(
        &'a self,
        out: &'a Output<'a>,
        thread: &'a dyn AnyThread,
    ) -> BoxFuture<'a, anyhow::Result<Exit>> {
        Box::pin(finish(thread, out, self))
    }
}

fn ranges_of(interrupt: &InterruptRequest) -> impl Iterator<Item = &Json> {
    interrupt.request["ranges"].as_array().into_iter().flatten()
}

/// Returns how many changed cells of a range the interrupt does not list.
fn missing(range: &Json) -> usize {
    let cells = range["cells"].as_u64().unwrap_or_default() as usize;
    let shown = range["shown"].as_array().map_or(0, Vec::len);
    cells.saturating_sub(shown)
}

async fn finish(thread: &dyn AnyThread, out: &Output<'_>, ui: &SheetUi) -> anyhow::Result<Exit> {
    let snapshots = &ui.snapshots;
    let state: GraphState = state_of(thread).await?;
    let id = thread.id().clone();
    if state.stopped == Some(Stopped::Budget) {
        out.tell(&format!(
            "stopped at the budget; everything is kept, `archie resume {id}` asks again"
        ));
        return Ok(Exit::Budget);
    }
    let written = output::save(snapshots, ui.folders.as_ref(), &id, &state)?;
    let stopped = state.stopped.unwrap_or(Stopped::StepLimit);
    let has_result = output::has_result(snapshots, &id, &state)?;
    let failed: Vec<_> = state.checks.iter().filter(|check| !check.ok).collect();
    match out.json {
        true => out.terminal.json(&json!({
            "thread": id.to_string(),
            "stopped": stopped.says(),
            "has_result": has_result,
            "answer": state.answer,
            "files": written.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
            "checks": state.checks,
            "verdict": state.verdict,
            "calls": state.calls.len(),
        })),
        false => {
            if !state.answer.is_empty() {
                out.terminal.line(&state.answer);
            }
            if stopped != Stopped::Finished {
                out.terminal.line(stopped.says());
            }
            for check in failed {
                out.terminal
                    .line(&format!("does not hold: {}: {}", check.name, check.found));
            }
            if state
                .verdict
                .as_ref()
                .is_some_and(|verdict| verdict.kind == VerdictKind::Reject)
            {
                out.terminal.line("nothing was saved");
            }
            let names: Vec<_> = written.iter().map(|path| shown(path)).collect();
            match has_result {
                true => out.terminal.line(&format!("Finish → {}", names.join(", "))),
                false => {
                    out.terminal
                        .line(&format!("{}; see {}", no_result(&state), names.join(", ")))
                }
            }
            out.terminal.line(&spent(&state));
        }
    }
    Ok(match stopped {
        Stopped::RecipeFailed | Stopped::OtherShape => Exit::Failed,
        Stopped::Budget => Exit::Budget,
        _ if !has_result => Exit::Failed,
        Stopped::Finished | Stopped::StepLimit | Stopped::Repeated => Exit::Done,
    })
}

/// Returns what to tell the person about a run that came to nothing.
fn no_result(state: &GraphState) -> String {
    let remedy = match state.recipe {
        Some(_) => "check that the recipe is meant for this workbook",
        None => "try a more capable model, or a simpler instruction",
    };
    format!("No result: there is no answer, and the workbook is unchanged; {remedy}")
}

/// Returns the path relative to the current folder, if it is below it.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let path = path.strip_prefix(&here).unwrap_or(path);
    one_line(&path.display().to_string())
}

/// So many changed cells are read without an overview.
const CELLS_AT_A_GLANCE: usize = 20;
/// Lines of the overview of a large change set.
const OVERVIEW_LINES: usize = 20;
