//! The type of an agent's final answer, erased: the loop need not know it.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;
use superstep_core::NodeError;
use superstep_llm::structured::{NotFlat, output_schema, read};
use superstep_llm::{BoxFuture, Model, Reply, Request};

use crate::asking::Asker;

/// The form of a final answer: asks a model for it and reads it.
#[derive(Clone)]
pub(super) struct AnswerForm(Arc<dyn Erased>);

/// What a model replied when it was asked for the final answer.
pub(super) struct FinalReplies {
    /// The replies, in order: one, or two if the first did not fit.
    pub(super) replies: Vec<Reply>,
    /// Whether the last reply fits.
    pub(super) fits: bool,
}

impl AnswerForm {
    pub(super) fn of<T: JsonSchema + DeserializeOwned + Serialize + 'static>() -> Self {
        Self(Arc::new(Typed::<T>(PhantomData)))
    }

    /// Returns an error if some servers would not enforce the schema of the type.
    pub(super) fn check(&self) -> Result<(), NotFlat> {
        self.0.check()
    }

    /// Asks for the answer, and once more if it does not fit. `None` if a person chose to stop at a limit.
    pub(super) async fn ask(
        &self,
        asker: &Asker<'_>,
        model: &dyn Model,
        request: Request,
    ) -> Result<Option<FinalReplies>, NodeError> {
        self.0.ask(asker, model, request).await
    }

    /// Reads the answer in a reply; `None` if it does not fit.
    pub(super) fn read(&self, reply: &Reply) -> Option<Json> {
        self.0.read(reply)
    }
}

impl fmt::Debug for AnswerForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerForm")
    }
}

trait Erased: Send + Sync {
    fn check(&self) -> Result<(), NotFlat>;

    fn ask<'a>(
        &'a self,
        asker: &'a Asker<'a>,
        model: &'a dyn Model,
        request: Request,
    ) -> BoxFuture<'a, Result<Option<FinalReplies>, NodeError>>;

    fn read(&self, reply: &Reply) -> Option<Json>;
}

struct Typed<T>(PhantomData<fn() -> T>);

impl<T: JsonSchema + DeserializeOwned + Serialize + 'static> Erased for Typed<T> {
    fn check(&self) -> Result<(), NotFlat> {
        output_schema::<T>().map(drop)
    }

    fn ask<'a>(
        &'a self,
        asker: &'a Asker<'a>,
        model: &'a dyn Model,
        request: Request,
    ) -> BoxFuture<'a, Result<Option<FinalReplies>, NodeError>> {
        Box::pin(async move {
            let asked = asker.ask_for(model, request, || Fitting::<T>(None)).await?;
            Ok(asked.map(|asked| FinalReplies {
                fits: asked.value.0.is_some(),
                replies: asked.replies,
            }))
        })
    }

    fn read(&self, reply: &Reply) -> Option<Json> {
        let answer: T = read(reply).ok()?;
        serde_json::to_value(answer).ok()
    }
}

/// A `T`, or nothing if the model's answers did not fit. Has the schema of `T`: an `Option` would allow `null`, and no schema
/// with a choice is flat.
struct Fitting<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Fitting<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Some(T::deserialize(deserializer)?)))
    }
}

impl<T: JsonSchema> JsonSchema for Fitting<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
