//! Parser for OpenAPI 3 documents. Documents are untrusted: their size is limited, references to other documents are refused,
//! and a document never decides where calls may go.

mod references;
mod responses;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Map, Value as Json};
use serde_saphyr::{Budget, DuplicateKeyPolicy, Options};

use super::catalogue::{Api, Body, Parameter, Place};
use super::headers;
use super::response_shape::ResponseShape;

/// Content of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Title of the API, on one line. May be empty.
    pub title: String,
    /// Base URLs that the document proposes. Calls go there only if a person allows it.
    pub servers: Vec<String>,
    /// Calls of the API, sorted by path.
    pub apis: Vec<Api>,
    /// Calls that cannot be made, each with the reason.
    pub skipped: Vec<String>,
    /// Forms of the successful responses, by the id of their call. Calls whose response the document does not describe have
    /// none.
    pub responses: BTreeMap<String, ResponseShape>,
}

/// Why a document is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The document is longer than [`BYTES_MAX`]. Holds its size in bytes.
    #[error("it has {0} bytes; documents of up to {BYTES_MAX} are read")]
    TooLong(usize),
    /// The document is neither JSON nor YAML, or exceeds the limits of the parser. Holds the parser's message.
    #[error("it is neither JSON nor YAML: {0}")]
    NotText(String),
    /// The document is of another kind or version. Holds the reason.
    #[error("it is not an OpenAPI 3 document: {0}")]
    NotOpenApi(String),
    /// A reference points to another document. Holds the reference.
    #[error("it refers to another document (`{0}`); bundle it into one first")]
    Remote(String),
    /// A reference leads back to itself through others. Holds the reference.
    #[error("the reference `{0}` leads in a circle")]
    Loop(String),
    /// A reference leads to something that does not exist. Holds the reference.
    #[error("the reference `{0}` leads nowhere")]
    Nowhere(String),
    /// The document exceeds a limit. Holds the limit.
    #[error("it has more than {0}")]
    TooMuch(&'static str),
}

/// Reads a document.
pub fn read(bytes: &[u8]) -> Result<Document, DocumentError> {
    if bytes.len() > BYTES_MAX {
        return Err(DocumentError::TooLong(bytes.len()));
    }
    let document = parse(bytes)?;
    let version = document["openapi"].as_str().unwrap_or_default();
    if !version.starts_with("3.") {
        return Err(DocumentError::NotOpenApi(match document.get("swagger") {
            Some(_) => "it is of version 2; convert it to version 3 first".to_owned(),
            None => "it has no field `openapi: 3.…`".to_owned(),
        }));
    }
    references::check(&document)?;
    Reader {
        document: &document,
        ids: BTreeSet::new(),
        numbers: BTreeMap::new(),
        fields: BTreeMap::new(),
        skipped: Vec::new(),
        shapes_room: responses::SHAPES_MAX,
    }
    .read()
}

fn parse(bytes: &[u8]) -> Result<Json, DocumentError> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{') {
        // The parser refuses more than 128 levels of nesting.
        return serde_json::from_slice(bytes)
            .map_err(|error| DocumentError::NotText(error.to_string()));
    }
    serde_saphyr::from_slice_with_options(bytes, yaml_limits())
        .map_err(|error| DocumentError::NotText(first_line(&error.to_string())))
}

/// Limits of a YAML document. Aliases count with their expanded size, so that a few lines cannot expand to gigabytes.
fn yaml_limits() -> Options {
    let mut options = Options::default();
    let mut budget = Budget::default();
    budget.flow_nesting_limit = YAML_DEPTH_MAX;
    budget.max_depth = YAML_DEPTH_MAX;
    budget.max_nodes = YAML_NODES_MAX;
    budget.max_events = 2 * YAML_NODES_MAX;
    budget.max_aliases = YAML_ALIASES_MAX;
    budget.max_anchors = YAML_ALIASES_MAX;
    budget.max_documents = 1;
    budget.max_total_scalar_bytes = BYTES_MAX;
    budget.max_merge_keys = YAML_ALIASES_MAX;
    options.budget = Some(budget);
    options.alias_limits.max_total_replayed_events = YAML_REPLAYED_MAX;
    // As in JSON, the last of several equal keys wins.
    options.duplicate_keys = DuplicateKeyPolicy::LastWins;
    options
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

struct Reader<'a> {
    document: &'a Json,
    ids: BTreeSet<String>,
    /// Last number appended to each id to make it unique.
    numbers: BTreeMap<String, usize>,
    /// Fields of every visited schema, by its address in memory and its depth. A schema that is used a thousand times, or that
    /// contains itself, is visited once per depth.
    fields: BTreeMap<(usize, usize), Rc<Fields<'a>>>,
    skipped: Vec<String>,
    /// Number of parts of responses that may still be read.
    shapes_room: usize,
}

