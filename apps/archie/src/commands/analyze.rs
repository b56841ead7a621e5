//! `archie analyze`: reads the notes and starts the interview, or rechecks a finished analysis.

use std::path::PathBuf;

use anyhow::bail;
use archie_agent::printable::one_line;
use archie_agent::{Exit, Terminal};
use archie_analyze::inputs::{self, Read};
use archie_analyze::memory::Memory;
use archie_analyze::prompts::QUERY;
use archie_analyze::result::Conclusion;
use archie_analyze::state::{AppState, AppStateUpdate, Section};
use archie_analyze::tools::with_results;
use archie_analyze::{ANALYSIS_PREPARE, NAME, evidence, get_final_output, result};

use crate::session::Session;

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct AnalyzeArgs {
    /// Question to decide. Default: asks for it
    #[arg(long)]
    pub query: Option<String>,
    /// Folder with your notes (.txt, .md, .pdf)
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub inputs: Option<PathBuf>,
    /// Also read subfolders
    #[arg(long)]
    pub recursive: bool,
    /// Show the model the images among the notes
    #[arg(long, conflicts_with = "recheck")]
    pub images: bool,
    /// JSON file with known entities and relationships, see `build-context`
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "recheck")]
    pub memory_file: Option<PathBuf>,
    /// Check a finished analysis against changed notes, and reopen what they no longer support
    #[arg(long, value_name = "THREAD", conflicts_with_all = ["query", "inputs"])]
    pub recheck: Option<String>,
    /// Print the result as JSON, and everything else to stderr
    #[arg(long)]
    pub json: bool,
}

/// Runs `archie analyze`.
pub async fn handle_analyze_command(
    args: &AnalyzeArgs,
    model_name: &str,
    session: &Session<'_>,
) -> anyhow::Result<Exit> {
    if let Some(thread) = &args.recheck {
        return recheck(thread, session).await;
    }
    let folder = match &args.inputs {
        Some(folder) => folder.clone(),
        None => ask_folder(session.terminal)?,
    };
    let read = match args.images {
        true => inputs::read_files_and_images(&folder, args.recursive)?,
        false => inputs::read_files(&folder, args.recursive)?,
    };
    let query = match &args.query {
        Some(query) => query.clone(),
        None => session
            .terminal
            .ask("What is to be decided? ")?
            .unwrap_or_default(),
    };
    if query.trim().is_empty() {
        bail!("nothing to decide was given; say it with --query \"…\"");
    }
    let memory = match &args.memory_file {
        Some(path) => Memory::read(path)?.as_note(),
        None => String::new(),
    };
    let agent = session.app.agent(NAME)?;
    let thread = session.new_thread(agent, &query)?;
    tell_inputs(&thread.id().to_string(), &read, session);
    // In no prompt, because small models repeat what they read there.
    session.terminal.aside(
        "answer each question; SOLUTION APPROVED or DONE ends the interview and writes the result",
    );
    let start = initial_state(&query, read, model_name).memory(memory);
    session
        .begin(agent, &*thread, serde_json::to_value(start)?)
        .await
}

/// Asks a person at a terminal for the folder with the notes.
fn ask_folder(terminal: &dyn Terminal) -> anyhow::Result<PathBuf> {
    let given = match terminal.page_size() {
        Some(_) => terminal.ask("Folder with your notes: ")?,
        None => None,
    };
    let given = given.unwrap_or_default();
    match given.trim() {
        "" => bail!("no notes were given; say where they are with --inputs DIR"),
        folder => Ok(PathBuf::from(folder)),
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

fn tell_inputs(id: &str, read: &Read, session: &Session<'_>) {
    // Every note and every image has a checksum.
    let all = &read.inputs.hashes;
    let mut names: Vec<_> = all
        .keys()
        .take(NAMES_SHOWN)
        .map(|name| one_line(name))
        .collect();
    if all.len() > NAMES_SHOWN {
        names.push(format!("and {} more", all.len() - NAMES_SHOWN));
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
    session.tell(&format!("thread {id}  read {names}{skipped}"));
    let unusual = || all.iter().filter(|skipped| !inputs::is_ordinary(skipped));
    for skipped in unusual().take(REASONS_SHOWN) {
        session
            .terminal
            .aside(&format!("skipped {}: {}", skipped.name, skipped.why));
    }
    if let Some(more @ 1..) = unusual().count().checked_sub(REASONS_SHOWN) {
        session.terminal.aside(&format!(
            "skipped {more} more; `archie show {id} --json` has the reasons"
        ));
    }
}

/// Maximum number of names in the line that lists the notes read.
const NAMES_SHOWN: usize = 100;
const SKIPPED_SHOWN: usize = 20;

/// Maximum number of skipped notes that are printed with a reason.
const REASONS_SHOWN: usize = 50;

/// Reads the notes again, and reopens the interview about claims that they no longer support.
async fn recheck(prefix: &str, session: &Session<'_>) -> anyhow::Result<Exit> {
    let (thread, row) = session.app.find(prefix).await?;
    let id = row.thread.to_string();
    if row.graph != NAME {
        bail!("{id} is a thread of `{}`, not an analysis", row.graph);
    }
    let agent = session.app.agent(NAME)?;
    let terminal = session.terminal;
    let mut state = get_final_output(&*thread).await?;
    if state.analysis_output.is_empty() {
        bail!("this analysis is not finished; continue with `archie resume {id}`");
    }
    let mut read = match session.app.deps().thread_folders {
        Some(folders) if state.inputs.is_of_thread() => {
            let names: Vec<String> = state.inputs.hashes.keys().cloned().collect();
            inputs::read_thread_files(&folders, thread.id(), &names)?
        }
        _ if state.inputs.images.is_empty() => {
            inputs::read_files(&state.inputs.path(), state.inputs.recursive)?
        }
        _ => inputs::read_files_and_images(&state.inputs.path(), state.inputs.recursive)?,
    };
    read.inputs.folder.clone_from(&state.inputs.folder);
    let changed = changed_files(&state, &read);
    if changed.is_empty() {
        terminal.line("no note has changed; the analysis is unchanged");
        return Ok(Exit::Done);
    }
    terminal.line(&format!("changed: {}", one_line(&changed.join(", "))));
    let sources = with_results(&read.contents, &state);
    let stale = evidence::recheck(&mut state.findings, &sources);
    if stale.is_empty() {
        terminal.line("every claim is still supported");
        let output = result::markdown(&state, &Conclusion::of(&state));
        let update = AppStateUpdate::default()
            .file_contents(read.contents)
            .inputs(read.inputs)
            .findings(state.findings)
            .analysis_output(output);
        let update = serde_json::to_value(update)?;
        thread.update_as(ANALYSIS_PREPARE, update).await?;
        return agent.ui().finish(&session.output(), &*thread).await;
    }
    let mut told = format!("These notes have changed: {}.\n", changed.join(", "));
    for finding in &stale {
        let word = match finding.section {
            Section::Decisions => "decision",
            _ => "claim",
        };
        terminal.line(&format!("reopened: {}", one_line(&finding.claim)));
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
    session
        .begin(agent, &*thread, serde_json::to_value(again)?)
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
