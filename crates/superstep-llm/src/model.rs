//! The one trait.

use std::fmt;
use std::pin::Pin;

use futures_util::StreamExt;

use crate::error::ModelError;
use crate::name::ModelName;
use crate::reply::{Chunk, Reply, ReplyStream};
use crate::request::Request;

/// A future that can be kept.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something that answers requests: a provider, a script, a recording, or another model with something around it.
///
/// Every call is a stream, so there is one path; [`Model::reply`] reads it to the end. Dropping the future or the stream
/// ends the call at the server.
pub trait Model: fmt::Debug + Send + Sync + 'static {
    /// Its name, as a person would give it.
    fn name(&self) -> &ModelName;

    /// Begins to answer.
    fn stream<'a>(&'a self, request: &'a Request)
    -> BoxFuture<'a, Result<ReplyStream, ModelError>>;

    /// How many tokens of input and output fit, asked of the server. None if it does not say.
    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>>;

    /// The whole answer.
    fn reply<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move { whole(self.stream(request).await?).await })
    }
}

/// Reads a stream to its end.
pub async fn whole(mut stream: ReplyStream) -> Result<Reply, ModelError> {
    while let Some(chunk) = stream.next().await {
        if let Chunk::End(reply) = chunk? {
            return Ok(*reply);
        }
    }
    Err(ModelError::Cut)
}
