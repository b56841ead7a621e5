//! Tools: functions that a model may have called.
//!
//! A [`Tool`] is a name, a description, a schema of its arguments, the function, and what the runtime must know to call it
//! safely: its [`Class`], whether a person must agree, which labels it takes and which its results have. How a call is
//! made is in `call/`.

mod class;
mod cx;
mod error;
mod registry;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use superstep_core::label::{Label, Policy};
use superstep_core::{Labels, schema};
use superstep_llm::structured::schema_of;
use superstep_llm::{BoxFuture, Content, ToolSpec};

pub use class::Class;
pub use cx::ToolCx;
pub use error::ToolError;
pub use registry::{ToolFault, Tools};

use crate::approval::Approval;

pub(crate) use cx::Handed;

/// What a tool gave back, as a model is told it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput(pub Content);

impl ToolOutput {
    /// Text as it is; anything else as JSON.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        let text = match serde_json::to_value(value)? {
            Json::String(text) => text,
            Json::Null => "done".to_owned(),
            other => other.to_string(),
        };
        Ok(Self(text.into()))
    }
}

/// The function of a tool, over JSON.
pub(crate) type Call =
    Arc<dyn Fn(Json, ToolCx) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync>;

/// Looks whether a call happened, and what it gave.
pub(crate) type Lookup = Arc<
    dyn Fn(Json, ToolCx) -> BoxFuture<'static, Result<Option<ToolOutput>, ToolError>> + Send + Sync,
>;

/// A function that a model may have called.
#[derive(Clone)]
pub struct Tool {
    pub(crate) spec: ToolSpec,
    pub(crate) class: Class,
    pub(crate) call: Call,
    pub(crate) lookup: Option<Lookup>,
    pub(crate) approval: Option<Approval>,
    pub(crate) policy: Option<Policy>,
    pub(crate) output: Labels,
    pub(crate) timeout: Option<Duration>,
    pub(crate) tries_max: u32,
    pub(crate) wait: Duration,
    pub(crate) key_lifetime: Option<Duration>,
}

/// A typed function as a tool. The schema that the model sees is that of its arguments, doc comments included.
///
/// ```
/// use superstep_agent::{Tool, ToolError, tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Mail {
///     to: String,
///     text: String,
/// }
///
/// let send: Tool = tool("send_mail", "Sends a mail.", |mail: Mail, cx| async move {
///     if !mail.to.contains('@') {
///         return Err(ToolError::failed("that is not an address"));
///     }
///     Ok(format!("sent under {}", cx.idempotency_key()))
/// })
/// .keyed();
/// ```
///
/// Its class is [`Class::Unsafe`] unless you say that it is something better.
pub fn tool<A, O, F, Fut>(name: &str, description: &str, call: F) -> Tool
where
    A: JsonSchema + DeserializeOwned,
    O: Serialize,
    F: Fn(A, ToolCx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
{
    let spec = ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema: schema_of::<A>(),
    };
    let call = move |args: Json, cx: ToolCx| -> BoxFuture<'static, _> {
        let running = read(args).map(|args| call(args, cx));
        Box::pin(async move { shown(&running?.await?) })
    };
    Tool::raw(spec, call)
}

fn read<A: DeserializeOwned>(args: Json) -> Result<A, ToolError> {
    // A schema takes `1.0` for an integer, and a type with an integer field does not.
    serde::Deserialize::deserialize(&args)
        .or_else(|error| serde_json::from_value(schema::with_integers(args)).map_err(|_| error))
        .map_err(|error| ToolError::failed(format!("the arguments do not fit: {error}")))
}

/// Whatever it gave was given: that it cannot be written as JSON comes too late to say that nothing happened.
fn shown(value: &impl Serialize) -> Result<ToolOutput, ToolError> {
    ToolOutput::of(value)
        .map_err(|error| ToolError::unknown(format!("its result is not JSON: {error}")))
}

