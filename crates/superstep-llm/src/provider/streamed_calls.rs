//! The tool calls of a reply while they are streamed: from arguments so far to the text that was added.

use genai::chat as wire;
use serde_json::Value as Json;

use crate::reply::Chunk;

/// The calls that a reply has requested so far.
#[derive(Debug, Default)]
pub(super) struct StreamedCalls {
    /// Number of calls so far, and the index of the next one.
    count: u32,
    growing: Vec<GrowingCall>,
}

/// A call whose arguments arrive as text, in fragments.
#[derive(Debug)]
struct GrowingCall {
    index: u32,
    id: String,
    /// Arguments so far.
    args: String,
}

impl StreamedCalls {
    /// Returns what a call of the stream adds to the calls so far.
    ///
    /// `genai` sends arguments either as text, each time with all of it so far, or at once as JSON. It does not send the index of
    /// a call, so this counts the calls.
    pub(super) fn fragment(&mut self, call: wire::ToolCall) -> Chunk {
        let (index, args) = match call.fn_arguments {
            Json::String(so_far) => self.grow(&call.call_id, so_far),
            // The complete reply has an empty object in this place, too.
            Json::Null => (self.next_index(), "{}".to_owned()),
            whole => (self.next_index(), whole.to_string()),
        };
        Chunk::ToolCall {
            index,
            id: call.call_id,
            name: call.fn_name,
            args,
        }
    }

    /// Returns the index of a call, and the text that its arguments have grown by.
    fn grow(&mut self, id: &str, so_far: String) -> (u32, String) {
        // Not every server gives each call an id of its own. Arguments that do not continue the earlier ones are another call's.
        let same_id = self.growing.iter_mut().rev().filter(|call| call.id == id);
        for call in same_id {
            if let Some(added) = so_far.strip_prefix(call.args.as_str()) {
                call.args.push_str(added);
                return (call.index, added.to_owned());
            }
        }
        let index = self.next_index();
        self.growing.push(GrowingCall {
            index,
            id: id.to_owned(),
            args: so_far.clone(),
        });
        (index, so_far)
    }

    fn next_index(&mut self) -> u32 {
        let index = self.count;
        self.count += 1;
        index
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns index, id and added text of each of these calls: an id, and the arguments so far.
    fn fragments(calls: &[(&str, Json)]) -> Vec<(u32, String, String)> {
        let mut streamed = StreamedCalls::default();
        let mut fragments = Vec::new();
        for (id, args) in calls {
            let call = wire::ToolCall {
                call_id: (*id).to_owned(),
                fn_name: "look".to_owned(),
                fn_arguments: args.clone(),
                thought_signatures: None,
            };
            if let Chunk::ToolCall {
                index, id, args, ..
            } = streamed.fragment(call)
            {
                fragments.push((index, id, args));
            }
        }
        fragments
    }

    fn expected(fragments: &[(u32, &str, &str)]) -> Vec<(u32, String, String)> {
        fragments
            .iter()
            .map(|(index, id, args)| (*index, (*id).to_owned(), (*args).to_owned()))
            .collect()
    }

    #[test]
    fn arguments_so_far_become_added_text_for_each_call() {
        let calls = [
            ("c1", json!("")),
            ("c1", json!("{\"a\":")),
            ("c2", json!("{")),
            ("c1", json!("{\"a\":1}")),
            ("c2", json!("{}")),
        ];
        let added = expected(&[
            (0, "c1", ""),
            (0, "c1", "{\"a\":"),
            (1, "c2", "{"),
            (0, "c1", "1}"),
            (1, "c2", "}"),
        ]);
        assert_eq!(fragments(&calls), added);
    }

    #[test]
    fn calls_that_share_an_id_differ_by_their_arguments() {
        let calls = [("", json!("[1]")), ("", json!("{}")), ("", json!("[1]"))];
        let added = expected(&[(0, "", "[1]"), (1, "", "{}"), (0, "", "")]);
        assert_eq!(fragments(&calls), added);
    }

    #[test]
    fn a_call_that_arrives_at_once_has_all_of_its_arguments() {
        let calls = [("c1", json!({ "a": 1 })), ("c1", json!(null))];
        let added = expected(&[(0, "c1", "{\"a\":1}"), (1, "c1", "{}")]);
        assert_eq!(fragments(&calls), added);
    }
}
