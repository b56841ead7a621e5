//! Language models behind one trait.
//!
//! A [`Model`] answers a [`Request`] with a stream of [`Chunk`]s whose last one is the whole [`Reply`]: what was said, which
//! tools are to be called, what it took and what it cost. Providers are reached through [`Remote`]; [`Script`] is a model that
//! is a file, [`Cassette`] one that was recorded, and [`Retrying`] one that does not give up at once. [`structured::ask`] gets an
//! answer in the form of a Rust type, [`fit::fit`] makes a conversation fit and says what it cut.
//!
//! This crate knows no graphs, and it never keeps a conversation: the caller brings all of it.
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

pub mod cassette;
mod embed;
mod error;
pub mod fit;
mod lock;
mod message;
mod model;
mod name;
pub mod price;
mod provider;
mod quiet;
mod reply;
mod request;
mod retrying;
pub mod script;
mod secret;
pub mod structured;
mod usage;

use std::sync::Arc;

pub use cassette::{Cassette, Recorder};
pub use embed::{Embedded, Embedder, RemoteEmbedder, likeness};
pub use error::ModelError;
pub use message::{Answer, Block, Content, FileSource, Message, ToolCall, ToolResult, ToolStatus};
pub use model::{BoxFuture, Model, whole};
pub use name::{ModelName, NotAModel, Provider};
pub use price::{Cost, Price, Prices};
pub use provider::{Address, Remote, ReplyLimits};
pub use reply::{Chunk, Finish, Reply, ReplyStream};
pub use request::{OutputSchema, Request, ToolChoice, ToolSpec};
pub use retrying::{Patience, Retrying};
pub use script::Script;
pub use secret::{SCRUBBED, Secret};
pub use structured::Structured;
pub use usage::Usage;

/// The model of this name: a file for `script:` and `cassette:`, else a server, where the environment says it is.
///
/// A script keeps a ledger in the file that `SUPERSTEP_SCRIPT_LEDGER` names, if it does.
pub fn open(name: &ModelName) -> Result<Arc<dyn Model>, ModelError> {
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
        _ => Arc::new(Retrying::new(Arc::new(Remote::from_env(name)?))),
    })
}

/// The environment variable that names the ledger of scripts.
pub const SCRIPT_LEDGER: &str = "SUPERSTEP_SCRIPT_LEDGER";

/// The examples of the page on models compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/models.md")]
struct Models;
