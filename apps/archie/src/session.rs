//! A person and a thread, whichever agent's: it is driven, its words are shown, its questions are put, until it ends.
//!
//! What differs from agent to agent is its [`Manner`]. Everything that is shown goes through [`Say`]; nothing here knows a
//! graph.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use serde_json::{Value as Json, json};
use superstep::checkpoint::{AnswerBody, InterruptQuery, Metadata};
use superstep::run::{OpenQuestion, StreamMode};
use superstep::{DriveError, Event, InterruptId, Outcome, Seq, ThreadId};
use superstep_agent::AgentEvent;

use crate::agents::{AnyAgent, AnyThread, BoxFuture, Rest, each_entry};
use crate::exit::Exit;
use crate::home::Home;
use crate::inbox::display;
use crate::questions::Asked;
use crate::running::RunningMark;
use crate::say::Say;
use crate::spent::Spent;

/// How an agent meets a person.
pub trait Manner: Send + Sync {
    /// What to show of a question: all that an answer lets happen.
    fn put(&self, asked: &Asked) -> String {
        asked.words()
    }

    /// What stands before what the person types.
    fn prompt(&self, asked: &Asked) -> String {
        asked.prompt()
    }

    /// What a typed line means as an answer. An error says what is wrong with it, and the person is asked again.
    fn read(&self, asked: &Asked, line: &str) -> Result<Json, String> {
        asked.read(line)
    }

    /// Whether the question holds everything that an answer lets happen. One that an older version asked may not.
    fn holds_everything(&self, _asked: &Asked) -> bool {
        true
    }

    /// Whether the question is nothing but the words that the model just said, so that who saw them need not see it again.
    fn is_said_already(&self, _asked: &Asked) -> bool {
        false
    }

    /// Whether the model's words are shown as they come. They are not where several talk at once.
    fn shows_words(&self) -> bool {
        true
    }

    /// Whether a thread that stands still has nothing left to do but to [finish](Self::finish).
    fn is_finished(&self, _state: &Json) -> bool {
        true
    }

    /// The node and the update by which a thread that stopped before its end is opened again; none if it did not.
    fn reopen(&self, _state: &Json) -> Option<(&'static str, Json)> {
        None
    }

    /// The update that lets a thread in this state go on with another model; none if it cannot.
    fn with_model(&self, _state: &Json, _model: &str) -> Option<Json> {
        None
    }

    /// The folder of what belongs to a thread and is not in its log; none if there is no such thing. It is copied, moved and deleted
    /// with the thread.
    fn files(&self, _thread: &ThreadId) -> Option<PathBuf> {
        None
    }

    /// What to show of a thread, in lines, after one of its questions was answered in the inbox.
    fn answered(&self, _state: &Json) -> Vec<String> {
        Vec::new()
    }

    /// Shows what came out of a thread that has ended, and writes what is to be written. It may come twice.
    fn finish<'a>(
        &'a self,
        talk: &'a Talk<'a>,
        thread: &'a dyn AnyThread,
    ) -> BoxFuture<'a, anyhow::Result<Exit>> {
        Box::pin(async move {
            let state = thread.state(None).await?;
            let state = state.context("the thread has no state")?;
            let values: Json = state.values.decode()?;
            match talk.json {
                true => talk
                    .say
                    .json(&json!({ "thread": thread.id(), "values": values })),
                false => talk.say.line(&serde_json::to_string_pretty(&values)?),
            }
            Ok(Exit::Done)
        })
    }
}

/// An agent that has no manner of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plain;

impl Manner for Plain {}

/// A person at a terminal, or a program at the other end of a pipe.
#[derive(Clone, Copy)]
pub struct Talk<'a> {
    /// The store, the agents, the settings.
    pub home: &'a Home,
    /// How to talk to the person.
    pub say: &'a dyn Say,
    /// Whether only the result goes to stdout, as JSON.
    pub json: bool,
}

impl std::fmt::Debug for Talk<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Talk")
            .field("home", &self.home)
            .field("json", &self.json)
            .finish_non_exhaustive()
    }
}

/// How a run came to rest.
enum Ran {
    Interrupted(Vec<Asked>),
    Finished,
}

