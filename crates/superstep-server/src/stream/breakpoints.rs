//! Breakpoints of a run: tasks that are planned and do not start.
//!
//! The log says that tasks start before it says that the run stopped at them, so a stream would show starts that never happen.

use serde_json::Value as Json;
use superstep::registry::RunRow;

use crate::feed::{FeedBody, FeedEvent};

/// The breakpoints that the caller of a run set, and whether the run stops at one.
#[derive(Debug)]
pub(super) struct Breakpoints {
    before: NamedNodes,
    after: NamedNodes,
    /// Nodes of the root graph that ended since its last checkpoint.
    ended: Vec<String>,
    is_stopping: bool,
}

impl Breakpoints {
    pub(super) fn of(row: &RunRow) -> Self {
        Self {
            before: NamedNodes::read(row.arguments.get("interrupt_before")),
            after: NamedNodes::read(row.arguments.get("interrupt_after")),
            ended: Vec::new(),
            is_stopping: false,
        }
    }

    /// Takes note of an event. Returns whether it says that a task starts at which the run stops.
    pub(super) fn is_held(&mut self, event: &FeedEvent) -> bool {
        if !event.namespace.is_root() {
            return false;
        }
        match &event.body {
            FeedBody::TaskEnded(task) => self.ended.push(task.origin.node.clone()),
            FeedBody::Checkpoint(checkpoint) => {
                let ended = std::mem::take(&mut self.ended);
                let mut next = checkpoint.tasks.iter();
                // A run that resumes passes the breakpoint at which the last one stopped.
                self.is_stopping = checkpoint.found.is_none()
                    && (next.any(|task| self.before.has(&task.node))
                        || ended.iter().any(|node| self.after.has(node)));
            }
            FeedBody::TaskStarted(_) => return self.is_stopping,
            _ => {}
        }
        false
    }
}

/// Nodes that a caller named.
#[derive(Debug)]
enum NamedNodes {
    All,
    Some(Vec<String>),
}

impl NamedNodes {
    fn read(named: Option<&Json>) -> Self {
        match named {
            Some(Json::String(all)) if all == "*" => Self::All,
            Some(Json::Array(nodes)) => {
                let nodes = nodes.iter().filter_map(Json::as_str);
                Self::Some(nodes.map(str::to_owned).collect())
            }
            _ => Self::Some(Vec::new()),
        }
    }

    fn has(&self, node: &str) -> bool {
        match self {
            // The start of a graph is not a node that a caller could mean.
            Self::All => node != superstep::START,
            Self::Some(nodes) => nodes.iter().any(|named| named == node),
        }
    }
}

#[test]
fn nodes_are_named_one_by_one_or_all_at_once() {
    use serde_json::json;
    let named = NamedNodes::read(Some(&json!(["ask"])));
    assert!(named.has("ask") && !named.has("send"));
    let all = NamedNodes::read(Some(&json!("*")));
    assert!(all.has("send") && !all.has(superstep::START));
    assert!(!NamedNodes::read(None).has("ask"));
}
