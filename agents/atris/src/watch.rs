//! `archie atris watch`: a question that is asked again and again, and what has changed since.
//!
//! The waiting is a question with a deadline, so it is in the store and not in a process: whoever comes after the deadline, this
//! process or another, goes on with it. While no process runs, nothing is asked.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep::error::BuildError;
use superstep::{
    Command, END, Graph, Interrupt, Node, NodeCx, NodeError, START, State, SubgraphLife, View,
};

use super::command::{addressed, read_outcome, refuse_offline_elsewhere, workshop};
use super::state::{AtrisState, Said};
use super::told::Told;
use super::{NO_MODEL, Options, atris, create_graph, write};
use crate::agents::{AnyAgent, AnyThread, BoxFuture, Registered, Workshop, state_of};
use crate::cli::interval::interval;
use crate::clock::now;
use crate::exit::Exit;
use crate::inbox::display;
use crate::questions::Asked;
use crate::talk::{Manner, Talk};

/// Its name on the wire.
pub const NAME: &str = "atris_watch";
/// The node that asks; the whole of `atris`.
pub const LOOK: &str = "look_node";
/// The node that compares.
pub const COMPARE: &str = "compare_node";
/// The node that waits.
pub const WAIT: &str = "wait_node";

/// What to watch.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct WatchArgs {
    /// Your question, with every value that the call needs
    #[arg(required_unless_present = "resume")]
    pub query: Option<String>,
    /// API to ask
    #[arg(long, value_name = "NAME")]
    pub api: Option<String>,
    /// Time between two checks: 30s, 10m, 2h, 1d
    #[arg(long, default_value = "10m", value_name = "TIME", value_parser = interval)]
    pub every: Duration,
    /// Exit after N checks; the thread stays paused
    #[arg(long, value_name = "N")]
    pub looks: Option<u64>,
    /// Resume a watch
    #[arg(long, value_name = "THREAD", conflicts_with_all = ["query", "api"])]
    pub resume: Option<String>,
    /// Answer only from recorded responses
    #[arg(long)]
    pub offline: bool,
    /// Print one JSON object for each check
    #[arg(long)]
    pub json: bool,
}

/// The state of a watch.
#[derive(Clone, Debug, Default, PartialEq, State)]
#[state(rename_all = "camelCase")]
pub struct WatchState {
    /// The model's name.
    pub llm: String,
    /// What is asked.
    pub query: String,
    /// How long to wait, in milliseconds.
    pub every_ms: u64,
    /// What was answered last.
    pub answer: Option<Said>,
    /// What was listed before that.
    pub seen: Option<Vec<String>>,
    /// Every look, with what had changed.
    #[state(append)]
    pub looks: Vec<Look>,
    /// Whether somebody said to stop.
    pub stopped: bool,
}

/// One look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// What is listed now and was not before.
    pub came: Vec<String>,
    /// What was listed before and is not now.
    pub went: Vec<String>,
    /// The answer, if it lists nothing and says something else than before, or is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
}

impl Look {
    /// Whether it found nothing new.
    pub fn is_quiet(&self) -> bool {
        self.came.is_empty() && self.went.is_empty() && self.says.is_none()
    }
}

/// The agent.
pub fn agent(workshop: &Workshop) -> anyhow::Result<Arc<dyn AnyAgent>> {
    agent_with(workshop, &Options::default())
}

fn agent_with(workshop: &Workshop, options: &Options) -> anyhow::Result<Arc<dyn AnyAgent>> {
    let graph = graph(create_graph(atris(workshop, options))?)?;
    Ok(Arc::new(Registered::new(
        graph,
        "asks an API again and again, and says what has changed",
        Watching,
    )))
}

fn graph(look: Graph<AtrisState>) -> Result<Graph<WatchState>, BuildError> {
    let down = |state: &WatchState| AtrisState::ask(&state.llm, &state.query);
    let up = |state: &AtrisState| {
        WatchStateUpdate::default().answer(state.message_history.last().cloned())
    };
    Graph::builder(NAME)
        .subgraph(LOOK, look, down, up)
        // So that it remembers the host, and how often which error came.
        .life(LOOK, SubgraphLife::Thread)
        .node(COMPARE, Compare)
        .node(WAIT, Wait)
        .edge(START, LOOK)
        .edge(LOOK, COMPARE)
        .edge(COMPARE, WAIT)
        .route(
            WAIT,
            &[LOOK, END],
            |state: &WatchState| if state.stopped { END } else { LOOK },
        )
        .build()
}

