//! What a node returns: an update, and where to go next.

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::checkpoint::format::{GotoRecord, ParentRecord};
use crate::error::{FailureKind, NodeError};
use crate::ids::{END, NodeName, TaskId, is_node_name};
use crate::label::Floor;
use crate::state::{MessageIds, State, StateUpdate};
use crate::value::Value;

/// A value that one node sends to another: anything that can be stored.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent to a node",
    label = "not a payload",
    note = "a payload is stored with the thread: derive `serde::Serialize` and `serde::Deserialize` for it"
)]
pub trait Payload: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Payload for T {}

/// The name of a node of a graph over `S`, checked at compile time.
///
/// Optional: a plain string works wherever this does. With it, a route into a graph over another state does not compile.
///
/// ```
/// use superstep_core::NodeRef;
/// # use superstep_core::{Command, END, Failed, Goto, Graph, Interrupt, NodeCx, NodeError, START, SendTo, State, View};
/// # #[derive(Clone, Debug, Default, State)]
/// # #[state(crate = superstep_core)]
/// # struct Essay { topic: String, #[state(append)] parts: Vec<String>, score: u8 }
/// # async fn step(_: View<Essay>, _: NodeCx) -> Result<EssayUpdate, NodeError> { Ok(EssayUpdate::default()) }
/// const WRITE: NodeRef<Essay> = NodeRef::new("write");
///
/// let graph = Graph::builder("essay").node(WRITE, step).edge(START, WRITE).edge(WRITE, END).build()?;
/// # Ok::<(), superstep_core::error::BuildError>(())
/// ```
pub struct NodeRef<S> {
    name: &'static str,
    of: PhantomData<fn(S)>,
}

impl<S> NodeRef<S> {
    /// Names a node. In a constant, an invalid name does not compile.
    pub const fn new(name: &'static str) -> Self {
        assert!(
            is_node_name(name),
            "a node name has 1 to 64 bytes of A-Z a-z 0-9 _ - and does not begin with __"
        );
        Self {
            name,
            of: PhantomData,
        }
    }

    /// Returns the reference to the end of a path, `END`.
    pub const fn end() -> Self {
        Self {
            name: END,
            of: PhantomData,
        }
    }

    /// Returns the node's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl<S> Clone for NodeRef<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for NodeRef<S> {}

impl<S> fmt::Debug for NodeRef<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeRef({:?})", self.name)
    }
}

/// The name of a node that is reached by sending, with the type of its payload.
///
/// ```
/// # use superstep_core::{Command, END, Failed, Goto, Graph, Interrupt, NodeCx, NodeError, START, SendTo, State, View};
/// # #[derive(Clone, Debug, Default, State)]
/// # #[state(crate = superstep_core)]
/// # struct Essay { topic: String, #[state(append)] parts: Vec<String>, score: u8 }
/// # async fn step(_: View<Essay>, _: NodeCx) -> Result<EssayUpdate, NodeError> { Ok(EssayUpdate::default()) }
/// const WRITE: SendTo<String> = SendTo::new("write");
///
/// fn headings(essay: &Essay) -> Vec<Goto<Essay>> {
///     essay.parts.iter().map(|heading| Goto::send(&WRITE, heading.clone())).collect()
/// }
/// ```
pub struct SendTo<P> {
    name: &'static str,
    takes: PhantomData<fn(P)>,
}

impl<P> SendTo<P> {
    /// Names a node. In a constant, an invalid name does not compile.
    pub const fn new(name: &'static str) -> Self {
        assert!(
            is_node_name(name),
            "a node name has 1 to 64 bytes of A-Z a-z 0-9 _ - and does not begin with __"
        );
        Self {
            name,
            takes: PhantomData,
        }
    }

    /// Returns the node's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl<P> fmt::Debug for SendTo<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendTo({:?})", self.name)
    }
}

/// Anything that names a node of a graph over `S`, or its end.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a node of a graph over `{S}`",
    label = "names a node of another graph, or no node at all",
    note = "use the node's name as text, or a `NodeRef<{S}>`; a `SendTo` is reached with `.send(..)`"
)]
pub trait Target<S> {
    /// Returns the name of the node, or `END`.
    fn target_name(&self) -> &str;
}

impl<S> Target<S> for &str {
    fn target_name(&self) -> &str {
        self
    }
}

impl<S> Target<S> for String {
    fn target_name(&self) -> &str {
        self
    }
}

impl<S> Target<S> for NodeName {
    fn target_name(&self) -> &str {
        self.as_str()
    }
}

