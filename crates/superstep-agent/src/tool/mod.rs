//! Tools: functions that a model may call.
//!
//! A [`Tool`] is a name, a description, a schema of its arguments, the function, and what the runtime needs to call it
//! safely: its [`Class`], whether a person must approve, which labels it accepts and which its results carry. `call/` makes
//! the calls.

mod class;
mod cx;
mod error;
mod output;
mod registry;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use superstep_core::label::{Label, Policy};
use superstep_core::{Labels, TestCx, schema};
use superstep_llm::structured::schema_of;
use superstep_llm::{BoxFuture, ToolSpec};

pub use class::Class;
pub use cx::ToolCx;
pub use error::ToolError;
pub use output::{IntoToolOutput, ToolOutput};
pub use registry::{ToolFault, Tools};

use crate::approval::Approval;
use crate::digest::digest;

pub(crate) use cx::{CallInfo, within};
pub(crate) use output::{ToolCommand, with_updates};

/// Type-erased function of a tool.
pub(crate) type Call =
    Arc<dyn Fn(Json, ToolCx) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync>;

/// Type-erased lookup: returns the result if the call happened, `None` if it did not.
pub(crate) type Lookup = Arc<
    dyn Fn(Json, ToolCx) -> BoxFuture<'static, Result<Option<ToolOutput>, ToolError>> + Send + Sync,
>;

/// A function that a model may call.
#[derive(Clone)]
pub struct Tool {
    pub(crate) spec: ToolSpec,
    pub(crate) class: Class,
    pub(crate) call: Call,
    pub(crate) lookup: Option<Lookup>,
    pub(crate) approval: Option<Approval>,
    pub(crate) policy: Option<Policy>,
    /// Accepts every label, also those that the program invents.
    pub(crate) takes_everything: bool,
    pub(crate) output: Labels,
    pub(crate) timeout: Option<Duration>,
    /// Whether the function applies the timeout itself, to less than the whole call; see [`ToolCx::within_timeout`].
    pub(crate) times_itself: bool,
    pub(crate) tries_max: u32,
    pub(crate) wait: Duration,
    pub(crate) key_lifetime: Option<Duration>,
}

/// Creates a tool from a typed function. The model sees the schema of the argument type, including its doc comments.
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
/// The class defaults to [`Class::Unsafe`]; declare a better one where it holds.
pub fn tool<A, O, F, Fut>(name: &str, description: &str, call: F) -> Tool
where
    A: JsonSchema + DeserializeOwned,
    O: IntoToolOutput,
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
        Box::pin(async move { running?.await?.into_output() })
    };
    Tool::raw(spec, call)
}

fn read<A: DeserializeOwned>(args: Json) -> Result<A, ToolError> {
    // JSON Schema accepts `1.0` as an integer; serde does not for an integer field.
    serde::Deserialize::deserialize(&args)
        .or_else(|error| serde_json::from_value(schema::with_integers(args)).map_err(|_| error))
        .map_err(|error| ToolError::failed(format!("the arguments do not fit: {error}")))
}

