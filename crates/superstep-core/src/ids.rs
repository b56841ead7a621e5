//! Names and ids. Each is a type that only parsing or derivation can create.
//!
//! Nothing here is random: ids of tasks and interrupts are derived from their position in the history, so a replay on another
//! machine derives the same ones.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::error::NameError;

/// Where every graph begins. Edges and routes may leave it; none may lead to it.
pub const START: &str = "__start__";
/// Where a path of a graph ends. Going there runs nothing.
pub const END: &str = "__end__";

/// The name of a node: 1 to 64 bytes of `[A-Za-z0-9_-]`, without a leading `__`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(Arc<str>);

impl NodeName {
    /// Longest name, in bytes.
    pub const BYTES_MAX: usize = 64;

    /// Parses a name, and refuses one that breaks the rule above.
    pub fn new(name: &str) -> Result<Self, NameError> {
        if is_node_name(name) {
            Ok(Self(name.into()))
        } else {
            Err(NameError::Node {
                name: shorten(name),
            })
        }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns where the text is. Clones of a name have the same address; other names of the same text have another.
    pub(crate) fn address(&self) -> usize {
        self.0.as_ptr().addr()
    }
}

/// Whether `name` may name a node. A `const fn`, so that an invalid name in a constant does not compile.
pub(crate) const fn is_node_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() > NodeName::BYTES_MAX {
        return false;
    }
    if bytes.len() >= 2 && bytes[0] == b'_' && bytes[1] == b'_' {
        return false;
    }
    let mut i = 0;
    while i < bytes.len() {
        if !matches!(bytes[i], b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-') {
            return false;
        }
        i += 1;
    }
    true
}

/// The id of a thread: its tenant and its name.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ThreadId {
    tenant: Arc<str>,
    name: Arc<str>,
}

impl ThreadId {
    /// Longest name of a thread or tenant, in bytes.
    pub const BYTES_MAX: usize = 128;

    /// Creates the id of a thread of the unnamed tenant, for programs without tenants.
    pub fn new(name: &str) -> Result<Self, NameError> {
        Self::of_tenant("", name)
    }

    /// Creates the id of a thread of a tenant. The empty tenant is the unnamed one.
    pub fn of_tenant(tenant: &str, name: &str) -> Result<Self, NameError> {
        if !is_tenant(tenant) {
            return Err(NameError::Tenant {
                name: shorten(tenant),
            });
        }
        if !is_address_part(name) {
            return Err(NameError::Thread {
                name: shorten(name),
            });
        }
        Ok(Self {
            tenant: tenant.into(),
            name: name.into(),
        })
    }

    /// Returns the tenant that owns the thread; empty for the unnamed one.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Returns the thread's name, without the tenant.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// By tenant, then by name.
impl Ord for ThreadId {
    fn cmp(&self, other: &Self) -> Ordering {
        // Most programs have no tenants, and searching a map compares many ids.
        let tenants = match self.tenant.is_empty() && other.tenant.is_empty() {
            true => Ordering::Equal,
            false => self.tenant.cmp(&other.tenant),
        };
        tenants.then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for ThreadId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Whether `tenant` may name a tenant. The empty name is the unnamed tenant's.
pub(crate) fn is_tenant(tenant: &str) -> bool {
    tenant.is_empty() || is_address_part(tenant)
}

fn is_address_part(part: &str) -> bool {
    (1..=ThreadId::BYTES_MAX).contains(&part.len())
        && part != "."
        && part != ".."
        && part
            .bytes()
            .all(|b| matches!(b, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.'))
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.tenant.is_empty() {
            write!(f, "{}/", self.tenant)?;
        }
        f.write_str(&self.name)
    }
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ThreadId({self})")
    }
}

impl FromStr for ThreadId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        match text.split_once('/') {
            Some((tenant, name)) if !tenant.is_empty() => Self::of_tenant(tenant, name),
            _ => Self::new(text),
        }
    }
}

impl TryFrom<&str> for ThreadId {
    type Error = NameError;

    fn try_from(text: &str) -> Result<Self, NameError> {
        text.parse()
    }
}

impl Serialize for ThreadId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ThreadId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let address = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        address.parse().map_err(serde::de::Error::custom)
    }
}

