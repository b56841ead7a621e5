//! The JSON that clients read and write: conversions only. Nothing here calls a store, apart from [`thread_state`], which needs the
//! interrupts of its thread.

mod answer;
mod assistant;
mod checkpoint_id;
mod content;
mod extract;
mod input;
mod interrupt;
mod item;
mod messages;
mod run;
mod state;
mod thread;
mod time;
mod values;

pub(crate) use answer::read_answer;
pub(crate) use assistant::{assistant, mirror};
pub(crate) use checkpoint_id::{AFTER, BEFORE_INPUT, CheckpointId, checkpoint};
pub(crate) use extract::extract;
pub(crate) use input::read_input;
pub(crate) use interrupt::interrupt;
pub(crate) use item::item;
pub(crate) use run::{error as run_error, error_name, read_status, run};
pub(crate) use state::{
    StateOptions, empty_state, open_interrupts, past_states, subgraph_state, thread_state,
};
pub(crate) use thread::{
    ThreadParts, interrupts_by_task, lifetime, read_thread_status, select, thread, thread_status,
};
pub(crate) use time::{MS_MAX, minutes, time};
pub(crate) use values::{empty_values, update, values};

use superstep::FramePath;

/// Returns an id of 16 bytes as a hyphenated UUID.
pub(crate) fn uuid(bytes: [u8; 16]) -> String {
    uuid::Uuid::from_bytes(bytes).to_string()
}

/// Returns the path of a graph as clients write it: `child:<task>|grandchild:<task>`; empty for the root.
pub(crate) fn namespace(frame: &FramePath) -> String {
    let levels = frame.segments().iter().map(|segment| match segment.task {
        Some(task) => format!("{}:{}", segment.node, uuid(task.to_bytes())),
        // A subgraph that lives as long as its thread is the same one in every task.
        None => segment.node.to_string(),
    });
    levels.collect::<Vec<_>>().join("|")
}
