//! Live events that were lost on the way from a worker, and what that means for messages: those of which a piece is missing come
//! again as a whole, when the log has them.

use serde_json::Value as Json;
use superstep::driver::LiveEvent;

use crate::feed::log_converter::LogConverter;

/// What arrived of the live events of a task.
#[derive(Debug)]
pub(super) struct LiveOrder {
    /// The execution of the task.
    execution: u64,
    /// The number of its next event.
    next: u64,
    /// Whether events before that one were lost.
    has_gap: bool,
}

impl LiveOrder {
    /// Whether events were lost.
    pub(super) fn has_gap(&self) -> bool {
        self.has_gap
    }
}

impl LogConverter {
    /// Notices that live events before this one were lost. The messages that the task is writing are not complete then.
    pub(super) fn note_gap(&mut self, event: &LiveEvent) {
        let order = self.live_order.entry(event.task);
        let order = order.or_insert(LiveOrder {
            execution: event.go,
            next: 0,
            has_gap: false,
        });
        if order.execution != event.go {
            *order = LiveOrder {
                execution: event.go,
                next: 0,
                has_gap: false,
            };
        }
        let is_gap = event.index > order.next;
        order.next = event.index + 1;
        order.has_gap |= is_gap;
        if is_gap {
            for (message, _) in self.messages.of_task(event.task) {
                self.shown_messages.remove(&message);
            }
        }
    }

    /// Whether clients have a message of the log already, in pieces or as a whole.
    pub(super) fn is_shown(&self, id: &str, message: &Json) -> bool {
        let text = self.unended_messages.get(id);
        self.shown_messages.contains(id)
            && text.is_none_or(|length| *length == text_length(message))
    }
}

/// Returns the length of a message's text.
fn text_length(message: &Json) -> usize {
    match message.get("content") {
        Some(Json::String(text)) => text.len(),
        Some(Json::Array(blocks)) => {
            let texts = blocks
                .iter()
                .filter_map(|block| block.get("text")?.as_str());
            texts.map(str::len).sum()
        }
        _ => 0,
    }
}
