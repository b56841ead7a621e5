//! Schemas of assistants.

use serde_json::Value as Json;

use super::schema::*;

pub(super) fn schemas() -> Vec<NamedSchema> {
    vec![
        ("Assistant", assistant([required("updated_at", time())])),
        ("AssistantVersion", assistant([])),
        ("AssistantCreate", create()),
        ("AssistantPatch", patch()),
        ("AssistantSearchRequest", search()),
        ("AssistantCountRequest", object(filters())),
        (
            "AssistantVersionsSearchRequest",
            object([
                optional("metadata", fields()),
                optional("limit", limit(10)),
                optional("offset", offset()),
            ]),
        ),
        (
            "AssistantVersionChange",
            object([optional(
                "version",
                about(count(), "Required, here or in the query string"),
            )]),
        ),
        ("Config", config()),
        ("Graph", drawing()),
        ("GraphSchema", graph_schema([required("graph_id", text())])),
        ("GraphSchemaNoId", graph_schema([])),
        ("Subgraphs", fields_of(named("GraphSchemaNoId"))),
    ]
}

fn assistant(more: impl IntoIterator<Item = Field>) -> Json {
    let always = [
        required("assistant_id", uuid()),
        required("graph_id", text()),
        required("name", text()),
        required("description", nullable(text())),
        required("config", named("Config")),
        required("context", fields()),
        required("metadata", fields()),
        required("version", count()),
        required("created_at", time()),
    ];
    object(always.into_iter().chain(more))
}

fn create() -> Json {
    object([
        required("graph_id", about(text(), "Name of the graph")),
        optional("assistant_id", about(uuid(), "Default: a new id")),
        optional("config", fields()),
        optional(
            "context",
            about(fields(), "The same settings as `config.configurable`"),
        ),
        optional("metadata", fields()),
        optional("if_exists", word(&["raise", "do_nothing"])),
        optional("name", text()),
        optional("description", nullable(text())),
    ])
}

fn patch() -> Json {
    object([
        optional("graph_id", text()),
        optional("config", fields()),
        optional("context", fields()),
        optional("metadata", about(fields(), "Added to what there is")),
        optional("name", text()),
        optional("description", text()),
    ])
}

fn filters() -> Vec<Field> {
    vec![
        optional(
            "metadata",
            about(fields(), "Fields that its metadata must contain"),
        ),
        optional("graph_id", text()),
        optional("name", about(text(), "Part of its name")),
    ]
}

fn search() -> Json {
    let page = [
        optional("limit", limit(10)),
        optional("offset", offset()),
        optional(
            "sort_by",
            word(&[
                "assistant_id",
                "graph_id",
                "name",
                "created_at",
                "updated_at",
            ]),
        ),
        optional("sort_order", sort_order()),
        optional(
            "select",
            about(list(text()), "Fields to return. Default: all"),
        ),
    ];
    object(filters().into_iter().chain(page))
}

fn config() -> Json {
    object([
        optional("tags", list(text())),
        optional(
            "recursion_limit",
            about(integer(), "Number of supersteps that a run may take"),
        ),
        optional("configurable", fields()),
    ])
}

fn drawing() -> Json {
    let node = object([
        required("id", text()),
        optional("type", text()),
        optional("data", any()),
    ]);
    let edge = object([
        required("source", text()),
        required("target", text()),
        optional("conditional", boolean()),
    ]);
    object([required("nodes", list(node)), required("edges", list(edge))])
}

fn graph_schema(more: impl IntoIterator<Item = Field>) -> Json {
    let schemas = [
        required("input_schema", nullable(fields())),
        required("output_schema", nullable(fields())),
        required("state_schema", nullable(fields())),
        optional("config_schema", nullable(fields())),
        optional("context_schema", nullable(fields())),
    ];
    object(schemas.into_iter().chain(more))
}