/// Fields of an object schema.
#[derive(Debug, Default)]
struct Fields<'a> {
    by_name: BTreeMap<&'a str, &'a Json>,
    required: BTreeSet<&'a str>,
}

impl<'a> Fields<'a> {
    fn add(&mut self, name: &'a str, field: &'a Json) {
        if self.by_name.len() < PARAMETERS_MAX {
            self.by_name.entry(name).or_insert(field);
        }
    }

    fn require(&mut self, names: impl Iterator<Item = &'a str>) {
        for name in names {
            if self.required.len() >= REQUIRED_MAX {
                return;
            }
            self.required.insert(name);
        }
    }
}

impl<'a> Reader<'a> {
    fn read(mut self) -> Result<Document, DocumentError> {
        let paths = self.document["paths"].as_object();
        let paths = paths.ok_or_else(|| DocumentError::NotOpenApi("it has no paths".to_owned()))?;
        let mut apis = Vec::new();
        let mut responses = BTreeMap::new();
        // Sorted here, because another crate's features decide whether the parser keeps the order of the document.
        let paths: std::collections::BTreeMap<_, _> = paths.iter().collect();
        for (path, item) in paths {
            let item = self.resolved(item)?;
            for method in METHODS {
                let Some(operation) = item.get(method) else {
                    continue;
                };
                let Some(operation) = operation.as_object() else {
                    return Err(DocumentError::NotOpenApi(format!(
                        "{method} {path} is not an object"
                    )));
                };
                if apis.len() >= CALLS_MAX {
                    return Err(DocumentError::TooMuch("5000 calls"));
                }
                if let Some(api) = self.api(path, method, item, operation)? {
                    let shape = match self.response(operation) {
                        // The call can be made all the same; its response is not compared.
                        Err(DocumentError::Nowhere(_)) => None,
                        shape => shape?,
                    };
                    if let Some(shape) = shape {
                        responses.insert(api.id.clone(), shape);
                    }
                    apis.push(api);
                }
            }
        }
        if apis.is_empty() {
            return Err(DocumentError::NotOpenApi(
                "there is nothing in it that can be called".to_owned(),
            ));
        }
        let title = self.document.pointer("/info/title").and_then(Json::as_str);
        Ok(Document {
            title: cut(title.unwrap_or_default(), NAME_CHARS),
            servers: self.servers(),
            apis,
            skipped: self.skipped,
            responses,
        })
    }

