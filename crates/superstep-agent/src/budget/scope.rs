//! Scopes of budgets, and where in the store their accounts are.

use std::fmt;

use serde::{Deserialize, Serialize};
use superstep_core::store::{Namespace, StoreResult};
use superstep_core::{RunId, ThreadId};

/// What a budget covers: a run, all runs of a thread, or all threads of a tenant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(Whose);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Whose {
    Run { thread: ThreadId, run: RunId },
    Thread { thread: ThreadId },
    Tenant { tenant: String },
}

/// Width of a scope, ordered from narrow to wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A single run.
    Run,
    /// All runs of a thread.
    Thread,
    /// All threads of a tenant.
    Tenant,
}

impl Scope {
    /// Creates the scope of one run of a thread.
    pub fn run(thread: &ThreadId, run: RunId) -> Self {
        Self(Whose::Run {
            thread: thread.clone(),
            run,
        })
    }

    /// Creates the scope of all runs of a thread.
    pub fn thread(thread: &ThreadId) -> Self {
        Self(Whose::Thread {
            thread: thread.clone(),
        })
    }

    /// Creates the scope of all threads of this thread's tenant.
    pub fn tenant(thread: &ThreadId) -> Self {
        Self(Whose::Tenant {
            tenant: thread.tenant().to_owned(),
        })
    }

    /// Returns the width of the scope.
    pub fn level(&self) -> Level {
        match &self.0 {
            Whose::Run { .. } => Level::Run,
            Whose::Thread { .. } => Level::Thread,
            Whose::Tenant { .. } => Level::Tenant,
        }
    }

    /// Returns where the account is stored: below the tenant's namespace, so one prefix finds all accounts of a tenant.
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

/// Tenant names may contain dots and segments may not. Names never contain colons, so no two names map to the same segment.
fn segment(tenant: &str) -> String {
    if tenant.is_empty() {
        return ":".to_owned();
    }
    tenant.replace('.', ":")
}

/// Reserved namespace. A tool that lets a model write items must not let it write here.
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
