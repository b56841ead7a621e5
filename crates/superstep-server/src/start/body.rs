//! The body of a request that creates a run.

use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use superstep::ThreadId;

use crate::error::{ApiError, ApiResult};
use crate::idempotency::{CreationKey, Keyed};
use crate::wire::{CHECKPOINT_ID, CHECKPOINT_NS, CheckpointId, ON_RUN_COMPLETED};

/// The body of a request that creates a run. Fields that the server does not know are tolerated.
///
/// The second name of a field is the one that the JavaScript client sends with a batch.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RunBody {
    #[serde(alias = "assistantId")]
    pub(crate) assistant_id: String,
    pub(crate) input: Option<Json>,
    pub(crate) command: Option<CommandBody>,
    pub(crate) config: Option<Map<String, Json>>,
    pub(crate) context: Option<Json>,
    pub(crate) metadata: Option<Map<String, Json>>,
    pub(crate) checkpoint: Option<CheckpointBody>,
    #[serde(alias = "checkpointId")]
    pub(crate) checkpoint_id: Option<String>,
    #[serde(alias = "interruptBefore")]
    pub(crate) interrupt_before: Option<NodeList>,
    #[serde(alias = "interruptAfter")]
    pub(crate) interrupt_after: Option<NodeList>,
    /// A text or a list, see [`RunBody::stream_modes`].
    #[serde(alias = "streamMode")]
    pub(crate) stream_mode: Option<Json>,
    #[serde(alias = "streamSubgraphs")]
    pub(crate) stream_subgraphs: Option<bool>,
    #[serde(alias = "streamResumable")]
    pub(crate) stream_resumable: Option<bool>,
    #[serde(alias = "multitaskStrategy")]
    pub(crate) multitask_strategy: Option<MultitaskStrategy>,
    #[serde(alias = "ifNotExists")]
    pub(crate) if_not_exists: Option<IfNotExists>,
    #[serde(alias = "onDisconnect")]
    pub(crate) on_disconnect: Option<OnDisconnect>,
    #[serde(alias = "onCompletion")]
    pub(crate) on_completion: Option<OnCompletion>,
    pub(crate) webhook: Option<String>,
    #[serde(alias = "afterSeconds")]
    pub(crate) after_seconds: Option<f64>,
    #[serde(alias = "feedbackKeys")]
    pub(crate) feedback_keys: Option<Vec<String>>,
    pub(crate) durability: Option<RunDurability>,
    /// The older name of `durability`: `false` is `exit`.
    #[serde(alias = "checkpointDuring")]
    pub(crate) checkpoint_during: Option<bool>,
    /// From the header `Idempotency-Key`: the ids of the run, and of its thread if it has none, follow from it.
    #[serde(skip)]
    pub(crate) creation_key: Option<CreationKey>,
    /// Whether the server made the body to cancel work that waits for input: such a run needs the permission to cancel runs, and not
    /// that to change states, although it ends the thread as a jump to the end does.
    #[serde(skip)]
    pub(crate) is_cancellation: bool,
}

/// A command to a thread.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CommandBody {
    pub(crate) update: Option<Json>,
    pub(crate) resume: Option<Json>,
    /// A node, `{"node", "input"}`, or a list of them.
    pub(crate) goto: Option<Json>,
}

impl CommandBody {
    /// Returns where the command goes, if anywhere: `RemoteGraph` sends an empty list with every command.
    pub(crate) fn targets(&self) -> Option<&Json> {
        let goto = self.goto.as_ref();
        goto.filter(|goto| goto.as_array().is_none_or(|list| !list.is_empty()))
    }
}

/// Which checkpoint a request is about.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CheckpointBody {
    pub(crate) checkpoint_id: Option<String>,
    pub(crate) checkpoint_ns: Option<String>,
}

/// Nodes at which a run stops.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum NodeList {
    /// `*` for all nodes, or one name.
    One(String),
    Many(Vec<String>),
}

/// What to do with a run whose thread has an active one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MultitaskStrategy {
    #[default]
    Enqueue,
    Reject,
    Interrupt,
    Rollback,
}

impl MultitaskStrategy {
    /// Whether a run with this strategy ends the active ones.
    pub(crate) fn ends_others(self) -> bool {
        matches!(self, Self::Interrupt | Self::Rollback)
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Reject => "reject",
            Self::Interrupt => "interrupt",
            Self::Rollback => "rollback",
        }
    }
}

/// What to do if the thread does not exist.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IfNotExists {
    #[default]
    Reject,
    Create,
}

/// What becomes of a run whose client goes away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnDisconnect {
    #[default]
    Continue,
    Cancel,
}

/// What becomes of the thread of a stateless run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnCompletion {
    #[default]
    Delete,
    /// `complete` is what older clients send for it.
    #[serde(alias = "complete")]
    Keep,
}

/// When supersteps are made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunDurability {
    Sync,
    Async,
    Exit,
}

impl RunDurability {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Async => "async",
            Self::Exit => "exit",
        }
    }
}

impl From<Keyed<RunBody>> for RunBody {
    fn from(keyed: Keyed<RunBody>) -> Self {
        Self {
            creation_key: keyed.key,
            ..keyed.body
        }
    }
}

