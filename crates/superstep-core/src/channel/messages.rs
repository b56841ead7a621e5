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
    /// Its id, if it has one.
    fn id(&self) -> Option<&str>;
    /// Gives it an id; called once, before it is stored, and only if it had none.
    fn set_id(&mut self, id: String);
}

/// One write to a messages channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageWrite<T> {
    /// Adds the message, or replaces the one with the same id in its place.
    Put(T),
    /// Removes the message with this id.
    Remove(String),
}

/// Writes into a list of messages: same id replaces in place, new id is added, removal removes.
pub fn merge_messages<T: Message>(messages: &mut Vec<T>, writes: Vec<MessageWrite<T>>) {
    for write in writes {
        match write {
            MessageWrite::Put(message) => match position(messages, message.id()) {
                Some(at) => messages[at] = message,
                None => messages.push(message),
            },
            // A sibling may have removed it in the same superstep; gone is gone.
            MessageWrite::Remove(id) => messages.retain(|message| message.id() != Some(&id)),
        }
    }
}

/// Recent messages are the likely ones, so the search runs from the end.
fn position<T: Message>(messages: &[T], id: Option<&str>) -> Option<usize> {
    let id = id?;
    messages
        .iter()
        .rposition(|message| message.id() == Some(id))
}

/// The check of a messages channel: a removal must name a message that the node could see or adds itself.
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
