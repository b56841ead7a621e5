//! Schemas of the server itself, of errors, and of the thread protocol.

use serde_json::{Value as Json, json};

use super::schema::*;
use crate::permission::Permission;

pub(super) fn schemas() -> Vec<NamedSchema> {
    vec![
        (
            "ErrorResponse",
            object([
                required("detail", about(text(), "What is wrong, and what to do")),
                optional(
                    "answered_by",
                    about(
                        nullable(text()),
                        "Of an answer that came too late: who answered before",
                    ),
                ),
                optional("answered_at", nullable(time())),
            ]),
        ),
        ("Health", object([required("ok", boolean())])),
        ("ServerInfo", info()),
        ("CallerInfo", caller()),
        ("ProtocolCommand", command()),
        ("ProtocolSuccess", success()),
        ("ProtocolError", error()),
        (
            "ProtocolReply",
            either([named("ProtocolSuccess"), named("ProtocolError")]),
        ),
        ("ProtocolEventStreamRequest", event_stream()),
    ]
}

fn info() -> Json {
    object([
        required("version", text()),
        required(
            "langgraph_py_version",
            about(text(), "Empty: the server does not use Python"),
        ),
        required("flags", fields_of(boolean())),
        required("metadata", fields()),
        optional("host", fields()),
    ])
}

fn caller() -> Json {
    let permissions = Permission::ALL.map(Permission::name);
    object([
        required(
            "principal",
            about(text(), "Empty if the server does not authenticate"),
        ),
        required("tenant", text()),
        required("permissions", list(word(&permissions))),
        required("is_authenticated", boolean()),
    ])
}

fn command() -> Json {
    object([
        required("id", count()),
        required("method", text()),
        optional("params", fields()),
    ])
}

fn success() -> Json {
    let meta = object([optional("applied_through_seq", count())]);
    object([
        required("type", json!({ "const": "success" })),
        required("id", count()),
        required("result", fields()),
        optional("meta", meta),
    ])
}

fn error() -> Json {
    object([
        required("type", json!({ "const": "error" })),
        required("id", nullable(count())),
        required("error", about(text(), "A code, such as `no_such_run`")),
        required("message", text()),
    ])
}

fn event_stream() -> Json {
    object([
        required(
            "channels",
            about(list(text()), "Such as `values`, `messages`, `tools`"),
        ),
        optional(
            "namespaces",
            about(list(list(text())), "Paths of graphs. Default: all"),
        ),
        optional(
            "depth",
            about(count(), "How far below these paths. Default: any depth"),
        ),
        optional(
            "since",
            about(count(), "Number of the last event that the client has"),
        ),
    ])
}
