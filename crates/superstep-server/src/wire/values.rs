//! States and updates as clients read them.

use serde_json::{Map, Value as Json, json};
use superstep::graph::Definition;
use superstep::{ChannelKind, Value};

use crate::wire::messages::{message, message_write};

/// Returns a state as clients read it.
pub(crate) fn values(graph: &Definition, values: &Value) -> Json {
    let mut shown: Json = values.decode().unwrap_or_default();
    let Some(fields) = shown.as_object_mut() else {
        return shown;
    };
    // A state is a struct, so a channel that was never written is there, as nothing. LangGraph's clients know it by its absence.
    fields.retain(|_, value| !value.is_null());
    for (name, value) in fields {
        if let Some(items) = value.as_array_mut()
            && kind_of(graph, name) == Some(ChannelKind::Messages)
        {
            for item in items {
                *item = message(item);
            }
        }
    }
    shown
}

/// Returns the state of a graph to which nothing was written: LangGraph shows the empty lists of channels that collect.
pub(crate) fn empty_values(graph: &Definition) -> Json {
    let collects = |kind: ChannelKind| matches!(kind, ChannelKind::Append | ChannelKind::Messages);
    let lists = graph
        .channels()
        .iter()
        .filter(|channel| collects(channel.kind));
    let fields = lists.map(|channel| (channel.name.to_owned(), json!([])));
    Json::Object(fields.collect())
}

/// Returns a stored update as clients read it; `null` for one that writes nothing.
pub(crate) fn update(graph: &Definition, update: &Value) -> Json {
    let stored: Json = update.decode().unwrap_or_default();
    let Json::Object(fields) = stored else {
        return stored;
    };
    let mut shown = Map::new();
    for (name, value) in fields {
        // What replaces a whole channel is stored under the name with a mark.
        let (name, is_whole) = match name.strip_prefix('=') {
            Some(name) => (name.to_owned(), true),
            None => (name, false),
        };
        let is_messages = kind_of(graph, &name) == Some(ChannelKind::Messages);
        let value = match value {
            Json::Array(items) if is_messages && is_whole => items.iter().map(message).collect(),
            Json::Array(items) if is_messages => items.iter().map(message_write).collect(),
            value => value,
        };
        let value = match (shown.remove(&name), value) {
            // Written after the channel was replaced.
            (Some(Json::Array(mut before)), Json::Array(more)) => {
                before.extend(more);
                Json::Array(before)
            }
            (_, value) => value,
        };
        shown.insert(name, value);
    }
    match shown.is_empty() {
        true => Json::Null,
        false => Json::Object(shown),
    }
}

/// Returns what a write to a channel of a graph does; `None` if there is no such channel.
pub(super) fn kind_of(graph: &Definition, name: &str) -> Option<ChannelKind> {
    let channels = graph.channels().iter();
    let mut found = channels.filter(|channel| channel.name == name);
    found.next().map(|channel| channel.kind)
}
