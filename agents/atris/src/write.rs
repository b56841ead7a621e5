//! Calls that change something: a person approves the exact call before the program makes it. If the outcome is unknown, a
//! person is asked, unless the API deduplicates calls by their idempotency key.

use std::collections::BTreeMap;

use archie_agent::interrupt::InterruptRequest;
use archie_agent::printable::counted;
use archie_agent::printable::{one_line, printable};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep::NodeError;
use superstep_agent::{Approval, Tool, ToolError, ToolOutput};
use superstep_llm::ToolSpec;

use super::answer;
use super::api_client::{self, ApiClient};
use super::call::ExactCall;
use super::catalogue::{Api, Body, Catalogue};
use super::headers;
use crate::connector::{Fault, Origin};

/// Name of the tool, as an inbox shows it.
pub(super) const CALL_API: &str = "call_api";

/// Describes an interrupt to a person. The description of a call is complete, so its arguments are not shown again.
pub(super) fn describe(asked: &InterruptRequest) -> String {
    let is_call = asked.kind == "approval" && asked.request["action_request"]["action"] == CALL_API;
    match asked.request["description"].as_str() {
        Some(described) if is_call => described.to_owned(),
        _ => asked.words(),
    }
}

/// What a person approves: the exact call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ApprovedCall {
    pub(super) method: String,
    pub(super) url: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub(super) body: Json,
}

impl ApprovedCall {
    pub(super) fn new(exact: &ExactCall, host: &str) -> Self {
        Self {
            method: exact.method.clone(),
            url: exact.url(host),
            headers: exact.headers.clone(),
            body: exact.body.clone(),
        }
    }
}

/// Outcome of the call, as the tool returns it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CallReceipt {
    pub(super) status: u16,
    pub(super) host: String,
    pub(super) body: Json,
}

/// Creates the tool that makes this call of an API. A person must approve each use.
pub(super) fn tool(
    catalogue: &Catalogue,
    api: &Api,
    api_client: &ApiClient,
) -> Result<Tool, NodeError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "method": { "type": "string", "enum": [api.method] },
            "url": { "type": "string", "maxLength": 8_000 },
            "headers": { "type": "object" },
            "body": {},
        },
        "required": ["method", "url"],
        "additionalProperties": false,
    });
    let spec = ToolSpec {
        name: CALL_API.to_owned(),
        description: format!("{} of {}", api.tool_name, catalogue.title),
        schema,
    };
    let (keyed, written) = (catalogue.keyed, api.body);
    let added = added_headers(catalogue, written);
    let (catalogue, template, api_client) =
        (catalogue.clone(), api.api_url.clone(), api_client.clone());
    let tool = Tool::raw(spec, move |args, cx| {
        let (catalogue, template, api_client) =
            (catalogue.clone(), template.clone(), api_client.clone());
        Box::pin(async move {
            let approved: ApprovedCall = serde_json::from_value(args).map_err(ToolError::failed)?;
            let made = make(
                &api_client,
                &catalogue,
                &template,
                written,
                approved,
                cx.idempotency_key(),
            )
            .await?;
            ToolOutput::of(&made).map_err(ToolError::unknown)
        })
    });
    // A server that does not deduplicate by our key could make the change twice. Unless the catalogue says that it does, a
    // person is asked when the outcome is unknown.
    let tool = if keyed { tool.keyed() } else { tool };
    let described = move |args: &Json| described(args, &added, written);
    Ok(tool.approved_by_a_person(Approval::always().without_response().described(described)))
}

/// Returns the headers that the program adds, as a person sees them: with placeholders for the secret and for the key, which
/// does not exist yet.
fn added_headers(catalogue: &Catalogue, written: Body) -> Vec<(String, String)> {
    let mut added = vec![("accept".to_owned(), "application/json".to_owned())];
    if let Some(kind) = written.content_type() {
        added.push(("content-type".to_owned(), kind.to_owned()));
    }
    added.push(("idempotency-key".to_owned(), "(of this call)".to_owned()));
    if let Some(key) = &catalogue.key {
        let value = format!("{}(the secret in {})", key.prefix, key.variable);
        added.push((key.header.clone(), value));
    }
    added
}

