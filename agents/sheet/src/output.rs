//! Result files: workbook, recipe, report, list of changes and pictures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use archie_agent::user_folder::{Access, FileName, FolderError, UserFolder};
use archie_agent::{ThreadFolders, markdown};
use superstep::ThreadId;

use super::book::diff::Diff;
use super::book::looks::LookChanges;
use super::book::patch::patch;
use super::changes::{BadVerdict, Verdict, VerdictKind, edits, grouped, line, ranges};
use super::checks::Check;
use super::recipe::Recipe;
use super::review::{self, Review};
use super::snapshots::{SnapshotError, SnapshotStore};
use super::state::{GraphState, Stopped};

/// Why the result files could not be created or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// A stored workbook or file could not be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The person's verdict does not fit the change set.
    #[error(transparent)]
    Verdict(#[from] BadVerdict),
    /// The requested step does not exist.
    #[error("there is no step {step}; there are {steps}")]
    NoStep {
        /// The requested step.
        step: u32,
        /// Number of steps in the thread.
        steps: u32,
    },
    /// A result file or its folder could not be written.
    #[error("the results cannot be written")]
    Write(#[from] FolderError),
}

impl From<super::book::BookError> for OutputError {
    fn from(error: super::book::BookError) -> Self {
        Self::Snapshot(error.into())
    }
}

/// Creates all result files, by name. The same state always gives the same files.
pub fn files(
    snapshots: &SnapshotStore,
    thread: &ThreadId,
    state: &GraphState,
) -> Result<BTreeMap<String, Vec<u8>>, OutputError> {
    let review = review::of(snapshots, thread, state)?;
    let verdict = state.verdict.clone().unwrap_or_else(Verdict::accept);
    let (kept, looks) = verdict.apply(&review.diff, &review.looks)?;
    let mut files = BTreeMap::new();
    // A copy of the input under the name of a result would look like one.
    let is_changed = !edits(&kept, &looks).is_empty();
    if is_changed {
        files.insert(
            WORKBOOK.to_owned(),
            workbook(snapshots, thread, state, &kept, &looks)?,
        );
    }
    let input = snapshots.read(thread, &state.problem.workbook.hash)?;
    let result = snapshots.read(thread, &state.workbook.snapshot)?;
    let recipe = Recipe {
        approved: is_changed,
        ..Recipe::of(state, &input, &result, &kept)
    };
    if !recipe.steps.is_empty() {
        files.insert("code.py".to_owned(), recipe.written().into_bytes());
    }
    let cells: String = kept
        .changes
        .iter()
        .map(|change| format!("{}\n", line(change)))
        .collect();
    if !cells.is_empty() {
        files.insert("changes.txt".to_owned(), cells.into_bytes());
    }
    for done in &state.journal {
        for (name, kept) in &done.pictures {
            files.insert(name.clone(), snapshots.file(thread, kept)?);
        }
    }
    files.insert(
        "report.md".to_owned(),
        report(state, &review, (&kept, &looks), &verdict).into_bytes(),
    );
    Ok(files)
}

/// Returns whether a run came to something: an answer, a change of the workbook, or a picture. A change that the person rejected
/// counts, because the run offered it.
pub fn has_result(
    snapshots: &SnapshotStore,
    thread: &ThreadId,
    state: &GraphState,
) -> Result<bool, OutputError> {
    let draws = state.journal.iter().any(|done| !done.pictures.is_empty());
    if !state.answer.is_empty() || draws {
        return Ok(true);
    }
    let review = review::of(snapshots, thread, state)?;
    Ok(!review.is_empty())
}

/// Writes the files into the output folder, each atomically, and returns their paths. Refuses a link in place of the folder,
/// and replaces a link in place of a file.
pub fn write(
    files: &BTreeMap<String, Vec<u8>>,
    output: &Path,
) -> Result<Vec<PathBuf>, OutputError> {
    let folder = UserFolder::create_unlinked(output, Access::Private)?;
    let mut written = Vec::new();
    for (name, bytes) in files {
        let path = FileName::new(name).map_err(FolderError::from)?;
        folder.write(&path.into(), bytes, Access::Private)?;
        written.push(output.join(name));
    }
    Ok(written)
}

/// Creates and writes all result files of an analysis into its output folder, or into the results of the thread if a caller of a
/// server asked for it. Writing them again changes nothing. Returns their paths.
pub fn save(
    snapshots: &SnapshotStore,
    folders: Option<&ThreadFolders>,
    thread: &ThreadId,
    state: &GraphState,
) -> anyhow::Result<Vec<PathBuf>> {
    let files = files(snapshots, thread, state)?;
    let folder = ThreadFolders::resolve(folders, thread, &state.problem.output_dir)?;
    Ok(write(&files, &folder)?)
}

/// Returns the workbook of a thread as it is or would be saved: with the changes that the person accepted, or with all of them
/// if nobody has decided yet.
pub fn result(
    snapshots: &SnapshotStore,
    thread: &ThreadId,
    state: &GraphState,
) -> Result<Vec<u8>, OutputError> {
    let review = review::of(snapshots, thread, state)?;
    let verdict = state.verdict.clone().unwrap_or_else(Verdict::accept);
    let (kept, looks) = verdict.apply(&review.diff, &review.looks)?;
    workbook(snapshots, thread, state, &kept, &looks)
}

/// Returns the workbook as of a step, as changes applied to the person's original file. Step 0 is the input.
pub fn at_step(
    snapshots: &SnapshotStore,
    thread: &ThreadId,
    state: &GraphState,
    step: u32,
) -> Result<Vec<u8>, OutputError> {
    if step > state.step {
        return Err(OutputError::NoStep {
            step,
            steps: state.step,
        });
    }
    let last = state.journal.iter().rfind(|done| done.step <= step);
    let mut then = state.clone();
    match last {
        Some(done) if !state.workbook.baseline.is_empty() => {
            then.workbook.snapshot.clone_from(&done.snapshot)
        }
        _ => return Ok(snapshots.book(thread, &state.problem.workbook.hash)?),
    }
    // Before code first ran, the workbook was the input itself.
    if then.workbook.snapshot == state.problem.workbook.hash {
        return Ok(snapshots.book(thread, &state.problem.workbook.hash)?);
    }
    let review = review::of(snapshots, thread, &then)?;
    workbook(snapshots, thread, state, &review.diff, &review.looks)
}

fn workbook(
    snapshots: &SnapshotStore,
    thread: &ThreadId,
    state: &GraphState,
    kept: &Diff,
    looks: &LookChanges,
) -> Result<Vec<u8>, OutputError> {
    let input = snapshots.book(thread, &state.problem.workbook.hash)?;
    let edits = edits(kept, looks);
    match edits.is_empty() {
        true => Ok(input),
        false => Ok(patch(&input, &edits)?),
    }
}

fn report(
    state: &GraphState,
    review: &Review,
    kept: (&Diff, &LookChanges),
    verdict: &Verdict,
) -> String {
    let mut text = format!("# {}\n\n", markdown::text(&state.problem.instruction));
    let stopped = state.stopped.map_or("still under way", Stopped::says);
    text.push_str(&format!(
        "Workbook: {} ({stopped} after {} steps).\n\n",
        markdown::code(&state.problem.workbook.path),
        state.step
    ));
    if !state.answer.is_empty() {
        // As a quotation, so that an answer cannot imitate the checks below it.
        let answer = markdown::quoted(&markdown::sanitize(&state.answer));
        text.push_str(&format!("## Answer\n\n{answer}\n"));
    }
    if state.answer.is_empty() && review.is_empty() {
        text.push_str("**No result**: the run gave no answer and changed nothing.\n\n");
    }
    text.push_str(&changes(review, kept, verdict));
    text.push_str("## Checks\n\n");
    state
        .checks
        .iter()
        .for_each(|check| text.push_str(&check_line(check)));
    if state.checks.is_empty() {
        text.push_str("Nothing was changed, so nothing was checked.\n");
    }
    text.push_str("\n## Steps\n\n");
    for done in &state.journal {
        let how = if done.ok { "ok" } else { "failed" };
        text.push_str(&format!(
            "### Step {}: {}, {how}\n\n{}\n{}\n",
            done.step,
            markdown::text(&done.tool),
            markdown::fenced("", done.input.trim_end()),
            markdown::fenced("", done.observation.trim_end())
        ));
        done.pictures.keys().for_each(|name| {
            let (words, target) = (markdown::text(name), markdown::target(name));
            text.push_str(&format!("![{words}]({target})\n\n"));
        });
    }
    if let Some(degraded) = &state.degraded {
        text.push_str(&format!("**Degraded**: {}\n\n", markdown::text(degraded)));
    }
    text.push_str(&format!("{}\n", spent(state)));
    text
}

fn changes(review: &Review, kept: (&Diff, &LookChanges), verdict: &Verdict) -> String {
    let (kept, looks) = kept;
    let told = match verdict.kind {
        VerdictKind::Accept => "accepted",
        VerdictKind::Reject => "rejected",
        VerdictKind::Edit => "accepted with exceptions",
    };
    let summary = markdown::text(&review.summary());
    let mut text = format!("## Changes\n\n{summary} ({told})\n\n");
    for range in grouped(&ranges(kept)).iter().chain(&looks.lines()) {
        text.push_str(&format!("- {}\n", markdown::text(range)));
    }
    for left_out in looks.left_out() {
        text.push_str(&format!("- **not saved**: {}\n", markdown::text(&left_out)));
    }
    for change in kept.changes.iter().take(REPORTED_MAX) {
        text.push_str(&format!("    - {}\n", markdown::text(&line(change))));
    }
    if kept.changes.len() > REPORTED_MAX {
        text.push_str(&format!(
            "    - and {} more in changes.txt\n",
            kept.changes.len() - REPORTED_MAX
        ));
    }
    text.push('\n');
    text
}

fn check_line(check: &Check) -> String {
    let mark = if check.ok {
        "holds"
    } else {
        "**does not hold**"
    };
    format!(
        "- {}: {mark} ({})\n",
        check.name,
        markdown::text(&check.found)
    )
}

/// Returns the total usage of the model calls in one line.
pub fn spent(state: &GraphState) -> String {
    let mut usage = superstep_llm::Usage::default();
    let mut cost = superstep_llm::Cost::NanoDollars(0);
    for call in &state.calls {
        usage += call.usage.unwrap_or_default();
        cost = cost.plus(call.cost);
    }
    format!(
        "{} model calls, {} tokens in, {} out, cost {cost}",
        state.calls.len(),
        usage.input_tokens,
        usage.output_tokens
    )
}

/// File name of the resulting workbook.
pub const WORKBOOK: &str = "workbook_new.xlsx";
const REPORTED_MAX: usize = 100;