    fn api(
        &mut self,
        path: &str,
        method: &str,
        item: &'a Json,
        operation: &'a Map<String, Json>,
    ) -> Result<Option<Api>, DocumentError> {
        let text = |name: &str| {
            operation
                .get(name)
                .and_then(Json::as_str)
                .unwrap_or_default()
                .trim()
        };
        let mut parameters = self.parameters(item, operation)?;
        let names = path_names(path);
        if names.len() > PARAMETERS_MAX {
            return Err(DocumentError::TooMuch("400 parameters of one call"));
        }
        for name in names {
            if !parameters
                .iter()
                .any(|(parameter, _)| parameter.place == Place::Path && parameter.name == name)
            {
                let parameter = Parameter {
                    name,
                    kind: "string".to_owned(),
                    place: Place::Path,
                    ..Parameter::default()
                };
                parameters.push((parameter, true));
            }
        }
        let Some(body) = self.body(operation, &mut parameters)? else {
            self.skipped.push(format!(
                "{} {path}: it takes neither JSON nor a form",
                method.to_uppercase()
            ));
            return Ok(None);
        };
        if parameters.len() > PARAMETERS_MAX {
            return Err(DocumentError::TooMuch("400 parameters of one call"));
        }
        let (required, optional): (Vec<_>, Vec<_>) =
            parameters.into_iter().partition(|(_, required)| *required);
        let id = self.unique(match text("operationId") {
            "" => format!("{method}_{path}"),
            id => id.to_owned(),
        });
        let name = match text("summary") {
            "" => words_of(&id),
            summary => cut(summary.trim_end_matches('.'), NAME_CHARS),
        };
        let category = operation
            .get("tags")
            .and_then(|tags| tags[0].as_str())
            .map(str::to_owned);
        Ok(Some(Api {
            category_name: cut(&category.unwrap_or_else(|| first_segment(path)), NAME_CHARS),
            tool_name: name.clone(),
            api_name: name,
            api_description: cut(text("description"), DESCRIPTION_CHARS),
            required_parameters: required
                .into_iter()
                .map(|(parameter, _)| parameter)
                .collect(),
            optional_parameters: optional
                .into_iter()
                .map(|(parameter, _)| parameter)
                .collect(),
            method: method.to_uppercase(),
            api_url: path.to_owned(),
            body,
            id,
        }))
    }

    fn parameters(
        &self,
        item: &'a Json,
        operation: &'a Map<String, Json>,
    ) -> Result<Vec<(Parameter, bool)>, DocumentError> {
        let mut found: Vec<(Parameter, bool)> = Vec::new();
        let lists = [item.get("parameters"), operation.get("parameters")];
        let given = || {
            let lists = lists.into_iter().flatten();
            lists.filter_map(Json::as_array).flatten()
        };
        // Checked before the loop below, which compares each parameter with every other.
        if given().nth(2 * PARAMETERS_MAX).is_some() {
            return Err(DocumentError::TooMuch("400 parameters of one call"));
        }
        for given in given() {
            let given = self.resolved(given)?;
            let place = match given["in"].as_str() {
                Some("query") => Place::Query,
                Some("path") => Place::Path,
                Some("header") => Place::Header,
                _ => continue,
            };
            let schema = given
                .get("schema")
                .or_else(|| given.pointer("/content/application~1json/schema"));
            let name = given["name"].as_str().unwrap_or_default();
            if name.is_empty() || (place == Place::Header && !headers::may_be_a_parameter(name)) {
                continue;
            }
            let description = given["description"].as_str().unwrap_or_default();
            let parameter =
                self.parameter(name, description, schema.unwrap_or(&Json::Null), place)?;
            let required = given["required"] == true || place == Place::Path;
            found.retain(|(other, _)| other.name != parameter.name || other.place != place);
            found.push((parameter, required));
        }
        Ok(found)
    }

    /// Returns the encoding of the request body, and adds its fields to `parameters`. `None` if the encoding is not supported.
    fn body(
        &mut self,
        operation: &'a Map<String, Json>,
        parameters: &mut Vec<(Parameter, bool)>,
    ) -> Result<Option<Body>, DocumentError> {
        let Some(body) = operation.get("requestBody") else {
            return Ok(Some(Body::None));
        };
        let body = self.resolved(body)?;
        let content = body["content"].as_object();
        let find = |wanted: &str| {
            content
                .into_iter()
                .flatten()
                .find(|(kind, _)| kind.starts_with(wanted))
        };
        let is_needed = body["required"] == true;
        let (written, (_, media)) = match (
            find("application/json"),
            find("application/x-www-form-urlencoded"),
        ) {
            (Some(media), _) => (Body::Json, media),
            (None, Some(media)) => (Body::Form, media),
            (None, None) if content.is_some_and(|content| !content.is_empty()) && is_needed => {
                return Ok(None);
            }
            (None, None) => return Ok(Some(Body::None)),
        };
        let fields = self.fields(&media["schema"], 0)?;
        if fields.by_name.is_empty() {
            let kind = self.kind(&media["schema"])?;
            let description = body["description"].as_str().unwrap_or("what is sent along");
            let parameter = Parameter {
                name: "body".to_owned(),
                description: cut(description, DESCRIPTION_CHARS),
                kind: if kind == "string" {
                    "object".to_owned()
                } else {
                    kind
                },
                place: Place::Whole,
                ..Parameter::default()
            };
            parameters.push((parameter, is_needed && written == Body::Json));
            return Ok(Some(written));
        }
        for (name, schema) in &fields.by_name {
            let description = schema["description"].as_str().unwrap_or_default();
            let parameter = self.parameter(name, description, schema, Place::Body)?;
            // A parameter of the path, query or header already has this name.
            if !parameters
                .iter()
                .any(|(other, _)| other.name == parameter.name)
            {
                parameters.push((
                    parameter,
                    fields.required.contains(name) && schema["readOnly"] != true,
                ));
            }
        }
        Ok(Some(written))
    }

