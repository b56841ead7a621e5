//! The exact call: method, path, headers and body, built from a call of the catalogue and its parameters.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::catalogue::{Api, Body, Place};
use super::{headers, params};
use crate::connector::Call;

/// Everything that is sent with a call, without its host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ExactCall {
    /// HTTP method in upper case.
    pub method: String,
    /// Path and query string, beginning with `/`.
    pub path: String,
    /// Headers from parameters. Those that every call has are not included.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Request body as JSON; null if there is none.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub body: Json,
    /// Encoding of the body.
    #[serde(default)]
    pub written: Body,
}

impl ExactCall {
    /// Builds the call with these parameters. An error says which parameter is missing or invalid.
    pub(super) fn new(api: &Api, parameters: &BTreeMap<String, Json>) -> Result<Self, String> {
        let mut path = api.api_url.clone();
        let mut query = Vec::new();
        let mut named = BTreeMap::new();
        let mut body = Map::new();
        let mut whole = Json::Null;
        for parameter in api.parameters() {
            let value = parameters.get(&parameter.name).unwrap_or(&Json::Null);
            if value.is_null() {
                if api.required_parameters.contains(parameter) {
                    return Err(format!("`{}` is missing", parameter.name));
                }
                continue;
            }
            params::check(parameter, value)?;
            match parameter.place {
                Place::Path => {
                    let encoded = encode(&plain(value));
                    path = path.replace(&format!("{{{}}}", parameter.name), &encoded);
                }
                Place::Query => pairs(&parameter.name, value, Lists::Repeated, &mut query),
                // Catalogues stored by an older version may declare headers that are now refused.
                Place::Header if headers::may_be_a_parameter(&parameter.name) => {
                    named.insert(parameter.name.clone(), plain(value));
                }
                Place::Header => {}
                Place::Body => {
                    body.insert(parameter.name.clone(), value.clone());
                }
                Place::Whole => whole = value.clone(),
            }
        }
        if !query.is_empty() {
            path = format!("{path}?{}", query.join("&"));
        }
        let body = if whole.is_null() && !body.is_empty() {
            Json::Object(body)
        } else {
            whole
        };
        Ok(Self {
            method: api.method.clone(),
            path,
            headers: named,
            body,
            written: api.body,
        })
    }

    /// Creates a read of a path, without headers or body.
    pub(super) fn read(path: &str) -> Self {
        Self {
            method: "GET".to_owned(),
            path: path.to_owned(),
            headers: BTreeMap::new(),
            body: Json::Null,
            written: Body::None,
        }
    }

    /// Creates the call for the connector, at one of the base URLs. Without a credential.
    pub(super) fn to(&self, base: &str) -> Call {
        let mut headers: Vec<_> = self.headers.clone().into_iter().collect();
        headers.push(("accept".to_owned(), "application/json".to_owned()));
        let body = self.written.encode(&self.body);
        if let (Some(_), Some(kind)) = (&body, self.written.content_type()) {
            headers.push(("content-type".to_owned(), kind.to_owned()));
        }
        Call {
            method: self.method.clone(),
            url: self.url(base),
            headers,
            body,
            credential: None,
        }
    }

    /// Returns the full URL at one of the base URLs.
    pub(super) fn url(&self, base: &str) -> String {
        format!("{}{}", base.trim_end_matches('/'), self.path)
    }
}

impl Body {
    /// Encodes a body. `None` if there is nothing to send.
    pub(super) fn encode(self, body: &Json) -> Option<Vec<u8>> {
        match (body, self) {
            (Json::Null, _) | (_, Self::None) => None,
            (body, Self::Json) => Some(body.to_string().into_bytes()),
            (body, Self::Form) => {
                let mut form = Vec::new();
                for (name, value) in body.as_object().into_iter().flatten() {
                    pairs(name, value, Lists::Numbered, &mut form);
                }
                Some(form.join("&").into_bytes())
            }
        }
    }