struct Compare;

impl Node<WatchState> for Compare {
    async fn run(
        &self,
        state: View<WatchState>,
        cx: NodeCx,
    ) -> Result<Command<WatchState>, NodeError> {
        let answer = state.answer.clone().unwrap_or_default();
        let look = compare(state.seen.as_deref(), &answer);
        if !look.is_quiet() {
            cx.emit(json!({ "event": "changed", "look": look }))?;
        }
        let seen = if answer.items.is_empty() {
            vec![answer.content]
        } else {
            answer.items
        };
        Ok(WatchStateUpdate::default()
            .seen(Some(seen))
            .looks(look)
            .into())
    }
}

fn compare(before: Option<&[String]>, now: &Said) -> Look {
    let Some(before) = before else {
        return Look {
            says: Some(now.content.clone()),
            ..Look::default()
        };
    };
    if now.items.is_empty() {
        let is_same = before.iter().eq([&now.content]);
        return Look {
            says: (!is_same).then(|| now.content.clone()),
            ..Look::default()
        };
    }
    let missing = |from: &[String], other: &[String]| {
        from.iter()
            .filter(|item| !other.contains(item))
            .cloned()
            .collect()
    };
    Look {
        came: missing(&now.items, before),
        went: missing(before, &now.items),
        says: None,
    }
}

struct Wait;

impl Node<WatchState> for Wait {
    async fn run(
        &self,
        state: View<WatchState>,
        cx: NodeCx,
    ) -> Result<Command<WatchState>, NodeError> {
        let request = json!({ "question": format!("Waiting to ask again: {}. Say `now` or `stop`.", state.query) });
        let question = Interrupt::new("wait", request)
            .kind(TIMER)
            .schema(json!({ "type": "string", "enum": ["now", "stop"] }))
            .within(Duration::from_millis(state.every_ms))
            .or_answer("now");
        let said: String = cx.interrupt(question).await?;
        Ok(WatchStateUpdate::default().stopped(said == "stop").into())
    }
}

/// `watch` from its arguments until it is left.
pub async fn handle_watch_command(args: &WatchArgs, talk: &Talk<'_>) -> anyhow::Result<Exit> {
    refuse_offline_elsewhere(args.offline, talk.home)?;
    let options = Options {
        offline: args.offline,
        ..Options::default()
    };
    watch_with(args, talk, &options).await
}

/// `watch`, with another way to the network.
pub async fn watch_with(
    args: &WatchArgs,
    talk: &Talk<'_>,
    options: &Options,
) -> anyhow::Result<Exit> {
    let agent = agent_with(&workshop(talk.home), options)?;
    agent.register(&talk.home.runtime);
    let thread = match &args.resume {
        Some(prefix) => {
            let (_, row) = talk.home.find(prefix).await?;
            if row.graph != NAME {
                bail!("{} is not a watch", row.thread);
            }
            let thread = agent.thread(
                &talk.home.runtime,
                &row.thread.to_string(),
                Default::default(),
            )?;
            if thread.questions().await?.is_empty() {
                thread.resume().await?;
            }
            thread
        }
        None => {
            let query = addressed(
                args.query.as_deref().unwrap_or_default(),
                args.api.as_deref(),
            )?;
            let thread = talk.new_thread(&*agent, &query)?;
            talk.say.aside(&format!("thread {}", thread.id()));
            let start = WatchStateUpdate::default()
                .llm(
                    talk.home
                        .settings
                        .model
                        .as_deref()
                        .unwrap_or(NO_MODEL)
                        .to_owned(),
                )
                .query(query)
                .every_ms(args.every.as_millis() as u64);
            thread.start(serde_json::to_value(start)?).await?;
            thread
        }
    };
    let watched = watch(&*agent, &*thread, args, talk);
    tokio::select! {
        exit = watched => exit,
        _ = tokio::signal::ctrl_c() => {
            talk.say.aside(&format!("the watch is kept; resume it with `archie atris watch --resume {}`", thread.id()));
            Ok(Exit::Paused)
        }
    }
}

