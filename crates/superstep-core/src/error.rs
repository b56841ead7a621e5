//! Errors as values. One enum per thing that a caller does; each variant has a code and a page.
//!
//! A pause, a limit and a cancellation are outcomes, not errors: see [`crate::Outcome`].

pub(crate) mod node;

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

            /// Returns the stable code of this error: the name of its page in the error index.
            pub fn code(&self) -> &'static str {
                match self { $($error::$variant { .. } => $code),* }
            }
        }
    };
}
pub(crate) use error_codes;

/// Returns every error code of this crate.
pub fn all_codes() -> impl Iterator<Item = &'static str> {
    [
        NameError::CODES,
        ValueError::CODES,
        InvalidUpdate::CODES,
        MigrationError::CODES,
        BuildProblem::CODES,
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

/// A name or id that is not valid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Not a valid node name.
    #[error(
        "`{name}` is not a node name: use 1 to 64 of `A-Z a-z 0-9 _ -`, and do not begin with `__`"
    )]
    Node {
        /// The rejected name, shortened if long.
        name: String,
    },
    /// Not a valid thread name.
    #[error("`{name}` is not a thread name: use 1 to 128 of `A-Z a-z 0-9 _ - .`")]
    Thread {
        /// The rejected name, shortened if long.
        name: String,
    },
    /// Not a valid tenant name.
    #[error("`{name}` is not a tenant name: use 1 to 128 of `A-Z a-z 0-9 _ - .`")]
    Tenant {
        /// The rejected name, shortened if long.
        name: String,
    },
    /// Not a valid label.
    #[error("`{name}` is not a label: use 1 to 64 of `a-z 0-9 _ - . :`")]
    Label {
        /// The rejected label, shortened if long.
        name: String,
    },
    /// Not a valid id.
    #[error("`{text}` is not a valid `{kind}`: it has 32 lower-case hexadecimal digits")]
    Id {
        /// Kind of id that was expected.
        kind: &'static str,
        /// The rejected text, shortened if long.
        text: String,
    },
    /// Not the id of an event.
    #[error("`{text}` is not the id of an event: it has two numbers, like `12-0`")]
    Event {
        /// The rejected text, shortened if long.
        text: String,
    },
}

error_codes!(NameError {
    Node => "name-node",
    Thread => "name-thread",
    Tenant => "name-tenant",
    Label => "name-label",
    Id => "name-id",
    Event => "name-event",
});

/// A value that cannot be stored, or stored bytes that do not decode to the expected type.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// A number is not a number or infinite.
    #[error(
        "a number is not finite and would be read back as null; store an `Option` or a text instead"
    )]
    NotFinite,
    /// The `Serialize` implementation of the type failed.
    #[error("the value cannot be written as JSON")]
    Encode {
        /// Error of the serializer.
        #[source]
        source: BoxError,
    },
    /// The bytes do not fit the type.
    #[error("the value cannot be read back as its type")]
    Decode {
        /// Error of the decoder.
        #[source]
        source: BoxError,
    },
    /// This version does not know the codec.
    #[error("the value has codec {codec}, which this version does not know")]
    Codec {
        /// The unknown codec byte.
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
    /// The update removes a message that is not in the channel.
    #[error("channel `{channel}` has no message `{id}` to remove")]
    UnknownMessage {
        /// Name of the channel.
        channel: &'static str,
        /// Id of the message to remove.
        id: String,
    },
    /// The node has read labels, and writes or sends a labeled value without them.
    #[error(
        "the node has read {labels}, and writes or sends a labeled value without; make it with `cx.labeled`, or declassify it with a reason"
    )]
    LabelLost {
        /// Labels that the node has read and the value lacks.
        labels: Labels,
    },
    /// The update breaks a rule of the state's own check, set with `#[state(check = path)]`.
    #[error("the update breaks a rule of the state: {rule}")]
    Rule {
        /// The rule, in its author's words.
        rule: String,
    },
}

impl InvalidUpdate {
    /// Creates the error for an update that breaks a rule of the state's own check.
    pub fn rule(rule: impl Into<String>) -> Self {
        Self::Rule { rule: rule.into() }
    }
}

