//! The JSON that clients read and write: conversions only. Nothing here calls a store, apart from [`thread_state`], which needs the
//! interrupts of its thread, the runs that wrote it, and what its tasks wrote since.

mod answer;
mod assistant;
mod checkpoint_id;
mod content;
mod cron;
mod delivery;
mod extract;
mod input;
mod interrupt;
mod item;
mod messages;
mod run;
mod state;
mod task_place;
mod thread;
mod time;
mod values;

pub(crate) use answer::read_answer;
pub(crate) use assistant::{assistant, assistant_version, mirror};
pub(crate) use checkpoint_id::{
    AFTER, BEFORE_INPUT, CheckpointId, checkpoint, checkpoint_map, name_of_copy,
};
pub(crate) use cron::{ON_RUN_COMPLETED, cron, last_run_id};
pub(crate) use delivery::{delivery, read_delivery_status};
pub(crate) use extract::extract;
pub(crate) use input::read_input;
pub(crate) use interrupt::{interrupt, interrupt_as_asked, streamed_interrupt};
pub(crate) use item::item;
pub(crate) use run::{
    CHECKPOINT_ID, CHECKPOINT_NS, answers_interrupt, error as run_error, error_name, is_stateless,
    note_answers, read_status, run, run_address, run_configurable, run_metadata,
    status as run_status, thread_config,
};
pub(crate) use state::{
    StateOptions, empty_state, error_text, first_of_each_task, open_interrupts, open_interrupts_of,
    past_states, past_subgraph_states, subgraph_state, thread_state,
};
pub(crate) use task_place::{task_path, task_place};
pub(crate) use thread::{
    ThreadParts, first_of_each_root_task, interrupts_by_task, lifetime, read_thread_status, select,
    thread, thread_status,
};
pub(crate) use time::{MS_MAX, minutes, read_time, time};
pub(crate) use values::{empty_values, update, values};

use sha1::{Digest, Sha1};
use superstep::{FramePath, FrameSegment, NodeName, TaskId};
use uuid::Uuid;

/// Returns an id of 16 bytes as a hyphenated UUID.
pub(crate) fn uuid(bytes: [u8; 16]) -> String {
    Uuid::from_bytes(bytes).to_string()
}

/// Returns the UUID of version 5 that a name has in a namespace.
pub(crate) fn uuid_of_name(namespace: [u8; 16], name: &[u8]) -> Uuid {
    let hash = Sha1::new()
        .chain_update(namespace)
        .chain_update(name)
        .finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_sha1_bytes(bytes).into_uuid()
}

/// Returns the path of the subgraph in these nodes, without the tasks that enter it.
pub(crate) fn frame_of<'a>(nodes: impl Iterator<Item = &'a str>) -> Option<FramePath> {
    let segment = |node: &str| {
        let node = NodeName::new(node).ok()?;
        Some(FrameSegment { node, task: None })
    };
    nodes.map(segment).collect()
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

/// Reads the path of a graph as [`namespace`] writes it; `None` for anything else.
pub(crate) fn read_namespace(text: &str) -> Option<FramePath> {
    let read = |level: &str| {
        let (node, task) = match level.split_once(':') {
            Some((node, task)) => (node, Some(Uuid::parse_str(task).ok()?)),
            None => (level, None),
        };
        Some(FrameSegment {
            node: NodeName::new(node).ok()?,
            task: task.map(|task| TaskId::from_bytes(task.into_bytes())),
        })
    };
    let levels = text.split('|').filter(|level| !level.is_empty());
    levels.map(read).collect()
}