async fn watch(
    agent: &dyn AnyAgent,
    thread: &dyn AnyThread,
    args: &WatchArgs,
    talk: &Talk<'_>,
) -> anyhow::Result<Exit> {
    let told = Told::of(talk.home, thread);
    let first = told.looks().await?;
    let mut count = first;
    loop {
        let state: WatchState = state_of(thread).await?;
        // A thread that was taken back has fewer looks than were told.
        count = count.min(state.looks.len());
        for look in state.looks.iter().skip(count) {
            tell(look, talk);
            count += 1;
            told.up_to(count).await?;
        }
        let looked = state.looks.len().saturating_sub(first);
        if args.looks.is_some_and(|looks| looked as u64 >= looks) || state.stopped {
            return Ok(Exit::Done);
        }
        let open = thread.questions().await?;
        let timer = open.iter().find(|open| open.question.kind == TIMER);
        let Some(timer) = timer else {
            let asked = open
                .first()
                .map(|open| Asked::of(&open.question))
                .transpose()?;
            let asked = asked.context("the watch has stopped; `archie resume` resumes it")?;
            display::display(talk, agent, &asked).await?;
            display::announce(talk.home, talk.say, &thread.id()).await?;
            return Ok(Exit::Paused);
        };
        let deadline = timer.question.deadline.map_or(0, |deadline| deadline.0);
        let left = u64::try_from(deadline.saturating_sub(now().0)).unwrap_or(0);
        tokio::time::sleep(Duration::from_millis(left)).await;
        talk.home.runtime.expire_questions().await?;
    }
}

fn tell(look: &Look, talk: &Talk<'_>) {
    if talk.json {
        return talk.say.json(&crate::say::json_of(look));
    }
    if let Some(says) = &look.says {
        talk.say.line(says);
    }
    look.came
        .iter()
        .for_each(|item| talk.say.line(&format!("+ {item}")));
    look.went
        .iter()
        .for_each(|item| talk.say.line(&format!("- {item}")));
    if look.is_quiet() {
        talk.say.aside("nothing has changed");
    }
}

/// How a watch meets a person who looks after it.
struct Watching;

impl Manner for Watching {
    fn put(&self, asked: &Asked) -> String {
        write::put(asked)
    }

    fn read(&self, asked: &Asked, line: &str) -> Result<Json, String> {
        match (asked.kind.as_str(), line.trim()) {
            (TIMER, word @ ("now" | "stop")) => Ok(json!(word)),
            (TIMER, _) => Err("say `now` or `stop`".to_owned()),
            _ => read_outcome(asked, line).unwrap_or_else(|| asked.read(line)),
        }
    }

    fn shows_words(&self) -> bool {
        false
    }

    fn is_finished(&self, state: &Json) -> bool {
        state["stopped"] == true
    }

    fn with_model(&self, _state: &Json, model: &str) -> Option<Json> {
        Some(json!({ "llm": model }))
    }

    fn finish<'a>(
        &'a self,
        talk: &'a Talk<'a>,
        thread: &'a dyn AnyThread,
    ) -> BoxFuture<'a, anyhow::Result<Exit>> {
        Box::pin(async move {
            let state: WatchState = state_of(thread).await?;
            match talk.json {
                true => talk
                    .say
                    .json(&json!({ "thread": thread.id(), "looks": state.looks })),
                false => talk
                    .say
                    .line(&format!("stopped after {} looks", state.looks.len())),
            }
            Ok(Exit::Done)
        })
    }
}

const TIMER: &str = "timer";

#[cfg(test)]
mod tests {
    use super::*;

    fn said(items: &[&str]) -> Said {
        Said {
            items: items.iter().map(|item| (*item).to_owned()).collect(),
            ..Said::new("assistant", "text")
        }
    }

    #[test]
    fn what_came_and_what_went_is_told_and_nothing_else() {
        let before = vec!["a".to_owned(), "b".to_owned()];
        let look = compare(Some(&before), &said(&["b", "c"]));
        assert_eq!(
            (look.came, look.went),
            (vec!["c".to_owned()], vec!["a".to_owned()])
        );
        assert!(compare(Some(&before), &said(&["b", "a"])).is_quiet());
        assert_eq!(compare(None, &said(&["a"])).says.as_deref(), Some("text"));
    }
}
