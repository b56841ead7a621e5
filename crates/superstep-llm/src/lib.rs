//! Language models behind one trait.
//!
//! A [`Model`] answers a [`Request`] with a stream of [`Chunk`]s that ends with the whole [`Reply`]: text, tool calls, usage
//! and cost. [`Remote`] calls providers; [`Script`] plays replies from a file, [`Cassette`] plays back recorded ones, and
//! [`Retrying`] adds retries and fallbacks. [`structured::ask`] returns structured output as a Rust type, and [`fit::fit`]
//! shortens a conversation to the context size and reports what it cut.
//!
//! The default feature `remote` has [`Remote`] and [`RemoteEmbedder`], with an HTTP client and TLS. Without it, this crate has
//! scripts, cassettes, retries, structured output and the traits for a model of your own.
//!
//! This crate knows nothing about graphs and never stores a conversation: the caller passes all of it with each request.
//!
//! ```
//! use superstep_llm::{Message, Model, Request, Script};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Script::parse("demo", r#"{"replies": [{"at": "greet", "text": "Hello, Ada."}]}"#)?;
//! let reply = model.reply(&Request::new("greet", vec![Message::user("I am Ada.")])).await?;
//! assert_eq!(reply.text(), "Hello, Ada.");
//! model.finish()?;
//! # Ok(())
//! # }
//! ```
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [Models](../../book/html/docs/models.html)
//! - [Run a local model well](../../book/html/docs/howto/run-a-local-model.html)
//! - [Get structured output](../../book/html/docs/howto/get-structured-output.html)

pub mod cassette;
mod embed;
mod error;
pub mod fit;
mod lock;
mod message;
mod model;
mod name;
pub mod partial_json;
pub mod price;
#[cfg(feature = "remote")]
mod provider;
#[cfg(feature = "remote")]
mod quiet;
mod reply;
mod request;
mod retrying;
pub mod script;
mod secret;
mod slots;
pub mod structured;
mod usage;

use std::sync::Arc;

pub use cassette::{Cassette, Recorder};
pub use embed::{Embedded, Embedder, ScriptedEmbedder, cosine_similarity};
pub use error::ModelError;
pub use message::{Answer, Block, Content, FileSource, Message, ToolCall, ToolResult, ToolStatus};
pub use model::{BoxFuture, Model, whole};
pub use name::{ModelName, NotAModel, Provider};
pub use price::{Cost, Price, Prices};
#[cfg(feature = "remote")]
pub use provider::{Address, Remote, RemoteEmbedder, ReplyLimits};
pub use reply::{Chunk, Finish, Reply, ReplyStream};
pub use request::{OutputSchema, Request, ToolChoice, ToolSpec};
pub use retrying::{Patience, Retrying};
pub use script::Script;
pub use secret::{SCRUBBED, Secret};
pub use structured::Structured;
pub use usage::Usage;

/// Opens the model with this name: a file for `script:` and `cassette:`, otherwise a server whose address and key come from
/// the environment. Remote models retry with the defaults of [`Retrying`].
///
/// Without the feature `remote`, a server's model is the error [`ModelError::NotBuiltIn`].
///
/// If `SUPERSTEP_SCRIPT_LEDGER` is set, a script records its replies in that file; see [`Script::with_ledger`].
pub fn open(name: &ModelName) -> Result<Arc<dyn Model>, ModelError> {
    open_at(name, None)
}

/// Opens a model like [`open`], with the server at `url` if the environment sets no address for the provider. Scripts and
/// cassettes ignore `url`.
pub fn open_at(name: &ModelName, url: Option<&str>) -> Result<Arc<dyn Model>, ModelError> {
    Ok(match name.provider() {
        Provider::Script => {
            let script = Script::open(name.name())?;
            match std::env::var(SCRIPT_LEDGER)
                .ok()
                .filter(|path| !path.is_empty())
            {
                Some(path) => Arc::new(script.with_ledger(path)?),
                None => Arc::new(script),
            }
        }
        Provider::Cassette => Arc::new(Cassette::open(name.name())?),
        #[cfg(feature = "remote")]
        _ => Arc::new(Retrying::new(Arc::new(Remote::from_env_or(name, url)?))),
        #[cfg(not(feature = "remote"))]
        _ => {
            // Only a server has an address.
            let _ = url;
            return Err(ModelError::NotBuiltIn {
                model: name.clone(),
            });
        }
    })
}

/// Environment variable with the path of the scripts' ledger.
pub const SCRIPT_LEDGER: &str = "SUPERSTEP_SCRIPT_LEDGER";

/// Compiles the examples of the page on models as doctests.
#[cfg(all(doctest, feature = "remote"))]
#[doc = include_str!("../../../docs/models.md")]
struct Models;
