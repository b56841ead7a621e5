//! The rule of a messages channel: merge by id.

use serde::{Deserialize, Serialize};

use crate::error::InvalidUpdate;

/// An item of a messages channel.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an item of a `#[state(messages)]` channel",
    label = "not a message",
    note = "implement `Message` for it (an id that can be read and set), or use `#[state(append)]`"
)]
pub trait Message {
    /// Returns the message's id; `None` if it has none yet.
    fn id(&self) -> Option<&str>;
    /// Sets the id. Called once, before the message is stored, and only if it had none.
    fn set_id(&mut self, id: String);
}

/// One write to a messages channel.
///
/// ```
/// use superstep_core::channel::merge_messages;
/// use superstep_core::{Message, MessageWrite};
///
/// struct Line {
///     id: Option<String>,
///     text: String,
/// }
///
/// impl Message for Line {
///     fn id(&self) -> Option<&str> {
///         self.id.as_deref()
///     }
///     fn set_id(&mut self, id: String) {
///         self.id = Some(id);
///     }
/// }
///
/// let line = |id: &str, text: &str| Line { id: Some(id.to_owned()), text: text.to_owned() };
/// let mut lines = vec![line("a", "Hi"), line("b", "Bye")];
/// let writes = vec![MessageWrite::Put(line("a", "Hello")), MessageWrite::Remove("b".to_owned())];
/// merge_messages(&mut lines, writes);
/// assert_eq!((lines.len(), lines[0].text.as_str()), (1, "Hello"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageWrite<T> {
    /// Adds the message, or replaces the one with the same id in its place.
    Put(T),
    /// Removes the message with this id.
    Remove(String),
}

/// Applies writes to a list of messages: a known id replaces in place, a new id appends, a removal removes.
pub fn merge_messages<T: Message>(messages: &mut Vec<T>, writes: Vec<MessageWrite<T>>) {
    for write in writes {
        match write {
            MessageWrite::Put(message) => match position(messages, message.id()) {
                Some(at) => messages[at] = message,
                None => messages.push(message),
            },
            // A sibling may have removed it in the same superstep; then there is nothing to do.
            MessageWrite::Remove(id) => messages.retain(|message| message.id() != Some(&id)),
        }
    }
}

/// Searches from the end, because recent messages are the likely ones.
fn position<T: Message>(messages: &[T], id: Option<&str>) -> Option<usize> {
    let id = id?;
    messages
        .iter()
        .rposition(|message| message.id() == Some(id))
}

/// Checks the removals of an update: each must name a message that the node could see or that the update adds. Fails for the
/// first that does not.
pub fn remove_unknown_message<T: Message>(
    channel: &'static str,
    messages: &[T],
    writes: &[MessageWrite<T>],
) -> Result<(), InvalidUpdate> {
    for write in writes {
        let MessageWrite::Remove(id) = write else {
            continue;
        };
        let written = writes
            .iter()
            .any(|w| matches!(w, MessageWrite::Put(m) if m.id() == Some(id)));
        if !written && position(messages, Some(id)).is_none() {
            return Err(InvalidUpdate::UnknownMessage {
                channel,
                id: id.clone(),
            });
        }
    }
    Ok(())
}
