//! What callers write into a state: an input, an update, the `update` of a command.
//!
//! A graph declares which channels callers may write. Everything else of a state belongs to the graph: a caller who could write it
//! could choose a sandbox, a folder or a model.

use serde_json::{Map, Value as Json};
use superstep::__private::chain;
use superstep::graph::Definition;
use superstep::{ChannelKind, Value};

use crate::error::{ApiError, ApiResult};
use crate::wire::messages::{MessageChange, read_messages};
use crate::wire::values::kind_of;

/// What a caller may write, in the stored form of an update.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AcceptedInput {
    /// The encoded update.
    pub(crate) update: Value,
    /// Names that the graph does not know.
    pub(crate) dropped: Vec<String>,
}

/// Reads what a caller writes into the state of a graph. `null` writes nothing.
pub(crate) fn read_input(graph: &Definition, input: &Json) -> ApiResult<AcceptedInput> {
    let none = Map::new();
    let fields = match input {
        Json::Object(fields) => fields,
        Json::Null => &none,
        _ => {
            return Err(ApiError::invalid(
                "The input is not an object with a field for each channel",
            ));
        }
    };
    let mut update = Map::new();
    let mut dropped = Vec::new();
    for (name, value) in fields {
        let Some(kind) = kind_of(graph, name) else {
            dropped.push(name.clone());
            continue;
        };
        if !graph.inputs().iter().any(|input| *input == name.as_str()) {
            return Err(ApiError::invalid(format!(
                "Channel `{name}` of graph `{}` is not an input: callers cannot write it",
                graph.name()
            )));
        }
        write_channel(&mut update, name, kind, value).map_err(|why| {
            ApiError::invalid(format!("Channel `{name}` cannot be written: {why}"))
        })?;
    }
    let update = Value::plain(&Json::Object(update))?;
    graph
        .check_update(&update)
        .map_err(|error| ApiError::invalid(chain(&error)))?;
    Ok(AcceptedInput { update, dropped })
}

fn write_channel(
    update: &mut Map<String, Json>,
    name: &str,
    kind: ChannelKind,
    value: &Json,
) -> Result<(), String> {
    let (value, is_whole) = match overwritten(value) {
        Some(value) => (value, true),
        None => (value, false),
    };
    let whole_name = || format!("={name}");
    match kind {
        ChannelKind::Messages => match read_messages(value)? {
            MessageChange::Merge(writes) if is_whole => {
                let put = writes.iter().filter_map(|write| write.get("put").cloned());
                update.insert(whole_name(), put.collect());
            }
            MessageChange::Merge(writes) => {
                update.insert(name.to_owned(), Json::Array(writes));
            }
            MessageChange::Replace(messages) => {
                update.insert(whole_name(), Json::Array(messages));
            }
        },
        ChannelKind::Append | ChannelKind::Topic => {
            // One item is a list of one.
            let items = match value {
                Json::Array(_) => value.clone(),
                item => Json::Array(vec![item.clone()]),
            };
            let name = if is_whole {
                whole_name()
            } else {
                name.to_owned()
            };
            update.insert(name, items);
        }
        ChannelKind::Reduce if is_whole => {
            update.insert(whole_name(), value.clone());
        }
        ChannelKind::Last
        | ChannelKind::Reduce
        | ChannelKind::Ephemeral
        | ChannelKind::Untracked => {
            update.insert(name.to_owned(), value.clone());
        }
    }
    Ok(())
}

/// Returns the value that replaces a whole channel, from either form that clients have for it.
fn overwritten(value: &Json) -> Option<&Json> {
    let fields = value.as_object()?;
    match fields.len() {
        1 => fields.get("__overwrite__"),
        2 if value["type"] == "__overwrite__" => fields.get("value"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use superstep::prelude::*;
    use superstep_agent::ChatMessage;

    use super::*;

    #[derive(Clone, Debug, Default, State)]
    struct Chat {
        #[state(messages)]
        messages: Vec<ChatMessage>,
        #[state(append)]
        notes: Vec<String>,
        topic: Option<String>,
        secret: String,
    }

    async fn nothing(_: View<Chat>, _: NodeCx) -> Result<ChatUpdate, NodeError> {
        Ok(ChatUpdate::default())
    }

    fn graph() -> Graph<Chat> {
        Graph::builder("chat")
            .node("nothing", nothing)
            .edge(START, "nothing")
            .edge("nothing", END)
            .inputs(["messages", "notes", "topic"])
            .build()
            .unwrap()
    }

    fn read(input: Json) -> ApiResult<(Json, Vec<String>)> {
        let read = read_input(graph().definition(), &input)?;
        Ok((read.update.decode().unwrap(), read.dropped))
    }

    #[test]
    fn channels_are_written_by_their_kinds() {
        let input = json!({ "messages": "hi", "notes": "one", "topic": null, "unknown": 1 });
        let (update, dropped) = read(input).unwrap();
        assert_eq!(dropped, ["unknown"]);
        assert_eq!(
            update,
            json!({
                "messages": [{ "put": { "type": "human", "content": "hi", "labels": [] } }],
                "notes": ["one"],
                "topic": null,
            })
        );
    }

    #[test]
    fn a_channel_is_replaced_in_both_forms() {
        for value in [
            json!({ "__overwrite__": ["a"] }),
            json!({ "type": "__overwrite__", "value": ["a"] }),
        ] {
            let (update, _) = read(json!({ "notes": value })).unwrap();
            assert_eq!(update, json!({ "=notes": ["a"] }));
        }
    }

    #[test]
    fn what_the_graph_keeps_to_itself_is_refused_by_name() {
        let refused = read(json!({ "secret": "mine" })).unwrap_err();
        assert_eq!(refused.status, http::StatusCode::UNPROCESSABLE_ENTITY);
        assert!(refused.detail.contains("`secret`"), "{}", refused.detail);
        let wrong = read(json!({ "topic": 7 })).unwrap_err();
        assert_eq!(wrong.status, http::StatusCode::UNPROCESSABLE_ENTITY);
        assert!(read(json!([1])).is_err());
    }
}
