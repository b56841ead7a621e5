//! The node that looks up what the planner needs to know, with one `SELECT`.

use archie_agent::printable::summary_line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use superstep::{Command, Node, NodeCx, NodeError, View};
use superstep_agent::{CallTimes, ChatMessage, tool_span, within};
use superstep_llm::structured::Structured;
use superstep_llm::{Message, Request, ToolCall};

use super::super::INFORMER_NODE;
use super::super::book::mirror::Mirror;
use super::super::plan::{self, Plan};
use super::super::state::{GraphState, GraphStateUpdate, InformerSpec, KeyInformation, Stopped};
use super::super::tools::{INFORMER, SELECTOR, ToolContext, ToolDeps};
use super::{ModelDeps, PROGRESS_CHARS, call, fitted, labels, progress, untrusted};

/// Asks the informer's model for a `SELECT` and runs it.
pub(in super::super) struct InformerNode {
    pub(in super::super) asking: ModelDeps,
    pub(in super::super) tool_deps: ToolDeps,
}

/// What the informer fills in.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Lookup {
    action: LookupAction,
    #[schemars(length(max = 1000))]
    #[serde(default)]
    sql: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum LookupAction {
    Select,
    #[default]
    Pass,
}

impl Lookup {
    fn selects(&self) -> bool {
        self.action == LookupAction::Select && !self.sql.trim().is_empty()
    }
}

impl Node<GraphState> for InformerNode {
    async fn run(
        &self,
        state: View<GraphState>,
        cx: NodeCx,
    ) -> Result<Command<GraphState>, NodeError> {
        let Some(informer) = &state.informer else {
            return Err(NodeError::fatal("there is no informer in this run"));
        };
        let asked = state
            .messages
            .last()
            .map(|last| plan::read(&last.message, state.step));
        let asked = match asked {
            Some(Plan::Ask(call)) => Some(call),
            _ => None,
        };
        let wrong = state
            .key_information
            .as_ref()
            .filter(|_| state.informer_tries > 0);
        let wrong = wrong.map(|known| known.text.clone()).unwrap_or_default();
        let Some(lookup) = self
            .ask(&state, informer, asked.as_ref(), &wrong, &cx)
            .await?
        else {
            let update = GraphStateUpdate::default().informer_tries(0);
            return Ok(update.stopped(Some(Stopped::Budget)).into());
        };
        progress(
            &cx,
            &format!(
                "  informer: {}",
                summary_line(&lookup.value.sql, PROGRESS_CHARS)
            ),
        )?;
        let looked_up = async { self.look_up(&state, informer, &lookup.value, cx.thread()) };
        let (found, took) = CallTimes::by(looked_up).await;
        let found = found?;
        if lookup.value.selects() {
            let id = asked.as_ref().map_or(INFORMER, |call| &call.id);
            cx.emit(tool_span(SELECTOR, id, took, found.clone().err()))?;
        }
        let tries = state.informer_tries + 1;
        let mut update = GraphStateUpdate::default();
        for reply in &lookup.replies {
            update = update.calls(call(INFORMER_NODE, reply));
        }
        if let Some(degraded) = lookup.degraded {
            update = update.degraded(Some(degraded));
        }
        let (text, is_over) = match found {
            Ok(text) => (text, true),
            Err(why) => (why, tries >= INFORMER_TRIES),
        };
        let known = KeyInformation {
            sql: lookup.value.sql,
            text: text.clone(),
            snapshot: state.workbook.snapshot.clone(),
        };
        update = update
            .key_information(Some(known))
            .informer_tries(if is_over { 0 } else { tries });
        if is_over {
            update = answer_calls(update, &state, asked.as_ref(), &text);
        }
        Ok(update.into())
    }
}

/// Adds a result for every tool call of the message, because models require one. Calls next to the informer's were not run.
fn answer_calls(
    mut update: GraphStateUpdate,
    state: &GraphState,
    asked: Option<&ToolCall>,
    text: &str,
) -> GraphStateUpdate {
    let Some(asked) = asked else {
        return update;
    };
    update = update.messages(ChatMessage::new(
        Message::tool(asked, text),
        untrusted(state),
    ));
    let calls = state
        .messages
        .last()
        .map(|last| last.message.tool_calls())
        .unwrap_or_default();
    for other in calls.iter().filter(|call| call.id != asked.id) {
        let told = "not run: ask the informer alone, and act when you have its answer";
        update = update.messages(ChatMessage::new(
            Message::tool_error(other, told),
            labels(state),
        ));
    }
    update
}

impl InformerNode {
    async fn ask(
        &self,
        state: &GraphState,
        informer: &InformerSpec,
        asked: Option<&ToolCall>,
        wrong: &str,
        cx: &NodeCx,
    ) -> Result<Option<Structured<Lookup>>, NodeError> {
        let models = &self.asking.models;
        // What the run chooses is for the planner, and for an informer that has the planner's model.
        let model = match informer.model == state.planner.model {
            true => models.get_in_run(&informer.model, cx)?,
            false => models.get(&informer.model).map_err(NodeError::fatal)?,
        };
        let question = asked
            .and_then(|call| call.args["question"].as_str())
            .unwrap_or("what helps with what is asked for");
        let prompt = self.asking.prompts.informer(state, question, wrong);
        let mut request = Request::new(INFORMER_NODE, vec![Message::user(prompt)]);
        fitted(&mut request, &*model, LOOKUP_TOKENS, cx).await?;
        within(self.asking.spending.as_ref(), cx, async |asker| {
            asker.ask_for(&*model, request, Lookup::default).await
        })
        .await
    }

    fn look_up(
        &self,
        state: &GraphState,
        informer: &InformerSpec,
        lookup: &Lookup,
        thread: &superstep::ThreadId,
    ) -> Result<Result<String, String>, NodeError> {
        if !lookup.selects() {
            return Ok(Ok("nothing was looked up".to_owned()));
        }
        let tool_context = ToolContext {
            thread,
            input: &state.problem.workbook,
            workbook: state.workbook.clone(),
            sandbox: &state.sandbox,
        };
        let book = self.tool_deps.book_with_results(&tool_context)?;
        let mut mirror = Mirror::of(&book).map_err(NodeError::fatal)?;
        Ok(match mirror.select(&lookup.sql) {
            Ok(rows) => Ok(rows.shown(informer.form)),
            Err(error) => Err(mirror.explain(&error)),
        })
    }
}

const LOOKUP_TOKENS: u32 = 400;
const INFORMER_TRIES: u32 = 3;
