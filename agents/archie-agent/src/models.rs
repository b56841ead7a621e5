//! The registry of models that graphs ask for by name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use superstep_llm::{Model, ModelError, ModelName, Provider};

use crate::profile::{ModelProfile, ModelProfiles};

/// Opens each model once and shares it. State holds only a model's name, so that it can be stored; the registry holds the
/// model.
#[derive(Debug, Default)]
pub struct ModelRegistry {
    open: Mutex<BTreeMap<String, Arc<dyn Model>>>,
    profiles: ModelProfiles,
    openai_base_url: Option<String>,
}

impl ModelRegistry {
    /// Creates a registry that knows what was measured of these models.
    pub fn with_profiles(profiles: ModelProfiles) -> Self {
        Self {
            profiles,
            ..Self::default()
        }
    }

    /// Sets the address of the server for `openai:` and `openai_responses:` models. `OPENAI_BASE_URL` takes precedence.
    #[must_use]
    pub fn with_openai_base_url(mut self, url: Option<String>) -> Self {
        self.openai_base_url = url;
        self
    }

    /// Returns how much an agent may leave to the model with this name.
    pub fn profile(&self, name: &str) -> ModelProfile {
        self.profiles.get(name)
    }

    /// Registers a model under a name, replacing any model that has it.
    pub fn put(&self, name: &str, model: Arc<dyn Model>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(name.to_owned(), model);
    }

    /// Returns the model with this name, opening it on first use. Fails if the name is not a valid model name or the model
    /// cannot be opened.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = open.get(name) {
            return Ok(model.clone());
        }
        let parsed: ModelName = name.parse()?;
        let url = match parsed.provider() {
            Provider::OpenAi | Provider::OpenAiResponses => self.openai_base_url.as_deref(),
            _ => None,
        };
        let model = superstep_llm::open_at(&parsed, url)?;
        open.insert(name.to_owned(), model.clone());
        Ok(model)
    }
}