error_codes!(InvalidUpdate {
    UnknownMessage => "update-unknown-message",
    LabelLost => "update-label-lost",
    Rule => "update-rule",
});

/// Stored data of another version that cannot be migrated to this one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrationError {
    /// There is no migration from this version.
    #[error(
        "no migration leads from version {from} of the state to version {to}; add one with `#[state(migrate = path)]`"
    )]
    Missing {
        /// Version of the stored data.
        from: u32,
        /// Version that the code needs.
        to: u32,
    },
    /// The migration returned an error.
    #[error("the migration from version {from} failed: {why}")]
    Failed {
        /// Version of the stored data.
        from: u32,
        /// Reason that the migration gave.
        why: String,
    },
    /// A newer program wrote the data.
    #[error(
        "the thread was written by version {found} of the state, this program knows version {known}; deploy the newer program"
    )]
    Newer {
        /// Version of the stored data.
        found: u32,
        /// Newest version that this program knows.
        known: u32,
    },
}

error_codes!(MigrationError {
    Missing => "migration-missing",
    Failed => "migration-failed",
    Newer => "migration-newer",
});

/// Everything that is wrong with a graph, found when it is built.
///
/// `Debug` prints the same as `Display`, because that is what `main` prints of an error that it returns.
#[derive(thiserror::Error)]
#[error("the graph `{graph}` cannot be built:{}", list(problems))]
pub struct BuildError {
    /// Name of the graph.
    pub graph: String,
    /// Every problem, each with its fix.
    pub problems: Vec<BuildProblem>,
}

impl std::fmt::Debug for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

fn list(problems: &[BuildProblem]) -> String {
    problems
        .iter()
        .map(|problem| format!("\n  - {problem} [{}]", problem.code()))
        .collect()
}

