//! A made-up API with more than a thousand calls: thirty kinds of things, each with six kinds of parts.

use serde_json::{Map, Value as Json, json};

/// Returns the document. It is the same every time.
pub(super) fn document() -> Json {
    let mut paths = Map::new();
    for (at, thing) in THINGS.iter().enumerate() {
        let one = singular(thing);
        let id = format!("{one}_id");
        let base = format!("/{thing}");
        let of_one = format!("{base}/{{{id}}}");
        paths.insert(base, collection(thing, &one, None));
        paths.insert(of_one.clone(), item(thing, &one, None));
        let archive = operation(
            thing,
            &format!("Archive {} {one}", article(&one)),
            &["archive", &one],
        );
        paths.insert(format!("{of_one}/archive"), json!({ "post": archive }));
        for part in PARTS[at % 2] {
            let part_one = singular(part);
            let whole = Some(one.as_str());
            let base = format!("{of_one}/{part}");
            let of_part = format!("{base}/{{{part_one}_id}}");
            paths.insert(base, collection(part, &part_one, whole));
            paths.insert(of_part, item(part, &part_one, whole));
        }
    }
    json!({
        "openapi": "3.0.3",
        "info": { "title": "Works" },
        "servers": [{ "url": "https://works.example.com" }],
        "paths": paths,
    })
}

/// Calls that list things and add one.
fn collection(many: &str, one: &str, whole: Option<&str>) -> Json {
    let tag = whole.unwrap_or(many);
    let a = article(one);
    let (list, add) = match whole {
        None => (format!("List {many}"), format!("Create {a} {one}")),
        Some(whole) => {
            let of = format!("{} {whole}", article(whole));
            (
                format!("List the {many} of {of}"),
                format!("Add {a} {one} to {of}"),
            )
        }
    };
    let named = |verb: &str| -> Vec<String> {
        [verb]
            .into_iter()
            .chain(whole)
            .chain([one])
            .map(str::to_owned)
            .collect()
    };
    let mut get = operation(tag, &list, &refs(&named("list")));
    let mut post = operation(tag, &add, &refs(&named("create")));
    let mut fields = json!({ "name": { "type": "string" }, "description": { "type": "string" } });
    if whole.is_none() {
        get["parameters"] = json!([
            { "name": "status", "in": "query", "schema": { "type": "string", "enum": ["active", "archived"] } },
            { "name": "limit", "in": "query", "schema": { "type": "integer" } },
        ]);
        fields["region"] = json!({ "type": "string", "enum": ["eu", "us", "asia"] });
    }
    post["requestBody"] = body(&fields, &["name"]);
    json!({ "get": get, "post": post })
}

/// Calls that get, change and delete one thing.
fn item(many: &str, one: &str, whole: Option<&str>) -> Json {
    let tag = whole.unwrap_or(many);
    let a = article(one);
    let of = |link: &str| match whole {
        None => String::new(),
        Some(whole) => format!(" {link} {} {whole}", article(whole)),
    };
    let named = |verb: &str| -> Vec<String> {
        [verb]
            .into_iter()
            .chain(whole)
            .chain([one])
            .map(str::to_owned)
            .collect()
    };
    let mut put = operation(
        tag,
        &format!("Update {a} {one}{}", of("of")),
        &refs(&named("update")),
    );
    let fields = json!({ "name": { "type": "string" }, "description": { "type": "string" } });
    put["requestBody"] = body(&fields, &[]);
    json!({
        "get": operation(tag, &format!("Get {a} {one}{}", of("of")), &refs(&named("get"))),
        "put": put,
        "delete": operation(tag, &format!("Delete {a} {one}{}", of("of")), &refs(&named("delete"))),
    })
}

fn operation(tag: &str, summary: &str, id: &[&str]) -> Json {
    json!({ "tags": [tag], "summary": summary, "operationId": id.join("_") })
}

fn body(fields: &Json, required: &[&str]) -> Json {
    let schema = json!({ "type": "object", "properties": fields, "required": required });
    json!({ "required": true, "content": { "application/json": { "schema": schema } } })
}

fn refs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn singular(many: &str) -> String {
    many.strip_suffix('s').unwrap_or(many).to_owned()
}

fn article(one: &str) -> &'static str {
    match one.starts_with(['a', 'e', 'i', 'o', 'u']) {
        true => "an",
        false => "a",
    }
}

const THINGS: [&str; 30] = [
    "servers",
    "volumes",
    "networks",
    "databases",
    "clusters",
    "buckets",
    "queues",
    "functions",
    "certificates",
    "domains",
    "firewalls",
    "gateways",
    "images",
    "snapshots",
    "projects",
    "teams",
    "customers",
    "contracts",
    "suppliers",
    "warehouses",
    "shipments",
    "products",
    "invoices",
    "budgets",
    "campaigns",
    "tickets",
    "employees",
    "machines",
    "vehicles",
    "buildings",
];

/// Parts of every other kind of thing.
const PARTS: [[&str; 6]; 2] = [
    [
        "tags",
        "members",
        "permissions",
        "backups",
        "metrics",
        "approvals",
    ],
    [
        "notes",
        "events",
        "schedules",
        "alerts",
        "attachments",
        "locks",
    ],
];
