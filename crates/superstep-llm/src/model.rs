//! The `Model` trait.

use std::fmt;
use std::pin::Pin;

use futures_util::StreamExt;

use crate::error::ModelError;
use crate::name::ModelName;
use crate::reply::{Chunk, Reply, ReplyStream};
use crate::request::Request;

/// A boxed future, for object-safe async methods.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A language model: a provider, a script, a recording, or a wrapper around another model.
///
/// Every call streams, so there is a single code path; [`Model::reply`] reads the stream to its end. Dropping the future or
/// the stream cancels the call at the server.
pub trait Model: fmt::Debug + Send + Sync + 'static {
    /// Returns the name, in the form that [`open`](crate::open) accepts.
    fn name(&self) -> &ModelName;

    /// Starts a call and returns the stream of its reply.
    fn stream<'a>(&'a self, request: &'a Request)
    -> BoxFuture<'a, Result<ReplyStream, ModelError>>;

    /// Asks the server for the context size in tokens, input and output together. `None` if the server does not report it.
    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>>;

    /// Asks the server how many requests it processes at once. `None` if the server does not report it.
    fn slots(&self) -> BoxFuture<'_, Option<usize>> {
        Box::pin(async { None })
    }

    /// Calls the model and returns the whole reply.
    fn reply<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move { whole(self.stream(request).await?).await })
    }
}

/// Reads a stream to its end and returns the reply.
pub async fn whole(mut stream: ReplyStream) -> Result<Reply, ModelError> {
    while let Some(chunk) = stream.next().await {
        if let Chunk::End(reply) = chunk? {
            return Ok(*reply);
        }
    }
    Err(ModelError::Cut)
}