/// One problem of a graph.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildProblem {
    /// Not a valid node name.
    #[error(
        "`{name}` is not a node name: use 1 to 64 of `A-Z a-z 0-9 _ -`, and do not begin with `__`"
    )]
    BadName {
        /// The rejected name.
        name: String,
    },
    /// Two nodes have the same name.
    #[error("`{node}` is added twice; give one of them another name")]
    DuplicateNode {
        /// The name of both nodes.
        node: NodeName,
    },
    /// Something leaves a node that does not exist.
    #[error("{what} leaves `{from}`, which is not a node of this graph; add it with `.node(..)`")]
    UnknownSource {
        /// What leaves it: an edge, a route, …
        what: &'static str,
        /// Name of the missing node.
        from: String,
    },
    /// Something leads to a node that does not exist.
    #[error(
        "{what} from `{from}` leads to `{to}`, which is not a node of this graph; add it with `.node(..)`"
    )]
    UnknownTarget {
        /// What leads to it: an edge, a route, …
        what: &'static str,
        /// Name of the node where it begins.
        from: String,
        /// Name of the missing node.
        to: String,
    },
    /// A setting names a node that does not exist.
    #[error("`.{setting}(..)` names `{node}`, which is not a node of this graph")]
    UnknownNode {
        /// Name of the builder's method.
        setting: &'static str,
        /// Name of the missing node.
        node: String,
    },
    /// Nothing leads to a node.
    #[error(
        "nothing leads to `{node}`; remove it, or connect it with an edge, a route or a command"
    )]
    Unreachable {
        /// Name of the unreachable node.
        node: NodeName,
    },
    /// Nothing leaves a node.
    #[error(
        "nothing leaves `{node}`; add `.edge(\"{node}\", END)`, another edge, a route, or `.commands(..)`"
    )]
    DeadEnd {
        /// Name of the dead end.
        node: NodeName,
    },
    /// Nothing leaves the start.
    #[error("nothing leaves START; add `.edge(START, ..)`")]
    NoStart,
    /// A route or command declares no targets.
    #[error("{what} of `{node}` declares no targets; list every node it may choose, and END")]
    NoTargets {
        /// Which of the two it is: a route or a command.
        what: &'static str,
        /// Name of the node that it leaves.
        node: String,
    },
    /// The same edge was added twice.
    #[error("the edge from `{from}` to `{to}` is there twice; remove one")]
    DuplicateEdge {
        /// Name of the node where the edge begins.
        from: String,
        /// Name of the node where the edge leads.
        to: String,
    },
    /// A source of a join chooses where it goes.
    #[error(
        "`{node}` is a source of a join and routes by commands; the join would not know whether to count it"
    )]
    JoinAndCommands {
        /// Name of the node.
        node: NodeName,
    },
    /// An edge leads to a node that only a send can start.
    #[error("{what} leads to `{node}`, which takes a payload; reach it with `.send(..)` instead")]
    WorkerWithoutPayload {
        /// What leads to it: an edge, a route, …
        what: &'static str,
        /// Name of the node that takes a payload.
        node: NodeName,
    },
    /// Something leads to the start.
    #[error("{what} from `{from}` leads to START; name the first node instead")]
    IntoStart {
        /// What leads there: an edge, a route, …
        what: &'static str,
        /// Name of the node where it begins.
        from: String,
    },
    /// A join has fewer than two sources.
    #[error("the join into `{target}` waits for fewer than two nodes; use an edge")]
    SmallJoin {
        /// Name of the join's target.
        target: String,
    },
    /// The state has more channels than a [`ChannelSet`](crate::ChannelSet) can hold.
    #[error(
        "the state has {channels} channels, at most 64 are possible; group some of them in a struct"
    )]
    TooManyChannels {
        /// Number of channels of the state.
        channels: usize,
    },
    /// Two channels have the same wire name.
    #[error("two channels are named `{channel}`")]
    DuplicateChannel {
        /// Wire name of both channels.
        channel: String,
    },
    /// The inputs of the graph name a channel that its state does not have.
    #[error(
        "`.inputs(..)` names `{channel}`, which is not a channel of this state; use the wire name of a field"
    )]
    UnknownInput {
        /// Name of the missing channel.
        channel: String,
    },
    /// A setting does not apply to subgraph nodes.
    #[error("`{node}` is a subgraph, which takes no `{setting}`; set it on the nodes inside")]
    SubgraphSetting {
        /// Name of the subgraph node.
        node: NodeName,
        /// Name of the setting.
        setting: &'static str,
    },
    /// A stateless subgraph contains breakpoints.
    #[error(
        "the stateless subgraph `{node}` has breakpoints, but nothing of it is stored; drop them or store it"
    )]
    StatelessPause {
        /// Name of the subgraph node.
        node: NodeName,
    },
    /// The name of the graph is not valid.
    #[error("the graph is named `{name}`: use 1 to 64 of `A-Z a-z 0-9 _ -`")]
    BadGraphName {
        /// The rejected name.
        name: String,
    },
}

error_codes!(BuildProblem {
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
    JoinAndCommands => "build-join-and-commands",
    WorkerWithoutPayload => "build-worker-without-payload",
    IntoStart => "build-into-start",
    SmallJoin => "build-small-join",
    TooManyChannels => "build-too-many-channels",
    DuplicateChannel => "build-duplicate-channel",
    UnknownInput => "build-unknown-input",
    SubgraphSetting => "build-subgraph-setting",
    StatelessPause => "build-stateless-pause",
    BadGraphName => "build-bad-graph-name",
});

