//! Schemas of the long-term store and of files.

use serde_json::Value as Json;

use super::schema::*;

pub(super) fn schemas() -> Vec<NamedSchema> {
    vec![
        ("Item", item()),
        ("StorePutRequest", put()),
        (
            "StoreDeleteRequest",
            object([optional("namespace", namespace()), required("key", text())]),
        ),
        ("StoreSearchRequest", search()),
        (
            "SearchItemsResponse",
            object([required("items", list(named("Item")))]),
        ),
        ("StoreListNamespacesRequest", namespaces()),
        (
            "ListNamespaceResponse",
            object([required("namespaces", list(namespace()))]),
        ),
        ("ThreadFile", file()),
    ]
}

fn namespace() -> Json {
    list(text())
}

fn item() -> Json {
    object([
        required("namespace", namespace()),
        required("key", text()),
        required("value", fields()),
        required("created_at", time()),
        required("updated_at", time()),
    ])
}

fn put() -> Json {
    object([
        required("namespace", namespace()),
        required("key", text()),
        required("value", fields()),
        optional("index", about(any(), "Ignored")),
        optional(
            "ttl",
            about(nullable(number()), "Minutes after which it is deleted"),
        ),
    ])
}

fn search() -> Json {
    object([
        optional("namespace_prefix", namespace()),
        optional(
            "filter",
            about(
                nullable(fields()),
                "Values by field, or conditions such as `{\"$gt\": 1}`",
            ),
        ),
        optional("limit", about(count(), "Default: 10")),
        optional("offset", offset()),
        optional("query", about(nullable(text()), "Ignored")),
        optional("refresh_ttl", about(nullable(boolean()), "Ignored")),
    ])
}

fn namespaces() -> Json {
    object([
        optional("prefix", nullable(namespace())),
        optional("suffix", nullable(namespace())),
        optional("max_depth", nullable(count())),
        optional("limit", about(count(), "Default: 100")),
        optional("offset", offset()),
    ])
}

fn file() -> Json {
    object([
        required("path", text()),
        required("bytes", count()),
        required("modified", time()),
    ])
}