impl PartialEq<str> for NodeName {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for NodeName {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self.0)
    }
}

impl std::borrow::Borrow<str> for NodeName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Serialize for NodeName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for NodeName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        NodeName::new(&name).map_err(serde::de::Error::custom)
    }
}

/// Defines a 128-bit id, written as 32 hexadecimal digits.
macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name([u8; 16]);

        impl $name {
            /// Returns the id as bytes, for a store to keep.
            pub const fn to_bytes(self) -> [u8; 16] {
                self.0
            }

            /// Creates the id from bytes that a store kept.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", u128::from_be_bytes(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                let canonical = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
                match u128::from_str_radix(text, 16) {
                    Ok(id) if canonical => Ok(Self(id.to_be_bytes())),
                    _ => Err(NameError::Id { kind: stringify!($name), text: shorten(text) }),
                }
            }
        }

        impl TryFrom<&str> for $name {
            type Error = NameError;

            fn try_from(text: &str) -> Result<Self, NameError> {
                text.parse()
            }
        }
    };
}

hex_id! {
    /// Id of one run of a thread. Given by the caller, or derived from the thread, its sequence number and its epoch.
    RunId
}
hex_id! {
    /// Id of one node in one superstep. The same across retries, resumes, workers and upgrades; new on a fork.
    TaskId
}
hex_id! {
    /// Id of an interrupt. Derived from its task and the key that the node gave it.
    InterruptId
}

hex_id! {
    /// Id of an assistant: a graph with a configuration.
    AssistantId
}

hex_id! {
    /// Id of a cron: a request for runs that repeats on a schedule.
    CronId
}

hex_id! {
    /// Id of an API key.
    ApiKeyId
}

hex_id! {
    /// Id of a delivery to a webhook.
    DeliveryId
}

impl RunId {
    /// Returns the id of the run that this key names on a thread. The same key on another thread is another run.
    pub fn of_key(thread: &ThreadId, key: &str) -> Self {
        let parts = [&thread.tenant, &thread.name, key].map(|part: &str| part.as_bytes());
        Self(derive("run key", &parts))
    }

    /// Returns the id of the run that a tick of a cron makes: one id, however many processes fire the tick.
    pub fn of_tick(tenant: &str, cron: CronId, due: Timestamp) -> Self {
        Self(derive(
            "tick",
            &[tenant.as_bytes(), &cron.0, &due.0.to_le_bytes()],
        ))
    }

    pub(crate) fn derive(thread: &ThreadId, seq: Seq, epoch: Epoch) -> Self {
        Self(derive(
            "run",
            &[
                thread.tenant.as_bytes(),
                thread.name.as_bytes(),
                &seq.0.to_le_bytes(),
                &epoch.0.to_le_bytes(),
            ],
        ))
    }
}

impl TaskId {
    pub(crate) fn derive(place: &TaskPlace<'_>) -> Self {
        let mut frame = Vec::new();
        for segment in place.frame.segments() {
            frame.extend_from_slice(segment.node.as_str().as_bytes());
            frame.push(0);
            frame.extend_from_slice(&segment.task.map_or([0; 16], TaskId::to_bytes));
        }
        Self(derive(
            "task",
            &[
                place.thread.tenant.as_bytes(),
                place.thread.name.as_bytes(),
                &place.branch.0.to_le_bytes(),
                &frame,
                &place.step.to_le_bytes(),
                place.node.as_str().as_bytes(),
                &place.index.to_le_bytes(),
            ],
        ))
    }
}

/// The position of a task in the history: everything its id is derived from.
#[derive(Debug)]
pub(crate) struct TaskPlace<'a> {
    pub(crate) thread: &'a ThreadId,
    pub(crate) branch: Seq,
    pub(crate) frame: &'a FramePath,
    pub(crate) step: u64,
    pub(crate) node: &'a NodeName,
    pub(crate) index: u32,
}

impl InterruptId {
    pub(crate) fn derive(task: TaskId, key: &str) -> Self {
        Self(derive("interrupt", &[&task.0, key.as_bytes()]))
    }
}

