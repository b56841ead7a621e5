//! A watch: a question that is asked again and again, and what has changed since.
//!
//! The waiting is a question with a deadline, so it is in the store and not in a process: whoever comes after the deadline, this
//! process or another, goes on with it. While no process runs, nothing is asked.

use std::sync::Arc;
use std::time::Duration;

use archie_agent::{Agent, AgentDeps, AgentUi, Exit, InterruptRequest, Output, state_of};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep::checkpoint::BoxFuture;
use superstep::error::BuildError;
use superstep::{
    AnyThread, Command, END, Graph, Interrupt, Node, NodeCx, NodeError, START, State, SubgraphLife,
    View,
};

use super::state::{AtrisState, ChatLine};
use super::ui::read_outcome;
use super::{Options, atris, create_graph, write};

/// The name of its graph.
pub const NAME: &str = "atris_watch";
/// The node that asks; the whole of `atris`.
pub const LOOK: &str = "look_node";
/// The node that compares.
pub const COMPARE: &str = "compare_node";
/// The node that waits.
pub const WAIT: &str = "wait_node";

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
    pub answer: Option<ChatLine>,
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

/// What it is for, in a line.
pub const DESCRIPTION: &str = "asks an API again and again, and says what has changed";

/// Builds the agent.
pub fn agent(deps: &AgentDeps) -> anyhow::Result<Arc<Agent>> {
    agent_with(deps, &Options::default())
}

/// Builds the agent, with its own way to the network.
pub fn agent_with(deps: &AgentDeps, options: &Options) -> anyhow::Result<Arc<Agent>> {
    let agent = Agent::new(graph(deps, options)?, DESCRIPTION, WatchUi);
    Ok(Arc::new(agent))
}

/// Builds the graph.
pub fn graph(deps: &AgentDeps, options: &Options) -> anyhow::Result<Graph<WatchState>> {
    Ok(wired(create_graph(atris(deps, options))?)?)
}

fn wired(look: Graph<AtrisState>) -> Result<Graph<WatchState>, BuildError> {
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

/// How a person uses a watch.
#[derive(Debug)]
struct WatchUi;

impl AgentUi for WatchUi {
    fn describe(&self, interrupt: &InterruptRequest) -> String {
        write::describe(interrupt)
    }

    fn read_answer(&self, interrupt: &InterruptRequest, line: &str) -> Result<Json, String> {
        match (interrupt.kind.as_str(), line.trim()) {
            (TIMER, word @ ("now" | "stop")) => Ok(json!(word)),
            (TIMER, _) => Err("say `now` or `stop`".to_owned()),
            _ => read_outcome(interrupt, line).unwrap_or_else(|| interrupt.read(line)),
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

/// The kind of the interrupt that waits until the next look.
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
}
