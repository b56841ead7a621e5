//! Schemas of threads and their states.

use serde_json::Value as Json;

use super::schema::*;

pub(super) fn schemas() -> Vec<NamedSchema> {
    vec![
        ("Thread", thread()),
        ("ThreadCreate", create()),
        (
            "ThreadPatch",
            object([optional("metadata", fields()), ttl()]),
        ),
        ("ThreadSearchRequest", search()),
        ("ThreadCountRequest", object(filters())),
        ("ThreadPruneRequest", prune()),
        (
            "ThreadPruneResponse",
            object([required("pruned_count", count())]),
        ),
        ("ThreadStorage", storage()),
        ("ThreadState", state()),
        ("ThreadTask", task()),
        ("ThreadStateUpdate", update()),
        (
            "ThreadStateUpdateResponse",
            object([required("checkpoint", named("CheckpointConfig"))]),
        ),
        (
            "ThreadStateCheckpointRequest",
            object([
                required("checkpoint", named("CheckpointConfig")),
                optional("subgraphs", boolean()),
            ]),
        ),
        ("ThreadStateSearch", history()),
        ("ThreadSuperstepUpdate", superstep_update()),
        ("CheckpointConfig", checkpoint()),
        ("Interrupt", interrupt()),
    ]
}

fn storage() -> Json {
    let section = || object([required("count", count()), required("bytes", count())]);
    let channel = object([required("versions", count()), required("bytes", count())]);
    let values = object([
        required("count", count()),
        required("bytes", count()),
        required("by_channel", fields_of(channel)),
    ]);
    object([
        required("thread_id", uuid()),
        required("total_bytes", about(count(), "Of all three sections")),
        required(
            "checkpoints",
            about(section(), "The log and its snapshots, values included"),
        ),
        required(
            "channel_values",
            about(values, "Empty: values are stored in checkpoints"),
        ),
        required(
            "pending_writes",
            about(section(), "Records of tasks, and interrupts"),
        ),
    ])
}

const STATUSES: &[&str] = &["idle", "busy", "interrupted", "error"];

fn thread() -> Json {
    let lifetime = object([
        required("strategy", word(&["delete", "keep_latest"])),
        required("ttl_minutes", number()),
        required("expires_at", time()),
    ]);
    object([
        required("thread_id", uuid()),
        required("created_at", time()),
        required("updated_at", time()),
        optional("state_updated_at", time()),
        required("metadata", fields()),
        optional("config", fields()),
        required("status", word(STATUSES)),
        optional(
            "values",
            about(nullable(fields()), "The state; `null` before the first run"),
        ),
        optional(
            "interrupts",
            about(
                fields_of(list(named("Interrupt"))),
                "Open interrupts by task",
            ),
        ),
        optional(
            "error",
            about(any(), "Why the last run failed; `null` if it did not"),
        ),
        optional("ttl", nullable(lifetime)),
        optional("extracted", about(fields(), "What `extract` named")),
    ])
}

/// How long the thread is kept.
fn ttl() -> Field {
    let full = object([
        required("ttl", about(number(), "Minutes")),
        optional("strategy", word(&["delete", "keep_latest"])),
    ]);
    optional("ttl", either([number(), full]))
}

fn create() -> Json {
    let superstep = object([required("updates", list(named("ThreadSuperstepUpdate")))]);
    object([
        optional("thread_id", about(uuid(), "Default: a new id")),
        optional("metadata", fields()),
        optional("if_exists", word(&["raise", "do_nothing"])),
        ttl(),
        optional(
            "supersteps",
            about(list(superstep), "A history to begin with"),
        ),
        optional("graph_id", about(text(), "Graph of that history")),
    ])
}

fn filters() -> Vec<Field> {
    vec![
        optional(
            "metadata",
            about(fields(), "Fields that its metadata must contain"),
        ),
        optional(
            "values",
            about(fields(), "Fields that its state must contain"),
        ),
        optional("status", word(STATUSES)),
    ]
}

fn search() -> Json {
    let sorts = [
        "thread_id",
        "status",
        "created_at",
        "updated_at",
        "state_updated_at",
    ];
    let page = [
        optional("ids", list(uuid())),
        optional("limit", limit(10)),
        optional("offset", offset()),
        optional("sort_by", word(&sorts)),
        optional("sort_order", sort_order()),
        optional(
            "select",
            about(list(text()), "Fields to return. Default: all"),
        ),
        optional(
            "extract",
            about(fields_of(text()), "Paths into each thread, by name"),
        ),
    ];
    object(filters().into_iter().chain(page))
}

fn prune() -> Json {
    object([
        required("thread_ids", list(uuid())),
        optional("strategy", word(&["delete", "keep_latest"])),
    ])
}

fn state() -> Json {
    object([
        required("values", about(any(), "The state; an object")),
        required("next", about(list(text()), "Nodes that run next")),
        required("tasks", list(named("ThreadTask"))),
        required("metadata", nullable(fields())),
        required("created_at", nullable(text())),
        required("checkpoint", nullable(named("CheckpointConfig"))),
        required("parent_checkpoint", nullable(named("CheckpointConfig"))),
        required("interrupts", list(named("Interrupt"))),
        required("checkpoint_id", nullable(text())),
        required("parent_checkpoint_id", nullable(text())),
    ])
}

fn task() -> Json {
    object([
        required("id", text()),
        required("name", about(text(), "Name of its node")),
        optional("path", list(any())),
        optional("error", nullable(text())),
        optional("interrupts", list(named("Interrupt"))),
        optional("checkpoint", nullable(named("CheckpointConfig"))),
        optional(
            "state",
            about(
                nullable(named("ThreadState")),
                "State of the subgraph in it",
            ),
        ),
        optional(
            "result",
            about(any(), "What it wrote; `null` before its end"),
        ),
    ])
}

fn update() -> Json {
    object([
        optional(
            "values",
            about(
                any(),
                "Channels to write, by name; a list for several updates",
            ),
        ),
        optional("checkpoint", nullable(named("CheckpointConfig"))),
        optional("checkpoint_id", nullable(text())),
        optional(
            "as_node",
            about(nullable(text()), "Node in whose name the update is made"),
        ),
    ])
}

fn superstep_update() -> Json {
    object([
        optional("values", any()),
        optional("command", nullable(named("Command"))),
        required("as_node", text()),
    ])
}

fn history() -> Json {
    object([
        optional("limit", limit(1)),
        optional("before", about(any(), "A checkpoint, or its id")),
        optional("metadata", fields()),
        optional("checkpoint", nullable(named("CheckpointConfig"))),
        optional("select", list(text())),
    ])
}

fn checkpoint() -> Json {
    object([
        optional("thread_id", text()),
        optional(
            "checkpoint_ns",
            about(nullable(text()), "Path of the subgraph; empty for the root"),
        ),
        optional("checkpoint_id", nullable(text())),
        optional("checkpoint_map", nullable(fields())),
    ])
}

fn interrupt() -> Json {
    object([
        required("id", text()),
        required("value", about(any(), "What the node asks")),
        optional("response_schema", about(any(), "JSON Schema of an answer")),
    ])
}
