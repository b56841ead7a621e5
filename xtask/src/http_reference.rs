//! `docs/http-api.md`: every request that the server takes.
//!
//! It is written from `studio/openapi.json`, which a test of `superstep-server` compares with the server's own document. So this
//! needs no build of the server, and the page cannot differ from it.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Context;
use harness::workspace::root;
use serde_json::Value as Json;

/// The page, from the root of the workspace.
const PAGE: &str = "docs/http-api.md";
const DOCUMENT: &str = "studio/openapi.json";

/// Rewrites the page.
pub(crate) fn write() -> anyhow::Result<()> {
    let path = root().join(PAGE);
    fs::write(&path, page(&document()?))
        .with_context(|| format!("{} cannot be written", path.display()))?;
    eprintln!("{PAGE} is written");
    Ok(())
}

fn document() -> anyhow::Result<Json> {
    let text = fs::read_to_string(root().join(DOCUMENT))
        .with_context(|| format!("{DOCUMENT} cannot be read"))?;
    serde_json::from_str(&text).with_context(|| format!("{DOCUMENT} is not JSON"))
}

/// The text of the page: a table for each tag, by path.
fn page(document: &Json) -> String {
    let mut sections: BTreeMap<String, BTreeMap<(String, usize), String>> = BTreeMap::new();
    for (path, methods) in entries(&document["paths"]) {
        for (method, operation) in entries(methods) {
            let tag = operation["tags"][0].as_str().unwrap_or_default();
            let order = METHODS.iter().position(|known| known == method);
            let key = (path.clone(), order.unwrap_or(METHODS.len()));
            let row = row(document, method, path, operation);
            sections.entry(tag.to_owned()).or_default().insert(key, row);
        }
    }
    let mut page = INTRODUCTION.to_owned();
    for (tag, rows) in sections {
        page.push_str(&format!("\n## {tag}\n\n{HEAD}"));
        page.extend(rows.into_values());
    }
    page
}

fn row(document: &Json, method: &str, path: &str, operation: &Json) -> String {
    let permissions = items(&operation["x-superstep-permissions"]).filter_map(Json::as_str);
    let permissions = permissions.map(|name| format!("`{name}`"));
    let parameters = items(&operation["parameters"]).filter(|parameter| parameter["in"] != "path");
    let parameters = parameters.map(|parameter| {
        let name = parameter["name"].as_str().unwrap_or_default();
        name_of(name, parameter["required"] == true)
    });
    format!(
        "| `{} {path}` | {} | {} | {} | {} |\n",
        method.to_uppercase(),
        operation["summary"].as_str().unwrap_or_default(),
        permissions.collect::<Vec<_>>().join(", "),
        parameters.collect::<Vec<_>>().join(", "),
        body_of(document, operation),
    )
}

/// The fields of a request's body, by name.
fn body_of(document: &Json, operation: &Json) -> String {
    let content = &operation["requestBody"]["content"];
    if content.get("application/octet-stream").is_some() {
        return "the bytes".to_owned();
    }
    let schema = resolved(document, &content["application/json"]["schema"]);
    if schema["type"] == "array" {
        return "a list".to_owned();
    }
    let required: Vec<&str> = items(&schema["required"])
        .filter_map(Json::as_str)
        .collect();
    let fields = entries(&schema["properties"]).into_iter();
    let fields = fields.map(|(name, _)| name_of(name, required.contains(&name.as_str())));
    fields.collect::<Vec<_>>().join(", ")
}

fn resolved<'a>(document: &'a Json, mut schema: &'a Json) -> &'a Json {
    while let Some(reference) = schema["$ref"].as_str() {
        let found = document.pointer(reference.trim_start_matches('#'));
        schema = found.unwrap_or(&Json::Null);
    }
    schema
}

fn name_of(name: &str, is_required: bool) -> String {
    match is_required {
        true => format!("**`{name}`**"),
        false => format!("`{name}`"),
    }
}

fn items(list: &Json) -> impl Iterator<Item = &Json> {
    list.as_array().into_iter().flatten()
}

/// The entries of an object by name, whatever order the map has.
fn entries(object: &Json) -> Vec<(&String, &Json)> {
    let mut entries: Vec<_> = object.as_object().into_iter().flatten().collect();
    entries.sort_by_key(|(name, _)| *name);
    entries
}

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

const HEAD: &str = "\
| request | what it does | permissions | query and headers | body |
| --- | --- | --- | --- | --- |
";

const INTRODUCTION: &str = "\
# HTTP API

Every request that the server takes. What is **bold** is required. *Permissions* are those that a request may need, depending on what it
asks for; [Authentication](server.md#permissions) describes them. Types, results and errors are in the OpenAPI document: `GET
/openapi.json` for programs, `GET /docs` in a browser. [The server](server.md) explains what the requests do, and [Endpoints for user
interfaces](server-endpoints.md) those under *Inspection*.

<!-- `cargo xtask http-reference` writes this page from `studio/openapi.json`, which a test compares with the server's document. -->
";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_page_has_the_requests_of_today() {
        let written = fs::read_to_string(root().join(PAGE)).unwrap_or_default();
        let is_current = written == page(&document().unwrap());
        assert!(is_current, "run `cargo xtask http-reference`");
    }

    #[test]
    fn a_request_is_a_row_with_what_it_takes() {
        let document = json!({
            "paths": { "/a/{id}": {
                "post": {
                    "tags": ["Things"], "summary": "Change a", "x-superstep-permissions": ["run", "edit"],
                    "parameters": [{ "name": "id", "in": "path" }, { "name": "limit", "in": "query" }],
                    "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/A" } } } }
                },
                "get": { "tags": ["Things"], "summary": "Get a", "x-superstep-permissions": [], "parameters": [] }
            } },
            "components": { "schemas": { "A": { "type": "object", "required": ["x"], "properties": { "y": {}, "x": {} } } } }
        });
        let page = page(&document);
        let rows = "| `GET /a/{id}` | Get a |  |  |  |\n\
            | `POST /a/{id}` | Change a | `run`, `edit` | `limit` | **`x`**, `y` |\n";
        assert!(
            page.ends_with(&format!("\n## Things\n\n{HEAD}{rows}")),
            "{page}"
        );
    }
}
