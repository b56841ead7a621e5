//! What can be asked of an API: its calls, each under a category, with what they need.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::connector::{AllowedOrigins, Origin};

/// An API that questions can be put to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Catalogue {
    /// What it is called by, as in `@audius`.
    pub name: String,
    /// What it calls itself.
    pub title: String,
    /// Where calls go, in the order to try: addresses that the path of a call is put behind.
    pub hosts: Vec<String>,
    /// Its calls.
    pub apis: Vec<Api>,
    /// The secret it wants, if it wants one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// Whether it drops a second call with the same `Idempotency-Key`.
    #[serde(default)]
    pub keyed: bool,
    /// Whose answers have a form that we know.
    #[serde(default)]
    pub dialect: Dialect,
}

/// Whose answers have a form that we know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Nobody's.
    #[default]
    Plain,
    /// Audius'.
    Audius,
}

/// Where a secret is found and where it may go. The secret itself is never stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The environment variable that holds it.
    pub variable: String,
    /// The header it goes in.
    pub header: String,
    /// What stands before it.
    pub prefix: String,
    /// The one origin it goes to.
    pub origin: Origin,
}

/// A call, under the names that the brief gave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Api {
    /// Unique in its catalogue.
    pub id: String,
    /// The category.
    pub category_name: String,
    /// What it does, in a few words.
    pub tool_name: String,
    /// The same, as the API calls it.
    pub api_name: String,
    /// What it does, in a sentence.
    pub api_description: String,
    /// What it cannot be called without.
    pub required_parameters: Vec<Parameter>,
    /// What it can be called with.
    pub optional_parameters: Vec<Parameter>,
    /// `GET` …
    pub method: String,
    /// The path, with `{name}` for what is put in.
    pub api_url: String,
    /// How what is sent along is written.
    #[serde(default, skip_serializing_if = "is_default")]
    pub body: Body,
}

/// Something a call needs or takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// `string`, `integer`, `number`, `boolean`, `array` or `object`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is unless said.
    pub default: Json,
    /// Where it goes.
    #[serde(rename = "in", default, skip_serializing_if = "is_default")]
    pub place: Place,
    /// What it may be, if only this.
    #[serde(rename = "enum", default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Json>,
}

/// Where a parameter goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Behind the `?`.
    #[default]
    Query,
    /// Into the path.
    Path,
    /// Into a header.
    Header,
    /// A field of what is sent along.
    Body,
    /// All of what is sent along.
    Whole,
}

/// How what is sent along is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    /// Nothing is.
    #[default]
    None,
    /// As JSON.
    Json,
    /// As a form.
    Form,
}

impl Api {
    /// Whether it only reads.
    pub fn is_read(&self) -> bool {
        self.method == "GET"
    }

    /// Everything it takes, what it needs first.
    pub fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.required_parameters
            .iter()
            .chain(&self.optional_parameters)
    }

    /// The parameter of this name.
    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters().find(|parameter| parameter.name == name)
    }
}

impl Catalogue {
    /// The call of this id.
    pub fn api(&self, id: &str) -> Option<&Api> {
        self.apis.iter().find(|api| api.id == id)
    }

    /// The categories, in the order of the document.
    pub fn categories(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for api in &self.apis {
            if !names.contains(&api.category_name.as_str()) {
                names.push(api.category_name.as_str());
            }
        }
        names
    }

    /// The origins it may call.
    pub fn reach(&self) -> AllowedOrigins {
        AllowedOrigins::only(self.hosts.iter().filter_map(|host| host.parse().ok()))
    }

    /// The address that calls are put behind, by its short name; the first if there is none of that name.
    pub fn host(&self, selected: Option<&str>) -> Option<&str> {
        let hosts = || self.hosts.iter().map(String::as_str);
        let wanted = selected.and_then(|wanted| hosts().find(|host| short_host(host) == wanted));
        wanted.or_else(|| hosts().next())
    }

    /// Its calls that go by one of these names: of themselves, or of their category.
    pub fn named(&self, names: &[String]) -> Vec<&Api> {
        let is_named = |api: &&Api| {
            names.iter().any(|name| {
                *name == api.tool_name || *name == api.api_name || *name == api.category_name
            })
        };
        self.apis.iter().filter(is_named).collect()
    }
}

/// A host without its scheme and path.
pub fn short_host(base: &str) -> String {
    match base.parse::<Origin>() {
        Ok(origin) => origin.host_and_port(),
        Err(_) => base.to_owned(),
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
