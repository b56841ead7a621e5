//! Whose budget, and where in the store its account lies.

use std::fmt;

use serde::{Deserialize, Serialize};
use superstep_core::store::{Namespace, StoreResult};
use superstep_core::{RunId, ThreadId};

/// Whose budget: a run, all runs of a thread, or all threads of a tenant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(Whose);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Whose {
    Run { thread: ThreadId, run: RunId },
    Thread { thread: ThreadId },
    Tenant { tenant: String },
}

/// How wide a scope is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// One run.
    Run,
    /// All runs of a thread.
    Thread,
    /// All threads of a tenant.
    Tenant,
}

impl Scope {
    /// One run of a thread.
    pub fn run(thread: &ThreadId, run: RunId) -> Self {
        Self(Whose::Run {
            thread: thread.clone(),
            run,
        })
    }

    /// All runs of a thread.
    pub fn thread(thread: &ThreadId) -> Self {
        Self(Whose::Thread {
            thread: thread.clone(),
        })
    }

    /// All threads of the tenant that has this one.
    pub fn tenant(thread: &ThreadId) -> Self {
        Self(Whose::Tenant {
            tenant: thread.tenant().to_owned(),
        })
    }

    /// How wide it is.
    pub fn level(&self) -> Level {
        match &self.0 {
            Whose::Run { .. } => Level::Run,
            Whose::Thread { .. } => Level::Thread,
            Whose::Tenant { .. } => Level::Tenant,
        }
    }

    /// Where its account lies: below the tenant's own, so that all accounts of a tenant are found by one prefix.
    pub(super) fn address(&self) -> StoreResult<(Namespace, String)> {
        let (tenant, below, key) = match &self.0 {
            Whose::Run { thread, run } => (
                thread.tenant(),
                Some("run"),
                format!("{}/{run}", thread.name()),
            ),
            Whose::Thread { thread } => (thread.tenant(), Some("thread"), thread.name().to_owned()),
            Whose::Tenant { tenant } => (tenant.as_str(), None, "tenant".to_owned()),
        };
        let tenant = segment(tenant);
        let root = [ROOT, BUDGETS, &tenant];
        Ok((Namespace::new(root.into_iter().chain(below))?, key))
    }
}

/// Names may hold a dot and segments may not; names hold no colon, so none becomes another's.
fn segment(tenant: &str) -> String {
    if tenant.is_empty() {
        return ":".to_owned();
    }
    tenant.replace('.', ":")
}

/// Everything below is ours. A tool that lets a model write items must keep it out of here.
const ROOT: &str = "superstep";
const BUDGETS: &str = "budgets";

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Whose::Run { thread, run } => write!(f, "run `{run}` of thread `{thread}`"),
            Whose::Thread { thread } => write!(f, "thread `{thread}`"),
            Whose::Tenant { tenant } if tenant.is_empty() => f.write_str("the unnamed tenant"),
            Whose::Tenant { tenant } => write!(f, "tenant `{tenant}`"),
        }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scope({self})")
    }
}
