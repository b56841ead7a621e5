//! The only place where types are erased.
//!
//! Above this file everything is generic in the user's state; below it, the state machine handles [`Live`] states and
//! [`AnyUpdate`]s through one small table of functions per graph. Each cast states why it cannot fail: a graph's table is made
//! once, from one type.

use std::any::Any;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::channel::{Channel, ChannelKind, ChannelSet};
use crate::checkpoint::BoxFuture;
use crate::checkpoint::format::{GotoRecord, ParentRecord};
use crate::command::{self, Command, Gotos, Payload};
use crate::error::{Failure, FailureKind, InvalidUpdate, MigrationError, NodeError, ValueError};
use crate::ids::TaskId;
use crate::label::Floor;
use crate::node::{Node, NodeCx};
use crate::state::{Fields, MessageIds, State, StateUpdate, View};
use crate::value::Value;

/// A state of any graph. Cheap to clone; changed in place if this is the only handle.
pub(crate) type Live = Arc<dyn Any + Send + Sync>;

/// An update of any graph's state.
pub(crate) type AnyUpdate = Box<dyn Any + Send>;

const OWN_TYPE: &str = "a graph's functions only ever see its own types";

/// What the state machine can do with a state whose type is erased.
pub(crate) trait StateOps: Send + Sync {
    fn channels(&self) -> &'static [Channel];
    fn version(&self) -> u32;
    fn schema(&self) -> serde_json::Value;
    fn initial(&self) -> Live;
    fn encode_state(&self, state: &Live) -> Result<Value, ValueError>;
    /// Encodes a state, unless that is longer than this.
    fn encode_short_state(&self, state: &Live, bytes_max: usize) -> Option<Value>;
    fn decode_state(&self, value: &Value, version: u32) -> Result<Live, ReadError>;
    fn decode_update(&self, value: &Value, version: u32) -> Result<AnyUpdate, ReadError>;
    fn written(&self, update: &AnyUpdate) -> ChannelSet;
    fn overwritten(&self, update: &AnyUpdate) -> ChannelSet;
    fn discard(&self, update: &mut AnyUpdate, channels: ChannelSet);
    fn risky_folds(&self) -> ChannelSet;
    fn unstorable_fold(&self, state: &Live, folded: ChannelSet) -> Option<&'static str>;
    fn begin_step(&self, state: &mut Live);
    fn apply(&self, state: &mut Live, update: AnyUpdate);
    /// Checks an update against the state that its writer saw, and returns its stored form and what a reader of that form sees.
    fn prepare(
        &self,
        state: &Live,
        update: AnyUpdate,
        task: TaskId,
    ) -> Result<Prepared, RefusedUpdate>;
}

/// An update that was checked and encoded.
pub(crate) struct Prepared {
    pub(crate) stored: Value,
    /// What a reader of the stored form sees.
    pub(crate) read_back: AnyUpdate,
    /// Labels that every labeled value in the update has.
    pub(crate) floor: Floor,
}

/// Stored data that does not fit the code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error(transparent)]
    Migration(#[from] MigrationError),
}

