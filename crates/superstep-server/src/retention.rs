//! How long threads are kept whose creators did not say so.

use std::error::Error;
use std::fmt;

use serde::Deserialize;
use superstep::checkpoint::{AtLifetimeEnd, ThreadLifetime};

use crate::wire;

/// How long a server keeps threads that were created without a `ttl`: the first rule that fits a thread decides. A thread that no rule
/// fits is kept until someone deletes it. See [`ServerBuilder::retention`](crate::ServerBuilder::retention).
///
/// ```
/// use superstep_server::RetentionPolicy;
///
/// let policy = r#"{"rules": [
///     {"tenant": "acme", "graph": "contracts", "ttl": null},
///     {"graph": "email_assistant", "ttl": 43200, "strategy": "keep_latest"},
///     {"ttl": 525600}
/// ]}"#;
/// let policy = RetentionPolicy::from_json(policy)?;
/// # Ok::<(), superstep_server::RetentionError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct RetentionPolicy {
    rules: Vec<RetentionRule>,
}

impl RetentionPolicy {
    /// Reads a policy. Each of its `rules` has a `ttl` in minutes, counted from a thread's last change; `null` keeps threads.
    /// `strategy` is `delete`, the default, or `keep_latest`, which drops only the history. `tenant` and `graph` restrict a rule.
    pub fn from_json(text: &str) -> Result<Self, RetentionError> {
        let file: RetentionFile = serde_json::from_str(text).map_err(|error| RetentionError {
            problem: error.to_string(),
        })?;
        let rules = file.rules.into_iter().enumerate().map(|(index, rule)| {
            let invalid = || RetentionError {
                problem: format!(
                    "rule {}: `ttl` is not a positive number of minutes",
                    index + 1
                ),
            };
            Ok(RetentionRule {
                lifetime: match rule.ttl {
                    Some(ttl) => Some(rule.strategy.lifetime(ttl).ok_or_else(invalid)?),
                    None => None,
                },
                tenant: rule.tenant,
                graph: rule.graph,
            })
        });
        Ok(Self {
            rules: rules.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the lifetime of a new thread; `None` for no limit. The graph is empty until the first run decides it, and then only rules
    /// for every graph fit.
    pub(crate) fn lifetime(&self, tenant: &str, graph: &str) -> Option<ThreadLifetime> {
        let mut rules = self.rules.iter();
        rules.find(|rule| rule.fits(tenant, graph))?.lifetime
    }

    /// Returns the lifetime to store for one that a caller chose. It is a millisecond longer than what this policy gives a thread whose
    /// graph is not decided, if the two are equal: the first run replaces only the latter.
    pub(crate) fn chosen(&self, tenant: &str, chosen: ThreadLifetime) -> ThreadLifetime {
        let is_ambiguous = self.lifetime(tenant, "") == Some(chosen);
        ThreadLifetime {
            ms: chosen.ms.saturating_add(u64::from(is_ambiguous)),
            ..chosen
        }
    }

    /// Returns what to change in the lifetime of a thread whose graph was just decided; `None` for nothing. A lifetime that this policy
    /// did not give the thread before is the creator's, and stays.
    pub(crate) fn lifetime_with_graph(
        &self,
        tenant: &str,
        graph: &str,
        now: Option<ThreadLifetime>,
    ) -> Option<Option<ThreadLifetime>> {
        let is_ours = now.is_none() || now == self.lifetime(tenant, "");
        let wanted = self.lifetime(tenant, graph);
        (is_ours && wanted != now).then_some(wanted)
    }
}

#[derive(Debug, Clone)]
struct RetentionRule {
    /// `None` for every tenant.
    tenant: Option<String>,
    /// `None` for every graph.
    graph: Option<String>,
    lifetime: Option<ThreadLifetime>,
}

impl RetentionRule {
    fn fits(&self, tenant: &str, graph: &str) -> bool {
        self.tenant.as_ref().is_none_or(|of| of == tenant)
            && self.graph.as_ref().is_none_or(|of| of == graph)
    }
}

/// Why a retention policy cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionError {
    problem: String,
}

impl fmt::Display for RetentionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl Error for RetentionError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetentionFile {
    rules: Vec<RuleBody>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleBody {
    #[serde(default)]
    tenant: Option<String>,
    #[serde(default)]
    graph: Option<String>,
    // Must be there: a rule that forgets it would keep threads for ever.
    #[serde(deserialize_with = "Option::deserialize")]
    ttl: Option<f64>,
    #[serde(default)]
    strategy: TtlStrategy,
}

/// What happens to a thread at the end of its lifetime, in the words of LangGraph's server.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TtlStrategy {
    #[default]
    Delete,
    KeepLatest,
}

impl TtlStrategy {
    /// Returns a lifetime of so many minutes; `None` for a number that is not positive.
    pub(crate) fn lifetime(self, minutes: f64) -> Option<ThreadLifetime> {
        Some(ThreadLifetime {
            ms: wire::minutes(minutes)?,
            at_end: match self {
                TtlStrategy::Delete => AtLifetimeEnd::Delete,
                TtlStrategy::KeepLatest => AtLifetimeEnd::KeepLatest,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        RetentionPolicy::from_json(text).unwrap_err().to_string()
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let policy = r#"{"rules": [
            {"tenant": "acme", "graph": "contracts", "ttl": null},
            {"graph": "mail", "ttl": 2, "strategy": "keep_latest"},
            {"tenant": "acme", "ttl": 1}
        ]}"#;
        let policy = RetentionPolicy::from_json(policy).unwrap();
        let ms = |tenant, graph| policy.lifetime(tenant, graph).map(|found| found.ms);
        assert_eq!(ms("acme", "contracts"), None);
        assert_eq!(ms("acme", "mail"), Some(120_000));
        assert_eq!(ms("globex", "mail"), Some(120_000));
        assert_eq!(ms("acme", "chat"), Some(60_000));
        assert_eq!(ms("acme", ""), Some(60_000));
        assert_eq!(ms("globex", "chat"), None);
    }

    #[test]
    fn what_the_creator_said_stays() {
        let policy =
            RetentionPolicy::from_json(r#"{"rules": [{"graph": "mail", "ttl": 2}, {"ttl": 9}]}"#)
                .unwrap();
        let any = policy.lifetime("", "");
        let of_mail = policy.lifetime("", "mail");
        assert_eq!(policy.lifetime_with_graph("", "mail", any), Some(of_mail));
        assert_eq!(policy.lifetime_with_graph("", "mail", None), Some(of_mail));
        assert_eq!(policy.lifetime_with_graph("", "mail", of_mail), None);
        let own = TtlStrategy::KeepLatest.lifetime(2.0);
        assert_eq!(policy.lifetime_with_graph("", "mail", own), None);
        // Also if a rule says the same.
        let own = policy.chosen("", any.unwrap());
        assert_eq!(own.ms, any.unwrap().ms + 1);
        assert_eq!(policy.lifetime_with_graph("", "mail", Some(own)), None);
        let own = policy.chosen("", of_mail.unwrap());
        assert_eq!(Some(own), of_mail);
        assert_eq!(policy.lifetime_with_graph("", "chat", Some(own)), None);
    }

    #[test]
    fn a_file_that_says_less_than_it_seems_to_is_refused() {
        assert!(problem(r#"{"rules": [{"graph": "mail"}]}"#).contains("missing field `ttl`"));
        assert!(problem(r#"{"rules": [{"ttl": 1, "tenat": "acme"}]}"#).contains("tenat"));
        assert!(problem("{}").contains("rules"));
        let zero = problem(r#"{"rules": [{"ttl": 1}, {"ttl": 0}]}"#);
        assert_eq!(zero, "rule 2: `ttl` is not a positive number of minutes");
    }
}