impl Talk<'_> {
    /// Says something that is not the result.
    pub fn tell(&self, text: &str) {
        match self.json {
            true => self.say.aside(text),
            false => self.say.line(text),
        }
    }

    /// A new thread of an agent, with a title for lists.
    pub fn new_thread(
        &self,
        agent: &dyn AnyAgent,
        title: &str,
    ) -> anyhow::Result<std::sync::Arc<dyn AnyThread>> {
        let id = uuid::Uuid::now_v7().to_string();
        let title: String = title.chars().take(TITLE_CHARS).collect();
        let known = Metadata::from([("title".to_owned(), json!(title))]);
        Ok(agent.thread(&self.home.runtime, &id, known)?)
    }

    /// Starts a thread, and stays with it until it ends or the person leaves.
    pub async fn begin(
        &self,
        agent: &dyn AnyAgent,
        thread: &dyn AnyThread,
        input: Json,
    ) -> anyhow::Result<Exit> {
        let driven = Box::pin(async move { thread.start(input).await.map(Some) });
        self.converse(agent, thread, driven).await
    }

    /// Goes on with a thread wherever it stands, and stays with it.
    pub async fn go_on(
        &self,
        agent: &dyn AnyAgent,
        thread: &dyn AnyThread,
    ) -> anyhow::Result<Exit> {
        let open = thread.questions().await?;
        if let Some(first) = open.first() {
            let asked = Asked::of(&first.question)?;
            return match self.ask(agent, thread, &asked, false).await? {
                Some(answer) => {
                    self.converse(agent, thread, self.answered(thread, &asked, answer))
                        .await
                }
                None => Ok(Exit::Paused),
            };
        }
        let state = thread.state(None).await?;
        let state = state.context("the thread has no state yet")?;
        let values: Json = state.values.decode()?;
        let is_idle = self.home.is_idle(&thread.id()).await?;
        if is_idle && let Some((node, update)) = agent.manner().reopen(&values) {
            thread.update(node, update).await?;
            return self.converse(agent, thread, resumed(thread)).await;
        }
        // It may have been killed between its end and the writing of its files, or they are gone.
        if is_idle && agent.manner().is_finished(&values) {
            return agent.manner().finish(self, thread).await;
        }
        self.converse(agent, thread, resumed(thread)).await
    }

    fn answered<'t>(
        &'t self,
        thread: &'t dyn AnyThread,
        asked: &Asked,
        answer: Json,
    ) -> Driven<'t> {
        let by = self.home.settings.person.clone();
        let (home, id) = (self.home, asked.id);
        Box::pin(async move {
            match thread.answer(by, vec![(id, answer)]).await {
                Ok(rest) => Ok(rest),
                Err(error) => Err(too_late(home, thread, id, error).await),
            }
        })
    }

    async fn converse<'t>(
        &'t self,
        agent: &dyn AnyAgent,
        thread: &'t dyn AnyThread,
        first: Driven<'t>,
    ) -> anyhow::Result<Exit> {
        let mut driven = first;
        loop {
            let shown = AtomicBool::new(false);
            let asked = match self.run_graph(agent, thread, driven, &shown).await? {
                Ran::Finished => return agent.manner().finish(self, thread).await,
                Ran::Interrupted(asked) => asked,
            };
            let asked = asked
                .first()
                .context("the thread is paused and asks nothing")?;
            let Some(answer) = self.ask(agent, thread, asked, shown.into_inner()).await? else {
                return Ok(Exit::Paused);
            };
            driven = self.answered(thread, asked, answer);
        }
    }

    /// Puts a question to the person until they answer it. None if they go away; the question stays open.
    async fn ask(
        &self,
        agent: &dyn AnyAgent,
        thread: &dyn AnyThread,
        asked: &Asked,
        shown: bool,
    ) -> anyhow::Result<Option<Json>> {
        let manner = agent.manner();
        let mut is_displayed = shown && manner.is_said_already(asked);
        if !is_displayed {
            is_displayed = display::display(self, agent, asked).await?;
        }
        let prompt = manner.prompt(asked);
        loop {
            let Some(line) = self.say.ask(&prompt)? else {
                display::announce(self.home, self.say, &thread.id()).await?;
                return Ok(None);
            };
            if line.trim().is_empty() {
                continue;
            }
            match manner.read(asked, &line) {
                Ok(answer) if is_displayed || !asked.permits_effect(&answer) => {
                    return Ok(Some(answer));
                }
                Ok(_) if manner.holds_everything(asked) => {
                    self.say.aside("read it to its end before you agree to it:");
                    is_displayed = display::display(self, agent, asked).await?;
                }
                Ok(_) => self.say.aside(&format!(
                    "this question was asked by an older version and does not hold everything; refuse it, or agree to it with `archie inbox {} …`",
                    asked.id
                )),
                Err(why) => self.say.aside(&why),
            }
        }
    }

    /// Drives the thread until it asks or ends, and shows meanwhile what it does.
    async fn run_graph(
        &self,
        agent: &dyn AnyAgent,
        thread: &dyn AnyThread,
        driven: Driven<'_>,
        shown: &AtomicBool,
    ) -> anyhow::Result<Ran> {
        let before = thread.state(None).await?.map_or(Seq(0), |state| state.seq);
        let _running = RunningMark::set(self.home, &thread.id());
        let rest = tokio::select! {
            rest = driven => rest,
            never = self.show(agent, thread, before, shown) => match never {},
            _ = tokio::signal::ctrl_c() => {
                self.say.pieces_end();
                let id = thread.id();
                bail!("stopped; the thread is kept; continue with `archie resume {id}`");
            }
        };
        self.say.pieces_end();
        let rest = rest?;
        self.tell_spent(thread, before).await?;
        match rest {
            Some(rest) => ran(&thread.id(), rest),
            // On a cluster, or with a worker beside us, somebody else runs it.
            None => self.wait(thread).await,
        }
    }

    /// What this turn took.
    async fn tell_spent(&self, thread: &dyn AnyThread, before: Seq) -> anyhow::Result<()> {
        let mut spent = Spent::default();
        each_entry(thread, before, |past| {
            spent.add_entry(past);
            Ok(())
        })
        .await?;
        if spent.calls > 0 {
            self.say.aside(&format!("({spent})"));
        }
        Ok(())
    }

    /// Waits until a thread that others run asks or ends.
    async fn wait(&self, thread: &dyn AnyThread) -> anyhow::Result<Ran> {
        let _waiting = self.say.waiting("another process runs it");
        loop {
            let open = thread.questions().await?;
            if !open.is_empty() {
                let asked = open.iter().map(|open| Asked::of(&open.question));
                return Ok(Ran::Interrupted(asked.collect::<anyhow::Result<_>>()?));
            }
            if self.home.is_idle(&thread.id()).await? {
                return Ok(Ran::Finished);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Shows what happens as it happens. That is a courtesy; what counts is the log.
    async fn show(
        &self,
        agent: &dyn AnyAgent,
        thread: &dyn AnyThread,
        after: Seq,
        shown: &AtomicBool,
    ) -> Infallible {
        let say = self.say;
        let mut waiting = Some(say.waiting("thinking"));
        let mut events = thread.events(after).only([StreamMode::Custom]);
        while say.is_followed() {
            match events.next().await {
                Ok(Event::Live(event)) => match event.payload.decode() {
                    Ok(AgentEvent::Token { text })
                        if say.is_watched() && agent.manner().shows_words() =>
                    {
                        if waiting.take().is_some() {
                            say.piece("Agent: ");
                        }
                        shown.store(true, Ordering::Relaxed);
                        say.piece(&text);
                    }
                    // The next tokens begin the answer from the start, on a line of their own.
                    Ok(AgentEvent::Again { why }) => {
                        drop(waiting.take());
                        say.aside(&format!("({why}; asking again)"));
                        shown.store(false, Ordering::Relaxed);
                        waiting = Some(say.waiting("thinking again"));
                    }
                    Ok(AgentEvent::Progress { text }) => {
                        // The line would be drawn over by the spinner.
                        drop(waiting.take());
                        self.tell(&text);
                        waiting = Some(say.waiting("working"));
                    }
                    // Nothing to print, or an event of a node's own.
                    Ok(_) | Err(_) => {}
                },
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
}

/// A thread under way. None if somebody else runs it.
type Driven<'a> = BoxFuture<'a, anyhow::Result<Option<Rest>>>;

fn resumed(thread: &dyn AnyThread) -> Driven<'_> {
    Box::pin(async move { Ok(Some(thread.resume().await?)) })
}

fn ran(id: &str, rest: Rest) -> anyhow::Result<Ran> {
    match rest.outcome {
        Outcome::Finished => Ok(Ran::Finished),
        Outcome::Paused(questions) => {
            let asked = questions.iter().map(Asked::of);
            Ok(Ran::Interrupted(asked.collect::<anyhow::Result<_>>()?))
        }
        Outcome::Failed(failures) => {
            let why = failures.first().map(|failure| failure.message.clone());
            bail!(
                "{}\nThe thread is kept, and nothing that was paid for is lost; continue with `archie resume {id}`",
                why.unwrap_or_default()
            )
        }
        other => bail!("the run ended early ({other:?}); continue with `archie resume {id}`"),
    }
}

/// Why an answer was refused: if somebody was first, who that was and what they said.
pub(crate) async fn too_late(
    home: &Home,
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
    match first_answer(home, thread, question).await {
        Ok(Some(first)) => anyhow::anyhow!("too late: {first}"),
        // What is known is what the store said.
        Ok(None) | Err(_) => error.into(),
    }
}

async fn first_answer(
    home: &Home,
    thread: &dyn AnyThread,
    question: InterruptId,
) -> anyhow::Result<Option<String>> {
    let query = InterruptQuery {
        thread: Some(ThreadId::new(&thread.id())?),
        ..InterruptQuery::default()
    };
    let asked = home.runtime.questions(&query).await?;
    let asked = asked
        .into_iter()
        .find(|asked| asked.question.id == question);
    let Some((row, body)) = asked.and_then(|asked| Some((asked.row.clone(), asked.row.answer?)))
    else {
        return Ok(None);
    };
    let by = match row.answered_by.as_str() {
        "" => "somebody",
        by => by,
    };
    Ok(Some(match body {
        AnswerBody::Value(value) => format!("{by} answered first: {}", value.decode::<Json>()?),
        AnswerBody::Expired => "nobody answered in time".to_owned(),
    }))
}

/// A thread's open question and the agent that reads its answers, for an inbox.
pub fn read_answer(agent: &dyn AnyAgent, open: &OpenQuestion, line: &str) -> anyhow::Result<Json> {
    let asked = Asked::of(&open.question)?;
    agent
        .manner()
        .read(&asked, line)
        .map_err(|why| anyhow::anyhow!("{why}; the question stays open"))
}

/// What a store says of an answer that comes second.
const NOT_OPEN: &str = "checkpoint-not-open";
const TITLE_CHARS: usize = 80;
/// How many entries of a turn are looked at.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(100);
