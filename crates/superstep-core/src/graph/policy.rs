//! Rules as data: retries, timeouts, caching, what happens to siblings. The state machine applies them; drivers have no policy.

use std::time::Duration;

use crate::ids::{NodeName, TaskId};

/// When and how often a failed node is retried.
///
/// ```
/// use std::time::Duration;
/// use superstep_core::RetryPolicy;
///
/// let default = RetryPolicy::default();
/// let patient = RetryPolicy { attempts_max: 20, wait_max_ms: 600_000, ..RetryPolicy::default() };
/// let steady = RetryPolicy::attempts(5).every(Duration::from_secs(2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// Highest number of attempts, the first one included. Default: 3.
    pub attempts_max: u32,
    /// Wait before the second attempt, in milliseconds. Default: 500.
    pub initial_ms: u64,
    /// Factor by which the wait grows with each attempt. Default: 2.
    pub factor: f64,
    /// Longest wait before jitter, in milliseconds. Default: 128,000.
    pub wait_max_ms: u64,
    /// Upper bound of the jitter added to each wait, in milliseconds. The jitter is derived from the task, so that siblings do
    /// not retry in lockstep. Default: 1,000.
    pub jitter_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 3,
            initial_ms: 500,
            factor: 2.0,
            wait_max_ms: 128_000,
            jitter_ms: 1_000,
        }
    }
}

impl RetryPolicy {
    /// Creates a policy with this many attempts and the default waits.
    pub fn attempts(attempts_max: u32) -> Self {
        Self {
            attempts_max,
            ..Self::default()
        }
    }

    /// Sets a constant wait before each further attempt, without growth or jitter.
    #[must_use]
    pub fn every(mut self, wait: Duration) -> Self {
        self.initial_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.factor = 1.0;
        self.jitter_ms = 0;
        self
    }

    /// Returns how long to wait after this many failed attempts, or `None` if no attempt is left.
    pub(crate) fn wait_ms(&self, task: TaskId, failed: u32) -> Option<u64> {
        if failed >= self.attempts_max {
            return None;
        }
        let grown = self.initial_ms as f64
            * self
                .factor
                .powi(i32::try_from(failed.saturating_sub(1)).unwrap_or(i32::MAX));
        // `as` saturates, which is right for a limit.
        let wait = (grown as u64).min(self.wait_max_ms);
        let entropy = u64::from_le_bytes(
            task.to_bytes()[..8]
                .try_into()
                .expect("eight of sixteen bytes"),
        );
        let jitter = entropy
            .rotate_left(failed)
            .checked_rem(self.jitter_ms)
            .unwrap_or(0);
        Some(wait + jitter)
    }
}

/// How long one attempt of a node may take. Default: no limit.
///
/// ```
/// use std::time::Duration;
/// use superstep_core::Timeout;
///
/// let limits = Timeout { idle_ms: Some(30_000), ..Timeout::run(Duration::from_secs(600)) };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timeout {
    /// Longest duration of the attempt, in milliseconds; `None` for no limit.
    pub run_ms: Option<u64>,
    /// Longest time without a sign of life (a step, an event, a heartbeat), in milliseconds; `None` for no limit.
    pub idle_ms: Option<u64>,
}

impl Timeout {
    /// Limits the duration of the whole attempt.
    pub fn run(limit: Duration) -> Self {
        Self {
            run_ms: Some(millis(limit)),
            idle_ms: None,
        }
    }

