//! Reads from an API: tries its hosts, records good answers, and answers from these records when offline.

use std::sync::Arc;

use archie_agent::clock::now;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep::store::{Namespace, PutItem, Store, StoreError, TenantStore};
use superstep::{NodeCx, NodeError};
use superstep_agent::digest;
use superstep_llm::Secret;

use super::answer;
use super::backoff;
use super::call::ExactCall;
use super::catalogue::{Catalogue, short_host};
use crate::connector::{Answer, Call, Connector, Credential, Fault};

/// Client of the APIs, shared by the nodes.
#[derive(Clone)]
pub(super) struct ApiClient {
    pub(super) connector: Connector,
    pub(super) store: Arc<dyn Store>,
    /// Whether to answer only from recorded answers.
    pub(super) offline: bool,
}

/// Outcome of a read, as a step records it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReadOutcome {
    /// A server answered, with any status.
    Answered {
        status: u16,
        /// Host that answered, without its scheme and path.
        host: String,
        body: Json,
    },
    /// No usable answer: no host could be reached, all of them are overloaded, or none is recorded while offline.
    Failed { why: String },
}

impl ApiClient {
    /// Returns a client that records and replays the answers of this thread's tenant.
    pub(super) fn of_tenant(&self, cx: &NodeCx) -> Self {
        Self {
            store: Arc::new(TenantStore::new(self.store.clone(), cx.thread())),
            ..self.clone()
        }
    }

    /// Reads from the host that answered last, then from the others. Records an answer with a 2xx status.
    pub(super) async fn read(
        &self,
        catalogue: &Catalogue,
        exact: &ExactCall,
        selected: Option<&str>,
    ) -> Result<ReadOutcome, NodeError> {
        if self.offline {
            return self.recorded(catalogue, exact).await;
        }
        let read = self.ask_hosts(catalogue, exact, selected).await;
        if let ReadOutcome::Answered {
            status: 200..=299, ..
        } = &read
        {
            self.record(catalogue, exact, &read).await?;
        }
        Ok(read)
    }

    async fn ask_hosts(
        &self,
        catalogue: &Catalogue,
        exact: &ExactCall,
        selected: Option<&str>,
    ) -> ReadOutcome {
        let first = catalogue.host(selected);
        let others = catalogue
            .hosts
            .iter()
            .map(String::as_str)
            .filter(|host| Some(*host) != first);
        let hosts: Vec<&str> = first.into_iter().chain(others).collect();
        let mut why = "this API has no host".to_owned();
        let mut retry_after = None;
        for round in 0..ROUNDS {
            if round > 0 {
                match backoff::wait(round, retry_after.take(), backoff::entropy()) {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => break,
                }
            }
            for host in &hosts {
                match self
                    .connector
                    .send(self.call(catalogue, exact, host), &catalogue.reach())
                    .await
                {
                    Ok(answer) if is_down(answer.status) => {
                        why = format!("{} answered {}", short_host(host), answer.status);
                        if let Some(asked) = answer.retry_after {
                            why = format!("{why} and asks to wait {} seconds", asked.as_secs());
                            // The first host that is ready again is asked.
                            retry_after = Some(retry_after.map_or(asked, |other| other.min(asked)));
                        }
                    }
                    Ok(answer) => {
                        return ReadOutcome::Answered {
                            status: answer.status,
                            host: short_host(host),
                            body: body(&answer),
                        };
                    }
                    Err(Fault::Refused(refused)) if hosts.len() == 1 => {
                        return ReadOutcome::Failed { why: refused };
                    }
                    Err(fault) => why = format!("{}: {fault}", short_host(host)),
                }
            }
        }
        ReadOutcome::Failed { why }
    }

    /// Creates the call to a host, with the API's credential. The connector decides whether the secret may go there.
    pub(super) fn call(&self, catalogue: &Catalogue, exact: &ExactCall, host: &str) -> Call {
        let mut call = exact.to(host);
        call.credential = catalogue.key.as_ref().and_then(|key| {
            Some(Credential {
                origin: key.origin.clone(),
                header: key.header.clone(),
                prefix: key.prefix.clone(),
                secret: Secret::from_env(&key.variable)?.expose().to_owned(),
            })
        });
        call
    }

