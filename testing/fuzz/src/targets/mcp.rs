//! What an MCP server says: answers to calls, and its list of tools.

use std::collections::BTreeSet;

use superstep_agent::mcp::fuzzing::{read_answer, read_tools};

pub(super) fn run(bytes: &[u8]) {
    if let Some(Ok(output)) = read_answer(bytes) {
        let text = output.content.text();
        // Each block is in the answer, as it is or as JSON.
        assert!(text.len() <= bytes.len() * 8 + 64, "it grew");
    }
    let Some((digest, reversed, specs)) = read_tools(bytes) else {
        return;
    };
    assert_eq!(digest, reversed, "the order of tools changes their digest");
    for spec in &specs {
        assert!(!spec.name.is_empty() && spec.name.len() <= 64);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!(spec.name.chars().all(is_plain), "{}", spec.name);
    }
    let names: BTreeSet<_> = specs.iter().map(|spec| &spec.name).collect();
    assert!(names.len() <= specs.len());
}