    /// Limits the time without a sign of life.
    pub fn idle(limit: Duration) -> Self {
        Self {
            run_ms: None,
            idle_ms: Some(millis(limit)),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What happens to the other tasks of a superstep when one has failed permanently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Siblings {
    /// They finish, their results are kept, and the run reports all failures together.
    #[default]
    Finish,
    /// They are dropped at once. Results that already exist are kept.
    Cancel,
}

/// How long the state of a subgraph lives. Set it with [`GraphBuilder::life`](crate::GraphBuilder::life).
///
/// ```
/// use superstep_core::SubgraphLife;
/// # use superstep_core::{Command, END, Failed, Goto, Graph, Interrupt, NodeCx, NodeError, START, SendTo, State, View};
/// # #[derive(Clone, Debug, Default, State)]
/// # #[state(crate = superstep_core)]
/// # struct Essay { topic: String, #[state(append)] parts: Vec<String>, score: u8 }
/// # async fn step(_: View<Essay>, _: NodeCx) -> Result<EssayUpdate, NodeError> { Ok(EssayUpdate::default()) }
/// # let chat = Graph::builder("chat").node("reply", step).edge(START, "reply").edge("reply", END).build()?;
/// # let down = |_: &Essay| EssayUpdate::default();
/// # let up = |_: &Essay, _: &Essay| EssayUpdate::default();
/// let graph = Graph::builder("essay")
///     .subgraph("chat", chat, down, up)
///     // Each run of the thread continues the chat.
///     .life("chat", SubgraphLife::Thread)
///     .edge(START, "chat")
///     .edge("chat", END)
///     .build()?;
/// # Ok::<(), superstep_core::error::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SubgraphLife {
    /// As long as one invocation. The subgraph can pause and survives a crash.
    #[default]
    Invocation,
    /// As long as the thread: the next invocation continues with the state of the last.
    Thread,
    /// Nothing of it is stored: the subgraph cannot pause, and a crash starts it again.
    Stateless,
}

/// Where to find a cached result: what the node's cache function returned, scoped to the graph and the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheKey {
    /// Key, unique to graph, node, input and tenant.
    pub key: String,
    /// How long the result may be reused, in milliseconds; `None` for no limit.
    pub ttl_ms: Option<u64>,
}

/// What a key says besides what the node's cache function returned.
pub(crate) struct CacheScope<'a> {
    pub(crate) graph: &'a str,
    pub(crate) node: &'a NodeName,
    /// Version of the graph's state.
    pub(crate) version: u32,
    /// Hash of the payload; 0 without one.
    pub(crate) payload: u128,
    pub(crate) tenant: &'a str,
}

impl CacheScope<'_> {
    /// Returns the key of a result. No name contains the `/` and `@` between them, so [`CacheKey::tenant_of`] can read it.
    pub(crate) fn key(&self, own: &str) -> String {
        let tenant = match self.tenant {
            "" => String::new(),
            tenant => format!("@{tenant}"),
        };
        let Self {
            graph,
            node,
            version,
            payload,
            ..
        } = self;
        format!("{graph}/{node}/v{version}/{payload:032x}{tenant}/{own}")
    }
}

impl CacheKey {
    /// Returns the tenant to whose threads a key belongs, empty for the unnamed one; `None` if the key is not of a node. For caches,
    /// which delete the results of a tenant.
    pub fn tenant_of(key: &str) -> Option<&str> {
        let mut parts = key.splitn(5, '/');
        let payload = parts.nth(3)?;
        parts.next()?;
        let (hash, tenant) = payload.split_at_checked(PAYLOAD_DIGITS)?;
        if !hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        match tenant.strip_prefix('@') {
            Some(tenant) => (!tenant.is_empty()).then_some(tenant),
            None => tenant.is_empty().then_some(tenant),
        }
    }
}

/// Number of digits of a payload's hash in a key.
const PAYLOAD_DIGITS: usize = 32;

#[test]
fn a_key_says_whose_result_it_is() {
    let node = NodeName::new("find").expect("a node name");
    let key = |tenant, own| {
        let scope = CacheScope {
            graph: "lookup",
            node: &node,
            version: 3,
            payload: 7,
            tenant,
        };
        scope.key(own)
    };
    assert_eq!(
        key("acme", "Oslo"),
        "lookup/find/v3/00000000000000000000000000000007@acme/Oslo"
    );
    for own in ["", "Oslo", "/", "a/b@globex/c"] {
        for tenant in ["", "acme", "acme-corp", "A.b_c-1"] {
            let key = key(tenant, own);
            assert_eq!(CacheKey::tenant_of(&key), Some(tenant), "{key}");
        }
    }
    for other in ["", "a/b/c/@acme/d", "a/b/c/d@acme", "lookup/find/"] {
        assert_eq!(CacheKey::tenant_of(other), None, "{other}");
    }
}
