//! Schemas of what operators manage (API keys, deliveries to webhooks, the audit log), and of the bodies of other protocols.

use serde_json::Value as Json;

use super::schema::*;

pub(super) fn schemas() -> Vec<NamedSchema> {
    vec![
        ("ApiKeyCreate", key_create()),
        ("ApiKeyRotate", object([optional("grace_seconds", count())])),
        ("ApiKey", object(key_fields())),
        (
            "ApiKeyWithSecret",
            object(key_fields().into_iter().chain([required(
                "key",
                about(text(), "The key itself, which is shown this once"),
            )])),
        ),
        ("Delivery", delivery()),
        ("AuditPage", audit_page()),
        ("Readiness", object([required("ready", boolean())])),
        ("JsonRpcRequest", json_rpc()),
        ("JsonRpcError", json_rpc_error()),
        ("AgUiInput", ag_ui_input()),
    ]
}

fn key_create() -> Json {
    object([
        required("permissions", list(text())),
        optional("principal", nullable(text())),
        optional("name", text()),
        optional("restricted", boolean()),
        optional("expires_in_seconds", nullable(count())),
    ])
}

fn key_fields() -> Vec<Field> {
    vec![
        required("key_id", text()),
        required("tenant", text()),
        required("principal", text()),
        required("name", text()),
        required("permissions", list(text())),
        required("restricted", boolean()),
        required("created_at", text()),
        required("expires_at", nullable(text())),
    ]
}

fn delivery() -> Json {
    object([
        required("delivery_id", uuid()),
        required("run_id", uuid()),
        required("thread_id", text()),
        required("event", text()),
        required("webhook", text()),
        required("status", text()),
        required("attempts", count()),
        required("next_attempt_at", nullable(text())),
        required("error", nullable(text())),
        required("created_at", text()),
        required("updated_at", text()),
    ])
}

fn audit_page() -> Json {
    let entry = object([
        required("seq", count()),
        required("at", text()),
        required("principal", text()),
        required("action", text()),
        required("resource", text()),
        required("detail", any()),
        required("previous", text()),
        required("hash", text()),
    ]);
    let head = object([required("seq", count()), required("hash", text())]);
    object([required("entries", list(entry)), required("head", head)])
}

fn json_rpc() -> Json {
    object([
        required("jsonrpc", text()),
        optional("id", any()),
        optional("method", text()),
        optional("params", any()),
    ])
}

fn json_rpc_error() -> Json {
    let error = object([
        required("code", integer()),
        required("message", text()),
        optional("data", any()),
    ]);
    object([
        required("jsonrpc", text()),
        required("id", any()),
        required("error", error),
    ])
}

fn ag_ui_input() -> Json {
    object([
        required("threadId", text()),
        required("runId", text()),
        optional("messages", list(fields())),
        optional("state", any()),
        optional("resume", nullable(list(fields()))),
    ])
}
