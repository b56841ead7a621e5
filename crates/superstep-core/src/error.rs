//! Errors as values. One enum per thing a caller does; each variant has a code and a page.
//!
//! A pause, a limit and a cancellation are outcomes, not errors: see [`crate::Outcome`].

mod node;

pub(crate) use node::chain;
pub use node::{Failure, FailureKind, NodeError};

use crate::ids::{Epoch, FramePath, InterruptId, NodeName, RunId, Seq, TaskId, ThreadId};
use crate::label::Labels;

/// Writes `code()` for an error enum, and the list of its codes, so that none can be forgotten.
macro_rules! error_codes {
    ($error:ident { $($variant:ident => $code:literal),* $(,)? }) => {
        impl $error {
            /// Every code of this error, each with a page in the error index.
            pub const CODES: &'static [&'static str] = &[$($code),*];

            /// The stable code of this error: the name of its page in the error index.
            pub fn code(&self) -> &'static str {
                match self { $($error::$variant { .. } => $code),* }
            }
        }
    };
}
pub(crate) use error_codes;

/// Every error code of this crate.
pub fn all_codes() -> impl Iterator<Item = &'static str> {
    [
        NameError::CODES,
        ValueError::CODES,
        InvalidUpdate::CODES,
        MigrationError::CODES,
        BuildFault::CODES,
        CheckpointError::CODES,
        FormatError::CODES,
        OpenError::CODES,
        ProtocolError::CODES,
        FailureKind::CODES,
        crate::store::StoreError::CODES,
    ]
    .into_iter()
    .flatten()
    .copied()
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A name or id that is not one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Not a node name.
    #[error(
        "`{name}` is not a node name: use 1 to 64 of `A-Z a-z 0-9 _ -`, and do not begin with `__`"
    )]
    Node {
        /// What was given.
        name: String,
    },
    /// Not a thread name.
    #[error("`{name}` is not a thread name: use 1 to 128 of `A-Z a-z 0-9 _ - .`")]
    Thread {
        /// What was given.
        name: String,
    },
    /// Not a tenant name.
    #[error("`{name}` is not a tenant name: use 1 to 128 of `A-Z a-z 0-9 _ - .`")]
    Tenant {
        /// What was given.
        name: String,
    },
    /// Not a label.
    #[error("`{name}` is not a label: use 1 to 64 of `a-z 0-9 _ - . :`")]
    Label {
        /// What was given.
        name: String,
    },
    /// Not an id.
    #[error("`{text}` is not a {kind}: it has 32 lower-case hexadecimal digits")]
    Id {
        /// Which kind of id was wanted.
        kind: &'static str,
        /// What was given.
        text: String,
    },
}

error_codes!(NameError {
    Node => "name-node",
    Thread => "name-thread",
    Tenant => "name-tenant",
    Label => "name-label",
    Id => "name-id",
});

/// A value that cannot be stored, or stored bytes that are not the value they should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// Not-a-number or an infinity.
    #[error(
        "a number is not finite and would be read back as null; store an `Option` or a text instead"
    )]
    NotFinite,
    /// The type's own `Serialize` refused.
    #[error("the value cannot be written as JSON")]
    Encode {
        /// Why.
        #[source]
        source: BoxError,
    },
    /// The bytes do not fit the type.
    #[error("the value cannot be read back as its type")]
    Decode {
        /// Why.
        #[source]
        source: BoxError,
    },
    /// A codec this version does not know.
    #[error("the value has codec {codec}, which this version does not know")]
    Codec {
        /// The codec byte.
        codec: u8,
    },
}

error_codes!(ValueError {
    NotFinite => "value-not-finite",
    Encode => "value-encode",
    Decode => "value-decode",
    Codec => "value-codec",
});

/// An update that breaks a rule of the state, refused at the node that wrote it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidUpdate {
    /// Removal of a message that is not there.
    #[error("channel `{channel}` has no message `{id}` to remove")]
    UnknownMessage {
        /// The channel.
        channel: &'static str,
        /// The id that was named.
        id: String,
    },
    /// A value that was made by a node that had read labels, without them.
    #[error(
        "the node has read {labels}, and writes or sends a labeled value without; make it with `cx.labeled`, or declassify it with a reason"
    )]
    LabelLost {
        /// The labels that are missing.
        labels: Labels,
    },
    /// A rule of the state's own, given with `#[state(check = path)]`.
    #[error("the update breaks a rule of the state: {rule}")]
    Rule {
        /// The rule, in its author's words.
        rule: String,
    },
}