/// Stored bytes that are not as they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The checksum does not match: the bytes changed, or the row belongs to another thread or entry.
    #[error(
        "stored bytes of thread `{thread}` at {seq} are damaged; restore the thread from a backup"
    )]
    Damaged {
        /// Thread for which the bytes were read.
        thread: String,
        /// Entry for which the bytes were read.
        seq: Seq,
    },
    /// A newer program wrote the bytes.
    #[error(
        "stored bytes have format {found}, this program knows up to {known}; use the newer program"
    )]
    Newer {
        /// Format of the bytes.
        found: u8,
        /// Newest format that this program knows.
        known: u8,
    },
    /// This program cannot open the envelope around the bytes.
    #[error(
        "stored bytes are in envelope {envelope}, which this program cannot open; give it the key"
    )]
    Envelope {
        /// The unknown envelope byte.
        envelope: u8,
    },
    /// The bytes carry an extension that must be understood and is not.
    #[error(
        "stored bytes carry extension {tag}, which must be understood and is not; use the newer program"
    )]
    Extension {
        /// Tag of the extension.
        tag: u16,
    },
    /// The checksum matches, but the content is not valid.
    #[error("stored bytes of thread `{thread}` at {seq} cannot be read: {why}")]
    Content {
        /// Thread for which the bytes were read.
        thread: String,
        /// Entry for which the bytes were read.
        seq: Seq,
        /// What is not valid.
        why: String,
    },
    /// The checksum of an archive does not match.
    #[error("not a valid archive (corrupt or truncated); export the thread again")]
    ArchiveDamaged,
    /// The checksum of an archive matches, but its content is not valid.
    #[error("the archive cannot be read: {why}")]
    ArchiveContent {
        /// What is not valid.
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

/// Why a checkpointer could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// Another process owns the thread now, or wrote to it meanwhile. Nothing was written.
    #[error("thread `{thread}` was taken over or changed by another writer; this one stops")]
    Fenced {
        /// Thread that the caller wanted to write.
        thread: ThreadId,
        /// Epoch that the caller held.
        epoch: Epoch,
    },
    /// The interrupt already has an answer, or is no longer asked. Nothing was written.
    #[error(
        "interrupt `{interrupt}` of thread `{thread}` is not open; another answer won, or the run went on without it"
    )]
    NotOpen {
        /// Thread that was answered.
        thread: ThreadId,
        /// Interrupt that is not open.
        interrupt: InterruptId,
    },
    /// There is no such thread.
    #[error("there is no thread `{thread}`")]
    NoThread {
        /// Id of the missing thread.
        thread: ThreadId,
    },
    /// The target of a copy or an import already exists.
    #[error("there is a thread `{thread}` already")]
    ThreadExists {
        /// Id of the existing thread.
        thread: ThreadId,
    },
    /// The archive holds another thread. Nothing was written.
    #[error("the archive holds thread `{found}`, not `{thread}`; import it as what it is")]
    OtherThread {
        /// Thread that was to be created.
        thread: ThreadId,
        /// Thread in the archive.
        found: ThreadId,
    },
    /// There is no such entry.
    #[error("thread `{thread}` has no checkpoint {seq}")]
    NoCheckpoint {
        /// Thread that was read.
        thread: ThreadId,
        /// Sequence number of the missing entry.
        seq: Seq,
    },
    /// Stored bytes are not as they should be.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The store does not support the query.
    #[error("the query cannot be answered: {why}")]
    Query {
        /// What is wrong with the query.
        why: String,
    },
    /// A newer program wrote the database.
    #[error(
        "the database has schema {found}, this program knows up to {known}; use the newer program"
    )]
    NewerDatabase {
        /// Version of the database's schema.
        found: u32,
        /// Newest schema version that this program knows.
        known: u32,
    },
    /// The database file or library cannot be used. A retry will not help.
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
    /// What is stored is encrypted and cannot be decrypted, or something to be stored cannot be encrypted. The same call fails
    /// again until the keys are there.
    #[error(transparent)]
    Encryption {
        /// What is wrong: a key that is missing, or data that does not fit it.
        source: BoxError,
    },
    /// The store is unreachable, full or broken. Whether the write was applied is unknown; the caller may retry the same
    /// commit.
    #[error("the store did not answer")]
    Store {
        /// Error of the database.
        #[source]
        source: BoxError,
    },
}

impl CheckpointError {
    /// Wraps an error of the underlying database.
    pub fn store(source: impl Into<BoxError>) -> Self {
        Self::Store {
            source: source.into(),
        }
    }

    /// Whether the same call may succeed when it is retried.
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
    Encryption => "checkpoint-encryption",
    Store => "checkpoint-store",
});

