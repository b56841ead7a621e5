//! Embeddings: texts as vectors, close to each other if they mean similar things.

use std::fmt;
use std::sync::Arc;

use crate::error::ModelError;
use crate::model::BoxFuture;
use crate::name::{ModelName, Provider};
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

/// An embedder for tests and demos, without a model: a text is close to another if both contain the same of the given words.
///
/// ```
/// # use superstep_llm::{Embedder, ScriptedEmbedder, cosine_similarity};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), superstep_llm::ModelError> {
/// let embedder = ScriptedEmbedder::new(["eat", "food", "city"]);
/// let texts = ["What can I eat?", "They eat no nuts.", "A city by the sea."].map(str::to_owned);
/// let points = embedder.embed(&texts).await?.points;
/// assert_eq!(cosine_similarity(&points[0], &points[1]), 1.0);
/// assert_eq!(cosine_similarity(&points[0], &points[2]), 0.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ScriptedEmbedder {
    name: ModelName,
    words: Vec<String>,
}

impl ScriptedEmbedder {
    /// Creates an embedder with one dimension for each word. Upper and lower case are the same.
    pub fn new(words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let words = words.into_iter().map(|word| word.into().to_lowercase());
        Self {
            name: ModelName::new(Provider::Script, "words"),
            words: words.collect(),
        }
    }
}

impl Embedder for ScriptedEmbedder {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embedded, ModelError>> {
        let point = |text: &String| {
            let text = text.to_lowercase();
            let has = |word: &String| f32::from(u8::from(text.contains(word)));
            self.words.iter().map(has).collect()
        };
        let points = texts.iter().map(point).collect();
        Box::pin(async move {
            Ok(Embedded {
                points,
                usage: None,
            })
        })
    }
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