impl InvalidUpdate {
    /// An update that breaks a rule of the user's own.
    pub fn rule(rule: impl Into<String>) -> Self {
        Self::Rule { rule: rule.into() }
    }
}

error_codes!(InvalidUpdate {
    UnknownMessage => "update-unknown-message",
    LabelLost => "update-label-lost",
    Rule => "update-rule",
});

/// Stored data of an older version that cannot be brought to this one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrationError {
    /// Nobody wrote the migration.
    #[error(
        "no migration leads from version {from} of the state to version {to}; add one with `#[state(migrate = path)]`"
    )]
    Missing {
        /// The version of the data.
        from: u32,
        /// The version of the code.
        to: u32,
    },
    /// The migration itself refused.
    #[error("the migration from version {from} failed: {why}")]
    Failed {
        /// The version of the data.
        from: u32,
        /// The migration's words.
        why: String,
    },
    /// Data of a newer program.
    #[error(
        "the thread was written by version {found} of the state, this program knows version {known}; deploy the newer program"
    )]
    Newer {
        /// The version of the data.
        found: u32,
        /// The version of the code.
        known: u32,
    },
}

error_codes!(MigrationError {
    Missing => "migration-missing",
    Failed => "migration-failed",
    Newer => "migration-newer",
});

/// Everything that is wrong with a graph, found at once when it is built.
#[derive(Debug, thiserror::Error)]
#[error("the graph `{graph}` has {} fault(s):{}", faults.len(), list(faults))]
pub struct BuildError {
    /// The graph.
    pub graph: String,
    /// Each fault, with its fix.
    pub faults: Vec<BuildFault>,
}

fn list(faults: &[BuildFault]) -> String {
    faults
        .iter()
        .map(|fault| format!("\n  - {fault} [{}]", fault.code()))
        .collect()
}

