//! What a tool returns: a result for the model, and a command to the graph.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use superstep_core::{ChannelKind, NodeError, State, StateUpdate};
use superstep_llm::Content;

use crate::tool::ToolError;

/// Result of a tool: what the model sees, and optionally a command to the graph that called it.
///
/// A typed tool returns anything that serializes; return this instead to write to the state or to choose the next node, as a
/// [`Command`](superstep_core::Command) of a node does.
///
/// ```
/// use superstep_agent::{ToolOutput, tool};
/// use superstep_core::State;
///
/// #[derive(Clone, Debug, Default, State)]
/// #[state(crate = superstep_core)]
/// struct Support {
///     ticket: Option<u32>,
/// }
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Ticket {
///     about: String,
/// }
///
/// let open_ticket = tool("open_ticket", "Opens a ticket.", |ticket: Ticket, _cx| async move {
///     let number = 7;
///     Ok(ToolOutput::text(format!("Ticket {number} is open: {}", ticket.about))
///         .update(SupportUpdate::default().ticket(Some(number)))?
///         .goto("billing"))
/// });
/// ```
///
/// [`ToolNode`](crate::ToolNode) acts on commands: it writes the updates with the results, and goes to the named nodes, which
/// `.commands(..)` must declare. Without a target, the node's edges apply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// What the model sees.
    pub content: Content,
    pub(crate) command: ToolCommand,
}

/// A command to the graph, in its recorded form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolCommand {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) goto: Vec<String>,
    /// An update of the graph's state, as its fields.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    update: Map<String, Json>,
}

impl ToolOutput {
    /// Creates a result from what the model sees.
    pub fn new(content: impl Into<Content>) -> Self {
        Self {
            content: content.into(),
            command: ToolCommand::default(),
        }
    }

    /// Creates a result from a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(text.into())
    }

    /// Converts a value: a string as it is, `null` as "done", anything else as JSON.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        let text = match serde_json::to_value(value)? {
            Json::String(text) => text,
            Json::Null => "done".to_owned(),
            other => other.to_string(),
        };
        Ok(Self::text(text))
    }

    /// Sets an update of the state of the graph that calls the tool. It is written together with the results of the message's
    /// calls. Several calls may append to a list; the node fails if two write another field, if the update overwrites a field,
    /// or if it is of another state. Untracked fields are not written.
    pub fn update(mut self, update: impl StateUpdate) -> Result<Self, ToolError> {
        let unknown = |why: String| ToolError::unknown(format!("its update is not JSON: {why}"));
        match serde_json::to_value(update).map_err(|error| unknown(error.to_string()))? {
            Json::Object(fields) => self.command.update = fields,
            other => return Err(unknown(format!("it is `{other}`"))),
        }
        Ok(self)
    }

    /// Adds a target: a node of the graph that calls the tool, or `END`.
    #[must_use]
    pub fn goto(mut self, node: impl Into<String>) -> Self {
        self.command.goto.push(node.into());
        self
    }
}

impl ToolCommand {
    pub(crate) fn is_empty(&self) -> bool {
        self.goto.is_empty() && self.update.is_empty()
    }
}

/// Adds the updates of tools to that of the node.
pub(crate) fn with_updates<S: State>(
    mut update: S::Update,
    commands: &[(String, ToolCommand)],
) -> Result<S::Update, NodeError> {
    if commands
        .iter()
        .all(|(_, command)| command.update.is_empty())
    {
        return Ok(update);
    }
    let Json::Object(mut fields) = serde_json::to_value(&update)? else {
        return Err(NodeError::fatal("the agent's update has no fields"));
    };
    for (tool, command) in commands {
        for (field, value) in &command.update {
            let kind = S::CHANNELS.iter().find(|channel| channel.name == field);
            let kind = kind.map(|channel| channel.kind).ok_or_else(|| {
                // An overwrite has another name, too: it would drop what the agent or another call writes.
                NodeError::fatal(format!(
                    "the tool `{tool}` writes `{field}`, which it cannot: the state of this graph has no such field, or the tool overwrites it"
                ))
            })?;
            match (fields.get_mut(field), value) {
                (None, value) => drop(fields.insert(field.clone(), value.clone())),
                (Some(Json::Array(items)), Json::Array(more)) if is_list(kind) => {
                    items.extend(more.iter().cloned());
                }
                (Some(_), _) => {
                    return Err(NodeError::fatal(format!(
                        "the tool `{tool}` writes `{field}`, which the agent or another call of the same message writes too"
                    )));
                }
            }
        }
    }
    let merged: Result<S::Update, _> = serde_json::from_value(Json::Object(fields));
    let mut merged = merged.map_err(|error| {
        NodeError::fatal(format!(
            "a tool's update does not fit the state of this graph: {error}"
        ))
    })?;
    merged.move_untracked(&mut update);
    Ok(merged)
}

fn is_list(kind: ChannelKind) -> bool {
    matches!(
        kind,
        ChannelKind::Append | ChannelKind::Messages | ChannelKind::Topic
    )
}

/// What a typed tool may return: anything that serializes, or a [`ToolOutput`].
pub trait IntoToolOutput {
    /// Converts the result of a call.
    fn into_output(self) -> Result<ToolOutput, ToolError>;
}

impl IntoToolOutput for ToolOutput {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl<T: Serialize> IntoToolOutput for T {
    /// A failure here is `unknown`, not `failed`: the tool has already run.
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        ToolOutput::of(&self)
            .map_err(|error| ToolError::unknown(format!("its result is not JSON: {error}")))
    }
}