async fn make(
    api_client: &ApiClient,
    catalogue: &Catalogue,
    template: &str,
    written: Body,
    approved: ApprovedCall,
    key: &str,
) -> Result<CallReceipt, ToolError> {
    if api_client.offline {
        return Err(ToolError::failed("offline: nothing is changed"));
    }
    let (base, path) = split(catalogue, &approved.url).map_err(ToolError::failed)?;
    if !fits(template, path) {
        return Err(ToolError::failed(format!(
            "{} is not an address of this call, {template}",
            answer::shown(path)
        )));
    }
    if let Some(name) = approved
        .headers
        .keys()
        .find(|name| !headers::may_be_a_parameter(name))
    {
        return Err(ToolError::failed(format!(
            "the header `{}` cannot be set here; leave it out",
            answer::shown(name)
        )));
    }
    let exact = ExactCall {
        method: approved.method,
        path: path.to_owned(),
        headers: approved.headers,
        body: approved.body,
        written,
    };
    let mut call = api_client.call(catalogue, &exact, base);
    call.headers
        .push(("idempotency-key".to_owned(), key.to_owned()));
    let answer = api_client.connector.send(call, &catalogue.reach()).await;
    let answer = answer.map_err(|fault| match fault {
        Fault::Refused(why) | Fault::NotSent(why) => ToolError::failed(why),
        Fault::Unknown(why) => ToolError::unknown(why),
    })?;
    let body = api_client::body(&answer);
    match answer.status {
        200..=299 => Ok(CallReceipt {
            status: answer.status,
            host: super::catalogue::short_host(base),
            body,
        }),
        // The server examined the call and refused it.
        status @ (300..=407 | 409..=499) => Err(ToolError::failed(api_client::complaint(
            catalogue, status, &body,
        ))),
        status => Err(ToolError::unknown(api_client::complaint(
            catalogue, status, &body,
        ))),
    }
}

/// Splits a URL into the base URL of one of the API's hosts and the rest.
fn split<'a>(catalogue: &'a Catalogue, url: &'a str) -> Result<(&'a str, &'a str), String> {
    let lies_behind = |base: &&'a String| {
        let bare = base.trim_end_matches('/');
        url.strip_prefix(bare)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    let base = catalogue.hosts.iter().find(lies_behind);
    let base =
        base.ok_or_else(|| format!("{} is not behind a host of this API", answer::shown(url)))?;
    // Compares the parsed origins, because the URL parser decides where the call goes.
    if url.parse::<Origin>().ok() != base.parse::<Origin>().ok() {
        return Err(format!(
            "{} is not behind a host of this API",
            answer::shown(url)
        ));
    }
    Ok((base, &url[base.trim_end_matches('/').len()..]))
}

/// Returns whether a path fits the template of the call. A person may change its parameters, but not which call it is.
fn fits(template: &str, path: &str) -> bool {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let (wanted, given): (Vec<_>, Vec<_>) =
        (template.split('/').collect(), path.split('/').collect());
    let is_step = |part: &str| {
        [".", "..", "%2e", "%2e%2e", ".%2e", "%2e."].contains(&part.to_ascii_lowercase().as_str())
    };
    wanted.len() == given.len()
        && wanted
            .iter()
            .zip(given)
            .all(|(wanted, given)| match wanted.contains('{') {
                true => !given.is_empty() && !is_step(given),
                false => *wanted == given,
            })
}

/// Describes the exact call to a person, with placeholders only for the secret and the idempotency key.
fn described(args: &Json, added: &[(String, String)], written: Body) -> String {
    let text = |name: &str| args[name].as_str().unwrap_or_default().to_owned();
    let mut lines = vec![one_line(&format!("{} {}", text("method"), text("url")))];
    for (name, value) in args["headers"].as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        lines.push(one_line(&format!("{name}: {value}")));
    }
    let has_body = !args["body"].is_null();
    for (name, value) in added {
        if has_body || name != "content-type" {
            lines.push(format!("{name}: {value}"));
        }
    }
    if has_body {
        let bytes = written.encode(&args["body"]).map_or(0, |body| body.len());
        lines.push(format!("{} of body:", counted(bytes, "byte")));
        lines.push(
            serde_json::to_string_pretty(&args["body"])
                .unwrap_or_else(|_| args["body"].to_string()),
        );
    }
    format!(
        "This call changes something and has not been made:\n{}",
        printable(&lines.join("\n"))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_address_stays_behind_the_host_and_with_the_call() {
        let mut catalogue = super::super::catalogue_store::audius();
        catalogue.hosts = vec!["https://api.example.com/v2".to_owned()];
        let split = |url: &'static str| split(&catalogue, url).map(|(_, path)| path.to_owned());
        assert_eq!(split("https://api.example.com/v2/a/1").unwrap(), "/a/1");
        for bad in [
            "https://api.example.com.evil.org/v2/a/1",
            "https://api.example.com/v2@evil.org/a",
            "http://api.example.com/v2/a/1",
            "https://evil.org/",
        ] {
            assert!(split(bad).is_err(), "{bad}");
        }
        assert!(fits("/a/{id}/b", "/a/7/b?x=1"));
        for bad in [
            "/a/7/c",
            "/a/7",
            "/a//b",
            "/a/../b",
            "/a/%2e%2E/b",
            "/a/7/b/../../admin",
        ] {
            assert!(!fits("/a/{id}/b", bad), "{bad}");
        }
    }
}