/// One thing that is wrong with a graph.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildFault {
    /// Not a name.
    #[error(
        "`{name}` is not a node name: use 1 to 64 of `A-Z a-z 0-9 _ -`, and do not begin with `__`"
    )]
    BadName {
        /// What was given.
        name: String,
    },
    /// Two nodes of one name.
    #[error("`{node}` is added twice; give one of them another name")]
    DuplicateNode {
        /// The name.
        node: NodeName,
    },
    /// Something leaves a node that is not there.
    #[error("{what} leaves `{from}`, which is not a node of this graph; add it with `.node(..)`")]
    UnknownSource {
        /// An edge, a route, …
        what: &'static str,
        /// The name.
        from: String,
    },
    /// Something leads to a node that is not there.
    #[error(
        "{what} from `{from}` leads to `{to}`, which is not a node of this graph; add it with `.node(..)`"
    )]
    UnknownTarget {
        /// An edge, a route, …
        what: &'static str,
        /// Where it begins.
        from: String,
        /// The name.
        to: String,
    },
    /// A setting for a node that is not there.
    #[error("`.{setting}(..)` names `{node}`, which is not a node of this graph")]
    UnknownNode {
        /// The builder's method.
        setting: &'static str,
        /// The name.
        node: String,
    },
    /// No way in.
    #[error(
        "nothing leads to `{node}`; remove it, or connect it with an edge, a route or a command"
    )]
    Unreachable {
        /// The node.
        node: NodeName,
    },
    /// No way out.
    #[error(
        "nothing leaves `{node}`; add `.edge(\"{node}\", END)`, another edge, a route, or `.commands(..)`"
    )]
    DeadEnd {
        /// The node.
        node: NodeName,
    },
    /// Nothing leaves the start.
    #[error("nothing leaves START; add `.edge(START, ..)`")]
    NoStart,
    /// A route or command without declared targets.
    #[error("{what} of `{node}` declares no targets; list every node it may choose, and END")]
    NoTargets {
        /// A route or a command.
        what: &'static str,
        /// The node.
        node: String,
    },
    /// The same edge twice.
    #[error("the edge from `{from}` to `{to}` is there twice; remove one")]
    DuplicateEdge {
        /// Where it begins.
        from: String,
        /// Where it leads.
        to: String,
    },
    /// Edges and commands on one node.
    #[error(
        "`{node}` routes by edges and by commands; keep one, for the two would contradict each other"
    )]
    EdgesAndCommands {
        /// The node.
        node: NodeName,
    },
    /// An edge into a node that only a send can start.
    #[error("{what} leads to `{node}`, which takes a payload; reach it with `.send(..)` instead")]
    WorkerWithoutPayload {
        /// An edge, a route, …
        what: &'static str,
        /// The node.
        node: NodeName,
    },
    /// Into the start.
    #[error("{what} from `{from}` leads to START; name the first node instead")]
    IntoStart {
        /// An edge, a route, …
        what: &'static str,
        /// Where it begins.
        from: String,
    },
    /// A join with fewer than two sources.
    #[error("the join into `{target}` waits for fewer than two nodes; use an edge")]
    SmallJoin {
        /// Where it leads.
        target: String,
    },
    /// More channels than a set of channels can hold.
    #[error(
        "the state has {channels} channels, at most 64 are possible; group some of them in a struct"
    )]
    TooManyChannels {
        /// How many.
        channels: usize,
    },
    /// Two channels of one name.
    #[error("two channels are named `{channel}`")]
    DuplicateChannel {
        /// The wire name.
        channel: String,
    },
    /// A setting that a subgraph node does not take.
    #[error("`{node}` is a subgraph, which takes no `{setting}`; set it on the nodes inside")]
    SubgraphSetting {
        /// The node.
        node: NodeName,
        /// The setting.
        setting: &'static str,
    },
    /// A stateless subgraph with a pause in it.
    #[error(
        "the stateless subgraph `{node}` has breakpoints, but nothing of it is stored; drop them or store it"
    )]
    StatelessPause {
        /// The node.
        node: NodeName,
    },
    /// The subgraph has faults of its own.
    #[error("the graph is named `{name}`: use 1 to 64 of `A-Z a-z 0-9 _ -`")]
    BadGraphName {
        /// What was given.
        name: String,
    },
}

error_codes!(BuildFault {
    BadName => "build-bad-name",
    DuplicateNode => "build-duplicate-node",
    UnknownSource => "build-unknown-source",
    UnknownTarget => "build-unknown-target",
    UnknownNode => "build-unknown-node",
    Unreachable => "build-unreachable",
    DeadEnd => "build-dead-end",
    NoStart => "build-no-start",
    NoTargets => "build-no-targets",
    DuplicateEdge => "build-duplicate-edge",
    EdgesAndCommands => "build-edges-and-commands",
    WorkerWithoutPayload => "build-worker-without-payload",
    IntoStart => "build-into-start",
    SmallJoin => "build-small-join",
    TooManyChannels => "build-too-many-channels",
    DuplicateChannel => "build-duplicate-channel",
    SubgraphSetting => "build-subgraph-setting",
    StatelessPause => "build-stateless-pause",
    BadGraphName => "build-bad-graph-name",
});

/// Stored bytes that are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The checksum does not match: bytes changed, or the row belongs elsewhere.
    #[error(
        "stored bytes of thread `{thread}` at {seq} are damaged; restore the thread from a backup"
    )]
    Damaged {
        /// The thread.
        thread: String,
        /// The entry.
        seq: Seq,
    },
    /// Written by a newer program.
    #[error(
        "stored bytes have format {found}, this program knows up to {known}; use the newer program"
    )]
    Newer {
        /// The format found.
        found: u8,
        /// The newest format known.
        known: u8,
    },
    /// Inside an envelope that this program cannot open.
    #[error(
        "stored bytes are in envelope {envelope}, which this program cannot open; give it the key"
    )]
    Envelope {
        /// The envelope byte.
        envelope: u8,
    },
    /// An extension that must be understood, and is not.
    #[error(
        "stored bytes carry extension {tag}, which must be understood and is not; use the newer program"
    )]
    Extension {
        /// The extension's tag.
        tag: u16,
    },
    /// The checksum holds but the content makes no sense.
    #[error("stored bytes of thread `{thread}` at {seq} cannot be read: {why}")]
    Content {
        /// The thread.
        thread: String,
        /// The entry.
        seq: Seq,
        /// What did not fit.
        why: String,
    },
    /// An archive's checksum does not match.
    #[error("not a valid archive (corrupt or truncated); export the thread again")]
    ArchiveDamaged,
    /// An archive's checksum holds but its content makes no sense.
    #[error("the archive cannot be read: {why}")]
    ArchiveContent {
        /// What did not fit.
        why: String,
    },
}