    /// Returns the fields of an object schema, including those that it combines with `allOf`.
    fn fields(&mut self, schema: &'a Json, depth: usize) -> Result<Rc<Fields<'a>>, DocumentError> {
        let schema = self.resolved(schema)?;
        let key = (std::ptr::from_ref(schema).addr(), depth);
        if let Some(known) = self.fields.get(&key) {
            return Ok(known.clone());
        }
        let mut fields = Fields::default();
        let required = schema["required"].as_array().into_iter().flatten();
        fields.require(required.filter_map(Json::as_str));
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            fields.add(name, self.resolved(field)?);
        }
        let parts = schema["allOf"].as_array().into_iter().flatten();
        for part in parts.filter(|_| depth < DEPTH_MAX) {
            let part = self.fields(part, depth + 1)?;
            fields.require(part.required.iter().copied());
            for (name, field) in &part.by_name {
                fields.add(name, field);
            }
        }
        let fields = Rc::new(fields);
        self.fields.insert(key, fields.clone());
        Ok(fields)
    }

    fn parameter(
        &self,
        name: &str,
        description: &str,
        schema: &Json,
        place: Place,
    ) -> Result<Parameter, DocumentError> {
        let schema = self.resolved(schema)?;
        let kind = self.kind(schema)?;
        let choices = match kind.as_str() {
            "array" => &self.resolved(&schema["items"])?["enum"],
            _ => &schema["enum"],
        };
        let choices = choices.as_array().into_iter().flatten();
        let default = schema.get("default").filter(|value| is_small(value));
        Ok(Parameter {
            name: name.to_owned(),
            description: cut(description, DESCRIPTION_CHARS),
            kind,
            format: cut(schema["format"].as_str().unwrap_or_default(), FORMAT_CHARS),
            default: default.cloned().unwrap_or_default(),
            place,
            choices: choices
                .take(CHOICES_MAX)
                .filter(|choice| !choice.is_null() && is_small(choice))
                .cloned()
                .collect(),
        })
    }

    fn kind(&self, schema: &Json) -> Result<String, DocumentError> {
        let mut schema = self.resolved(schema)?;
        for _ in 0..DEPTH_MAX {
            let said = match &schema["type"] {
                Json::String(kind) => Some(kind.as_str()),
                // Since OpenAPI 3.1, a type may be a list, and `null` one of its items.
                Json::Array(kinds) => kinds
                    .iter()
                    .filter_map(Json::as_str)
                    .find(|kind| *kind != "null"),
                _ => None,
            };
            if let Some(kind) = said {
                return Ok(kind.to_owned());
            }
            let parts = ["allOf", "oneOf", "anyOf"]
                .iter()
                .find_map(|word| schema[*word].as_array()?.first());
            match parts {
                Some(part) => schema = self.resolved(part)?,
                None if schema.get("properties").is_some() => return Ok("object".to_owned()),
                None => break,
            }
        }
        Ok("string".to_owned())
    }

