//! Valid and hostile documents.

use serde_json::{Value as Json, json};

use super::*;

fn document(more: Json) -> Json {
    let mut document = json!({
        "openapi": "3.0.3", "info": { "title": "Pets" },
        "paths": { "/pets/{id}": {
            "parameters": [{ "$ref": "#/components/parameters/id" }],
            "get": { "operationId": "getPet", "tags": ["pets"], "responses": {} },
            "put": { "summary": "Change a pet.", "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/pet" } } } } }
        } },
        "components": {
            "parameters": { "id": { "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } } },
            "schemas": { "pet": { "allOf": [{ "$ref": "#/components/schemas/named" }, { "properties": { "friend": { "$ref": "#/components/schemas/pet" } } }] },
                         "named": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } } }
        }
    });
    for (name, value) in more.as_object().unwrap() {
        document[name] = value.clone();
    }
    document
}

fn read_json(document: &Json) -> Result<Document, DocumentError> {
    read(document.to_string().as_bytes())
}

#[test]
fn a_document_becomes_calls_with_what_they_need() {
    let read = read_json(&document(json!({}))).unwrap();
    let told: Vec<_> = read
        .apis
        .iter()
        .map(|api| {
            (
                api.method.as_str(),
                api.tool_name.as_str(),
                api.category_name.as_str(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [("GET", "get pet", "pets"), ("PUT", "Change a pet", "pets")]
    );
    let put = &read.apis[1];
    let required: Vec<_> = put
        .required_parameters
        .iter()
        .map(|parameter| {
            (
                parameter.name.as_str(),
                parameter.kind.as_str(),
                parameter.place,
            )
        })
        .collect();
    assert_eq!(
        required,
        [
            ("id", "integer", Place::Path),
            ("name", "string", Place::Body)
        ]
    );
    assert_eq!(
        put.optional_parameters[0].kind, "object",
        "a schema may contain itself"
    );
}

#[test]
fn yaml_is_read_as_well() {
    let yaml = "openapi: 3.1.0\ninfo: {title: A}\npaths:\n  /a:\n    get:\n      parameters:\n        - {name: q, in: query, schema: {type: [string, 'null'], enum: [x, y]}}\n";
    let read = read(yaml.as_bytes()).unwrap();
    assert_eq!(
        (
            read.apis[0].id.as_str(),
            read.apis[0].optional_parameters[0].kind.as_str()
        ),
        ("get__a", "string")
    );
}

#[test]
fn hostile_documents_are_refused() {
    let schemas = |schemas: Json| {
        document(
            json!({ "components": { "schemas": schemas, "parameters": { "id": { "name": "id", "in": "path" } } } }),
        )
    };
    let cases = [
        (
            "a circle of references",
            schemas(
                json!({ "pet": { "$ref": "#/components/schemas/b" }, "b": { "$ref": "#/components/schemas/pet" }, "named": {} }),
            ),
        ),
        (
            "a reference to itself",
            schemas(json!({ "pet": { "$ref": "#/components/schemas/pet" }, "named": {} })),
        ),
        (
            "a reference to nothing",
            schemas(json!({ "pet": { "$ref": "#/nowhere" }, "named": {} })),
        ),
        (
            "a reference to another host",
            schemas(json!({ "pet": { "$ref": "https://evil.example/x.json" }, "named": {} })),
        ),
        (
            "a reference to the metadata service",
            schemas(json!({ "pet": { "$ref": "http://169.254.169.254/latest" }, "named": {} })),
        ),
        (
            "a reference to a file",
            schemas(json!({ "pet": { "$ref": "file:///etc/passwd" }, "named": {} })),
        ),
        (
            "a reference to a file beside it",
            schemas(json!({ "pet": { "$ref": "../secret.yaml#/x" }, "named": {} })),
        ),
        ("an older version", json!({ "swagger": "2.0", "paths": {} })),
        ("nothing to call", document(json!({ "paths": {} }))),
        ("no paths", json!({ "openapi": "3.0.0" })),
        (
            "a path that is not an object",
            document(json!({ "paths": { "/a": { "get": 7 } } })),
        ),
        ("a list", json!([1, 2])),
    ];
    for (what, document) in cases {
        assert!(read_json(&document).is_err(), "{what} was taken");
    }
}

#[test]
fn fifty_megabytes_are_refused_before_they_are_read() {
    let long = vec![b' '; 50 * 1024 * 1024];
    assert_eq!(read(&long), Err(DocumentError::TooLong(long.len())));
}

#[test]
fn too_many_calls_and_bombs_of_yaml_are_refused() {
    let paths: Map<String, Json> = (0..5_001)
        .map(|n| (format!("/p{n}"), json!({ "get": {} })))
        .collect();
    assert_eq!(
        read_json(&document(json!({ "paths": paths }))),
        Err(DocumentError::TooMuch("5000 calls"))
    );
    let mut bomb = "openapi: 3.0.0\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        bomb.push_str(&format!(
            "a{level}: &a{level} [{}]\n",
            vec![before; 10].join(",")
        ));
    }
    assert!(matches!(
        read(bomb.as_bytes()),
        Err(DocumentError::NotText(_))
    ));
    let deep = format!(
        "{{\"openapi\":\"3.0.0\",\"x\":{}1{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert!(matches!(
        read(deep.as_bytes()),
        Err(DocumentError::NotText(_))
    ));
}

