//! OpenAPI 3 documents, read as what strangers wrote: bounded, without references to elsewhere, and never trusted to say where
//! calls may go.

mod references;

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use super::catalogue::{Api, Body, Parameter, Place};

/// What a document says.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// What it calls itself.
    pub title: String,
    /// Where it wants calls to go. Nothing is called there unless a person says so.
    pub servers: Vec<String>,
    /// Its calls.
    pub apis: Vec<Api>,
    /// Calls that cannot be made, and why.
    pub skipped: Vec<String>,
}

/// Why a document is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Longer than is read.
    #[error("it has {0} bytes; documents of up to {BYTES_MAX} are read")]
    TooLong(usize),
    /// Not JSON and not YAML.
    #[error("it is neither JSON nor YAML: {0}")]
    NotText(String),
    /// Something else.
    #[error("it is no OpenAPI 3 document: {0}")]
    NotOpenApi(String),
    /// Points to another document.
    #[error("it refers to another document (`{0}`); bundle it into one first")]
    Remote(String),
    /// A reference that is itself, through others.
    #[error("the reference `{0}` leads in a circle")]
    Loop(String),
    /// A reference to what is not there.
    #[error("the reference `{0}` leads nowhere")]
    Nowhere(String),
    /// Too much of something.
    #[error("it has more than {0}")]
    TooMuch(&'static str),
}

/// Reads a document.
pub fn read(bytes: &[u8]) -> Result<Document, Unfit> {
    if bytes.len() > BYTES_MAX {
        return Err(Unfit::TooLong(bytes.len()));
    }
    let document = parse(bytes)?;
    let version = document["openapi"].as_str().unwrap_or_default();
    if !version.starts_with("3.") {
        return Err(Unfit::NotOpenApi(match document.get("swagger") {
            Some(_) => "it is of version 2; convert it to version 3 first".to_owned(),
            None => "it has no field `openapi: 3.…`".to_owned(),
        }));
    }
    references::check(&document)?;
    Reader {
        document: &document,
        ids: BTreeSet::new(),
        skipped: Vec::new(),
    }
    .read()
}

fn parse(bytes: &[u8]) -> Result<Json, Unfit> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{') {
        return serde_json::from_slice(bytes).map_err(|error| Unfit::NotText(error.to_string()));
    }
    serde_norway::from_slice(bytes).map_err(|error| Unfit::NotText(error.to_string()))
}

struct Reader<'a> {
    document: &'a Json,
    ids: BTreeSet<String>,
    skipped: Vec<String>,
}

impl<'a> Reader<'a> {
    fn read(mut self) -> Result<Document, Unfit> {
        let paths = self.document["paths"].as_object();
        let paths = paths.ok_or_else(|| Unfit::NotOpenApi("it has no paths".to_owned()))?;
        let mut apis = Vec::new();
        // In an order of ours: whether fields keep theirs depends on what else is built with the parser.
        let paths: std::collections::BTreeMap<_, _> = paths.iter().collect();
        for (path, item) in paths {
            let item = self.resolved(item)?;
            for method in METHODS {
                let Some(operation) = item.get(method) else {
                    continue;
                };
                let Some(operation) = operation.as_object() else {
                    return Err(Unfit::NotOpenApi(format!("{method} {path} is no object")));
                };
                if apis.len() >= CALLS_MAX {
                    return Err(Unfit::TooMuch("5000 calls"));
                }
                if let Some(api) = self.api(path, method, item, operation)? {
                    apis.push(api);
                }
            }
        }
        if apis.is_empty() {
            return Err(Unfit::NotOpenApi(
                "there is nothing in it that can be called".to_owned(),
            ));
        }
        let title = self.document.pointer("/info/title").and_then(Json::as_str);
        Ok(Document {
            title: cut(title.unwrap_or_default(), NAME_CHARS),
            servers: self.servers(),
            apis,
            skipped: self.skipped,
        })
    }