error_codes!(FormatError {
    Damaged => "format-damaged",
    Newer => "format-newer",
    Envelope => "format-envelope",
    Extension => "format-extension",
    Content => "format-content",
    ArchiveDamaged => "format-archive-damaged",
    ArchiveContent => "format-archive-content",
});

/// What a checkpointer answers when it cannot do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// Somebody else owns the thread now, or wrote it meanwhile. Nothing was written.
    #[error("thread `{thread}` was taken over or changed by another writer; this one stops")]
    Fenced {
        /// The thread.
        thread: ThreadId,
        /// The epoch that was held.
        epoch: Epoch,
    },
    /// The question has an answer already, or is no longer asked. Nothing was written.
    #[error(
        "interrupt `{interrupt}` of thread `{thread}` is not open; another answer won, or the run went on without it"
    )]
    NotOpen {
        /// The thread.
        thread: ThreadId,
        /// The question.
        interrupt: InterruptId,
    },
    /// No such thread.
    #[error("there is no thread `{thread}`")]
    NoThread {
        /// The thread.
        thread: ThreadId,
    },
    /// The target of a copy or an import exists.
    #[error("there is a thread `{thread}` already")]
    ThreadExists {
        /// The thread.
        thread: ThreadId,
    },
    /// The archive is one of another thread. Nothing was written.
    #[error("the archive holds thread `{found}`, not `{thread}`; import it as what it is")]
    OtherThread {
        /// The thread that was to be made.
        thread: ThreadId,
        /// The one in the archive.
        found: ThreadId,
    },
    /// No such entry.
    #[error("thread `{thread}` has no checkpoint {seq}")]
    NoCheckpoint {
        /// The thread.
        thread: ThreadId,
        /// The entry.
        seq: Seq,
    },
    /// Stored bytes are not what they should be.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A query that the store does not take.
    #[error("the query cannot be answered: {why}")]
    Query {
        /// What is wrong with it.
        why: String,
    },
    /// The database was written by a newer program.
    #[error(
        "the database has schema {found}, this program knows up to {known}; use the newer program"
    )]
    NewerDatabase {
        /// The schema found.
        found: u32,
        /// The newest schema known.
        known: u32,
    },
    /// The file or library is not one that can be used. Asking again will not help.
    #[error("the database cannot be used: {why}")]
    Unusable {
        /// What is wrong with it.
        why: String,
    },
    /// The database is damaged. The same call will fail again.
    #[error("the database is damaged: {why}")]
    DatabaseDamaged {
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// The store is out of reach, full or broken. Whether the write was applied is unknown; the same commit may be tried again.
    #[error("the store did not answer")]
    Store {
        /// Why.
        #[source]
        source: BoxError,
    },
}

impl CheckpointError {
    /// Wraps an error of the database underneath.
    pub fn store(source: impl Into<BoxError>) -> Self {
        Self::Store {
            source: source.into(),
        }
    }

    /// Whether the same call may succeed when it is made again.
    pub fn is_transient(&self) -> bool {
        matches!(self, CheckpointError::Store { .. })
    }
}

error_codes!(CheckpointError {
    Fenced => "checkpoint-fenced",
    NotOpen => "checkpoint-not-open",
    NoThread => "checkpoint-no-thread",
    ThreadExists => "checkpoint-thread-exists",
    OtherThread => "checkpoint-other-thread",
    NoCheckpoint => "checkpoint-no-checkpoint",
    Format => "checkpoint-format",
    Query => "checkpoint-query",
    NewerDatabase => "checkpoint-newer-database",
    Unusable => "checkpoint-unusable",
    DatabaseDamaged => "checkpoint-database-damaged",
    Store => "checkpoint-store",
});