    fn resolved(&self, value: &'a Json) -> Result<&'a Json, DocumentError> {
        match value.get("$ref").and_then(Json::as_str) {
            Some(reference) => references::follow(self.document, reference),
            None => Ok(value),
        }
    }

    fn servers(&self) -> Vec<String> {
        let servers = self.document["servers"].as_array();
        let with_defaults = |server: &Json| {
            let mut url = server["url"].as_str()?.to_owned();
            let variables = server["variables"].as_object().into_iter().flatten();
            for (name, variable) in variables.take(CHOICES_MAX) {
                // A default may repeat the names of other variables, so the URL could double with each of them.
                if url.len() > SERVER_BYTES_MAX {
                    return None;
                }
                let value = variable["default"].as_str().unwrap_or_default();
                if value.len() > SERVER_BYTES_MAX {
                    return None;
                }
                url = url.replace(&format!("{{{name}}}"), value);
            }
            (url.len() <= SERVER_BYTES_MAX).then_some(url)
        };
        servers
            .into_iter()
            .flatten()
            .take(CHOICES_MAX)
            .filter_map(with_defaults)
            .collect()
    }

    fn unique(&mut self, id: String) -> String {
        let plain: String = id
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || "_-.".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        let plain = cut(plain.trim_matches('_'), NAME_CHARS);
        let mut unique = plain.clone();
        // Continues from the last number, so that a thousand calls of the same name do not take a million lookups.
        let number = self.numbers.entry(plain.clone()).or_insert(1);
        while !self.ids.insert(unique.clone()) {
            *number += 1;
            unique = format!("{plain}_{number}");
        }
        unique
    }
}

/// Returns the names of the path parameters.
fn path_names(path: &str) -> Vec<String> {
    let parts = path.split('{').skip(1);
    parts
        .filter_map(|part| Some(part.split_once('}')?.0.to_owned()))
        .collect()
}

fn first_segment(path: &str) -> String {
    let is_version = |segment: &str| segment.len() <= 3 && segment.starts_with('v');
    let mut segments = path
        .split('/')
        .filter(|segment| !segment.is_empty() && !segment.starts_with('{') && !is_version(segment));
    segments.next().unwrap_or("other").to_owned()
}

/// Splits an id into words: `getUserById` becomes `get user by id`.
fn words_of(id: &str) -> String {
    let mut words = String::new();
    let mut was_small = false;
    for c in id.chars() {
        if c.is_uppercase() && was_small {
            words.push(' ');
        }
        was_small = c.is_lowercase() || c.is_ascii_digit();
        words.push(if c.is_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            ' '
        });
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Puts a text on one line and cuts it to this many characters. Looks only at the beginning of a long text, because the same
/// text may be used by thousands of calls.
fn cut(text: &str, chars_max: usize) -> String {
    let looked_at = text.char_indices().nth(4 * chars_max);
    let head = looked_at.map_or(text, |(end, _)| &text[..end]);
    let line = head.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if looked_at.is_some() => format!("{line}…"),
        None => line,
    }
}

/// Returns whether a value is small enough to be copied into every call that uses it.
fn is_small(value: &Json) -> bool {
    let mut room = SMALL_BYTES_MAX;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        let bytes = match value {
            Json::String(text) => text.len(),
            Json::Array(items) => items.len(),
            Json::Object(fields) => fields.len(),
            _ => 0,
        };
        let Some(left) = room.checked_sub(bytes + 1) else {
            return false;
        };
        room = left;
        match value {
            Json::Array(items) => open.extend(items),
            Json::Object(fields) => open.extend(fields.values()),
            _ => {}
        }
    }
    true
}

/// Maximum size of a document, in bytes.
pub const BYTES_MAX: usize = 32 * 1024 * 1024;
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
const CALLS_MAX: usize = 5_000;
const PARAMETERS_MAX: usize = 400;
const REQUIRED_MAX: usize = 4 * PARAMETERS_MAX;
/// Maximum size of a default or an allowed value, in bytes.
const SMALL_BYTES_MAX: usize = 4_000;
const SERVER_BYTES_MAX: usize = 2_000;
/// Low enough for the 2 MiB stack of a thread.
const YAML_DEPTH_MAX: usize = 64;
/// Includes the nodes that aliases expand to.
const YAML_NODES_MAX: usize = 4_000_000;
const YAML_ALIASES_MAX: usize = 50_000;
const YAML_REPLAYED_MAX: usize = 100_000;
const CHOICES_MAX: usize = 200;
const DEPTH_MAX: usize = 8;
const NAME_CHARS: usize = 120;
const FORMAT_CHARS: usize = 20;
const DESCRIPTION_CHARS: usize = 300;

#[cfg(test)]
mod tests;
