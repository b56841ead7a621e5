//! The OpenAPI document and the page at `/docs`, both made from the table of routes.
//!
//! `operations` links routes to what they take and return, the other modules have the schemas by resource.

mod assistants;
mod inspection;
mod management;
mod operations;
mod runs;
mod schema;
mod store;
mod system;
mod threads;

use std::fmt::Write as _;
use std::sync::OnceLock;

use serde_json::{Map, Value as Json, json};

use self::operations::{BodyKind, Operation, QueryParameter, ResultKind, operation_of};
use self::schema::{either, named, nullable};
use super::table::{ApiRoute, ROUTES};

/// Returns the OpenAPI document, which is made once.
pub(super) fn document() -> &'static Json {
    static DOCUMENT: OnceLock<Json> = OnceLock::new();
    DOCUMENT.get_or_init(make_document)
}

fn make_document() -> Json {
    let mut paths: Map<String, Json> = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = described(route, operation_of(route.method, route.path));
    }
    let schemas = [
        assistants::schemas(),
        threads::schemas(),
        runs::schemas(),
        store::schemas(),
        inspection::schemas(),
        management::schemas(),
        system::schemas(),
    ];
    let schemas: Map<String, Json> = schemas
        .into_iter()
        .flatten()
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Superstep server", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": { "schemas": schemas, "securitySchemes": {
            "apiKey": { "type": "apiKey", "in": "header", "name": "x-api-key" },
            "bearer": { "type": "http", "scheme": "bearer", "description": "An API key, or a token (JWT) of an issuer" },
        } },
    })
}

fn described(route: &ApiRoute, operation: Option<&Operation>) -> Json {
    let query = operation.map_or(&[][..], |operation| operation.query);
    let headers = operation.map_or(&[][..], |operation| operation.headers);
    let mut parameters = path_parameters(route.path);
    parameters.extend(query.iter().map(query_parameter));
    parameters.extend(headers.iter().map(|name| {
        json!({ "name": name, "in": "header", "required": false, "schema": { "type": "string" } })
    }));
    let any = [(200, ResultKind::AnyJson)];
    let results = operation.map_or(&any[..], |operation| operation.results);
    let mut responses: Map<String, Json> = results
        .iter()
        .map(|(status, result)| (status.to_string(), response(*result)))
        .collect();
    let protocol_error = operation.and_then(|operation| operation.protocol_error);
    for (statuses, description) in [
        ("4XX", "The request is refused"),
        ("5XX", "The server could not do it"),
    ] {
        responses.insert(statuses.to_owned(), error(description, protocol_error));
    }
    let mut described = json!({
        "tags": [route.tag],
        "summary": route.summary,
        "operationId": format!("{}{}", route.method, route.path.replace(['/', '{', '}'], "_")),
        "parameters": parameters,
        "security": security(route),
        "x-superstep-permissions": permissions(route),
        "responses": responses,
    });
    if let Some(body) = operation.and_then(|operation| operation.body) {
        described["requestBody"] = request_body(body);
    }
    described
}

/// Returns what a caller authenticates with, if the server asks for it: one of the two, or nothing.
fn security(route: &ApiRoute) -> Json {
    match route.needs.is_empty() {
        true => json!([]),
        false => json!([{ "apiKey": [] }, { "bearer": [] }]),
    }
}

/// Returns the permissions of which a caller needs one.
fn permissions(route: &ApiRoute) -> Json {
    let names = route.needs.iter().map(|permission| permission.name());
    names.collect()
}

fn path_parameters(path: &str) -> Vec<Json> {
    let names = path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?;
        name.strip_suffix('}')
    });
    let shown = names.map(|name| {
        let mut shown = json!({
            "name": name, "in": "path", "required": true, "schema": path_schema(name),
        });
        if name == "path" {
            shown["description"] = "Relative path of the file; may contain slashes".into();
        }
        shown
    });
    shown.collect()
}

fn path_schema(name: &str) -> Json {
    match name {
        // An assistant may be named by its graph.
        "thread_id" | "run_id" | "cron_id" => json!({ "type": "string", "format": "uuid" }),
        _ => json!({ "type": "string" }),
    }
}

