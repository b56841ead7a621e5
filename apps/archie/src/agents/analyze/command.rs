//! The command: reads the notes, runs the graph, asks the person, until they are done.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use serde_json::{Value as Json, json};
use superstep::run::StreamMode;
use superstep::{DriveError, Event, InterruptId, Outcome, Seq, Stopped, Thread};

use super::evidence;
use super::inputs::{self, Read};
use super::prompts::QUERY;
use super::result::{self, persist_final_output};
use super::state::{AppState, AppStateUpdate, Call, Section};
use crate::exit::Exit;
use crate::home::Home;
use crate::say::Say;

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct AnalyzeArgs {
    /// What is to be decided; asked for if it is not given.
    #[arg(long)]
    pub query: Option<String>,
    /// The folder with your notes (.txt and .md).
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub inputs: Option<PathBuf>,
    /// Read the subfolders, too.
    #[arg(long)]
    pub recursive: bool,
    /// Look at a finished analysis again: reopens what a changed note no longer supports.
    #[arg(long, value_name = "THREAD", conflicts_with_all = ["query", "inputs"])]
    pub recheck: Option<String>,
    /// Print the result as JSON, and everything else to stderr.
    #[arg(long)]
    pub json: bool,
}

/// What a run is given.
enum CurrentInput {
    Start(Box<AppStateUpdate>),
    Resume(InterruptId, String),
    GoOn,
}

/// How a run came to rest.
enum Ran {
    Interrupted {
        question: InterruptId,
        agent_query: String,
        /// Whether the person has seen it come in.
        shown: bool,
    },
    Finished,
}

/// `analyze` from its arguments to its end.
pub async fn handle_analyze_command(
    args: &AnalyzeArgs,
    model_name: &str,
    home: &Home,
    say: &dyn Say,
) -> anyhow::Result<Exit> {
    if let Some(thread) = &args.recheck {
        return recheck(thread, home, say, args.json).await;
    }
    let query = match &args.query {
        Some(query) => query.clone(),
        None => say.ask("What is to be decided? ")?.unwrap_or_default(),
    };
    if query.trim().is_empty() {
        bail!("nothing to decide was given; say it with --query \"…\"");
    }
    let Some(folder) = &args.inputs else {
        bail!("no notes were given; say where they are with --inputs DIR");
    };
    let read = inputs::read_files(folder, args.recursive)?;
    let id = uuid::Uuid::now_v7().to_string();
    let thread = home
        .runtime
        .thread(&home.analyze, &id)?
        .with_metadata(title(&query));
    tell_inputs(&id, &read, say, args.json);
    let start = initial_state(&query, read, model_name);
    converse(
        &thread,
        CurrentInput::Start(Box::new(start)),
        home,
        say,
        args.json,
    )
    .await
}