/// An update that cannot be accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RefusedUpdate {
    #[error("the update cannot be stored")]
    Value(#[from] ValueError),
    #[error(transparent)]
    Invalid(#[from] InvalidUpdate),
}

impl RefusedUpdate {
    /// Converts it to the failure of the node that wrote the update.
    pub(crate) fn of_node(self) -> NodeError {
        NodeError::of_kind(FailureKind::InvalidUpdate, crate::error::chain(&self))
    }
}

impl ReadError {
    /// Converts it to the failure of the task whose record could not be read.
    pub(crate) fn of_record(self) -> NodeError {
        NodeError::of_kind(
            FailureKind::RecordUnreadable,
            format!("a record cannot be read: {}", crate::error::chain(&self)),
        )
    }
}

pub(crate) struct Ops<S>(PhantomData<fn(S)>);

impl<S: State> Ops<S> {
    pub(crate) fn shared() -> Arc<dyn StateOps> {
        Arc::new(Self(PhantomData))
    }
}

fn update_of<S: State>(update: &AnyUpdate) -> &S::Update {
    update.downcast_ref().expect(OWN_TYPE)
}

impl<S: State> StateOps for Ops<S> {
    fn channels(&self) -> &'static [Channel] {
        S::CHANNELS
    }

    fn version(&self) -> u32 {
        S::VERSION
    }

    fn schema(&self) -> serde_json::Value {
        S::schema()
    }

    fn initial(&self) -> Live {
        Arc::new(S::default())
    }

    fn encode_state(&self, state: &Live) -> Result<Value, ValueError> {
        Value::encode_unchecked(state.downcast_ref::<S>().expect(OWN_TYPE))
    }

    fn encode_short_state(&self, state: &Live, bytes_max: usize) -> Option<Value> {
        Value::encode_short(state_of::<S>(state), bytes_max)
    }

    fn decode_state(&self, value: &Value, version: u32) -> Result<Live, ReadError> {
        let state: S = migrated::<S>(value, version)?.decode()?;
        Ok(Arc::new(state))
    }

    fn decode_update(&self, value: &Value, version: u32) -> Result<AnyUpdate, ReadError> {
        let update: S::Update = migrated::<S>(value, version)?.decode()?;
        Ok(Box::new(update))
    }

    fn written(&self, update: &AnyUpdate) -> ChannelSet {
        update_of::<S>(update).written()
    }

    fn overwritten(&self, update: &AnyUpdate) -> ChannelSet {
        update_of::<S>(update).overwritten()
    }

    fn discard(&self, update: &mut AnyUpdate, channels: ChannelSet) {
        update
            .downcast_mut::<S::Update>()
            .expect(OWN_TYPE)
            .discard(channels);
    }

    fn risky_folds(&self) -> ChannelSet {
        S::RISKY_FOLDS
    }

    fn unstorable_fold(&self, state: &Live, folded: ChannelSet) -> Option<&'static str> {
        state_of::<S>(state).unstorable_fold(folded)
    }

    fn begin_step(&self, state: &mut Live) {
        change::<S>(state, S::begin_step);
    }

    fn apply(&self, state: &mut Live, update: AnyUpdate) {
        let update = *update.downcast::<S::Update>().expect(OWN_TYPE);
        change::<S>(state, |state| state.apply(update));
    }

    fn prepare(
        &self,
        state: &Live,
        update: AnyUpdate,
        task: TaskId,
    ) -> Result<Prepared, RefusedUpdate> {
        let mut update = update.downcast::<S::Update>().expect(OWN_TYPE);
        // The state's check and the serde code of its types are user code, and may panic.
        let prepared = guarded("the check of an update", || {
            if has_messages::<S>() {
                update.name_messages(&mut MessageIds::of(task));
            }
            state.downcast_ref::<S>().expect(OWN_TYPE).check(&update)?;
            if reads_back_exactly::<S>(&update) {
                let (stored, floor) = Value::encode_checked(&*update)?;
                return Ok(Prepared {
                    stored,
                    read_back: update,
                    floor,
                });
            }
            let mut encoded = Value::encode_and_read_back(&*update)?;
            encoded.read_back.move_untracked(&mut update);
            // From here on, only what was read back counts. It takes the place of what the node wrote, and so its memory.
            *update = encoded.read_back;
            Ok(Prepared {
                stored: encoded.value,
                read_back: update,
                floor: encoded.floor,
            })
        });
        prepared.unwrap_or_else(|panic| Err(InvalidUpdate::rule(panic.to_string()).into()))
    }
}

/// Whether an update is known to read back from its stored form exactly as it was written.
fn reads_back_exactly<S: State>(update: &S::Update) -> bool {
    // A state written by hand that names no such channel may store more than its channels.
    let exact = S::READ_BACK_EXACTLY;
    !exact.is_empty() && update.written().minus(exact).is_empty()
}

fn has_messages<S: State>() -> bool {
    let mut channels = S::CHANNELS.iter();
    channels.any(|channel| channel.kind == ChannelKind::Messages)
}

