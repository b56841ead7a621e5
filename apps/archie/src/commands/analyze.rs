//! The command: reads the notes, runs the graph, asks the person, until they are done.

use std::path::{Path, PathBuf};

use anyhow::bail;
use serde_json::{Value as Json, json};

use super::evidence;
use super::inputs::{self, Read};
use super::prompts::QUERY;
use super::result::{self, persist_final_output};
use super::state::{AppState, AppStateUpdate, Call, Section};
use super::{ANALYSIS_INTERRUPT, ANALYSIS_PREPARE, NAME};
use crate::agents::{AnyThread, BoxFuture, state_of};
use crate::exit::Exit;
use crate::printable::one_line;
use crate::questions::Asked;
use crate::say::Say;
use crate::spent::Spent;
use crate::talk::{Manner, Talk};

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct AnalyzeArgs {
    /// Question to decide. Default: asks for it
    #[arg(long)]
    pub query: Option<String>,
    /// Folder with your notes (.txt and .md)
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub inputs: Option<PathBuf>,
    /// Also read subfolders
    #[arg(long)]
    pub recursive: bool,
    /// Check a finished analysis against changed notes, and reopen what they no longer support
    #[arg(long, value_name = "THREAD", conflicts_with_all = ["query", "inputs"])]
    pub recheck: Option<String>,
    /// Print the result as JSON, and everything else to stderr
    #[arg(long)]
    pub json: bool,
}

/// `analyze` from its arguments to its end.
pub async fn handle_analyze_command(
    args: &AnalyzeArgs,
    model_name: &str,
    talk: &Talk<'_>,
) -> anyhow::Result<Exit> {
    if let Some(thread) = &args.recheck {
        return recheck(thread, talk).await;
    }
    let query = match &args.query {
        Some(query) => query.clone(),
        None => talk.say.ask("What is to be decided? ")?.unwrap_or_default(),
    };
    if query.trim().is_empty() {
        bail!("nothing to decide was given; say it with --query \"…\"");
    }
    let Some(folder) = &args.inputs else {
        bail!("no notes were given; say where they are with --inputs DIR");
    };
    let read = inputs::read_files(folder, args.recursive)?;
    let agent = talk.home.agent(NAME)?;
    let thread = talk.new_thread(&**agent, &query)?;
    tell_inputs(&thread.id(), &read, talk);
    let start = initial_state(&query, read, model_name);
    talk.begin(&**agent, &*thread, serde_json::to_value(start)?)
        .await
}

/// How the analyst meets a person: an interview, and a file at its end.
pub(super) struct Interview;

impl Manner for Interview {
    fn put(&self, asked: &Asked) -> String {
        format!("Agent: {}", asked.words())
    }

    fn is_said_already(&self, asked: &Asked) -> bool {
        asked.node == ANALYSIS_INTERRUPT
    }

    fn is_finished(&self, state: &Json) -> bool {
        state["analysisOutput"] != json!("")
    }

    fn reopen(&self, state: &Json) -> Option<(&'static str, Json)> {
        let is_stopped = !state["stopped"].is_null();
        is_stopped.then(|| (ANALYSIS_INTERRUPT, json!({ "stopped": null })))
    }

    fn with_model(&self, _state: &Json, model: &str) -> Option<Json> {
        Some(json!({ "modelName": model }))
    }

    fn finish<'a>(
        &'a self,
        talk: &'a Talk<'a>,
        thread: &'a dyn AnyThread,
    ) -> BoxFuture<'a, anyhow::Result<Exit>> {
        Box::pin(finish(thread, talk))
    }
}

fn initial_state(query: &str, read: Read, model_name: &str) -> AppStateUpdate {
    AppStateUpdate::default()
        .user_input(format!("{QUERY}{query}"))
        .file_contents(read.contents)
        .inputs(read.inputs)
        .model_name(model_name.to_owned())
        .analysis_output(String::new())
        .current_analysis_query(String::new())
}

/// Shows the result and writes it beside the notes.
async fn finish(thread: &dyn AnyThread, talk: &Talk<'_>) -> anyhow::Result<Exit> {
    let output = get_final_output(thread).await?;
    let say = talk.say;
    if output.stopped.is_some() {
        let id = thread.id();
        talk.tell(&format!(
            "stopped at the budget; everything is kept, `archie resume {id}` asks again"
        ));
        return Ok(Exit::Budget);
    }
    let folder = PathBuf::from(&output.inputs.folder);
    let saved = persist_final_output(&output.analysis_output, &folder)?;
    match talk.json {
        true => say.json(&report(&thread.id(), &output, &saved)),
        false => {
            display_final_output_to_user(&output.analysis_output, say);
            say.line(&format!("saved {}", saved.display()));
            say.line(&spent(&output.calls).to_string());
        }
    }
    Ok(Exit::Done)
}

async fn get_final_output(thread: &dyn AnyThread) -> anyhow::Result<AppState> {
    state_of(thread).await
}