/// Goes on with an analysis wherever it stands.
pub async fn go_on(id: &str, home: &Home, say: &dyn Say, json: bool) -> anyhow::Result<Exit> {
    let thread = home.runtime.thread(&home.analyze, id)?;
    let open = thread.questions().await?;
    if let [question] = open.as_slice() {
        let request: Json = question.question.request.decode()?;
        tell_question(request["query"].as_str().unwrap_or_default(), say, json);
        let input = match ask_person(say, id)? {
            Some(answer) => CurrentInput::Resume(question.question.id, answer),
            None => return Ok(Exit::Paused),
        };
        return converse(&thread, input, home, say, json).await;
    }
    let state = thread
        .state()
        .await?
        .context("the thread has no state yet")?;
    let state: AppState = state.values.decode()?;
    match state.analysis_output.is_empty() {
        true => converse(&thread, CurrentInput::GoOn, home, say, json).await,
        // It was killed between its end and the writing of its file, or the file is gone.
        false => finish(&thread, say, json).await,
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

async fn converse(
    thread: &Thread<AppState>,
    first: CurrentInput,
    home: &Home,
    say: &dyn Say,
    json: bool,
) -> anyhow::Result<Exit> {
    let mut current_input = first;
    loop {
        match analysis_iteration(thread, current_input, home, say, json).await? {
            Iteration::Next(input) => current_input = input,
            Iteration::Done => return finish(thread, say, json).await,
            Iteration::Left => return Ok(Exit::Paused),
        }
    }
}

enum Iteration {
    Next(CurrentInput),
    Done,
    /// The person went away; the question stays open.
    Left,
}

async fn analysis_iteration(
    thread: &Thread<AppState>,
    input: CurrentInput,
    home: &Home,
    say: &dyn Say,
    json: bool,
) -> anyhow::Result<Iteration> {
    match run_graph(thread, input, home, say).await? {
        Ran::Finished => Ok(Iteration::Done),
        Ran::Interrupted {
            question,
            agent_query,
            shown,
        } => {
            if !shown {
                tell_question(&agent_query, say, json);
            }
            let id = thread.id().to_string();
            Ok(match ask_person(say, &id)? {
                Some(answer) => Iteration::Next(CurrentInput::Resume(question, answer)),
                None => Iteration::Left,
            })
        }
    }
}

/// Drives the thread until it asks or ends, and shows the model's words meanwhile.
async fn run_graph(
    thread: &Thread<AppState>,
    input: CurrentInput,
    home: &Home,
    say: &dyn Say,
) -> anyhow::Result<Ran> {
    let before = thread.state().await?.map_or(Seq(0), |state| state.seq);
    let shown = AtomicBool::new(false);
    let driven = async {
        Ok::<_, DriveError>(match input {
            CurrentInput::Start(state) => Some(thread.start_or_recover(*state).await?),
            CurrentInput::Resume(question, answer) => {
                let by = &home.settings.person;
                thread.answer_as(by, [(question, answer)]).await?
            }
            CurrentInput::GoOn => Some(go_on_run(thread).await?),
        })
    };
    let stopped = tokio::select! {
        stopped = driven => stopped?,
        never = show(thread, before, say, &shown) => match never {},
        _ = tokio::signal::ctrl_c() => {
            say.pieces_end();
            let id = thread.id();
            bail!("stopped; the thread is kept, go on with `archie resume {id}`");
        }
    };
    say.pieces_end();
    let Some(stopped) = stopped else {
        bail!("another process runs this thread and goes on with the answer");
    };
    ran(thread, stopped, shown.into_inner())
}

/// A thread that is being run, or was when its process died, is taken over; any other goes on.
async fn go_on_run(thread: &Thread<AppState>) -> Result<Stopped<AppState>, DriveError> {
    match thread.recover().await {
        Err(DriveError::Open(_)) => thread.resume().await,
        recovered => recovered,
    }
}

fn ran(thread: &Thread<AppState>, stopped: Stopped<AppState>, shown: bool) -> anyhow::Result<Ran> {
    let id = thread.id();
    match stopped.outcome {
        Outcome::Finished => Ok(Ran::Finished),
        Outcome::Paused(questions) => {
            let question = questions
                .first()
                .context("the thread is paused and asks nothing")?;
            Ok(Ran::Interrupted {
                question: question.id,
                agent_query: stopped.state.current_analysis_query,
                shown,
            })
        }
        Outcome::Failed(failures) => {
            let why = failures
                .first()
                .map(|failure| failure.message.clone())
                .unwrap_or_default();
            bail!(
                "{why}\nThe thread is kept, and nothing that was paid for is lost; go on with `archie resume {id}`"
            )
        }
        other => bail!("the run ended early ({other:?}); go on with `archie resume {id}`"),
    }
}

/// Shows the model's words as they come. What is shown is a courtesy; what counts is the log.
async fn show(
    thread: &Thread<AppState>,
    after: Seq,
    say: &dyn Say,
    shown: &AtomicBool,
) -> std::convert::Infallible {
    let mut waiting = Some(say.waiting("thinking"));
    let mut events = thread.events(after).only([StreamMode::Custom]);
    while say.is_watched() {
        match events.next().await {
            Ok(Event::Live(event)) => {
                let payload: Json = event.payload.decode().unwrap_or_default();
                let Some(token) = payload.get("token").and_then(Json::as_str) else {
                    continue;
                };
                if waiting.take().is_some() {
                    say.piece("Agent: ");
                }
                shown.store(true, Ordering::Relaxed);
                say.piece(token);
            }
            Ok(Event::Replaced { .. }) => {
                say.pieces_end();
                shown.store(false, Ordering::Relaxed);
                waiting.get_or_insert_with(|| say.waiting("thinking again"));
            }
            Ok(Event::Seen(_)) => {}
            Err(_) => break,
        }
    }
    std::future::pending().await
}

fn tell_question(query: &str, say: &dyn Say, json: bool) {
    let text = format!("Agent: {query}");
    match json {
        true => say.aside(&text),
        false => say.line(&text),
    }
}

fn ask_person(say: &dyn Say, id: &str) -> anyhow::Result<Option<String>> {
    loop {
        match say.ask("Your response: ")? {
            None => {
                say.aside(&format!("the question stays open; answer it with `archie resume {id}` or in `archie inbox`"));
                return Ok(None);
            }
            Some(answer) if answer.trim().is_empty() => continue,
            Some(answer) => return Ok(Some(answer)),
        }
    }
}

/// Shows the result and writes it beside the notes.
async fn finish(thread: &Thread<AppState>, say: &dyn Say, json: bool) -> anyhow::Result<Exit> {
    let output = get_final_output(thread).await?;
    let folder = PathBuf::from(&output.inputs.folder);
    let saved = persist_final_output(&output.analysis_output, &folder)?;
    match json {
        true => say.json(&report(thread, &output, &saved)),
        false => {
            display_final_output_to_user(&output.analysis_output, say);
            say.line(&format!("saved {}", saved.display()));
            say.line(&spent(&output.calls));
        }
    }
    Ok(Exit::Done)
}

async fn get_final_output(thread: &Thread<AppState>) -> anyhow::Result<AppState> {
    let state = thread.state().await?.context("the thread has no state")?;
    Ok(state.values.decode()?)
}

fn display_final_output_to_user(output: &str, say: &dyn Say) {
    say.line("--- Final Analysis Output ---");
    say.markdown(output);
}

fn report(thread: &Thread<AppState>, state: &AppState, saved: &Path) -> Json {
    json!({
        "thread": thread.id().to_string(),
        "saved": saved.display().to_string(),
        "output": state.analysis_output,
        "findings": state.findings,
        "degraded": state.degraded,
        "calls": state.calls,
    })
}

/// What the calls of an analysis took, in a line.
fn spent(calls: &[Call]) -> String {
    let mut usage = superstep_llm::Usage::default();
    let mut cost = superstep_llm::Cost::NanoDollars(0);
    for call in calls {
        usage += call.usage.unwrap_or_default();
        cost = cost.plus(call.cost);
    }
    format!(
        "{} model calls, {} tokens in, {} out, cost {cost}",
        calls.len(),
        usage.input_tokens,
        usage.output_tokens
    )
}

fn tell_inputs(id: &str, read: &Read, say: &dyn Say, json: bool) {
    let names: Vec<_> = read.contents.keys().cloned().collect();
    let names = match names.is_empty() {
        true => "no notes".to_owned(),
        false => names.join(", "),
    };
    let skipped: Vec<_> = read
        .inputs
        .skipped
        .iter()
        .map(|skipped| skipped.name.clone())
        .collect();
    let skipped = match skipped.is_empty() {
        true => String::new(),
        false => format!(" (skipped {})", skipped.join(", ")),
    };
    let line = format!("thread {id}  read {names}{skipped}");
    match json {
        true => say.aside(&line),
        false => say.line(&line),
    }
}

fn title(query: &str) -> superstep::checkpoint::Metadata {
    let title: String = query.chars().take(80).collect();
    std::collections::BTreeMap::from([("title".to_owned(), json!(title))])
}

/// Reads the notes again. What they no longer support is taken up with the person once more.
async fn recheck(prefix: &str, home: &Home, say: &dyn Say, json: bool) -> anyhow::Result<Exit> {
    let (_, row) = home.find(prefix).await?;
    let id = row.thread.to_string();
    let thread = home.runtime.thread(&home.analyze, &id)?;
    let mut state = get_final_output(&thread).await?;
    if state.analysis_output.is_empty() {
        bail!("this analysis is not finished; go on with `archie resume {id}`");
    }
    let read = inputs::read_files(Path::new(&state.inputs.folder), state.inputs.recursive)?;
    let changed = changed_files(&state, &read);
    if changed.is_empty() {
        say.line("no note has changed; everything stands as it was");
        return Ok(Exit::Done);
    }
    say.line(&format!("changed: {}", changed.join(", ")));
    let stale = evidence::recheck(&mut state.findings, &read.contents);
    if stale.is_empty() {
        say.line("every claim is still supported");
        let output = result::markdown(&state, &state.findings, state.degraded.as_deref());
        let update = AppStateUpdate::default()
            .file_contents(read.contents)
            .inputs(read.inputs)
            .findings(state.findings)
            .analysis_output(output);
        thread.update_as(super::ANALYSIS_PREPARE, update).await?;
        return finish(&thread, say, json).await;
    }
    let mut told = format!("These notes have changed: {}.\n", changed.join(", "));
    for finding in &stale {
        let word = match finding.section {
            Section::Decisions => "decision",
            _ => "claim",
        };
        say.line(&format!("reopened: {}", finding.claim));
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
    converse(
        &thread,
        CurrentInput::Start(Box::new(again)),
        home,
        say,
        json,
    )
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