/// Hashes parts with their lengths, so that no two lists of parts have the same hash input.
fn derive(domain: &str, parts: &[&[u8]]) -> [u8; 16] {
    let bytes = domain.len() + parts.iter().map(|part| 8 + part.len()).sum::<usize>();
    // The parts of nearly every id fit on the stack.
    let (mut short, mut long) = ([0; 256], Vec::new());
    let text = match short.get_mut(..bytes) {
        Some(short) => short,
        None => {
            long.resize(bytes, 0);
            &mut long[..]
        }
    };
    let mut rest = &mut *text;
    let mut append = |part: &[u8]| {
        let (here, after) = std::mem::take(&mut rest).split_at_mut(part.len());
        here.copy_from_slice(part);
        rest = after;
    };
    append(domain.as_bytes());
    for part in parts {
        append(&(part.len() as u64).to_le_bytes());
        append(part);
    }
    xxh3_128(text).to_be_bytes()
}

/// The number of a log entry within its thread, from 1; 0 is "nothing yet".
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Seq(pub u64);

impl Seq {
    /// Returns the number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number that rises whenever a process claims the thread. The holder of an older one can no longer write.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Returns the smallest epoch after this one, for a store that creates a thread itself.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Returns the epoch of the next owner. `entropy` is a random number: two processes that claim a thread at the same time must
    /// not get the same epoch, or both would believe they won.
    #[must_use]
    pub const fn claimed(self, entropy: u64) -> Self {
        // Forty bits: a chance of one in a million million per race, and room for millions of claims.
        const STEPS: u64 = 1 << 40;
        Self(self.0 + 1 + entropy % STEPS)
    }
}

/// What only the driver knows: the time, and a random number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Current time, by the driver's clock.
    pub now: Timestamp,
    /// A random number, new for every call.
    pub entropy: u64,
}

/// Milliseconds since the Unix epoch, as reported by the driver.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the time this many milliseconds later; saturates at the maximum.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add_unsigned(ms))
    }
}

/// The path of a graph within a run: which invocation of which subgraph. Empty for the root graph.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct FramePath(Vec<FrameSegment>);

/// One level of a [`FramePath`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FrameSegment {
    /// Node that holds the subgraph.
    pub node: NodeName,
    /// Task that entered it; `None` for a subgraph that lives as long as its thread.
    pub task: Option<TaskId>,
}

impl FramePath {
    /// Returns the path of the root graph.
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// Returns the levels, outermost first.
    pub fn segments(&self) -> &[FrameSegment] {
        &self.0
    }

    /// Whether this is the root graph.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn child(&self, node: NodeName, task: Option<TaskId>) -> Self {
        let mut segments = self.0.clone();
        segments.push(FrameSegment { node, task });
        Self(segments)
    }

    pub(crate) fn parent(&self) -> Option<Self> {
        let (_, above) = self.0.split_last()?;
        Some(Self(above.to_vec()))
    }

    /// Returns the path with the new ids of renamed tasks.
    pub(crate) fn renamed(&self, renamed: &std::collections::BTreeMap<TaskId, TaskId>) -> Self {
        let new_id = |task: TaskId| renamed.get(&task).copied().unwrap_or(task);
        let rename = |segment: &FrameSegment| FrameSegment {
            node: segment.node.clone(),
            task: segment.task.map(new_id),
        };
        Self(self.0.iter().map(rename).collect())
    }

    /// Whether this path lies strictly below `other`.
    pub(crate) fn is_below(&self, other: &Self) -> bool {
        self.0.len() > other.0.len() && self.0.starts_with(&other.0)
    }
}

impl FromIterator<FrameSegment> for FramePath {
    /// Collects levels, outermost first.
    fn from_iter<I: IntoIterator<Item = FrameSegment>>(segments: I) -> Self {
        Self(segments.into_iter().collect())
    }
}

impl fmt::Display for FramePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("|")?;
            }
            write!(f, "{}", segment.node)?;
            if let Some(task) = segment.task {
                write!(f, ":{task}")?;
            }
        }
        Ok(())
    }
}

/// Shortens a name, so that a hostile one cannot fill a log.
pub fn shorten(text: &str) -> String {
    const CHARS_MAX: usize = 80;
    if text.chars().count() <= CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(CHARS_MAX).chain(['…']).collect()
}
