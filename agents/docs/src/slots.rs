//! How many calls at once a person lets a model have, with `--parallel`. Without it, the model's own limit holds: the slots that
//! its server tells.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use superstep_llm::{BoxFuture, Model, ModelError, ModelName, ReplyStream, Request};
use tokio::sync::Semaphore;

/// Slots of the models that this process calls, by name and number.
#[derive(Debug, Default)]
pub struct ModelSlots {
    slots: Mutex<BTreeMap<(String, usize), Arc<Semaphore>>>,
}

impl ModelSlots {
    /// Returns a model that calls `model` at most `parallel` times at once, over all who ask for this model with this number.
    pub fn limited(&self, model: Arc<dyn Model>, parallel: Option<u32>) -> Arc<dyn Model> {
        let Some(parallel) = parallel else {
            return model;
        };
        let most = usize::try_from(parallel).map_or(SLOTS_MAX, |most| most.clamp(1, SLOTS_MAX));
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slots = slots.entry((model.name().to_string(), most));
        let slots = slots.or_insert_with(|| Arc::new(Semaphore::new(most)));
        Arc::new(SlottedModel {
            model,
            slots: slots.clone(),
        })
    }
}

/// A model whose calls wait for a free slot.
struct SlottedModel {
    model: Arc<dyn Model>,
    slots: Arc<Semaphore>,
}

impl Model for SlottedModel {
    fn name(&self) -> &ModelName {
        self.model.name()
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        Box::pin(async move {
            // The only error is a closed semaphore, and this one is never closed.
            let slot = self.slots.clone().acquire_owned().await.ok();
            let chunks = self.model.stream(request).await?;
            let chunks = chunks.inspect(move |_| {
                let _held = &slot;
            });
            Ok(Box::pin(chunks) as ReplyStream)
        })
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        self.model.context_size()
    }

    fn slots(&self) -> BoxFuture<'_, Option<usize>> {
        self.model.slots()
    }
}

impl fmt::Debug for SlottedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlottedModel")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// Upper limit of `--parallel`.
const SLOTS_MAX: usize = 64;