/// Changes the state in place if this is the only handle, which it is at the barrier: tasks have dropped theirs.
fn change<S: State>(state: &mut Live, change: impl FnOnce(&mut S)) {
    if Arc::get_mut(state).is_none() {
        *state = Arc::new(state_of::<S>(state).clone());
    }
    let own = Arc::get_mut(state).and_then(|own| own.downcast_mut());
    change(own.expect(OWN_TYPE));
}

/// Migrates stored fields to the version of the code, one version at a time.
fn migrated<S: State>(value: &Value, version: u32) -> Result<Value, ReadError> {
    if version == S::VERSION {
        return Ok(value.clone());
    }
    if version > S::VERSION {
        return Err(MigrationError::Newer {
            found: version,
            known: S::VERSION,
        }
        .into());
    }
    let mut fields = Fields::new(value.decode()?);
    for from in version..S::VERSION {
        S::migrate(from, &mut fields)?;
    }
    Ok(Value::encode_unchecked(&fields.into_inner())?)
}

/// What a task receives.
#[derive(Clone)]
pub(crate) struct Input {
    pub(crate) state: Live,
    pub(crate) payload: Option<Value>,
    /// For an error handler: the failure that it handles.
    pub(crate) failure: Option<Failure>,
}

/// What a node returned, before it is checked.
pub(crate) struct RawOutput {
    pub(crate) update: AnyUpdate,
    pub(crate) goto: Vec<GotoRecord>,
    pub(crate) parent: Option<ParentRecord>,
    /// Labels that every labeled value has that the node sends or writes to the parent.
    pub(crate) floor: Floor,
}

pub(crate) type NodeFn =
    Arc<dyn Fn(Input, NodeCx) -> BoxFuture<'static, Result<RawOutput, NodeError>> + Send + Sync>;
pub(crate) type RouteFn = Arc<dyn Fn(&Live) -> Result<Vec<GotoRecord>, NodeError> + Send + Sync>;
pub(crate) type CacheFn = Arc<dyn Fn(&Live) -> Result<String, NodeError> + Send + Sync>;
/// From the parent's state and the payload to the child's input.
pub(crate) type DownFn =
    Arc<dyn Fn(&Live, Option<&Value>) -> Result<AnyUpdate, NodeError> + Send + Sync>;
/// From the child's final state to the parent's update.
pub(crate) type UpFn = Arc<dyn Fn(&Live, &Live) -> Result<AnyUpdate, NodeError> + Send + Sync>;

fn state_of<S: State>(live: &Live) -> &S {
    live.downcast_ref().expect(OWN_TYPE)
}

fn payload_of<P: Payload>(payload: Option<&Value>) -> Result<P, NodeError> {
    let payload = payload.expect("a task of a worker is only planned with a payload");
    payload.decode().map_err(|error| {
        NodeError::of_kind(FailureKind::RecordUnreadable, crate::error::chain(&error))
    })
}

fn finish<S: State>(command: Command<S>, task: TaskId) -> Result<RawOutput, NodeError> {
    let mut floor = command::floor(&command.goto);
    let parent = command.parent.map(|encode| encode(task)).transpose()?;
    let parent = parent.map(|(record, of_parent)| {
        floor.lower_by(&of_parent);
        record
    });
    Ok(RawOutput {
        update: Box::new(command.update),
        goto: command::records(command.goto)?,
        parent,
        floor,
    })
}

/// Erases a node that reads the state.
pub(crate) fn node<S: State>(node: impl Node<S>) -> NodeFn {
    let node = Arc::new(node);
    Arc::new(move |input, cx| {
        let node = node.clone();
        let view = View::new(input.state.downcast::<S>().expect(OWN_TYPE));
        let task = cx.task();
        Box::pin(async move { finish(node.run(view, cx).await?, task) })
    })
}

/// Erases a node that takes a payload.
pub(crate) fn worker<S: State, P: Payload>(node: impl Node<S, P>) -> NodeFn {
    let node = Arc::new(node);
    Arc::new(move |input, cx| {
        let (node, task) = (node.clone(), cx.task());
        Box::pin(async move {
            let payload = payload_of(input.payload.as_ref())?;
            drop(input);
            finish(node.run(payload, cx).await?, task)
        })
    })
}

