//! Embeddings: texts as vectors, close to each other if they mean similar things.

use std::fmt;
use std::sync::Arc;

use crate::error::ModelError;
use crate::model::BoxFuture;
use crate::name::ModelName;
use crate::usage::Usage;

/// A model that turns texts into vectors.
pub trait Embedder: fmt::Debug + Send + Sync + 'static {
    /// Returns the name of the model. Vectors of different models must not be compared.
    fn name(&self) -> &ModelName;

    /// Returns a vector for each text, in the same order.
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embedded, ModelError>>;
}

/// Result of [`Embedder::embed`].
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// A vector for each text, in the same order.
    pub points: Vec<Vec<f32>>,
    /// Tokens used, if the server reported them.
    pub usage: Option<Usage>,
}

/// Returns the cosine similarity of two vectors: 1 for the same direction, 0 for unrelated ones. Also 0 if the lengths differ
/// or a vector is zero.
pub fn cosine_similarity(one: &[f32], other: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let lengths = (dot(one, one) * dot(other, other)).sqrt();
    match lengths > 0.0 && one.len() == other.len() {
        true => dot(one, other) / lengths,
        false => 0.0,
    }
}

/// An `Arc` of an embedder is an embedder too.
impl<E: Embedder + ?Sized> Embedder for Arc<E> {
    fn name(&self) -> &ModelName {
        (**self).name()
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embedded, ModelError>> {
        (**self).embed(texts)
    }
}
