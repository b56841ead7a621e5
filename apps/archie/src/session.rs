//! Connects a person to a thread of any agent: drives the thread, shows its tokens, and asks the person about its interrupts
//! until it ends.
//!
//! What differs between agents is their [`AgentUi`](archie_agent::AgentUi). All output goes through [`Terminal`]; nothing here
//! depends on a graph.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use archie_agent::printable::summary_line;
use archie_agent::{Agent, Exit, InterruptRequest, Output, Terminal, UsageTotal, each_entry};
use serde_json::{Value as Json, json};
use superstep::checkpoint::{AnswerBody, BoxFuture, InterruptQuery, Metadata};
use superstep::run::{OpenInterrupt, StreamEventBody, StreamMode};
use superstep::{AnyRunResult, AnyThread, DriveError, Event, InterruptId, Outcome, Seq, ThreadId};
use superstep_agent::AgentEvent;

use crate::app::App;
use crate::ctrl_c;
use crate::edit_dialog;
use crate::inbox::display;
use crate::pace::{CallPace, RunPace};
use crate::retry_notes::RetryNotes;
use crate::running::RunningMark;

/// A person at a terminal, or a program at the other end of a pipe.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    /// Store, runtime, agents and settings.
    pub app: &'a App,
    /// Where output goes and answers come from.
    pub terminal: &'a dyn Terminal,
    /// Whether stdout gets only the result, as JSON.
    pub json: bool,
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("app", &self.app)
            .field("json", &self.json)
            .finish_non_exhaustive()
    }
}

/// What a person saw of a run while it was in progress.
#[derive(Debug, Default)]
struct ShownRun {
    /// Text that the model wrote last.
    streamed: String,
    progress: Vec<String>,
}

/// Why a run stopped.
enum RunEnd {
    Interrupted(Vec<InterruptRequest>),
    Finished,
}