impl<S> Target<S> for NodeRef<S> {
    fn target_name(&self) -> &str {
        self.name
    }
}

/// One target of a command or route, with or without a payload. Routes may return it instead of plain names.
///
/// ```
/// # use superstep_core::{Command, END, Failed, Goto, Graph, Interrupt, NodeCx, NodeError, START, SendTo, State, View};
/// # #[derive(Clone, Debug, Default, State)]
/// # #[state(crate = superstep_core)]
/// # struct Essay { topic: String, #[state(append)] parts: Vec<String>, score: u8 }
/// # async fn step(_: View<Essay>, _: NodeCx) -> Result<EssayUpdate, NodeError> { Ok(EssayUpdate::default()) }
/// const TRANSLATE: SendTo<String> = SendTo::new("translate");
///
/// fn after_plan(essay: &Essay) -> Vec<Goto<Essay>> {
///     let mut next = vec![Goto::node("write")];
///     next.extend(essay.parts.iter().map(|part| Goto::send(&TRANSLATE, part.clone())));
///     next
/// }
/// # let essay = Essay { parts: vec!["a".to_owned(), "b".to_owned()], ..Essay::default() };
/// # assert_eq!(after_plan(&essay).len(), 3);
/// ```
pub struct Goto<S> {
    inner: Result<GotoRecord, NodeError>,
    /// Labels that every labeled value in the payload has.
    floor: Floor,
    of: PhantomData<fn(S)>,
}

impl<S> Goto<S> {
    /// Goes to a node that reads the state, or to `END`.
    pub fn node(target: impl Target<S>) -> Self {
        Self {
            inner: goto_record(target.target_name(), None),
            floor: Floor::default(),
            of: PhantomData,
        }
    }

    /// Sends a payload to a node.
    pub fn send<P: Payload>(to: &SendTo<P>, payload: P) -> Self {
        let (inner, floor) = match send_record(to, &payload) {
            Ok((record, floor)) => (Ok(record), floor),
            Err(error) => (Err(error), Floor::default()),
        };
        Self {
            inner,
            floor,
            of: PhantomData,
        }
    }
}

impl<S> fmt::Debug for Goto<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.inner, f)
    }
}

fn send_record<P: Payload>(to: &SendTo<P>, payload: &P) -> Result<(GotoRecord, Floor), NodeError> {
    let encoded = Value::encode_and_read_back(payload).map_err(|error| {
        let why = crate::error::chain(&error);
        NodeError::of_kind(
            FailureKind::InvalidUpdate,
            format!("what is sent to `{}` cannot be stored: {why}", to.name),
        )
    })?;
    Ok((goto_record(to.name, Some(encoded.value))?, encoded.floor))
}

fn goto_record(name: &str, payload: Option<Value>) -> Result<GotoRecord, NodeError> {
    if name == END {
        return Ok(GotoRecord {
            node: None,
            payload: None,
        });
    }
    let node = NodeName::new(name)
        .map_err(|error| NodeError::of_kind(FailureKind::UndeclaredTarget, error.to_string()))?;
    Ok(GotoRecord {
        node: Some(node),
        payload,
    })
}

/// What a route may return: a name, a [`NodeRef`], a [`Goto`], or several of them.
#[diagnostic::on_unimplemented(
    message = "a route of a graph over `{S}` cannot return `{Self}`",
    label = "not a place to go",
    note = "return a node's name, `END`, a `NodeRef<{S}>`, a `Goto<{S}>`, or a `Vec` or array of those"
)]
pub trait Gotos<S> {
    /// Returns the targets, in order.
    fn into_gotos(self) -> Vec<Goto<S>>;
}

impl<S> Gotos<S> for &'static str {
    fn into_gotos(self) -> Vec<Goto<S>> {
        vec![Goto::node(self)]
    }
}

impl<S> Gotos<S> for NodeRef<S> {
    fn into_gotos(self) -> Vec<Goto<S>> {
        vec![Goto::node(self)]
    }
}

impl<S> Gotos<S> for Goto<S> {
    fn into_gotos(self) -> Vec<Goto<S>> {
        vec![self]
    }
}

impl<S, T: Gotos<S>> Gotos<S> for Vec<T> {
    fn into_gotos(self) -> Vec<Goto<S>> {
        self.into_iter().flat_map(T::into_gotos).collect()
    }
}

impl<S, T: Gotos<S>, const N: usize> Gotos<S> for [T; N] {
    fn into_gotos(self) -> Vec<Goto<S>> {
        self.into_iter().flat_map(T::into_gotos).collect()
    }
}

