//! State is the user's own struct; a node writes it through a typed, partial update.
//!
//! [`State`] is what `#[derive(State)]` implements. None of it needs a macro: the derive's documentation shows the same code
//! written by hand.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::channel::{Channel, ChannelSet};
use crate::error::{InvalidUpdate, MigrationError};

pub use fields::Fields;
pub use schema::StateSchema;

mod fields;
pub(crate) mod reads_back;
mod schema;

/// The state of a graph: a plain struct with one channel per field.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the state of a graph",
    label = "needs `#[derive(State)]`",
    note = "write `#[derive(Clone, Debug, Default, State)]` on the struct; the derive writes serde's traits too"
)]
pub trait State: Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// A partial write to this state: every field is optional, and an absent field differs from `null`.
    type Update: StateUpdate;

    /// Version of this struct. Raise it with every change that older data does not fit, and write a migration.
    const VERSION: u32;

    /// The channels, in the order of the bits of a [`ChannelSet`]. At most 64.
    const CHANNELS: &'static [Channel];

    /// Reduced channels whose reducer may produce a value that cannot be stored, such as a sum of floats that overflows.
    const RISKY_FOLDS: ChannelSet = ChannelSet::EMPTY;

    /// Channels whose every value reads back from its stored form exactly as it was written. An update of these alone is not
    /// read back before it counts. Default: none.
    const READ_BACK_EXACTLY: ChannelSet = ChannelSet::EMPTY;

    /// Returns the name of a channel in `folded` whose value cannot be stored after a reducer ran. Called for
    /// [`State::RISKY_FOLDS`] only.
    fn unstorable_fold(&self, folded: ChannelSet) -> Option<&'static str> {
        let _ = folded;
        None
    }

    /// Clears what lives for one superstep only: ephemeral channels and topics.
    fn begin_step(&mut self) {}

    /// Applies an update. Cannot fail: [`State::check`] already refused what must be refused, at the node.
    fn apply(&mut self, update: Self::Update);

    /// Refuses an update that breaks a rule of this state, at the node that wrote it. Default: accepts every update.
    fn check(&self, update: &Self::Update) -> Result<(), InvalidUpdate> {
        let _ = update;
        Ok(())
    }

    /// Returns a JSON Schema of this state, under its wire names, for people and programs that read or write it. Default: any
    /// object. The derive writes it from the types of the fields.
    fn schema() -> serde_json::Value {
        serde_json::json!({ "type": "object" })
    }

    /// Migrates data of version `from` to version `from + 1`.
    ///
    /// `fields` is a whole state or a partial update: change the fields that are present, and leave absent ones absent.
    fn migrate(from: u32, fields: &mut Fields) -> Result<(), MigrationError> {
        let _ = fields;
        Err(MigrationError::Missing {
            from,
            to: Self::VERSION,
        })
    }
}

/// A typed, partial update of a [`State`].
pub trait StateUpdate: Serialize + DeserializeOwned + Default + Send + 'static {
    /// Returns the channels that this update writes, overwrites included.
    fn written(&self) -> ChannelSet;

    /// Returns the channels whose whole value this update replaces, with or without a reducer.
    fn overwritten(&self) -> ChannelSet;

    /// Discards the writes to these channels, because a sibling task overwrote them.
    fn discard(&mut self, channels: ChannelSet);

    /// Assigns an id to every message without one, so that it can be replaced or removed later.
    fn name_messages(&mut self, ids: &mut MessageIds) {
        let _ = ids;
    }

    /// Moves the values of untracked channels over from `from`. The rest of this update was read back from its stored form,
    /// which does not hold them.
    fn move_untracked(&mut self, from: &mut Self) {
        let _ = from;
    }
}

/// Generates ids for messages without one, derived from the task that wrote them.
#[derive(Debug)]
pub struct MessageIds {
    task: String,
    next: u32,
}

impl MessageIds {
    /// Creates a generator whose ids start with this task's id.
    pub fn of(task: impl std::fmt::Display) -> Self {
        Self {
            task: task.to_string(),
            next: 0,
        }
    }

    /// Returns the next id.
    pub fn next_id(&mut self) -> String {
        let id = Self::nth(&self.task, self.next);
        self.next += 1;
        id
    }

    /// Returns the id of the message with this number, from 0, among those that a task writes without an id.
    pub fn nth(task: impl std::fmt::Display, number: u32) -> String {
        format!("{task}-{number}")
    }
}

/// Cheap, read-only handle on the state of one superstep. Use it like `&S`.
///
/// ```
/// # use superstep_core::{Command, END, Failed, Goto, Graph, Interrupt, NodeCx, NodeError, START, SendTo, State, View};
/// # #[derive(Clone, Debug, Default, State)]
/// # #[state(crate = superstep_core)]
/// # struct Essay { topic: String, #[state(append)] parts: Vec<String>, score: u8 }
/// # async fn step(_: View<Essay>, _: NodeCx) -> Result<EssayUpdate, NodeError> { Ok(EssayUpdate::default()) }
/// async fn count(essay: View<Essay>, _: NodeCx) -> Result<EssayUpdate, NodeError> {
///     Ok(EssayUpdate::default().score(essay.parts.len() as u8))
/// }
/// ```
#[derive(Debug)]
pub struct View<S>(std::sync::Arc<S>);

impl<S> View<S> {
    pub(crate) fn new(state: std::sync::Arc<S>) -> Self {
        Self(state)
    }

    /// Makes a view of a state, for a unit test that calls a node. See [`TestCx`](crate::TestCx).
    pub fn of(state: S) -> Self {
        Self(std::sync::Arc::new(state))
    }
}

impl<S> Clone for View<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> std::ops::Deref for View<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

/// Whether a value can be stored and read back unchanged. For the code that `derive(State)` writes.
pub fn can_be_stored<T: Serialize + DeserializeOwned>(value: &T) -> bool {
    crate::value::Value::encode(value).is_ok()
}

/// Reads a present field as `Some`, so that `null` ("set to none") differs from absent ("no change").
///
/// For use by the code that `derive(State)` writes: `#[serde(default, deserialize_with = "present")]`.
pub fn present<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: serde::Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}
