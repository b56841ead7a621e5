//! The conversation in a state: which channel has it, and the texts in it.

use serde_json::Value as Json;
use superstep::ChannelKind;
use superstep::graph::Definition;

/// Returns the channel of messages that callers may write; `None` if the graph has none.
pub(crate) fn message_channel(graph: &Definition) -> Option<&'static str> {
    let mut channels = graph.channels().iter();
    let found = channels.find(|channel| {
        channel.kind == ChannelKind::Messages && graph.inputs().contains(channel.name)
    });
    found.map(|channel| channel.name)
}

/// Returns the text of a message, as clients read messages. Other content is left out.
pub(crate) fn text_of(message: &Json) -> String {
    match &message["content"] {
        Json::String(text) => text.clone(),
        Json::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect()
        }
        _ => String::new(),
    }
}