impl Tool {
    /// Creates a tool from a JSON Schema and a function over JSON, for tools known only at run time.
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
            takes_everything: false,
            output: Labels::NONE,
            timeout: None,
            times_itself: false,
            tries_max: TRIES_MAX,
            wait: WAIT,
            key_lifetime: Some(KEY_LIFETIME),
        }
    }

    /// Declares that the tool changes nothing. In doubt it is called again.
    #[must_use]
    pub fn read(self) -> Self {
        self.of_class(Class::Read)
    }

    /// Declares that calling twice equals calling once, like a write or a deletion by id. In doubt it is called again.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.of_class(Class::Idempotent)
    }

    /// Declares that the receiver ignores a second call with the same [key](ToolCx::idempotency_key). In doubt it is called
    /// again under the same key, while the receiver [remembers](Self::key_lifetime) it.
    #[must_use]
    pub fn keyed(self) -> Self {
        self.of_class(Class::Keyed)
    }

    /// Declares that `lookup` can find out whether a call happened, by a marker that the call left (for instance its
    /// [key](ToolCx::idempotency_key)). In doubt the runtime looks the call up, and repeats it only if it did not happen.
    #[must_use]
    pub fn reconcilable<A, O, F, Fut>(mut self, lookup: F) -> Self
    where
        A: DeserializeOwned,
        O: IntoToolOutput,
        F: Fn(A, ToolCx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<O>, ToolError>> + Send + 'static,
    {
        let lookup = move |args: Json, cx: ToolCx| -> BoxFuture<'static, _> {
            let running = read(args).map(|args| lookup(args, cx));
            Box::pin(async move { running?.await?.map(O::into_output).transpose() })
        };
        self.lookup = Some(Arc::new(lookup));
        self.of_class(Class::Reconcilable)
    }

    fn of_class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    /// Requires a person's approval; see [`Approval`].
    #[must_use]
    pub fn approved_by_a_person(mut self, approval: Approval) -> Self {
        self.approval = Some(approval);
        self
    }

    /// Sets which labels of the arguments the tool accepts without approval. Default: none, except that a tool of class
    /// [`Class::Read`] accepts `untrusted`, because an attacker's text cannot make it change anything.
    #[must_use]
    pub fn takes(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Accepts arguments with any labels: for a tool whose arguments go nowhere.
    #[must_use]
    pub(crate) fn takes_everything(mut self) -> Self {
        self.takes_everything = true;
        self
    }

    /// Leaves the timeout to the function: for a tool that must reach its receiver first, which has a limit of its own.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub(crate) fn times_itself(mut self) -> Self {
        self.times_itself = true;
        self
    }

    /// Sets labels that every result carries, besides those of the arguments. Default: none.
    #[must_use]
    pub fn gives(mut self, labels: impl Into<Labels>) -> Self {
        self.output = labels.into();
        self
    }

    /// Limits the time of one attempt. After a timeout it is unknown whether the call happened. For a tool of an MCP server, the
    /// time counts from the moment at which the call is sent. Default: no limit.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Sets the maximum number of attempts before a person is asked, and the wait before the second attempt; it doubles each
    /// time. Applies to classes that may be called again. Default: 3 attempts, 100 ms.
    #[must_use]
    pub fn tries(mut self, tries_max: u32, wait: Duration) -> Self {
        self.tries_max = tries_max.max(1);
        self.wait = wait;
        self
    }

    /// Sets how long the receiver of a keyed tool remembers a key; `None` means forever. Default: 24 hours. If the first
    /// attempt may be older than that, a person is asked, as for an unsafe tool.
    #[must_use]
    pub fn key_lifetime(mut self, lifetime: Option<Duration>) -> Self {
        self.key_lifetime = lifetime;
        self
    }

    /// Calls the function once with these arguments, for a unit test: they must fit the schema, and there is no approval, no
    /// record, no timeout and no second attempt.
    ///
    /// ```
    /// # use superstep_agent::{ToolError, tool};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct City { name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ToolError> {
    /// let weather = tool("weather", "The weather of a city.", |city: City, _cx| async move {
    ///     Ok(format!("Rain in {}.", city.name))
    /// });
    /// let told = weather.test_call(serde_json::json!({ "name": "Bergen" })).await?;
    /// assert_eq!(told.content.text(), "Rain in Bergen.");
    /// assert!(weather.test_call(serde_json::json!({ "town": "Bergen" })).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn test_call(&self, args: Json) -> Result<ToolOutput, ToolError> {
        schema::check(&self.spec.schema, &args, "the call").map_err(ToolError::failed)?;
        let node = TestCx::new().cx();
        let cx = ToolCx::new(CallInfo {
            call_id: "test".to_owned(),
            idempotency_key: node.effect_key("test"),
            fingerprint: digest(self.name(), &args),
            attempt: 1,
            deadline: None,
            timeout: None,
            labels: Labels::NONE,
            answers: Vec::new(),
            node,
        });
        (self.call)(args, cx).await
    }

    /// Returns the name that the model calls the tool by.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Returns the class.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Returns the name, description and schema that the model sees.
    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Returns the effective label policy: the configured one, or the default of the class.
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
/// Default of [`Tool::key_lifetime`]: what most providers promise.
const KEY_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