#[test]
fn what_the_connection_says_is_not_for_a_document_to_set() {
    let headers = [
        "Authorization",
        "Host",
        "cookie",
        "Idempotency-Key",
        "X-Fine",
    ];
    let parameters: Vec<Json> = headers
        .iter()
        .map(|name| json!({ "name": name, "in": "header", "schema": { "default": "evil" } }))
        .collect();
    let read = read_json(&document(
        json!({ "paths": { "/a": { "get": { "parameters": parameters } } } }),
    ))
    .unwrap();
    let names: Vec<_> = read.apis[0]
        .parameters()
        .map(|parameter| parameter.name.as_str())
        .collect();
    assert_eq!(names, ["X-Fine"]);
}

/// Reads a document on another thread, so that a parser that hangs fails the test after ten seconds.
fn in_time(bytes: Vec<u8>) -> Result<Document, DocumentError> {
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(read(&bytes)));
    wait.recv_timeout(std::time::Duration::from_secs(10))
        .expect("it hangs")
}

#[test]
fn a_schema_that_is_all_of_itself_many_times_is_read_at_once() {
    let itself: Vec<Json> = (0..40)
        .map(|_| json!({ "$ref": "#/components/schemas/pet" }))
        .collect();
    let schemas =
        json!({ "schemas": { "pet": { "allOf": itself, "properties": { "name": {} } } } });
    let mut document = document(json!({}));
    document["components"]["schemas"] = schemas["schemas"].clone();
    let read = in_time(document.to_string().into_bytes()).unwrap();
    assert_eq!(read.apis[1].optional_parameters[0].name, "name");
}

#[test]
fn documents_that_are_nested_without_end_are_refused_at_once() {
    let deep = 200_000;
    for hostile in [
        "[".repeat(deep),
        "{a: ".repeat(deep),
        "- ".repeat(deep),
        "? ".repeat(deep),
        "[\n".repeat(deep),
        "a: [".to_owned() + &"[{".repeat(deep),
        "{".to_owned() + &"\"a\":{".repeat(deep),
        "{\"a\":".to_owned() + &"[".repeat(deep),
    ] {
        assert!(
            in_time(hostile.clone().into_bytes()).is_err(),
            "{}",
            &hostile[..20]
        );
    }
}

#[test]
fn a_billion_laughs_are_refused_at_once() {
    let mut laughs = "a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        laughs += &format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(", "));
    }
    assert!(in_time(laughs.into_bytes()).is_err());
}

#[test]
fn variables_of_a_server_that_double_each_other_are_left_out() {
    let names: Vec<String> = (b'a'..=b'z').map(|c| char::from(c).to_string()).collect();
    let variables: Map<String, Json> = names
        .windows(2)
        .map(|pair| {
            (
                pair[0].clone(),
                json!({ "default": format!("{{{0}}}{{{0}}}", pair[1]) }),
            )
        })
        .collect();
    let servers =
        json!([{ "url": "https://{a}", "variables": variables }, { "url": "https://b.example" }]);
    let read = in_time(
        document(json!({ "servers": servers }))
            .to_string()
            .into_bytes(),
    );
    assert_eq!(read.unwrap().servers, ["https://b.example"]);
}

#[test]
fn headers_that_steer_the_connection_are_not_parameters() {
    let parameters: Vec<Json> = ["X-HTTP-Method-Override", "Proxy-Authorization", "TE", "Upgrade", "X-Forwarded-For", "X-Trace"]
        .map(|name| json!({ "name": name, "in": "header", "schema": { "type": "string", "default": "DELETE" } }))
        .into();
    let mut document = document(json!({}));
    document["paths"]["/pets/{id}"]["get"]["parameters"] = json!(parameters);
    let read = read_json(&document).unwrap();
    let names: Vec<_> = read.apis[0]
        .optional_parameters
        .iter()
        .map(|parameter| parameter.name.as_str())
        .collect();
    assert_eq!(names, ["X-Trace"]);
    let found = crate::params::find(
        &crate::question::Question::new("get pet 7"),
        &read.apis[0],
        None,
    );
    assert_eq!(
        found["X-Trace"],
        Json::Null,
        "a default header is not sent unasked"
    );
}

#[test]
fn a_broken_reference_in_a_response_or_in_unused_items_leaves_the_call() {
    let nowhere = json!({ "$ref": "#/components/schemas/nowhere" });
    let mut broken = document(json!({}));
    let schema = json!({ "type": "object", "properties": { "friend": nowhere } });
    broken["paths"]["/pets/{id}"]["get"]["responses"] =
        json!({ "200": { "content": { "application/json": { "schema": schema } } } });
    let id = &mut broken["components"]["parameters"]["id"]["schema"];
    *id = json!({ "type": "integer", "items": nowhere });
    let read = read_json(&broken).unwrap();
    assert_eq!(read.apis.len(), 2);
    assert!(read.responses.is_empty(), "{:?}", read.responses);
    broken["components"]["parameters"]["id"]["schema"]["type"] = json!("array");
    assert!(matches!(read_json(&broken), Err(DocumentError::Nowhere(_))));
}