    async fn recorded(
        &self,
        catalogue: &Catalogue,
        exact: &ExactCall,
    ) -> Result<ReadOutcome, NodeError> {
        let place = cassettes(&catalogue.name)?;
        let found = self.store.get(&place, &key(exact), now()).await?;
        let read = found
            .map(|item| serde_json::from_value(item.value["read"].clone()))
            .transpose()?;
        Ok(read.unwrap_or_else(|| ReadOutcome::Failed {
            why: format!(
                "offline, and {} {} was never answered before",
                exact.method,
                answer::shown(&exact.path)
            ),
        }))
    }

    async fn record(
        &self,
        catalogue: &Catalogue,
        exact: &ExactCall,
        read: &ReadOutcome,
    ) -> Result<(), NodeError> {
        let put = recording(&catalogue.name, exact, read)?;
        self.store.put(&put, now()).await?;
        Ok(())
    }
}

/// Returns the body of an answer as JSON, as a string if it is not JSON, or null if it is empty.
pub(super) fn body(answer: &Answer) -> Json {
    if answer.body.is_empty() {
        return Json::Null;
    }
    serde_json::from_slice(&answer.body)
        .unwrap_or_else(|_| json!(String::from_utf8_lossy(&answer.body)))
}

/// Returns a one-line message for an answer that reports an error, with what to do if the key may be the reason.
pub(super) fn complaint(catalogue: &Catalogue, status: u16, body: &Json) -> String {
    let said = ["message", "error", "detail", "title"]
        .iter()
        .find_map(|name| match &body[*name] {
            Json::String(text) => Some(text.clone()),
            inner => inner["message"].as_str().map(str::to_owned),
        });
    let mut words = format!("the server answered {status}");
    if let Some(said) = said {
        words = format!("{words}: {}", answer::shown(&said));
    }
    match missing_key(catalogue).or_else(|| refused_key(catalogue, status)) {
        Some(note) => format!("{words}; {note}"),
        None => words,
    }
}

/// Names the variable of the API's key if it is not set.
pub(super) fn missing_key(catalogue: &Catalogue) -> Option<String> {
    let variable = &catalogue.key.as_ref()?.variable;
    let is_missing = Secret::from_env(variable).is_none();
    is_missing.then(|| format!("`{variable}` is not set, so the call has no key"))
}

/// Says what to do about the key if the server refused it.
fn refused_key(catalogue: &Catalogue, status: u16) -> Option<String> {
    let note = match &catalogue.key {
        Some(key) => format!("check the key in `{}`", key.variable),
        None => format!(
            "if `{}` needs a key, add it again with `--key-env VARIABLE`",
            catalogue.name
        ),
    };
    matches!(status, 401 | 403).then_some(note)
}

/// Returns whether another host may answer better.
fn is_down(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

/// Returns the store item for a recorded answer.
fn recording(api: &str, exact: &ExactCall, read: &ReadOutcome) -> Result<PutItem, StoreError> {
    Ok(PutItem {
        namespace: cassettes(api)?,
        key: key(exact),
        value: json!({ "method": exact.method, "path": exact.path, "read": read }),
        ttl: None,
    })
}

/// Records an answer to a read of this path, for use offline.
pub async fn record_answer(
    store: &dyn Store,
    api: &str,
    path: &str,
    body: Json,
) -> Result<(), StoreError> {
    let read = ReadOutcome::Answered {
        status: 200,
        host: api.to_owned(),
        body,
    };
    let put = recording(api, &ExactCall::read(path), &read)?;
    store.put(&put, now()).await
}

fn cassettes(api: &str) -> Result<Namespace, StoreError> {
    Namespace::new(["archie", "cassettes", api])
}

/// Returns the key of a call. It does not depend on the host.
fn key(exact: &ExactCall) -> String {
    digest(
        &exact.method,
        &json!([exact.path, exact.headers, exact.body]),
    )
}

/// How often all hosts are tried.
const ROUNDS: u32 = 3;
