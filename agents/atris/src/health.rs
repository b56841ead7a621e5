//! Health of an API: whether its hosts answer, and whether the variable of its key is set.

use serde::Serialize;
use superstep_llm::Secret;

use super::answer;
use super::catalogue::{Catalogue, short_host};
use super::connector::{Call, Connector};

/// Health of one API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApiHealth {
    /// Name of the API.
    pub api: String,
    /// Health of each host, in the order in which they are tried.
    pub hosts: Vec<HostHealth>,
    /// Variable of the key. Absent if the API has no key.
    pub key_variable: Option<String>,
    /// Whether that variable is set. True if the API has no key.
    pub is_key_set: bool,
}

/// Health of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostHealth {
    /// The host, with its port if that is not the default.
    pub host: String,
    /// Status of its answer to a read of its base URL. Any status shows that it is there. Absent if it did not answer.
    pub status: Option<u16>,
    /// Why it did not answer.
    pub error: Option<String>,
}

impl ApiHealth {
    /// Returns whether a call can succeed: a host answers, not with an overload, and the key is set.
    pub fn is_good(&self) -> bool {
        let answers = |host: &HostHealth| host.status.is_some_and(|status| status < 500);
        self.is_key_set && self.hosts.iter().any(answers)
    }
}

/// Reads the base URL of every host once, without the key.
pub async fn check(catalogue: &Catalogue, connector: &Connector) -> ApiHealth {
    let mut hosts = Vec::new();
    for host in &catalogue.hosts {
        let answer = connector.send(Call::get(host), &catalogue.reach()).await;
        hosts.push(match answer {
            Ok(answer) => HostHealth {
                host: short_host(host),
                status: Some(answer.status),
                error: None,
            },
            Err(fault) => HostHealth {
                host: short_host(host),
                status: None,
                error: Some(answer::shown(&fault.to_string())),
            },
        });
    }
    let variable = catalogue.key.as_ref().map(|key| key.variable.clone());
    ApiHealth {
        api: catalogue.name.clone(),
        hosts,
        is_key_set: variable
            .as_deref()
            .is_none_or(|variable| Secret::from_env(variable).is_some()),
        key_variable: variable,
    }
}