/// Why a thread cannot be opened with this graph and command. Nothing ran and nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another run holds the thread.
    #[error("thread `{thread}` is running; wait for it, cancel it, or take it over with `recover`")]
    Busy {
        /// The thread.
        thread: ThreadId,
    },
    /// The run with this id was made before, and has stopped: its outcome is in the thread's history.
    #[error(
        "run `{run}` of thread `{thread}` was made before and has stopped; read its outcome instead of making it again"
    )]
    Taken {
        /// The thread.
        thread: ThreadId,
        /// The run.
        run: RunId,
    },
    /// Nothing to resume.
    #[error("thread `{thread}` has nothing left to run; start it with an input")]
    NothingToRun {
        /// The thread.
        thread: ThreadId,
    },
    /// The thread belongs to another graph.
    #[error("thread `{thread}` belongs to graph `{found}`, not to `{wanted}`")]
    OtherGraph {
        /// The thread.
        thread: ThreadId,
        /// The graph that wrote it.
        found: String,
        /// The graph that was given.
        wanted: String,
    },
    /// A waiting node is gone from the graph.
    #[error(
        "thread `{thread}` waits at `{node}` in `{frame}`, which this graph no longer has; bring the node back, or move the thread with a state update"
    )]
    NodeGone {
        /// The thread.
        thread: ThreadId,
        /// The subgraph's path, empty for the root.
        frame: FramePath,
        /// The missing node.
        node: NodeName,
    },
    /// A stored state or update does not fit the code.
    #[error("thread `{thread}` cannot be read by this version of graph `{graph}`")]
    Unreadable {
        /// The thread.
        thread: ThreadId,
        /// The graph.
        graph: String,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// The input does not fit the state.
    #[error("the input does not fit the state of graph `{graph}`")]
    BadInput {
        /// The graph.
        graph: String,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// An update in the name of a node that is not there.
    #[error("there is no node `{node}` to update the state as")]
    NoSuchNode {
        /// The name.
        node: String,
    },
    /// An update names no node, and not exactly one node ran last.
    #[error("{nodes} ran last; name the node that the update acts as")]
    AmbiguousNode {
        /// The names of the nodes, or `no node`.
        nodes: String,
    },
    /// An update routes to an undeclared place.
    #[error("the update as `{node}` leads to `{to}`, which `{node}` does not declare")]
    UndeclaredTarget {
        /// The node.
        node: String,
        /// Where it leads.
        to: String,
    },
    /// Stored bytes are not what they should be.
    #[error(transparent)]
    Format(#[from] FormatError),
}

error_codes!(OpenError {
    Busy => "open-busy",
    Taken => "open-taken",
    NothingToRun => "open-nothing-to-run",
    OtherGraph => "open-other-graph",
    NodeGone => "open-node-gone",
    Unreadable => "open-unreadable",
    BadInput => "open-bad-input",
    NoSuchNode => "open-no-such-node",
    AmbiguousNode => "open-ambiguous-node",
    UndeclaredTarget => "open-undeclared-target",
    Format => "open-format",
});

/// A driver called the machine out of turn. A fault of the driver, never of a graph.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A task that was never started.
    #[error("task `{task}` was never started")]
    UnknownTask {
        /// The task.
        task: TaskId,
    },
    /// A second end.
    #[error("task `{task}` ended twice")]
    EndedTwice {
        /// The task.
        task: TaskId,
    },
    /// Nothing was to be saved.
    #[error("`saved` was called and nothing was being saved")]
    NothingSaved,
    /// Nothing was to be recorded.
    #[error("`recorded` was called and nothing was being recorded")]
    NothingRecorded,
}

error_codes!(ProtocolError {
    UnknownTask => "protocol-unknown-task",
    EndedTwice => "protocol-ended-twice",
    NothingSaved => "protocol-nothing-saved",
    NothingRecorded => "protocol-nothing-recorded",
});
