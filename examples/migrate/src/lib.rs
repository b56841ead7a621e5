//! A scripted model, so that the programs need no network: what `fake.py` is to the programs in Python.
//!
//! The programs are in `src/bin`, one for each section of the migration guide; their twins are in `examples/python`. This library
//! decides nothing: it turns a list of replies into a [`Script`].
//!
//! Each reply answers the next request with its label, the name of the node that asks. A request without a reply fails the run,
//! so a program that asks more often than its twin is noticed.
//!
//! Lines of this file do not count as lines of a program, and neither do those of `fake.py`: with a real model, both programs
//! would open it with one line instead.
//!
//! [`mcp_server`] is the server of the program `mcp_agent`, as `mcp_server.py` is in Python, and is not counted either.
//!
//! [`script`] makes the model of [`say`], [`form`] and [`call`], which are one reply each.

pub mod mcp_server;

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep_llm::{Model, Script};

/// Returns a model that gives these replies, in order, to requests with the label `at`.
pub fn script(at: &str, replies: impl IntoIterator<Item = Json>) -> Arc<dyn Model> {
    let replies = replies.into_iter().map(|mut reply| {
        reply["at"] = json!(at);
        reply
    });
    let script = json!({ "replies": replies.collect::<Vec<_>>() });
    Arc::new(Script::parse("script", &script.to_string()).expect("a valid script"))
}

/// Returns a reply that is text.
pub fn say(text: &str) -> Json {
    json!({ "text": text })
}

/// Returns a reply that is structured output.
pub fn form(value: Json) -> Json {
    json!({ "json": value })
}

/// Returns a reply that calls a tool.
pub fn call(tool: &str, args: Json) -> Json {
    json!({ "tool_calls": [{ "name": tool, "args": args }] })
}
