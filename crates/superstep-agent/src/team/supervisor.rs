//! A supervisor: an agent that gives tasks to other agents and works with their answers.
//!
//! To the supervisor's model each agent is a tool, `ask_AGENT`. A call is not made by the node that calls tools but by a
//! subgraph: the agent works in a conversation of its own, which can pause for a person and survives a crash, and its last answer
//! becomes the result of the call. Agents that are asked in one message work at the same time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use superstep_core::label::Labeled;
use superstep_core::{END, Goto, Graph, Labels, START, SendTo, State};
use superstep_llm::{Message, ToolCall};

use crate::agent::{
    AgentBuilder, AgentError, AgentState, Conversation, EndReason, Spent, TOOLS, Turn, labels_of,
    labels_of_last_answer, unanswered_calls,
};
use crate::chat::ChatMessage;
use crate::tool::{Tool, ToolError, tool};

/// Name of the node that calls the supervisor's model.
pub const SUPERVISOR: &str = "supervisor";

const PREFIX: &str = "ask_";

/// Entry point for building graphs of a supervisor and its agents.
///
/// Hooks of the supervisor see its own tools, not the tasks that it gives to agents; those have hooks of their own.
///
/// ```
/// use std::sync::Arc;
///
/// use superstep_agent::{Agent, Supervisor};
/// use superstep_llm::Script;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = Arc::new(Script::parse("demo", r#"{"replies": []}"#)?);
/// let research = Agent::builder(model.clone()).system("You look things up.");
/// let math = Agent::builder(model.clone()).system("You calculate.");
/// let team = Supervisor::builder(Agent::builder(model).system("You lead a team."))
///     .agent("research", "Looks things up.", research)
///     .agent("math", "Calculates.", math)
///     .build()?;
/// # let _ = team;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "create_supervisor")]
#[derive(Debug)]
pub struct Supervisor;

impl Supervisor {
    /// Returns a builder. `supervisor` is the agent that leads: its model, prompt, limits and tools of its own.
    pub fn builder(supervisor: AgentBuilder) -> SupervisorBuilder {
        SupervisorBuilder {
            name: SUPERVISOR.to_owned(),
            supervisor,
            agents: Vec::new(),
        }
    }
}

/// Builder of a supervisor's graph.
pub struct SupervisorBuilder {
    name: String,
    supervisor: AgentBuilder,
    agents: Vec<(&'static str, String, AgentBuilder)>,
}

/// What a supervisor's call of an agent asks for.
#[derive(Debug, Deserialize, JsonSchema)]
struct Task {
    /// What the agent should do, with everything it has to know: it does not see this conversation.
    task: String,
}

/// A task on its way to an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Assignment {
    call: ToolCall,
    /// The task, with the labels of the message that contains the call.
    message: ChatMessage,
}

/// State of an agent that works on a task.
#[derive(Clone, Debug, Default, State)]
#[state(crate = superstep_core)]
struct AssignedState {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    #[state(reduce = Spent::plus)]
    spent: Spent,
    ended: Option<EndReason>,
    structured_answer: Option<Labeled<Json>>,
    call: Option<ToolCall>,
}

impl Conversation for AssignedState {
    fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    fn said(turn: Turn) -> AssignedStateUpdate {
        AssignedStateUpdate::default()
            .messages_all(turn.messages)
            .spent(turn.spent)
            .ended(turn.ended)
            .structured_answer(turn.structured_answer)
    }
}

impl AssignedState {
    /// The agent's last answer, as the result of the supervisor's call.
    fn result<S: Conversation>(&self) -> S::Update {
        let Some(call) = &self.call else {
            return S::said(Turn::default());
        };
        // The last message may be a tool's result: the agent was stopped before it answered.
        let answer = self.messages.last();
        let answer = answer.filter(|last| matches!(last.message, Message::Assistant(_)));
        let answer = match &self.structured_answer {
            Some(structured) => Some(structured.parts().0.to_string()),
            None => answer.map(ChatMessage::text),
        };
        let result = match answer.filter(|answer| !answer.is_empty()) {
            Some(answer) => Message::tool(call, answer),
            None => Message::tool_error(call, "the agent was stopped before it answered"),
        };
        S::said(Turn {
            messages: vec![ChatMessage::new(result, labels_of(&self.messages))],
            spent: self.spent.plus(Spent {
                tool_calls: 1,
                ..Spent::default()
            }),
            ..Turn::default()
        })
    }
}

/// The agents that a supervisor can ask, by the names of their tools.
type Asked = Arc<BTreeMap<String, SendTo<Assignment>>>;