impl Session<'_> {
    /// Returns where the command prints.
    pub fn output(&self) -> Output<'_> {
        Output {
            terminal: self.terminal,
            json: self.json,
            told: &[],
            streamed: "",
        }
    }

    /// Prints something that is not the result: to stdout, or to stderr with `json`.
    pub fn tell(&self, text: &str) {
        self.output().tell(text);
    }

    /// Creates a handle to a new thread of an agent, with a random id. Lists show `title`, cut to 80 characters.
    pub fn new_thread(&self, agent: &Agent, title: &str) -> anyhow::Result<Arc<dyn AnyThread>> {
        let id = uuid::Uuid::now_v7().to_string();
        let title: String = title.chars().take(TITLE_CHARS).collect();
        let known = Metadata::from([("title".to_owned(), json!(title))]);
        self.app.thread(agent, &id, known)
    }

    /// Starts a thread, and stays with it until it ends or the person leaves.
    pub async fn begin(
        &self,
        agent: &Agent,
        thread: &dyn AnyThread,
        input: Json,
    ) -> anyhow::Result<Exit> {
        let driven = Box::pin(async move { Ok(Some(thread.start_or_recover(input).await?)) });
        self.converse(agent, thread, driven).await
    }

    /// Stays with a thread that `run` drives, until it ends or the person leaves. For agents whose library starts the run.
    pub async fn follow<'t>(
        &'t self,
        agent: &Agent,
        thread: &'t dyn AnyThread,
        run: BoxFuture<'t, anyhow::Result<AnyRunResult>>,
    ) -> anyhow::Result<Exit> {
        let driven = Box::pin(async move { Ok(Some(run.await?)) });
        self.converse(agent, thread, driven).await
    }

    /// Resumes a thread from where it stopped, and stays with it until it ends or the person leaves.
    pub async fn resume(&self, agent: &Agent, thread: &dyn AnyThread) -> anyhow::Result<Exit> {
        let open = thread.interrupts().await?;
        if let Some(first) = open.first() {
            let interrupt = InterruptRequest::of(&first.interrupt)?;
            return match self.ask(agent, thread, &interrupt, "").await? {
                Some(answer) => {
                    self.converse(agent, thread, self.answered(thread, &interrupt, answer))
                        .await
                }
                None => Ok(Exit::Paused),
            };
        }
        let state = thread.state(None).await?;
        let state = state.context("the thread has no state yet")?;
        let values: Json = state.values.decode()?;
        let is_idle = self.app.is_idle(thread.id()).await?;
        if is_idle && let Some((node, update)) = agent.ui().reopen(&values) {
            thread.update_as(node, update).await?;
            return self.converse(agent, thread, resumed(thread)).await;
        }
        // The process may have died after the run ended and before it wrote its files, or a person deleted them.
        if is_idle && agent.ui().is_finished(&values) {
            return agent.ui().finish(&self.output(), thread).await;
        }
        self.converse(agent, thread, resumed(thread)).await
    }

    /// Answers an interrupt, and drives the thread until it ends or asks again. Prints the result, or how to answer what it asks.
    pub async fn answer(
        &self,
        agent: &Agent,
        thread: &dyn AnyThread,
        interrupt: &InterruptRequest,
        answer: Json,
    ) -> anyhow::Result<Exit> {
        let driven = self.answered(thread, interrupt, answer);
        let mut shown = ShownRun::default();
        match self.run_graph(agent, thread, driven, &mut shown).await {
            Ok(RunEnd::Finished) => {
                self.tell("answered, and the thread is finished");
                // The answer is stored, so the result can also be written later.
                let id = thread.id();
                let output = Output {
                    told: &shown.progress,
                    streamed: &shown.streamed,
                    ..self.output()
                };
                agent.ui().finish(&output, thread).await.with_context(|| {
                    format!("the answer is stored, but the result is not written; `archie resume {id}` writes it")
                })
            }
            Ok(RunEnd::Interrupted(_)) => {
                let state = thread.state(None).await?;
                let values: Json = state.map_or(Ok(Json::Null), |state| state.values.decode())?;
                for line in agent.ui().after_answer(&values) {
                    self.tell(&line);
                }
                let next = crate::inbox::items_of(self.app, thread.id()).await?;
                let next = next
                    .iter()
                    .map(|item| format!("`archie inbox {}`", item.short_id));
                let next = next.collect::<Vec<_>>().join(", ");
                self.tell(&format!("answered, and there is a new question: {next}"));
                Ok(Exit::Done)
            }
            Err(error) => self.answer_failure(thread, interrupt, error).await,
        }
    }

    /// Says that the answer is stored and the run failed. Passes on the error if the answer is not stored.
    async fn answer_failure(
        &self,
        thread: &dyn AnyThread,
        interrupt: &InterruptRequest,
        error: anyhow::Error,
    ) -> anyhow::Result<Exit> {
        let open = thread.interrupts().await;
        let is_open =
            open.is_ok_and(|open| open.iter().any(|open| open.interrupt.id == interrupt.id));
        if is_open || !error.is::<RunFailure>() {
            return Err(error);
        }
        self.tell(&format!("answered, and {error}"));
        Ok(Exit::Failed)
    }

    fn answered<'t>(
        &'t self,
        thread: &'t dyn AnyThread,
        interrupt: &InterruptRequest,
        answer: Json,
    ) -> Driven<'t> {
        let by = self.app.settings.person.clone();
        let (app, id) = (self.app, interrupt.id);
        Box::pin(async move {
            match thread.answer_as(&by, vec![(id, answer)]).await {
                Ok(rest) => Ok(rest),
                Err(error) => Err(too_late(app, thread, id, error).await),
            }
        })
    }

    async fn converse<'t>(
        &'t self,
        agent: &Agent,
        thread: &'t dyn AnyThread,
        first: Driven<'t>,
    ) -> anyhow::Result<Exit> {
        let mut driven = first;
        let mut shown = ShownRun::default();
        loop {
            shown.streamed.clear();
            let interrupts = match self.run_graph(agent, thread, driven, &mut shown).await? {
                RunEnd::Finished => {
                    let output = Output {
                        told: &shown.progress,
                        streamed: &shown.streamed,
                        ..self.output()
                    };
                    return agent.ui().finish(&output, thread).await;
                }
                RunEnd::Interrupted(interrupts) => interrupts,
            };
            let interrupt = interrupts
                .first()
                .context("the thread is paused and asks nothing")?;
            let Some(answer) = self.ask(agent, thread, interrupt, &shown.streamed).await? else {
                return Ok(Exit::Paused);
            };
            driven = self.answered(thread, interrupt, answer);
        }
    }

    /// Asks the person about an interrupt until they answer it. Returns `None` if they leave; the interrupt stays open.
    async fn ask(
        &self,
        agent: &Agent,
        thread: &dyn AnyThread,
        interrupt: &InterruptRequest,
        streamed: &str,
    ) -> anyhow::Result<Option<Json>> {
        let ui = agent.ui();
        // Tokens are a courtesy and may be lost: only an answer that was streamed whole need not be shown again.
        let is_whole = streamed.trim() == interrupt.words().trim();
        let mut is_displayed = is_whole && ui.was_streamed(interrupt);
        if !is_displayed {
            is_displayed = display::display(self, agent, interrupt).await?;
        }
        display::show_effects(self.terminal, agent, interrupt);
        let prompt = ui.prompt(interrupt);
        loop {
            let Some(line) = self.terminal.ask(&prompt)? else {
                display::announce(self.app, self.terminal, thread.id()).await?;
                return Ok(None);
            };
            if line.trim().is_empty() {
                continue;
            }
            let read = match edit_dialog::is_asked_for(&line, ui, interrupt, self.terminal) {
                true => match edit_dialog::run(interrupt, self.terminal).await? {
                    Some(answer) => Ok(answer),
                    None => continue,
                },
                false => ui.read_answer(interrupt, &line),
            };
            match read {
                Ok(answer) if is_displayed || !interrupt.permits_effect(&answer) => {
                    return Ok(Some(answer));
                }
                Ok(_) if ui.is_complete(interrupt) => {
                    self.terminal.aside("read it to its end before you agree to it:");
                    is_displayed = display::display(self, agent, interrupt).await?;
                }
                Ok(_) => self.terminal.aside(&format!(
                    "this question was asked by an older version and does not hold everything; refuse it, or agree to it with `archie inbox {} …`",
                    interrupt.id
                )),
                Err(why) => self.terminal.aside(&why),
            }
        }
    }

    /// Drives the thread until it is interrupted or ends, and shows its progress.
    async fn run_graph(
        &self,
        agent: &Agent,
        thread: &dyn AnyThread,
        mut driven: Driven<'_>,
        shown: &mut ShownRun,
    ) -> anyhow::Result<RunEnd> {
        let before = thread.state(None).await?.map_or(Seq(0), |state| state.seq);
        let _running = RunningMark::set(self.app, thread.id());
        let mut showing = std::pin::pin!(self.show(agent, thread, before, shown));
        let mut is_all_shown = false;
        let rest = loop {
            tokio::select! {
                rest = &mut driven => break rest,
                () = &mut showing, if !is_all_shown => is_all_shown = true,
                () = ctrl_c::pressed() => {
                    self.terminal.pieces_end();
                    let id = thread.id();
                    bail!("stopped; the thread is kept; continue with `archie resume {id}`");
                }
            }
        };
        if !is_all_shown && matches!(rest, Ok(Some(_))) {
            // The run has ended, but its last tokens may still be in transit. Print them before anything else.
            let _ = tokio::time::timeout(LAST_TOKENS, &mut showing).await;
        }
        self.terminal.pieces_end();
        let rest = rest?;
        self.tell_spent(thread, before).await?;
        match rest {
            Some(rest) => run_end(thread.id(), rest),
            // Another process runs the thread, for instance a worker of the cluster.
            None => self.wait(thread).await,
        }
    }

    /// Prints the usage and cost of this turn, if it called a model.
    async fn tell_spent(&self, thread: &dyn AnyThread, before: Seq) -> anyhow::Result<()> {
        let mut spent = UsageTotal::default();
        each_entry(thread, before, |past| {
            spent.add_entry(past);
            Ok(())
        })
        .await?;
        if spent.calls > 0 {
            // The result says once that the cost is unknown.
            self.terminal.aside(&format!("({})", spent.known()));
        }
        Ok(())
    }

    /// Waits until a thread that another process runs is interrupted or idle.
    async fn wait(&self, thread: &dyn AnyThread) -> anyhow::Result<RunEnd> {
        let _waiting = self.terminal.waiting("another process runs it");
        loop {
            let open = thread.interrupts().await?;
            if !open.is_empty() {
                let interrupts = open
                    .iter()
                    .map(|open| InterruptRequest::of(&open.interrupt));
                return Ok(RunEnd::Interrupted(
                    interrupts.collect::<anyhow::Result<_>>()?,
                ));
            }
            if self.app.is_idle(thread.id()).await? {
                return Ok(RunEnd::Finished);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Shows live events until the run stops. Best effort: the log is authoritative.
    async fn show(&self, agent: &Agent, thread: &dyn AnyThread, after: Seq, shown: &mut ShownRun) {
        let terminal = self.terminal;
        let begin = match self.app.settings.model {
            Some(_) => "waiting for the model",
            None => "working",
        };
        let mut waiting = Some(terminal.waiting(begin));
        let mut pace = RunPace::default();
        let mut retries = RetryNotes::default();
        let mut events = thread.events(after).only([StreamMode::Custom]);
        while terminal.is_followed() {
            match events.next().await {
                Ok(Event::Live(event)) => match event.payload.decode() {
                    Ok(AgentEvent::Token { text, .. })
                        if terminal.is_watched() && agent.ui().streams_tokens() =>
                    {
                        if waiting.take().is_some() {
                            terminal.label(agent.ui().speaker());
                        }
                        shown.streamed.push_str(&text);
                        terminal.piece(&text);
                    }
                    Ok(AgentEvent::ModelProgress {
                        tokens,
                        seconds,
                        tokens_max,
                    }) => {
                        let call = CallPace {
                            tokens,
                            seconds,
                            tokens_max,
                            seen: Instant::now(),
                        };
                        let text = pace.update(event.go, call);
                        if let Some(waiting) = &waiting {
                            waiting.set_text(&text);
                        }
                    }
                    // The next tokens start the answer from the beginning, on a new line.
                    Ok(AgentEvent::Again {
                        why,
                        attempt,
                        attempts_max,
                    }) => {
                        drop(waiting.take());
                        for line in retries.lines(&why, attempt, attempts_max) {
                            terminal.aside(&line);
                        }
                        shown.streamed.clear();
                        waiting = Some(terminal.waiting("waiting for the model again"));
                    }
                    Ok(AgentEvent::Progress { text }) => {
                        // The spinner would overwrite the line.
                        drop(waiting.take());
                        self.tell(&text);
                        shown.progress.push(text.into_owned());
                        waiting = Some(terminal.waiting("working"));
                    }
                    Ok(AgentEvent::ToolStarted { name, .. }) => {
                        terminal.pieces_end();
                        shown.streamed.clear();
                        drop(waiting.take());
                        waiting = Some(terminal.waiting(&format!("calling {name}")));
                    }
                    Ok(AgentEvent::ToolProgress {
                        name,
                        progress,
                        total,
                        message,
                        ..
                    }) => {
                        let of = total
                            .map(|total| format!(" of {total}"))
                            .unwrap_or_default();
                        let message = message.map(|text| format!(": {text}")).unwrap_or_default();
                        drop(waiting.take());
                        let text = format!("calling {name}, {progress}{of}{message}");
                        waiting = Some(terminal.waiting(&summary_line(&text, PROGRESS_CHARS)));
                    }
                    // Nothing to print, or an event that a node defines itself.
                    Ok(_) | Err(_) => {}
                },
                Ok(Event::Replaced { .. }) => {
                    terminal.pieces_end();
                    shown.streamed.clear();
                    waiting.get_or_insert_with(|| terminal.waiting("waiting for the model again"));
                }
                Ok(Event::Logged(seen)) if matches!(seen.what, StreamEventBody::Stopped(_)) => {
                    break;
                }
                Ok(Event::Logged(_)) => {}
                Err(_) => break,
            }
        }
    }
}

/// A run in progress. Yields `None` if another process runs the thread.
type Driven<'a> = BoxFuture<'a, anyhow::Result<Option<AnyRunResult>>>;

fn resumed(thread: &dyn AnyThread) -> Driven<'_> {
    Box::pin(async move { Ok(Some(thread.recover_or_resume().await?)) })
}

fn run_end(id: &ThreadId, result: AnyRunResult) -> anyhow::Result<RunEnd> {
    match result.outcome {
        Outcome::Finished => Ok(RunEnd::Finished),
        Outcome::Paused(questions) => {
            let interrupts = questions.iter().map(InterruptRequest::of);
            Ok(RunEnd::Interrupted(
                interrupts.collect::<anyhow::Result<_>>()?,
            ))
        }
        Outcome::Failed(failures) => {
            let why = failures.first().map(|failure| failure.message.clone());
            Err(RunFailure(format!(
                "{}\nThe thread is kept, and nothing that was paid for is lost; continue with `archie resume {id}`",
                why.unwrap_or_default()
            ))
            .into())
        }
        other => Err(RunFailure(format!(
            "the run ended early ({other:?}); continue with `archie resume {id}`"
        ))
        .into()),
    }
}

/// A run that failed or ended early, for a person.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct RunFailure(String);

/// Explains why an answer was rejected: if another answer came first, by whom and what it was.
pub(crate) async fn too_late(
    app: &App,
    thread: &dyn AnyThread,
    question: InterruptId,
    error: DriveError,
) -> anyhow::Error {
    let is_late = match &error {
        DriveError::Engine { code, .. } => code == NOT_OPEN,
        error => error.code() == NOT_OPEN,
    };
    if !is_late {
        return error.into();
    }
    match first_answer(app, thread.id(), question).await {
        Ok(Some(first)) => anyhow::anyhow!("too late: {first}"),
        // Nothing more is known than what the store reported.
        Ok(None) | Err(_) => error.into(),
    }
}

/// Returns who answered an interrupt and what; `None` if it has no answer.
pub(crate) async fn first_answer(
    app: &App,
    thread: &ThreadId,
    question: InterruptId,
) -> anyhow::Result<Option<String>> {
    let query = InterruptQuery {
        thread: Some(thread.clone()),
        ..InterruptQuery::default()
    };
    let interrupts = app.runtime.interrupts(&query).await?;
    let interrupt = interrupts
        .into_iter()
        .find(|open| open.interrupt.id == question);
    let Some((row, body)) =
        interrupt.and_then(|interrupt| Some((interrupt.row.clone(), interrupt.row.answer?)))
    else {
        return Ok(None);
    };
    let by = match row.answered_by.as_str() {
        "" => "someone",
        by => by,
    };
    Ok(Some(match body {
        AnswerBody::Value(value) => format!("{by} answered first: {}", value.decode::<Json>()?),
        AnswerBody::Expired => "the deadline passed without an answer".to_owned(),
    }))
}

/// Parses a typed line as the answer to an open interrupt, as its agent defines it.
pub fn read_answer(agent: &Agent, open: &OpenInterrupt, line: &str) -> anyhow::Result<Json> {
    let interrupt = InterruptRequest::of(&open.interrupt)?;
    agent
        .ui()
        .read_answer(&interrupt, line)
        .map_err(|why| anyhow::anyhow!("{why}; the question stays open"))
}

/// Error code of a store for an answer to an interrupt that is not open.
const NOT_OPEN: &str = "checkpoint-not-open";
const TITLE_CHARS: usize = 80;
/// Maximum length of the progress of a tool, next to the spinner and the time.
const PROGRESS_CHARS: usize = 60;
/// How long to wait, after a run has ended, for tokens that were sent but not shown yet.
const LAST_TOKENS: std::time::Duration = std::time::Duration::from_secs(2);
/// Interval for polling a thread that another process runs.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(100);