fn display_final_output_to_user(output: &str, say: &dyn Say) {
    say.line("--- Final Analysis Output ---");
    say.markdown(output);
}

fn report(thread: &str, state: &AppState, saved: &Path) -> Json {
    json!({
        "thread": thread,
        "saved": saved.display().to_string(),
        "output": state.analysis_output,
        "findings": state.findings,
        "degraded": state.degraded,
        "calls": state.calls,
    })
}

/// What the calls of an analysis took.
fn spent(calls: &[Call]) -> Spent {
    let mut spent = Spent::default();
    for call in calls {
        spent.add(call.usage, call.cost);
    }
    spent
}

fn tell_inputs(id: &str, read: &Read, talk: &Talk<'_>) {
    let mut names: Vec<_> = read
        .contents
        .keys()
        .take(NAMES_SHOWN)
        .map(|name| one_line(name))
        .collect();
    if read.contents.len() > NAMES_SHOWN {
        names.push(format!("and {} more", read.contents.len() - NAMES_SHOWN));
    }
    let names = match names.is_empty() {
        true => "no notes".to_owned(),
        false => names.join(", "),
    };
    let all = &read.inputs.skipped;
    let mut skipped: Vec<_> = all
        .iter()
        .take(SKIPPED_SHOWN)
        .map(|skipped| one_line(&skipped.name))
        .collect();
    if all.len() > SKIPPED_SHOWN {
        skipped.push(format!("and {} more", all.len() - SKIPPED_SHOWN));
    }
    let skipped = match skipped.is_empty() {
        true => String::new(),
        false => format!(" (skipped {})", skipped.join(", ")),
    };
    talk.tell(&format!("thread {id}  read {names}{skipped}"));
    let unusual = || all.iter().filter(|skipped| !inputs::is_ordinary(skipped));
    for skipped in unusual().take(REASONS_SHOWN) {
        talk.say
            .aside(&format!("skipped {}: {}", skipped.name, skipped.why));
    }
    if let Some(more @ 1..) = unusual().count().checked_sub(REASONS_SHOWN) {
        talk.say.aside(&format!(
            "skipped {more} more; `archie show {id} --json` has the reasons"
        ));
    }
}

/// How many names go into the line that says what was read.
const NAMES_SHOWN: usize = 100;
const SKIPPED_SHOWN: usize = 20;

/// How many notes that were not read are named with the reason.
const REASONS_SHOWN: usize = 50;

/// Reads the notes again. What they no longer support is taken up with the person once more.
async fn recheck(prefix: &str, talk: &Talk<'_>) -> anyhow::Result<Exit> {
    let (thread, row) = talk.home.find(prefix).await?;
    let id = row.thread.to_string();
    if row.graph != NAME {
        bail!("{id} is a thread of `{}`, not an analysis", row.graph);
    }
    let say = talk.say;
    let mut state = get_final_output(&*thread).await?;
    if state.analysis_output.is_empty() {
        bail!("this analysis is not finished; continue with `archie resume {id}`");
    }
    let read = inputs::read_files(Path::new(&state.inputs.folder), state.inputs.recursive)?;
    let changed = changed_files(&state, &read);
    if changed.is_empty() {
        say.line("no note has changed; the analysis is unchanged");
        return Ok(Exit::Done);
    }
    say.line(&format!("changed: {}", one_line(&changed.join(", "))));
    let stale = evidence::recheck(&mut state.findings, &read.contents);
    if stale.is_empty() {
        say.line("every claim is still supported");
        let output = result::markdown(&state, &state.findings, state.degraded.as_deref());
        let update = AppStateUpdate::default()
            .file_contents(read.contents)
            .inputs(read.inputs)
            .findings(state.findings)
            .analysis_output(output);
        let update = serde_json::to_value(update)?;
        thread.update(ANALYSIS_PREPARE, update).await?;
        return finish(&*thread, talk).await;
    }
    let mut told = format!("These notes have changed: {}.\n", changed.join(", "));
    for finding in &stale {
        let word = match finding.section {
            Section::Decisions => "decision",
            _ => "claim",
        };
        say.line(&format!("reopened: {}", one_line(&finding.claim)));
        told.push_str(&format!(
            "This {word} is no longer supported by them: {}\n",
            finding.claim
        ));
    }
    let again = AppStateUpdate::default()
        .user_input(told)
        .file_contents(read.contents)
        .inputs(read.inputs)
        .findings(state.findings)
        .analysis_output(String::new());
    let agent = talk.home.agent(NAME)?;
    talk.begin(&**agent, &*thread, serde_json::to_value(again)?)
        .await
}

fn changed_files(state: &AppState, read: &Read) -> Vec<String> {
    let (before, now) = (&state.inputs.hashes, &read.inputs.hashes);
    let names: std::collections::BTreeSet<_> = before.keys().chain(now.keys()).collect();
    let differs = |name: &&&String| before.get(**name) != now.get(**name);
    names
        .iter()
        .filter(differs)
        .map(|name| (*name).clone())
        .collect()
}