    fn api(
        &mut self,
        path: &str,
        method: &str,
        item: &Json,
        operation: &Map<String, Json>,
    ) -> Result<Option<Api>, Unfit> {
        let text = |name: &str| {
            operation
                .get(name)
                .and_then(Json::as_str)
                .unwrap_or_default()
                .trim()
        };
        let mut parameters = self.parameters(item, operation)?;
        for name in path_names(path) {
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
            return Err(Unfit::TooMuch("400 parameters of one call"));
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
        item: &Json,
        operation: &Map<String, Json>,
    ) -> Result<Vec<(Parameter, bool)>, Unfit> {
        let mut found: Vec<(Parameter, bool)> = Vec::new();
        let lists = [item.get("parameters"), operation.get("parameters")];
        for given in lists
            .into_iter()
            .flatten()
            .filter_map(Json::as_array)
            .flatten()
        {
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
            // What the connection itself says is not for a document to set.
            let is_ours = OUR_HEADERS
                .iter()
                .any(|ours| name.eq_ignore_ascii_case(ours));
            if name.is_empty() || (place == Place::Header && is_ours) {
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

    /// How what is sent along is written, with its fields among the parameters. None if we cannot write it.
    fn body(
        &self,
        operation: &Map<String, Json>,
        parameters: &mut Vec<(Parameter, bool)>,
    ) -> Result<Option<Body>, Unfit> {
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
        let mut fields = Vec::new();
        let mut required = BTreeSet::new();
        self.fields(&media["schema"], 0, &mut fields, &mut required)?;
        if fields.is_empty() {
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
        fields.sort_by_key(|(name, _)| *name);
        for (name, schema) in fields {
            let description = schema["description"].as_str().unwrap_or_default();
            let parameter = self.parameter(name, description, schema, Place::Body)?;
            // A field of a part of the address has the name already.
            if !parameters
                .iter()
                .any(|(other, _)| other.name == parameter.name)
            {
                parameters.push((
                    parameter,
                    required.contains(name) && schema["readOnly"] != true,
                ));
            }
        }
        Ok(Some(written))
    }

    /// The fields of an object, also of one that is put together from several.
    fn fields(
        &self,
        schema: &'a Json,
        depth: usize,
        fields: &mut Vec<(&'a str, &'a Json)>,
        required: &mut BTreeSet<&'a str>,
    ) -> Result<(), Unfit> {
        if depth > DEPTH_MAX {
            return Ok(());
        }
        let schema = self.resolved(schema)?;
        required.extend(
            schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Json::as_str),
        );
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            if fields.len() < PARAMETERS_MAX && !fields.iter().any(|(other, _)| other == name) {
                fields.push((name, self.resolved(field)?));
            }
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.fields(part, depth + 1, fields, required)?;
        }
        Ok(())
    }

    fn parameter(
        &self,
        name: &str,
        description: &str,
        schema: &Json,
        place: Place,
    ) -> Result<Parameter, Unfit> {
        let schema = self.resolved(schema)?;
        let choices = schema["enum"].as_array().cloned().unwrap_or_default();
        Ok(Parameter {
            name: name.to_owned(),
            description: cut(description, DESCRIPTION_CHARS),
            kind: self.kind(schema)?,
            default: schema.get("default").cloned().unwrap_or_default(),
            place,
            choices: choices
                .into_iter()
                .filter(|choice| !choice.is_null())
                .take(CHOICES_MAX)
                .collect(),
        })
    }

    fn kind(&self, schema: &Json) -> Result<String, Unfit> {
        let mut schema = self.resolved(schema)?;
        for _ in 0..DEPTH_MAX {
            let said = match &schema["type"] {
                Json::String(kind) => Some(kind.as_str()),
                // Since 3.1 it may be several, and null one of them.
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

    fn resolved(&self, value: &'a Json) -> Result<&'a Json, Unfit> {
        match value.get("$ref").and_then(Json::as_str) {
            Some(reference) => references::follow(self.document, reference),
            None => Ok(value),
        }
    }

    fn servers(&self) -> Vec<String> {
        let servers = self.document["servers"].as_array();
        let with_defaults = |server: &Json| {
            let mut url = server["url"].as_str()?.to_owned();
            for (name, variable) in server["variables"].as_object().into_iter().flatten() {
                let value = variable["default"].as_str().unwrap_or_default();
                url = url.replace(&format!("{{{name}}}"), value);
            }
            Some(url)
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
        let mut number = 2;
        while !self.ids.insert(unique.clone()) {
            unique = format!("{plain}_{number}");
            number += 1;
        }
        unique
    }
}

/// The names in a path.
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

/// An id as words: `getUserById` is `get user by id`.
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

/// The first so many characters, on one line.
fn cut(text: &str, chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The longest document that is read.
pub const BYTES_MAX: usize = 32 * 1024 * 1024;
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
const OUR_HEADERS: [&str; 9] = [
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "idempotency-key",
    "transfer-encoding",
];
const CALLS_MAX: usize = 5_000;
const PARAMETERS_MAX: usize = 400;
const CHOICES_MAX: usize = 200;
const DEPTH_MAX: usize = 8;
const NAME_CHARS: usize = 120;
const DESCRIPTION_CHARS: usize = 300;

#[cfg(test)]
mod tests;