    pub(super) fn content_type(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Json => Some("application/json"),
            Self::Form => Some("application/x-www-form-urlencoded"),
        }
    }
}

#[derive(Clone, Copy)]
enum Lists {
    /// Repeats the name: `a=1&a=2`.
    Repeated,
    /// Numbers the items: `a[0]=1&a[1]=2`.
    Numbered,
}

fn pairs(name: &str, value: &Json, lists: Lists, into: &mut Vec<String>) {
    match (value, lists) {
        (Json::Null, _) => {}
        (Json::Array(items), Lists::Repeated) => {
            items.iter().for_each(|item| pairs(name, item, lists, into))
        }
        (Json::Array(items), Lists::Numbered) => {
            for (at, item) in items.iter().enumerate() {
                pairs(&format!("{name}[{at}]"), item, lists, into);
            }
        }
        (Json::Object(fields), _) => {
            for (field, value) in fields {
                pairs(&format!("{name}[{field}]"), value, lists, into);
            }
        }
        (plain_value, _) => into.push(format!(
            "{}={}",
            encode_name(name),
            encode(&plain(plain_value))
        )),
    }
}

fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, VALUE).to_string()
}

fn encode_name(text: &str) -> String {
    utf8_percent_encode(text, NAME).to_string()
}

/// Everything except the unreserved characters of a URL.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');
const NAME: &AsciiSet = &VALUE.remove(b'[').remove(b']');

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::catalogue::Parameter;
    use super::*;

    fn api(body: Body) -> Api {
        let parameter = |name: &str, kind: &str, place| Parameter {
            name: name.to_owned(),
            kind: kind.to_owned(),
            place,
            ..Parameter::default()
        };
        Api {
            method: "POST".to_owned(),
            api_url: "/a/{id}/b".to_owned(),
            required_parameters: vec![parameter("id", "string", Place::Path)],
            optional_parameters: vec![
                parameter("q", "string", Place::Query),
                parameter("tags", "array", Place::Query),
                parameter("name", "string", Place::Body),
                parameter("meta", "object", Place::Body),
            ],
            body,
            ..Api::default()
        }
    }

    fn exact(body: Body, parameters: Json) -> Result<ExactCall, String> {
        ExactCall::new(&api(body), &serde_json::from_value(parameters).unwrap())
    }

    #[test]
    fn everything_goes_to_its_place_and_what_is_null_is_not_sent() {
        let given = json!({ "id": "x/../y", "q": "a&b=c", "tags": ["1", "2"], "name": "Ada", "meta": null });
        let call = exact(Body::Json, given).unwrap();
        assert_eq!(call.path, "/a/x%2F..%2Fy/b?q=a%26b%3Dc&tags=1&tags=2");
        assert_eq!(call.body, json!({ "name": "Ada" }));
        let sent = call.to("https://example.com/base/");
        assert_eq!(
            sent.url,
            "https://example.com/base/a/x%2F..%2Fy/b?q=a%26b%3Dc&tags=1&tags=2"
        );
    }

    #[test]
    fn a_form_is_written_as_a_form() {
        let call = exact(
            Body::Form,
            json!({ "id": "1", "name": "A b", "meta": { "k": "v" } }),
        )
        .unwrap();
        let body = String::from_utf8(call.to("https://e.com").body.unwrap()).unwrap();
        let mut parts: Vec<_> = body.split('&').collect();
        parts.sort_unstable();
        assert_eq!(parts, ["meta[k]=v", "name=A%20b"]);
    }

    #[test]
    fn steps_in_a_path_and_missing_values_are_refused() {
        for bad in [
            json!({ "id": ".." }),
            json!({ "id": "." }),
            json!({ "id": "" }),
            json!({}),
            json!({ "id": "a\nb" }),
        ] {
            assert!(exact(Body::None, bad.clone()).is_err(), "{bad}");
        }
    }
}