impl Tool {
    /// A tool whose schema and function are over JSON: for tools that are known only when the program runs.
    pub fn raw(
        spec: ToolSpec,
        call: impl Fn(Json, ToolCx) -> BoxFuture<'static, Result<ToolOutput, ToolError>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            spec,
            class: Class::Unsafe,
            call: Arc::new(call),
            lookup: None,
            approval: None,
            policy: None,
            output: Labels::NONE,
            timeout: None,
            tries_max: TRIES_MAX,
            wait: WAIT,
            key_lifetime: Some(KEY_LIFETIME),
        }
    }

    /// It changes nothing. Called again as often as need be.
    #[must_use]
    pub fn read(self) -> Self {
        self.of_class(Class::Read)
    }

    /// Doing it twice is doing it once, as with a write or a deletion by id. Called again as often as need be.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.of_class(Class::Idempotent)
    }

    /// The receiver drops a second call with the same [key](ToolCx::idempotency_key). Called again under the same key,
    /// within the time that the receiver [remembers](Self::key_lifetime) it.
    #[must_use]
    pub fn keyed(self) -> Self {
        self.of_class(Class::Keyed)
    }

    /// Whether it happened can be looked up, by a marker that the call left (its [key](ToolCx::idempotency_key), for
    /// instance). In doubt it is looked up, and called again only if it did not happen.
    #[must_use]
    pub fn reconcilable<A, O, F, Fut>(mut self, lookup: F) -> Self
    where
        A: DeserializeOwned,
        O: Serialize,
        F: Fn(A, ToolCx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<O>, ToolError>> + Send + 'static,
    {
        let lookup = move |args: Json, cx: ToolCx| -> BoxFuture<'static, _> {
            let running = read(args).map(|args| lookup(args, cx));
            Box::pin(async move { running?.await?.as_ref().map(shown).transpose() })
        };
        self.lookup = Some(Arc::new(lookup));
        self.of_class(Class::Reconcilable)
    }

    fn of_class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    /// A person must agree. See [`Approval`].
    #[must_use]
    pub fn approved_by_a_person(mut self, approval: Approval) -> Self {
        self.approval = Some(approval);
        self
    }

    /// Which labels of its arguments it takes without asking. By default it asks for every label, but for a tool that
    /// only reads `untrusted` ones: what strangers wrote cannot make it change anything.
    #[must_use]
    pub fn takes(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Its results have these labels, beside those of the arguments.
    #[must_use]
    pub fn gives(mut self, labels: impl Into<Labels>) -> Self {
        self.output = labels.into();
        self
    }

    /// How long one call may take. After it nobody knows whether it happened.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// How often it is called at most before a person is asked, and how long is waited before the second time (then
    /// twice as long each time). For classes that may be called again. Default: 3 times, 100 ms.
    #[must_use]
    pub fn tries(mut self, tries_max: u32, wait: Duration) -> Self {
        self.tries_max = tries_max.max(1);
        self.wait = wait;
        self
    }

    /// How long the receiver of a keyed tool remembers a key; none for ever. Default: 24 hours. A call that may have
    /// been made longer ago than that is not made again but asked about, as if the tool were unsafe.
    #[must_use]
    pub fn key_lifetime(mut self, lifetime: Option<Duration>) -> Self {
        self.key_lifetime = lifetime;
        self
    }

    /// What it is called by.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Its class.
    pub fn class(&self) -> Class {
        self.class
    }

    /// As the model is told of it.
    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// What it takes without asking.
    pub(crate) fn policy(&self) -> Policy {
        match (&self.policy, self.class) {
            (Some(policy), _) => policy.clone(),
            (None, Class::Read) => Policy::new().accepts(Label::UNTRUSTED),
            (None, _) => Policy::new(),
        }
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.spec.name)
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}

const TRIES_MAX: u32 = 3;
const WAIT: Duration = Duration::from_millis(100);
/// What most providers promise.
const KEY_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