/// Why a thread cannot be opened with this graph and request. Nothing ran and nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another run owns the thread.
    #[error("thread `{thread}` is running; wait for it, cancel it, or take it over with `recover`")]
    Busy {
        /// Thread that is busy.
        thread: ThreadId,
    },
    /// The run with this id was executed before and has stopped: its outcome is in the thread's history.
    #[error(
        "run `{run}` of thread `{thread}` was made before and has stopped; read its outcome instead of making it again"
    )]
    Taken {
        /// Thread of the run.
        thread: ThreadId,
        /// Id of the run.
        run: RunId,
    },
    /// The thread has nothing to resume.
    #[error("thread `{thread}` has nothing left to run; start it with an input")]
    NothingToRun {
        /// Thread that was to be resumed.
        thread: ThreadId,
    },
    /// The thread belongs to another graph.
    #[error("thread `{thread}` belongs to graph `{found}`, not to `{wanted}`")]
    OtherGraph {
        /// Thread that was opened.
        thread: ThreadId,
        /// Name of the graph that wrote the thread.
        found: String,
        /// Name of the graph that the caller passed.
        wanted: String,
    },
    /// The graph no longer has a node that the thread waits at.
    #[error(
        "thread `{thread}` waits at `{node}`{}, which this graph no longer has; bring the node back, or move the thread with a state update",
        in_subgraph(.frame)
    )]
    NodeGone {
        /// Thread that was opened.
        thread: ThreadId,
        /// Path of the subgraph; empty for the root.
        frame: FramePath,
        /// Name of the missing node.
        node: NodeName,
    },
    /// A stored state or update does not fit the code.
    #[error("thread `{thread}` cannot be read by this version of graph `{graph}`")]
    Unreadable {
        /// Thread that was opened.
        thread: ThreadId,
        /// Name of the graph.
        graph: String,
        /// What does not fit.
        #[source]
        source: BoxError,
    },
    /// The input does not fit the state.
    #[error("the input does not fit the state of graph `{graph}`")]
    BadInput {
        /// Name of the graph.
        graph: String,
        /// What does not fit.
        #[source]
        source: BoxError,
    },
    /// An update names a node that does not exist.
    #[error("there is no node `{node}` to update the state as")]
    NoSuchNode {
        /// Name of the missing node.
        node: String,
    },
    /// An update names no node, and not exactly one node ran last.
    #[error("{nodes} ran last; name the node that the update acts as")]
    AmbiguousNode {
        /// Names of the nodes that ran last, or `no node`.
        nodes: String,
    },
    /// An update routes to a target that its node does not declare.
    #[error("the update as `{node}` leads to `{to}`, which `{node}` does not declare")]
    UndeclaredTarget {
        /// Name of the node that the update acts as.
        node: String,
        /// Name of the undeclared target.
        to: String,
    },
    /// An edit names a subgraph that is not open.
    #[error(
        "thread `{thread}` is not inside subgraph `{frame}`; name a subgraph that is open at this entry"
    )]
    NotInside {
        /// Thread that was to be edited.
        thread: ThreadId,
        /// Path of the subgraph.
        frame: FramePath,
    },
    /// An edit gives an input to a subgraph that shares its parent's state.
    #[error(
        "subgraph `{frame}` shares the state of its parent and takes no input; update it as one of its nodes"
    )]
    SharedInput {
        /// Path of the subgraph.
        frame: FramePath,
    },
    /// Stored bytes are not as they should be.
    #[error(transparent)]
    Format(#[from] FormatError),
}

fn in_subgraph(frame: &FramePath) -> String {
    match frame.is_root() {
        true => String::new(),
        false => format!(" in subgraph `{frame}`"),
    }
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
    NotInside => "open-not-inside",
    SharedInput => "open-shared-input",
    Format => "open-format",
});

/// A driver called the state machine out of turn. Always a bug of the driver, never of a graph.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The driver reported a task that was never started.
    #[error("task `{task}` was never started")]
    UnknownTask {
        /// Id of the unknown task.
        task: TaskId,
    },
    /// The driver reported the end of a task twice.
    #[error("task `{task}` ended twice")]
    EndedTwice {
        /// Id of the task.
        task: TaskId,
    },
    /// The driver reported a save, but nothing was being saved.
    #[error("`saved` was called and nothing was being saved")]
    NothingSaved,
    /// The driver reported a record, but nothing was being recorded.
    #[error("`recorded` was called and nothing was being recorded")]
    NothingRecorded,
}

error_codes!(ProtocolError {
    UnknownTask => "protocol-unknown-task",
    EndedTwice => "protocol-ended-twice",
    NothingSaved => "protocol-nothing-saved",
    NothingRecorded => "protocol-nothing-recorded",
});