impl SupervisorBuilder {
    /// Sets the name of the graph. Default: `supervisor`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Adds an agent. The supervisor's model sees the description, and decides by it whom to ask.
    #[must_use]
    pub fn agent(
        mut self,
        name: &'static str,
        description: impl Into<String>,
        agent: AgentBuilder,
    ) -> Self {
        self.agents.push((name, description.into(), agent));
        self
    }

    /// Builds the graph over [`AgentState`].
    pub fn build(self) -> Result<Graph<AgentState>, AgentError> {
        self.build_over()
    }

    /// Builds the graph over your own state.
    pub fn build_over<S: Conversation>(self) -> Result<Graph<S>, AgentError> {
        let others = self.agents.iter().map(|(name, _, agent)| (*name, agent));
        for (name, agent) in others.chain([(SUPERVISOR, &self.supervisor)]) {
            if !agent.handoff_targets().is_empty() {
                let agent = name.to_owned();
                return Err(AgentError::HandoffToNobody { agent });
            }
        }
        let retry = self.supervisor.retry_policy();
        let tools = self
            .agents
            .iter()
            .map(|(name, description, _)| ask_tool(name, description));
        let supervisor = self.supervisor.tools(tools).label(SUPERVISOR);
        let asked = self.agents.iter().map(|(name, _, _)| {
            let tool = format!("{PREFIX}{name}");
            (tool, SendTo::new(name))
        });
        let asked: Asked = Arc::new(asked.collect());
        let is_asked = asked.clone();
        let (model, calls) = supervisor.nodes()?;
        let calls = calls.except(move |call| assignment(call, &Labels::NONE, &is_asked).is_some());

        let mut targets = vec![TOOLS, END];
        let mut graph = Graph::builder(self.name)
            .node(SUPERVISOR, model)
            .node(TOOLS, calls)
            .edge(START, SUPERVISOR)
            .edge(TOOLS, SUPERVISOR);
        for (name, _, agent) in self.agents {
            targets.push(name);
            let inner = agent.name(name).label(name).build_over::<AssignedState>()?;
            let begin = |assignment: Assignment| {
                AssignedStateUpdate::default()
                    .messages(assignment.message)
                    .call(assignment.call)
            };
            let end = |_: &S, agent: &AssignedState| agent.result::<S>();
            graph = graph
                .subgraph_worker(&SendTo::<Assignment>::new(name), inner, begin, end)
                .edge(name, SUPERVISOR);
        }
        let mut graph = graph.route(SUPERVISOR, &targets, move |state: &S| {
            next(state.messages(), &asked)
        });
        if let Some(policy) = retry {
            graph = graph.retry(SUPERVISOR, policy);
        }
        Ok(graph.build()?)
    }
}

/// Sends each task to its agent, and leaves all other calls to the node that calls tools.
fn next<S>(messages: &[ChatMessage], asked: &Asked) -> Vec<Goto<S>> {
    let labels = labels_of_last_answer(messages);
    let labels = labels.cloned().unwrap_or_default();
    let mut gotos = Vec::new();
    let mut has_other_calls = false;
    for call in unanswered_calls(messages) {
        match assignment(call, &labels, asked) {
            Some((to, assignment)) => gotos.push(Goto::send(to, assignment)),
            None => has_other_calls = true,
        }
    }
    if has_other_calls {
        gotos.push(Goto::node(TOOLS));
    }
    match gotos.is_empty() {
        true => vec![Goto::node(END)],
        false => gotos,
    }
}

/// Returns the task of a call and the agent that it is for; `None` if the call is not for an agent, or does not fit.
fn assignment<'a>(
    call: &ToolCall,
    labels: &Labels,
    asked: &'a Asked,
) -> Option<(&'a SendTo<Assignment>, Assignment)> {
    let to = asked.get(&call.name)?;
    let task = Task::deserialize(&call.args).ok()?;
    let assignment = Assignment {
        // Only what the result needs: the arguments have labels, which this field has not.
        call: ToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
            args: Json::Null,
        },
        message: ChatMessage::new(Message::user(task.task), labels.clone()),
    };
    Some((to, assignment))
}

/// The tool by which the supervisor's model asks an agent. It is called only if its arguments do not fit, and then the call is
/// refused before it gets here.
fn ask_tool(agent: &str, description: &str) -> Tool {
    tool(
        &format!("{PREFIX}{agent}"),
        description,
        |_: Task, _| async move { Err::<String, _>(ToolError::failed("it has no task")) },
    )
    .read()
}

impl fmt::Debug for SupervisorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.agents.iter().map(|(name, _, _)| *name).collect();
        f.debug_struct("SupervisorBuilder")
            .field("name", &self.name)
            .field("agents", &names)
            .finish_non_exhaustive()
    }
}
