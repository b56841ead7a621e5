//! The catalogue of an API: its calls by category, with their parameters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::connector::{AllowedOrigins, Origin};
use crate::response_shape::ResponseShape;

/// An API that can be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Catalogue {
    /// Name that a person uses, as in `@audius`.
    pub name: String,
    /// Title from the API's document.
    pub title: String,
    /// Base URLs of the hosts, in the order to try. The path of a call is appended.
    pub hosts: Vec<String>,
    /// Calls of the API.
    pub apis: Vec<Api>,
    /// The secret that the API requires. Absent if it requires none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// Whether the API deduplicates calls by their `Idempotency-Key`. Default: false.
    #[serde(default)]
    pub keyed: bool,
    /// Known form of the API's answers.
    #[serde(default)]
    pub dialect: Dialect,
    /// Forms of the successful responses, by the id of their call.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub responses: BTreeMap<String, ResponseShape>,
}

/// Known form of an API's answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// No known form.
    #[default]
    Plain,
    /// The form of Audius.
    Audius,
    /// Not an API over HTTP, but the tools of an MCP server.
    Mcp,
}

/// Where to find a secret, and where it may go. The secret itself is never stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Name of the environment variable that holds the secret.
    pub variable: String,
    /// Name of the header for the secret.
    pub header: String,
    /// Text before the secret in the header, such as `Bearer `.
    pub prefix: String,
    /// The only origin that the secret is sent to.
    pub origin: Origin,
}

/// One call of an API. Field names follow the brief.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Api {
    /// Id of the call, unique in its catalogue.
    pub id: String,
    /// Category: the first tag in the document, else the first segment of the path.
    pub category_name: String,
    /// What the call does, in a few words.
    pub tool_name: String,
    /// Same text as `tool_name`. Kept because the brief names it.
    pub api_name: String,
    /// What the call does, in a sentence. May be empty.
    pub api_description: String,
    /// Parameters that the call requires.
    pub required_parameters: Vec<Parameter>,
    /// Parameters that the call accepts.
    pub optional_parameters: Vec<Parameter>,
    /// HTTP method in upper case.
    pub method: String,
    /// Path, with `{name}` in place of path parameters.
    pub api_url: String,
    /// Encoding of the request body.
    #[serde(default, skip_serializing_if = "is_default")]
    pub body: Body,
}

/// One parameter of a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Name as the API spells it.
    pub name: String,
    /// What the value means. May be empty.
    pub description: String,
    /// Type: `string`, `integer`, `number`, `boolean`, `array` or `object`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Default value; null if there is none.
    pub default: Json,
    /// Part of the request that carries the value.
    #[serde(rename = "in", default, skip_serializing_if = "is_default")]
    pub place: Place,
    /// Allowed values. Empty allows any.
    #[serde(rename = "enum", default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Json>,
    /// Format of a text, such as `date` or `email`, as the document names it. May be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub format: String,
}

/// Part of a request that carries a parameter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// The query string.
    #[default]
    Query,
    /// A segment of the path.
    Path,
    /// A header of the request.
    Header,
    /// One field of the body.
    Body,
    /// The whole body.
    Whole,
}

/// Encoding of a request body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    /// The call has no body.
    #[default]
    None,
    /// JSON.
    Json,
    /// URL-encoded form.
    Form,
}

impl Api {
    /// Returns whether the call only reads: its method is `GET`.
    pub fn is_read(&self) -> bool {
        self.method == "GET"
    }

    /// Iterates over all parameters, the required ones first.
    pub fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.required_parameters
            .iter()
            .chain(&self.optional_parameters)
    }

    /// Returns the parameter with this name.
    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters().find(|parameter| parameter.name == name)
    }
}

impl Catalogue {
    /// Returns the call with this id.
    pub fn api(&self, id: &str) -> Option<&Api> {
        self.apis.iter().find(|api| api.id == id)
    }

    /// Returns the categories, in the order of the calls.
    pub fn categories(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for api in &self.apis {
            if !names.contains(&api.category_name.as_str()) {
                names.push(api.category_name.as_str());
            }
        }
        names
    }

    /// Returns the origins that calls of this API may go to.
    pub fn reach(&self) -> AllowedOrigins {
        AllowedOrigins::only(self.hosts.iter().filter_map(|host| host.parse().ok()))
    }

    /// Returns the base URL of the selected host, or of the first one if the API has no host of that name.
    pub fn host(&self, selected: Option<&str>) -> Option<&str> {
        let hosts = || self.hosts.iter().map(String::as_str);
        let wanted = selected.and_then(|wanted| hosts().find(|host| short_host(host) == wanted));
        wanted.or_else(|| hosts().next())
    }

    /// Returns the calls with one of these names, or in a category with one of them.
    pub fn named(&self, names: &[String]) -> Vec<&Api> {
        let is_named = |api: &&Api| {
            names.iter().any(|name| {
                *name == api.tool_name || *name == api.api_name || *name == api.category_name
            })
        };
        self.apis.iter().filter(is_named).collect()
    }
}

/// Returns the host of a base URL, with its port if that is not the default.
pub fn short_host(base: &str) -> String {
    match base.parse::<Origin>() {
        Ok(origin) => origin.host_and_port(),
        Err(_) => base.to_owned(),
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
