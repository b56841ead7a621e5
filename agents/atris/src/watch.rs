//! A watch: asks the same question repeatedly, and reports what has changed.
//!
//! The watch waits at an interrupt with a deadline. The deadline is in the store, not in a process: after it, this process or
//! another one resumes the thread. While no process runs, nothing is asked.

use std::sync::Arc;
use std::time::Duration;

use archie_agent::{
    Agent, AgentDeps, AgentUi, AnswerChoice, Exit, InterruptRequest, Output, state_of,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep::checkpoint::BoxFuture;
use superstep::error::BuildError;
use superstep::{
    AnyThread, Command, END, Graph, Interrupt, Node, NodeCx, NodeError, START, State, SubgraphLife,
    View,
};

use super::state::{AtrisState, ChatLine};
use super::ui::{choices_of, read_choice, read_outcome};
use super::{AUDIUS, Options, atris, create_graph, write};

/// Name of the graph.
pub const NAME: &str = "atris_watch";
/// Subgraph that asks the question: the whole graph of `atris`.
pub const LOOK: &str = "look_node";
/// Node that compares the answer with the previous one.
pub const COMPARE: &str = "compare_node";
/// Node that waits until the next time.
pub const WAIT: &str = "wait_node";

/// State of a watch.
#[derive(Clone, Debug, Default, PartialEq, State)]
#[state(rename_all = "camelCase")]
pub struct WatchState {
    /// Name of the model; `none` asks no model.
    pub llm: String,
    /// The question to ask. After the first look, it begins with the API that was chosen, or is for Audius.
    pub query: String,
    /// Time between two looks, in milliseconds.
    pub every_ms: u64,
    /// Newest answer.
    pub answer: Option<ChatLine>,
    /// What the last compared answer listed, or its text if it listed nothing. Absent before the first comparison.
    pub seen: Option<Vec<String>>,
    /// All looks, in order, each with what had changed.
    #[state(append)]
    pub looks: Vec<Look>,
    /// Whether a person chose to stop the watch.
    pub stopped: bool,
}

/// One look: what changed since the previous one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// Items that the answer lists now and did not before.
    pub came: Vec<String>,
    /// Items that the answer listed before and does not now.
    pub went: Vec<String>,
    /// Text of the answer, if this is the first look, or if the answer lists nothing and its text has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
}

impl Look {
    /// Returns whether nothing has changed.
    pub fn is_quiet(&self) -> bool {
        self.came.is_empty() && self.went.is_empty() && self.says.is_none()
    }
}

/// One-line description, shown in lists of agents.
pub const DESCRIPTION: &str = "asks an API again and again, and says what has changed";

/// Builds the agent with default options.
pub fn agent(deps: &AgentDeps) -> anyhow::Result<Arc<Agent>> {
    agent_with(deps, &Options::default())
}

/// Builds the agent with these options.
pub fn agent_with(deps: &AgentDeps, options: &Options) -> anyhow::Result<Arc<Agent>> {
    let agent = Agent::new(graph(deps, options)?, DESCRIPTION, WatchUi);
    Ok(Arc::new(agent))
}

/// Builds the graph.
pub fn graph(deps: &AgentDeps, options: &Options) -> anyhow::Result<Graph<WatchState>> {
    let look = create_graph(atris(deps, options))?;
    Ok(wired(look, deps.models.context_schema())?)
}

fn wired(look: Graph<AtrisState>, context: Json) -> Result<Graph<WatchState>, BuildError> {
    let down = |state: &WatchState| AtrisState::ask(&state.llm, &next_query(state));
    let up = |watch: &WatchState, state: &AtrisState| {
        let update = WatchStateUpdate::default().answer(state.message_history.last().cloned());
        match chosen_query(&state.message_history) {
            Some(query) if query != watch.query => update.query(query.to_owned()),
            _ => update,
        }
    };
    Graph::builder(NAME)
        .context_schema(context)
        .subgraph(LOOK, look, down, up)
        // Lives as long as the thread, so that it remembers the host and its earlier errors.
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

/// Returns the question of the next look. The first look may choose among all APIs. After it, a question without an API is for
/// Audius: either that was chosen, or the watch is from before APIs were chosen.
fn next_query(state: &WatchState) -> String {
    let query = state.query.trim();
    match state.seen.is_some() && !query.starts_with('@') {
        true => format!("@{AUDIUS} {query}"),
        false => query.to_owned(),
    }
}

/// Returns the question of the last look with the API and the call that were chosen for it, so that the next look does not ask
/// again.
fn chosen_query(history: &[ChatLine]) -> Option<&str> {
    let asked = history.iter().rev().find(|line| line.role == "user")?;
    Some(asked.content.as_str()).filter(|query| query.starts_with('@'))
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

fn compare(before: Option<&[String]>, now: &ChatLine) -> Look {
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

/// User interface of a watch.
#[derive(Debug)]
struct WatchUi;

impl AgentUi for WatchUi {
    fn describe(&self, interrupt: &InterruptRequest) -> String {
        write::describe(interrupt)
    }

    fn choices(&self, interrupt: &InterruptRequest) -> Vec<AnswerChoice> {
        match interrupt.kind.as_str() {
            TIMER => vec![
                AnswerChoice::line('r', "ask now", "now"),
                AnswerChoice::line('i', "stop", "stop"),
            ],
            _ => choices_of(interrupt),
        }
    }

    fn read_answer(&self, interrupt: &InterruptRequest, line: &str) -> Result<Json, String> {
        match (interrupt.kind.as_str(), line.trim()) {
            (TIMER, word @ ("now" | "stop")) => Ok(json!(word)),
            (TIMER, _) => Err("say `now` or `stop`".to_owned()),
            _ => read_outcome(interrupt, line)
                .or_else(|| read_choice(interrupt, line))
                .unwrap_or_else(|| interrupt.read(line)),
        }
    }

    fn streams_tokens(&self) -> bool {
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
        output: &'a Output<'a>,
        thread: &'a dyn AnyThread,
    ) -> BoxFuture<'a, anyhow::Result<Exit>> {
        Box::pin(async move {
            let state: WatchState = state_of(thread).await?;
            match output.json {
                true => output
                    .terminal
                    .json(&json!({ "thread": thread.id().to_string(), "looks": state.looks })),
                false => output
                    .terminal
                    .line(&format!("stopped after {} looks", state.looks.len())),
            }
            Ok(Exit::Done)
        })
    }
}

/// Kind of the interrupt that waits until the next look.
pub const TIMER: &str = "timer";

#[cfg(test)]
mod tests {
    use super::*;

    fn said(items: &[&str]) -> ChatLine {
        ChatLine {
            items: items.iter().map(|item| (*item).to_owned()).collect(),
            ..ChatLine::new("assistant", "text")
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

    #[test]
    fn an_api_is_chosen_by_the_first_look_only() {
        let mut watch = WatchState {
            query: "list the doctors".to_owned(),
            ..WatchState::default()
        };
        assert_eq!(next_query(&watch), "list the doctors");
        watch.seen = Some(Vec::new());
        assert_eq!(next_query(&watch), "@audius list the doctors");
        watch.query = "@clinic/listDoctors list the doctors".to_owned();
        assert_eq!(next_query(&watch), watch.query);
        let history = [
            ChatLine::new("user", watch.query.clone()),
            ChatLine::new("assistant", "@clinic"),
        ];
        assert_eq!(chosen_query(&history), Some(watch.query.as_str()));
        assert_eq!(chosen_query(&[ChatLine::new("user", "tracks")]), None);
    }
}
