//! The node that calls the tools of the model's last message.

use std::collections::BTreeSet;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::poll_immediate;
use futures_util::{StreamExt, stream};
use superstep_core::{Command, Node, NodeCx, NodeError, View};
use superstep_llm::ToolCall;

use crate::agent::{
    Conversation, Hooks, Spent, Turn, labels_of, labels_of_last_answer, unanswered_calls,
};
use crate::call::{CallOutcome, Caller};
use crate::tool::{Tools, with_updates};

/// Node that runs the tool calls of the model's last message, and writes their results in the order of the calls. Runs all of
/// them concurrently, unless [`parallel_tools`](Self::parallel_tools) sets a limit.
///
/// Must not be the node that calls the model: the model's decision is committed before this node starts.
///
/// If a tool returns a [command](crate::ToolOutput), the node writes its update and goes to its targets, which `.commands(..)`
/// must declare; otherwise it leaves by its edges.
#[derive(Clone)]
pub struct ToolNode {
    pub(super) tools: Tools,
    pub(super) hooks: Vec<Arc<dyn Hooks>>,
    /// Calls that other nodes make.
    except: Option<CallFilter>,
    /// How many calls are in progress at once.
    pub(super) parallel: Option<usize>,
}

type CallFilter = Arc<dyn Fn(&ToolCall) -> bool + Send + Sync>;

impl ToolNode {
    /// Creates a node that calls these tools.
    pub fn new(tools: Tools) -> Self {
        Self {
            tools,
            hooks: Vec::new(),
            except: None,
            parallel: None,
        }
    }

    /// Leaves out the calls for which this is true: other nodes make them.
    #[must_use]
    pub fn except(
        mut self,
        is_made_elsewhere: impl Fn(&ToolCall) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.except = Some(Arc::new(is_made_elsewhere));
        self
    }

    /// Limits how many calls are in progress at once; see
    /// [`AgentBuilder::parallel_tools`](crate::AgentBuilder::parallel_tools). Default: all calls of a message.
    #[must_use]
    pub fn parallel_tools(mut self, calls_max: usize) -> Self {
        self.parallel = Some(calls_max.max(1));
        self
    }

    /// Adds hooks. Several run in the order they were added.
    #[must_use]
    pub fn hooks(mut self, hooks: impl Hooks) -> Self {
        self.hooks.push(Arc::new(hooks));
        self
    }
}

impl ToolNode {
    /// Makes the calls, and returns their results in the order of the calls.
    async fn make(
        &self,
        caller: &Caller<'_>,
        calls: &[&ToolCall],
    ) -> Vec<Result<CallOutcome, NodeError>> {
        let made: Vec<_> = calls
            .iter()
            .enumerate()
            .map(|(at, call)| async move { (at, caller.call(call).await) })
            .collect();
        // The next call starts in the poll in which an earlier one ends, so at no time does the node seem to do nothing but wait
        // for a person while calls are left that it may start.
        let parallel = self.parallel.unwrap_or(calls.len()).max(1);
        let mut results: Vec<_> = stream::iter(made)
            .buffer_unordered(parallel)
            .collect()
            .await;
        results.sort_by_key(|(at, _)| *at);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

impl fmt::Debug for ToolNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolNode")
            .field("tools", &self.tools)
            .field("hooks", &self.hooks)
            .finish_non_exhaustive()
    }
}

impl<S: Conversation> Node<S> for ToolNode {
    async fn run(&self, state: View<S>, cx: NodeCx) -> Result<Command<S>, NodeError> {
        let messages = state.messages();
        let labels = labels_of_last_answer(messages);
        let labels = labels.cloned().unwrap_or_default();
        // Everything this node writes carries these labels; core enforces it.
        cx.note_read(&labels);
        steps_in_any_order(&cx).await?;
        let caller = Caller {
            cx: &cx,
            tools: &self.tools,
            hooks: &self.hooks,
            labels: &labels,
        };
        let mut calls = unanswered_calls(messages);
        if let Some(is_made_elsewhere) = &self.except {
            calls.retain(|call| !is_made_elsewhere(call));
        }
        let results = self.make(&caller, &calls).await;
        let (mut messages, mut commands) = (Vec::new(), Vec::new());
        for (call, result) in calls.iter().zip(results) {
            let CallOutcome {
                message, command, ..
            } = result?;
            messages.push(message);
            commands.push((call.name.clone(), command));
        }
        if commands.iter().any(|(_, command)| !command.is_empty()) {
            // What tools write was made from what they gave, and core sees one node: everything it writes has all of the labels.
            let all = labels_of(&messages);
            cx.note_read(&all);
            messages.iter_mut().for_each(|kept| kept.labels.add(&all));
        }
        let turn = Turn {
            spent: Spent {
                tool_calls: messages.len() as u64,
                ..Spent::default()
            },
            messages,
            ..Turn::default()
        };
        let update = with_updates::<S>(S::said(turn), &commands)?;
        let targets = commands
            .into_iter()
            .flat_map(|(_, command)| command.goto)
            .collect::<BTreeSet<_>>();
        Ok(targets
            .into_iter()
            .fold(Command::update(update), Command::goto))
    }
}

/// Makes core accept the steps of this node in any order.
///
/// Core checks the order of a node's steps until two are in flight at once. Ours come from concurrent calls: a call that
/// waited for an answer continues only after the steps of the others were recorded long ago. So this starts two steps at once
/// that record nothing.
pub(crate) async fn steps_in_any_order(cx: &NodeCx) -> Result<(), NodeError> {
    let under_way = cx.step(
        "any order: one",
        std::future::pending::<Result<(), NodeError>>,
    );
    let mut under_way = pin!(under_way);
    if let Some(refused) = poll_immediate(under_way.as_mut()).await {
        return refused;
    }
    // A failed step is not recorded, so this error has no effect.
    let not_recorded = || async { Err::<(), _>(NodeError::fatal("nothing to record")) };
    let _ = cx.step("any order: two", not_recorded).await;
    Ok(())
}