/// Erases an error handler, which runs in place of a failed node.
pub(crate) fn handler<S: State>(node: impl Node<S, Failed<S>>) -> NodeFn {
    let node = Arc::new(node);
    Arc::new(move |input, cx| {
        let node = node.clone();
        let failed = Failed {
            state: View::new(input.state.downcast::<S>().expect(OWN_TYPE)),
            failure: input
                .failure
                .expect("a handler is only started for a failure"),
        };
        let task = cx.task();
        Box::pin(async move { finish(node.run(failed, cx).await?, task) })
    })
}

/// What an error handler receives: the state that the failed node saw, and why it failed.
///
/// ```
/// # use superstep_core::{Command, END, Failed, Goto, Graph, Interrupt, NodeCx, NodeError, START, SendTo, State, View};
/// # #[derive(Clone, Debug, Default, State)]
/// # #[state(crate = superstep_core)]
/// # struct Essay { topic: String, #[state(append)] parts: Vec<String>, score: u8 }
/// # async fn step(_: View<Essay>, _: NodeCx) -> Result<EssayUpdate, NodeError> { Ok(EssayUpdate::default()) }
/// /// Set with `.on_error("write", &["plan"], plan_again)`.
/// async fn plan_again(failed: Failed<Essay>, _: NodeCx) -> Result<Command<Essay>, NodeError> {
///     let why = format!("{} attempts failed: {}", failed.failure.attempts, failed.failure.message);
///     Ok(Command::update(EssayUpdate::default().parts(why)).goto("plan"))
/// }
/// # let graph = Graph::builder("essay").node("plan", step).node("write", step).edge(START, "plan").edge("plan", "write");
/// # graph.edge("write", END).on_error("write", &["plan"], plan_again).build()?;
/// # Ok::<(), superstep_core::error::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Failed<S> {
    /// State at the start of the superstep, as the failed node saw it.
    pub state: View<S>,
    /// Why the node failed, and how many attempts were made.
    pub failure: Failure,
}

/// Erases a route. A panic in it is a failure of its node, not of the driver.
pub(crate) fn route<S: State, G: Gotos<S>>(
    route: impl Fn(&S) -> G + Send + Sync + 'static,
) -> RouteFn {
    Arc::new(move |state| {
        guarded("a route", || {
            command::records(route(state_of(state)).into_gotos())
        })?
    })
}

pub(crate) fn cache<S: State>(key: impl Fn(&S) -> String + Send + Sync + 'static) -> CacheFn {
    Arc::new(move |state| guarded("a cache key", || key(state_of(state))))
}

pub(crate) fn down<S: State, C: State>(
    down: impl Fn(&S) -> C::Update + Send + Sync + 'static,
) -> DownFn {
    Arc::new(move |state, _| {
        guarded("a subgraph's input", || {
            Box::new(down(state_of(state))) as AnyUpdate
        })
    })
}

pub(crate) fn down_payload<P: Payload, C: State>(
    down: impl Fn(P) -> C::Update + Send + Sync + 'static,
) -> DownFn {
    Arc::new(move |_, payload| {
        let payload = payload_of::<P>(payload)?;
        guarded("a subgraph's input", || {
            Box::new(down(payload)) as AnyUpdate
        })
    })
}

pub(crate) fn up<S: State, C: State>(
    up: impl Fn(&S, &C) -> S::Update + Send + Sync + 'static,
) -> UpFn {
    Arc::new(move |parent, state| {
        guarded("a subgraph's output", || {
            Box::new(up(state_of(parent), state_of(state))) as AnyUpdate
        })
    })
}

/// Calls user code where a panic would otherwise reach the driver.
pub(crate) fn guarded<T>(what: &str, call: impl FnOnce() -> T) -> Result<T, NodeError> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        NodeError::of_kind(
            FailureKind::Panicked,
            format!("{what} panicked: {}", panic_text(&*panic)),
        )
    })
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no words")
}
