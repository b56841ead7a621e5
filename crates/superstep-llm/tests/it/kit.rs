//! What tests of models share: a script from a few lines, and a request.

use superstep_llm::{Message, Request, Script};

pub(crate) fn script(replies: &str) -> Script {
    Script::parse("test", &format!(r#"{{"replies": [{replies}]}}"#)).unwrap()
}

pub(crate) fn ask(label: &str, text: &str) -> Request {
    Request::new(label, vec![Message::user(text)])
}