fn query_parameter(parameter: &QueryParameter) -> Json {
    let (name, is_required, schema) = match parameter {
        QueryParameter::Text(name) => (name, false, json!({ "type": "string" })),
        QueryParameter::RequiredText(name) => (name, true, json!({ "type": "string" })),
        QueryParameter::Number(name) => (name, false, json!({ "type": "integer", "minimum": 0 })),
        QueryParameter::Flag(name) => (name, false, json!({ "type": "boolean" })),
        QueryParameter::List(name) => {
            let words = json!({ "type": "array", "items": { "type": "string" } });
            (name, false, words)
        }
        QueryParameter::Word(name, words) => {
            (name, false, json!({ "type": "string", "enum": words }))
        }
    };
    json!({ "name": name, "in": "query", "required": is_required, "schema": schema })
}

fn request_body(body: BodyKind) -> Json {
    let (is_required, content) = match body {
        BodyKind::Json(name) => (true, json_content(named(name))),
        BodyKind::OptionalJson(name) => (false, json_content(named(name))),
        BodyKind::Bytes => (
            true,
            json!({ "application/octet-stream": { "schema": {} } }),
        ),
    };
    json!({ "required": is_required, "content": content })
}

fn json_content(schema: Json) -> Json {
    json!({ "application/json": { "schema": schema } })
}

fn response(result: ResultKind) -> Json {
    let text = |kind: &str| json!({ kind: { "schema": { "type": "string" } } });
    let (description, content) = match result {
        ResultKind::Json(name) => ("The result", json_content(named(name))),
        ResultKind::JsonOrNull(name) => {
            let schema = nullable(named(name));
            ("The result; `null` if there is none", json_content(schema))
        }
        ResultKind::JsonList(name) => ("The results", json_content(schema::list(named(name)))),
        ResultKind::AnyJson => ("The result", json_content(json!({}))),
        ResultKind::Count => ("How many there are", json_content(schema::count())),
        ResultKind::Empty => return json!({ "description": "Done" }),
        ResultKind::Events => ("A stream of events", text("text/event-stream")),
        ResultKind::Bytes => (
            "The content of the file",
            json!({ "application/octet-stream": { "schema": {} } }),
        ),
        ResultKind::Text => ("Text, or JSON if `format` asks for it", text("text/plain")),
        ResultKind::Html => ("A page", text("text/html")),
    };
    json!({ "description": description, "content": content })
}

fn error(description: &str, protocol_error: Option<&str>) -> Json {
    let usual = named("ErrorResponse");
    let schema = match protocol_error {
        Some(name) => either([usual, named(name)]),
        None => usual,
    };
    json!({ "description": description, "content": json_content(schema) })
}

/// Returns a page that lists the routes. It loads nothing from elsewhere.
pub(super) fn page() -> String {
    let mut rows = String::new();
    let mut tag = "";
    for route in ROUTES {
        if route.tag != tag {
            tag = route.tag;
            let _ = write!(rows, "<tr><th colspan=\"3\">{tag}</th></tr>");
        }
        let _ = write!(
            rows,
            "<tr><td><code>{}</code></td><td><code>{}</code></td><td>{}</td></tr>",
            route.method.to_uppercase(),
            route.path,
            route.summary
        );
    }
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Superstep server</title>\
         <style>body{{font:16px system-ui;margin:2rem auto;max-width:60rem}}\
         td,th{{padding:.2rem .8rem;text-align:left}}th{{padding-top:1.2rem}}</style>\
         <h1>Superstep server</h1><p>The whole document: <a href=\"openapi.json\">openapi.json</a></p>\
         <table>{rows}</table></html>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_names_its_parameters() {
        let document = document();
        let run = &document["paths"]["/threads/{thread_id}/runs/{run_id}"]["get"];
        assert_eq!(run["parameters"][1]["name"], "run_id");
        let file = &document["paths"]["/superstep/threads/{thread_id}/files/{path}"];
        assert_eq!(file["put"]["parameters"][1]["name"], "path");
        let body = &file["put"]["requestBody"]["content"];
        assert!(body["application/octet-stream"].is_object());
        assert!(page().contains("/store/namespaces"));
    }

    #[test]
    fn every_operation_is_one_of_a_route_and_every_schema_exists() {
        for found in operations::OPERATIONS {
            let is_it =
                |route: &&ApiRoute| route.method == found.method && route.path == found.path;
            let routes = ROUTES.iter().filter(is_it).count();
            assert_eq!(routes, 1, "{} {}", found.method, found.path);
        }
        let document = document();
        let text = document.to_string();
        for reference in text.split("\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap_or_default();
            let schema = &document["components"]["schemas"][name];
            assert!(schema.is_object(), "{name}");
        }
    }
}