pub(crate) fn records<S>(
    gotos: impl IntoIterator<Item = Goto<S>>,
) -> Result<Vec<GotoRecord>, NodeError> {
    gotos.into_iter().map(|goto| goto.inner).collect()
}

/// Returns the labels that every labeled value has among all payloads.
pub(crate) fn floor<S>(gotos: &[Goto<S>]) -> Floor {
    let mut floor = Floor::default();
    for goto in gotos {
        floor.lower_by(&goto.floor);
    }
    floor
}

/// What a node returns: what it writes, and where it goes if it routes by commands.
///
/// An update converts with `.into()`, so a node that only writes returns its update.
///
/// ```
/// # use superstep_core::{Command, END, Failed, Goto, Graph, Interrupt, NodeCx, NodeError, START, SendTo, State, View};
/// # #[derive(Clone, Debug, Default, State)]
/// # #[state(crate = superstep_core)]
/// # struct Essay { topic: String, #[state(append)] parts: Vec<String>, score: u8 }
/// # async fn step(_: View<Essay>, _: NodeCx) -> Result<EssayUpdate, NodeError> { Ok(EssayUpdate::default()) }
/// /// Declared with `.commands("judge", &["write", END])`.
/// async fn judge(essay: View<Essay>, _: NodeCx) -> Result<Command<Essay>, NodeError> {
///     let score = if essay.parts.len() > 2 { 9 } else { 3 };
///     let next = if score < 7 { "write" } else { END };
///     Ok(Command::update(EssayUpdate::default().score(score)).goto(next))
/// }
/// # let graph = Graph::builder("essay").node("write", step).node("judge", judge);
/// # let graph = graph.edge(START, "write").edge("write", "judge").commands("judge", &["write", END]);
/// # graph.build()?;
/// # Ok::<(), superstep_core::error::BuildError>(())
/// ```
pub struct Command<S: State> {
    pub(crate) update: S::Update,
    pub(crate) goto: Vec<Goto<S>>,
    pub(crate) parent: Option<ParentCommand>,
}

/// A command to the parent graph. It is encoded when the task that returned it is known, because messages get their ids from it;
/// the result is the stored form, and the labels of what it writes and sends.
pub(crate) type ParentCommand =
    Box<dyn FnOnce(TaskId) -> Result<(ParentRecord, Floor), NodeError> + Send>;

impl<S: State> Command<S> {
    /// Writes an update, and leaves the routing to edges and routes.
    pub fn update(update: S::Update) -> Self {
        Self {
            update,
            goto: Vec::new(),
            parent: None,
        }
    }

    /// Goes to a node, or to `END`, without writing.
    pub fn to(target: impl Target<S>) -> Self {
        Self::update(S::Update::default()).goto(target)
    }

    /// Adds a target: a node, or `END`. All targets run in one superstep.
    #[must_use]
    pub fn goto(mut self, target: impl Target<S>) -> Self {
        self.goto.push(Goto::node(target));
        self
    }

    /// Sends a payload to a node. Each send is a separate task; tasks keep the order of the sends.
    #[must_use]
    pub fn send<P: Payload>(mut self, to: &SendTo<P>, payload: P) -> Self {
        self.goto.push(Goto::send(to, payload));
        self
    }

    /// Leaves this subgraph: its accumulated state is dropped, and the parent graph acts on `command` instead.
    pub fn parent<P: State>(command: Command<P>) -> Self {
        Self {
            update: S::Update::default(),
            goto: Vec::new(),
            parent: Some(Box::new(|task| parent_record(command, task))),
        }
    }
}

fn parent_record<P: State>(
    mut command: Command<P>,
    task: TaskId,
) -> Result<(ParentRecord, Floor), NodeError> {
    if command.parent.is_some() {
        let why = "a command goes up one graph; `Command::parent` is inside `Command::parent`";
        return Err(NodeError::of_kind(FailureKind::UndeclaredTarget, why));
    }
    // Messages get their ids in the child, because the parent sees only the stored form.
    command.update.name_messages(&mut MessageIds::of(task));
    let encoded = Value::encode_and_read_back(&command.update).map_err(|error| {
        NodeError::of_kind(FailureKind::InvalidUpdate, crate::error::chain(&error))
    })?;
    let mut floor = floor(&command.goto);
    floor.lower_by(&encoded.floor);
    let record = ParentRecord {
        update: encoded.value,
        goto: records(command.goto)?,
    };
    Ok((record, floor))
}

impl<S: State> fmt::Debug for Command<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("goto", &self.goto)
            .finish_non_exhaustive()
    }
}