impl RunBody {
    /// Reads the arguments of a cron, in which what becomes of the thread has another name.
    pub(crate) fn of_cron(arguments: &Json) -> ApiResult<Self> {
        let invalid = |error: serde_json::Error| {
            ApiError::invalid(format!("The request body is not valid: {error}"))
        };
        let mut body: Self = serde_json::from_value(arguments.clone()).map_err(invalid)?;
        let on_completed = arguments.get(ON_RUN_COMPLETED).cloned();
        let on_completed = serde_json::from_value(on_completed.unwrap_or_default());
        body.on_completion = on_completed.map_err(invalid)?;
        Ok(body)
    }

    /// Returns the stream modes; `values` if the body names none.
    pub(crate) fn stream_modes(&self) -> Vec<String> {
        let modes = match &self.stream_mode {
            Some(Json::String(mode)) => vec![mode.clone()],
            Some(Json::Array(modes)) => {
                let texts = modes.iter().filter_map(Json::as_str);
                texts.map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        match modes.is_empty() {
            true => vec!["values".to_owned()],
            false => modes,
        }
    }

    pub(crate) fn strategy(&self) -> MultitaskStrategy {
        self.multitask_strategy.unwrap_or_default()
    }

    /// Whether the run answers interrupts.
    pub(crate) fn is_answer(&self) -> bool {
        let command = self.command.as_ref();
        command.is_some_and(|command| command.resume.is_some())
    }

    /// Whether the run starts with an input: a command that writes or goes somewhere replaces it.
    pub(crate) fn has_input(&self) -> bool {
        let is_command = |command: &CommandBody| {
            command.update.is_some() || command.resume.is_some() || command.targets().is_some()
        };
        self.input.is_some() && !self.command.as_ref().is_some_and(is_command)
    }

    /// Returns the checkpoint that the run is to continue from, wherever the body has it.
    pub(crate) fn checkpoint(&self, thread: &ThreadId) -> ApiResult<Option<CheckpointId>> {
        let named = self.checkpoint.as_ref();
        let configurable = self.config.as_ref().and_then(|c| c.get("configurable"));
        let text = named
            .and_then(|named| named.checkpoint_id.as_deref())
            .or(self.checkpoint_id.as_deref())
            .or_else(|| configurable?.get("checkpoint_id")?.as_str());
        let Some(text) = text else {
            return Ok(None);
        };
        if named.is_some_and(|named| {
            named
                .checkpoint_ns
                .as_ref()
                .is_some_and(|ns| !ns.is_empty())
        }) {
            return Err(ApiError::invalid(
                "A run cannot start at the checkpoint of a subgraph; name one of the root graph",
            ));
        }
        match CheckpointId::parse(thread, text) {
            Some(id) => Ok(Some(id)),
            None => Err(no_checkpoint(text)),
        }
    }

    /// Returns where the run continues from, in the fields of `configurable` by which clients read it.
    fn address(&self) -> Map<String, Json> {
        let named = self.checkpoint.as_ref();
        let id = named.and_then(|named| named.checkpoint_id.clone());
        let fields = [
            (CHECKPOINT_ID, id.or_else(|| self.checkpoint_id.clone())),
            (
                CHECKPOINT_NS,
                named.and_then(|named| named.checkpoint_ns.clone()),
            ),
        ];
        let fields = fields.into_iter();
        fields
            .filter_map(|(name, text)| Some((name.to_owned(), text?.into())))
            .collect()
    }

    /// Returns what clients read as the arguments of the run.
    pub(crate) fn arguments(
        &self,
        config: &Map<String, Json>,
        context: &Json,
        temporary: bool,
    ) -> Json {
        let command = self.command.as_ref().map(|command| {
            json!({ "update": command.update, "resume": command.resume, "goto": command.goto })
        });
        let nodes = |list: &Option<NodeList>| match list {
            Some(NodeList::One(one)) => json!(one),
            Some(NodeList::Many(many)) => json!(many),
            None => Json::Null,
        };
        let mut config = config.clone();
        let configurable = config.entry("configurable");
        if let Some(configurable) = configurable.or_insert_with(|| json!({})).as_object_mut() {
            configurable.extend(self.address());
        }
        json!({
            "input": self.input,
            "command": command,
            "config": config,
            "context": context,
            "stream_mode": self.stream_modes(),
            "interrupt_before": nodes(&self.interrupt_before),
            "interrupt_after": nodes(&self.interrupt_after),
            "webhook": self.webhook,
            "feedback_keys": self.feedback_keys,
            "temporary": temporary,
            "subgraphs": self.stream_subgraphs.unwrap_or(false),
            "resumable": self.stream_resumable.unwrap_or(false),
            "durability": self.durability.map(RunDurability::as_str),
            "multitask_strategy": self.strategy().as_str(),
        })
    }
}

/// The error for a checkpoint that the thread does not have.
pub(crate) fn no_checkpoint(text: &str) -> ApiError {
    ApiError::not_found(format!("Checkpoint {text} not found"))
}
